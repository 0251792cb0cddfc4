/* TCP connections: addresses, keys, keep-alive, Nagle. */
#include "transport/fabric/sockets.h"
#include "base/c_locale.h"
#include "base/hash.h"

#include <hetu/kernel.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOOPBACK "127.0.0.1"

enum {
    BACKLOG = 4096,
    UNANSWERED = 60000 // milliseconds without an answer until a machine counts as gone
};

double socket_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

SocketKey socket_key(void) {
    SocketKey key;
    if (getrandom(&key, sizeof key, 0) != sizeof key)
        ht_fail("no random numbers: %s", plain_error(errno));
    return key;
}

bool socket_key_equal(const SocketKey *a, const SocketKey *b) {
    int difference = 0;
    for (size_t i = 0; i < sizeof a->bytes; i++) difference |= a->bytes[i] ^ b->bytes[i];
    return !difference;
}

uint64_t socket_node(void) {
    char boot[64] = "";
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, boot, sizeof boot);
    if (file >= 0) close(file);
    if (length <= 0) gethostname(boot, sizeof boot - 1);
    struct stat memory = {0};
    stat("/dev/shm", &memory);
    uint64_t hash = hash_bytes(HASH_START, boot, strnlen(boot, sizeof boot));
    hash = hash_bytes(hash, &memory.st_dev, sizeof memory.st_dev);
    const char *apart = getenv("HETU_NODE");
    return apart ? hash_bytes(hash, apart, strlen(apart)) : hash;
}

/* Returns whether other machines may reach an interface's address. */
static bool is_public(const struct ifaddrs *at) {
    return at->ifa_addr && at->ifa_addr->sa_family == AF_INET && (at->ifa_flags & IFF_UP) &&
           !(at->ifa_flags & IFF_LOOPBACK);
}

/* Writes this machine's addresses to *place; if `alone` or without any, the loopback address. */
static void find_addresses(SocketPlace *place, bool alone) {
    struct ifaddrs *all = NULL;
    if (alone || getifaddrs(&all)) all = NULL;
    for (struct ifaddrs *at = all; at && place->count < SOCKET_ADDRESSES; at = at->ifa_next)
        if (is_public(at))
            inet_ntop(AF_INET, &((struct sockaddr_in *)at->ifa_addr)->sin_addr,
                      place->address[place->count++], SOCKET_ADDRESS_BYTES);
    if (all) freeifaddrs(all);
    if (!place->count)
        snprintf(place->address[place->count++], SOCKET_ADDRESS_BYTES, "%s", LOOPBACK);
}

static int make_socket(void) {
    int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0) ht_fail("cannot open a socket: %s", plain_error(errno));
    return made;
}

/* Turns off Nagle's delay of small messages, and turns on the detection of dead machines. */
static int tuned(int connection) {
    int on = 1, unanswered = UNANSWERED;
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(connection, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(connection, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered, sizeof unanswered);
    return connection;
}

int socket_listen(SocketPlace *place, bool alone) {
    int listener = make_socket();
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(alone ? INADDR_LOOPBACK : INADDR_ANY)};
    socklen_t size = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, BACKLOG) ||
        getsockname(listener, (struct sockaddr *)&address, &size))
        ht_fail("cannot listen on a socket: %s", plain_error(errno));
    *place = (SocketPlace){.port = ntohs(address.sin_port)};
    find_addresses(place, alone);
    return listener;
}

/* Waits for `events` on a socket. Returns false if `deadline` (negative: none) passes first. Polls
 * once even after the deadline, since this process may have been stopped meanwhile. */
static bool wait_for(int socket, short events, double deadline) {
    for (;;) {
        double left = deadline < 0 ? 1 : deadline - socket_clock();
        struct pollfd entry = {.fd = socket, .events = events};
        int found = poll(&entry, 1, left <= 0 ? 0 : left < 1 ? (int)(left * 1000) + 1 : 1000);
        if (found > 0) return true;
        if (found < 0 ? errno != EINTR : left <= 0) return false;
    }
}

/* Returns a socket connected to one address; -1 if there is no answer before `deadline`. */
static int connect_to(const char *text, int port, double deadline) {
    int made = make_socket(), error = 0;
    socklen_t size = sizeof error;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, text, &address.sin_addr);
    bool connected = !connect(made, (struct sockaddr *)&address, sizeof address);
    if (!connected && errno == EINPROGRESS && wait_for(made, POLLOUT, deadline))
        connected = !getsockopt(made, SOL_SOCKET, SO_ERROR, &error, &size) && !error;
    fcntl(made, F_SETFL, 0);
    if (connected) return tuned(made);
    close(made);
    return -1;
}

int socket_connect(const SocketPlace *place, bool here, double seconds) {
    if (here) return connect_to(LOOPBACK, place->port, socket_clock() + seconds);
    for (int i = 0; i < place->count; i++) {
        int made = connect_to(place->address[i], place->port, socket_clock() + seconds);
        if (made >= 0) return made;
    }
    return -1;
}

int socket_accept(int listener) {
    int made = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    return made < 0 ? -1 : tuned(made);
}

ssize_t socket_put(int socket, const void *data, size_t bytes) {
    ssize_t moved = send(socket, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    return moved >= 0 ? moved : errno == EAGAIN || errno == EINTR ? 0 : -1;
}

ssize_t socket_get(int socket, void *data, size_t bytes) {
    ssize_t moved = recv(socket, data, bytes, MSG_DONTWAIT);
    return moved > 0 ? moved : moved < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

bool socket_write(int socket, const void *data, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t moved = socket_put(socket, (const char *)data + done, bytes - done);
        if (moved < 0 || (moved == 0 && !wait_for(socket, POLLOUT, -1))) return false;
        done += (size_t)moved;
    }
    return true;
}

bool socket_read(int socket, void *data, size_t bytes, double deadline) {
    for (size_t done = 0; done < bytes;) {
        ssize_t moved = socket_get(socket, (char *)data + done, bytes - done);
        if (moved < 0 || (moved == 0 && !wait_for(socket, POLLIN, deadline))) return false;
        done += (size_t)moved;
    }
    return true;
}

int socket_first_closed(const int *sockets, int count) {
    struct pollfd *entries = calloc((size_t)count + 1, sizeof *entries);
    int closed = -1;
    for (int i = 0; entries && i < count; i++)
        entries[i] = (struct pollfd){.fd = sockets[i], .events = POLLRDHUP};
    if (entries && poll(entries, (nfds_t)count, 0) > 0)
        for (int i = 0; i < count && closed < 0; i++)
            if (entries[i].fd >= 0 && entries[i].revents & (POLLRDHUP | POLLHUP | POLLERR))
                closed = i;
    free(entries);
    return closed;
}
