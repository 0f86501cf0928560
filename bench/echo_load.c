/* The load generator of the echo rows: echo_load PORT CONNECTIONS SIZE WARM-UP SECONDS
 *
 * Each connection has one request of SIZE bytes under way and sends the next when the whole answer is there. After the
 * warm-up it waits, with nothing under way, for a line on standard input: the server's CPU time can be read before and
 * after the measured phase, with exactly the counted requests in between. Prints {} when ready, then the result:
 * requests, seconds, own CPU seconds, latency percentiles in microseconds. Fails if a byte comes back wrong, or none
 * for five seconds. Linux.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 256, BUFFER = 64 * 1024, SLOTS = 1000 * 1000, PATIENCE_MS = 5000 };

struct connection {
    int fd;
    size_t sent, received;
    int64_t since;
    int writing; /* EPOLLOUT is on: the socket did not take the whole request */
};

static int epoll;
static size_t size;
static char *request;
static uint32_t latency[SLOTS]; /* requests by whole microseconds; the last slot takes all slower ones */
static int64_t requests, under_way;

static void fail(const char *what)
{
    fprintf(stderr, "echo_load: %s\n", what);
    exit(1);
}

static void check(int failed, const char *what)
{
    if (failed)
        fail(errno ? strerror(errno) : what);
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static double cpu(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void control(struct connection *c, int operation, uint32_t interest)
{
    struct epoll_event event = {.events = interest, .data.ptr = c};
    check(epoll_ctl(epoll, operation, c->fd, &event) < 0, "epoll_ctl");
}

static void push(struct connection *c)
{
    while (c->sent < size) {
        ssize_t sent = send(c->fd, request + c->sent, size - c->sent, MSG_NOSIGNAL);
        if (sent < 0) {
            check(errno != EAGAIN, "send");
            break;
        }
        c->sent += sent;
    }
    int writing = c->sent < size;
    if (writing != c->writing)
        control(c, EPOLL_CTL_MOD, writing ? EPOLLIN | EPOLLOUT : EPOLLIN);
    c->writing = writing;
}

static void begin(struct connection *c)
{
    c->sent = c->received = 0;
    c->since = now();
    under_way++;
    push(c);
}

/* True once the answer is complete. */
static int pull(struct connection *c)
{
    static char buffer[BUFFER];
    ssize_t got = recv(c->fd, buffer, sizeof buffer, 0);
    if (got < 0 && errno == EAGAIN)
        return 0;
    check(got < 0, "recv");
    if (got == 0)
        fail("the server closed a connection");
    if (c->received + got > size || memcmp(buffer, request + c->received, got))
        fail("the answer is not the request");
    c->received += got;
    return c->received == size;
}

/* Count the request; the time it was complete. */
static int64_t finish(struct connection *c)
{
    int64_t time = now(), micro = (time - c->since) / 1000;
    latency[micro < SLOTS ? micro : SLOTS - 1]++;
    requests++;
    under_way--;
    return time;
}

/* Load for so many seconds, then until nothing is under way; the seconds it took. */
static double run(struct connection *connections, int count, double seconds)
{
    struct epoll_event events[EVENTS];
    memset(latency, 0, sizeof latency);
    requests = 0;
    int64_t start = now(), end = start + (int64_t)(seconds * 1e9);
    for (int i = 0; i < count; i++)
        begin(&connections[i]);
    while (under_way) {
        int ready = epoll_wait(epoll, events, EVENTS, PATIENCE_MS);
        if (ready == 0)
            fail("no answer for five seconds");
        for (int i = 0; i < ready; i++) {
            struct connection *c = events[i].data.ptr;
            if (events[i].events & EPOLLOUT)
                push(c);
            if (events[i].events & ~EPOLLOUT && pull(c) && finish(c) < end)
                begin(c);
        }
    }
    return (now() - start) / 1e9;
}

static int percentile(double share)
{
    int64_t seen = 0;
    int slot = 0;
    while (slot < SLOTS - 1 && (seen += latency[slot]) < share * requests)
        slot++;
    return slot;
}

static void open_connection(struct connection *c, int port)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};
    int on = 1;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    check((c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0, "socket");
    check(connect(c->fd, (struct sockaddr *)&name, sizeof name) < 0, "connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    control(c, EPOLL_CTL_ADD, EPOLLIN);
}

int main(int argc, char **argv)
{
    if (argc != 6)
        fail("usage: echo_load PORT CONNECTIONS SIZE WARM-UP SECONDS");
    int port = atoi(argv[1]), count = atoi(argv[2]);
    size = strtoul(argv[3], NULL, 10);
    struct connection *connections = calloc(count, sizeof *connections);
    request = malloc(size);
    for (size_t i = 0; i < size; i++)
        request[i] = (char)(i * 31 + i / 256);
    check((epoll = epoll_create1(EPOLL_CLOEXEC)) < 0, "epoll_create1");
    for (int i = 0; i < count; i++)
        open_connection(&connections[i], port);
    run(connections, count, atof(argv[4]));
    puts("{}");
    fflush(stdout);
    while (getchar() != '\n')
        if (feof(stdin))
            return 0;
    double before = cpu(), seconds = run(connections, count, atof(argv[5]));
    printf("{\"requests\": %lld, \"seconds\": %.6f, \"cpu\": %.6f, \"p50\": %d, \"p99\": %d}\n", (long long)requests,
           seconds, cpu() - before, percentile(0.50), percentile(0.99));
    return 0;
}
