"""What is due next? Timers in a 4-ary heap, ordered by deadline and, for equal ones, by the order of their making.

Every handle knows its place in the heap, so that `cancel` takes it out at once: nothing cancelled lies about to be
swept later, and the memory of a cancelled timer is free when its owner lets go of it. Four children per node make the
heap half as deep as two would; cancelling and adding timers mostly touches the leaves (a timeout is usually cancelled
long before it is due).
"""

import asyncio

from epoque.core.handle import Handle
from epoque.kernel import clock
from epoque.kernel.masks import NEVER

__all__ = ["TimerHandle", "Timers", "new_timer"]


class TimerHandle(Handle):
    """A callback that waits for its time. Returned by `call_later` and `call_at`."""

    __slots__ = ("deadline", "place", "sequence", "timers", "whence")

    def __init__(self, when, callback, args, loop, context):
        Handle.__init__(self, callback, args, loop, context)
        self.whence = when
        self.deadline = clock.from_seconds(when)
        self.sequence = 0
        self.place = -1
        self.timers = None

    @property
    def __class__(self):
        return asyncio.TimerHandle

    def when(self):
        """The scheduled time, in seconds of the loop's clock."""
        return self.whence

    def cancel(self):
        """Keep the callback from running, and take it out of the timers. Cancelling twice is harmless."""
        Handle.cancel(self)
        if self.timers is not None:
            self.timers.remove(self)

    def describe(self):
        parts = Handle.describe(self)
        parts.insert(2 if self.canceled else 1, f"when={self.whence}")
        return parts

    def __hash__(self):
        return hash(self.whence)

    def __lt__(self, other):
        return self.whence < other.when() if isinstance(other, asyncio.TimerHandle) else NotImplemented

    def __le__(self, other):
        if not isinstance(other, asyncio.TimerHandle):
            return NotImplemented
        return self.whence < other.when() or self == other

    def __gt__(self, other):
        return self.whence > other.when() if isinstance(other, asyncio.TimerHandle) else NotImplemented

    def __ge__(self, other):
        if not isinstance(other, asyncio.TimerHandle):
            return NotImplemented
        return self.whence > other.when() or self == other

    def __eq__(self, other):
        return alike(self, other) if isinstance(other, TimerHandle) else NotImplemented

    @property
    def _when(self):
        return self.whence

    @property
    def _scheduled(self):
        return self.timers is not None


def new_timer(when, callback, args, loop, context):
    """A TimerHandle without the detour through ``__init__``."""
    timer = TimerHandle.__new__(TimerHandle)
    timer.callback = callback
    timer.args = args
    timer.loop = loop
    timer.context = context
    timer.canceled = False
    timer.origin = None
    timer.text = None
    timer.whence = when
    timer.deadline = clock.from_seconds(when)
    timer.sequence = 0
    timer.place = -1
    timer.timers = None
    return timer


class Timers:
    """The heap of timers."""

    __slots__ = ("heap", "sequence")

    def __init__(self):
        self.heap = []
        self.sequence = 0

    def __len__(self):
        return len(self.heap)

    def earliest(self):
        """The next deadline, in nanoseconds of the monotonic clock; NEVER when there is none."""
        if not self.heap:
            return NEVER
        return self.first().deadline

    def first(self):
        return self.heap[0]

    def add(self, timer):
        self.sequence += 1
        timer.sequence = self.sequence
        timer.timers = self
        self.heap.append(timer)
        self.rise(timer, len(self.heap) - 1)

    def remove(self, timer):
        """Take `timer` out, wherever it stands."""
        place = timer.place
        timer.timers = None
        timer.place = -1
        last = self.heap.pop()
        if last is timer:
            return 0
        # The last one fills the gap; it may belong further up or down than the one it follows.
        if before(last, timer):
            self.rise(last, place)
        else:
            self.sink(last, place)

    def expire(self, now, ready):
        """Move every timer whose deadline is not after `now` to the queue `ready`, in order."""
        while self.heap:
            timer = self.first()
            if timer.deadline > now:
                break
            self.remove(timer)
            ready.append(timer)

    def clear(self):
        """Drop all timers, as cancelled ones: their handles outlive a closed loop."""
        heap = self.heap
        self.heap = []
        for timer in heap:
            timer.timers = None
            timer.place = -1

    def rise(self, timer, place):
        heap = self.heap
        while place > 0:
            above = (place - 1) >> 2
            parent = heap[above]
            if not before(timer, parent):
                break
            heap[place] = parent
            parent.place = place
            place = above
        heap[place] = timer
        timer.place = place

    def sink(self, timer, place):
        heap = self.heap
        size = len(heap)
        while True:
            child = 4 * place + 1
            if child >= size:
                break
            best = heap[child]
            for other in range(child + 1, min(child + 4, size)):
                candidate = heap[other]
                if before(candidate, best):
                    best = candidate
            if not before(best, timer):
                break
            gap = best.place
            heap[place] = best
            best.place = place
            place = gap
        heap[place] = timer
        timer.place = place


def before(one, other):
    return one.deadline < other.deadline or (one.deadline == other.deadline and one.sequence < other.sequence)


def alike(one, other):
    return (one.whence, one.callback, one.args, one.canceled) == (
        other.whence,
        other.callback,
        other.args,
        other.canceled,
    )
