/* Writes a checkpoint's files in a thread, syncs and renames them, and removes old ones (keep). */
#include "checkpoint/writing.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/timeline.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH_ROOM = 4096, NAME_ROOM = PATH_ROOM + 16 };

enum { ABANDONED = -1, MOST_NAMED = 8 }; // MOST_NAMED: ranks that a message names

static const double REPORT_SECONDS = 1; // how long rank 0 waits for the reports of failed ranks

struct Writing {
    WritingPlan plan;
    pthread_t thread;
    int error; // errno of a failure; ABANDONED: another rank has failed; 0: none
    atomic_bool done;
};

void writing_range(int64_t bytes, int rank, int ranks, int64_t *begin, int64_t *end) {
    int64_t elements = bytes / 4, each = elements / ranks, rest = elements % ranks;
    *begin = 4 * (each * rank + (rank < rest ? rank : rest));
    *end = *begin + 4 * (each + (rank < rest));
}

void writing_path(char *path, size_t room, const char *folder, int64_t step, const char *suffix) {
    snprintf(path, room, "%s/step-%08lld.%s", folder, (long long)step, suffix);
}

/* ---- files ---- */

/* The functions of this section return 0, or an errno. */
static int write_at(int file, const char *from, size_t bytes, off_t at) {
    for (ssize_t part; bytes; bytes -= (size_t)part, at += part, from += part)
        if ((part = pwrite(file, from, bytes, at)) < 0 && errno != EINTR) return errno;
        else part = part < 0 ? 0 : part;
    return 0;
}

static int finish(int file, int error) {
    error = error ? error : fsync(file) ? errno : 0;
    return close(file) && !error ? errno : error;
}

static int sync_folder(const char *folder) {
    int file = open(folder, O_RDONLY | O_DIRECTORY);
    return file < 0 ? errno : finish(file, 0);
}

/* Writes a file under a temporary name, syncs it, and renames it. Returns 0 or an errno. */
static int write_text(const char *path, const char *text, size_t bytes) {
    char part[NAME_ROOM + 8];
    snprintf(part, sizeof part, "%s.new", path);
    int file = file_create(part);
    int error = file < 0 ? errno : finish(file, write_at(file, text, bytes, 0));
    error = error ? error : rename(part, path) ? errno : 0;
    if (error) unlink(part);
    return error;
}

/* ---- this rank's range ---- */

/* Writes the checksums of this rank's range to the file PATH.RANK, one line "BEGIN BYTES CRC" for
 * each chunk. Returns 0 or an errno. */
static int write_sums(const WritingPlan *plan, const char *path) {
    char *text = NULL, name[NAME_ROOM];
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out) return ENOMEM;
    for (int64_t at = 0; at < plan->bytes; at += CHUNK_BYTES) {
        int64_t bytes = plan->bytes - at < CHUNK_BYTES ? plan->bytes - at : CHUNK_BYTES;
        fprintf(out, "%lld %lld %08x\n", (long long)(plan->at + at), (long long)bytes,
                checksum(0, plan->range + at, (size_t)bytes));
    }
    fclose(out);
    snprintf(name, sizeof name, "%s.%d", path, plan->rank);
    int error = write_text(name, text, length);
    free(text);
    return error;
}

/* Writes this rank's range and checksums, and rank 0's header. Returns 0, an errno, or ABANDONED if
 * another rank has failed and removed the file. */
static int write_range(const WritingPlan *plan, const char *path) {
    int file = file_open_made(path);
    if (file < 0) return errno == ENOENT || errno == ENOTDIR ? ABANDONED : errno;
    int error = plan->rank ? 0 : write_at(file, plan->header, plan->header_bytes, 0);
    error = error ? error
                  : write_at(file, plan->range, (size_t)plan->bytes,
                             (off_t)plan->header_bytes + plan->at);
    error = finish(file, error);
    return error ? error : write_sums(plan, path);
}

/* ---- rank 0, when all have written ---- */

/* Waits until the checksum files of all ranks exist. Returns 0; ABANDONED if a rank has failed
 * (.part removed, or reported); EPERM if another user owns a file; ETIMEDOUT when patience ends. */
static int await_sums(const WritingPlan *plan, const char *path) {
    char name[NAME_ROOM];
    struct stat part, sums;
    double until = timeline_now() + plan->patience;
    if (lstat(path, &part)) return ABANDONED;
    for (int rank = 0; rank < plan->ranks;) {
        snprintf(name, sizeof name, "%s.%d", path, rank);
        bool there = !lstat(name, &sums);
        if (there && sums.st_uid != part.st_uid) return EPERM;
        if (there) {
            rank++;
            continue;
        }
        if (access(path, F_OK) || plan->reported(plan->task, &(int){0})) return ABANDONED;
        if (plan->patience > 0 && timeline_now() > until) return ETIMEDOUT;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    return 0;
}

static void add_file(FILE *out, const char *path) {
    char piece[4096];
    FILE *in = file_read_input(path, NULL);
    for (size_t bytes; in && (bytes = fread(piece, 1, sizeof piece, in));)
        fwrite(piece, 1, bytes, out);
    if (in) fclose(in);
}

/* Writes the manifest: a line for the header, the ranks' lines, and the checksum of all. */
static int write_manifest(const WritingPlan *plan, const char *part, const char *path) {
    char *text = NULL, name[NAME_ROOM];
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out) return ENOMEM;
    fprintf(out, "header %zu %08x\n", plan->header_bytes,
            checksum(0, plan->header, plan->header_bytes));
    for (int rank = 0; rank < plan->ranks; rank++) {
        snprintf(name, sizeof name, "%s.%d", part, rank);
        add_file(out, name);
    }
    fflush(out);
    fprintf(out, MANIFEST_END, checksum(0, text, length));
    fclose(out);
    int error = write_text(path, text, length);
    free(text);
    return error;
}

/* Removes the files of a checkpoint, the manifest first. */
static void remove_step(const char *folder, int64_t step) {
    static const char *const suffixes[] = {"manifest", "safetensors"};
    char path[PATH_ROOM];
    for (int i = 0; i < 2; i++) {
        writing_path(path, sizeof path, folder, step, suffixes[i]);
        unlink(path);
    }
}

static int newer_first(const void *a, const void *b) {
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left < right) - (left > right);
}

int64_t *writing_steps(const char *folder, int *count) {
    DIR *found = opendir(folder);
    int64_t *steps = NULL;
    *count = 0;
    for (struct dirent *entry; found && (entry = readdir(found));) {
        long long step;
        int end = 0;
        if (sscanf(entry->d_name, "step-%lld.safetensors%n", &step, &end) != 1 || !end ||
            entry->d_name[end])
            continue;
        steps = realloc(steps, sizeof *steps * (size_t)(*count + 1));
        steps[(*count)++] = step;
    }
    if (found) closedir(found);
    if (steps) qsort(steps, (size_t)*count, sizeof *steps, newer_first);
    return steps;
}

static bool has_manifest(const char *folder, int64_t step) {
    char path[PATH_ROOM];
    writing_path(path, sizeof path, folder, step, "manifest");
    return !access(path, F_OK);
}

/* Removes old checkpoints, so that the `keep` newest valid ones stay. Checkpoints without a
 * manifest, or with steps that this run has not reached, do not count among these. */
static void remove_older(const WritingPlan *plan) {
    int count, kept = 0;
    int64_t *steps = writing_steps(plan->folder, &count);
    for (int i = 0; plan->keep && i < count; i++)
        if (kept < plan->keep)
            kept += steps[i] <= plan->step && has_manifest(plan->folder, steps[i]);
        else remove_step(plan->folder, steps[i]);
    free(steps);
}

static void remove_sums(const WritingPlan *plan, const char *part) {
    char name[NAME_ROOM];
    for (int rank = 0; rank < plan->ranks; rank++) {
        snprintf(name, sizeof name, "%s.%d", part, rank);
        unlink(name);
    }
}

/* Removes files of killed programs, and creates the .part file. Returns 0, or an errno. */
static int clear_folder(const WritingPlan *plan, const char *folder) {
    char part[NAME_ROOM + 512];
    DIR *found = opendir(folder);
    for (struct dirent *entry; found && (entry = readdir(found));)
        if (!strncmp(entry->d_name, "step-", 5) && strstr(entry->d_name, ".part")) {
            snprintf(part, sizeof part, "%s/%s", folder, entry->d_name);
            unlink(part);
        }
    if (found) closedir(found);
    writing_path(part, sizeof part, folder, plan->step, "part");
    int file = file_create(part);
    if (file < 0) return errno;
    close(file);
    return 0;
}

void writing_clear(WritingPlan *plan) {
    OpenFolder folder;
    plan->error = folder_open(&folder, plan->folder);
    if (plan->error) return;
    plan->error = clear_folder(plan, folder.path);
    folder_close(&folder);
}

static int name_all(const WritingPlan *plan, const char *part) {
    char path[PATH_ROOM], manifest[PATH_ROOM];
    writing_path(path, sizeof path, plan->folder, plan->step, "safetensors");
    writing_path(manifest, sizeof manifest, plan->folder, plan->step, "manifest");
    int error = await_sums(plan, part);
    unlink(manifest);
    error = error ? error : rename(part, path) ? errno : sync_folder(plan->folder);
    error = error ? error : write_manifest(plan, part, manifest);
    error = error ? error : sync_folder(plan->folder);
    if (!error) {
        remove_sums(plan, part);
        remove_older(plan);
    }
    return error;
}

/* After an error, removes the .part file and the checksum files that exist. Otherwise removes this
 * rank's checksum file if another rank has abandoned the checkpoint. */
static void remove_failed(const WritingPlan *plan, const char *part, int error) {
    char path[PATH_ROOM], name[NAME_ROOM];
    writing_path(path, sizeof path, plan->folder, plan->step, "safetensors");
    snprintf(name, sizeof name, "%s.%d", part, plan->rank);
    if (error) {
        unlink(part);
        remove_sums(plan, part);
    } else if (access(part, F_OK) && access(path, F_OK)) {
        unlink(name);
    }
}

/* Writes this rank's part; rank 0 completes the checkpoint. Returns the value of Writing.error. */
static int write_part(const WritingPlan *plan) {
    char part[PATH_ROOM];
    writing_path(part, sizeof part, plan->folder, plan->step, "part");
    int error = plan->error ? plan->error : write_range(plan, part);
    if (!error && !plan->rank) error = name_all(plan, part);
    remove_failed(plan, part, error);
    return error;
}

/* Adds the ranks that failed with an error to a text: "ranks 2, 3: Permission denied". */
static void add_failures(const WritingPlan *plan, int error, char *text, size_t room) {
    size_t length = strlen(text);
    int found, count = 0;
    char list[256] = "";
    for (int rank = 0; (found = plan->reported(plan->task, &rank));) {
        size_t end = strlen(list);
        if (found == error) count++;
        if (found == error && count <= MOST_NAMED)
            snprintf(list + end, sizeof list - end, "%s%d", count > 1 ? ", " : "", rank);
    }
    snprintf(text + length, room - length, "%srank%s %s%s: %s", length ? "; " : "",
             count > 1 ? "s" : "", list, count > MOST_NAMED ? ", ..." : "",
             error == ABANDONED
                 ? "it does not find the file that rank 0 made; do all ranks see the folder?"
                 : folder_error(error));
}

/* Lists the reasons of all failed ranks, each reason once. A rank that only misses the file of a
 * failed checkpoint is listed where no rank has another reason. */
static void list_failures(const WritingPlan *plan, char *text, size_t room) {
    int error, earlier, reasons = 0;
    for (int rank = 0; (error = plan->reported(plan->task, &rank));) reasons += error > 0;
    for (int rank = 0; (error = plan->reported(plan->task, &rank));) {
        bool known = error < 0 && reasons;
        for (int other = 0; (earlier = plan->reported(plan->task, &other)) && other < rank;)
            known = known || earlier == error;
        if (!known) add_failures(plan, error, text, room);
    }
}

/* Reports this rank's failure to rank 0 and on standard error. If another rank is the cause, rank 0
 * first waits REPORT_SECONDS for the reports of the others. */
static void share_failure(const Writing *writing) {
    const WritingPlan *plan = &writing->plan;
    double until = timeline_now() + REPORT_SECONDS;
    char why[1024] = "";
    if (!writing->error) return;
    if (plan->rank) plan->report(plan->task, writing->error);
    if (plan->rank && writing->error == ABANDONED) return;
    while (writing->error == ABANDONED && timeline_now() < until)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    if (writing->error != ABANDONED) snprintf(why, sizeof why, "%s", folder_error(writing->error));
    else list_failures(plan, why, sizeof why);
    fprintf(stderr, "hetu: the checkpoint %s/step-%08lld was not written: %s\n", plan->folder,
            (long long)plan->step, *why ? why : "a rank could not write its range");
}

static void *write_all(void *argument) {
    Writing *writing = argument;
    WritingPlan plan = writing->plan;
    OpenFolder folder;
    file_size_errors();
    writing->error = folder_open(&folder, plan.folder);
    if (!writing->error) {
        snprintf(plan.folder, sizeof plan.folder, "%s", folder.path);
        writing->error = write_part(&plan);
        folder_close(&folder);
    }
    share_failure(writing);
    writing->done = true;
    return NULL;
}

Writing *writing_begin(const WritingPlan *plan) {
    Writing *writing = memory_array(1, sizeof *writing);
    writing->plan = *plan;
    if (pthread_create(&writing->thread, NULL, write_all, writing)) {
        write_all(writing);
        writing->thread = pthread_self();
    }
    return writing;
}

bool writing_done(const Writing *writing) { return !writing || writing->done; }

const WritingPlan *writing_plan(const Writing *writing) { return &writing->plan; }

void writing_drop(WritingPlan *plan) {
    free(plan->header);
    free(plan->range);
}

bool writing_end(Writing *writing) {
    if (!writing) return true;
    if (!pthread_equal(writing->thread, pthread_self())) pthread_join(writing->thread, NULL);
    bool good = !writing->error;
    writing_drop(&writing->plan);
    free(writing);
    return good;
}
