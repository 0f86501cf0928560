#include "stream.h"
#include "common.h"
#include <errno.h>
#include <unistd.h>

#ifdef TLS
#include <openssl/ssl.h>

static SSL_CTX *context;

void stream_setup(int server)
{
    context = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
    check(!context, "SSL_CTX_new");
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (server) {
        check(SSL_CTX_use_certificate_chain_file(context, text("certificate", 0)) != 1, "certificate");
        check(SSL_CTX_use_PrivateKey_file(context, text("key", 0), SSL_FILETYPE_PEM) != 1, "key");
    }
}

static void begin(struct stream *stream, int fd)
{
    stream->fd = fd;
    stream->tls = SSL_new(context);
    check(!stream->tls || !SSL_set_fd(stream->tls, fd), "SSL_new");
}

void stream_connected(struct stream *stream, int fd)
{
    begin(stream, fd);
    check(SSL_connect(stream->tls) != 1, "TLS handshake");
}

void stream_accepted(struct stream *stream, int fd)
{
    begin(stream, fd);
    SSL_set_accept_state(stream->tls);
}

static ssize_t result(struct stream *stream, int done)
{
    if (done > 0)
        return done;
    switch (SSL_get_error(stream->tls, done)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        errno = EAGAIN;
        return -1;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        errno = EPROTO;
        return -1;
    }
}

ssize_t stream_read(struct stream *stream, void *buffer, size_t size)
{
    return result(stream, SSL_read(stream->tls, buffer, (int)size));
}

ssize_t stream_write(struct stream *stream, const void *data, size_t size)
{
    return result(stream, SSL_write(stream->tls, data, (int)size));
}

int stream_pending(const struct stream *stream)
{
    return SSL_pending(stream->tls);
}

void stream_close(struct stream *stream)
{
    SSL_shutdown(stream->tls);
    SSL_free(stream->tls);
    close(stream->fd);
}

#else

void stream_setup(int server)
{
    (void)server;
}

void stream_connected(struct stream *stream, int fd)
{
    stream->fd = fd;
}

void stream_accepted(struct stream *stream, int fd)
{
    stream->fd = fd;
}

ssize_t stream_read(struct stream *stream, void *buffer, size_t size)
{
    return recv(stream->fd, buffer, size, 0);
}

ssize_t stream_write(struct stream *stream, const void *data, size_t size)
{
    return send(stream->fd, data, size, MSG_NOSIGNAL);
}

int stream_pending(const struct stream *stream)
{
    (void)stream;
    return 0;
}

void stream_close(struct stream *stream)
{
    close(stream->fd);
}
#endif
