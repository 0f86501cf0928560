/* What the C programs of the benchmark share: options, clocks, sockets, latencies, and the protocol of bench/process.py. */
#ifndef COMMON_H
#define COMMON_H
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

enum { PATIENCE_MS = 5000 }; /* an answer that takes longer is a failure */

/* Options are given as name=value. */
void options(int argc, char **argv);
const char *text(const char *name, const char *otherwise);
double number(const char *name, double otherwise);

_Noreturn void fail(const char *what);
void check(int failed, const char *what); /* fails with errno's message, or with what */
void *allocate(size_t size);

int64_t now(void);                          /* nanoseconds, monotonic */
void usage(double *user, double *system);   /* CPU seconds of this process */
double cpu(void);                           /* their sum */

/* An address is a port on 127.0.0.1, or the path of a Unix socket. */
socklen_t resolve(const char *address, struct sockaddr_storage *name);
int opened(const char *address, int type); /* a new socket with Nagle's algorithm off, neither bound nor connected */
void unblock(int fd);
void watch(int epoll, int operation, int fd, uint32_t events, void *data);

void forget(void);            /* start a new histogram of latencies */
void note(int64_t nanoseconds);
void print_latencies(void);   /* "p50": microseconds, ... as members of a JSON object */

void announce(const char *json); /* one line to the parent */
void await_line(void);           /* one line from the parent; ends the process at the end of input */
#endif
