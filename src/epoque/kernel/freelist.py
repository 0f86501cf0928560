"""Where does the memory of short-lived objects come from? The interpreter's own allocator. Compiled: see the twin."""

__all__ = ["keep"]


def keep(cls):
    """Let the memory of the instances of `cls` be used again for the next ones; interpreted, nothing is to be done."""
