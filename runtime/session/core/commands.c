/* Commands of a session on all ranks. */
#include "transport/world.h"
#include "device/device.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/signals.h"
#include "session/control/arrival.h"
#include "session/persist/checkpoint.h"
#include "session/persist/memory_checkpoints.h"
#include "session/control/pace.h"
#include "session/observe/hooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void open_program(ht_session *session, const Command *command) {
    Program **grown =
        realloc(session->programs, sizeof *grown * (size_t)(session->program_count + 1));
    if (!grown) ht_fail("no memory for another program");
    session->programs = grown;
    session->programs[session->program_count++] =
        program_create(command->index, &session->params, command->seed);
}

/* Whether a program runs forward on parameters of one that trains. */
static bool follows(const Program *program, const Program *trains) {
    if (program->image->trains || !trains->image->trains) return false;
    for (int p = 0; p < program->image->param_count; p++)
        for (int q = 0; q < trains->image->param_count; q++)
            if (program->params[p].param == trains->params[q].param) return true;
    return false;
}

/* The images that the programs go to: that of the command, and those of the programs that follow it
 * and have its strategy; -1: none. */
static int *find_images(const ht_session *session, const Command *command) {
    const char *strategy = image_at(command->index)->image->strategy;
    int *images = memory_array(session->program_count, sizeof *images);
    for (int p = 0; p < session->program_count; p++) {
        bool goes = follows(session->programs[p], session->programs[command->number]);
        images[p] = goes ? image_under(session->programs[p]->number, strategy) : -1;
    }
    images[command->number] = command->index;
    return images;
}

/* Moves a program with what it has learnt. Those that follow it are made anew: they read its
 * parameters when they run. */
static void switch_program(ht_session *session, const Command *command) {
    int *images = find_images(session, command), own = command->number;
    uint64_t seed = session->programs[own]->worker.seed;
    FedInputs **kept = memory_array(session->program_count, sizeof *kept);
    for (int p = 0; p < session->program_count; p++)
        kept[p] =
            command->keep && images[p] >= 0 ? program_take_inputs(session->programs[p]) : NULL;
    for (int p = 0; p < session->program_count; p++)
        if (images[p] >= 0 && p != own) program_destroy(session->programs[p]);
    session->programs[own] =
        program_switch(session->programs[own], command->index, &session->params);
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

/* Tells rank 0 how long this rank has computed. */
static void report_pace(const Program *program, Payload *payload) {
    PaceReport mine = pace_report(!program->role, program->worker.step - 1);
    PaceReport *all = payload->reports ? payload->reports : memory_array(world_size(), sizeof *all);
    world_gather(&mine, sizeof mine, all);
    if (all != payload->reports) free(all);
}

static void run_program(ht_session *session, const Command *command, Payload *payload) {
    Program *program = session->programs[command->number];
    for (int i = 0; i < program->image->input_count; i++)
        if (command->fed[i / 8] >> (i % 8) & 1)
            program_feed(program, i, payload->feeds ? payload->feeds[i] : NULL);
    pace_step(command->report);
    payload->loss = program_run(program, payload->hyper);
    if (command->report) report_pace(program, payload);
    if (command->check) program_check(program);
    hooks_mark(HT_STREAM_HOST, "check and report", NULL);
    if (session->dump && program->image->trains) program_dump(program, session->dump, "step");
}

/* Strategies that have arrived: rank 0 has the object, and sends it. */
static void take_arrival(const Command *command, const Payload *payload) {
    void *object = payload->from ? NULL : memory_array(command->bytes, 1);
    world_broadcast(payload->from ? (void *)payload->from : object, (size_t)command->bytes);
    arrivals_take(payload->from ? payload->from : object, (size_t)command->bytes);
    free(object);
}

/* A text of rank 0 on all ranks; free() it. */
static char *shared_text(const char *text) {
    int64_t length = text ? (int64_t)strlen(text) : -1;
    world_broadcast(&length, sizeof length);
    char *copy = length < 0 ? NULL : memory_array(length + 1, 1);
    if (copy && text) memcpy(copy, text, (size_t)length);
    if (copy && length) world_broadcast(copy, (size_t)length);
    return copy;
}

static void save(ht_session *session, const Command *command, const Payload *payload) {
    char *folder = shared_text(payload->path);
    checkpoint_save(session, folder, command->step, command->index, payload->notes,
                    command->number);
    free(folder);
}

static void load(ht_session *session, const Command *command, Payload *payload) {
    (void)command;
    char *path = shared_text(payload->path), *manifest = shared_text(payload->manifest),
         *names = shared_text(payload->names);
    payload->reason = checkpoint_load(session, path, manifest, names);
    free(names);
    free(path);
    free(manifest);
}

/* The number of a program's next step, and the seed of all. */
static void set_steps(ht_session *session, const Command *command) {
    session->programs[command->number]->worker.step = command->step;
    for (int p = 0; p < session->program_count; p++)
        session->programs[p]->worker.seed = command->seed;
}

/* Opens a file of rows on all ranks. Why one cannot, on rank 0; kept until the next call. */
static const char *open_rows(const Program *program, const Command *command,
                             const Payload *payload) {
    enum { ROOM = 1024 };
    static char said[ROOM + 64];
    char *path = shared_text(payload->path), *element = shared_text(payload->element),
         mine[ROOM] = "";
    int file;
    const char *wrong =
        dataset_open(path, element, program->image->inputs[command->index].dtype, &file);
    bool other = !wrong && dataset_elements(file) != command->bytes;
    snprintf(mine, sizeof mine, "%s",
             wrong   ? wrong
             : other ? "it has other elements than on rank 0"
                     : "");
    char *all = memory_array(world_size(), ROOM);
    world_gather(mine, ROOM, all);
    said[0] = 0;
    for (int rank = world_rank() ? 0 : world_size(); rank-- > 0;)
        if (all[(size_t)rank * ROOM])
            snprintf(said, sizeof said, "%s (on rank %d)", all + (size_t)rank * ROOM, rank);
    free(all);
    free(path);
    free(element);
    return *said ? said : NULL;
}

/* Reads rows of a file that all ranks have open. */
static void read_rows(ht_session *session, const Command *command, Payload *payload) {
    Program *program = session->programs[command->number];
    if (command->keep) {
        payload->reason = open_rows(program, command, payload);
        return;
    }
    RowsPlan *rows = &payload->rows;
    world_broadcast(rows, sizeof *rows);
    int64_t *order = world_rank() && rows->order ? memory_array(rows->batch, sizeof *order)
                                                 : (int64_t *)rows->order;
    if (order) world_broadcast(order, sizeof *order * (size_t)rows->batch);
    rows->order = order;
    program_read(program, command->index, rows);
    if (world_rank()) free(order);
}

static void carry_out(ht_session *session, const Command *command, Payload *payload) {
    switch (command->kind) {
    case COMMAND_OPEN: open_program(session, command); break;
    case COMMAND_SWITCH: switch_program(session, command); break;
    case COMMAND_ARRIVE: take_arrival(command, payload); break;
    case COMMAND_RUN: run_program(session, command, payload); break;
    case COMMAND_FETCH:
        program_fetch(session->programs[command->number], command->index, payload->to);
        break;
    case COMMAND_FETCH_INPUT:
        program_fetch_input(session->programs[command->number], command->index, payload->to);
        break;
    case COMMAND_GET_PARAM: param_get(session->params.at[command->number], payload->to); break;
    case COMMAND_SET_PARAM: param_set(session->params.at[command->number], payload->from); break;
    case COMMAND_SAVE: save(session, command, payload); break;
    case COMMAND_WRITE: checkpoint_turn(session); break;
    case COMMAND_LOAD: load(session, command, payload); break;
    case COMMAND_STEPS: set_steps(session, command); break;
    case COMMAND_REMEMBER:
        copies_take(session, command->seed, command->step, payload->notes, command->number);
        break;
    case COMMAND_FIND:
        checkpoint_wait(session);
        payload->found = command->seed ? copies_find(session, command->seed) : -1;
        break;
    case COMMAND_RECALL: payload->reason = copies_load(session); break;
    case COMMAND_ROWS: read_rows(session, command, payload); break;
    case COMMAND_HEED:
        signals_heed();
        world_least(0); // all ranks have come here
        break;
    case COMMAND_CLOSE: break;
    }
}

/* What the time of a command goes to but for what it has marked itself. */
static const char *command_name(CommandKind kind) {
    static const char *const names[] = {[COMMAND_OPEN] = "open a program",
                                        [COMMAND_SWITCH] = "switch",
                                        [COMMAND_ARRIVE] = "take a strategy",
                                        [COMMAND_RUN] = "step",
                                        [COMMAND_FETCH] = "fetch",
                                        [COMMAND_FETCH_INPUT] = "fetch",
                                        [COMMAND_GET_PARAM] = "get a parameter",
                                        [COMMAND_SET_PARAM] = "set a parameter",
                                        [COMMAND_SAVE] = "save",
                                        [COMMAND_WRITE] = "save",
                                        [COMMAND_LOAD] = "load",
                                        [COMMAND_STEPS] = "load",
                                        [COMMAND_REMEMBER] = "remember",
                                        [COMMAND_FIND] = "look for copies",
                                        [COMMAND_RECALL] = "load",
                                        [COMMAND_HEED] = "heed signals",
                                        [COMMAND_CLOSE] = "close"};
    return names[kind];
}

/* Brings the numbers of a run to all ranks; few programs have more than one optimizer. */
static void share_numbers(const Command *command, Payload *payload) {
    memcpy(payload->hyper, command->hyper, sizeof command->hyper);
    if (command->more)
        world_broadcast(payload->hyper + HT_HYPER,
                        sizeof *payload->hyper * HT_HYPER * (size_t)command->more);
}

void session_issue(ht_session *session, Command *command, Payload *payload) {
    hooks_mark(HT_STREAM_HOST, "main", NULL);
    world_broadcast(command, sizeof *command);
    share_numbers(command, payload);
    carry_out(session, command, payload);
    hooks_mark(HT_STREAM_HOST, command_name(command->kind), NULL);
}

void session_serve(ht_session *session) {
    Command command;
    do {
        Payload payload = {0};
        world_await(&command, sizeof command);
        share_numbers(&command, &payload);
        hooks_mark(HT_STREAM_WAITING, "wait for rank 0", NULL);
        carry_out(session, &command, &payload);
        hooks_mark(HT_STREAM_HOST, command_name(command.kind), NULL);
    } while (command.kind != COMMAND_CLOSE);
    session_close(session);
    exit(0);
}
