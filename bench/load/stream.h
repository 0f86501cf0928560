/* A byte stream: a socket, or with -DTLS a TLS connection over one (OpenSSL). Errors as in read(2) and write(2). */
#ifndef STREAM_H
#define STREAM_H
#include <sys/types.h>

struct stream {
    int fd;
    void *tls;
};

void stream_setup(int server); /* once; a server takes the options certificate= and key= (PEM files) */
void stream_connected(struct stream *stream, int fd); /* of a client; does the handshake, blocking */
void stream_accepted(struct stream *stream, int fd);  /* of a server; the first read does the handshake */
ssize_t stream_read(struct stream *stream, void *buffer, size_t size);
ssize_t stream_write(struct stream *stream, const void *data, size_t size);
int stream_pending(const struct stream *stream); /* bytes that can be read though the socket is silent */
void stream_close(struct stream *stream);
#endif
