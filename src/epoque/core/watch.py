"""Who watches a bare descriptor? `add_reader` and `add_writer`, and coroutines that wait for a plain socket.

One source has up to one of them in each direction. Nothing is known here of what the descriptor is, and its owner may
close it without a word. If the number then stands for another file, or for none while a duplicate keeps the old one
alive (epoll(7), question 6), the kernel reports an old friend for ever; every now and then a busy watcher therefore
asks whether its descriptor is still the one it was.

Who has waited for something to read will do so again. The descriptor stays armed meanwhile, and is let go when an event
finds nobody. Before the next one waits the kernel is asked whether it is still the same file: one epoll_ctl(2) for each
time, and the cheapest.
"""

import asyncio

from epoque.core import debug
from epoque.core.handle import Handle
from epoque.kernel.masks import LEVEL, READ, WRITE
from epoque.selector.source import Source

__all__ = ["Watcher", "fileno"]

# An epoll_ctl() takes some 0.1 us; once in that many wake-ups it is lost in the noise, and a spin ends within a
# millisecond.
VERIFY_EVERY = 64
LARGEST = 0x7FFF_FFFF  # descriptor: a C int


class Watcher(Source):
    """Who wants to know when one descriptor is ready: handles, or futures of coroutines."""

    __slots__ = ("fileobj", "queue", "reader", "selector", "wakeups", "writer")

    def __init__(self, fd, selector, queue):
        self.fd = fd  # by hand: to call Source.__init__ takes as long as the rest
        self.interest = 0
        self.mode = LEVEL
        self.armed = 0
        self.generation = 0
        self.owned = False
        self.selector = selector
        self.queue = queue
        self.fileobj = None
        self.reader = None
        self.writer = None
        self.wakeups = 0

    def on_ready(self, mask):
        self.wakeups += 1
        if self.wakeups % VERIFY_EVERY == 0:
            watched = self.is_live(self.reader) or self.is_live(self.writer)
            if not self.selector.verify(self):
                if watched:
                    debug.logger.warning(
                        "File descriptor %d was closed while a reader or writer was registered for it", self.fd
                    )
                return 0
        mask &= self.interest
        if mask & READ and not self.tell(READ):
            self.leave(READ)
        if mask & WRITE and not self.tell(WRITE):
            self.leave(WRITE)

    def tell(self, direction):
        """Put in line whoever waits; returns whether the descriptor is worth watching on."""
        waiting = self.get(direction)
        if isinstance(waiting, Handle):
            handle = waiting
            if not handle.canceled:
                self.queue.handles.append(handle)
                return True
        self.put(direction, None)
        if not self.is_live(waiting):
            return False
        waiting.set_result(None)  # here, not by a handle: the coroutine reads before the next look at the descriptors
        return direction == READ  # there will be room to write at the next look, too

    def get(self, direction):
        return self.reader if direction == READ else self.writer

    def put(self, direction, waiting):
        if direction == READ:
            self.reader = waiting
        else:
            self.writer = waiting

    def is_live(self, waiting):
        """Whether somebody is still there: a coroutine that is cancelled does not say goodbye."""
        return waiting is not None and (isinstance(waiting, Handle) or not waiting.done())

    def set(self, direction, waiting):
        """Register a handle or a future; a handle that it replaces is cancelled. OSError leaves things as they were."""
        previous = self.get(direction)
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
        self.put(direction, waiting)
        if isinstance(previous, Handle):
            previous.cancel()

    def clear(self, direction):
        """Forget who watches in one direction, and cancel a handle; False if there is nobody."""
        waiting = self.get(direction)
        self.put(direction, None)
        live = self.is_live(waiting)
        if live and direction == WRITE:  # there will be room at the next look
            self.leave(WRITE)
        if self.reader is None and self.writer is None:
            self.fileobj = None
        if isinstance(waiting, Handle):
            waiting.cancel()  # what it lets go of may watch the descriptor anew
        return live

    def leave(self, direction):
        self.interest &= ~direction
        if self.interest:
            self.selector.update(self)
        else:
            self.selector.remove(self)

    def on_lost(self):
        self.interest = 0
        watching = (self.reader, self.writer)
        self.reader = None
        self.writer = None
        for waiting in watching:
            if isinstance(waiting, Handle):
                waiting.cancel()


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


def refuse(source):
    """RuntimeError: the descriptor is not a bare one."""
    user = "transport" if isinstance(source, asyncio.BaseTransport) else "the loop's own"
    raise RuntimeError(f"File descriptor {source.fd!r} is used by {user} {source!r}")
