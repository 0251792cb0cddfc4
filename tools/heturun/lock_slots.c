/* Locks a slots file by a private folder, so that two heturun do not share slots. */
#include "lock_slots.h"

#include "support/tool.h"
#include "support/secure.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 5, PATH_ROOM = 4096 };

static const char LOCK[] = "lock";

/* ---- private folders ---- */

enum { PARENTS = 3 };

/* Returns the path, without links, of parent folder `number` (0: best) for private folders; NULL:
 * there is none, or other users could replace its files. The next call overwrites the text. */
static const char *parent_at(int number) {
    static char whole[PATH_MAX];
    const char *parent = (const char *[PARENTS]){"/dev/shm", getenv("TMPDIR"), "/tmp"}[number];
    bool safe = parent && *parent && !secure_parent_wrong(parent);
    return safe ? realpath(parent, whole) : NULL;
}

/* Returns whether a private folder has room for its files; sets errno when it has none. Other users
 * may have filled the file system. */
static bool has_room(const char *folder) {
    enum { ROOM = 1 << 16 };
    char name[PATH_ROOM];
    snprintf(name, sizeof name, "%.4080s/room", folder);
    int file = open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int error = file < 0 ? errno : posix_fallocate(file, 0, ROOM);
    if (file >= 0) close(file);
    unlink(name);
    errno = error;
    return !error;
}

/* Calls is_it for each private folder whose path begins with `head`, until a call returns true;
 * returns whether one did. */
static bool any_private(const char *head, bool (*is_it)(const char *path, const void *argument),
                        const void *argument) {
    char parent[PATH_ROOM], path[PATH_ROOM];
    const char *slash = strrchr(head, '/'), *name = slash ? slash + 1 : head;
    snprintf(parent, sizeof parent, "%.*s",
             !slash         ? 1
             : slash > head ? (int)(slash - head)
                            : 1,
             slash ? head : ".");
    bool found = false;
    DIR *top = opendir(parent);
    for (const struct dirent *entry; top && !found && (entry = readdir(top));)
        if (!strncmp(entry->d_name, name, strlen(name)) &&
            snprintf(path, sizeof path, "%s/%s", parent, entry->d_name) < (int)sizeof path &&
            secure_is_private(path))
            found = is_it(path, argument);
    if (top) closedir(top);
    return found;
}

static bool remove_it(const char *path, const void *argument) {
    (void)argument;
    secure_remove(path);
    return false;
}

void place_remove(const char *head) { any_private(head, remove_it, NULL); }

/* ---- the lock ---- */

/* Returns whether another live heturun owns the folder; removes the folder of a dead one. */
static bool is_other(const char *path, const void *own) {
    char name[PATH_ROOM + 16];
    if (!strcmp(path, own)) return false;
    snprintf(name, sizeof name, "%s/%s", path, LOCK);
    int lock = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool runs = lock >= 0 && flock(lock, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
    if (lock >= 0) close(lock);
    if (lock >= 0 && !runs) secure_remove(path);
    return runs;
}

/* Removes a folder if its heturun is dead; returns false, so that any_private goes on. */
static bool remove_dead(const char *path, const void *none) {
    is_other(path, none);
    return false;
}

/* Makes the folder with a held lock under a temporary name, then renames the folder, so that other
 * processes never see it without the lock. Returns 0 or an errno. */
static int make(Place *place, const char *parent, const char *name) {
    char fresh[sizeof place->folder], lock[sizeof fresh + 16];
    if (snprintf(fresh, sizeof fresh, "%s/heturun-new-%d.XXXXXX", parent, (int)geteuid()) >=
            (int)sizeof fresh ||
        !mkdtemp(fresh))
        return errno ? errno : ENAMETOOLONG;
    snprintf(lock, sizeof lock, "%s/%s", fresh, LOCK);
    place->lock = open(lock, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (place->lock < 0 || flock(place->lock, LOCK_EX | LOCK_NB) || !has_room(fresh) ||
        snprintf(place->folder, sizeof place->folder, "%s/%s%s", parent, name,
                 strrchr(fresh, '.')) >= (int)sizeof place->folder ||
        rename(fresh, place->folder)) {
        int error = errno;
        if (place->lock >= 0) close(place->lock);
        place->lock = -1;
        secure_remove(fresh);
        return error ? error : ENAMETOOLONG;
    }
    return 0;
}

/* Makes the folder in the first parent where that works. Returns false after a message. */
static bool make_anywhere(Place *place, const char *name) {
    int error = 0;
    for (int i = 0; i < PARENTS; i++) {
        const char *parent = parent_at(i);
        if (parent && !(error = make(place, parent, name))) return true;
    }
    tool_message(stderr, "error",
                 "no folder can be made in /dev/shm, TMPDIR or /tmp: %s; TMPDIR names another "
                 "one",
                 error ? strerror(error) : "other users can change what is made there (chmod +t)");
    return false;
}

/* Calls is_it as any_private does, for folders whose names begin with `name` in all parents. */
static bool any_anywhere(const char *name, bool (*is_it)(const char *path, const void *argument),
                         const void *argument) {
    char head[PATH_ROOM];
    bool found = false;
    for (int i = 0; !found && i < PARENTS; i++) {
        const char *parent = parent_at(i);
        if (parent && snprintf(head, sizeof head, "%s/%s", parent, name) < (int)sizeof head)
            found = any_private(head, is_it, argument);
    }
    return found;
}

/* Waits for a random time: two heturun that start at once see each other's folder, and both try
 * again. */
static void step_back(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    unsigned random = (unsigned)now.tv_nsec ^ (unsigned)getpid() * 2654435761u;
    nanosleep(&(struct timespec){.tv_nsec = 20000000L + random % 100 * 2000000L}, NULL);
}

bool place_open(Place *place, const char *slots, uint64_t hash) {
    char name[64];
    *place = (Place){.lock = -1};
    int length = snprintf(name, sizeof name, "heturun-%d-", (int)geteuid());
    any_anywhere(name, remove_dead, "");
    snprintf(name + length, sizeof name - (size_t)length, "%016" PRIx64, hash);
    for (int try = 0; try < TRIES; try++) {
        if (!make_anywhere(place, name)) return false;
        if (!any_anywhere(name, is_other, place->folder)) return true;
        place_close(place);
        step_back();
        if (any_anywhere(name, is_other, "")) break;
    }
    tool_message(stderr, "error", "another heturun runs on the slots of %s",
                 slots ? slots : "this host");
    return false;
}

void place_close(Place *place) {
    if (place->lock < 0) return;
    secure_remove(place->folder);
    close(place->lock);
    place->lock = -1;
}

/* Returns the path of the meeting file of ranks on this machine. */
static char *meet_here(const Place *place) {
    char folder[sizeof place->folder], path[sizeof folder + 16];
    bool room = has_room(place->folder);
    memcpy(folder, place->folder, sizeof folder);
    for (int i = 0; !room && i < PARENTS; i++) {
        const char *parent = parent_at(i);
        if (!parent ||
            snprintf(folder, sizeof folder, "%s/heturun-ranks-%d.XXXXXX", parent, (int)geteuid()) >=
                (int)sizeof folder ||
            !mkdtemp(folder))
            continue;
        room = has_room(folder);
        if (!room) secure_remove(folder);
    }
    if (!room)
        tool_message(stderr, "error", "the ranks have no place to meet: %s", strerror(errno));
    snprintf(path, sizeof path, "%s/ranks", folder);
    return room ? strdup(path) : NULL;
}

/* Returns the path of the meeting file of ranks on several machines, in a folder whose name begins
 * with the hash that the private folder's name has. */
static char *meet_beside(const Place *place) {
    char folder[PATH_ROOM] = "", path[PATH_ROOM + 16];
    const char *hash = strrchr(place->folder, '-');
    hash = hash ? hash : "";
    if (!getcwd(folder, sizeof folder)) *folder = 0;
    size_t length = strlen(folder), room = sizeof folder - length;
    snprintf(folder + length, room, "/.heturun%.*s.meeting.", (int)strcspn(hash, "."), hash);
    place_remove(folder);
    size_t head = strlen(folder);
    snprintf(folder + head, sizeof folder - head, "XXXXXX");
    if (!length || !mkdtemp(folder)) {
        tool_message(stderr, "error",
                     "no folder can be made in the current one, where the ranks are to meet: %s",
                     strerror(errno));
        return NULL;
    }
    snprintf(path, sizeof path, "%s/ranks", folder);
    return strdup(path);
}

char *place_meeting(const Place *place, bool here) {
    return here ? meet_here(place) : meet_beside(place);
}

void place_leave(const Place *place, char *meeting) {
    unlink(meeting);
    *strrchr(meeting, '/') = 0;
    if (strcmp(meeting, place->folder) != 0) place_remove(meeting);
}
