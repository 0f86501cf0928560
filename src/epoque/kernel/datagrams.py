"""Operations on a non-blocking datagram socket, through the methods of `socket.socket`. Interpreted twin."""

import errno
import os
import socket

from epoque.kernel.masks import DATAGRAM_SIZE, DATAGRAMS, LARGEST_DATAGRAM

__all__ = ["Receiver", "is_name", "send"]


class Receiver:
    """Where a loop receives datagrams: what waits, each as bytes of exactly its length."""

    __slots__ = ()

    def recv(self, sock, fd, family, most):
        """What waits, at most `most`: pairs (data, address), empty when it would block; errors as OSError.

        The socket's descriptor is `fd`, the most that can be asked for `DATAGRAMS`. A datagram that was too large, and
        cut off, is such an error: EMSGSIZE.
        """
        found = []
        try:
            if family in (socket.AF_INET, socket.AF_INET6):
                while len(found) < most:
                    found.append(sock.recvfrom(DATAGRAM_SIZE))
            else:
                while len(found) < min(most, DATAGRAMS * DATAGRAM_SIZE // LARGEST_DATAGRAM):
                    data, _, flags, address = sock.recvmsg(LARGEST_DATAGRAM)
                    found.append(_error(errno.EMSGSIZE) if flags & socket.MSG_TRUNC else (data, address))
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as exc:
            found.append(exc)
        return found


def send(sock, fd, family, pairs, most, connected):
    """Send the first of the pairs (data, address); return how many are gone, or -1 if it would block.

    A connected socket sends to its peer, whatever the addresses. What is raised is about the first pair.
    """
    if not pairs or most < 1:
        return 0
    data, address = pairs[0]
    try:
        if connected:
            sock.send(data)
        else:
            sock.sendto(data, address)
    except (BlockingIOError, InterruptedError):
        return -1
    return 1


def is_name(family, address):
    """Would the module `socket` have to look up the host of this address, and block, to send to it?"""
    if family not in (socket.AF_INET, socket.AF_INET6) or not isinstance(address, tuple):
        return False
    if not 2 <= len(address) <= (2 if family == socket.AF_INET else 4):
        return False
    host, *numbers = address
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if not isinstance(host, str) or host in ("", "<broadcast>") or not all(type(number) is int for number in numbers):
        return False
    for kind, text in ((socket.AF_INET, host), (socket.AF_INET6, host.partition("%")[0])):
        try:
            socket.inet_pton(kind, text)
        except (OSError, ValueError):
            continue
        return False
    return True


def _error(code):
    return OSError(code, os.strerror(code))
