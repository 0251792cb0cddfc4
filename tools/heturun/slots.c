/* Reads the slots file, and reads it again when it changes. */
#include "slots.h"

#include "support/reading.h"

#include <ctype.h>
#include <errno.h>
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

static bool is_here(const char *host) {
    char own[HOST_ROOM] = "";
    gethostname(own, sizeof own - 1);
    return !strcmp(host, "localhost") || !strcmp(host, "127.0.0.1") || !strcmp(host, own);
}

/* Adds `count` slots of a host. */
static void add_slots(Reading *reading, const char *host, int count) {
    int number = 0;
    for (int i = 0; i < reading->count; i++) number += !strcmp(reading->at[i].host, host);
    reading->at = realloc(reading->at, sizeof *reading->at * (size_t)(reading->count + count + 1));
    for (int i = 0; i < count; i++)
        reading->at[reading->count++] =
            (Slot){.host = host, .here = is_here(host), .number = number + i, .part = -1};
}

Slots slots_here(int count) {
    Reading reading = {0};
    add_slots(&reading, "localhost", count);
    return (Slots){.path = "this host", .parts = 1, .count = reading.count, .at = reading.at};
}

/* Returns the number after "slots="; -1 after reporting an error. */
static int read_count(Reading *reading, const char *word, Position at) {
    char *end;
    errno = 0;
    long count = strncmp(word, "slots=", 6) ? -1 : strtol(word + 6, &end, 10);
    if (count >= 0 && isdigit((unsigned char)word[6]) && !*end && !errno &&
        count + reading->count <= MOST_SLOTS)
        return (int)count;
    diag_error(reading->diag, at, "expected slots=N behind the host, not \"%s\"", word);
    return -1;
}

/* Reads one line: HOST, or HOST slots=N. */
static void read_line(Reading *reading, char *line, int number) {
    static const char BLANKS[] = " \t\r";
    line[strcspn(line, "#")] = 0;
    char *rest = line, *host = strtok_r(line, BLANKS, &rest),
         *count = host ? strtok_r(NULL, BLANKS, &rest) : NULL;
    char *more = count ? strtok_r(NULL, BLANKS, &rest) : NULL;
    if (!host) return;
    if (strchr(host, '=') || *host == '-')
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

int slots_left(const Slots *slots) {
    int left = 0;
    for (int i = 0; i < slots->count; i++) left += !slots->at[i].lost;
    return left;
}
