"""When must a protocol stop writing? Water marks (no I/O here)."""

from epoque.kernel import interp

__all__ = ["FlowControl"]

DEFAULT_HIGH = 64 * 1024  # bytes; asyncio's figure

BEYOND = 1 << 62  # bytes; more than there can be


class FlowControl:
    """Pauses a protocol's writing when more than `high` bytes wait, resumes it when no more than `low` do.

    Each crossing is told once. What ``pause_writing`` or ``resume_writing`` raise goes to the exception handler.
    """

    __slots__ = ("high", "low", "most", "paused", "rest")

    def __init__(self):
        self.paused = False
        self.high = self.most = DEFAULT_HIGH
        self.low = self.rest = DEFAULT_HIGH // 4

    def set_limits(self, high, low):
        """Set the marks, in bytes; one that is None follows from the other. ValueError unless high >= low >= 0."""
        if high is None:
            high = DEFAULT_HIGH if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high ({high!r}) must be >= low ({low!r}) must be >= 0")
        self.high = high
        self.low = low
        self.most = min(high, BEYOND)
        self.rest = min(low, BEYOND)

    def filled(self, size, transport, protocol, loop):
        """`size` bytes wait, after more came in: tell the protocol on the spot, as part of its own ``write()``."""
        if size > self.most and not self.paused:
            self.paused = True
            try:
                protocol.pause_writing()
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as exc:
                report(exc, "pause_writing", transport, protocol, loop)

    def drained(self, size, transport, protocol, loop, context):
        """`size` bytes wait, after some left: tell the protocol in the connection's context (None: this is it)."""
        if self.paused and size <= self.rest:
            self.paused = False
            try:
                if context is None:
                    protocol.resume_writing()
                else:
                    interp.call(context, protocol.resume_writing, ())
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as exc:
                report(exc, "resume_writing", transport, protocol, loop)


def report(exc, name, transport, protocol, loop):
    loop.call_exception_handler(
        {"message": f"protocol.{name}() failed", "exception": exc, "transport": transport, "protocol": protocol}
    )
