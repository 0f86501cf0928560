/* NetBSD 10: what epoque uses of <sys/event.h>. For type checks, and for kqueue_lib.c.

Source: kqueue(2) of NetBSD; sys/sys/event.h there. Filters are numbered from 0, and counts are size_t. */

#ifndef EPOQUE_TESTS_SYS_EVENT_H
#define EPOQUE_TESTS_SYS_EVENT_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define EVFILT_READ 0U
#define EVFILT_WRITE 1U
#define EVFILT_PROC 4U
#define EVFILT_SIGNAL 5U

struct kevent {
    uintptr_t ident;
    uint32_t filter;
    uint32_t flags;
    uint32_t fflags;
    int64_t data;
    void *udata;
};

#define EV_ADD 0x0001U
#define EV_DELETE 0x0002U
#define EV_ENABLE 0x0004U
#define EV_DISABLE 0x0008U
#define EV_ONESHOT 0x0010U
#define EV_CLEAR 0x0020U
#define EV_EOF 0x8000U
#define EV_ERROR 0x4000U
#define NOTE_EXIT 0x80000000U

int kqueue(void);
int kevent(int kq, const struct kevent *changelist, size_t nchanges, struct kevent *eventlist, size_t nevents,
           const struct timespec *timeout);

#endif
