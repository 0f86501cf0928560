# cython: nonecheck=False
"""What runs in this turn? The queue of ready handles, which any thread may put into."""

from epoque.core.handle import ThreadSafeHandle
from epoque.core.wakeup import Wakeup
from epoque.kernel import fifo, interp

__all__ = ["ReadyQueue"]


class ReadyQueue:
    """Handles in the order in which they run."""

    __slots__ = ("handles", "idle", "wakeup")

    def __init__(self):
        self.handles = fifo.Fifo()
        self.idle = False
        self.wakeup = Wakeup()

    def put_threadsafe(self, handle):
        """Put `handle` in line from wherever we are, and wake the loop if it sleeps.

        The loop says that it is idle and then looks at the queue; we put into the queue and then look whether it is
        idle. One of the two sees the other, and one ring per sleep is enough.
        """
        self.handles.append(handle)
        if self.idle:
            self.idle = False
            self.wakeup.ring()

    def put_back(self, count):
        """Let the first `count` handles go behind all others."""
        for _ in range(min(count, fifo.size(self.handles))):
            self.handles.append(self.handles.popleft())

    def run(self, watcher, count):
        """Run the first `count` handles, through ``watcher.run_watched`` if there is one.

        What they make ready waits for the next turn. If an exception leaves one, those behind it stay first in line.
        """
        handles = self.handles
        for _ in range(count):
            if not fifo.size(handles):  # a child forked by one of them has closed the loop
                break
            handle = handles.popleft()
            if handle.canceled:
                continue
            if watcher is not None:
                watcher.run_watched(handle)
            elif type(handle) is ThreadSafeHandle:
                handle.run()
            else:  # Handle.run, without the call
                exc = interp.attempt(handle.context, handle.callback, handle.args)
                if exc is not None:
                    handle.report(exc)
        handle = exc = None  # as in interp.call
