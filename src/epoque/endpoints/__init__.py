"""Which coroutine functions of the loop make connections, servers and answers to look-ups?

Every function takes the loop first, so `EventLoop` makes a method of it by assignment. They run once per connection or
per call and are never compiled: tracebacks and debuggers show them, and `inspect.iscoroutine` holds for their results.

What they need of the loop beyond asyncio's interface:

`_resolver`                           the pool of the look-ups, None until the first one
`_daemons`                            whether its threads may be daemons
`_ensure_fd_no_transport(fd)`         raises RuntimeError when a transport uses the descriptor
`_add_reader(fd, callback, *args)`    registers, cancels an earlier handle of the descriptor, returns the handle
`_add_writer(fd, callback, *args)`
`_remove_reader(fd, handle=None)`     deregisters (only if it is still `handle`), cancels the handle, tells whether it
`_remove_writer(fd, handle=None)`     did; False on a closed loop
"""
