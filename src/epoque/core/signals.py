"""How does a Unix signal become a callback, without being lost, stolen or inherited?

While callbacks run, signals arrive as in any Python program: the C handler of `signal` marks them, writes a byte to
the wake-up descriptor (`signal.set_wakeup_fd`), and the interpreter soon calls the Python handler, which here puts
the callback in line. That also works when another thread receives the signal. Only around a wait are the signals that
have a handler blocked and read from a signalfd instead (signalfd(2)), so that between the last look and the wait none
can slip in unnoticed. They are unblocked before any callback runs: children, threads and `subprocess.Popen` never
inherit a blocked signal. With kqueue, which has no signalfd, none is blocked: EVFILT_SIGNAL ends the wait, also when
somebody else has taken the bell away.

The descriptors are doorbells. The byte that rings the bell matters only when somebody else has put a handler of his
own on the signal since (`signal.signal`, or another loop): then his handler runs, and the byte is what tells us.
"""

import contextlib
import errno
import signal
import sys
import warnings

from epoque.core import bell as bells
from epoque.core import debug
from epoque.core import handle as handles
from epoque.kernel import interp, signals
from epoque.kernel.masks import READ
from epoque.selector.source import Source

__all__ = ["Signals", "check_handler", "check_signal"]


class Doorbell(Source):
    """The read end of the process's bell, as one loop watches it."""

    __slots__ = ()

    def __init__(self, fd):
        Source.__init__(self, fd, READ)

    def on_ready(self, mask):
        # The Python handlers first: what they raise leaves the run.
        interp.check_signals()
        signums = bells.bell.answer()
        for owner in list(bells.bell.handling):
            for signum in signums:  # thousands, if somebody else has filled the pipe
                owner.overheard(signum)


class HeldSignals(Source):
    """The descriptor of a `SignalSet`: a signalfd, or a kqueue of its own."""

    __slots__ = ("signals",)

    def __init__(self, fd, signals):
        Source.__init__(self, fd, READ)
        self.signals = signals

    def on_ready(self, mask):
        self.signals.answer()


class Signals:
    """The signal handlers of one loop."""

    __slots__ = (
        "__weakref__",
        "active",
        "caught",
        "door",
        "doorbell",
        "handlers",
        "held",
        "loop",
        "queue",
        "selector",
        "settled",
    )

    def __init__(self, loop, selector, queue):
        self.loop = loop
        self.queue = queue
        self.selector = selector
        self.handlers = {}
        self.caught = []
        self.held = signals.SignalSet()
        self.doorbell = None
        self.door = None
        self.active = False
        self.settled = True

    def prepare(self):
        """Watch the bell, if this is the thread that handles signals."""
        if self.doorbell is None and bells.in_main_thread():
            doorbell = Doorbell(bells.bell.enroll(self))
            try:
                self.selector.add(doorbell)
            except BaseException:
                bells.bell.dismiss(self)
                raise
            self.doorbell = doorbell

    def add(self, signum, callback, args):
        """`asyncio.loop.add_signal_handler`, after its checks."""
        handle = handles.new_handle(callback, args, self.loop, interp.copy_context())
        self.prepare()  # which may find no descriptor left
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
        if self.loop._thread_id == interp.thread_ident():
            self.listen()
        self.handlers_changed()

    def remove(self, signum):
        """`asyncio.loop.remove_signal_handler`, after its check: True if there was a handler."""
        if self.handlers.pop(signum, None) is None:
            return False
        if signal.getsignal(signum) == self.on_signal:
            signal.signal(signum, signal.default_int_handler if signum == signal.SIGINT else signal.SIG_DFL)
        self.handlers_changed()
        return True

    def handlers_changed(self):
        """Let the descriptor cover exactly the signals that have a handler."""
        if self.handlers:
            bells.bell.handling.add(self)
        else:
            bells.bell.handling.discard(self)
        bells.bell.settle()
        if not self.handlers and self.door is None:
            return 0
        try:
            self.held.assign(self.handlers)
        except OSError as exc:
            # No descriptor left for one. The bell alone serves too; a signal then ends the wait by interrupting it.
            debug.logger.warning("signal descriptor: %s", exc)
            return 0
        if self.door is None and self.held.fd >= 0:
            door = HeldSignals(self.held.fd, self)
            self.selector.add(door)
            self.door = door

    def enter(self):
        """The loop starts to run. What follows from that waits for its first wait, unless there are handlers."""
        self.settled = False
        if self.handlers or bells.bell.installed:
            self.listen()

    def leave(self):
        """The loop has stopped. Its handlers may still be called: what they put in line waits for the next run."""
        self.settled = True
        if self.active:
            self.active = False
            bells.bell.end()

    def listen(self):
        """From here on to the end of the run the bell is the wake-up descriptor, if this is the main thread."""
        if self.settled:
            return 0
        if not bells.in_main_thread():
            # Made in the main thread, run in another: there it would answer for the loop that now runs in the first.
            self.leave_bell()
            self.settled = True
            return 0
        try:
            self.prepare()
        except OSError as exc:
            # Until there is a descriptor for it a signal ends the wait by interrupting it, unless it comes just before.
            if exc.errno != errno.EMFILE and exc.errno != errno.ENFILE:
                raise
            return 0
        self.settled = True
        self.active = True
        bells.bell.begin()

    def hold(self):
        """Before a wait: block what has a handler. Returns whether `release` is owed."""
        if not self.settled:
            self.listen()
        if not self.active or self.door is None or not self.handlers:
            return False
        self.held.block()
        return True

    def release(self):
        """After it: what came is read from the signalfd while it is still held back, and handled when nothing is."""
        try:
            if self.selector.has_fetched(self.door):
                self.caught.extend(self.held.drain())
        finally:
            self.held.restore()
        self.take_caught()

    def answer(self):
        """The descriptor is readable. What was held back was drained before it was released."""
        self.caught.extend(self.held.drain())
        interp.check_signals()  # the others have gone the usual way
        self.take_caught()

    def take_caught(self):
        while self.caught:
            self.take(self.caught.pop(0))

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
            # It is no longer ours alone. Raised again, it goes the usual way: to the other handler, and to the bell.
            signal.raise_signal(signum)

    def overheard(self, signum):
        """The bell rang for a signal. If its Python handler is ours, that has told us already."""
        if signum in self.handlers and signal.getsignal(signum) != self.on_signal:
            self.deliver(signum)

    def after_fork(self):
        """The child shares bell and signalfd with its parent: take others."""
        self.unwatch()
        if self.active:
            self.active = False
            self.settled = False
        if self.handlers:
            self.prepare()
            self.handlers_changed()

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
            # In another thread than the main one a disposition cannot be set; what is called then finds no handler.
            with contextlib.suppress(ValueError):
                self.remove(signum)
        self.handlers.clear()
        # The selector is closed next, and unwatches all.
        if self.door is not None:
            self.held.close()
            self.door = None
        self.doorbell = None
        bells.bell.dismiss(self)
        self.loop = None  # a closed loop goes with its last user, not with the next garbage collection

    def unwatch(self):
        if self.door is not None:
            self.selector.remove(self.door)
            self.held.close()
            self.door = None
        self.leave_bell()

    def leave_bell(self):
        """Watch the bell no more. Returns whether it was watched."""
        if self.doorbell is None:
            return False
        self.selector.remove(self.doorbell)
        self.doorbell = None
        return True


def check_handler(signum, callback):
    """Refuse what asyncio refuses, with its words."""
    if debug.is_coroutine(callback):
        raise TypeError("coroutines cannot be used with add_signal_handler()")
    check_signal(signum)


def check_signal(signum):
    if not isinstance(signum, int):
        raise TypeError(f"sig must be an int, not {signum!r}")
    if signum not in signal.valid_signals():
        raise ValueError(f"invalid signal number {signum}")
