"""How does Linux say what is ready? epoll(7) for descriptors, one timerfd for the deadline.

The timer is absolute, on the monotonic clock, and watched edge-triggered, so it is never read. It is set only when
the loop is about to block for longer than it is already armed for or shorter: a deadline that moves back (a timer
cancelled, one more added behind) costs no system call but at most one early, empty wake-up.
"""

from epoque.kernel import clock, epoll, events
from epoque.kernel.masks import EDGE, EXCLUSIVE, NEVER, POLL, READ
from epoque.selector.selector import Selector
from epoque.selector.source import Source

__all__ = ["Alarm", "EpollSelector"]

# Events. What they answer leaves at the end of the turn, so that with thousands of them some would wait for long. Those
# left out are first in the next batch: epoll(7) puts what it has reported at the end of its list.
BATCH = 256


class Alarm(Source):
    """The timerfd."""

    __slots__ = ("deadline",)

    def __init__(self):
        Source.__init__(self, -1, READ, EDGE)
        self.deadline = NEVER
        self.fd = epoll.timerfd_open()
        self.owned = self.fd >= 0

    def __del__(self):
        self.close()

    def on_ready(self, mask):
        self.deadline = NEVER

    def close(self):
        if self.owned:
            self.owned = False
            events.close(self.fd)
            self.fd = -1


class EpollSelector(Selector):
    """A selector over one epoll instance."""

    __slots__ = ("alarm", "poller")

    def __init__(self):
        Selector.__init__(self)
        self.stream_mode = EDGE  # level-triggered, each event would cost the kernel a second look at the socket
        self.poller = epoll.Poller(BATCH)
        self.alarm = None

    def fileno(self):
        """The epoll instance, -1 once closed."""
        return self.poller.fileno()

    def wait(self, deadline):
        if self.position < self.count:
            return 0
        if self.forked:  # by a signal's handler, just now: what is taken out of the parent's instance is missed there
            self.reopen()
        self.position = self.count = self.removals = 0
        if deadline == POLL:
            self.count = self.poller.wait(0)
        elif deadline == NEVER:
            self.count = self.poller.wait(-1)
        elif self.alarm is None and not self.open_alarm():
            timeout = deadline - clock.monotonic_ns()
            self.count = self.poller.wait(max(timeout, 0))
        else:
            if deadline < self.alarm.deadline:
                epoll.timerfd_arm(self.alarm.fd, deadline)
                self.alarm.deadline = deadline
            self.count = self.poller.wait(-1)

    def open_alarm(self):
        """Open the timerfd for the first deadline; False if there is no such thing, or no descriptor left for it."""
        try:
            alarm = Alarm()
            if alarm.fd < 0:
                return False
            self.add(alarm)
        except OSError:
            return False
        self.alarm = alarm
        return True

    def event(self, index):
        return self.poller.event(index)

    def arm(self, source):
        if source.armed == 0:
            self.poller.add(source.fd, source.generation, source.interest, source.mode)
        elif source.mode == EXCLUSIVE:  # EPOLL_CTL_MOD refuses it, epoll_ctl(2)
            self.poller.remove(source.fd)
            self.poller.add(source.fd, source.generation, source.interest, source.mode)
        else:
            self.poller.modify(source.fd, source.generation, source.interest, source.mode)

    def discard(self, source):
        self.poller.remove(source.fd)

    def renew(self):
        poller = epoll.Poller(BATCH)
        self.poller.close()
        self.poller = poller

    def found_replaced(self, source):
        if source.owned:
            source.on_lost()  # which must not close what the number stands for now

    def leave_to_parent(self):
        # The timer: set from here, it would go off there.
        alarm = self.alarm
        if alarm is not None:
            self.alarm = None
            self.table[alarm.fd] = None
            alarm.generation = 0
            alarm.close()

    def close(self):
        Selector.close(self)
        if self.alarm is not None:
            self.alarm.close()
            self.alarm = None
        self.poller.close()
