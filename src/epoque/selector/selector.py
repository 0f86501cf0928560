"""Which source does an event belong to, and does it still want it?

An event names a descriptor, and descriptors are reused: between the fetching of a batch and the dispatch of its last
event a callback may have closed, replaced or paused any source. Each registration has a generation, which the kernel
carries with the events; an event is delivered only if source, generation and interest still match.

What follows from that:
- A paused source is disarmed only when an event for it arrives; pausing and resuming within a quiet time costs nothing.
- A registration can outlive its source in the kernel: a descriptor closed behind our back while a duplicate of it lives
  (epoll(7), question 6) goes on to report, and nobody can name it any more. Such a ghost is known by its generation,
  and the only exorcism is a new instance: `reopen`.
- After fork(2) parent and child share the instance; an edit by the child would change the parent's. The child's first
  edit opens an instance of its own.

This class knows nothing of any system; the methods from `arm` on are what a subclass supplies.
"""

from errno import EBADF, EEXIST, EINVAL, ELOOP, EMFILE, ENFILE, ENOENT, EPERM

from epoque.kernel.masks import EDGE, LEVEL
from epoque.selector.source import Source

__all__ = ["Selector", "Source"]

LAST = 0xFFFF_FFFF  # generation, of 32 bits; then it begins anew

# What the kernel says of a number that was armed and stands for nothing or for something else by now: another file,
# one that cannot be watched (EPERM), or an epoll instance, our own (EINVAL) or one that watches it (ELOOP).
_REPLACED = frozenset({EBADF, ENOENT, EPERM, EINVAL, ELOOP})


class Selector:
    """The table of sources by descriptor, and the dispatch of batches."""

    __slots__ = (
        "__weakref__",
        "count",
        "forked",
        "generation",
        "ghosts",
        "position",
        "removals",
        "stream_mode",
        "table",
    )

    def __init__(self):
        self.table = []
        self.generation = 0
        self.count = 0
        self.position = 0
        self.removals = 0
        self.ghosts = 0
        self.stream_mode = LEVEL
        self.forked = False

    def find(self, fd):
        """The source registered for `fd`, or None."""
        if 0 <= fd < len(self.table):
            return self.table[fd]
        return None

    def add(self, source):
        """Watch `source`. OSError when the kernel cannot (EBADF; EPERM for a regular file): nothing is registered."""
        if self.forked:
            self.reopen()
        fd = source.fd
        if fd < 0:
            raise OSError(EBADF, "no descriptor")
        previous = self.find(fd)
        if previous is not None:
            # Its owner closed the number without telling us, and it was given out again.
            self.evict(previous)
        self.generation = self.generation + 1 if self.generation < LAST else 1
        source.generation = self.generation
        source.armed = 0
        try:
            self.update(source)  # the kernel knows whether there is such a number, before the table grows for it
        except BaseException:
            source.generation = 0
            raise
        missing = fd + 1 - len(self.table)
        if missing > 0:
            self.table.extend([None] * missing)
        self.table[fd] = source

    def update(self, source):
        """Make the kernel report what `source.interest` says, from now on. A source that is not registered is left."""
        if source.armed == source.interest or source.generation == 0:
            return 0
        if self.forked:
            self.reopen()
        if source.interest == 0:
            self.disarm(source)
            return 0
        try:
            self.arm(source)
        except OSError as exc:
            if source.armed and exc.errno in _REPLACED:
                self.evict(source)  # whatever the number stands for now, it is not what we armed
                return 0
            if exc.errno != EEXIST:
                raise
            source.armed = source.interest  # the file was armed before
            self.arm(source)
        source.armed = source.interest

    def verify(self, source):
        """Is the descriptor still the file that was armed? If not, let go of it and return False."""
        if source.armed == 0 or source.interest == 0 or self.forked:
            return True
        try:
            self.arm(source)
        except OSError as exc:
            if exc.errno not in _REPLACED:
                raise
            self.evict(source)
            return False
        source.armed = source.interest
        return True

    def again(self, source):
        """Have it told once more what is ready: of an edge-triggered source not all is used up that an event meant.

        In a child process the next wait does, by an instance of its own.
        """
        if self.forked:
            return 0
        if source.mode == EDGE and source.armed == source.interest:
            self.verify(source)
        else:
            self.update(source)

    def remove(self, source):
        """Stop watching `source`; one that is not registered is left as it is."""
        if source.generation == 0 or self.find(source.fd) is not source:
            return 0
        if self.forked:
            self.reopen()
        self.table[source.fd] = None
        source.generation = 0
        self.removals += 1
        self.disarm(source)

    def evict(self, source):
        """Forget a source whose descriptor is no longer the one it named."""
        self.table[source.fd] = None
        source.generation = 0
        source.armed = 0
        self.removals += 1
        source.on_lost()

    def disarm(self, source):
        if source.armed:
            try:
                self.discard(source)
            except OSError as exc:
                # Closed behind our back. The kernel forgot it too, unless a duplicate lives; a ghost will tell.
                if exc.errno not in _REPLACED:
                    raise
                self.found_replaced(source)
            finally:
                source.armed = 0

    def dispatch(self):
        """Deliver the batch. What an exception of `on_ready` leaves over is delivered by the next call."""
        source = None
        try:
            while self.position < self.count:
                fd, generation, mask = self.event(self.position)
                self.position += 1
                source = self.table[fd] if fd < len(self.table) else None
                if source is None or source.generation != generation:
                    if self.removals == 0:
                        self.ghosts += 1
                else:
                    interest = source.interest
                    if not mask & interest or mask & source.armed & ~interest:
                        self.calm(source)
                        interest = source.interest
                    if mask & interest:
                        source.on_ready(mask)
        except BaseException:
            if source is not None and source.mode == EDGE:
                self.again(source)  # it may have left something unused
            raise
        if self.ghosts:
            try:
                self.reopen()
                self.ghosts = 0
            except OSError as exc:
                # No descriptor for a new instance: the ghost must be borne a while longer.
                if exc.errno != EMFILE and exc.errno != ENFILE:
                    raise

    def has_fetched(self, source):
        """Whether the batch that is still to be delivered has an event for `source`."""
        for index in range(self.position, self.count):
            fd = self.event(index)[0]
            if fd == source.fd:
                return True
        return False

    def calm(self, source):
        """Disarm what `source` no longer wants: a pause is not told to the kernel before it matters.

        When it is wanted again the kernel looks anew, so that nothing is lost that was told only once. EPOLLHUP and
        EPOLLERR cannot be masked; a source that wants nothing is unregistered until it does.
        """
        try:
            self.update(source)
        except OSError:
            self.evict(source)

    def reopen(self):
        """Open a new instance and register every source with it; OSError, and no change, when that cannot be had.

        In a child process the old one is left to the parent.
        """
        inherited = self.forked
        if not inherited:
            # While it can still be told: in a new instance the file that has a number by now would be watched.
            for source in list(self.table):
                if source is not None:
                    self.verify(source)
        self.renew()
        self.forked = False
        self.count = self.position = 0
        if inherited:
            self.leave_to_parent()
        self.rearm()

    def rearm(self):
        """Tell a new instance about every source; a descriptor that is closed by now is let go."""
        for source in list(self.table):
            if source is None:
                continue
            source.armed = 0
            try:
                self.update(source)
            except OSError:
                self.evict(source)

    def _forked(self):
        """To be called in a child process that inherits the selector, before anything else of it is."""
        self.forked = True

    def close(self):
        for source in self.table:
            if source is not None:
                source.generation = 0
                source.armed = 0
        self.table.clear()
        self.count = self.position = 0

    # What a system supplies.

    def wait(self, deadline):
        """Fetch a batch unless one is left over: POLL without blocking, else until something is ready or `deadline`.

        A wait may end early with an empty batch: a signal came, or a deadline that was withdrawn passed.
        """
        raise NotImplementedError

    def event(self, index):
        """Event `index` of the batch: descriptor, generation, and READ, WRITE and HANGUP as a mask."""
        raise NotImplementedError

    def arm(self, source):
        """Register or modify `source` for its interest, which is not empty; `source.armed` is what was in force."""
        raise NotImplementedError

    def discard(self, source):
        """Unregister `source`."""
        raise NotImplementedError

    def renew(self):
        """Replace the instance by an empty one."""
        raise NotImplementedError

    def leave_to_parent(self):
        """Replace whatever else a child process must not share with its parent."""

    def found_replaced(self, source):
        """The kernel knows nothing of a registration that was to be undone; what follows from that?"""
