/* macOS: no struct mmsghdr, no MSG_NOSIGNAL (before macOS 14), SO_NOSIGPIPE. Source: bsd/sys/socket.h of xnu. */

#ifndef EPOQUE_TESTS_SYS_SOCKET_H
#define EPOQUE_TESTS_SYS_SOCKET_H

#define mmsghdr linux_mmsghdr
#include_next <sys/socket.h>
#undef mmsghdr
#undef MSG_NOSIGNAL
#define SO_NOSIGPIPE 0x1022

#endif
