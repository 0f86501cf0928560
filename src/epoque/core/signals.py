"""How does a Unix signal become a callback, without being lost, stolen or inherited?

While callbacks run, signals arrive as in any Python program: the C handler of `signal` marks them, writes a byte to
the wake-up descriptor (`signal.set_wakeup_fd`), and the interpreter soon calls the Python handler, which here puts
the callback in line. That also works when another thread receives the signal. Only around a wait are the signals that
have a handler blocked and read from a signalfd instead (signalfd(2)), so that between the last look and the wait none
can slip in unnoticed. They are unblocked before any callback runs: children, threads and `subprocess.Popen` never
inherit a blocked signal.

The descriptors are doorbells. The byte in the pipe matters only when somebody else has put a handler of his own on the
signal since (`signal.signal`): then his handler runs, and the byte is what tells us.
"""

import contextlib
import errno
import os
import signal
import sys
import threading
import warnings
from asyncio import coroutines

from epoque.core import handle as handles
from epoque.kernel import events, interp, signals
from epoque.kernel.masks import READ
from epoque.selector.source import Source

__all__ = ["Signals", "check_handler", "check_signal"]

_listening = None  # the Signals whose bell Python's C signal handler rings


class Doorbell(Source):
    """The read end of the pipe that Python's C signal handler writes to."""

    __slots__ = ("signals",)

    def __init__(self, fd, signals):
        Source.__init__(self, fd, READ)
        self.signals = signals

    def on_ready(self, mask):
        self.signals.rung(os.read(self.fd, 4096))


class HeldSignals(Source):
    """The signalfd."""

    __slots__ = ("signals",)

    def __init__(self, fd, signals):
        Source.__init__(self, fd, READ)
        self.signals = signals

    def on_ready(self, mask):
        for signum in self.signals.held.drain():
            self.signals.take(signum)


class Signals:
    """The signal handlers of one loop."""

    __slots__ = ("active", "bell", "door", "handlers", "held", "loop", "queue", "selector", "user_fd", "write_fd")

    def __init__(self, loop, selector, queue):
        self.loop = loop
        self.queue = queue
        self.selector = selector
        self.handlers = {}
        self.held = signals.SignalSet()
        self.bell = None
        self.door = None
        self.write_fd = -1
        self.user_fd = -1
        self.active = False

    def prepare(self):
        """Open the pipe while there are descriptors, if this is the thread that gets signals."""
        if threading.get_ident() == threading.main_thread().ident:
            self.open_bell()

    def add(self, signum, callback, args):
        """`asyncio.loop.add_signal_handler`, after its checks."""
        handle = handles.new_handle(callback, args, self.loop, interp.copy_context())
        previous = self.handlers.get(signum)
        self.handlers[signum] = handle
        try:
            # Also refuses threads that are not the main one.
            signal.signal(signum, self.on_signal)
            signal.siginterrupt(signum, False)
        except (ValueError, OSError) as exc:
            if previous is None:
                del self.handlers[signum]
            else:
                self.handlers[signum] = previous
            if isinstance(exc, OSError):
                if exc.errno != errno.EINVAL:
                    raise
                raise RuntimeError(f"sig {signum} cannot be caught") from exc
            raise RuntimeError(str(exc)) from exc
        self.hold_handlers()
        self.listen()
        self.rest()

    def remove(self, signum):
        """`asyncio.loop.remove_signal_handler`, after its check: True if there was a handler."""
        if self.handlers.pop(signum, None) is None:
            return False
        self.hold_handlers()
        if signal.getsignal(signum) == self.on_signal:
            signal.signal(signum, signal.default_int_handler if signum == signal.SIGINT else signal.SIG_DFL)
        self.rest()
        return True

    def hold_handlers(self):
        """Let the signalfd cover exactly the signals that have a handler."""
        if not self.handlers and self.door is None:
            return 0
        self.held.assign(self.handlers)
        if self.door is None and self.held.fd >= 0:
            self.door = HeldSignals(self.held.fd, self)
            self.selector.add(self.door)

    def enter(self):
        """The loop starts to run."""
        self.active = self.listen()

    def leave(self):
        """The loop has stopped. Its handlers may still be called: what they put in line waits for the next run."""
        self.active = False
        self.rest()

    def listen(self):
        """Have Python's C handler ring our bell; False outside the main thread, whose signals are."""
        global _listening
        if threading.get_ident() != threading.main_thread().ident:
            return False
        if _listening is self:
            return True
        if self.bell is None:
            self.open_bell()
        try:
            self.user_fd = signal.set_wakeup_fd(self.write_fd, warn_on_full_buffer=False)
        except ValueError:  # the main thread of a sub-interpreter
            return False
        _listening = self
        return True

    def rest(self):
        """While the loop does not run, only listen if there is something to hear and nobody else wants to."""
        if not self.active and (not self.handlers or self.user_fd >= 0):
            self.unlisten()

    def unlisten(self):
        """Give the wake-up descriptor back to whom it was taken from."""
        global _listening
        if _listening is not self or threading.get_ident() != threading.main_thread().ident:
            return 0
        _listening = None
        try:
            current = signal.set_wakeup_fd(self.user_fd)
        except (ValueError, OSError):  # closed meanwhile
            current = signal.set_wakeup_fd(-1)
        if current not in (self.write_fd, -1):  # set by somebody since: newer than ours
            signal.set_wakeup_fd(current)
        self.user_fd = -1

    def hold(self):
        """Before a wait: block what has a handler. Returns whether `release` is owed."""
        if not self.active or self.door is None or not self.handlers:
            return False
        self.held.block()
        return True

    def release(self):
        self.held.restore()

    def on_signal(self, signum, frame):
        """The Python handler of every signal that has one of ours."""
        self.deliver(signum)

    def deliver(self, signum):
        handle = self.handlers.get(signum)
        if handle is None:
            return 0
        if handle.canceled:
            self.remove(signum)
        else:
            self.queue.put_threadsafe(handle)

    def take(self, signum):
        """A signal came in by the signalfd."""
        if signal.getsignal(signum) == self.on_signal:
            self.deliver(signum)
        else:
            # It is no longer ours alone. Raised again, it goes the usual way: to the other handler, and to the pipe.
            signal.raise_signal(signum)

    def rung(self, signums):
        """Signals came in by the pipe; their Python handlers may have run already."""
        interp.check_signals()
        for signum in signums:
            if signum in self.handlers and signal.getsignal(signum) != self.on_signal:
                self.deliver(signum)
        if self.user_fd >= 0:
            # Full or closed: the C handler would have dropped the bytes too.
            with contextlib.suppress(OSError):
                os.write(self.user_fd, signums)

    def open_bell(self):
        read_fd, self.write_fd = events.pipe_open()
        self.bell = Doorbell(read_fd, self)
        self.selector.add(self.bell)

    def after_fork(self):
        """The child shares pipe and signalfd with its parent: take others."""
        global _listening
        if _listening is self:
            _listening = None
        self.user_fd = -1
        self.close_fds()
        self.hold_handlers()
        if self.active:
            self.enter()

    def close(self):
        if sys.is_finalizing() and self.handlers:
            warnings.warn(
                f"Closing the loop {self.loop!r} on interpreter shutdown stage, skipping signal handlers removal",
                ResourceWarning,
                source=self.loop,
                stacklevel=3,
            )
            self.handlers.clear()
        for signum in list(self.handlers):
            self.remove(signum)
        self.unlisten()
        self.close_fds()

    def close_fds(self):
        if self.door is not None:
            self.selector.remove(self.door)
            self.held.close()
            self.door = None
        if self.bell is not None:
            self.selector.remove(self.bell)
            events.close(self.bell.fd)
            events.close(self.write_fd)
            self.bell = None
            self.write_fd = -1


def check_handler(signum, callback):
    """Refuse what asyncio refuses, with its words."""
    if coroutines.iscoroutine(callback) or coroutines.iscoroutinefunction(callback):
        raise TypeError("coroutines cannot be used with add_signal_handler()")
    check_signal(signum)


def check_signal(signum):
    if not isinstance(signum, int):
        raise TypeError(f"sig must be an int, not {signum!r}")
    if signum not in signal.valid_signals():
        raise ValueError(f"invalid signal number {signum}")


def _forked():
    # Until its own loop runs, a child's signals must not ring the parent's bell.
    if _listening is not None and threading.get_ident() == threading.main_thread().ident:
        signal.set_wakeup_fd(-1)


os.register_at_fork(after_in_child=_forked)
