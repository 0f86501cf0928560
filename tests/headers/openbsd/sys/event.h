/* OpenBSD: what epoque uses of <sys/event.h>. For type checks, and for kqueue_lib.c.

Source: kqueue(2) of OpenBSD; sys/sys/event.h there. */

#ifndef EPOQUE_TESTS_SYS_EVENT_H
#define EPOQUE_TESTS_SYS_EVENT_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define EVFILT_READ (-1)
#define EVFILT_WRITE (-2)
#define EVFILT_PROC (-5)
#define EVFILT_SIGNAL (-6)

struct kevent {
    uintptr_t ident;
    short filter;
    unsigned short flags;
    unsigned int fflags;
    int64_t data;
    void *udata;
};

#define EV_ADD 0x0001
#define EV_DELETE 0x0002
#define EV_ENABLE 0x0004
#define EV_DISABLE 0x0008
#define EV_ONESHOT 0x0010
#define EV_CLEAR 0x0020
#define EV_EOF 0x8000
#define EV_ERROR 0x4000
#define NOTE_EXIT 0x80000000

int kqueue(void);
int kevent(int kq, const struct kevent *changelist, int nchanges, struct kevent *eventlist, int nevents,
           const struct timespec *timeout);

#endif
