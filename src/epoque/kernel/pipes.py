"""Operations on a non-blocking descriptor of any kind: read(2), write(2), writev(2). Interpreted twin.

Pipes, FIFOs, terminals and other character devices; sockets too. Python ignores SIGPIPE.
"""

import os

from epoque.kernel.masks import SEND_PIECES

__all__ = ["read", "write", "writev"]


def read(fd, receiver):
    """What one read() brings, as bytes; empty at the end, None when it would block."""
    return receiver.recv(fd)


def write(fd, data, offset):
    """Write `data` from `offset` on; return the count, or -1 when it would block."""
    try:
        return os.write(fd, memoryview(data)[offset:] if offset else data)
    except BlockingIOError:
        return -1


def writev(fd, pieces, offset):
    """Write a list of buffers, the first from `offset` on, in one system call; return the count, or -1."""
    batch = pieces[:SEND_PIECES]
    if offset:
        batch[0] = memoryview(batch[0])[offset:]
    try:
        return os.writev(fd, batch)
    except BlockingIOError:
        return -1
