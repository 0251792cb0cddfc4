/* Opens a program (memory, channels, tags), switches its strategy, feeds its inputs, runs it. */
#include "session/core/program.h"

#include "exchange/async_exchange.h"
#include "exchange/copy_boxes.h"
#include "session/core/initial_strategy.h"
#include "session/data/feed.h"
#include "session/control/pace.h"
#include "session/observe/hooks.h"
#include "transport/post.h"
#include "transport/world.h"
#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static_assert((int)DEVICE_HYPER == HT_GROUPS * (int)HT_HYPER,
              "a step has the numbers of its optimizers");

/* ---- making ---- */

static void **state_slots(const Program *program, int param) {
    return program->slots + program->image->param_count +
           (ptrdiff_t)param * program->image->state_count;
}

void **program_input_slots(const Program *program) {
    return program->slots +
           (ptrdiff_t)program->image->param_count * (1 + program->image->state_count);
}

/* Returns this rank's piece of an optimizer state, allocated on the device and set to zero. */
static void *new_state(const ht_pieces *pieces) {
    int64_t bytes = boxes_count(pieces, world_rank()) * (int64_t)sizeof(float);
    void *state = device_alloc(bytes);
    device_zero(state, bytes);
    return state;
}

static void open_param(Program *program, int param, Params *params) {
    const ht_image_param *image = &program->image->params[param];
    ProgramParam *mine = &program->params[param];
    mine->copy = params_open(params, image, program->image->device_count, program->worker.seed,
                             &mine->param);
    program->slots[param] = mine->copy->data;
}

static void open_inputs(Program *program) {
    const ht_image *image = program->image;
    if (image->input_count > PROGRAM_MAX_INPUTS)
        ht_fail("the model %s has %d inputs; a program takes at most %d", image->model,
                image->input_count, PROGRAM_MAX_INPUTS);
    for (int i = 0; i < image->input_count; i++)
        program_input_slots(program)[i] =
            device_alloc(boxes_count(image->inputs[i].pieces, world_rank()) *
                         (int64_t)ht_dtype_bytes(image->inputs[i].dtype));
}

/* Sets this rank's pipeline (NULL: the rank is in none) and the rank's position in it. */
static void open_pipeline(Program *program) {
    ht_worker *worker = &program->worker;
    int pipeline = program->image->pipeline_of[worker->device];
    worker->pipeline = pipeline < 0 ? NULL : &program->image->pipelines[pipeline];
    while (worker->pipeline && worker->pipeline->device[worker->position] != worker->device)
        worker->position++;
}

/* Returns, by plan, a bit mask of the queues (1 << HT_QUEUE_*) that use it; free() the array. */
static unsigned *queues_of(const ht_image *image) {
    unsigned *queues = memory_array(image->plan_count, sizeof *queues);
    for (int p = 0; p < image->plan_count; p++)
        for (int r = 0; r < image->role_count; r++)
            for (int t = 0; t < image->roles[r].transfer_count; t++)
                if (image->roles[r].transfers[t].plan == image->plan[p])
                    queues[p] |= 1u << image->roles[r].transfers[t].queue;
    return queues;
}

/* Whether an image's channels have been prepared on all ranks, and the image's message tags. */
typedef struct Prepared {
    bool ready;
    int tags; // first message tag of the image's transfers
} Prepared;

/* Returns the number of message tags of an image: one per plan, or more if there are more gradient
 * transfers. Plans and gradient transfers share tags: gradient transfers have their own queue. */
static int count_tags(const ht_image *image) {
    int count = image->plan_count;
    for (int r = 0; r < image->role_count; r++)
        for (int t = 0; t < image->roles[r].transfer_count; t++)
            if (image->roles[r].transfers[t].number >= count)
                count = image->roles[r].transfers[t].number + 1;
    return count;
}

/* Reserves an image's message tags; returns the first, equal on ranks that reserve in one order.
 * Ends the program if MPI has no more tags. */
static int take_tags(const ht_image *image) {
    static int tags;
    int first = tags, count = count_tags(image);
    if (count > channels_tags() - tags)
        ht_fail("the programs of this session have more conversions than the %d messages that MPI "
                "tells apart",
                channels_tags());
    tags += count;
    return first;
}

/* Prepares the device's channels for an image's conversions, and reserves message tags. */
static void prepare(const ht_image *image, Prepared *prepared) {
    unsigned *queues = queues_of(image);
    if (channel_of_device()->prepare)
        channel_of_device()->prepare(&(ChannelPlans){image->plan_count, image->pipeline_count,
                                                     image->plan, queues, image->pipelines});
    free(queues);
    *prepared = (Prepared){true, image_transfers(image) ? take_tags(image) : 0};
}

/* Calls `prepare` once for each of the program's strategies that has enough ranks. Returns the
 * first message tag of `image`. */
static int open_channels(int image) {
    static Prepared *prepared;
    static int count;
    Prepared *grown = count < image_count()
                          ? realloc(prepared, sizeof *prepared * (size_t)image_count())
                          : prepared;
    if (!grown) ht_fail("no memory for the exchanges of a program");
    for (prepared = grown; count < image_count(); count++) prepared[count] = (Prepared){0};
    for (int i = initial_strategy_next(image, -1); i >= 0; i = initial_strategy_next(image, i))
        if (!prepared[i].ready) prepare(image_at(i)->image, &prepared[i]);
    return prepared[image].tags;
}

/* Creates a program that has no parameters, states, inputs or arena yet. */
static Program *new_program(int number, uint64_t seed) {
    Program *program = memory_array(1, sizeof *program);
    const ht_image *image = image_at(number)->image;
    int device = world_rank(), role = image->role_of[device], piece = image->piece_of[device];
    program->number = number;
    program->image = image;
    program->role = role < 0 ? NULL : &image->roles[role];
    program->slots =
        memory_array((int64_t)image->param_count * (1 + image->state_count) + image->input_count,
                     sizeof(void *));
    program->params = memory_array(image->param_count, sizeof *program->params);
    program->worker = (ht_worker){.slot = program->slots,
                                  .piece = piece < 0 ? NULL : image->piece[piece],
                                  .training = image->trains,
                                  .seed = seed,
                                  .device = device};
    return program;
}

/* Opens inputs, pipeline, arena and schedule of a program that has its parameters and states. */
static void open_rest(Program *program) {
    const ht_image *image = program->image;
    int device = world_rank(), tags = open_channels(program->number);
    open_inputs(program);
    open_pipeline(program);
    program->worker.observer = hooks_of_worker();
    if (program->role) {
        program->worker.arena = device_alloc(
            schedule_bytes(program->role, image->schedule[image->schedule_of[device]]));
        program->schedule = schedule_open(image, program->role, &program->worker, tags);
    }
}

Program *program_create(int image, Params *params, uint64_t seed) {
    Program *program = new_program(image, seed);
    for (int p = 0; p < program->image->param_count; p++) {
        open_param(program, p, params);
        for (int s = 0; s < program->image->params[p].state_count; s++)
            state_slots(program, p)[s] = new_state(program->image->params[p].state[s]);
    }
    open_rest(program);
    return program;
}

/* Frees inputs, arena, schedule and recording; keeps parameters and states. */
static void close_rest(Program *program) {
    device_forget(program->recording);
    for (int i = 0; i < program->image->input_count; i++)
        device_free(program_input_slots(program)[i]);
    schedule_close(program->schedule);
    device_free(program->worker.arena);
}

static void free_program(Program *program) {
    free(program->slots);
    free(program->params);
    free(program);
}

void program_destroy(Program *program) {
    const ht_image *image = program->image;
    close_rest(program);
    for (int p = 0; p < image->param_count; p++) {
        param_release(program->params[p].param, program->params[p].copy);
        for (int s = 0; s < image->params[p].state_count; s++)
            device_free(state_slots(program, p)[s]);
    }
    free_program(program);
}

/* ---- another strategy ---- */

/* A switch of a program from one strategy to another. */
typedef struct Moving {
    Program *from, *to;
    Params *params;
    const ht_migration_window *window; // group of tensors that move now
    const void **source; // storage of the window's tensors before the switch; `target`: after it
    void **target;
} Moving;

/* Returns the index of the parameter that owns a slot (hetu/rt.h). Sets *state to the number of the
 * optimizer state in the slot; -1: the slot has the parameter itself. */
static int slot_param(const ht_image *image, int slot, int *state) {
    *state = slot < image->param_count ? -1 : (slot - image->param_count) % image->state_count;
    return *state < 0 ? slot : (slot - image->param_count) / image->state_count;
}

/* Allocates the storage of a parameter or state under the new strategy. */
static void open_slot(Moving *moving, int slot) {
    int state, param = slot_param(moving->to->image, slot, &state);
    if (state < 0) open_param(moving->to, param, moving->params);
    else moving->to->slots[slot] = new_state(moving->to->image->params[param].state[state]);
}

/* Frees the storage of a parameter or state under the old strategy. */
static void close_slot(Moving *moving, int slot) {
    int state, param = slot_param(moving->from->image, slot, &state);
    if (state < 0)
        param_release(moving->from->params[param].param, moving->from->params[param].copy);
    else device_free(moving->from->slots[slot]);
}

/* Issues the conversion of a window's tensors on the device (callback of device_run). */
static void issue_window(void *argument) {
    const Moving *moving = argument;
    ChannelRun run = channel_run(moving->window->plan, NULL, 0, world_rank());
    run.from = moving->source;
    run.to = moving->target;
    run.scratch = device_alloc(ht_reshard_scratch(moving->window->plan, world_rank()));
    channel_carry_out(&run);
    device_free(run.scratch);
}

/* Moves the tensors of a window to the new strategy, then frees their old storage. Only one window
 * at a time has both old and new storage. */
static void move_window(Moving *moving) {
    const ht_migration_window *window = moving->window;
    int count = window->plan->tensor_count;
    DeviceRecording *recording = NULL;
    moving->source = memory_array(count, sizeof *moving->source);
    moving->target = memory_array(count, sizeof *moving->target);
    for (int t = 0; t < count; t++) {
        open_slot(moving, window->to[t]);
        moving->source[t] = moving->from->slots[window->from[t]];
        moving->target[t] = moving->to->slots[window->to[t]];
    }
    device_run(&recording, issue_window, moving);
    device_forget(recording);
    for (int t = 0; t < count; t++) {
        if (window->to[t] < moving->to->image->param_count)
            param_brought(moving->to->params[window->to[t]].param,
                          moving->to->params[window->to[t]].copy);
        close_slot(moving, window->from[t]);
    }
    free(moving->source);
    free(moving->target);
}

static int find_param(const ht_image *image, const char *name) {
    int p = 0;
    while (strcmp(image->params[p].name, name)) p++;
    return p;
}

/* Gives the new program the storage of tensors in no window, whose layouts do not change. */
static void hand_over(Moving *moving) {
    const ht_image *before = moving->from->image, *after = moving->to->image;
    for (int p = 0; p < after->param_count; p++) {
        int old = find_param(before, after->params[p].name);
        if (!moving->to->params[p].copy) {
            moving->to->params[p] = moving->from->params[old];
            moving->to->slots[p] = moving->from->slots[old];
        }
        for (int s = 0; s < after->params[p].state_count; s++)
            if (!state_slots(moving->to, p)[s])
                state_slots(moving->to, p)[s] = state_slots(moving->from, old)[s];
    }
}

static const ht_migration *find_migration(const ht_image *from, const ht_image *to) {
    const ht_migration *migration = image_migration(from, to);
    if (!migration)
        ht_fail("%s: the program has no way from strategy \"%s\" to \"%s\"", from->model,
                from->strategy, to->strategy);
    return migration;
}

Program *program_switch(Program *program, int image, Params *params) {
    Moving moving = {
        .from = program, .to = new_program(image, program->worker.seed), .params = params};
    const ht_migration *migration = find_migration(program->image, moving.to->image);
    close_rest(program);
    for (int p = 0; p < program->image->param_count; p++)
        param_refresh(program->params[p].param, program->params[p].copy);
    for (int w = 0; w < migration->window_count; w++) {
        moving.window = &migration->window[w];
        move_window(&moving);
    }
    hand_over(&moving);
    moving.to->worker.step = program->worker.step;
    free_program(program);
    open_rest(moving.to);
    return moving.to;
}

/* ---- inputs and outputs ---- */

static Distribution whole(const Program *program, const ht_pieces *pieces) {
    return (Distribution){NULL, boxes_elements(pieces), program->image->device_count, NULL};
}

static Distribution distribution_of(const Program *program, const ht_pieces *pieces) {
    return (Distribution){pieces, boxes_elements(pieces), program->image->device_count, NULL};
}

void program_feed(Program *program, int input, const void *data) {
    const ht_image_input *image = &program->image->inputs[input];
    fail_doing(image->at);
    boxes_move(whole(program, image->pieces), data, distribution_of(program, image->pieces),
               program_input_slots(program)[input], ht_dtype_bytes(image->dtype));
    program->fed[input] = true;
    fail_doing(NULL);
    hooks_mark(HT_STREAM_HOST, "feed", image->at);
}

int64_t program_input_bytes(const Program *program, int input) {
    const ht_image_input *image = &program->image->inputs[input];
    return boxes_elements(image->pieces) * (int64_t)ht_dtype_bytes(image->dtype);
}

int64_t program_output_bytes(const Program *program, int output) {
    const ht_image_output *image = &program->image->outputs[output];
    return boxes_elements(image->pieces) * (int64_t)ht_dtype_bytes(image->dtype);
}

void program_fetch_input(const Program *program, int input, void *to) {
    const ht_image_input *image = &program->image->inputs[input];
    int64_t count = boxes_elements(image->pieces), bytes = (int64_t)ht_dtype_bytes(image->dtype);
    for (int64_t i = 0; to && image->padding && i < count; i++)
        padding_put(image, (char *)to + i * bytes);
    boxes_move(distribution_of(program, image->pieces), program_input_slots(program)[input],
               whole(program, image->pieces), to, (size_t)bytes);
}

/* Returns a copy of a whole input on rank 0, free() it; NULL on other ranks. */
static void *whole_input(const Program *program, int input) {
    const ht_image_input *image = &program->image->inputs[input];
    void *data = world_rank() ? NULL
                              : memory_array(boxes_elements(image->pieces) + 1,
                                             (size_t)ht_dtype_bytes(image->dtype));
    program_fetch_input(program, input, data);
    return data;
}

FedInputs *program_take_inputs(const Program *program) {
    int count = program->image->input_count;
    FedInputs *inputs = memory_array(1, sizeof *inputs);
    *inputs = (FedInputs){memory_array(count, sizeof(bool)), memory_array(count, sizeof(void *))};
    for (int i = 0; i < count; i++)
        if ((inputs->fed[i] = program->fed[i])) inputs->data[i] = whole_input(program, i);
    return inputs;
}

void program_give_inputs(Program *program, FedInputs *inputs) {
    for (int i = 0; i < program->image->input_count; i++) {
        if (inputs->fed[i]) program_feed(program, i, inputs->data[i]);
        free(inputs->data[i]);
    }
    free(inputs->fed);
    free(inputs->data);
    free(inputs);
}

void program_fetch(Program *program, int output, void *to) {
    const ht_image_output *image = &program->image->outputs[output];
    const void *data = program->role ? ht_at(&program->worker,
                                             image->buffer[program->role - program->image->roles])
                                     : NULL;
    boxes_move(distribution_of(program, image->pieces), data, whole(program, image->pieces), to,
               ht_dtype_bytes(image->dtype));
}

int program_input(const Program *program, const char *name) {
    for (int i = 0; i < program->image->input_count; i++)
        if (!strcmp(program->image->inputs[i].name, name)) return i;
    return -1;
}

int program_output(const Program *program, const char *name) {
    for (int i = 0; i < program->image->output_count; i++)
        if (!strcmp(program->image->outputs[i].name, name)) return i;
    return -1;
}

/* ---- running ---- */

/* Issues the work of a step on the device (callback of device_run). */
static void issue_step(void *argument) {
    Program *program = argument;
    schedule_run(program->schedule, &program->worker);
}

static float loss_of(Program *program) {
    union {
        float f;
        double d;
        uint16_t half;
    } loss = {.d = 0};
    if (program->image->loss < 0) return 0;
    program_fetch(program, program->image->loss, &loss);
    switch (program->image->outputs[program->image->loss].dtype) {
    case HT_F64: return (float)loss.d;
    case HT_BF16: return ht_bf16_load(loss.half);
    default: return loss.f;
    }
}

float program_run(Program *program, const float *hyper) {
    program->numbers = (StepNumbers){.step = program->worker.step,
                                     .run = program->runs++,
                                     .seed = program->worker.seed,
                                     .training = program->worker.training};
    memcpy(program->numbers.hyper, hyper, sizeof program->numbers.hyper);
    program->worker.hyper = device_numbers(&program->numbers);
    fail_step(program->worker.step);
    hooks_step(program->worker.step);
    for (int p = 0; p < program->image->param_count; p++)
        param_refresh(program->params[p].param, program->params[p].copy);
    if (program->role) device_run(&program->recording, issue_step, program);
    fail_doing(NULL);
    for (int p = 0; p < program->image->param_count; p++)
        if (program->image->params[p].changes)
            param_changed(program->params[p].param, program->params[p].copy);
    program->worker.step++;
    program->ran = true;
    hooks_mark(HT_STREAM_HOST, "end of the step", NULL);
    float loss = loss_of(program);
    hooks_mark(HT_STREAM_HOST, "loss", NULL);
    return loss;
}

/* ---- functions that emitted code calls ---- */

void ht_run_kernel(ht_worker *r, ht_kernel *kernel, ht_call *call, const char *where) {
    const char *doing = fail_doing_what();
    fail_doing(where);
    call->step = r->step;
    call->training = r->training;
    call->seed = r->seed;
    pace_call(kernel, call);
    fail_doing(doing);
}

void ht_convert(ht_worker *r, const ht_reshard *plan, const void *from, void *to, void *scratch,
                const char *where) {
    const char *doing = fail_doing_what();
    ChannelRun run = channel_run(plan, r->pipeline, r->position, r->device);
    run.from = &from;
    run.to = &to;
    run.scratch = scratch;
    fail_doing(where);
    pace_end();
    channel_carry_out(&run);
    pace_begin();
    fail_doing(doing);
}
