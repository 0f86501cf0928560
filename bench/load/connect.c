/* The load generator of everything that opens and closes connections.
 *
 *   connect address=PORT kind=churn|burst connections=N size=BYTES warm=SECONDS seconds=SECONDS
 *
 *   churn  so many threads open a connection, exchange size bytes (none: only see it closed), close it, and again
 *   burst  one thread keeps a request of one byte under way; meanwhile so many connections are opened at once, each
 *          exchanges size bytes. Latencies are those of the first thread: the longest is the stall that a bystander sees.
 *
 * With -DTLS over TLS. Prints {} when ready, waits for a line, then prints the result, like exchange.c. Clients bind to
 * source addresses 127.0.0.2 and up, else the ports of closed connections would run out. Linux.
 */
#define _GNU_SOURCE
#include "common.h"
#include "stream.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

enum { SOURCES = 64, THREADS = 64, LARGEST = 64 * 1024 };

static const char *address;
static size_t size;
static int64_t end;
static atomic_int sources;
static atomic_long exchanges;
static atomic_int burst_over;
static pthread_mutex_t noting = PTHREAD_MUTEX_INITIALIZER;
static char data[LARGEST];

static int connected(void)
{
    struct sockaddr_storage name;
    struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    socklen_t length = resolve(address, &name);
    int fd = opened(address, SOCK_STREAM), on = 1;
    struct sockaddr_in source = {.sin_family = AF_INET};
    source.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + atomic_fetch_add(&sources, 1) % SOURCES);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    check(bind(fd, (struct sockaddr *)&source, sizeof source) < 0, "bind");
    check(connect(fd, (struct sockaddr *)&name, length) < 0, "connect");
    return fd;
}

static void trade(struct stream *stream, size_t bytes)
{
    char answer[LARGEST];
    check(stream_write(stream, data, bytes) != (ssize_t)bytes, "send");
    for (size_t have = 0; have < bytes;) {
        ssize_t got = stream_read(stream, answer + have, bytes - have);
        if (got <= 0)
            fail(got ? "no answer for five seconds" : "the server closed a connection");
        have += got;
    }
    if (memcmp(answer, data, bytes))
        fail("the answer is not the request");
}

static void visit(void)
{
    struct stream stream;
    int64_t start = now();
    int fd = connected();
    stream_connected(&stream, fd);
    if (size) {
        trade(&stream, size);
    } else {
        char nothing;
        shutdown(fd, SHUT_WR);
        check(recv(fd, &nothing, 1, 0) != 0, "waiting for the server to close");
    }
    stream_close(&stream);
    atomic_fetch_add(&exchanges, 1);
    pthread_mutex_lock(&noting);
    note(now() - start);
    pthread_mutex_unlock(&noting);
}

static void *churn(void *unused)
{
    while (now() < end)
        visit();
    return unused;
}

static void together(int count, void *(*body)(void *))
{
    pthread_t threads[THREADS];
    if (count > THREADS)
        fail("too many threads");
    for (int i = 0; i < count; i++)
        check(pthread_create(&threads[i], NULL, body, NULL), "pthread_create");
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static void *bystander(void *stream)
{
    while (!burst_over) {
        int64_t start = now();
        trade(stream, 1);
        note(now() - start);
    }
    return stream;
}

/* Opens all of them, then sends on all of them, then reads from all of them. */
static void burst(int count)
{
    struct stream bystanders, *streams = allocate(count * sizeof *streams);
    pthread_t thread;
    stream_connected(&bystanders, connected());
    check(pthread_create(&thread, NULL, bystander, &bystanders), "pthread_create");
    setpriority(PRIO_PROCESS, gettid(), 19); /* of this thread: the bystander must not wait for its own core */
    for (int i = 0; i < count; i++)
        streams[i].fd = connected();
    for (int i = 0; i < count; i++)
        check(send(streams[i].fd, data, size, MSG_NOSIGNAL) < 0, "send");
    for (int i = 0; i < count; i++)
        check(recv(streams[i].fd, data, size, MSG_WAITALL) != (ssize_t)size, "no answer for five seconds");
    burst_over = 1;
    pthread_join(thread, NULL);
    for (int i = 0; i < count; i++)
        close(streams[i].fd);
    exchanges = count;
}

int main(int argc, char **argv)
{
    options(argc, argv);
    address = text("address", NULL);
    size = number("size", 64);
    if (size > LARGEST)
        fail("size is too large");
    int count = number("connections", 8), bursting = !strcmp(text("kind", "churn"), "burst");
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    stream_setup(0);
    if (!bursting) {
        end = now() + (int64_t)(number("warm", 0.1) * 1e9);
        together(count, churn);
    }
    announce("{}");
    await_line();
    forget();
    exchanges = 0;
    double before = cpu();
    int64_t start = now();
    end = start + (int64_t)(number("seconds", 1) * 1e9);
    if (bursting)
        burst(count);
    else
        together(count, churn);
    printf("{\"requests\": %ld, \"seconds\": %.6f, \"cpu\": %.6f, ", exchanges, (now() - start) / 1e9, cpu() - before);
    print_latencies();
    announce("}");
    return 0;
}
