/* Reads the slots file, and reads it again when it changes. */
#include "slots.h"

#include "support/reading.h"
#include "support/tool.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HOST_ROOM = 256, MOST_SLOTS = 1 << 16 };

char *file_text(Arena *arena, Diag *diag, const char *path) {
    enum { MOST = 1 << 24 };
    InputText text = reading_text(arena, READ_FILES, path, MOST);
    if (!text.bytes) diag_error(diag, (Position){0}, "%s cannot be read: %s", path, text.why);
    else if (memchr(text.bytes, 0, text.length))
        diag_error(diag, (Position){path, 1, 1}, "this is no text");
    return diag_errors(diag) || !text.bytes ? NULL : arena_string(arena, text.bytes);
}

/* The slots read so far; they replace the old slots when the whole file has no error. */
typedef struct Reading {
    Diag *diag;
    const char *path;
    int count;
    Slot *at;
} Reading;

/* Returns whether a text is the address of an interface of this machine. */
static bool is_own_address(const char *text) {
    struct in_addr wanted;
    struct ifaddrs *all = NULL;
    bool found = false;
    if (inet_pton(AF_INET, text, &wanted) != 1 || getifaddrs(&all)) return false;
    for (const struct ifaddrs *at = all; at && !found; at = at->ifa_next)
        found = at->ifa_addr && at->ifa_addr->sa_family == AF_INET &&
                ((struct sockaddr_in *)(void *)at->ifa_addr)->sin_addr.s_addr == wanted.s_addr;
    freeifaddrs(all);
    return found;
}

static bool is_here(const char *host) {
    char own[HOST_ROOM] = "";
    gethostname(own, sizeof own - 1);
    return !strcmp(host, "localhost") || !strcmp(host, own) || is_own_address(host);
}

bool slots_same_machine(const Slot *a, const Slot *b) {
    return a->here == b->here && (a->here || !strcmp(a->host, b->host));
}

/* Adds `count` slots of a host. */
static void add_slots(Reading *reading, const char *host, int count) {
    Slot slot = {.host = host, .here = is_here(host), .part = -1};
    for (int i = 0; i < reading->count; i++)
        slot.number += slots_same_machine(&reading->at[i], &slot);
    reading->at = realloc(reading->at, sizeof *reading->at * (size_t)(reading->count + count + 1));
    for (int i = 0; i < count; i++, slot.number++) reading->at[reading->count++] = slot;
}

Slots slots_here(int count) {
    Reading reading = {0};
    add_slots(&reading, "localhost", count);
    return (Slots){.path = "this host", .parts = 1, .count = reading.count, .at = reading.at};
}

/* Returns the number after "slots="; 0 after reporting an error. */
static int read_count(Reading *reading, const char *word, Position at) {
    char *end;
    errno = 0;
    long count = strncmp(word, "slots=", 6) ? -1 : strtol(word + 6, &end, 10);
    bool number = count >= 0 && isdigit((unsigned char)word[6]) && !*end;
    if (number && !errno && count + reading->count <= MOST_SLOTS) return (int)count;
    if (number)
        diag_error(reading->diag, at, "\"%s\" makes too many slots; heturun takes %d at most", word,
                   MOST_SLOTS);
    else diag_error(reading->diag, at, "expected slots=N behind the host, not \"%s\"", word);
    return 0;
}

/* Returns whether a word is Open MPI's limit of slots, which heturun ignores. */
static bool is_limit(const char *word) {
    return !strncmp(word, "max_slots=", 10) || !strncmp(word, "max-slots=", 10);
}

/* Returns whether a word is a name or an address of a host, or USER@HOST. */
static bool is_host(const char *word) {
    static const char MAY[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@%-";
    size_t length = strlen(word);
    return *word != '-' && length < HOST_ROOM && strspn(word, MAY) == length;
}

/* Reads one line: HOST, or HOST slots=N. */
static void read_line(Reading *reading, char *line, int number) {
    static const char BLANKS[] = " \t\r";
    line[strcspn(line, "#")] = 0;
    char *rest = line, *host = strtok_r(line, BLANKS, &rest),
         *count = host ? strtok_r(NULL, BLANKS, &rest) : NULL;
    if (count && is_limit(count)) count = strtok_r(NULL, BLANKS, &rest);
    char *more = count ? strtok_r(NULL, BLANKS, &rest) : NULL;
    if (more && is_limit(more)) more = strtok_r(NULL, BLANKS, &rest);
    if (!host) return;
    if (!is_host(host))
        diag_error(reading->diag, (Position){reading->path, number, (int)(host - line) + 1},
                   "expected a host, not \"%s\"", host);
    else if (more)
        diag_error(reading->diag, (Position){reading->path, number, (int)(more - line) + 1},
                   "expected the end of the line, not \"%s\"", more);
    else
        add_slots(reading, strdup(host),
                  count ? read_count(reading, count,
                                     (Position){reading->path, number, (int)(count - line) + 1})
                        : 1);
}

/* Divides this machine's slots evenly among `parts` simulated hosts. */
static void divide(Reading *reading, int parts) {
    int here = 0, number = 0;
    for (int i = 0; i < reading->count; i++) here += reading->at[i].here;
    for (int i = 0; i < reading->count && parts > 1; i++)
        if (reading->at[i].here) reading->at[i].part = (int)((long)number++ * parts / here);
}

/* Reads the file and replaces the slots; keeps the old slots and returns false after an error. */
static bool read_slots(Slots *slots) {
    Arena *arena = arena_create();
    Reading reading = {
        .diag = diag_create(arena, stderr), .path = slots->path, .at = calloc(1, sizeof(Slot))};
    char *text = file_text(arena, reading.diag, slots->path),
         *rest = text ? arena_string(arena, text) : NULL;
    if (text) diag_source(reading.diag, slots->path, text);
    int number = 1;
    for (char *line; rest && (line = strsep(&rest, "\n")); number++)
        read_line(&reading, line, number);
    bool good = !diag_errors(reading.diag);
    diag_finish(reading.diag);
    arena_destroy(arena);
    if (!good) return false;
    divide(&reading, slots->parts);
    slots->count = reading.count;
    slots->at = reading.at;
    return true;
}

static bool same_file(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

bool slots_open(Slots *slots, const char *path, int parts) {
    *slots = (Slots){.path = path, .parts = parts};
    if (!stat(path, &slots->read)) slots->seen = slots->read;
    return read_slots(slots);
}

bool slots_changed(Slots *slots) {
    struct stat now;
    if (stat(slots->path, &now)) return false;
    bool still = same_file(&now, &slots->seen);
    slots->seen = now;
    if (!still || !now.st_size || same_file(&now, &slots->read))
        return false; // the file is being written
    slots->read = now;
    return read_slots(slots);
}

/* ---- Slurm ---- */

/* Returns the next host's tasks by SLURM_TASKS_PER_NODE, such as "4(x2),3" for 4, 4, 3; 1 after the
 * last. *again counts the further hosts with *number tasks. */
static int next_tasks(const char **at, int *number, int *again) {
    if (*again > 0) {
        --*again;
        return *number;
    }
    char *end;
    long tasks = strtol(*at, &end, 10);
    *number = end == *at || tasks < 1 || tasks > MOST_SLOTS ? 1 : (int)tasks;
    if (!strncmp(end, "(x", 2)) {
        *again = (int)strtol(end + 2, &end, 10) - 1;
        end += *end == ')';
    }
    *at = *end == ',' ? end + 1 : end;
    return *number;
}

bool slots_of_slurm(Slots *slots) {
    char host[HOST_ROOM];
    const char *tasks = getenv("SLURM_TASKS_PER_NODE");
    Reading reading = {0};
    int number = 1, again = 0;
    *slots = (Slots){.path = "the allocation of Slurm", .parts = 1};
    if (!getenv("SLURM_JOB_NODELIST")) {
        tool_message(stderr, "error",
                     "--hosts=slurm needs an allocation: salloc -N 2 heturun ..., or a job of "
                     "sbatch");
        return false;
    }
    FILE *names = popen("scontrol show hostnames \"$SLURM_JOB_NODELIST\"", "re");
    while (names && fgets(host, sizeof host, names)) {
        host[strcspn(host, "\n")] = 0;
        if (*host)
            add_slots(&reading, strdup(host), tasks ? next_tasks(&tasks, &number, &again) : 1);
    }
    bool good = names && !pclose(names) && reading.count;
    if (!good) tool_message(stderr, "error", "scontrol show hostnames does not name the hosts");
    slots->count = reading.count;
    slots->at = reading.at;
    return good;
}

bool slots_all_here(const Slots *slots) {
    bool here = true;
    for (int i = 0; i < slots->count; i++) here = here && slots->at[i].here;
    return here;
}

int slots_left(const Slots *slots) {
    int left = 0;
    for (int i = 0; i < slots->count; i++) left += !slots->at[i].lost;
    return left;
}
