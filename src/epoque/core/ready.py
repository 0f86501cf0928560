"""What runs in this turn? The queue of ready handles, and the door through which other threads put theirs in line.

Two lists are swapped each turn: the handles that were ready at its start run, what they schedule waits in the other list.
"""

from collections import deque

from epoque.core.wakeup import Wakeup

__all__ = ["ReadyQueue"]


class ReadyQueue:
    """Handles in the order in which they run."""

    __slots__ = ("handles", "idle", "remote", "spare", "wakeup")

    def __init__(self):
        self.handles = []
        self.spare = []
        self.remote = deque()
        self.idle = False
        self.wakeup = Wakeup()

    def put(self, handle):
        """Put `handle` in line, behind what other threads have put in line before."""
        if self.remote:
            self.collect()
        self.handles.append(handle)

    def put_threadsafe(self, handle):
        """Put `handle` in line from wherever we are, and wake the loop if it sleeps.

        The loop says that it is idle and then looks at the queue; we put into the queue and then look whether it is idle. One of
        the two sees the other, and one ring per sleep is enough.
        """
        self.remote.append(handle)
        if self.idle:
            self.idle = False
            self.wakeup.ring()

    def waiting(self):
        """Whether anything is to run."""
        return bool(self.handles) or bool(self.remote)

    def collect(self):
        """Take in what other threads, and signals, have put in line."""
        for _ in range(len(self.remote)):
            self.handles.append(self.remote.popleft())

    def run(self, watcher):
        """Run the handles that are ready now, through ``watcher.run_watched`` if there is one.

        If an exception leaves a handle, those behind it stay first in line.
        """
        todo = self.handles
        self.handles = self.spare
        self.spare = todo
        count = len(todo)
        position = 0
        try:
            while position < count:
                handle = todo[position]
                todo[position] = None  # what a handle holds is free as soon as it has run
                position += 1
                if handle.canceled:
                    continue
                if watcher is None:
                    handle.run()
                else:
                    watcher.run_watched(handle)
        finally:
            if position < count:
                self.handles[:0] = todo[position:]
            todo.clear()

    def clear(self):
        self.handles.clear()
        self.remote.clear()
