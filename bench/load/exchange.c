/* The load generator of everything that answers requests on a byte stream.
 *
 *   exchange address=PORT|/PATH kind=echo|http|websocket|fixed connections=N depth=N size=BYTES path=/URL
 *            answer=BYTES warm=SECONDS seconds=SECONDS
 *
 * Each connection has depth requests under way and sends the next when one answer is complete. After the warm-up it
 * waits, with nothing under way, for a line on standard input: the server's CPU time can be read before and after the
 * measured phase, with exactly the counted requests in between. Prints {} when ready, then the result. Fails if an
 * answer is not the expected one, or none comes for five seconds. Linux.
 *
 *   echo       the answer is the request: size bytes, the last of them a newline
 *   websocket  the same as the payload of one binary message, after an opening handshake for path
 *   http       GET path; all answers are as long as the first one and have status 200
 *   fixed      size bytes are answered by answer bytes, whatever they are
 */
#define _GNU_SOURCE
#include "common.h"
#include "stream.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { EVENTS = 256, BUFFER = 64 * 1024, HEADER = 16 * 1024 };

struct connection {
    struct stream stream;
    size_t owed;     /* bytes of requests to be sent yet */
    size_t sent;     /* position in the stream of requests, modulo one request */
    size_t received; /* position in the answer to the oldest request */
    int64_t *since;  /* ring of the times at which the requests under way began */
    int oldest, under_way;
    int writing; /* EPOLLOUT is on: the socket did not take everything */
};

struct message {
    char *bytes; /* repeated depth + 1 times, so that any piece of the stream is contiguous */
    size_t size;
    size_t compared; /* how many bytes from the start of a message are checked */
};

static int epoll, depth;
static struct message request, answer;
static int64_t requests, total_under_way;

static struct message repeated(const void *bytes, size_t size, size_t compared)
{
    struct message message = {.bytes = allocate(size * (depth + 1)), .size = size, .compared = compared};
    for (int i = 0; i <= depth; i++)
        memcpy(message.bytes + i * size, bytes, size);
    return message;
}

static char *payload(size_t size)
{
    char *bytes = allocate(size);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)('0' + (i * 31 + i / 256) % 64);
    bytes[size - 1] = '\n';
    return bytes;
}

static void open_connection(struct stream *stream, const char *address)
{
    struct sockaddr_storage name;
    socklen_t length = resolve(address, &name);
    int fd = opened(address, SOCK_STREAM);
    check(connect(fd, (struct sockaddr *)&name, length) < 0, "connect");
    stream_connected(stream, fd);
}

static void send_all(struct stream *stream, const char *data, size_t size)
{
    check(stream_write(stream, data, size) != (ssize_t)size, "write");
}

/* Read an HTTP header, and not a byte more. */
static void read_header(struct stream *stream, char *header)
{
    size_t size = 0;
    while (size < HEADER - 1 && (size < 4 || memcmp(header + size - 4, "\r\n\r\n", 4)))
        check(stream_read(stream, header + size++, 1) != 1, "HTTP header");
    header[size] = 0;
}

/* One blocking request shows how long the answers are. */
static void learn_http(const char *address)
{
    char text_[512], header[HEADER];
    struct stream stream;
    snprintf(text_, sizeof text_, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", text("path", "/"));
    request = repeated(text_, strlen(text_), 0);
    open_connection(&stream, address);
    send_all(&stream, text_, strlen(text_));
    read_header(&stream, header);
    stream_close(&stream);
    const char *length = strcasestr(header, "\r\ncontent-length:");
    if (strncmp(header, "HTTP/1.1 200", 12) || !length)
        fail("the answer has not status 200 and a Content-Length");
    size_t size = strlen(header) + strtoul(length + 17, NULL, 10);
    char *expected = allocate(size);
    memcpy(expected, header, 12);
    answer = repeated(expected, size, 12);
}

/* A frame with a binary message (RFC 6455, section 5.2); a client's are masked: here with zero, which changes nothing. */
static struct message frame(const char *bytes, size_t size, int masked)
{
    unsigned char *whole = allocate(size + 14);
    size_t head = 2;
    whole[0] = 0x82;
    if (size < 126) {
        whole[1] = size;
    } else {
        int width = size < 65536 ? 2 : 8;
        whole[1] = width == 2 ? 126 : 127;
        for (int i = 0; i < width; i++)
            whole[2 + i] = (uint64_t)size >> 8 * (width - 1 - i);
        head += width;
    }
    if (masked) {
        whole[1] |= 0x80;
        head += 4;
    }
    memcpy(whole + head, bytes, size);
    return repeated(whole, head + size, head + size);
}

static void upgrade(struct stream *stream)
{
    char text_[512], header[HEADER];
    snprintf(text_, sizeof text_,
             "GET %s HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n",
             text("path", "/"));
    send_all(stream, text_, strlen(text_));
    read_header(stream, header);
    if (strncmp(header, "HTTP/1.1 101", 12))
        fail("the server does not upgrade to WebSocket");
}

static void prepare(const char *kind, const char *address)
{
    size_t size = number("size", 1024);
    if (!strcmp(kind, "http")) {
        learn_http(address);
    } else if (!strcmp(kind, "websocket")) {
        request = frame(payload(size), size, 1);
        answer = frame(payload(size), size, 0);
    } else if (!strcmp(kind, "fixed")) {
        size_t expected = number("answer", size);
        request = repeated(payload(size), size, 0);
        answer = repeated(allocate(expected), expected, 0);
    } else {
        request = answer = repeated(payload(size), size, size);
    }
}

static void push(struct connection *c)
{
    while (c->owed) {
        size_t room = request.size * (depth + 1) - c->sent, wanted = c->owed < room ? c->owed : room;
        ssize_t sent = stream_write(&c->stream, request.bytes + c->sent, wanted);
        if (sent < 0) {
            check(errno != EAGAIN, "send");
            break;
        }
        c->owed -= sent;
        c->sent = (c->sent + sent) % request.size;
    }
    int writing = c->owed > 0;
    if (writing != c->writing)
        watch(epoll, EPOLL_CTL_MOD, c->stream.fd, writing ? EPOLLIN | EPOLLOUT : EPOLLIN, c);
    c->writing = writing;
}

static void begin(struct connection *c, int count)
{
    int64_t time = now();
    for (int i = 0; i < count; i++)
        c->since[(c->oldest + c->under_way++) % depth] = time;
    total_under_way += count;
    c->owed += count * request.size;
    push(c);
}

static void compare(const struct connection *c, const char *bytes, size_t size)
{
    size_t start = c->received;
    while (size) {
        size_t piece = answer.size - start < size ? answer.size - start : size;
        size_t checked = start >= answer.compared ? 0 : answer.compared - start < piece ? answer.compared - start : piece;
        if (memcmp(bytes, answer.bytes + start, checked))
            fail("an answer is not what it should be");
        bytes += piece;
        size -= piece;
        start = 0;
    }
}

/* Read once; how many answers became complete, -1 if there was nothing to read. */
static int pull(struct connection *c)
{
    static char buffer[BUFFER];
    ssize_t got = stream_read(&c->stream, buffer, sizeof buffer);
    if (got < 0 && errno == EAGAIN)
        return -1;
    check(got < 0, "recv");
    if (got == 0)
        fail("the server closed a connection");
    compare(c, buffer, got);
    c->received += got;
    int complete = c->received / answer.size;
    c->received %= answer.size;
    if (complete > c->under_way)
        fail("more answers than requests");
    int64_t time = now();
    for (int i = 0; i < complete; i++) {
        note(time - c->since[c->oldest]);
        c->oldest = (c->oldest + 1) % depth;
    }
    c->under_way -= complete;
    total_under_way -= complete;
    requests += complete;
    return complete;
}

static void serve(struct connection *c, uint32_t events, int64_t end)
{
    if (events & EPOLLOUT)
        push(c);
    if (!(events & ~EPOLLOUT))
        return;
    do {
        int complete = pull(c);
        if (complete > 0 && now() < end)
            begin(c, complete);
    } while (stream_pending(&c->stream));
}

/* Load for so many seconds, then until nothing is under way; the seconds it took. */
static double run(struct connection *connections, int count, double seconds)
{
    struct epoll_event events[EVENTS];
    forget();
    requests = 0;
    int64_t start = now(), end = start + (int64_t)(seconds * 1e9);
    for (int i = 0; i < count; i++)
        begin(&connections[i], depth);
    while (total_under_way) {
        int ready = epoll_wait(epoll, events, EVENTS, PATIENCE_MS);
        if (ready == 0)
            fail("no answer for five seconds");
        for (int i = 0; i < ready; i++)
            serve(events[i].data.ptr, events[i].events, end);
    }
    return (now() - start) / 1e9;
}

int main(int argc, char **argv)
{
    options(argc, argv);
    const char *kind = text("kind", "echo"), *address = text("address", NULL);
    int count = number("connections", 1);
    depth = number("depth", 1);
    stream_setup(0);
    prepare(kind, address);
    struct connection *connections = allocate(count * sizeof *connections);
    check((epoll = epoll_create1(EPOLL_CLOEXEC)) < 0, "epoll_create1");
    for (int i = 0; i < count; i++) {
        struct connection *c = &connections[i];
        c->since = allocate(depth * sizeof *c->since);
        open_connection(&c->stream, address);
        if (!strcmp(kind, "websocket"))
            upgrade(&c->stream);
        unblock(c->stream.fd);
        watch(epoll, EPOLL_CTL_ADD, c->stream.fd, EPOLLIN, c);
    }
    run(connections, count, number("warm", 0.1));
    announce("{}");
    await_line();
    double before = cpu(), seconds = run(connections, count, number("seconds", 1));
    printf("{\"requests\": %lld, \"seconds\": %.6f, \"cpu\": %.6f, ", (long long)requests, seconds, cpu() - before);
    print_latencies();
    announce("}");
    return 0;
}
