cdef extern from *:
    """
    #include <sys/types.h>
    #include <sys/socket.h>
    /* macOS has no recvmmsg() and sendmmsg(). */
    #if defined(__APPLE__) || defined(EPOQUE_PORTABLE)
    #define EPOQUE_ONE_BY_ONE 1
    #endif
    #ifdef __APPLE__
    struct mmsghdr {
        struct msghdr msg_hdr;
        unsigned int msg_len;
    };
    #endif
    """

cdef extern from "<sys/socket.h>" nogil:
    ctypedef unsigned int socklen_t
    struct iovec:
        void *iov_base
        size_t iov_len
    struct msghdr:
        void *msg_name
        socklen_t msg_namelen
        iovec *msg_iov
        size_t msg_iovlen
        void *msg_control
        size_t msg_controllen
        int msg_flags
    struct mmsghdr:
        msghdr msg_hdr
        unsigned int msg_len


cdef class Receiver:
    cdef char *_buffer  # of all slots
    cdef mmsghdr *_messages  # one for each slot
    cdef iovec *_vectors  # one for each slot
    cdef char *_names  # a sockaddr_storage for each slot
    cdef Py_ssize_t _slot  # bytes of a slot; 0: to be laid out
    cdef list _known  # addresses that were received from,
    cdef char *_known_names  # as the kernel gave them,
    cdef socklen_t _known_lengths[64]  # and their lengths

    cdef list recv(self, object sock, int fd, int family, Py_ssize_t most)


cdef Py_ssize_t send(object sock, int fd, int family, list pairs, Py_ssize_t most, bint connected) except -2
cdef bint is_name(int family, object address) except -1
