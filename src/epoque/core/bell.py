"""Where does Python's C signal handler ring? Into one pipe per process, by `signal.set_wakeup_fd`.

Signals belong to the process and are handled in its main thread, whichever loop runs there; so the loops share one
pipe, each watching its read end. It is the wake-up descriptor while a loop runs in the main thread, and between the
runs as long as a loop has handlers. A descriptor that the user had set is his again whenever no loop runs, and gets
the bytes that came meanwhile; one that he sets, or takes back, during a run stays as he left it.
"""

import contextlib
import os
import signal
import threading
import weakref

from epoque.kernel import events, interp

__all__ = ["Bell", "bell", "in_main_thread"]


class Bell:
    """The pipe, and who needs it."""

    __slots__ = (
        "__weakref__",
        "handling",
        "inherited",
        "installed",
        "owners",
        "read_fd",
        "running",
        "user_fd",
        "write_fd",
    )

    def __init__(self):
        self.owners = weakref.WeakSet()
        self.handling = weakref.WeakSet()
        self.read_fd = -1
        self.write_fd = -1
        self.user_fd = -1
        self.running = False
        self.installed = False
        self.inherited = False
        interp.tell_of_forks(self)

    def enroll(self, owner):
        """`owner`, the signals of a loop, may need the pipe: open it if need be, and return its read end."""
        if self.inherited:
            self.close()
        self.owners.add(owner)  # first, lest a handler that raises in between leaves a pipe that is nobody's
        if self.read_fd < 0:
            self.read_fd, self.write_fd = events.pipe_open()
        return self.read_fd

    def dismiss(self, owner):
        """`owner` needs the pipe no more. With the last one it is closed."""
        if owner not in self.owners:
            return 0
        self.handling.discard(owner)
        self.owners.discard(owner)
        self.settle()
        if not len(self.owners) and not self.installed:
            self.close()

    def begin(self):
        """A loop runs in the main thread, and may wait. Whoever has set another descriptor meanwhile is its user."""
        self.running = True
        self.install()

    def end(self):
        """No loop runs any more."""
        self.running = False
        self.settle()

    def settle(self):
        """While no loop runs: listen only if some loop has handlers, and if the user does not want to."""
        if self.running or self.inherited or self.read_fd < 0 or not in_main_thread():
            return 0
        if len(self.handling) and not self.installed:
            self.install()
        if self.installed and (self.user_fd >= 0 or not len(self.handling)):
            self.give_back()

    def install(self):
        before = self.installed
        self.installed = True  # first, lest a handler that raises in between leaves it behind
        try:
            try:
                current = signal.set_wakeup_fd(self.write_fd, warn_on_full_buffer=False)
            except OSError:
                self.installed = before
                self.replace()
                self.installed = True
                current = signal.set_wakeup_fd(self.write_fd, warn_on_full_buffer=False)
        except ValueError:  # the main thread of a sub-interpreter
            self.installed = before
            return 0
        if current >= 0 and current != self.write_fd:
            self.user_fd = current

    def give_back(self):
        self.installed = False
        try:
            current = signal.set_wakeup_fd(self.user_fd)
        except (ValueError, OSError):  # closed meanwhile
            current = signal.set_wakeup_fd(-1)
        if current != self.write_fd:  # changed since we took it
            signal.set_wakeup_fd(current)
        self.user_fd = -1

    def answer(self):
        """Read what was rung: the numbers of signals, as bytes. They go on to the user's descriptor."""
        try:
            signums = os.read(self.read_fd, 4096)
        except BlockingIOError:
            return b""
        if not signums:
            self.replace()
            if self.running or self.installed:
                self.install()
            return b""
        if self.user_fd >= 0:
            # Full or closed: the C handler would have dropped the bytes too.
            with contextlib.suppress(OSError):
                os.write(self.user_fd, signums)
        return signums

    def replace(self):
        """Somebody has closed the write end, so that the read end would spin; its number may be anybody's by now."""
        watching = [owner for owner in list(self.owners) if owner.leave_bell()]
        if self.installed:
            current = signal.set_wakeup_fd(-1)
            if current != self.write_fd:
                self.user_fd = current
        events.close(self.read_fd)
        self.read_fd = self.write_fd = -1
        for owner in watching:
            owner.prepare()

    def close(self):
        events.close(self.read_fd)
        events.close(self.write_fd)
        self.read_fd = self.write_fd = -1
        self.inherited = False

    def _about_to_fork(self):
        pass

    def _forked(self):
        # A child's signals must not ring its parent's bell. A loop that runs in the child enrolls for another.
        if self.installed and in_main_thread():
            signal.set_wakeup_fd(-1)
        self.user_fd = -1
        self.running = False
        self.installed = False
        self.inherited = self.read_fd >= 0


def in_main_thread():
    return threading.get_ident() == threading.main_thread().ident


bell = Bell()
