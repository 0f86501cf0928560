"""How is a selector tested without a kernel? Events come from a script; what was armed is written down.

Test doubles are compiled with the rest, because compiled code does not see a Python override of a C method.
"""

from epoque.selector.selector import Selector
from epoque.selector.source import Source

__all__ = ["FakeSelector", "RecordingSource"]


class RecordingSource(Source):
    """Writes down the masks that it is called with, then calls ``action(mask)`` if there is one."""

    __slots__ = ("action", "calls", "lost")

    def __init__(self, fd, interest=0, mode=0, action=None):
        Source.__init__(self, fd, interest, mode)
        self.action = action
        self.calls = []
        self.lost = False

    def on_ready(self, mask):
        self.calls.append(mask)
        if self.action is not None:
            self.action(mask)

    def on_lost(self):
        self.lost = True

    def want(self, interest):
        """Set the interest, without telling a selector."""
        self.interest = interest

    def own(self):
        """Let the descriptor be the source's own."""
        self.owned = True

    def state(self):
        """(interest, armed, generation)"""
        return self.interest, self.armed, self.generation


class FakeSelector(Selector):
    """A selector whose events come from `script`.

    ``kernel`` maps each registered fd to (generation, mask), as an epoll instance would hold it; ``log`` lists the
    calls that would have been system calls; ``waits`` lists the deadlines.
    """

    __slots__ = ("batches", "current", "kernel", "log", "refused", "waits")

    def __init__(self):
        Selector.__init__(self)
        self.batches = []
        self.current = []
        self.kernel = {}
        self.log = []
        self.refused = {}
        self.waits = []

    def script(self, *batches):
        """Each batch is a list of (fd, generation or None for the one registered, mask)."""
        self.batches.extend(batches)

    def refuse(self, fd, errno):
        """Let every operation on `fd` fail with `errno`; None ends that."""
        self.refused[fd] = errno

    def wait(self, deadline):
        if self.position < self.count:
            return 0
        self.waits.append(deadline)
        batch = self.batches.pop(0) if self.batches else []
        self.current = [
            (fd, self.kernel[fd][0] if generation is None else generation, mask) for fd, generation, mask in batch
        ]
        self.position = 0
        self.removals = 0
        self.count = len(self.current)

    def event(self, index):
        fd, generation, mask = self.current[index]
        return fd, generation, mask

    def arm(self, source):
        self.check("modify" if source.armed else "add", source.fd)
        self.kernel[source.fd] = (source.generation, source.interest)

    def discard(self, source):
        self.check("remove", source.fd)
        self.kernel.pop(source.fd, None)

    def check(self, operation, fd):
        self.log.append((operation, fd))
        if self.refused.get(fd) is not None:
            raise OSError(self.refused[fd], "refused")

    def renew(self):
        self.log.append(("reopen", -1))
        self.kernel.clear()
