"""How do macOS and the BSDs say what is ready? kqueue(2) for descriptors, kevent's timeout for the deadline.

A source is registered and removed at once: whoever asks must hear of an error, and a number may be given out again
before the next wait. Changes of an owned source in between (a transport that starts, or has ceased, to wait for room)
are collected and submitted with the wait, in one kevent(2); a toggle there and back costs nothing. A change that the
kernel refuses comes back as an event, upon which the source is verified.
"""

from epoque.kernel import clock, kqueue
from epoque.kernel.masks import NEVER, POLL
from epoque.selector.selector import Selector

__all__ = ["KqueueSelector"]

FIRST_BATCH = 256  # events; it doubles whenever a batch fills it


class KqueueSelector(Selector):
    """A selector over one kqueue."""

    __slots__ = ("lagging", "poller")

    def __init__(self):
        Selector.__init__(self)
        self.poller = kqueue.Poller(FIRST_BATCH)
        self.lagging = {}

    def fileno(self):
        """The kqueue, -1 once closed."""
        return self.poller.fileno()

    def wait(self, deadline):
        if self.position < self.count:
            return 0
        if self.forked:
            self.reopen()
        self.position = self.count = self.removals = 0
        if self.lagging:
            self.catch_up()
        if deadline == POLL:
            self.count = self.poller.wait(0)
        elif deadline == NEVER:
            self.count = self.poller.wait(-1)
        else:
            timeout = deadline - clock.monotonic_ns()
            self.count = self.poller.wait(max(timeout, 0))

    def catch_up(self):
        for number, armed in self.lagging.items():
            fd = number
            source = self.find(fd)
            if source is not None:
                self.poller.collect(fd, source.generation, armed, source.armed, source.mode)
        self.lagging.clear()

    def event(self, index):
        return self.poller.event(index)

    def arm(self, source):
        if source.armed == 0:
            self.lagging.pop(source.fd, None)  # of an earlier owner of the number
        elif source.owned and source.armed != source.interest:
            self.lagging.setdefault(source.fd, source.armed)
            return 0
        armed = self.lagging.pop(source.fd, source.armed)
        try:
            self.poller.change(source.fd, source.generation, armed, source.interest, source.mode)
        except BrokenPipeError:
            # A pipe whose reader has gone. Asked for again with the wait, the refusal is an event that tells so.
            self.lagging[source.fd] = 0

    def discard(self, source):
        armed = self.lagging.pop(source.fd, source.armed)
        self.poller.change(source.fd, source.generation, armed, 0, source.mode)

    def calm(self, source):
        if self.poller.refused(self.position - 1):
            self.verify(source)
        else:
            Selector.calm(self, source)

    def renew(self):
        poller = kqueue.Poller(FIRST_BATCH)
        self.poller.close()
        self.poller = poller
        self.lagging.clear()

    def leave_to_parent(self):
        pass

    def _forked(self):
        self.forked = True
        self.poller.forget()

    def close(self):
        Selector.close(self)
        self.poller.close()
