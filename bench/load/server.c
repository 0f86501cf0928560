/* The limit of the echo rows: the least a server on epoll can do. One read and one write an event, nothing else.
 *
 *   server address=0|/PATH [answer=BYTES] [certificate=PEM key=PEM]
 *
 * Sends back what comes; with answer=, each request that ends in an empty line gets an HTTP answer with a body of so
 * many bytes. With -DTLS over TLS. Speaks bench/process.py's protocol: prints its address; answers a line on standard
 * input with its CPU seconds; ends with the input. Linux.
 */
#define _GNU_SOURCE
#include "common.h"
#include "stream.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { EVENTS = 256, BUFFER = 256 * 1024 };

static int epoll;
static char *http;
static size_t http_size;

static int listen_on(const char *address)
{
    struct sockaddr_storage name;
    socklen_t length = resolve(address, &name);
    int fd = opened(address, SOCK_STREAM);
    unblock(fd);
    check(bind(fd, (struct sockaddr *)&name, length) < 0, "bind");
    check(listen(fd, 4096) < 0, "listen");
    check(getsockname(fd, (struct sockaddr *)&name, &length) < 0, "getsockname");
    if (name.ss_family == AF_INET)
        printf("{\"address\": \"%d\"}\n", ntohs(((struct sockaddr_in *)&name)->sin_port));
    else
        printf("{\"address\": \"%s\"}\n", address);
    fflush(stdout);
    return fd;
}

static void prepare_http(size_t size)
{
    const char *format = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n\r\n";
    http_size = snprintf(NULL, 0, format, size);
    http = allocate(http_size + size + 1);
    snprintf(http, http_size + 1, format, size);
    memset(http + http_size, 'x', size);
    http_size += size;
}

static void accept_all(int listener)
{
    int on = 1, fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* fails on a Unix socket: nothing to turn off */
        struct stream *stream = allocate(sizeof *stream);
        stream_accepted(stream, fd);
        watch(epoll, EPOLL_CTL_ADD, fd, EPOLLIN, stream);
    }
}

/* True if all of it was sent; waits for room, which the load generator always makes. */
static int send_all(struct stream *stream, const char *data, size_t size)
{
    while (size) {
        ssize_t sent = stream_write(stream, data, size);
        if (sent < 0) {
            struct pollfd room = {.fd = stream->fd, .events = POLLOUT};
            if (errno != EAGAIN)
                return 0;
            poll(&room, 1, -1);
            continue;
        }
        data += sent;
        size -= sent;
    }
    return 1;
}

static void answer(struct stream *stream)
{
    static char buffer[BUFFER];
    do {
        ssize_t size = stream_read(stream, buffer, sizeof buffer);
        if (size < 0 && errno == EAGAIN)
            return;
        int whole = size >= 4 && !memcmp(buffer + size - 4, "\r\n\r\n", 4);
        if (size <= 0 || !(http ? !whole || send_all(stream, http, http_size) : send_all(stream, buffer, size))) {
            stream_close(stream);
            free(stream);
            return;
        }
    } while (stream_pending(stream));
}

static void control(void)
{
    char line[64];
    double user, system;
    if (read(STDIN_FILENO, line, sizeof line) <= 0)
        exit(0);
    usage(&user, &system);
    printf("{\"user\": %.6f, \"system\": %.6f}\n", user, system);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct stream listener, input = {.fd = STDIN_FILENO};
    struct epoll_event events[EVENTS];
    options(argc, argv);
    stream_setup(1);
    if (number("answer", 0))
        prepare_http(number("answer", 0));
    check((epoll = epoll_create1(EPOLL_CLOEXEC)) < 0, "epoll_create1");
    listener.fd = listen_on(text("address", NULL));
    watch(epoll, EPOLL_CTL_ADD, listener.fd, EPOLLIN, &listener);
    watch(epoll, EPOLL_CTL_ADD, input.fd, EPOLLIN, &input);
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            struct stream *stream = events[i].data.ptr;
            if (stream == &listener)
                accept_all(listener.fd);
            else if (stream == &input)
                control();
            else
                answer(stream);
        }
    }
}
