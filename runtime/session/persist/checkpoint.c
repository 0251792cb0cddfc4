/* Saves checkpoints while training goes on: one is written at a time, one may wait. A newer one
 * replaces the one that waits. checkpoint/writing.c writes files; load_resharded.c loads them. */
#include "session/persist/checkpoint.h"

#include "base/memory.h"
#include "checkpoint/writing.h"
#include "session/persist/saved_tensors.h"
#include "transport/watchdog/watchdog.h"
#include "transport/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH_ROOM = 4096, NAME_ROOM = 1024 };

/* ---- saving ---- */

/* Begins to write the waiting checkpoint; no other may be in progress. All ranks call it. */
static void begin_waiting(ht_session *session) {
    static int begun;
    WritingPlan *plan = session->waiting;
    plan->task = ++begun;
    if (!plan->rank) writing_clear(plan);
    world_least(0); // barrier: rank 0 has cleared the folder
    session->writing = writing_begin(plan);
    session->waiting = NULL;
    free(plan);
}

/* On rank 0: checkpoints that failed or gave way to newer ones, since the last written one. */
static struct {
    int count;
    int64_t first, last;
    char folder[PATH_ROOM];
    bool said; // the message has been printed at the session's end
} unsaved;

static void note_unsaved(const char *folder, int64_t step) {
    // A checkpoint that was given up for a newer one is noted before an older one that was written.
    unsaved.first = unsaved.count && unsaved.first < step ? unsaved.first : step;
    unsaved.last = unsaved.count && unsaved.last > step ? unsaved.last : step;
    unsaved.count++;
    snprintf(unsaved.folder, sizeof unsaved.folder, "%s", folder);
}

static void end_writing(ht_session *session) {
    WritingPlan plan = {.rank = -1};
    if (!session->writing) return;
    const WritingPlan *written = writing_plan(session->writing);
    plan.rank = written->rank;
    plan.step = written->step;
    snprintf(plan.folder, sizeof plan.folder, "%s", written->folder);
    if (writing_end(session->writing)) unsaved.count = 0;
    else if (!plan.rank) note_unsaved(plan.folder, plan.step);
    session->writing = NULL;
}

bool checkpoint_due(const ht_session *session) {
    return session->waiting && writing_done(session->writing);
}

void checkpoint_turn(ht_session *session) {
    if (!session->waiting || !world_least(writing_done(session->writing))) return;
    end_writing(session);
    begin_waiting(session);
}

void checkpoint_wait(ht_session *session) {
    end_writing(session);
    if (session->waiting) begin_waiting(session);
    end_writing(session);
}

/* Returns the newest step whose checkpoint in a folder has a manifest; -1: none. */
static int64_t newest_step(const char *folder) {
    int count;
    char path[PATH_ROOM];
    int64_t newest = -1, *steps = writing_steps(folder, &count);
    for (int i = 0; i < count && newest < 0; i++) {
        writing_path(path, sizeof path, folder, steps[i], "manifest");
        newest = access(path, F_OK) ? -1 : steps[i];
    }
    free(steps);
    return newest;
}

const char *checkpoint_foreign(ht_session *session, const char *folder, bool all) {
    static char text[PATH_ROOM + 4 * NAME_ROOM];
    char path[PATH_ROOM];
    int64_t step = newest_step(folder);
    Stored stored;
    struct stat about;
    if (step < 0) return NULL;
    writing_path(path, sizeof path, folder, step, "safetensors");
    if (lstat(path, &about) || about.st_uid != geteuid()) return NULL;
    const char *wrong = NULL;
    if (!stored_open(&stored, path, NULL)) {
        SavedTensors list = saved_tensors_list(session);
        wrong = saved_tensors_foreign(&list, &stored.at[0].file, all);
        saved_tensors_free(&list);
    }
    stored_close(&stored);
    if (wrong) snprintf(text, sizeof text, "%s: %s", path, wrong);
    return wrong ? text : NULL;
}

/* Turns exit status 0 into 1 if the last checkpoints were not written (exit handler). */
static void end_unsaved(int status, void *argument) {
    (void)argument;
    if (!status && unsaved.said) exit(1);
}

void checkpoint_open(void) {
    unsaved.count = 0;
    on_exit(end_unsaved, NULL);
}

void checkpoint_close(ht_session *session) {
    char steps[64], newest[96] = "no checkpoint was written";
    checkpoint_wait(session);
    if (!unsaved.count) return;
    int64_t step = newest_step(unsaved.folder);
    snprintf(steps, sizeof steps, unsaved.count > 1 ? "%lld to %lld" : "%lld",
             (long long)unsaved.first, (long long)unsaved.last);
    if (step >= 0) snprintf(newest, sizeof newest, "its newest is of step %lld", (long long)step);
    fprintf(stderr,
            "hetu: the last checkpoint%s of this run, %d in %s, of step%s %s, %s not written; %s, "
            "and what was learnt since is lost. "
            "The exit status is 1\n",
            unsaved.count > 1 ? "s" : "", unsaved.count, unsaved.folder,
            unsaved.count > 1 ? "s" : "", steps, unsaved.count > 1 ? "were" : "was", newest);
    unsaved.said = true;
}

static void drop_waiting(ht_session *session, int64_t step) {
    WritingPlan *plan = session->waiting;
    session->waiting = NULL;
    if (plan && !plan->rank)
        fprintf(stderr,
                "hetu: the checkpoint %s/step-%08lld was not written: an older one still was when "
                "that of step %lld came\n",
                plan->folder, (long long)plan->step, (long long)step);
    if (plan && !plan->rank) note_unsaved(plan->folder, plan->step);
    if (plan) writing_drop(plan);
    free(plan);
}

/* Begins the waiting checkpoint if the last is written within 0.2 s: fast disks drop none. */
static void wait_a_little(ht_session *session) {
    enum { TRIES = 200 };
    for (int try = 0; session->waiting && try < TRIES && !writing_done(session->writing); try++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    checkpoint_turn(session);
}

void checkpoint_save(ht_session *session, const char *folder, const CheckpointRequest *request) {
    wait_a_little(session);
    drop_waiting(session, request->step);
    WritingPlan *plan = memory_array(1, sizeof *plan);
    *plan = (WritingPlan){.step = request->step,
                          .rank = world_rank(),
                          .ranks = world_size(),
                          .keep = request->keep,
                          .patience = 0.9 * watchdog_timeout(), // s; the watchdog waits longer
                          .report = watchdog_report_failure,
                          .reported = watchdog_failure_of};
    int64_t to;
    snprintf(plan->folder, sizeof plan->folder, "%s", folder);
    SavedTensors list = saved_tensors_list(session);
    SafeFile file = saved_tensors_file(&list, request->notes, request->note_count);
    writing_range(file.bytes, plan->rank, plan->ranks, &plan->at, &to);
    plan->bytes = to - plan->at;
    plan->range = memory_storage(plan->bytes);
    saved_tensors_collect(&list, &file, plan->at, plan->range);
    plan->header = plan->rank ? NULL : safetensors_header(&file, &plan->header_bytes);
    world_broadcast(&plan->header_bytes, sizeof plan->header_bytes);
    session->waiting = plan;
    checkpoint_turn(session);
    free(file.at);
    saved_tensors_free(&list);
}
