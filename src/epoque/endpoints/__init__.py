"""Which coroutine functions of the loop make connections, servers and answers to look-ups?

Every function takes the loop first, so `EventLoop` makes a method of it by assignment. They run once per connection or
per call and are never compiled: tracebacks and debuggers show them, and `inspect.iscoroutine` holds for their results.

What they need of the loop beyond asyncio's interface:

`_resolver`                           the pool of the look-ups, None until the first one
`_daemons`                            whether its threads may be daemons
`_ensure_fd_no_transport(fd)`         raises RuntimeError when a transport uses the descriptor
`_readable(sock)`                     a future that is done when the socket can be read, and may be given up without a
`_writable(sock)`                     word; RuntimeError when a transport uses the descriptor
"""
