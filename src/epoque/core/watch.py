"""Who watches a bare descriptor? `add_reader` and `add_writer`: one source with up to two callbacks.

Nothing is known here of what the descriptor is, and its owner may close it without a word. If the number then stands
for another file, or for none while a duplicate keeps the old one alive (epoll(7), question 6), the kernel reports an
old friend for ever; every now and then a busy watcher therefore asks whether its descriptor is still the one it was.
"""

from epoque.core import debug
from epoque.kernel.masks import READ, WRITE
from epoque.selector.source import Source

__all__ = ["Watcher", "fileno"]

# An epoll_ctl() takes some 0.1 us; once in that many wake-ups it is lost in the noise, and a spin ends within a
# millisecond.
VERIFY_EVERY = 64
LARGEST = 0x7FFF_FFFF  # descriptor: a C int


class Watcher(Source):
    """The callbacks of one descriptor."""

    __slots__ = ("fileobj", "queue", "reader", "selector", "wakeups", "writer")

    def __init__(self, fd, fileobj, selector, queue):
        Source.__init__(self, fd)
        self.fileobj = fileobj
        self.selector = selector
        self.queue = queue
        self.reader = None
        self.writer = None
        self.wakeups = 0

    def on_ready(self, mask):
        self.wakeups += 1
        if self.wakeups % VERIFY_EVERY == 0 and not self.selector.verify(self):
            debug.logger.warning(
                "File descriptor %d was closed while a reader or writer was registered for it", self.fd
            )
            return 0
        if mask & READ and self.reader is not None:
            self.schedule(self.reader, READ)
        if mask & WRITE and self.writer is not None:
            self.schedule(self.writer, WRITE)

    def schedule(self, handle, direction):
        if handle.canceled:
            self.clear(direction)
        else:
            self.queue.handles.append(handle)

    def set(self, direction, handle):
        """Register `handle`; the one it replaces is cancelled. OSError leaves things as they were before the call."""
        previous = self.reader if direction == READ else self.writer
        interest = self.interest
        self.interest = interest | direction
        try:
            if self.generation:
                self.selector.update(self)
            else:
                self.selector.add(self)
        except BaseException:
            self.interest = interest
            raise
        if direction == READ:
            self.reader = handle
        else:
            self.writer = handle
        if previous is not None:
            previous.cancel()

    def clear(self, direction):
        """Cancel the callback of one direction; False if there is none."""
        if direction == READ:
            handle = self.reader
            self.reader = None
        else:
            handle = self.writer
            self.writer = None
        if handle is None:
            return False
        self.interest &= ~direction
        if self.interest:
            self.selector.update(self)
        else:
            self.selector.remove(self)
        handle.cancel()  # what it lets go of may watch the descriptor anew
        return True

    def on_lost(self):
        self.interest = 0
        watching = (self.reader, self.writer)
        self.reader = None
        self.writer = None
        for handle in watching:
            if handle is not None:
                handle.cancel()


def fileno(fileobj):
    """The descriptor of an int or an object with ``fileno()``; ValueError for anything else, and for negative ones."""
    try:
        number = int(fileobj) if isinstance(fileobj, int) else int(fileobj.fileno())
    except (AttributeError, TypeError, ValueError):
        raise ValueError(f"Invalid file object: {fileobj!r}") from None
    if number < 0:
        raise ValueError(f"Invalid file descriptor: {number}")
    if number > LARGEST:
        raise OverflowError("Python int too large to convert to C int")
    return number
