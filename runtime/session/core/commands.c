/* Carries out the commands of rank 0 on every rank.
 *
 *     rank 0                               ranks 1, 2, ...
 *     session_issue(COMMAND_RUN)  ──────▶  session_serve: waits, then carries it out as rank 0 does
 */
#include "transport/world.h"
#include "base/memory.h"
#include "base/signals.h"
#include "session/control/links.h"
#include "session/control/prepare_strategy.h"
#include "session/persist/checkpoint.h"
#include "session/control/pace.h"
#include "session/observe/hooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void open_program(ht_session *session, const Command *command, Payload *payload) {
    (void)payload;
    Program **grown =
        realloc(session->programs, sizeof *grown * (size_t)(session->program_count + 1));
    if (!grown) ht_fail("no memory for another program");
    session->programs = grown;
    session->programs[session->program_count++] =
        program_create(command->open.image, &session->params, command->open.seed);
}

/* Returns whether a program only runs forward and shares parameters with `trains`, which trains. */
static bool follows(const Program *program, const Program *trains) {
    if (program->image->trains || !trains->image->trains) return false;
    for (int p = 0; p < program->image->param_count; p++)
        for (int q = 0; q < trains->image->param_count; q++)
            if (program->params[p].param == trains->params[q].param) return true;
    return false;
}

/* Returns, by program, the image to switch to; free() it. The program of the command gets the
 * command's image. Programs that share its parameters (follows) get their image of the same
 * strategy, if there is one. Any other program gets -1: it does not switch. */
static int *find_images(const ht_session *session, const Command *command) {
    const char *strategy = image_at(command->switching.image)->image->strategy;
    int *images = memory_array(session->program_count, sizeof *images);
    for (int p = 0; p < session->program_count; p++) {
        bool goes = follows(session->programs[p], session->programs[command->switching.program]);
        images[p] = goes ? image_under(session->programs[p]->number, strategy) : -1;
    }
    images[command->switching.program] = command->switching.image;
    return images;
}

/* Switches a program to another strategy: parameters and optimizer state are resharded. The
 * programs that follow it have no state of their own and are created again. */
static void switch_program(ht_session *session, const Command *command, Payload *payload) {
    (void)payload;
    int *images = find_images(session, command), own = command->switching.program;
    uint64_t seed = session->programs[own]->worker.seed;
    FedInputs **kept = memory_array(session->program_count, sizeof *kept);
    for (int p = 0; p < session->program_count; p++)
        kept[p] = command->switching.keep_inputs && images[p] >= 0
                      ? program_take_inputs(session->programs[p])
                      : NULL;
    for (int p = 0; p < session->program_count; p++)
        if (images[p] >= 0 && p != own) program_destroy(session->programs[p]);
    session->programs[own] =
        program_switch(session->programs[own], command->switching.image, &session->params);
    for (int p = 0; p < session->program_count; p++)
        if (images[p] >= 0 && p != own)
            session->programs[p] = program_create(images[p], &session->params, seed);
    for (int p = 0; p < session->program_count; p++)
        if (kept[p]) program_give_inputs(session->programs[p], kept[p]);
    if (session->dump && session->programs[own]->image->trains)
        program_dump(session->programs[own], session->dump, "switch");
    free(kept);
    free(images);
}

/* Gathers the pace reports of all ranks for the last step; only rank 0 keeps them. */
static void report_pace(const Program *program, Payload *payload) {
    PaceReport mine = pace_report(!program->role, program->worker.step - 1);
    PaceReport *wanted = payload->run.reports,
               *all = wanted ? wanted : memory_array(world_size(), sizeof *all);
    world_gather(&mine, sizeof mine, all);
    if (!wanted) free(all);
}

/* Sets `hyper` to the hyperparameters of all optimizers, on every rank. The command has those of
 * the first optimizer; rank 0 broadcasts those of further optimizers, if any. */
static void share_hyper(const Command *command, float *hyper) {
    memcpy(hyper, command->run.hyper, sizeof command->run.hyper);
    if (command->run.more)
        world_broadcast(hyper + HT_HYPER, sizeof *hyper * HT_HYPER * (size_t)command->run.more);
}

/* Feeds a program and runs a step or a forward pass; then reports, checks and dumps if asked to. */
static void run_program(ht_session *session, const Command *command, Payload *payload) {
    Program *program = session->programs[command->run.program];
    share_hyper(command, payload->run.hyper);
    for (int i = 0; i < program->image->input_count; i++)
        if (command->run.fed[i / 8] >> (i % 8) & 1)
            program_feed(program, i, payload->run.feeds ? payload->run.feeds[i] : NULL);
    pace_step(command->run.report);
    payload->run.loss = program_run(program, payload->run.hyper);
    if (command->run.report) report_pace(program, payload);
    if (command->run.check) program_check(program);
    hooks_mark(HT_STREAM_HOST, "check and report", NULL);
    if (session->dump && program->image->trains) program_dump(program, session->dump, "step");
}

/* Loads strategies from a shared object of command->arrive.bytes bytes, which rank 0 broadcasts. */
static void take_arrival(ht_session *session, const Command *command, Payload *payload) {
    (void)session;
    void *object = payload->from ? NULL : memory_array(command->arrive.bytes, 1);
    world_broadcast(payload->from ? (void *)payload->from : object, (size_t)command->arrive.bytes);
    prepare_load(payload->from ? payload->from : object, (size_t)command->arrive.bytes);
    free(object);
}

/* Broadcasts a string, or NULL, from rank 0. Returns this rank's copy; free() it. */
static char *shared_text(const char *text) {
    int64_t length = text ? (int64_t)strlen(text) : -1;
    world_broadcast(&length, sizeof length);
    char *copy = length < 0 ? NULL : memory_array(length + 1, 1);
    if (copy && text) memcpy(copy, text, (size_t)length);
    if (copy && length) world_broadcast(copy, (size_t)length);
    return copy;
}

static void save(ht_session *session, const Command *command, Payload *payload) {
    char *folder = shared_text(payload->save.folder);
    checkpoint_save(session, folder,
                    &(CheckpointRequest){.step = command->save.step,
                                         .keep = command->save.keep,
                                         .note_count = command->save.note_count,
                                         .notes = payload->save.notes});
    free(folder);
}

static void load(ht_session *session, const Command *command, Payload *payload) {
    (void)command;
    char *path = shared_text(payload->load.path), *manifest = shared_text(payload->load.manifest),
         *names = shared_text(payload->load.names);
    payload->load.reason = checkpoint_load(session, path, manifest, names);
    free(names);
    free(path);
    free(manifest);
}

/* Sets the number of a program's next step, and the seed of all programs. */
static void set_steps(ht_session *session, const Command *command, Payload *payload) {
    (void)payload;
    session->programs[command->steps.program]->worker.step = command->steps.step;
    for (int p = 0; p < session->program_count; p++)
        session->programs[p]->worker.seed = command->steps.seed;
}

/* Opens a dataset's file on all ranks. On rank 0, the payload's reason says why a rank cannot, in a
 * buffer that the next call overwrites. The reason is NULL if all ranks can, and on other ranks. */
static void open_rows(ht_session *session, const Command *command, Payload *payload) {
    enum { ROOM = 1024 };
    static char said[ROOM + 64];
    const ht_image *image = session->programs[command->rows.program]->image;
    char *path = shared_text(payload->open_rows.path),
         *element = shared_text(payload->open_rows.element), mine[ROOM] = "";
    int file;
    const char *wrong =
        dataset_open(path, element, image->inputs[command->rows.input].dtype, &file);
    if (!wrong && dataset_elements(file) != command->rows.elements)
        wrong = "it has other elements than on rank 0";
    snprintf(mine, sizeof mine, "%s", wrong ? wrong : "");
    char *all = memory_array(world_size(), ROOM);
    world_gather(mine, ROOM, all);
    said[0] = 0;
    for (int rank = world_rank() ? 0 : world_size(); rank-- > 0;)
        if (all[(size_t)rank * ROOM])
            snprintf(said, sizeof said, "%s (on rank %d)", all + (size_t)rank * ROOM, rank);
    free(all);
    free(path);
    free(element);
    payload->open_rows.reason = *said ? said : NULL;
}

/* Feeds an input with rows of a file that all ranks have open. */
static void read_rows(ht_session *session, const Command *command, Payload *payload) {
    RowsPlan *rows = &payload->rows;
    world_broadcast(rows, sizeof *rows);
    int64_t *order = world_rank() && rows->order ? memory_array(rows->batch, sizeof *order)
                                                 : (int64_t *)rows->order;
    if (order) world_broadcast(order, sizeof *order * (size_t)rows->batch);
    rows->order = order;
    program_read(session->programs[command->rows.program], command->rows.input, rows);
    if (world_rank()) free(order);
}

static void fetch(ht_session *session, const Command *command, Payload *payload) {
    program_fetch(session->programs[command->fetch.program], command->fetch.index, payload->to);
}

static void fetch_input(ht_session *session, const Command *command, Payload *payload) {
    program_fetch_input(session->programs[command->fetch.program], command->fetch.index,
                        payload->to);
}

static void get_param(ht_session *session, const Command *command, Payload *payload) {
    param_get(session->params.at[command->param.param], payload->to);
}

static void set_param(ht_session *session, const Command *command, Payload *payload) {
    param_set(session->params.at[command->param.param], payload->from);
}

static void write_checkpoint(ht_session *session, const Command *command, Payload *payload) {
    (void)command, (void)payload;
    checkpoint_turn(session);
}

static void take_copies(ht_session *session, const Command *command, Payload *payload) {
    copies_take(session, command->remember.key, command->remember.step, payload->save.notes,
                command->remember.note_count);
}

static void find_copies(ht_session *session, const Command *command, Payload *payload) {
    checkpoint_wait(session);
    payload->found = command->find.key ? copies_find(session, command->find.key) : -1;
}

static void load_copies(ht_session *session, const Command *command, Payload *payload) {
    (void)command;
    payload->load.reason = copies_load(session);
}

/* Makes this rank defer signals to rank 0's decision; returns once all ranks do. */
static void heed_signals(ht_session *session, const Command *command, Payload *payload) {
    (void)session, (void)command, (void)payload;
    signals_heed();
    world_least(0);
}

/* By kind of command: the name under which a trace shows a command's time, and the function that
 * carries the command out on every rank; NULL: the command only ends session_serve's loop. */
static const struct {
    const char *name;
    void (*carry_out)(ht_session *session, const Command *command, Payload *payload);
} commands[] = {[COMMAND_OPEN] = {"open a program", open_program},
                [COMMAND_SWITCH] = {"switch", switch_program},
                [COMMAND_ARRIVE] = {"take a strategy", take_arrival},
                [COMMAND_RUN] = {"step", run_program},
                [COMMAND_FETCH] = {"fetch", fetch},
                [COMMAND_FETCH_INPUT] = {"fetch", fetch_input},
                [COMMAND_GET_PARAM] = {"get a parameter", get_param},
                [COMMAND_SET_PARAM] = {"set a parameter", set_param},
                [COMMAND_SAVE] = {"save", save},
                [COMMAND_WRITE] = {"save", write_checkpoint},
                [COMMAND_LOAD] = {"load", load},
                [COMMAND_STEPS] = {"load", set_steps},
                [COMMAND_REMEMBER] = {"remember", take_copies},
                [COMMAND_FIND] = {"look for copies", find_copies},
                [COMMAND_RECALL] = {"load", load_copies},
                [COMMAND_OPEN_ROWS] = {"read rows", open_rows},
                [COMMAND_ROWS] = {"read rows", read_rows},
                [COMMAND_LOOK] = {"look at links", links_look},
                [COMMAND_HEED] = {"heed signals", heed_signals},
                [COMMAND_CLOSE] = {"close", NULL}};

/* Carries out a command. Traces and profiles show its time since the last mark under its name. */
static void carry_out(ht_session *session, const Command *command, Payload *payload) {
    if (commands[command->kind].carry_out)
        commands[command->kind].carry_out(session, command, payload);
    hooks_mark(HT_STREAM_HOST, commands[command->kind].name, NULL);
}

void session_issue(ht_session *session, Command *command, Payload *payload) {
    hooks_mark(HT_STREAM_HOST, "main", NULL);
    world_broadcast(command, sizeof *command);
    carry_out(session, command, payload);
}

void session_serve(ht_session *session) {
    Command command;
    do {
        Payload payload = {0};
        world_await(&command, sizeof command);
        hooks_mark(HT_STREAM_WAITING, "wait for rank 0", NULL);
        carry_out(session, &command, &payload);
    } while (command.kind != COMMAND_CLOSE);
    session_close(session);
    exit(0);
}
