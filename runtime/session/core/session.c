/* The public interface of sessions, on rank 0: opening and closing, steps, fetches, parameters. */
#include "session/persist/checkpoint.h"

#include "transport/world.h"
#include "exchange/async_exchange.h"
#include "session/core/session.h"
#include "session/control/prepare_strategy.h"
#include "session/control/control.h"
#include "session/control/links.h"
#include "session/core/initial_strategy.h"
#include "session/data/feed.h"
#include "session/control/pace.h"
#include "session/data/boxes.h"
#include "session/control/recompile_command.h"
#include "session/data/rows.h"
#include "session/observe/hooks.h"
#include "device/device.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/signals.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static ht_session session = {.seed = 1, .keep = 3};

static const EagerLibrary *eager; // NULL: the one-device library is not linked

void session_use_eager(const EagerLibrary *library) { eager = library; }

const EagerLibrary *session_eager(void) { return eager; }

/* ---- opening and closing ---- */

void session_close(ht_session *closed) {
    bool main_here = world_rank() == 0;
    checkpoint_close(closed);
    hooks_close();
    balance_close(closed);
    links_close();
    dispatch_close(closed);
    copies_close(closed);
    ending_close(closed);
    safetensors_free(&closed->loaded);
    free(closed->handles);
    free(closed->owned);
    closed->owned = NULL;
    closed->handles = NULL;
    closed->handle_count = 0;
    for (int p = 0; p < closed->program_count; p++) program_destroy(closed->programs[p]);
    free(closed->programs);
    closed->programs = NULL;
    closed->program_count = 0;
    params_destroy(&closed->params);
    prepare_close();
    private_close();
    async_exchanges_close();
    if (!told_heeded()) told_close();
    device_close();
    world_close();
    if (main_here) told_close();
}

/* State of ht_open that the session's first call handles, so that main answers --help and mistakes
 * in its options before ranks are counted. */
static struct {
    bool wrong, started; // wrong: the number of ranks is wrong; started: the program started ranks
    int argc;
    char **argv;
} uncounted;

void ht_close(ht_session *closed) {
    if (!closed) ht_fail("ht_close was called with NULL for the session");
    if (!closed->open) return;
    closed->open = false;
    if (uncounted.wrong) { // main ends without a call of the session
        world_least(0);
        told_close();
        world_close();
        return;
    }
    session_issue(closed, &(Command){.kind = COMMAND_CLOSE}, &(Payload){0});
    session_close(closed);
}

static void close_at_exit(void) { ht_close(&session); }

/* Detaches a child process, which main has forked, from the session. */
static void forget_in_child(void) {
    if (!session.open) return;
    session.open = false;
    told_close();
    world_forget();
}

ht_session *ht_open(int *argc, char ***argv) {
    if (session.open) ht_fail("ht_open is called a second time");
    bool own_ranks = session_start_ranks();
    world_open(argc, argv,
               WORLD_HEARTBEAT |
                   (image_any_transfers() || recompile_possible() ? WORLD_CHANNELS : 0));
    told_open(world_rank() == 0);
    session.check = getenv("HETU_CHECK") && strcmp(getenv("HETU_CHECK"), "0");
    if (!session_agree(session.check)) session_leave(1);
    image_check();
    uncounted.wrong = !session_ranks_fit();
    uncounted.started = own_ranks;
    uncounted.argc = argc ? *argc : 0;
    uncounted.argv = argv ? *argv : NULL;
    if (uncounted.wrong) {
        if (world_rank() > 0) session_leave(world_least(1)); // the status that rank 0 sends, 0 or 1
        session.open = true;
        pthread_atfork(NULL, NULL, forget_in_child);
        atexit(close_at_exit);
        return &session;
    }
    session_tell_hosts();
    session_set_threads();
    session_take_device();
    hooks_open();
    session.dump = getenv("HETU_DUMP");
    session.open = true;
    if (world_rank() > 0) session_serve(&session);
    session_check_variables();
    initial_strategy_set_variables();
    pthread_atfork(NULL, NULL, forget_in_child);
    checkpoint_open();
    atexit(close_at_exit);
    return &session;
}

void session_check_open(const ht_session *open) {
    if (!open || !open->open) ht_fail("the session is not open; call ht_open first");
    if (uncounted.wrong) {
        session.open = false;
        session_explain_ranks(uncounted.argc, uncounted.argv);
        session_leave(world_least(1));
    }
    if (uncounted.started) session_print_ranks();
    uncounted.started = false;
}

int ht_device_count(ht_session *open) {
    session_check_open(open);
    return world_size();
}

void ht_seed(ht_session *open, uint64_t seed) {
    session_check_open(open);
    if (open->program_count || open->eager)
        ht_fail("ht_seed must be called before the first ht_train or ht_infer");
    open->seed = seed;
}

/* ---- programs ---- */

Program *session_image_program(const ht_program *program) {
    return program->session->programs[program->number];
}

void session_check_program(const ht_program *program, const char *call) {
    if (!program) ht_fail("%s was called with NULL for the program", call);
}

/* ---- running ---- */

/* Ends the program with a message that lists the model's inputs. */
static void no_input(const Program *program, const char *name) {
    char names[1024] = "";
    for (int i = 0; i < program->image->input_count; i++) {
        size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, "%s\"%s\"", i ? ", " : "",
                 program->image->inputs[i].name);
    }
    ht_fail("the model %s has no input \"%s\"; it has %s", program->image->model, name,
            *names ? names : "none");
}

static void gather_feeds(const Program *program, const ht_fed *feeds, Command *command,
                         const void **data) {
    feeds_check_once(feeds);
    for (; feeds->name; feeds++) {
        int input = program_input(program, feeds->name);
        if (input < 0) no_input(program, feeds->name);
        if (feeds->rows) continue;
        if (!feeds->data) ht_fail("the data of input \"%s\" is NULL", feeds->name);
        const ht_image_input *taken = &program->image->inputs[input];
        feed_check(feeds, taken->dtype, boxes_elements(taken->pieces), taken->at);
        if (taken->padding) padding_check(taken, feeds->data);
        command->run.fed[input / 8] |= (unsigned char)(1 << input % 8);
        data[input] = feeds->data;
    }
    for (int i = 0; i < program->image->input_count; i++)
        if (!program->fed[i] && !(command->run.fed[i / 8] >> (i % 8) & 1))
            ht_fail(
                "the input \"%s\" (%s) was never fed: give it to the step by ht_feed(\"%s\", data)",
                program->image->inputs[i].name, program->image->inputs[i].at,
                program->image->inputs[i].name);
}

/* Returns the number of optimizers after the first, up to the last with a hyperparameter not 0. */
static int count_more(const float *hyper) {
    int count = HT_GROUPS * HT_HYPER;
    while (count > HT_HYPER && hyper[count - 1] == 0) count--;
    return (count - 1) / HT_HYPER;
}

static float run_image(ht_program *program, const ht_fed *feeds, const float *hyper) {
    const void *data[PROGRAM_MAX_INPUTS] = {0};
    Command command = {.kind = COMMAND_RUN,
                       .run = {.program = program->number,
                               .report = balance_wants(program),
                               .check = program->session->check,
                               .more = count_more(hyper)}};
    memcpy(command.run.hyper, hyper, sizeof command.run.hyper);
    image_check_reads(session_image_program(program)->number, false);
    rows_read(program->session, session_image_program(program), program->number, feeds);
    gather_feeds(session_image_program(program), feeds, &command, data);
    PaceReport *reports = command.run.report ? memory_array(world_size(), sizeof *reports) : NULL;
    Payload payload = {.run = {.feeds = data, .reports = reports}};
    memcpy(payload.run.hyper, hyper, sizeof payload.run.hyper);
    double begin = pace_now();
    session_issue(program->session, &command, &payload);
    dispatch_note(program, pace_now() - begin);
    balance_note(program, reports);
    free(reports);
    return payload.run.loss;
}

/* Computes the hyperparameters for the next step: learning rates times the schedule's factor. */
static void step_numbers(const ht_program *program, float *hyper) {
    memcpy(hyper, program->hyper, sizeof program->hyper);
    for (int g = 0; program->factor && g < HT_GROUPS; g++)
        hyper[g * HT_HYPER] = (float)(hyper[g * HT_HYPER] * program->factor(program->step));
}

/* Reads rows of datasets into arrays; runs a step in the one-device library. Returns the loss. */
static float run_eager(ht_program *program, const ht_fed *feeds, const float *hyper) {
    ht_fed *arrays = rows_arrays(program->session, program->eager, feeds);
    float loss = eager->program_step(program->eager, arrays ? arrays : feeds, hyper);
    rows_free(arrays);
    return loss;
}

static float run_alone(ht_program *program, const ht_fed *feeds, bool trains) {
    float hyper[HT_GROUPS * HT_HYPER];
    session_check_program(program, trains ? "ht_step" : "ht_run");
    session_check_open(program->session);
    if (!feeds) ht_fail("%s was called with NULL for the feeds", trains ? "ht_step" : "ht_run");
    if (program->trains != trains)
        ht_fail(trains ? "ht_step needs a program of ht_train; ht_run runs those of ht_infer"
                       : "ht_run needs a program of ht_infer; ht_step runs those of ht_train");
    ending_turn(program);
    session_take_arrivals(program->session, false);
    links_turn(program);
    balance_turn(program);
    if (checkpoint_due(program->session))
        session_issue(program->session, &(Command){.kind = COMMAND_WRITE}, &(Payload){0});
    step_numbers(program, hyper);
    hooks_mark(HT_STREAM_HOST, "main", NULL);
    float loss =
        program->eager ? run_eager(program, feeds, hyper) : run_image(program, feeds, hyper);
    hooks_mark(HT_STREAM_HOST, "step", NULL);
    program->loss = loss;
    if (trains) hooks_loss(program->step, loss);
    program->step++;
    return loss;
}

/* Runs a step, or a forward pass unless `trains`, and returns the loss. Ends the program if another
 * thread is running one. */
static float run(ht_program *program, const ht_fed *feeds, bool trains) {
    static atomic_flag busy = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&busy))
        ht_fail("%s is called by a thread while another one runs a step; call the session by one "
                "thread at a time",
                trains ? "ht_step" : "ht_run");
    float loss = run_alone(program, feeds, trains);
    atomic_flag_clear(&busy);
    return loss;
}

float ht_step_with(ht_program *program, const ht_fed *feeds) { return run(program, feeds, true); }

void ht_run_with(ht_program *program, const ht_fed *feeds) { run(program, feeds, false); }

/* Returns the program's value of this name; ends the program if there is none. */
static Named find_named(const ht_program *program, const char *name) {
    NamedValues values = {0};
    Named named;
    char model[256] = "the model";
    for (int i = 0; program->eager && eager->program_named(program->eager, i, &named); i++)
        named_add(&values, named);
    if (!program->eager) {
        named_of_image(&values, session_image_program(program)->image);
        snprintf(model, sizeof model, "the model %s", session_image_program(program)->image->model);
    }
    named = named_find(&values, name, model);
    named_free(&values);
    return named;
}

/* Returns the command that brings a named value to rank 0. Ends the program if the value is an
 * output of a program that has not run, or an input that was never fed. */
static Command fetching(const ht_program *program, const Named *named) {
    const Program *own = session_image_program(program);
    if (named->kind == NAMED_PARAM)
        return (Command){.kind = COMMAND_GET_PARAM,
                         .param.param = own->params[named->index].param->number};
    if (named->kind == NAMED_OUTPUT && !own->ran)
        ht_fail("the output \"%s\" is fetched before the program ran", named->name);
    if (named->kind == NAMED_INPUT && !own->fed[named->index])
        ht_fail("the input \"%s\" is fetched, and was never fed", named->name);
    return (Command){.kind = named->kind == NAMED_INPUT ? COMMAND_FETCH_INPUT : COMMAND_FETCH,
                     .fetch = {.program = program->number, .index = named->index}};
}

/* Returns the bytes of a named value. */
static int64_t bytes_of(const ht_program *program, const Named *named) {
    if (program->eager) return eager->program_bytes(program->eager, named);
    const Program *own = session_image_program(program);
    if (named->kind == NAMED_PARAM)
        return own->params[named->index].param->elements * (int64_t)sizeof(float);
    return named->kind == NAMED_INPUT ? program_input_bytes(own, named->index)
                                      : program_output_bytes(own, named->index);
}

void ht_fetch_with(ht_program *program, const char *name, void *to, int64_t room) {
    session_check_program(program, "ht_fetch");
    if (!name) ht_fail("ht_fetch was called with NULL for the name");
    if (!to) ht_fail("ht_fetch of \"%s\" was given NULL to copy to", name);
    session_check_open(program->session);
    Named named = find_named(program, name);
    if (room >= 0 && bytes_of(program, &named) > room)
        ht_fail(
            "\"%s\" has %lld bytes, and is fetched to an array of %lld; give the whole array, or "
            "a pointer such as &a[0][0]",
            named.name, (long long)bytes_of(program, &named), (long long)room);
    if (program->eager) {
        eager->program_fetch(program->eager, &named, to);
        return;
    }
    Command command = fetching(program, &named);
    session_issue(program->session, &command, &(Payload){.to = to});
}

void ht_set_hyper(ht_program *program, int index, float value) {
    session_check_program(program, "ht_set_hyper");
    if (index < 0 || index >= HT_GROUPS * HT_HYPER)
        ht_fail("the optimizers of a program have the numbers 0 to %d; there is no number %d",
                HT_GROUPS * HT_HYPER - 1, index);
    program->hyper[index] = value;
}

void ht_set_schedule(ht_program *program, double (*factor)(int64_t step)) {
    session_check_program(program, "ht_set_schedule");
    program->factor = factor;
}

void ht_set_rate(ht_program *program, float rate) { ht_set_hyper(program, 0, rate); }

/* Returns the number of tokens: the elements of the largest integer input; 0: there is none. */
static int64_t count_tokens(const ht_program *program) {
    int64_t most = 0;
    if (program->eager) return eager->program_tokens(program->eager);
    const ht_image *image = session_image_program(program)->image;
    for (int i = 0; i < image->input_count; i++) {
        int64_t count = boxes_elements(image->inputs[i].pieces);
        bool integers = image->inputs[i].dtype == HT_I32 || image->inputs[i].dtype == HT_I64;
        most = integers && count > most ? count : most;
    }
    return most;
}

float ht_grad_norm(ht_program *program) {
    session_check_program(program, "ht_grad_norm");
    session_check_open(program->session);
    if (!program->trains || !program->step)
        ht_fail("ht_grad_norm is for programs of ht_train, behind a step");
    if (program->eager) return eager->program_grad_norm(program->eager);
    float square;
    if (program_output(session_image_program(program), HT_GRADIENT_NORM) < 0)
        ht_fail("ht_grad_norm: the program of %s makes no norm of its gradients; hetucc has it "
                "made where the file that calls ht_train calls "
                "ht_grad_norm",
                session_image_program(program)->image->model);
    ht_fetch_with(program, HT_GRADIENT_NORM, &square, sizeof square);
    return sqrtf(square);
}

void ht_progress(ht_program *program, int64_t steps) {
    session_check_program(program, "ht_progress");
    session_check_open(program->session);
    if (!program->trains || !program->step)
        ht_fail("ht_progress is for programs of ht_train, behind a step");
    double factor = program->factor ? program->factor(program->step - 1) : 1;
    progress_print(&program->progress,
                   &(ProgressStep){program->step, steps, count_tokens(program), program->loss,
                                   (float)(program->hyper[0] * factor)});
}

/* ---- parameters ---- */

const char *ht_param_name(ht_session *open, int index, size_t *count) {
    size_t unasked;
    session_check_open(open);
    count = count ? count : &unasked;
    if (open->eager) {
        const eager_param *param = eager->store_param(open->eager, index);
        *count = param ? (size_t)param->count : 0;
        return param ? param->name : NULL;
    }
    bool known = index >= 0 && index < open->params.count;
    *count = known ? (size_t)open->params.at[index]->elements : 0;
    return known ? open->params.at[index]->name : NULL;
}

static void check_count(const char *name, size_t has, size_t count) {
    if (has != count) ht_fail("the parameter \"%s\" has %zu elements, not %zu", name, has, count);
}

static eager_param *find_eager(ht_session *open, const char *name, size_t count) {
    eager_param *param = eager->store_find(open->eager, name);
    if (!param) ht_fail("there is no parameter \"%s\"", name);
    check_count(name, (size_t)param->count, count);
    return param;
}

static int find_param(const ht_session *open, const char *name, size_t count) {
    const Param *param = params_find(&open->params, name);
    if (!param) ht_fail("there is no parameter \"%s\"", name);
    check_count(name, (size_t)param->elements, count);
    return param->number;
}

/* Ends the program if a parameter's name, or the memory for its elements, is NULL. */
static void check_param(const char *call, const char *name, const void *memory, size_t count) {
    if (!name || (!memory && count))
        ht_fail("%s was called with NULL for the %s", call, name ? "memory" : "name");
}

void ht_get_param(ht_session *open, const char *name, float *to, size_t count) {
    session_check_open(open);
    check_param("ht_get_param", name, to, count);
    if (open->eager) {
        memcpy(to, find_eager(open, name, count)->data, count * sizeof *to);
        return;
    }
    Command command = {.kind = COMMAND_GET_PARAM, .param.param = find_param(open, name, count)};
    session_issue(open, &command, &(Payload){.to = to});
}

void ht_set_param(ht_session *open, const char *name, const float *from, size_t count) {
    session_check_open(open);
    check_param("ht_set_param", name, from, count);
    if (open->eager) {
        memcpy(find_eager(open, name, count)->data, from, count * sizeof *from);
        return;
    }
    Command command = {.kind = COMMAND_SET_PARAM, .param.param = find_param(open, name, count)};
    session_issue(open, &command, &(Payload){.from = from});
}
