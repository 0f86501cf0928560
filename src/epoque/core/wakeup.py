"""How does another thread end the loop's sleep? By ringing an eventfd, once per sleep.

It is watched edge-triggered and never read: each write is a new edge, and the counter cannot be filled in a lifetime.
"""

from epoque.kernel import events
from epoque.kernel.masks import EDGE, READ
from epoque.selector.source import Source

__all__ = ["Wakeup"]


class Wakeup(Source):
    """The loop's bell. That it rang is all it has to say; who rang left the work in a queue."""

    __slots__ = ()

    def __init__(self):
        Source.__init__(self, -1, READ, EDGE)
        self.open()

    def __del__(self):
        self.close()

    def ring(self):
        """End the sleep. Safe from any thread, and from a Python signal handler."""
        if self.owned:
            events.eventfd_ring(self.fd)

    def on_ready(self, mask):
        pass

    def open(self):
        self.fd = events.eventfd_open()
        self.owned = True

    def close(self):
        if self.owned:
            self.owned = False
            events.close(self.fd)
            self.fd = -1

    def reopen(self):
        """After a fork: leave the parent's bell alone."""
        self.close()
        self.open()
