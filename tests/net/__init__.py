"""Streams over TCP and Unix sockets, servers, host names and the sock_* methods, as asyncio promises them."""
