/* Files of in-memory checkpoints: two for each range, one always valid.
 * session/persist/memory_checkpoints.c decides which host keeps a copy. */
#include "checkpoint/copies.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_BYTES = 4096, ALIGNED = 64, PATH_ROOM = 4096 };

/* The last character is the version of the format. */
static const char MAGIC[8] = "hetucop2";

/* Beginning of a file's name: the number of the launch that wrote the file. */
#define START "%016" PRIx64 "-"

/* ---- one file ---- */

static size_t header_room(int64_t header_bytes) {
    return ((size_t)header_bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

char *copy_header(const CopyFile *file) { return (char *)file->head + HEAD_BYTES; }

char *copy_range(const CopyFile *file) {
    return copy_header(file) + header_room(file->head->header_bytes);
}

static size_t file_bytes(const CopyHead *head) {
    return HEAD_BYTES + header_room(head->header_bytes) + (size_t)head->bytes;
}

static uint32_t sum_file(const CopyFile *file) {
    CopyHead head = *file->head;
    head.whole = head.sum = 0;
    uint32_t sum = checksum(0, &head, sizeof head);
    sum = checksum(sum, copy_header(file), (size_t)head.header_bytes);
    return checksum(sum, copy_range(file), (size_t)head.bytes);
}

/* Creates the folder, which only this user may enter. Returns 0, or an errno. */
static int make_folder(const char *folder) {
    if (mkdir(folder, 0700) && errno != EEXIST) return errno;
    return private_is(folder) ? 0 : EPERM;
}

int copy_open(const char *folder, const CopyHead *head, CopyFile *file) {
    char path[PATH_ROOM];
    snprintf(path, sizeof path, "%s/" START "%d.%d", folder, head->start, head->range,
             (int)(head->number % COPY_TURNS));
    int error = make_folder(folder);
    if (error) return error;
    int descriptor = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (descriptor < 0) return errno;
    file->bytes = file_bytes(head);
    error = posix_fallocate(descriptor, 0, (off_t)file->bytes);
    void *memory = error
                       ? MAP_FAILED
                       : mmap(NULL, file->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    error = error ? error : memory == MAP_FAILED ? errno : 0;
    close(descriptor);
    if (error) unlink(path);
    file->head = error ? NULL : memory;
    return error;
}

void copy_begin(CopyFile *file, const CopyHead *head) {
    file->head->whole = 0;
    atomic_thread_fence(memory_order_seq_cst);
    *file->head = *head;
    memcpy(file->head->magic, MAGIC, sizeof MAGIC);
    file->head->whole = 0;
}

void copy_end(CopyFile *file) {
    file->head->sum = sum_file(file);
    atomic_thread_fence(memory_order_seq_cst);
    file->head->whole = file->head->number;
}

void copy_close(CopyFile *file) {
    if (file->head) munmap(file->head, file->bytes);
    *file = (CopyFile){0};
}

/* ---- folders ---- */

static bool is_whole(const CopyFile *file) {
    const CopyHead *head = file->head;
    bool fits = file->bytes >= HEAD_BYTES && !memcmp(head->magic, MAGIC, sizeof MAGIC) &&
                head->whole && head->whole == head->number;
    fits = fits && head->bytes >= 0 && head->header_bytes >= 0 &&
           head->header_bytes < (int64_t)file->bytes && head->bytes < (int64_t)file->bytes &&
           file_bytes(head) <= file->bytes;
    return fits && sum_file(file) == head->sum;
}

/* Prints a message if a file has another version of the format. */
static void tell_version(const CopyFile *file, const char *path) {
    enum { VERSION = sizeof MAGIC - 1 };
    const char *magic = file->head->magic;
    if (file->bytes >= HEAD_BYTES && !memcmp(magic, MAGIC, VERSION) &&
        magic[VERSION] != MAGIC[VERSION])
        fprintf(stderr,
                "hetu: the copy %s is not used: its format has version %c, and this library reads "
                "version %c\n",
                path, magic[VERSION], MAGIC[VERSION]);
}

/* Maps a file into memory; returns false unless it is valid. */
static bool map_file(const char *folder, const char *name, CopyFile *file) {
    char path[PATH_ROOM];
    struct stat about;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const char *why;
    int descriptor = private_is(folder) ? file_open_own(path, &why) : -1;
    bool good = descriptor >= 0 && !fstat(descriptor, &about) && about.st_size > 0;
    void *memory =
        good ? mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, descriptor, 0) : MAP_FAILED;
    if (descriptor >= 0) close(descriptor);
    if (memory == MAP_FAILED) return false;
    *file = (CopyFile){memory, (size_t)about.st_size};
    tell_version(file, path);
    if (!is_whole(file)) copy_close(file);
    return file->head;
}

static int is_copy(const struct dirent *entry) { return *entry->d_name != '.'; }

CopyFile *copies_read(const char *folder, int turn, int turns, int *count) {
    struct dirent **entries = NULL;
    int found = private_is(folder) ? scandir(folder, &entries, is_copy, alphasort) : 0;
    CopyFile *files = memory_array(found, sizeof *files);
    *count = 0;
    for (int i = 0; i < found; i++) {
        *count += i % turns == turn && map_file(folder, entries[i]->d_name, &files[*count]);
        free(entries[i]);
    }
    free(entries);
    return files;
}

void copies_remove(const char *folder, uint64_t but) {
    char path[PATH_ROOM], kept[32];
    struct dirent **entries = NULL;
    int found = private_is(folder) ? scandir(folder, &entries, is_copy, alphasort) : 0;
    snprintf(kept, sizeof kept, START, but);
    for (int i = 0; i < found; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (!but || strncmp(entries[i]->d_name, kept, strlen(kept))) unlink(path);
        free(entries[i]);
    }
    free(entries);
    if (!but) rmdir(folder);
}

/* Returns `parent`'s first private folder whose name begins with `head`, free() it; or NULL. */
static char *find_private(const char *parent, const char *head) {
    char path[PATH_ROOM];
    struct dirent **entries = NULL;
    char *first = NULL;
    int found = scandir(parent, &entries, NULL, alphasort);
    for (int i = 0; i < found; i++) {
        bool named = !strncmp(entries[i]->d_name, head, strlen(head));
        if (!first && named &&
            snprintf(path, sizeof path, "%s/%s", parent, entries[i]->d_name) < (int)sizeof path &&
            private_is(path))
            first = strdup(path);
        free(entries[i]);
    }
    free(entries);
    return first;
}

char *copies_folder(const char *named) {
    struct stat about;
    char parent[PATH_ROOM], head[NAME_MAX + 1], made[PATH_ROOM];
    const char *slash = strrchr(named, '/');
    if (!slash || lstat(named, &about) || private_is(named)) return strdup(named);
    snprintf(parent, sizeof parent, "%.*s", slash > named ? (int)(slash - named) : 1, named);
    snprintf(head, sizeof head, "%s+", slash + 1);
    char *found = find_private(parent, head);
    return found                                           ? found
           : private_make(made, sizeof made, parent, head) ? strdup(named)
                                                           : strdup(made);
}

/* ---- the folder of checkpoints ---- */

static uint64_t read_key(const char *path) {
    uint64_t key = 0;
    FILE *in = file_read_input(path, NULL);
    if (in && fscanf(in, "%" SCNx64, &key) != 1) key = 0;
    if (in) fclose(in);
    return key;
}

/* Writes a new random key into an open folder; returns the key, or 0 with errno set. */
static uint64_t write_key(const OpenFolder *folder) {
    char path[PATH_ROOM + 16];
    uint64_t key;
    snprintf(path, sizeof path, "%s/copies", folder->path);
    int file = file_create(path);
    FILE *out = file < 0 ? NULL : fdopen(file, "w");
    bool good = out && getrandom(&key, sizeof key, 0) == sizeof key &&
                fprintf(out, "%016" PRIx64 "\n", key |= 1) > 0;
    if (out) good = !fclose(out) && good;
    return good ? key : 0;
}

uint64_t copies_key(const char *folder, bool make) {
    char path[PATH_ROOM + 16];
    OpenFolder open;
    snprintf(path, sizeof path, "%s/copies", folder);
    uint64_t key = read_key(path);
    if (key || !make) return key;
    int error = folder_open(&open, folder);
    if (!error) {
        key = write_key(&open);
        error = errno;
        folder_close(&open);
    }
    errno = error;
    return key;
}
