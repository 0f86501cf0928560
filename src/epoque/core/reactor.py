# cython: nonecheck=False
"""In what order does everything happen? `Reactor`: one turn after the other.

A turn: wait for events (without blocking if anything is ready), deliver them, move due timers to the ready queue, run
exactly the handles that are ready by then, and let transports send what this turn wrote. What the handles schedule
runs in the next turn, after another look at the descriptors: no chain of callbacks starves I/O, and no flood of I/O
starves the timers.

Only KeyboardInterrupt and SystemExit leave a turn. Whatever had not been delivered or run stays first in line.
"""

import asyncio
import sys
from asyncio import events, futures, tasks

from epoque.core import debug, watch
from epoque.core import handle as handles
from epoque.core.scheduler import Scheduler
from epoque.core.signals import Signals, check_handler, check_signal
from epoque.core.watch import Watcher
from epoque.kernel import clock, datagrams, fifo, interp, sockets
from epoque.kernel.masks import NEVER, POLL, READ, WRITE
from epoque.selector import choice

__all__ = ["Reactor"]

# Bytes one recv() can bring; asyncio's figure. The buffer is shared by all transports of a loop.
RECEIVE_SIZE = 256 * 1024


class Reactor(Scheduler):
    """The compiled half of an event loop; `epoque.EventLoop` adds what asyncio's interface needs besides."""

    __slots__ = (
        "current",
        "datagram_receiver",
        "ending",
        "forked",
        "looked",
        "origin_depth",
        "previous_hooks",
        "receiver",
        "selector",
        "signals",
        "stopping",
        "turning",
    )

    def __init__(self):
        Scheduler.__init__(self)
        self.ending = fifo.Fifo()
        self.selector = choice.new_selector()
        self.selector.add(self.queue.wakeup)
        self.signals = Signals(self, self.selector, self.queue)
        self.receiver = None
        self.datagram_receiver = None
        self.stopping = False
        self.turning = False
        self.looked = 0
        self.forked = False
        interp.tell_of_forks(self)
        self.current = None
        self.previous_hooks = None
        self.origin_depth = -1
        self.usable = True

    # Transports.

    def get_receiver(self):
        """The receive buffer, made when the first transport asks for it."""
        if self.receiver is None:
            self.receiver = sockets.Receiver(RECEIVE_SIZE)
        return self.receiver

    def get_datagram_receiver(self):
        """The memory for received datagrams, made when the first transport asks for it."""
        if self.datagram_receiver is None:
            self.datagram_receiver = datagrams.Receiver()
        return self.datagram_receiver

    # Running.

    def run_forever(self):
        """Run until `stop` is called. RuntimeError if this or another loop runs in this thread already."""
        if not self.usable:
            self.check_closed()
        self.check_running()
        try:
            self.enter()
            if fifo.size(self.queue.handles):
                self.first_turn()
            else:
                self.turn()
            while not self.stopping and self.usable:  # a child that a callback forked may close it and come back
                self.turn()
        finally:
            self._run_forever_cleanup()

    def run_until_complete(self, future):
        """Run until `future`, or the task made of a coroutine, is done; return its result or raise its exception."""
        if not self.usable:
            self.check_closed()
        self.check_running()
        ours = not futures.isfuture(future)
        future = tasks.ensure_future(future, loop=self)
        if ours:
            # If the loop is stopped first, RuntimeError says so; no need for "Task was destroyed but it is pending".
            future._log_destroy_pending = False
        future.add_done_callback(_stop_with_future)
        try:
            self.run_forever()
        except BaseException:
            if ours and future.done() and not future.cancelled():
                future.exception()  # it is on its way to the caller; retrieved, it is not logged again
            raise
        finally:
            future.remove_done_callback(_stop_with_future)
        if not future.done():
            raise RuntimeError("Event loop stopped before Future completed.")
        return future.result()

    def stop(self):
        """Let `run_forever` return at the end of the turn."""
        self.stopping = True

    def is_running(self):
        """Whether the loop runs, in whichever thread of this process."""
        return self.thread != 0 and not self.forked

    def enter(self):
        if self.forked:
            self.after_fork()
        if self.debug:
            self._set_coroutine_origin_tracking(True)
        self.previous_hooks = sys.get_asyncgen_hooks()
        self.thread = interp.thread_ident()
        sys.set_asyncgen_hooks(firstiter=self._asyncgen_firstiter_hook, finalizer=self._asyncgen_finalizer_hook)
        events._set_running_loop(self)
        self.signals.enter()
        fifo.hide(self.queue.handles, True)
        self.looked = 0
        self.turning = True

    def leave(self):
        self.turning = False
        self.stopping = False
        fifo.hide(self.queue.handles, False)
        self.thread = 0
        events._set_running_loop(None)
        if self.previous_hooks is not None:
            sys.set_asyncgen_hooks(*self.previous_hooks)
            self.previous_hooks = None
        if self.origin_depth >= 0:
            self._set_coroutine_origin_tracking(False)
        self.signals.leave()  # the last: a handler may run in it, and raise

    def first_turn(self):
        """A turn in which what was put in line before the run goes before events.

        A task counts on its first step being done before anything reaches its protocols. Later on nobody can tell.
        """
        watcher = self if self.debug else None
        began = clock.monotonic_ns()  # a timer that comes due while these run waits for the next turn, as always
        self.selector.wait(POLL)
        self.queue.run(watcher, fifo.size(self.queue.handles))
        waiting = fifo.size(self.queue.handles)
        self.look_around(began)
        fresh = fifo.size(self.queue.handles) - waiting
        if fresh > 0:
            self.queue.put_back(waiting)
            self.queue.run(watcher, fresh)
        if fifo.size(self.ending):
            self.end_turn()

    def turn(self):
        if self.forked:
            self.after_fork()
        if not (self.stopping or fifo.size(self.queue.handles)):
            self.sleep()
            self.look_around(POLL)
        elif clock.ticks() - self.looked >= clock.QUIET:  # a counter that went back makes it a large number
            self.selector.wait(POLL)
            self.look_around(POLL)
        if fifo.size(self.queue.handles):
            self.queue.run(self if self.debug else None, fifo.size(self.queue.handles))
        if fifo.size(self.ending):
            self.end_turn()

    def look_around(self, now):
        """Deliver the events that were fetched, and put in line the timers that are due `now`; POLL: after that."""
        self.looked = clock.ticks()
        if self.selector.position < self.selector.count:
            self.selector.dispatch()
        if self.timers.heap.count:
            self.timers.expire(clock.monotonic_ns() if now == POLL else now, self.queue.handles)

    def sleep(self):
        """Wait for the next event or deadline, with the signals that have handlers held back."""
        held, turning = False, self.turning
        try:
            if self.signals.door is not None or not self.signals.settled:
                held = self.signals.hold()
            self.queue.idle = True
            self.turning = False  # what another thread writes now must not wait until something ends the sleep
            interp.check_signals()
            if self.stopping or fifo.size(self.ending) or fifo.size(self.queue.handles):
                self.selector.wait(POLL)
            else:
                deadline = NEVER
                if self.timers.heap.count:
                    deadline = self.timers.earliest()
                    if deadline <= clock.monotonic_ns():
                        deadline = POLL  # one that has passed needs no alarm
                self.selector.wait(deadline)
        finally:
            self.queue.idle = False
            self.turning = turning
            if held:
                self.signals.release()

    def run_watched(self, handle):
        """Run `handle` in debug mode: report it if it takes too long."""
        start = clock.monotonic_ns()
        self.current = handle
        try:
            handle._run()
        finally:
            self.current = None
        seconds = (clock.monotonic_ns() - start) / 1e9
        if seconds >= self.slow_callback_duration:
            debug.report_slow(handle, seconds)
        handle = None  # as in interp.call

    def end_turn(self):
        """Call the sources that asked for it: transports send what they were given in this turn."""
        while fifo.size(self.ending):  # it grows meanwhile
            source = self.ending.popleft()
            source.on_turn_end()

    def after_fork(self):
        """This process is a child: nothing that the parent's loop uses may be touched from here on."""
        self.forked = False
        self.selector.remove(self.queue.wakeup)
        self.queue.wakeup.reopen()
        self.selector.add(self.queue.wakeup)
        self.signals.after_fork()

    def _about_to_fork(self):
        if self.turning and self.thread == interp.thread_ident():
            told = 0
            while told < fifo.size(self.ending):  # TLS adds the transport below itself
                source = fifo.items(self.ending)[told]
                told += 1
                source.before_fork()

    def _forked(self):
        self.forked = True
        self.selector._forked()

    def close(self):
        """Drop all that is scheduled, and the loop's descriptors. It must not run; closing twice is harmless."""
        if self.is_running():
            raise RuntimeError("Cannot close a running event loop")
        if not self.usable:
            return
        if self.debug:
            debug.logger.debug("Close %r", self)
        if self.forked:
            self.after_fork()
        self.usable = False
        self.queue.handles.clear()
        self.ending.clear()
        self.timers.clear()
        self.signals.close()
        self.queue.wakeup.close()
        self.selector.close()

    # Descriptors.

    def add_reader(self, fd, callback, *args):
        """Call ``callback(*args)`` whenever `fd` (a descriptor, or an object with ``fileno()``) can be read.

        An earlier callback is replaced. ValueError for what is no descriptor, RuntimeError if a transport uses it,
        OSError where the kernel cannot watch it (EBADF; EPERM for regular files, epoll_ctl(2)).
        """
        self.watch(fd, READ, callback, args, True)

    def remove_reader(self, fd):
        """Stop calling the reader of `fd`; returns whether there was one."""
        return self.unwatch(self.bare_source(fd), READ, None)

    def add_writer(self, fd, callback, *args):
        """Call ``callback(*args)`` whenever `fd` can be written. As `add_reader`."""
        self.watch(fd, WRITE, callback, args, True)

    def remove_writer(self, fd):
        """Stop calling the writer of `fd`; returns whether there was one."""
        return self.unwatch(self.bare_source(fd), WRITE, None)

    def _add_reader(self, fd, callback, *args):
        return self.watch(fd, READ, callback, args, False)

    def _remove_reader(self, fd, handle=None):
        return self.unwatch(self.find_source(fd), READ, handle)

    def _add_writer(self, fd, callback, *args):
        return self.watch(fd, WRITE, callback, args, False)

    def _remove_writer(self, fd, handle=None):
        return self.unwatch(self.find_source(fd), WRITE, handle)

    def _ensure_fd_no_transport(self, fd):
        self.bare_source(fd)

    def _readable(self, sock):
        """A future that is done when `sock` can be read. Nobody need be told if it is given up."""
        return self.wait_for(sock, READ)

    def _writable(self, sock):
        """A future that is done when `sock` can be written, likewise."""
        return self.wait_for(sock, WRITE)

    def wait_for(self, sock, direction):
        if not self.usable:
            self.check_closed()
        watcher = self.get_watcher(watch.fileno(sock), True)
        waiter = self.create_future()
        watcher.set(direction, waiter)
        return waiter

    def watch(self, fileobj, direction, callback, args, bare):
        if not self.usable:
            self.check_closed()
        watcher = self.get_watcher(watch.fileno(fileobj), bare)
        handle = handles.new_handle(callback, args, self, interp.copy_context())
        watcher.set(direction, handle)
        watcher.fileobj = fileobj
        return handle

    def get_watcher(self, fd, bare):
        """The watcher of the file that has the number now. RuntimeError if it is used; `bare`: by a transport, too."""
        source = self.selector.find(fd)
        if isinstance(source, Watcher):
            if self.selector.verify(source):
                return source
        elif source is not None and (bare or not isinstance(source, asyncio.BaseTransport)):
            watch.refuse(source)
        return Watcher(fd, self.selector, self.queue)

    def unwatch(self, source, direction, handle):
        if not isinstance(source, Watcher):
            return False
        watcher = source
        return (handle is None or handle is watcher.get(direction)) and watcher.clear(direction)

    def bare_source(self, fileobj):
        """`find_source`; RuntimeError if that is a transport."""
        source = self.find_source(fileobj)
        if source is not None and not isinstance(source, Watcher) and isinstance(source, asyncio.BaseTransport):
            watch.refuse(source)
        return source

    def find_source(self, fileobj):
        """The source of a descriptor, or of an object that may have been closed since it was added."""
        if not self.usable:
            return None
        try:
            return self.selector.find(watch.fileno(fileobj))
        except OverflowError:
            return None
        except ValueError:
            for source in self.selector.table:
                if isinstance(source, Watcher):
                    watcher = source
                    if watcher.fileobj is fileobj:
                        return watcher
            raise

    # Signals.

    def add_signal_handler(self, sig, callback, *args):
        """Call ``callback(*args)`` in the loop when signal number `sig` comes. Main thread only.

        TypeError for a coroutine function or a `sig` that is no int, ValueError for a number that is no signal,
        RuntimeError outside the main thread and for signals that cannot be caught.
        """
        check_handler(sig, callback)
        self.check_closed()
        if self.forked:
            self.after_fork()
        self.signals.add(sig, callback, args)

    def remove_signal_handler(self, sig):
        """Restore the default action of `sig`; returns whether there was a handler."""
        check_signal(sig)
        if not self.usable:
            return False
        if self.forked:
            self.after_fork()
        return self.signals.remove(sig)

    # Debug mode.

    def _current_origin(self):
        return None if self.current is None else self.current.origin

    def set_debug(self, enabled):
        """Switch debug mode: slow callbacks are logged, calls from the wrong thread refused, origins kept."""
        self.debug = bool(enabled)
        if self.is_running():
            self.call_soon_threadsafe(self._set_coroutine_origin_tracking, self.debug)

    def _set_coroutine_origin_tracking(self, enabled):
        if enabled == (self.origin_depth >= 0):
            return
        if enabled:
            self.origin_depth = debug.track_coroutine_origins(None)
        else:
            debug.track_coroutine_origins(self.origin_depth)
            self.origin_depth = -1

    def check_running(self):
        if self.thread != 0 and not self.forked:
            raise RuntimeError("This event loop is already running")
        if events._get_running_loop() is not None:
            raise RuntimeError("Cannot run the event loop while another loop is running")

    # Names under which asyncio's own loop is inspected and driven, as in Scheduler.

    def _run_forever_setup(self):
        self.check_closed()
        self.check_running()
        self.enter()

    def _run_once(self):
        """One turn, in a run or outside."""
        self.check_closed()
        self.turn()

    def _run_forever_cleanup(self):
        if self.signals is None:  # never initialised
            self.check_closed()
        try:
            if fifo.size(self.ending):
                self.end_turn()
        finally:
            self.leave()

    def _check_signal(self, sig):
        check_signal(sig)

    def _handle_signal(self, sig):
        if self.usable:
            self.signals.deliver(sig)

    @property
    def _signal_handlers(self):
        return dict(self.signals.handlers) if self.usable else {}

    @property
    def _transports(self):
        sources = self.selector.table if self.usable else ()
        return {fd: source for fd, source in enumerate(sources) if isinstance(source, asyncio.BaseTransport)}

    def _check_running(self):
        self.check_running()

    @property
    def _current_handle(self):
        return self.current

    @property
    def _stopping(self):
        return self.stopping

    @_stopping.setter
    def _stopping(self, value):  # sanic takes a stop() back before it cleans up
        self.stopping = value

    @property
    def _old_agen_hooks(self):
        return self.previous_hooks

    @property
    def _coroutine_origin_tracking_enabled(self):
        return self.origin_depth >= 0

    @property
    def _coroutine_origin_tracking_saved_depth(self):
        return self.origin_depth if self.origin_depth >= 0 else None


def _stop_with_future(future):
    if not future.cancelled() and isinstance(future.exception(), (SystemExit, KeyboardInterrupt)):
        return  # it leaves run_forever by itself
    futures._get_loop(future).stop()
