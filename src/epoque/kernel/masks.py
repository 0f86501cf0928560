"""The words in which selector and kernel speak of readiness; plain numbers, the same on every system."""

READ = 1  # can be read, or has ended
WRITE = 2  # can be written, or has failed
HANGUP = 4  # the peer sends no more: what is left to read is all there will be; as an interest: nothing else matters
URGENT = 8  # a receive stops short at something urgent, though there may be more behind it

# How a descriptor is watched.
LEVEL = 0
EDGE = 1  # told once per change: for descriptors that are rung and never read, or read until there is no more
EXCLUSIVE = 2  # one of the processes that share a listener is woken, not all (EPOLLEXCLUSIVE)

# Deadlines of Selector.wait(), in nanoseconds of the monotonic clock.
POLL = 0  # do not block
NEVER = 0x7FFF_FFFF_FFFF_FFFF  # no deadline

SEND_PIECES = 256  # buffers of one sendmsg(): 4 KiB of iovecs on the stack; Linux allows 1024 (IOV_MAX)

SMALL = 1024  # bytes of a piece, on average, that is worth copying behind others, to be sent together as one,
JOINED = 16 * 1024  # bytes; as long as they are no more in all

# Datagrams of one recvmmsg() or sendmmsg(), and so of one socket before the others have their turn.
DATAGRAMS = 64
DATAGRAM_SIZE = 64 * 1024  # bytes; no IP datagram is larger, but for jumbograms (RFC 2675), which Linux does not send
LARGEST_DATAGRAM = 256 * 1024  # bytes; of other families; asyncio's figure

TLS_RECORD = 16 * 1024  # bytes of plaintext in one record at most (RFC 8446, 5.1)
