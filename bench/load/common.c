#define _GNU_SOURCE
#include "common.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 4 * 1000 * 1000 }; /* whole microseconds; the last slot takes all slower ones */

static int option_count;
static char **option_list;
static uint32_t histogram[SLOTS];
static int64_t noted;

void options(int argc, char **argv)
{
    option_count = argc;
    option_list = argv;
}

const char *text(const char *name, const char *otherwise)
{
    size_t length = strlen(name);
    for (int i = 1; i < option_count; i++)
        if (!strncmp(option_list[i], name, length) && option_list[i][length] == '=')
            return option_list[i] + length + 1;
    if (!otherwise) {
        fprintf(stderr, "option %s= is missing\n", name);
        exit(1);
    }
    return otherwise;
}

double number(const char *name, double otherwise)
{
    const char *found = text(name, "");
    return *found ? atof(found) : otherwise;
}

_Noreturn void fail(const char *what)
{
    fprintf(stderr, "load generator: %s\n", what);
    exit(1);
}

void check(int failed, const char *what)
{
    if (!failed)
        return;
    char message[200];
    snprintf(message, sizeof message, "%s: %s", what, errno ? strerror(errno) : "failed");
    fail(message);
}

void *allocate(size_t size)
{
    void *memory = calloc(1, size);
    check(!memory, "calloc");
    return memory;
}

int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

void usage(double *user, double *system)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    *user = used.ru_utime.tv_sec + used.ru_utime.tv_usec / 1e6;
    *system = used.ru_stime.tv_sec + used.ru_stime.tv_usec / 1e6;
}

double cpu(void)
{
    double user, system;
    usage(&user, &system);
    return user + system;
}

socklen_t resolve(const char *address, struct sockaddr_storage *name)
{
    memset(name, 0, sizeof *name);
    if (*address == '/') {
        struct sockaddr_un *path = (struct sockaddr_un *)name;
        path->sun_family = AF_UNIX;
        strncpy(path->sun_path, address, sizeof path->sun_path - 1);
        return sizeof *path;
    }
    struct sockaddr_in *internet = (struct sockaddr_in *)name;
    internet->sin_family = AF_INET;
    internet->sin_port = htons(atoi(address));
    internet->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return sizeof *internet;
}

int opened(const char *address, int type)
{
    int on = 1, family = *address == '/' ? AF_UNIX : AF_INET, fd = socket(family, type | SOCK_CLOEXEC, 0);
    check(fd < 0, "socket");
    if (family == AF_INET && type == SOCK_STREAM)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

void unblock(int fd)
{
    check(fcntl(fd, F_SETFL, O_NONBLOCK) < 0, "fcntl");
}

void watch(int epoll, int operation, int fd, uint32_t events, void *data)
{
    struct epoll_event event = {.events = events, .data.ptr = data};
    check(epoll_ctl(epoll, operation, fd, &event) < 0, "epoll_ctl");
}

void forget(void)
{
    memset(histogram, 0, sizeof histogram);
    noted = 0;
}

void note(int64_t nanoseconds)
{
    int64_t micro = nanoseconds / 1000;
    histogram[micro < SLOTS ? micro : SLOTS - 1]++;
    noted++;
}

void print_latencies(void)
{
    static const struct {
        const char *name;
        double share;
    } wanted[] = {{"p50", .5}, {"p75", .75}, {"p90", .9}, {"p95", .95}, {"p99", .99}, {"p999", .999}, {"p100", 1}};
    int64_t seen = 0;
    int slot = -1;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        while (slot < SLOTS - 1 && (slot < 0 || seen < wanted[i].share * noted))
            seen += histogram[++slot];
        printf("%s\"%s\": %d", i ? ", " : "", wanted[i].name, slot);
    }
}

void announce(const char *json)
{
    puts(json);
    fflush(stdout);
}

void await_line(void)
{
    int c;
    while ((c = getchar()) != '\n')
        if (c == EOF)
            exit(0);
}
