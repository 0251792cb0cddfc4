/* TCP connections between ranks. Sockets never raise SIGPIPE and are closed in child processes. */
#ifndef TRANSPORT_FABRIC_SOCKETS_H
#define TRANSPORT_FABRIC_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { SOCKET_ADDRESSES = 8, SOCKET_ADDRESS_BYTES = 48 };

/* Where a process listens: the addresses of its machine, as text. */
typedef struct SocketPlace {
    int32_t port, count;
    char address[SOCKET_ADDRESSES][SOCKET_ADDRESS_BYTES];
} SocketPlace;

/* A secret that a connection presents; a new one; whether two are one, in a time that does not tell
 * where they differ. */
typedef struct SocketKey {
    unsigned char bytes[16];
} SocketKey;
SocketKey socket_key(void);
bool socket_key_equal(const SocketKey *a, const SocketKey *b);

/* Equal for processes that see the same shared memory: of one boot, with one /dev/shm. HETU_NODE
 * sets ranks of one machine apart. */
uint64_t socket_node(void);

/* Seconds since some moment. */
double socket_clock(void);

/* A socket that listens on all addresses of this machine, which go to *place; with `alone`, on the
 * loopback only. */
int socket_listen(SocketPlace *place, bool alone);

/* A connection to a place, over the loopback when it is on this machine; -1 when nobody answers
 * within `seconds`. */
int socket_connect(const SocketPlace *place, bool here, double seconds);

/* The next connection to a listening socket; -1 when there is none now. */
int socket_accept(int listener);

/* Moves all bytes; false when the other side is gone or, with a `deadline` of socket_clock that is
 * not negative, when it passes. */
bool socket_write(int socket, const void *data, size_t bytes);
bool socket_read(int socket, void *data, size_t bytes, double deadline);

/* Moves what can be moved without waiting: bytes, 0 for none now, -1 when the other side is
 * gone. */
ssize_t socket_put(int socket, const void *data, size_t bytes);
ssize_t socket_get(int socket, void *data, size_t bytes);

/* Whether the other side has closed the connection or died; negative sockets are never closed.
 * Returns the index of the first such, or -1.
 */
int socket_first_closed(const int *sockets, int count);

#endif
