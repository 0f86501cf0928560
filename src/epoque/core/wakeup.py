"""How does another thread end the loop's sleep? By ringing an eventfd, or where there is none a pipe, once per sleep.

It is watched edge-triggered: each write is a new edge. An eventfd is never read.
"""

from epoque.kernel import events
from epoque.kernel.masks import EDGE, READ
from epoque.selector.source import Source

__all__ = ["Wakeup"]


class Wakeup(Source):
    """The loop's bell. That it rang is all it has to say; who rang left the work in a queue."""

    __slots__ = ("ring_fd",)

    def __init__(self):
        Source.__init__(self, -1, READ, EDGE)
        self.ring_fd = -1
        self.open()

    def __del__(self):
        self.close()

    def ring(self):
        """End the sleep. Safe from any thread, and from a Python signal handler."""
        if self.owned:
            events.wakeup_ring(self.ring_fd)

    def on_ready(self, mask):
        events.wakeup_answer(self.fd)

    def open(self):
        self.fd, self.ring_fd = events.wakeup_open()
        self.owned = True

    def close(self):
        if self.owned:
            self.owned = False
            if self.ring_fd != self.fd:
                events.close(self.ring_fd)
            events.close(self.fd)
            self.fd = self.ring_fd = -1

    def reopen(self):
        """After a fork: leave the parent's bell alone."""
        self.close()
        self.open()
