/* OpenSSL 1.1.1 and later, without its headers and without linking to it: the functions are looked up, dlsym(3), in the
   library that the ssl module uses, so that both always speak of the same objects. And a BIO that reads and writes memory
   of ours, see TLSMemory in tls.pxd. For tls.pyx alone. */

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef struct bio_method_st BIO_METHOD;

static struct {
    int (*SSL_read)(SSL *, void *, int);
    int (*SSL_write)(SSL *, const void *, int);
    int (*SSL_pending)(const SSL *);
    int (*SSL_has_pending)(const SSL *);
    int (*SSL_get_error)(const SSL *, int);
    void *(*SSL_get_ex_data)(const SSL *, int);
    void (*SSL_set_bio)(SSL *, BIO *, BIO *);
    BIO *(*BIO_new)(const BIO_METHOD *);
    void (*BIO_set_data)(BIO *, void *);
    void *(*BIO_get_data)(BIO *);
    void (*BIO_set_init)(BIO *, int);
    void (*BIO_set_flags)(BIO *, int);
    void (*BIO_clear_flags)(BIO *, int);
    int (*BIO_get_new_index)(void);
    BIO_METHOD *(*BIO_meth_new)(int, const char *);
    int (*BIO_meth_set_read)(BIO_METHOD *, int (*)(BIO *, char *, int));
    int (*BIO_meth_set_write)(BIO_METHOD *, int (*)(BIO *, const char *, int));
    int (*BIO_meth_set_ctrl)(BIO_METHOD *, long (*)(BIO *, int, long, void *));
    int (*BIO_meth_set_destroy)(BIO_METHOD *, int (*)(BIO *));
    unsigned long (*ERR_peek_error)(void);
    unsigned long (*ERR_peek_last_error)(void);
    void (*ERR_clear_error)(void);
    const char *(*ERR_reason_error_string)(unsigned long);
    BIO_METHOD *method;  /* of our BIOs */
} openssl;

/* bio.h */
#define EPOQUE_BIO_READ_AGAIN 0x09  /* BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY */
#define EPOQUE_BIO_AGAIN 0x0f       /* BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY */
#define EPOQUE_BIO_SOURCE_SINK 0x0400
#define EPOQUE_BIO_CTRL_PENDING 10
#define EPOQUE_BIO_CTRL_FLUSH 11
#define EPOQUE_BIO_CTRL_WPENDING 13

static int tls_bio_read(BIO *bio, char *buffer, int size)
{
    TLSMemory *memory = openssl.BIO_get_data(bio);
    openssl.BIO_clear_flags(bio, EPOQUE_BIO_AGAIN);
    if (size <= 0)
        return 0;
    if (memory->left == 0) {
        openssl.BIO_set_flags(bio, EPOQUE_BIO_READ_AGAIN);
        return -1;
    }
    if ((size_t)size > memory->left)
        size = (int)memory->left;
    memcpy(buffer, memory->next, size);
    memory->next += size;
    memory->left -= size;
    return size;
}

/* Where most output is written, so that none is allocated and freed with each: lent to one connection
   at a time, until its output is taken; the others have memory of their own meanwhile. */
static char openssl_scratch[264 * 1024];
static TLSMemory *openssl_borrower;

static void tls_memory_lend(TLSMemory *memory)
{
    if (memory->output == NULL && openssl_borrower == NULL) {
        openssl_borrower = memory;
        memory->output = openssl_scratch;
        memory->room = sizeof openssl_scratch;
    }
}

static void tls_memory_forget(TLSMemory *memory)
{
    if (memory->output == openssl_scratch)
        openssl_borrower = NULL;
    else
        free(memory->output);
    memory->output = NULL;
    memory->size = memory->room = 0;
}

static int tls_bio_write(BIO *bio, const char *data, int size)
{
    TLSMemory *memory = openssl.BIO_get_data(bio);
    openssl.BIO_clear_flags(bio, EPOQUE_BIO_AGAIN);
    if (size <= 0)
        return 0;
    if (memory->room - memory->size < (size_t)size) {
        size_t room = memory->size + size + 4096;
        int lent = memory->output == openssl_scratch;
        char *output = realloc(lent ? NULL : memory->output, room);
        if (output == NULL)
            return -1;
        if (lent) {
            memcpy(output, memory->output, memory->size);
            openssl_borrower = NULL;
        }
        memory->output = output;
        memory->room = room;
    }
    memcpy(memory->output + memory->size, data, size);
    memory->size += size;
    return size;
}

static long tls_bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
    TLSMemory *memory = openssl.BIO_get_data(bio);
    switch (command) {
    case EPOQUE_BIO_CTRL_PENDING:
        return (long)memory->left;
    case EPOQUE_BIO_CTRL_WPENDING:
        return (long)memory->size;
    case EPOQUE_BIO_CTRL_FLUSH:
        return 1;
    }
    return 0;
}

/* The engine and the BIO, which lives as long as the ssl module's object, each hold the memory. */
static void tls_memory_release(TLSMemory *memory)
{
    if (--memory->holders > 0)
        return;
    tls_memory_forget(memory);
    free(memory);
}

static int tls_bio_destroy(BIO *bio)
{
    tls_memory_release(openssl.BIO_get_data(bio));
    return 1;
}

/* Finds the functions in a library (NULL: the program itself) or what it depends on; true if they are all there. */
static int openssl_link(const char *name)
{
    void *library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
#define FIND(function) ((*(void **)&openssl.function = dlsym(library, #function)) != NULL)
    if (library == NULL || !FIND(SSL_read) || !FIND(SSL_write) || !FIND(SSL_pending) || !FIND(SSL_has_pending)
            || !FIND(SSL_get_error) || !FIND(SSL_get_ex_data) || !FIND(SSL_set_bio) || !FIND(BIO_new)
            || !FIND(BIO_set_data) || !FIND(BIO_get_data) || !FIND(BIO_set_init) || !FIND(BIO_set_flags)
            || !FIND(BIO_clear_flags) || !FIND(BIO_get_new_index) || !FIND(BIO_meth_new) || !FIND(BIO_meth_set_read)
            || !FIND(BIO_meth_set_write) || !FIND(BIO_meth_set_ctrl) || !FIND(BIO_meth_set_destroy)
            || !FIND(ERR_peek_error) || !FIND(ERR_peek_last_error) || !FIND(ERR_clear_error)
            || !FIND(ERR_reason_error_string))
        return 0;
#undef FIND
    openssl.method = openssl.BIO_meth_new(openssl.BIO_get_new_index() | EPOQUE_BIO_SOURCE_SINK, "epoque");
    return openssl.method != NULL
        && openssl.BIO_meth_set_read(openssl.method, tls_bio_read)
        && openssl.BIO_meth_set_write(openssl.method, tls_bio_write)
        && openssl.BIO_meth_set_ctrl(openssl.method, tls_bio_ctrl)
        && openssl.BIO_meth_set_destroy(openssl.method, tls_bio_destroy);
}

/* Puts a BIO of ours below `ssl`. NULL if there is no memory. */
static TLSMemory *tls_memory_attach(SSL *ssl)
{
    TLSMemory *memory = calloc(1, sizeof(TLSMemory));
    BIO *bio = memory == NULL ? NULL : openssl.BIO_new(openssl.method);
    if (bio == NULL) {
        free(memory);
        return NULL;
    }
    memory->holders = 2;
    openssl.BIO_set_data(bio, memory);
    openssl.BIO_set_init(bio, 1);
    openssl.SSL_set_bio(ssl, bio, bio);
    return memory;
}
