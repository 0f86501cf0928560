/* kqueue() and kevent() on Linux, over epoll: as much of them as epoque's compiled modules call, for tests.

The rules are those of kqueue_model.py. Filters: EVFILT_READ and EVFILT_WRITE with and without EV_CLEAR, EVFILT_SIGNAL.
The queue's descriptor is an epoll instance and may be watched itself. All else is kept in memory by its number, so that
close(2) leaves nothing behind. Called with the GIL held, except while it waits.

Not as there: a child process inherits the queue; a signal handler installed after EV_ADD hides the signal. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/event.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1 << 16, SIGNALS = 65, BATCH = 1024 };

struct knote {
    unsigned short flags; /* EV_ADD if it is there, with EV_CLEAR */
    void *udata;
};

struct watched { /* one descriptor */
    struct knote knotes[2]; /* to read, to write */
    dev_t device;
    ino_t inode;
};

struct queue {
    struct watched files[MOST];
    struct knote signals[SIGNALS];
    volatile sig_atomic_t counts[SIGNALS];
    int mixed; /* descriptors with one knote that has EV_CLEAR and one that has not */
};

static struct queue *queues[MOST];
static struct sigaction handlers[SIGNALS]; /* that were there before ours */
static int always_readable = -1; /* made once, and kept */

int kqueue(void) {
    struct epoll_event event = {0, {.fd = -1}};
    int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0) return -1;
    if (always_readable < 0) always_readable = eventfd(1, EFD_CLOEXEC);
    if (fd >= MOST || always_readable < 0) return close(fd), errno = EMFILE, -1;
    free(queues[fd]);
    queues[fd] = calloc(1, sizeof *queues[fd]);
    epoll_ctl(fd, EPOLL_CTL_ADD, always_readable, &event);
    return fd;
}

static void ring(int fd, int on) {
    struct epoll_event event = {on ? EPOLLIN : 0, {.fd = -1}};
    epoll_ctl(fd, EPOLL_CTL_MOD, always_readable, &event);
}

static void on_signal(int number, siginfo_t *info, void *context) {
    int fd, kept = errno;
    for (fd = 0; fd < MOST; fd++)
        if (queues[fd] && queues[fd]->signals[number].flags) {
            queues[fd]->counts[number] += 1;
            ring(fd, 1);
        }
    errno = kept;
    if (handlers[number].sa_flags & SA_SIGINFO)
        handlers[number].sa_sigaction(number, info, context);
    else if (handlers[number].sa_handler != SIG_DFL && handlers[number].sa_handler != SIG_IGN)
        handlers[number].sa_handler(number);
}

static int change_signal(struct queue *queue, const struct kevent *change) {
    struct knote *knote = &queue->signals[change->ident];
    struct sigaction now;
    sigaction((int)change->ident, NULL, &now);
    if (change->flags & EV_ADD) {
        *knote = (struct knote){EV_ADD, change->udata};
        if (now.sa_sigaction != on_signal) {
            handlers[change->ident] = now;
            now.sa_sigaction = on_signal;
            now.sa_flags |= SA_SIGINFO;
            sigaction((int)change->ident, &now, NULL);
        }
        return 0;
    }
    if (!knote->flags) return ENOENT;
    *knote = (struct knote){0, NULL};
    return 0;
}

static int is_same(const struct watched *file, int fd) {
    struct stat found;
    return fstat(fd, &found) == 0 && found.st_dev == file->device && found.st_ino == file->inode;
}

static int is_mixed(const struct watched *file) {
    return file->knotes[0].flags && file->knotes[1].flags && file->knotes[0].flags != file->knotes[1].flags;
}

static int set_epoll(int kq, struct watched *file, int fd) {
    struct epoll_event event = {0, {.fd = fd}};
    if (file->knotes[0].flags) event.events |= EPOLLIN | EPOLLRDHUP;
    if (file->knotes[1].flags) event.events |= EPOLLOUT;
    if (!event.events) return epoll_ctl(kq, EPOLL_CTL_DEL, fd, NULL), 0;
    if ((file->knotes[0].flags | file->knotes[1].flags) & EV_CLEAR) event.events |= EPOLLET;
    if (epoll_ctl(kq, EPOLL_CTL_MOD, fd, &event) == 0) return 0;
    if (errno == ENOENT && epoll_ctl(kq, EPOLL_CTL_ADD, fd, &event) == 0) return 0;
    return errno == EPERM ? ENODEV : errno;
}

/* epoll goes on to report a descriptor that was closed while a duplicate lives, and nobody can name it any more. */
static void exorcise(int kq, struct queue *queue) {
    struct epoll_event event = {0, {.fd = -1}}, none = {EPOLLET, {.fd = -1}};
    int fd, fresh;
    for (fd = 0; fd < MOST; fd++) { /* before there is a descriptor that may get the number of a closed one */
        struct watched *file = &queue->files[fd];
        if (!file->knotes[0].flags && !file->knotes[1].flags) continue;
        if (is_same(file, fd) && epoll_ctl(kq, EPOLL_CTL_MOD, fd, &none) == 0) continue;
        queue->mixed -= is_mixed(file);
        memset(file, 0, sizeof *file);
    }
    fresh = epoll_create1(EPOLL_CLOEXEC);
    if (fresh >= 0) {
        epoll_ctl(fresh, EPOLL_CTL_ADD, always_readable, &event);
        dup3(fresh, kq, O_CLOEXEC);
        close(fresh);
    }
    for (fd = 0; fd < MOST; fd++) {
        struct watched *file = &queue->files[fd];
        if (file->knotes[0].flags || file->knotes[1].flags) set_epoll(kq, file, fd);
    }
}

static int change_file(int kq, struct queue *queue, const struct kevent *change) {
    int fd = (int)change->ident, writing = change->filter == EVFILT_WRITE, failure;
    struct watched *file;
    struct pollfd polled = {fd, POLLOUT, 0};
    struct epoll_event none = {EPOLLET, {.fd = fd}};
    struct stat found;
    if (fd < 0 || fd >= MOST || fstat(fd, &found) < 0) return EBADF;
    file = &queue->files[fd];
    if ((file->knotes[0].flags || file->knotes[1].flags) &&
        (!is_same(file, fd) || (epoll_ctl(kq, EPOLL_CTL_MOD, fd, &none) < 0 && errno == ENOENT))) {
        queue->mixed -= is_mixed(file);
        memset(file, 0, sizeof *file); /* it was closed */
        exorcise(kq, queue);
    }
    if (!file->knotes[writing].flags && !(change->flags & EV_ADD)) {
        set_epoll(kq, file, fd);
        return ENOENT;
    }
    if (change->flags & EV_ADD && writing && S_ISFIFO(found.st_mode) && poll(&polled, 1, 0) > 0 &&
        polled.revents & POLLERR)
        return EPIPE;
    queue->mixed -= is_mixed(file);
    file->device = found.st_dev;
    file->inode = found.st_ino;
    if (change->flags & EV_DELETE)
        file->knotes[writing] = (struct knote){0, NULL};
    else {
        if (change->flags & EV_ADD) file->knotes[writing].flags = change->flags & (EV_ADD | EV_CLEAR);
        file->knotes[writing].udata = change->udata;
    }
    failure = set_epoll(kq, file, fd);
    if (failure) file->knotes[writing] = (struct knote){0, NULL};
    queue->mixed += is_mixed(file);
    return failure;
}

/* What finds no room is left out: told again if it is level-triggered, as are almost all descriptors with two knotes. */
static int report(struct queue *queue, int fd, unsigned int events, int cleared, struct kevent *target, int room) {
    struct watched *file = &queue->files[fd];
    struct stat found;
    int writing, count = 0, fifo, ended;
    if (!is_same(file, fd)) return 0;
    fifo = fstat(fd, &found) == 0 && S_ISFIFO(found.st_mode);
    for (writing = 0; writing < 2 && count < room; writing++) {
        const struct knote *knote = &file->knotes[writing];
        unsigned int wanted = writing ? EPOLLOUT : EPOLLIN | EPOLLRDHUP;
        if (!knote->flags || !(events & (wanted | EPOLLHUP | EPOLLERR))) continue;
        if (is_mixed(file) && !!(knote->flags & EV_CLEAR) != cleared) continue;
        ended = events & (EPOLLHUP | (writing ? 0 : EPOLLRDHUP) | (fifo ? EPOLLERR : 0));
        memset(&target[count], 0, sizeof target[count]);
        target[count].ident = (uintptr_t)fd;
        target[count].filter = writing ? EVFILT_WRITE : EVFILT_READ;
        target[count].flags = knote->flags | (ended ? EV_EOF : 0);
        target[count].fflags = ended && !fifo && events & EPOLLERR ? ECONNRESET : 0;
        target[count].udata = knote->udata;
        count++;
    }
    return count;
}

static int report_signals(struct queue *queue, int kq, struct kevent *target, int room) {
    int number, count = 0;
    ring(kq, 0);
    for (number = 1; number < SIGNALS && count < room; number++)
        if (queue->counts[number]) {
            memset(&target[count], 0, sizeof target[count]);
            target[count].ident = (uintptr_t)number;
            target[count].filter = EVFILT_SIGNAL;
            target[count].flags = EV_ADD | EV_CLEAR;
            target[count].data = queue->counts[number];
            target[count].udata = queue->signals[number].udata;
            queue->counts[number] = 0;
            count++;
        }
    return count;
}

/* Knotes without EV_CLEAR whose descriptor also has one with it: epoll tells of changes only, so they are asked for. */
static int report_mixed(struct queue *queue, struct kevent *target, int room) {
    int fd, left = queue->mixed, count = 0;
    for (fd = 0; fd < MOST && left > 0 && count + 2 <= room; fd++)
        if (is_mixed(&queue->files[fd])) {
            struct pollfd polled = {fd, POLLIN | POLLOUT | POLLRDHUP, 0};
            left--;
            if (poll(&polled, 1, 0) > 0) count += report(queue, fd, (unsigned int)polled.revents, 0, target + count, room - count);
        }
    return count;
}

int kevent(int kq, const struct kevent *changes, int changed, struct kevent *events, int room,
           const struct timespec *timeout) {
    struct queue *queue = kq >= 0 && kq < MOST ? queues[kq] : NULL;
    struct epoll_event batch[BATCH];
    const struct timespec now = {0, 0};
    int index, found, failure, ghosts = 0, count = 0;
    if (!queue || fcntl(kq, F_GETFD) < 0) return errno = EBADF, -1;
    for (index = 0; index < changed; index++) {
        if (changes[index].filter == EVFILT_SIGNAL)
            failure = changes[index].ident - 1 < SIGNALS - 1 ? change_signal(queue, &changes[index]) : EINVAL;
        else if (changes[index].filter == EVFILT_READ || changes[index].filter == EVFILT_WRITE)
            failure = change_file(kq, queue, &changes[index]);
        else
            failure = EINVAL;
        if (!failure) continue;
        if (count >= room) return errno = failure, -1;
        events[count] = changes[index];
        events[count].flags = EV_ERROR;
        events[count++].data = failure;
    }
    if (count || !room) return count;
    if (queue->mixed) count = report_mixed(queue, events, room);
    if (room == count) return count;
    found = room - count < BATCH ? room - count : BATCH;
    found = epoll_pwait2(kq, batch, found, count ? &now : timeout, NULL);
    if (found < 0) return count ? count : -1;
    for (index = 0; index < found; index++) {
        if (batch[index].data.fd < 0)
            count += report_signals(queue, kq, events + count, room - count);
        else if (is_same(&queue->files[batch[index].data.fd], batch[index].data.fd))
            count += report(queue, batch[index].data.fd, batch[index].events, 1, events + count, room - count);
        else
            ghosts = 1;
    }
    if (ghosts) exorcise(kq, queue);
    return count;
}
