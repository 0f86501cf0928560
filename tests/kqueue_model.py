"""What would kqueue say? A model of `select.kqueue` on Linux, over epoll, pidfd and signalfd, for tests.

`install` puts it in place as `select.kqueue`; tests/simulated does so in every interpreter of a test run. The rules,
and where they stand (kqueue(2) of FreeBSD 14 unless another source is named):

 1. A knote is identified by (ident, filter); adding it again modifies it; one event per knote and call.
 2. Changes are made in order, before anything is fetched. One that fails is an event with EV_ERROR and the errno in
    `data` if there is room, else an error of the call. With EV_RECEIPT each change is answered so, with 0 for success.
    If there are such answers the call returns them and fetches nothing.
 3. EV_ENABLE, EV_DISABLE and EV_DELETE of a knote that is not there: ENOENT. A closed descriptor: EBADF.
 4. Closing a descriptor removes its knotes, whatever duplicates there are (close(2) of FreeBSD).
 5. EV_CLEAR: told once per change of state. EV_ONESHOT: deleted when told. EV_DISPATCH: disabled when told.
 6. A change of a knote asks its filter anew (kqueue_register in sys/kern/kern_event.c).
 7. EVFILT_READ: `data` bytes can be read; EV_EOF once the other end sends no more, with bytes left in `data`, and the
    socket's error, if there is one, in `fflags`. EVFILT_WRITE: EV_EOF once the reader has gone.
 8. EVFILT_WRITE on a pipe without reader: EPIPE (pipe_kqfilter in sys/kern/sys_pipe.c; in xnu likewise).
 9. Regular files can be watched: readable unless the position is at the end, always writable.
10. Devices without kqueue support are refused: ENODEV (FreeBSD, no_kqfilter in sys/kern/kern_conf.c), EINVAL (macOS).
11. A kqueue can be watched by another one, with EVFILT_READ.
12. EVFILT_SIGNAL counts in `data` the deliveries since the last fetch, EV_CLEAR implied, and takes nothing away from
    the handlers of sigaction(2).
13. EVFILT_PROC with NOTE_EXIT: `data` is the wait status, EV_EOF and EV_ONESHOT are set. A process that is not there:
    ESRCH; so for one that has ended and was not reaped on macOS (filt_procattach in xnu's bsd/kern/kern_event.c), while
    FreeBSD tells at once.
14. A kqueue is not inherited by a child process.

Not as there: a socket that was never connected counts as ended; a signal is counted only if it comes during a call of
`control`, of whichever queue; the number of a socket's error is ECONNRESET; a descriptor that is closed while a
duplicate lives, and comes back as a duplicate of the same file, keeps its knotes. EVFILT_TIMER, EVFILT_USER and
EVFILT_VNODE are left out: epoque uses none of them.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import select
import selectors  # noqa: F401  # before there is a select.kqueue: everybody else goes on with epoll
import signal
import stat
import struct
import termios
import time
import weakref
from dataclasses import dataclass, field
from typing import Any

FILTER_READ, FILTER_WRITE, FILTER_PROC, FILTER_SIGNAL = -1, -2, -5, -6
EV_ADD, EV_DELETE, EV_ENABLE, EV_DISABLE, EV_ONESHOT, EV_CLEAR = 0x1, 0x2, 0x4, 0x8, 0x10, 0x20
EV_RECEIPT, EV_DISPATCH, EV_ERROR, EV_EOF = 0x40, 0x80, 0x4000, 0x8000
NOTE_EXIT = 0x8000_0000
_KEPT = EV_ONESHOT | EV_CLEAR | EV_DISPATCH

macos = False  # by whose rules, where they differ
watches_terminals = True

_queues: weakref.WeakSet[kqueue] = weakref.WeakSet()
_libc = ctypes.CDLL(None, use_errno=True)


class kevent:
    """As `select.kevent`."""

    __slots__ = ("data", "fflags", "filter", "flags", "ident", "udata")

    def __init__(
        self, ident: Any, filter: int = FILTER_READ, flags: int = EV_ADD, fflags: int = 0, data: int = 0, udata: int = 0
    ) -> None:
        self.ident: int = ident if isinstance(ident, int) else ident.fileno()
        self.filter = filter
        self.flags = flags
        self.fflags = fflags
        self.data = data
        self.udata = udata

    def __repr__(self) -> str:
        return (
            f"<kevent ident={self.ident} filter={self.filter} flags={self.flags:#x} fflags={self.fflags:#x} "
            f"data={self.data:#x} udata={self.udata:#x}>"
        )


@dataclass
class Knote:
    ident: int
    filter: int
    flags: int = 0
    fflags: int = 0
    udata: int = 0
    enabled: bool = True
    file: tuple[int, ...] = ()  # which file the descriptor is
    mode: int = 0  # of that file
    count: int = 0  # deliveries of a signal
    pidfd: int = -1
    told: bool = field(default=False)  # of a regular file with EV_CLEAR


class kqueue:
    """As `select.kqueue`."""

    def __init__(self) -> None:
        self.closed = True
        self._knotes: dict[tuple[int, int], Knote] = {}
        self._all = select.epoll()  # its descriptor is the queue's: readable if there is something to fetch
        self._epolls = {FILTER_READ: select.epoll(), FILTER_WRITE: select.epoll()}
        for epoll in self._epolls.values():
            self._all.register(epoll.fileno(), select.EPOLLIN)
        self._files: set[tuple[int, int]] = set()  # knotes of regular files, of which epoll knows nothing
        self._bell = -1  # an eventfd: signals have been counted
        self._signalfd = -1  # readable while one that is held back waits
        self._writers_first = False
        self._fds: set[int] = set()  # descriptors of its own that are bare numbers
        weakref.finalize(self, _close, self._fds)  # no __del__: that may run before the one of a loop that uses it
        self.closed = False
        _queues.add(self)

    def fileno(self) -> int:
        if self.closed:
            raise ValueError("I/O operation on closed kqueue object")
        return self._all.fileno()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            for knote in list(self._knotes.values()):
                self._forget(knote)
            for epoll in (self._all, *self._epolls.values()):
                epoll.close()
            _close(self._fds)

    def control(self, changelist: Any, max_events: int, timeout: float | None = None) -> list[kevent]:
        if self.closed:
            raise ValueError("I/O operation on closed kqueue object")
        answers = []
        for change in changelist or ():
            code = self._change(change)
            if code or change.flags & EV_RECEIPT:
                if len(answers) >= max_events:
                    if code:
                        raise OSError(code, os.strerror(code))
                    continue
                answers.append(kevent(change.ident, change.filter, EV_ERROR, 0, code, change.udata))
        if answers or max_events == 0:
            return answers
        return self._fetch(max_events, None if timeout is None else time.monotonic() + max(timeout, 0))

    # Changes.

    def _change(self, change: kevent) -> int:
        key = change.ident, change.filter
        knote = self._knotes.get(key)
        if change.filter in (FILTER_READ, FILTER_WRITE):
            try:
                os.fstat(change.ident)
            except (OSError, OverflowError):
                if knote:
                    self._forget(knote)
                return errno.EBADF
            if knote and not self._lives(knote, thoroughly=True):
                self._forget(knote)
                self._exorcise(change.filter)
                knote = None
        if knote is None:
            if not change.flags & EV_ADD:
                return errno.ENOENT
            knote = Knote(change.ident, change.filter, change.flags & _KEPT)
            if code := self._attach(knote, change):
                return code
            self._knotes[key] = knote
        if change.flags & EV_DELETE:
            self._forget(knote)
            return 0
        knote.udata = change.udata
        if change.flags & EV_ADD:
            knote.fflags = change.fflags
        if change.flags & (EV_ENABLE | EV_DISABLE):
            knote.enabled = bool(change.flags & EV_ENABLE)
        knote.told = False
        self._register(knote)
        return 0

    def _attach(self, knote: Knote, change: kevent) -> int:
        if knote.filter == FILTER_PROC:
            if macos and _is_zombie(knote.ident):
                return errno.ESRCH
            try:
                knote.pidfd = os.pidfd_open(knote.ident)
            except OSError as exc:
                return exc.errno or errno.ESRCH
            self._fds.add(knote.pidfd)
        elif knote.filter == FILTER_SIGNAL:
            if knote.ident not in signal.valid_signals():
                return errno.EINVAL
            knote.flags |= EV_CLEAR
        elif knote.filter in (FILTER_READ, FILTER_WRITE):
            return self._attach_descriptor(knote)
        else:
            return errno.EINVAL
        return 0

    def _attach_descriptor(self, knote: Knote) -> int:
        knote.mode, *knote_file = _identity(knote.ident)
        knote.file = tuple(knote_file)
        if stat.S_ISFIFO(knote.mode) and knote.filter == FILTER_WRITE and _polled(knote.ident) & select.POLLERR:
            return errno.EPIPE
        if knote.filter == FILTER_WRITE and any(q._all.fileno() == knote.ident for q in _queues if not q.closed):
            return errno.EINVAL
        if os.isatty(knote.ident) and not watches_terminals:
            return errno.EINVAL
        try:
            self._epolls[knote.filter].register(knote.ident, _events(knote))
        except PermissionError:
            if not stat.S_ISREG(knote.mode):
                return errno.EINVAL if macos else errno.ENODEV
            self._files.add((knote.ident, knote.filter))
        except FileExistsError:  # closed and opened again while a duplicate lives
            self._epolls[knote.filter].modify(knote.ident, _events(knote))
        return 0

    def _register(self, knote: Knote) -> None:
        """Tell the systems underneath what a knote wants."""
        if knote.filter == FILTER_SIGNAL:
            self._watch_signals()
        elif knote.filter == FILTER_PROC:
            with contextlib.suppress(FileNotFoundError):
                self._all.unregister(knote.pidfd)
            if knote.enabled:
                self._all.register(knote.pidfd, select.EPOLLIN)
        elif (knote.ident, knote.filter) not in self._files:
            epoll = self._epolls[knote.filter]
            if not knote.enabled:
                with contextlib.suppress(FileNotFoundError):
                    epoll.unregister(knote.ident)
                return
            try:
                epoll.modify(knote.ident, _events(knote))
            except FileNotFoundError:
                epoll.register(knote.ident, _events(knote))

    def _watch_signals(self) -> None:
        numbers = [knote.ident for knote in self._knotes.values() if knote.filter == FILTER_SIGNAL]
        if self._bell < 0:
            self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._fds.add(self._bell)
            self._all.register(self._bell, select.EPOLLIN)
        fd = _signalfd(self._signalfd, numbers)
        if self._signalfd < 0:
            self._signalfd = fd
            self._fds.add(fd)
            self._all.register(fd, select.EPOLLIN)

    def _forget(self, knote: Knote) -> None:
        self._knotes.pop((knote.ident, knote.filter), None)
        self._files.discard((knote.ident, knote.filter))
        if knote.pidfd >= 0:
            self._fds.remove(knote.pidfd)
            os.close(knote.pidfd)
        elif knote.filter == FILTER_SIGNAL and not self.closed:
            self._watch_signals()
        elif knote.filter in self._epolls and not self.closed:
            with contextlib.suppress(OSError):
                if self._lives(knote):
                    self._epolls[knote.filter].unregister(knote.ident)

    def _lives(self, knote: Knote, *, thoroughly: bool = False) -> bool:
        """Is the descriptor still open, and the same file?"""
        try:
            if _identity(knote.ident)[1:] != knote.file:
                return False
            if thoroughly and knote.enabled and (knote.ident, knote.filter) not in self._files:
                self._epolls[knote.filter].modify(knote.ident, _events(knote))
        except OSError:
            return False
        return True

    # Events.

    def _fetch(self, room: int, deadline: float | None) -> list[kevent]:
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            events = self._files_ready()
            if not events:
                files = 0.01 if self._files else None  # a file may grow
                self._wait(files if left is None else left if files is None else min(left, files))
            events += self._ready()
            if events or left == 0.0:
                return self._deliver(events[:room])

    def _wait(self, timeout: float | None) -> None:
        """Wait until there may be something to fetch, with all signals held back that a queue watches."""
        watched = {key[0] for queue in list(_queues) for key in queue._knotes if key[1] == FILTER_SIGNAL}
        if not watched:
            self._all.poll(timeout, 1)
            return
        came = []
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, watched)
            self._all.poll(timeout, 1)
            while info := signal.sigtimedwait(watched - before, 0):
                came.append(info.si_signo)
        finally:
            for number in came:
                for queue in list(_queues):
                    queue._count(number)
            with contextlib.ExitStack() as stack:  # what a handler raises does not keep the others from their signals
                for number in reversed(came):
                    stack.callback(signal.raise_signal, number)
                stack.callback(signal.pthread_sigmask, signal.SIG_SETMASK, before)

    def _count(self, number: int) -> None:
        if knote := self._knotes.get((number, FILTER_SIGNAL)):
            knote.count += 1
            os.eventfd_write(self._bell, 1)

    def _ready(self) -> list[tuple[Knote, kevent]]:
        found = []
        order = [FILTER_WRITE, FILTER_READ] if self._writers_first else [FILTER_READ, FILTER_WRITE]
        self._writers_first = not self._writers_first
        for number in order:
            ghosts = False
            for fd, events in self._epolls[number].poll(0, 4096):
                knote = self._knotes.get((fd, number))
                if knote is None or not self._lives(knote):
                    ghosts = True
                elif event := _descriptor_event(knote, events):
                    found.append((knote, event))
            if ghosts:
                self._exorcise(number)
        for knote in list(self._knotes.values()):
            if knote.enabled and (event := _other_event(knote)):
                found.append((knote, event))
        return found

    def _exorcise(self, number: int) -> None:
        """Rule 4: epoll goes on to report what has a duplicate, and nobody can name it any more."""
        for knote in [knote for knote in self._knotes.values() if knote.filter == number]:
            if not self._lives(knote, thoroughly=True):  # now: the new epoll may get the number of a closed one
                self._forget(knote)
        old, self._epolls[number] = self._epolls[number], select.epoll()
        old.close()
        self._all.register(self._epolls[number].fileno(), select.EPOLLIN)
        for knote in [knote for knote in self._knotes.values() if knote.filter == number]:
            if knote.enabled and (knote.ident, number) not in self._files:
                self._epolls[number].register(knote.ident, _events(knote))

    def _files_ready(self) -> list[tuple[Knote, kevent]]:
        found = []
        for key in list(self._files):
            knote = self._knotes[key]
            if not self._lives(knote):
                self._forget(knote)
            elif knote.enabled and not (knote.flags & EV_CLEAR and knote.told):
                left = os.fstat(key[0]).st_size - os.lseek(key[0], 0, os.SEEK_CUR)
                if left or knote.filter == FILTER_WRITE:
                    found.append((knote, _event(knote, data=left)))
        return found

    def _deliver(self, events: list[tuple[Knote, kevent]]) -> list[kevent]:
        for knote, _ in events:
            knote.told = True
            knote.count = 0
            if knote.flags & EV_ONESHOT:
                self._forget(knote)
            elif knote.flags & EV_DISPATCH:
                knote.enabled = False
                self._register(knote)
        if self._bell >= 0 and not any(knote.count for knote in self._knotes.values()):
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._bell)
        return [event for _, event in events]


def _event(knote: Knote, flags: int = 0, fflags: int = 0, data: int = 0) -> kevent:
    return kevent(knote.ident, knote.filter, knote.flags | flags, fflags, data, knote.udata)


def _descriptor_event(knote: Knote, events: int) -> kevent | None:
    ended = events & select.EPOLLHUP
    if knote.filter == FILTER_READ:
        ended |= events & select.EPOLLRDHUP
    if stat.S_ISFIFO(knote.mode):
        ended |= events & select.EPOLLERR
    fflags = errno.ECONNRESET if ended and events & select.EPOLLERR and stat.S_ISSOCK(knote.mode) else 0
    return _event(knote, EV_EOF if ended else 0, fflags, _amount(knote))


def _other_event(knote: Knote) -> kevent | None:
    if knote.filter == FILTER_SIGNAL and knote.count:
        return _event(knote, data=knote.count)
    if knote.filter == FILTER_PROC and _polled(knote.pidfd):
        knote.flags |= EV_ONESHOT
        return _event(knote, EV_EOF, NOTE_EXIT, _exit_status(knote))
    return None


def _amount(knote: Knote) -> int:
    """Bytes to be read, or about how many can be written."""
    buffer = bytearray(4)
    try:
        if knote.filter == FILTER_READ:
            fcntl.ioctl(knote.ident, termios.FIONREAD, buffer)
            return int(struct.unpack("i", buffer)[0])
        fcntl.ioctl(knote.ident, termios.TIOCOUTQ if stat.S_ISSOCK(knote.mode) else termios.FIONREAD, buffer)
    except OSError:
        return 1
    queued = struct.unpack("i", buffer)[0]
    return max(1, (fcntl.fcntl(knote.ident, fcntl.F_GETPIPE_SZ) if stat.S_ISFIFO(knote.mode) else 65536) - queued)


def _exit_status(knote: Knote) -> int:
    try:
        info = os.waitid(os.P_PIDFD, knote.pidfd, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    except ChildProcessError:  # reaped: PIDFD_GET_INFO
        answer = bytearray(struct.pack("=QQ11Ii", 1 << 3, *[0] * 13))
        fcntl.ioctl(knote.pidfd, 0xC000_FF0B | len(answer) << 16, answer)
        return int(struct.unpack("=QQ11Ii", answer)[-1])
    assert info is not None
    return info.si_status << 8 if info.si_code == os.CLD_EXITED else info.si_status


def _events(knote: Knote) -> int:
    events = select.EPOLLIN | select.EPOLLRDHUP if knote.filter == FILTER_READ else select.EPOLLOUT
    return events | (select.EPOLLET if knote.flags & EV_CLEAR else 0)


def _identity(fd: int) -> tuple[int, ...]:
    found = os.fstat(fd)
    return found.st_mode, found.st_dev, found.st_ino, found.st_rdev


def _polled(fd: int) -> int:
    poll = select.poll()
    poll.register(fd, select.POLLIN | select.POLLOUT)
    return sum(events for _, events in poll.poll(0))


def _is_zombie(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


def _signalfd(fd: int, numbers: list[int]) -> int:
    signals = (ctypes.c_char * 128)()
    _libc.sigemptyset(signals)
    for number in numbers:
        _libc.sigaddset(signals, number)
    fd = _libc.signalfd(fd, signals, os.O_NONBLOCK | os.O_CLOEXEC)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "signalfd")
    return fd


def _close(fds: set[int]) -> None:
    while fds:
        os.close(fds.pop())


def _forked() -> None:
    for queue in list(_queues):
        queue.close()


os.register_at_fork(after_in_child=_forked)

NAMES = {
    "kqueue": kqueue,
    "kevent": kevent,
    **{f"KQ_{name}": value for name, value in list(globals().items()) if name.startswith(("FILTER_", "EV_", "NOTE_"))},
}


def install() -> None:
    """Put the model into the module `select`."""
    if not hasattr(select, "kqueue"):
        for name, value in NAMES.items():
            setattr(select, name, value)
