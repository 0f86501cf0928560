/* The limit row: the least an echo server on epoll can do. One recv and one send an event, nothing else.
 *
 * Speaks bench/process.py's protocol: prints {"port": N}; answers a line on standard input with its CPU seconds; ends
 * with the input. Linux.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 256, BUFFER = 256 * 1024 };

static int epoll;

static void check(int failed, const char *what)
{
    if (failed) {
        perror(what);
        exit(1);
    }
}

static void watch(int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    check(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0, "epoll_ctl");
}

static int listen_on_loopback(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof name;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    check(fd < 0, "socket");
    check(bind(fd, (struct sockaddr *)&name, sizeof name) < 0, "bind");
    check(listen(fd, 4096) < 0, "listen");
    check(getsockname(fd, (struct sockaddr *)&name, &length) < 0, "getsockname");
    printf("{\"port\": %d}\n", ntohs(name.sin_port));
    fflush(stdout);
    return fd;
}

static void accept_all(int listener)
{
    int on = 1, fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        watch(fd);
    }
}

static void echo(int fd)
{
    static char buffer[BUFFER];
    ssize_t size = recv(fd, buffer, sizeof buffer, 0);
    if (size < 0 && errno == EAGAIN)
        return;
    for (ssize_t sent = 0; sent < size;) {
        ssize_t now = send(fd, buffer + sent, size - sent, MSG_NOSIGNAL);
        if (now >= 0) {
            sent += now;
        } else if (errno == EAGAIN) {
            struct pollfd room = {.fd = fd, .events = POLLOUT};
            poll(&room, 1, -1);
        } else {
            size = -1;
        }
    }
    if (size <= 0)
        close(fd);
}

static void answer(void)
{
    char line[64];
    struct rusage used;
    if (read(STDIN_FILENO, line, sizeof line) <= 0)
        exit(0);
    getrusage(RUSAGE_SELF, &used);
    printf("{\"user\": %.6f, \"system\": %.6f}\n", used.ru_utime.tv_sec + used.ru_utime.tv_usec / 1e6,
           used.ru_stime.tv_sec + used.ru_stime.tv_usec / 1e6);
    fflush(stdout);
}

int main(void)
{
    struct epoll_event events[EVENTS];
    check((epoll = epoll_create1(EPOLL_CLOEXEC)) < 0, "epoll_create1");
    int listener = listen_on_loopback();
    watch(listener);
    watch(STDIN_FILENO);
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == listener)
                accept_all(listener);
            else if (fd == STDIN_FILENO)
                answer();
            else
                echo(fd);
        }
    }
}
