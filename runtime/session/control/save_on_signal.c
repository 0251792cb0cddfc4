/* Saves a checkpoint and ends the program when a signal asks it to end (base/signals.h), between
 * two steps, if there is time for it. */
#include "session/control/control.h"

#include "base/memory.h"
#include "base/c_locale.h"
#include "base/signals.h"
#include "checkpoint/writing.h"
#include "session/control/pace.h"
#include "session/persist/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIGNAL_STATUS = 128, PATH_ROOM = 4096 };

/* Seconds to wait for main's ht_save; mpirun kills ranks one second after SIGTERM. */
static const double PATIENCE = 0.5;

/* How main saves, and at which point of its loop. */
struct Ending {
    char *folder;         // NULL: nothing was saved
    ht_noted *notes;      // numbers of ht_note, ended by {0}
    int64_t noted_at;     // step at which `notes` were given
    bool vary;            // notes have differed between saves, or were given once
    int64_t keeps;        // how many times notes were given
    bool asks;            // main calls ht_told_to_end
    int64_t steps, every; // step of the last save; steps between the last two saves
    int64_t runs;         // runs_of at the last save: summed steps of all training programs
    double saved, told;   // times of the last save and of the signal, in seconds; told 0: no signal
    const ht_program *before, *next; // programs trained just before and just after the last save
    const ht_program *last;          // program that trained last
};

/* Returns the session's Ending, which the first call makes. */
static struct Ending *ending_of(ht_session *session) {
    if (!session->ending) session->ending = memory_array(1, sizeof *session->ending);
    return session->ending;
}

/* ---- the program's saves ---- */

static void free_notes(ht_noted *notes) {
    for (ht_noted *note = notes; note && note->name; note++) free((char *)note->name);
    free(notes);
}

/* Returns whether two lists have the same names and values. */
static bool same_notes(const ht_noted *a, const ht_noted *b) {
    for (; a->name && b->name; a++, b++)
        if (strcmp(a->name, b->name) || memcmp(&a->value, &b->value, sizeof a->value)) return false;
    return !a->name && !b->name;
}

/* Replaces the notes, and records whether the new notes differ from the previous ones. */
static void keep_notes(struct Ending *ending, const ht_noted *noted, int64_t step) {
    int count = 0;
    while (noted[count].name) count++;
    ht_noted *notes = memory_array(count + 1, sizeof *notes);
    for (int i = 0; i < count; i++) notes[i] = (ht_noted){strdup(noted[i].name), noted[i].value};
    bool other = !ending->keeps || !same_notes(ending->notes, notes);
    ending->vary = other || (ending->keeps > 1 && ending->vary);
    ending->keeps++;
    free_notes(ending->notes);
    ending->notes = notes;
    ending->noted_at = step;
}

/* Returns the sum of the steps of all training programs. */
static int64_t runs_of(const ht_session *session) {
    int64_t runs = 0;
    for (int p = 0; p < session->handle_count; p++)
        runs += session->handles[p]->trains ? session->handles[p]->step : 0;
    return runs;
}

/* Notes that the current state has been saved in `folder`, and at which point of main's loop. */
static void note_place(ht_session *session, const char *folder) {
    struct Ending *ending = session->ending;
    char *copy = strdup(folder);
    free(ending->folder);
    ending->folder = copy;
    ending->every =
        saved_steps(session) > ending->steps ? saved_steps(session) - ending->steps : ending->every;
    ending->steps = saved_steps(session);
    ending->runs = runs_of(session);
    ending->saved = pace_now();
    ending->before = ending->last;
    ending->next = NULL;
}

void ending_saved(ht_session *session, const char *folder, const ht_noted *noted) {
    keep_notes(ending_of(session), noted, saved_steps(session));
    note_place(session, folder);
}

void ending_remembered(ht_session *session, const char *folder, const ht_noted *noted) {
    struct Ending *ending = session->ending;
    if (ending && ending->folder && !strcmp(ending->folder, folder))
        keep_notes(ending, noted, saved_steps(session));
}

void ending_resumed(ht_session *session, const char *folder) {
    static const char prefix[] = SAVED_NUMBER;
    ht_noted *noted = memory_array(session->loaded.note_count + 1, sizeof *noted);
    int count = 0;
    for (int n = 0; n < session->loaded.note_count; n++)
        if (!strncmp(session->loaded.notes[n].key, prefix, sizeof prefix - 1))
            noted[count++] = (ht_noted){session->loaded.notes[n].key + sizeof prefix - 1,
                                        plain_number(session->loaded.notes[n].value)};
    ending_heed(session);
    ending_saved(session, folder, noted);
    session->ending->every = 0;
    free(noted);
}

void ending_heed(ht_session *session) {
    if (!told_heeded()) session_issue(session, &(Command){.kind = COMMAND_HEED}, &(Payload){0});
}

bool ht_told_to_end(ht_session *session) {
    session_check_open(session);
    told_look();
    ending_of(session)->asks = true;
    ending_heed(session);
    return told_signal() != 0;
}

/* ---- ending ---- */

/* Returns the number of programs that train. */
static int trained(const ht_session *session) {
    int count = 0;
    for (int p = 0; p < session->handle_count; p++) count += session->handles[p]->trains;
    return count;
}

/* Returns whether main's loop is at the point of its last save. If several programs train in turn,
 * a checkpoint then has equal numbers of steps of all. */
static bool same_place(const ht_session *session, const ht_program *next) {
    const struct Ending *ending = session->ending;
    if (trained(session) < 2 || runs_of(session) == ending->runs) return true;
    if (!ending->before) return next == ending->next && ending->last != next;
    return ending->last == ending->before && (!next->trains || next == ending->next);
}

/* Returns whether main is expected to save its numbers, which only main knows, within PATIENCE
 * seconds of the signal. */
static bool saves_soon(const ht_session *session) {
    const struct Ending *ending = session->ending;
    int64_t made = saved_steps(session) - ending->steps;
    bool stale = ending->notes->name && ending->vary && ending->noted_at != saved_steps(session);
    if (!stale || made <= 0) return false;
    int64_t until = ending->every > made ? ending->every - made : 1;
    double now = pace_now(), each = (now - ending->saved) / (double)made;
    return now + (double)until * each < ending->told + PATIENCE;
}

/* Waits for the checkpoint, prints whether it is on disk, and exits with status 128 + signal. */
_Noreturn static void end(ht_session *session, int number) {
    char manifest[PATH_ROOM];
    const struct Ending *ending = session->ending;
    session_issue(session, &(Command){.kind = COMMAND_FIND}, &(Payload){.found = -1});
    writing_path(manifest, sizeof manifest, ending->folder, ending->steps, "manifest");
    fprintf(stderr, "hetu: told to end by %s behind step %lld, which is %s in %s; exit status %d\n",
            told_name(number), (long long)saved_steps(session),
            access(manifest, F_OK) ? "NOT saved" : "saved", ending->folder, SIGNAL_STATUS + number);
    exit(SIGNAL_STATUS + number);
}

/* Warns if the numbers of ht_note in the checkpoint are older than its tensors. */
static void warn_stale(const ht_session *session) {
    const struct Ending *ending = session->ending;
    if (ending->notes->name && ending->vary && ending->noted_at != saved_steps(session))
        fprintf(stderr,
                "hetu: main's numbers (\"%s\", ...) in the checkpoint of step %lld are those of "
                "step %lld; a main that calls "
                "ht_told_to_end saves its own\n",
                ending->notes->name, (long long)saved_steps(session), (long long)ending->noted_at);
}

int ending_signal(const ht_session *session) {
    const struct Ending *ending = session->ending;
    told_look();
    return !ending ? 0 : ending->asks ? told_signal() : ending->folder ? told_unhandled() : 0;
}

void ending_check(const ht_program *next) {
    ht_session *session = next->session;
    struct Ending *ending = session->ending;
    int number = ending && !ending->asks ? ending_signal(session) : 0;
    if (number && !ending->told) ending->told = pace_now();
    if (number && same_place(session, next) && !saves_soon(session)) {
        if (runs_of(session) != ending->runs) {
            warn_stale(session);
            saved_save(session, ending->folder, ending->notes,
                       ending->vary ? ending->noted_at : saved_steps(session));
            note_place(session, ending->folder);
        }
        end(session, number);
    }
}

void ending_turn(const ht_program *next) {
    struct Ending *ending = next->session->ending;
    told_look();
    if (ending && next->trains && !ending->next) ending->next = next;
    ending_check(next);
    if (next->trains) ending_of(next->session)->last = next;
}

void ending_close(ht_session *session) {
    if (!session->ending) return;
    free_notes(session->ending->notes);
    free(session->ending->folder);
    free(session->ending);
    session->ending = NULL;
}
