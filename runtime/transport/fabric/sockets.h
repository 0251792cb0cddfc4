/* TCP connections between ranks. Sockets never raise SIGPIPE and are closed in child processes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { SOCKET_ADDRESSES = 8, SOCKET_ADDRESS_BYTES = 48 };

/* The address of a process: port, and IP addresses of its machine as text. */
typedef struct SocketPlace {
    int32_t port, count;
    char address[SOCKET_ADDRESSES][SOCKET_ADDRESS_BYTES];
} SocketPlace;

/* A connection's random key. socket_key draws one; socket_key_equal compares in constant time. */
typedef struct SocketKey {
    unsigned char bytes[16];
} SocketKey;
SocketKey socket_key(void);
bool socket_key_equal(const SocketKey *a, const SocketKey *b);

/* Returns an identifier of this machine: equal for processes with the same boot ID and the same
 * /dev/shm. HETU_NODE=k divides a machine into several. */
uint64_t socket_node(void);

/* Returns the seconds of a monotonic clock. */
double socket_clock(void);

/* Returns a socket that listens on all addresses, or (`alone`) on the loopback. Sets *place. */
int socket_listen(SocketPlace *place, bool alone);

/* Returns a socket connected to a place, over loopback if `here`; -1: no answer in `seconds`. */
int socket_connect(const SocketPlace *place, bool here, double seconds);

/* Returns the socket of the next connection; -1 if there is none now. */
int socket_accept(int listener);

/* Write or read all bytes. Return false if the peer is gone, or if `deadline` (socket_clock;
 * negative: none) has passed. */
bool socket_write(int socket, const void *data, size_t bytes);
bool socket_read(int socket, void *data, size_t bytes, double deadline);

/* Write or read what needs no waiting. Return the number of bytes; -1: the peer is gone. */
ssize_t socket_put(int socket, const void *data, size_t bytes);
ssize_t socket_get(int socket, void *data, size_t bytes);

/* Returns the index of the first socket whose peer is gone; -1: none. Ignores negative entries. */
int socket_first_closed(const int *sockets, int count);
