"""What is a descriptor to the selector? The one upward call of the lower layers is made here: `on_ready`.

A source must not know who watches it. It says what it wants in `interest`; the other fields belong to the selector.
"""

from epoque.kernel.masks import LEVEL


class Source:
    """A descriptor with somebody who wants to know when it is ready."""

    __slots__ = ("armed", "fd", "generation", "interest", "mode", "owned")

    def __init__(self, fd, interest=0, mode=LEVEL):
        self.set_up(fd, interest, mode)

    def set_up(self, fd, interest, mode):
        self.fd = fd
        self.interest = interest
        self.mode = mode
        self.armed = 0
        self.generation = 0
        self.owned = False

    def on_ready(self, mask):
        """The descriptor is ready for what `mask` says (READ, WRITE; HANGUP besides). May change any registration."""
        raise NotImplementedError

    def on_turn_end(self):
        """The turn ends in which this source asked to be called at its end."""
        raise NotImplementedError

    def before_fork(self):
        """The process forks in such a turn: what must not happen in both processes at its end has to happen now."""

    def on_lost(self):
        """The descriptor was closed by somebody else; the selector watches it no more."""
