/* Datagrams over UDP: load generators, the limit server, and a sink.
 *
 *   datagrams role=echo address=PORT connections=N size=BYTES warm=SECONDS seconds=SECONDS
 *   datagrams role=flood ...    sends without waiting, in batches; what the server has no room for is lost
 *   datagrams role=server       sends every datagram back to where it came from
 *   datagrams role=sink         counts what comes
 *
 * Speaks bench/process.py's protocol. An echo that does not come back within 100 ms counts as lost and is sent anew. Linux.
 */
#define _GNU_SOURCE
#include "common.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { EVENTS = 256, BATCH = 32, LARGEST = 65507, LOST_MS = 100 };

struct endpoint {
    int fd;
    int64_t since;
};

static int epoll;
static size_t size;
static char data[LARGEST], buffer[LARGEST];
static long done, lost;

static void send_one(struct endpoint *e)
{
    e->since = now();
    check(send(e->fd, data, size, 0) < 0, "send");
}

static void again(struct endpoint *endpoints, int count)
{
    for (int i = 0; i < count; i++)
        if (endpoints[i].since && now() - endpoints[i].since > LOST_MS * 1000000LL) {
            lost++;
            send_one(&endpoints[i]);
        }
}

static void receive_one(struct endpoint *e, int64_t end, int *under_way)
{
    if (recv(e->fd, buffer, sizeof buffer, 0) != (ssize_t)size || memcmp(buffer, data, size) || !e->since)
        return;
    note(now() - e->since);
    done++;
    if (now() < end) {
        send_one(e);
    } else {
        e->since = 0;
        --*under_way;
    }
}

static double exchange(struct endpoint *endpoints, int count, double seconds)
{
    struct epoll_event events[EVENTS];
    int64_t start = now(), end = start + (int64_t)(seconds * 1e9);
    int under_way = count;
    forget();
    done = lost = 0;
    for (int i = 0; i < count; i++)
        send_one(&endpoints[i]);
    while (under_way) {
        int ready = epoll_wait(epoll, events, EVENTS, LOST_MS);
        if (lost > 1000)
            fail("a thousand datagrams were lost");
        for (int i = 0; i < ready; i++)
            receive_one(events[i].data.ptr, end, &under_way);
        if (ready == 0)
            again(endpoints, count);
    }
    return (now() - start) / 1e9;
}

static double flood(struct endpoint *e, double seconds)
{
    struct mmsghdr batch[BATCH];
    struct iovec piece = {.iov_base = data, .iov_len = size};
    int64_t start = now(), end = start + (int64_t)(seconds * 1e9);
    memset(batch, 0, sizeof batch);
    for (int i = 0; i < BATCH; i++)
        batch[i].msg_hdr = (struct msghdr){.msg_iov = &piece, .msg_iovlen = 1};
    done = 0;
    while (now() < end) {
        int sent = sendmmsg(e->fd, batch, BATCH, 0);
        check(sent < 0 && errno != EAGAIN && errno != ENOBUFS, "sendmmsg");
        done += sent > 0 ? sent : 0;
    }
    return (now() - start) / 1e9;
}

static void load(int flooding)
{
    int count = flooding ? 1 : number("connections", 1);
    struct endpoint *endpoints = allocate(count * sizeof *endpoints);
    struct sockaddr_storage name;
    const char *address = text("address", NULL);
    socklen_t length = resolve(address, &name);
    memset(data, 'x', sizeof data);
    for (int i = 0; i < count; i++) {
        endpoints[i].fd = opened(address, SOCK_DGRAM);
        check(connect(endpoints[i].fd, (struct sockaddr *)&name, length) < 0, "connect");
        watch(epoll, EPOLL_CTL_ADD, endpoints[i].fd, EPOLLIN, &endpoints[i]);
    }
    double warm = number("warm", 0.1), seconds = number("seconds", 1);
    flooding ? flood(endpoints, warm) : exchange(endpoints, count, warm);
    announce("{}");
    await_line();
    double before = cpu(), taken = flooding ? flood(endpoints, seconds) : exchange(endpoints, count, seconds);
    printf("{\"requests\": %ld, \"lost\": %ld, \"seconds\": %.6f, \"cpu\": %.6f, ", done, lost, taken, cpu() - before);
    print_latencies();
    announce("}");
}

static void control(void)
{
    char line[64];
    double user, system;
    if (read(STDIN_FILENO, line, sizeof line) <= 0)
        exit(0);
    usage(&user, &system);
    printf("{\"user\": %.6f, \"system\": %.6f, \"received\": %ld}\n", user, system, done);
    fflush(stdout);
}

static void serve(int answering)
{
    struct epoll_event event;
    struct sockaddr_storage name;
    socklen_t length = resolve("0", &name);
    int fd = opened("0", SOCK_DGRAM);
    unblock(fd);
    check(bind(fd, (struct sockaddr *)&name, length) < 0, "bind");
    check(getsockname(fd, (struct sockaddr *)&name, &length) < 0, "getsockname");
    watch(epoll, EPOLL_CTL_ADD, fd, EPOLLIN, &name);
    watch(epoll, EPOLL_CTL_ADD, STDIN_FILENO, EPOLLIN, NULL);
    printf("{\"address\": \"%d\"}\n", ntohs(((struct sockaddr_in *)&name)->sin_port));
    fflush(stdout);
    for (;;) {
        if (epoll_wait(epoll, &event, 1, -1) != 1) /* a debugger came */
            continue;
        if (!event.data.ptr) {
            control();
            continue;
        }
        ssize_t got = recvfrom(fd, buffer, sizeof buffer, 0, (struct sockaddr *)&name, &length);
        done += got >= 0;
        if (got >= 0 && answering)
            sendto(fd, buffer, got, 0, (struct sockaddr *)&name, length);
    }
}

int main(int argc, char **argv)
{
    options(argc, argv);
    const char *role = text("role", NULL);
    size = number("size", 64);
    check((epoll = epoll_create1(EPOLL_CLOEXEC)) < 0, "epoll_create1");
    if (!strcmp(role, "echo") || !strcmp(role, "flood"))
        load(!strcmp(role, "flood"));
    else
        serve(!strcmp(role, "server"));
    return 0;
}
