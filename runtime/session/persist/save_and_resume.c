/* The public interface of checkpoints and in-memory checkpoints, on rank 0. load_resharded.c reads
 * on any number of ranks, under any strategy. */
#include "base/c_locale.h"
#include "base/files.h"
#include "checkpoint/copies.h"
#include "checkpoint/writing.h"
#include "session/persist/checkpoint.h"
#include "session/control/control.h"
#include "session/data/rows.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NOTES = 256, NOTE_ROOM = 64, PATH_ROOM = 4096 };

void ht_keep(ht_session *open, int checkpoints) {
    session_check_open(open);
    if (checkpoints < 0)
        ht_fail("ht_keep was called with %d checkpoints to keep; 0 keeps all", checkpoints);
    open->keep = checkpoints;
}

/* Metadata key of the step of the ht_note numbers, if they are older than the tensors. */
static const char STALE[] = "numbers.step";

int64_t saved_steps(const ht_session *open) {
    for (int p = 0; p < open->handle_count; p++)
        if (open->handles[p]->trains) return open->handles[p]->step;
    return 0;
}

static int add_note(SafeNote *notes, int count, const char *key, const char *value) {
    if (count == MOST_NOTES) ht_fail("a checkpoint has %d numbers at most", MOST_NOTES);
    notes[count] = (SafeNote){strdup(key), strdup(value)};
    if (!notes[count].key || !notes[count].value)
        ht_fail("no memory for the numbers of a checkpoint");
    return count + 1;
}

/* Writes a checkpoint's metadata to `notes`: the format, the seed, the step and optimizers of each
 * program that trains, the datasets' positions, and ht_note's numbers. Returns their number. */
static int take_notes(const ht_session *open, const ht_noted *noted, SafeNote *notes) {
    char key[4 * NOTE_ROOM], value[NOTE_ROOM];
    int count = add_note(notes, 0, "format", "hetu");
    snprintf(value, sizeof value, "%llu", (unsigned long long)open->seed);
    count = add_note(notes, count, "seed", value);
    for (int p = 0, trained = 0; p < open->handle_count; p++) {
        if (!open->handles[p]->trains) continue;
        snprintf(key, sizeof key, "step.%d", trained);
        snprintf(value, sizeof value, "%lld", (long long)open->handles[p]->step);
        count = add_note(notes, count, key, value);
        snprintf(key, sizeof key, "optimizer.%d", trained++);
        if (open->handles[p]->optimizers)
            count = add_note(notes, count, key, open->handles[p]->optimizers);
    }
    for (int d = 0; d < open->datasets.count; d++) {
        snprintf(key, sizeof key, "rows.%s", open->datasets.at[d].name);
        snprintf(value, sizeof value, "%lld", (long long)open->datasets.at[d].position);
        count = add_note(notes, count, key, value);
    }
    for (; noted->name; noted++) {
        snprintf(key, sizeof key, SAVED_NUMBER "%s", noted->name);
        plain_format(value, sizeof value, "%.17g", noted->value);
        count = add_note(notes, count, key, value);
    }
    return count;
}

static void free_notes(SafeNote *notes, int count) {
    for (int i = 0; i < count; i++) {
        free((char *)notes[i].key);
        free((char *)notes[i].value);
    }
}

/* Ends the program if the arguments of ht_save or ht_remember are wrong. */
static void check_saving(const char *call, const ht_session *open, const char *folder,
                         const ht_noted *noted) {
    session_check_open(open);
    if (!folder || !noted)
        ht_fail("%s was called with NULL for the %s", call, folder ? "numbers" : "folder");
    if (strlen(folder) > PATH_ROOM / 2)
        ht_fail("the path of a folder of checkpoints has %d bytes at most", PATH_ROOM / 2);
}

void saved_save(ht_session *open, const char *folder, const ht_noted *noted, int64_t noted_at) {
    SafeNote notes[MOST_NOTES];
    char step[NOTE_ROOM];
    int count = take_notes(open, noted, notes);
    snprintf(step, sizeof step, "%lld", (long long)noted_at);
    if (noted->name && noted_at != saved_steps(open)) count = add_note(notes, count, STALE, step);
    Command command = {
        .kind = COMMAND_SAVE,
        .save = {.step = saved_steps(open), .note_count = count, .keep = open->keep}};
    session_issue(open, &command, &(Payload){.save = {.folder = folder, .notes = notes}});
    free_notes(notes, count);
}

/* Ends the program if the folder's checkpoints are of another model: this model would overwrite
 * them, and neither program could resume. `all`: the session has all models of the program, as at
 * ht_resume, not only those opened before an ht_save. */
static void refuse_foreign(const char *call, ht_session *open, const char *folder, bool all) {
    const char *wrong = checkpoint_foreign(open, folder, all);
    if (wrong)
        ht_fail("%s was called with the folder %s, which holds checkpoints of another model (%s); "
                "name another folder, or remove these checkpoints",
                call, folder, wrong);
}

/* Ends the program if the folder is of another model (refuse_foreign); checks each folder once. */
static void check_owner(ht_session *open, const char *folder) {
    if (open->owned && !strcmp(open->owned, folder)) return;
    refuse_foreign("ht_save", open, folder, false);
    free(open->owned);
    open->owned = strdup(folder);
}

void ht_save_with(ht_session *open, const char *folder, const ht_noted *noted) {
    check_saving("ht_save", open, folder, noted);
    check_owner(open, folder);
    ending_heed(open);
    saved_save(open, folder, noted, saved_steps(open));
    ending_saved(open, folder, noted);
}

/* Returns whether in-memory checkpoints are taken (HETU_COPIES). */
static bool copies_wanted(void) {
    const char *folder = getenv("HETU_COPIES");
    return folder && *folder;
}

void ht_remember_with(ht_session *open, const char *folder, const ht_noted *noted) {
    SafeNote notes[MOST_NOTES];
    static bool said;
    check_saving("ht_remember", open, folder, noted);
    ending_remembered(open, folder, noted);
    if (!copies_wanted()) return;
    uint64_t key = copies_key(folder, true);
    if (!key && !said)
        fprintf(stderr,
                "hetu: no copies are taken in shared memory: %s/copies cannot be written: %s\n",
                folder, folder_error(errno));
    said = !key;
    if (!key) return;
    int count = take_notes(open, noted, notes);
    Command command = {.kind = COMMAND_REMEMBER,
                       .remember = {.step = saved_steps(open), .note_count = count, .key = key}};
    session_issue(open, &command, &(Payload){.save = {.notes = notes}});
    free_notes(notes, count);
}

/* Sets the datasets' positions to the saved ones; datasets without a saved position begin at 0. */
static void take_datasets(ht_session *open) {
    static const char prefix[] = "rows.";
    for (int d = 0; d < open->datasets.count; d++) open->datasets.at[d].position = 0;
    for (int n = 0; n < open->loaded.note_count; n++)
        if (!strncmp(open->loaded.notes[n].key, prefix, sizeof prefix - 1))
            rows_dataset(open, open->loaded.notes[n].key + sizeof prefix - 1)->position =
                strtoll(open->loaded.notes[n].value, NULL, 10);
}

/* Sets the programs' steps, the seed and the datasets' positions to the saved ones. */
static void take_steps(ht_session *open) {
    char key[NOTE_ROOM];
    take_datasets(open);
    const char *stale = safetensors_note(&open->loaded, STALE);
    if (stale)
        fprintf(stderr,
                "hetu: main's numbers in the checkpoint are those of step %s: a signal ended the "
                "program before main saved its own\n",
                stale);
    const char *seed = safetensors_note(&open->loaded, "seed");
    open->seed = seed ? strtoull(seed, NULL, 10) : open->seed;
    if (open->eager) session_eager()->store_resume(open->eager, open->seed);
    for (int p = 0, trained = 0; p < open->handle_count; p++) {
        ht_program *program = open->handles[p];
        snprintf(key, sizeof key, "step.%d", trained);
        trained += program->trains;
        const char *step = program->trains ? safetensors_note(&open->loaded, key) : NULL;
        if (!step) continue;
        program->step = strtoll(step, NULL, 10);
        Command command = {
            .kind = COMMAND_STEPS,
            .steps = {.program = program->number, .step = program->step, .seed = open->seed}};
        if (program->eager) session_eager()->program_resume(program->eager, program->step);
        else session_issue(open, &command, &(Payload){0});
    }
}

static const char *load(ht_session *open, const char *path, const char *manifest,
                        const char *names) {
    Payload payload = {.load = {.path = path, .manifest = manifest, .names = names}};
    session_issue(open, &(Command){.kind = COMMAND_LOAD}, &payload);
    if (!payload.load.reason) take_steps(open);
    return payload.load.reason;
}

/* Returns the names of ht_load_as as lines (foreign_tensors.h: Stored.names); free() them. */
static char *names_text(const ht_stored *names) {
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    for (; out && names->name; names++) {
        if (!names->stored || strpbrk(names->name, "\t\n") || strpbrk(names->stored, "\t\n"))
            ht_fail("ht_load_as was called with %s for \"%s\"",
                    names->stored ? "a name with tabs or line ends" : "no name", names->name);
        fprintf(out, "%s\t%s\t%d\n", names->name, names->stored, names->transposed);
    }
    if (!out || fclose(out) || !text) ht_fail("no memory for the names of a file's tensors");
    return text;
}

void ht_load_as(ht_session *open, const char *path, const ht_stored *names) {
    session_check_open(open);
    if (!path) ht_fail("ht_load was called with NULL for the path");
    char *text = names ? names_text(names) : NULL;
    const char *reason = load(open, path, NULL, text);
    if (reason) ht_fail("cannot load %s: %s", path, reason);
    free(text);
}

void ht_load(ht_session *open, const char *path) { ht_load_as(open, path, NULL); }

/* Returns the step of the newest in-memory checkpoint for a folder; -1: there is none. Waits until
 * this program's checkpoints are written. */
static int64_t find_copy(ht_session *open, const char *folder) {
    uint64_t key = copies_wanted() ? copies_key(folder, false) : 0;
    Payload payload = {.found = -1};
    session_issue(open, &(Command){.kind = COMMAND_FIND, .find.key = key}, &payload);
    return payload.found;
}

/* Resumes from the in-memory checkpoint that was found. Returns false after a message. */
static bool take_copy(ht_session *open, int64_t step) {
    Payload payload = {0};
    session_issue(open, &(Command){.kind = COMMAND_RECALL}, &payload);
    if (payload.load.reason)
        fprintf(stderr, "hetu: the copy of step %lld in shared memory is not used: %s\n",
                (long long)step, payload.load.reason);
    else take_steps(open);
    return !payload.load.reason;
}

/* Resumes from a checkpoint. Returns false after a message. */
static bool take_checkpoint(ht_session *open, const char *folder, int64_t step) {
    char path[PATH_ROOM], manifest[PATH_ROOM];
    writing_path(path, sizeof path, folder, step, "safetensors");
    writing_path(manifest, sizeof manifest, folder, step, "manifest");
    const char *reason = load(open, path, manifest, NULL);
    if (reason) fprintf(stderr, "hetu: the checkpoint %s is not used: %s\n", path, reason);
    return !reason;
}

/* Ends the program if a folder is there and cannot be read: training would start from scratch, and
 * overwrite what was learnt. */
static void check_folder(const char *folder) {
    DIR *there = opendir(folder);
    if (!there && errno != ENOENT)
        ht_fail("ht_resume cannot read the folder %s: %s; name a folder of checkpoints, which need "
                "not be there yet",
                folder, plain_error(errno));
    if (there) closedir(there);
}

int64_t ht_resume(ht_session *open, const char *folder) {
    int count;
    bool found = false;
    int used = 0; // index of the checkpoint that is used; 0: the newest
    session_check_open(open);
    if (!folder || strlen(folder) > PATH_ROOM / 2)
        ht_fail("ht_resume was called with %s",
                folder ? "too long a path for the folder" : "NULL for the folder");
    if (!open->handle_count)
        ht_fail("ht_resume was called before there was a program: call it behind ht_train and "
                "ht_infer");
    check_folder(folder);
    int64_t copy = find_copy(open, folder), *steps = writing_steps(folder, &count);
    for (int i = 0; i < count && !found; i++) {
        if (copy >= steps[i]) {
            found = take_copy(open, copy);
            copy = -1;
        }
        found = found || take_checkpoint(open, folder, steps[i]);
        used = i;
    }
    found = found || (copy >= 0 && take_copy(open, copy));
    free(steps);
    if (count && (!found || used)) refuse_foreign("ht_resume", open, folder, true);
    if (found) ending_resumed(open, folder);
    return found ? saved_steps(open) : 0;
}

double ht_noted_value(ht_session *open, const char *name, double otherwise) {
    char key[4 * NOTE_ROOM];
    session_check_open(open);
    if (!name) ht_fail("ht_noted_value was called with NULL for the name");
    snprintf(key, sizeof key, SAVED_NUMBER "%s", name);
    const char *value = safetensors_note(&open->loaded, key);
    return value ? plain_number(value) : otherwise;
}
