"""The part of asyncssh's suite that uses connections: agents, channels, forwarding, processes, streams, SFTP.

Left out are modules about cryptography and parsing, and those that spend minutes on making keys for a few
connections: test_connection_auth, test_public_key, test_sk.
"""

from __future__ import annotations

from .project import Project

MODULES = ("agent", "channel", "compression", "connection", "editor", "forward", "logging", "process", "stream")

SUITE = Project(
    name="asyncssh",
    version="2.24.1",
    extras="bcrypt,ifaddr",
    requirements=("aiofiles", "setuptools"),
    paths=tuple(f"tests/test_{module}.py" for module in (*MODULES, "subprocess", "tuntap", "x11")),
    hidden=("asyncssh",),
    debian=("openssh-client", "openssl"),
)
