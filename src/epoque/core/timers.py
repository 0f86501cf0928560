"""What is due next? Timers in a heap, ordered by deadline and, for equal ones, by the order of their making.

`cancel` takes a timer out at once: nothing cancelled lies about to be swept later, and the memory of a cancelled timer
is free when its owner lets go of it.
"""

import asyncio

from epoque.core.handle import Handle
from epoque.kernel import clock, freelist, heap
from epoque.kernel.masks import NEVER

__all__ = ["TimerHandle", "Timers"]


class TimerHandle(Handle):
    """A callback that waits for its time. Returned by `call_later` and `call_at`."""

    __slots__ = ("given", "heap", "moment", "ticket")

    def __init__(self, when, callback, args, loop, context):
        Handle.__init__(self, callback, args, loop, context)
        clock.from_seconds(when)  # refuses what is no time
        self.moment = self.given = when
        self.ticket = 0
        self.heap = None

    @property
    def __class__(self):
        return asyncio.TimerHandle

    def when(self):
        """The scheduled time, in seconds of the loop's clock."""
        return self.moment if self.given is None else self.given

    def cancel(self):
        """Keep the callback from running, and take it out of the timers. Cancelling twice is harmless."""
        self.drop()
        if self.heap is not None:
            self.heap.remove(self.ticket)
            self.heap = None

    def describe(self):
        parts = Handle.describe(self)
        parts.insert(2 if self.canceled else 1, f"when={self.when()}")
        return parts

    def __hash__(self):
        return hash(self.moment)

    def __lt__(self, other):
        return self.moment < other.when() if isinstance(other, asyncio.TimerHandle) else NotImplemented

    def __le__(self, other):
        if not isinstance(other, asyncio.TimerHandle):
            return NotImplemented
        return self.moment < other.when() or self == other

    def __gt__(self, other):
        return self.moment > other.when() if isinstance(other, asyncio.TimerHandle) else NotImplemented

    def __ge__(self, other):
        if not isinstance(other, asyncio.TimerHandle):
            return NotImplemented
        return self.moment > other.when() or self == other

    def __eq__(self, other):
        return alike(self, other) if isinstance(other, TimerHandle) else NotImplemented

    @property
    def _when(self):
        return self.when()

    @property
    def _scheduled(self):
        return self.heap is not None


class Timers:
    """What waits for its time."""

    __slots__ = ("heap",)

    def __init__(self):
        self.heap = heap.Heap()

    def __len__(self):
        return self.heap.count

    def earliest(self):
        """The next deadline, in nanoseconds of the monotonic clock; NEVER when there is none."""
        return self.heap.first_key() if self.heap.count else NEVER

    def add(self, moment, given, callback, args, loop, context):
        """A TimerHandle, without the detour through ``__init__``, that waits from now on."""
        timer = TimerHandle.__new__(TimerHandle)
        timer.callback = callback
        timer.args = args
        timer.loop = loop
        timer.context = context
        timer.canceled = False
        timer.origin = None
        timer.moment = moment
        timer.given = given
        timer.ticket = self.heap.push(timer, clock.from_seconds(moment))
        timer.heap = self.heap
        return timer

    def expire(self, now, ready):
        """Move every timer whose deadline is not after `now` to the queue `ready`, in order."""
        timer = self.heap.pop(now)
        while timer is not None:
            timer.heap = None
            ready.append(timer)
            timer = self.heap.pop(now)

    def clear(self):
        """Drop all timers, as cancelled ones: their handles outlive a closed loop."""
        for timer in self.heap.items():
            timer.heap = None
        self.heap.clear()


def alike(one, other):
    return (one.moment, one.callback, one.args, one.canceled) == (
        other.moment,
        other.callback,
        other.args,
        other.canceled,
    )


freelist.keep(TimerHandle)
