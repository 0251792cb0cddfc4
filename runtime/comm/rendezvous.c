#define _GNU_SOURCE
#include "comm/rendezvous.h"

#include "comm/sockets.h"

#include <hetu/kernel.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { VERSION = 1, HELLO_SECONDS = 5, PAUSE = 20000000 }; // PAUSE: nanoseconds between two looks at the file

static const double NEVER = 1e9; // seconds

/* What rank 0 writes to the file. */
typedef struct Invitation {
    char magic[8];
    int32_t version, size;
    uint64_t key, node;
    SocketPlace place;
} Invitation;

/* What a process says first on a connection. */
typedef struct Hello {
    uint64_t key, node;
    int32_t rank, size;
    SocketPlace place;
} Hello;

/* What rank 0 answers. */
typedef enum Answer { ANSWER_WELCOME = 0x600d, ANSWER_TAKEN = 0x7a4e, ANSWER_SIZE = 0x512e } Answer;

typedef struct Gathering {
    const Launch *launch;
    double deadline;
    int listener;
    Hello mine, *all; // by rank; those of rank 0 reach all
    bool taken;       // another process has this rank
    Meeting meeting;
} Gathering;

static const char MAGIC[8] = "hetu-at";

static void pause_briefly(void) { nanosleep(&(struct timespec){.tv_nsec = PAUSE}, NULL); }

/* ---- this machine ---- */

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
    return hash;
}

/* Equal for processes that see the same shared memory: of one boot, with one /dev/shm. HETU_NODE sets ranks of one machine apart. */
static uint64_t node_of(void)
{
    char boot[64] = "";
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, boot, sizeof boot);
    if (file >= 0)
        close(file);
    if (length <= 0)
        gethostname(boot, sizeof boot - 1);
    struct stat memory = {0};
    stat("/dev/shm", &memory);
    uint64_t hash = hash_bytes(0xcbf29ce484222325u, boot, strnlen(boot, sizeof boot));
    hash = hash_bytes(hash, &memory.st_dev, sizeof memory.st_dev);
    const char *apart = getenv("HETU_NODE");
    return apart ? hash_bytes(hash, apart, strlen(apart)) : hash;
}

static uint64_t random_key(void)
{
    uint64_t key;
    if (getrandom(&key, sizeof key, 0) != sizeof key)
        ht_fail("no random numbers: %s", strerror(errno));
    return key;
}

/* ---- the file ---- */

/* Puts the whole invitation in place at once, over what an earlier run left. */
static void write_invitation(const Gathering *g, const Invitation *invitation)
{
    char fresh[sizeof g->launch->path + 32];
    snprintf(fresh, sizeof fresh, "%s.%d", g->launch->path, (int)getpid());
    unlink(fresh);
    int file = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        ht_fail("cannot write %s, through which the ranks meet: %s", fresh, strerror(errno));
    bool written = write(file, invitation, sizeof *invitation) == (ssize_t)sizeof *invitation;
    if (close(file) | !written || rename(fresh, g->launch->path))
        ht_fail("cannot write %s, through which the ranks meet: %s", g->launch->path, strerror(errno));
}

/* False when there is no whole invitation yet. A file of another user is none. */
static bool read_invitation(const Gathering *g, Invitation *invitation)
{
    int file = open(g->launch->path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    struct stat about;
    bool whole =
        !fstat(file, &about) && about.st_uid == getuid() && read(file, invitation, sizeof *invitation) == (ssize_t)sizeof *invitation;
    close(file);
    return whole && !memcmp(invitation->magic, MAGIC, sizeof MAGIC) && invitation->version == VERSION;
}

/* Removes the invitation unless another run has replaced it. */
static void remove_invitation(const Gathering *g)
{
    Invitation found;
    if (read_invitation(g, &found) && found.key == g->meeting.key)
        unlink(g->launch->path);
}

/* ---- rank 0 ---- */

static int missing(const Gathering *g, char *list, size_t size)
{
    int count = 0;
    *list = 0;
    for (int rank = 1; rank < g->launch->size; rank++)
        if (g->meeting.socket[rank] < 0) {
            size_t length = strlen(list);
            if (count++ < 8)
                snprintf(list + length, size - length, "%s%d", length ? ", " : "", rank);
        }
    return count;
}

static Answer judge(const Gathering *g, const Hello *hello)
{
    if (hello->size != g->launch->size)
        return ANSWER_SIZE;
    int known = hello->rank <= 0 || hello->rank >= g->launch->size ? -1 : g->meeting.socket[hello->rank];
    return hello->rank <= 0 || hello->rank >= g->launch->size || (known >= 0 && socket_first_closed(&known, 1) < 0) ? ANSWER_TAKEN
                                                                                                                    : ANSWER_WELCOME;
}

/* Takes in a rank; strangers are sent away. */
static void admit(Gathering *g, int socket)
{
    Hello hello;
    if (!socket_read(socket, &hello, sizeof hello, socket_clock() + HELLO_SECONDS) || hello.key != g->meeting.key) {
        close(socket);
        return;
    }
    int32_t answer = judge(g, &hello);
    bool told = socket_write(socket, &answer, sizeof answer);
    if (answer == ANSWER_SIZE)
        ht_fail("rank %d was told that there are %d ranks, rank 0 that there are %d", hello.rank, hello.size, g->launch->size);
    if (!told || answer != ANSWER_WELCOME) {
        close(socket);
        return;
    }
    if (g->meeting.socket[hello.rank] >= 0)
        close(g->meeting.socket[hello.rank]);
    g->meeting.socket[hello.rank] = socket;
    g->all[hello.rank] = hello;
}

/* Whoever died while others still came is missed again. */
static void forget_dead(Gathering *g)
{
    int dead;
    while ((dead = socket_first_closed(g->meeting.socket, g->launch->size)) >= 0) {
        close(g->meeting.socket[dead]);
        g->meeting.socket[dead] = -1;
    }
}

static void invite(Gathering *g)
{
    Invitation invitation = {
        .version = VERSION, .size = g->launch->size, .key = g->meeting.key, .node = g->mine.node, .place = g->mine.place};
    memcpy(invitation.magic, MAGIC, sizeof MAGIC);
    write_invitation(g, &invitation);
    char list[128];
    while (missing(g, list, sizeof list)) {
        double now = socket_clock();
        if (now > g->deadline) {
            remove_invitation(g);
            int count = missing(g, list, sizeof list);
            ht_fail("%d of %d ranks did not come to %s within the time of HETU_TIMEOUT: %s%s", count, g->launch->size, g->launch->path,
                    list, count > 8 ? ", ..." : "");
        }
        int socket = socket_accept(g->listener, now + 0.5);
        if (socket >= 0)
            admit(g, socket);
        forget_dead(g);
    }
    remove_invitation(g);
    for (int rank = 1; rank < g->launch->size; rank++)
        if (!socket_write(g->meeting.socket[rank], g->all, sizeof *g->all * (size_t)g->launch->size))
            ht_fail("rank %d has ended", rank);
}

/* ---- the others ---- */

/* Follows an invitation; false when it leads nowhere, since it is of an earlier run. */
static bool follow(Gathering *g, const Invitation *invitation)
{
    int socket = socket_connect(&invitation->place, invitation->node == g->mine.node, HELLO_SECONDS);
    int32_t answer;
    g->mine.key = g->meeting.key = invitation->key;
    if (socket < 0)
        return false;
    if (!socket_write(socket, &g->mine, sizeof g->mine) || !socket_read(socket, &answer, sizeof answer, socket_clock() + HELLO_SECONDS)) {
        close(socket);
        return false;
    }
    if (answer == ANSWER_SIZE)
        ht_fail("rank %d was told that there are %d ranks, rank 0 that there are %d", g->launch->rank, g->launch->size, invitation->size);
    g->taken = answer == ANSWER_TAKEN;
    if (answer != ANSWER_WELCOME) {
        close(socket);
        return false;
    }
    if (!socket_read(socket, g->all, sizeof *g->all * (size_t)g->launch->size, g->deadline + HELLO_SECONDS))
        ht_fail("rank 0 has ended before all ranks came to %s", g->launch->path);
    g->meeting.socket[0] = socket;
    return true;
}

static void seek(Gathering *g)
{
    Invitation invitation;
    while (!read_invitation(g, &invitation) || !follow(g, &invitation)) {
        if (socket_clock() > g->deadline)
            ht_fail(g->taken ? "at %s another process is rank %d, too"
                             : "rank 0 did not come to %s within the time of HETU_TIMEOUT (this is rank %d)",
                    g->launch->path, g->launch->rank);
        pause_briefly();
    }
}

/* Connects this rank, which is not 0, to all below it. */
static void call_lower(Gathering *g)
{
    for (int rank = 1; rank < g->launch->rank; rank++) {
        int socket = socket_connect(&g->all[rank].place, g->all[rank].node == g->mine.node, HELLO_SECONDS);
        if (socket < 0 || !socket_write(socket, &g->mine, sizeof g->mine))
            ht_fail("no connection to rank %d", rank);
        g->meeting.socket[rank] = socket;
    }
}

static void await_higher(Gathering *g)
{
    for (int left = g->launch->size - 1 - g->launch->rank; left > 0;) {
        int socket = socket_accept(g->listener, g->deadline);
        if (socket < 0)
            ht_fail("%d ranks did not connect to rank %d within the time of HETU_TIMEOUT", left, g->launch->rank);
        Hello hello;
        bool known = socket_read(socket, &hello, sizeof hello, socket_clock() + HELLO_SECONDS) && hello.key == g->meeting.key &&
                     hello.rank > g->launch->rank && hello.rank < g->launch->size && g->meeting.socket[hello.rank] < 0;
        if (!known) {
            close(socket);
            continue;
        }
        g->meeting.socket[hello.rank] = socket;
        left--;
    }
}

/* ---- all ---- */

static void *checked_array(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        ht_fail("no memory to connect %zu ranks", count);
    return memory;
}

static Meeting finish(Gathering *g)
{
    for (int rank = 0; rank < g->launch->size; rank++)
        g->meeting.node[rank] = g->all[rank].node;
    close(g->listener);
    free(g->all);
    return g->meeting;
}

Meeting rendezvous_meet(const Launch *launch, int seconds)
{
    if (!*launch->path)
        ht_fail("%d ranks need a place to meet: set HETU_RENDEZVOUS to a folder that all of them see", launch->size);
    size_t size = (size_t)launch->size;
    Gathering g = {.launch = launch, .deadline = socket_clock() + (seconds ? seconds : NEVER), .all = checked_array(size, sizeof(Hello))};
    g.meeting = (Meeting){.socket = checked_array(size, sizeof(int)), .node = checked_array(size, sizeof(uint64_t))};
    for (int rank = 0; rank < launch->size; rank++)
        g.meeting.socket[rank] = -1;
    g.mine = (Hello){.node = node_of(), .rank = launch->rank, .size = launch->size};
    g.listener = socket_listen(&g.mine.place);
    if (launch->rank == 0) {
        g.mine.key = g.meeting.key = random_key();
        g.all[0] = g.mine;
        invite(&g);
    } else {
        seek(&g);
        call_lower(&g);
        await_higher(&g);
    }
    return finish(&g);
}
