"""A plugin for suites that take it that localhost stands for ::1 as well.

Where the hosts file has no such line, these suites shall find that there is no IPv6, which they know how to skip.
"""

from __future__ import annotations

import socket

try:
    socket.getaddrinfo("localhost", 0, socket.AF_INET6)
except socket.gaierror:
    socket.has_ipv6 = False
