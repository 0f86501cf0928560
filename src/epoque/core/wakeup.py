"""How does another thread end the loop's sleep? By ringing an eventfd, or where there is none a pipe, once per sleep.

It is watched edge-triggered: each write is a new edge. An eventfd is never read. The GIL is given up for the write, so
that the loop need not wait for it as soon as it is awake; meanwhile the loop may run on and be closed.
"""

from epoque.kernel import events
from epoque.kernel.masks import EDGE, READ
from epoque.selector.source import Source

__all__ = ["Wakeup"]


class Wakeup(Source):
    """The loop's bell. That it rang is all it has to say; who rang left the work in a queue."""

    __slots__ = ("ring_fd", "ringing")

    def __init__(self):
        Source.__init__(self, -1, READ, EDGE)
        self.ring_fd = -1
        self.ringing = 0
        self.open()

    def __del__(self):
        self.close()

    def ring(self):
        """End the sleep. Safe from any thread, and from a Python signal handler."""
        if not self.owned:
            return 0
        self.ringing += 1
        try:
            events.wakeup_ring(self.ring_fd)
        finally:
            self.ringing -= 1
            if not self.owned and self.ringing == 0:
                self.give_back()

    def on_ready(self, mask):
        events.wakeup_answer(self.fd)

    def open(self):
        self.fd, self.ring_fd = events.wakeup_open()
        self.owned = True

    def close(self):
        if self.owned:
            self.owned = False
            if self.ringing == 0:  # else by the last one who rings: the number must not be anybody else's before
                self.give_back()

    def give_back(self):
        if self.ring_fd != self.fd:
            events.close(self.ring_fd)
        events.close(self.fd)
        self.fd = self.ring_fd = -1

    def reopen(self):
        """After a fork: leave the parent's bell alone. Those who rang it are threads of the parent."""
        self.ringing = 0
        self.close()
        self.open()
