/* Keeps a session's parameters, and evaluates, trains and fetches from its programs. */
#include "eager/tape.h"

#include "base/c_locale.h"
#include "base/random.h"
#include "cpu/cpu.h"
#include "session/data/feed.h"
#include "session/observe/hooks.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct eager_store {
    uint64_t seed;
    int count, program_count;
    eager_param **params;
    eager_program **programs; // in order of creation
};

/* A parameter or state in one program, with its optimizer states and its node of this step. */
typedef struct Trained {
    eager_param *param;
    bool no_decay, frozen;
    bool assigned; // made by ht_state: ht_assign may assign to this state
    int group;     // parameter group; 0: the optimizer given to ht_train
    float *state[4];
    const ht_called *note; // the update of `param` in trace and profile; NULL: none yet
    ht_node *node;
    ht_node *next; // value of `param` after this step; NULL: unchanged
} Trained;

typedef struct Input {
    char *name;
    ht_dtype dtype;
    ht_dims dims;
    void *data;
    size_t bytes;
    bool fed;
    ht_node *node;
} Input;

typedef struct Output {
    char *name;
    ht_node *node;
    const void *kept; // copy, before the update, of an output in a parameter's memory; else NULL
} Output;

struct eager_program {
    eager_store *store;
    ht_tensor (*model)(void);
    bool trains, ran, averaged, clipped;
    int group_count; // groups, including the first, which has no name pattern
    ht_param_group groups[HT_GROUPS];
    float hyper[HT_GROUPS * HT_HYPER]; // hyperparameters of this step, by optimizer
    int64_t step;
    Tape *tape;
    Trace trace;
    int trained_count, input_count, output_count;
    Trained *trained;
    Input *inputs;
    Output *outputs; // outputs of the last step; the first is the model's value, ""
};

static void *allocate(size_t bytes) {
    void *memory = calloc(1, bytes ? bytes : 1);
    if (!memory) ht_fail("no memory for %zu bytes", bytes);
    return memory;
}

static char *copy_text(const char *text) { return strcpy(allocate(strlen(text) + 1), text); }

/* Returns a list of `count` elements with room for one more; capacities are powers of two. */
static void *grow(void *list, int count, size_t size) {
    if (count & (count - 1)) return list;
    void *more = realloc(list, (size_t)(count ? 2 * count : 1) * size);
    if (!more) ht_fail("no memory for %zu bytes", (size_t)(2 * count + 1) * size);
    return more;
}

/* ---- the store ---- */

eager_store *eager_store_create(uint64_t seed) {
    eager_store *store = allocate(sizeof *store);
    store->seed = seed;
    return store;
}

eager_param *eager_store_param(eager_store *store, int index) {
    return index >= 0 && index < store->count ? store->params[index] : NULL;
}

eager_param *eager_store_find(eager_store *store, const char *name) {
    for (int i = 0; i < store->count; i++)
        if (strcmp(store->params[i]->name, name) == 0) return store->params[i];
    return NULL;
}

static eager_param *param_create(eager_store *store, const char *name, ht_dims shape,
                                 ht_init init) {
    int64_t lo[HT_MAX_RANK] = {0};
    eager_param *param = allocate(sizeof *param);
    *param = (eager_param){copy_text(name), shape, eager_elements(shape), NULL, init};
    param->data = cpu_alloc((size_t)param->count * sizeof(float));
    ht_init_box(param->data, &init, store->seed, name,
                &(TensorBox){shape.rank, shape.extent, lo, shape.extent});
    store->params = grow(store->params, store->count, sizeof *store->params);
    return store->params[store->count++] = param;
}

eager_param *eager_store_make(eager_store *store, const char *name, ht_dims shape, ht_init init) {
    eager_param *param = eager_store_find(store, name);
    if (!param) return param_create(store, name, shape, init);
    if (!eager_same_shape(param->shape, shape) || param->init.kind != init.kind ||
        param->init.a != init.a)
        ht_fail("the parameter \"%s\" was made before with another shape or initialisation: with "
                "shape %s, now %s",
                name, eager_shape_text(param->shape), eager_shape_text(shape));
    return param;
}

/* ---- parameters, states, inputs and outputs of a program ---- */

bool eager_program_averaged(const eager_program *program) { return program->averaged; }

/* Returns the first parameter group whose name pattern matches, as in hetucc; 0: none does. */
static int find_group(const eager_program *program, const char *name) {
    int found = 0;
    locale_t own = c_locale_enter();
    for (int g = 1; g < program->group_count && !found; g++)
        found = fnmatch(program->groups[g].names, name, 0) ? 0 : g;
    c_locale_leave(own);
    return found;
}

static const ht_optimizer *optimizer_of(const eager_program *program, const Trained *t) {
    return &program->groups[t->group].optimizer;
}

ht_node *eager_program_param(eager_program *program, eager_param *param, bool no_decay, bool frozen,
                             bool assigned) {
    Trained *t = program->trained;
    int i = 0;
    while (i < program->trained_count && t[i].param != param) i++;
    if (i == program->trained_count) {
        program->trained = t = grow(t, i, sizeof *t);
        t[program->trained_count++] =
            (Trained){.param = param, .no_decay = no_decay, .frozen = frozen, .assigned = assigned};
        t[i].group = find_group(program, param->name);
        for (int s = 0; program->trains && !frozen && s < optimizer_of(program, &t[i])->states; s++)
            t[i].state[s] = allocate((size_t)param->count * sizeof(float));
    }
    if (t[i].no_decay != no_decay || t[i].frozen != frozen || t[i].assigned != assigned)
        ht_fail("the parameter \"%s\" was made before with another attribute", param->name);
    if (!t[i].node) {
        ht_node *node = t[i].node = eager_node_like((ht_node){.dtype = HT_F32,
                                                              .dims = param->shape,
                                                              .count = param->count,
                                                              .data = param->data,
                                                              .param = param});
        node->needs_gradient = program->trains && !frozen;
    }
    return t[i].node;
}

void eager_program_assign(eager_program *program, ht_node *state, ht_node *value) {
    Trained *t = program->trained, *end = t + program->trained_count;
    while (t < end && (!t->assigned || t->node != state)) t++;
    if (t == end) ht_fail("ht_assign assigns states, and this tensor is none: ht_state makes one");
    if (t->next) ht_fail("the state \"%s\" is assigned twice", t->param->name);
    if (value->dtype != HT_F32 || !eager_same_shape(value->dims, t->param->shape))
        ht_fail("the state \"%s\" is f32 of shape %s, and is assigned a tensor of shape %s or "
                "another type",
                t->param->name, eager_shape_text(t->param->shape), eager_shape_text(value->dims));
    eager_trace_name("the assignment of ", t->param->name, HT_F32, value->dims);
    eager_trace_argument(&(ht_attr){.i = value->number});
    t->next = value;
}

static Input *find_input(eager_program *program, const char *name) {
    for (int i = 0; i < program->input_count; i++)
        if (strcmp(program->inputs[i].name, name) == 0) return &program->inputs[i];
    return NULL;
}

static Input *make_input(eager_program *program, const char *name, ht_dtype dtype, ht_dims dims) {
    size_t bytes = (size_t)eager_elements(dims) * ht_dtype_bytes(dtype);
    program->inputs = grow(program->inputs, program->input_count, sizeof *program->inputs);
    Input *input = &program->inputs[program->input_count++];
    *input = (Input){.name = copy_text(name),
                     .dtype = dtype,
                     .dims = dims,
                     .data = allocate(bytes),
                     .bytes = bytes};
    return input;
}

ht_node *eager_program_input(eager_program *program, const char *name, ht_dtype dtype,
                             ht_dims dims) {
    Input *input = find_input(program, name);
    eager_trace_name("the input ", name, dtype, dims);
    if (!input) input = make_input(program, name, dtype, dims);
    if (input->dtype != dtype || !eager_same_shape(input->dims, dims))
        ht_fail("input %s has shape %s, and is declared again with shape %s or another type", name,
                eager_shape_text(input->dims), eager_shape_text(dims));
    if (!eager_run.dry && !input->fed)
        ht_fail("input %s was never fed: give it to the step by ht_feed(\"%s\", data)", name, name);
    if (!input->node) {
        input->node = eager_node_like((ht_node){
            .dtype = dtype, .dims = dims, .count = eager_elements(dims), .data = input->data});
    }
    return input->node;
}

static Output *find_output(eager_program *program, const char *name) {
    for (int i = 0; i < program->output_count; i++)
        if (strcmp(program->outputs[i].name, name) == 0) return &program->outputs[i];
    return NULL;
}

void eager_program_output(eager_program *program, const char *name, ht_node *node) {
    if (find_output(program, name)) ht_fail("two outputs are named \"%s\"", name);
    eager_trace_name("the output ", name, node->dtype, node->dims);
    eager_trace_argument(&(ht_attr){.i = node->number});
    program->outputs = grow(program->outputs, program->output_count, sizeof *program->outputs);
    program->outputs[program->output_count++] = (Output){copy_text(name), node, NULL};
}

/* ---- evaluation ---- */

static void forget_step(eager_program *program) {
    for (int i = 0; i < program->output_count; i++) free(program->outputs[i].name);
    program->output_count = 0;
    free(program->outputs);
    program->outputs = NULL;
    for (int i = 0; i < program->trained_count; i++)
        program->trained[i].node = program->trained[i].next = NULL;
    for (int i = 0; i < program->input_count; i++) program->inputs[i].node = NULL;
}

/* Evaluates the model, returns its value, and leaves the tape for backward. `dry`: shapes alone. */
static ht_node *evaluate(eager_program *program, bool dry) {
    forget_step(program);
    eager_tape_begin(program->tape);
    eager_trace_begin(&program->trace);
    eager_run = (Run){.store = program->store,
                      .program = program,
                      .trace = &program->trace,
                      .evaluation = eager_run.evaluation + 1,
                      .dry = dry,
                      .training = program->trains,
                      .recording = program->trains && !dry,
                      .step = program->step,
                      .seed = program->store->seed,
                      .hyper = program->hyper};
    eager_run.own = c_locale_enter();
    ht_node *value = program->model().node;
    c_locale_leave(eager_run.own);
    if (!value) ht_fail("the model function gives no tensor");
    if (program->trains && (value->dims.rank != 0 || value->dtype != HT_F32))
        ht_fail("a model that trains gives a scalar loss of type f32, not a tensor of shape %s",
                eager_shape_text(value->dims));
    eager_program_output(program, "", value);
    eager_trace_forward(&program->trace);
    return value;
}

static void update_by_rules(eager_program *program, ht_node *norm);

/* Ends the program if no trained parameter matches a group's name pattern. */
static void check_groups(const eager_program *program) {
    for (int g = 1; g < program->group_count; g++) {
        bool found = false;
        for (int i = 0; i < program->trained_count; i++)
            found |= program->trained[i].group == g && !program->trained[i].frozen;
        if (!found)
            ht_fail("no parameter that is trained belongs to the group \"%s\"",
                    program->groups[g].names);
    }
}

/* Sets the parameter groups, their optimizers and other options of a program. */
static void take_options(eager_program *program, const ht_optimizer *optimizer,
                         const ht_program_options *options) {
    program->averaged = options->averaged;
    for (int g = 0; optimizer && g <= options->groups.count; g++) {
        program->groups[g] = g ? options->groups.at[g - 1] : (ht_param_group){NULL, *optimizer};
        program->clipped |= program->groups[g].optimizer.clipped;
        program->group_count++;
    }
}

/* Evaluates the optimizers' rules once without computing, to create the optimizers' states. The
 * trace keeps no hashes of this evaluation. */
static void make_kept(eager_program *program) {
    int known = program->trace.count;
    eager_run.backward = true;
    update_by_rules(program, eager_node(HT_F32, (ht_dims){0}));
    program->trace.count = known;
}

eager_program *eager_program_create(eager_store *store, ht_tensor (*model)(void),
                                    const ht_optimizer *optimizer,
                                    const ht_program_options *options) {
    eager_program *program = allocate(sizeof *program);
    *program = (eager_program){
        .store = store, .model = model, .trains = optimizer != NULL, .tape = eager_tape_create()};
    store->programs = grow(store->programs, store->program_count, sizeof *store->programs);
    store->programs[store->program_count++] = program;
    take_options(program, optimizer, options);
    evaluate(program, true);
    check_groups(program);
    make_kept(program);
    eager_run.program = NULL;
    return program;
}

static void forget_inputs(eager_program *program) {
    for (int i = 0; i < program->input_count; i++) {
        free(program->inputs[i].name);
        free(program->inputs[i].data);
    }
    free(program->inputs);
    program->inputs = NULL;
    program->input_count = 0;
}

/* Returns whether a forward-only program shares a parameter with program `trains`. */
static bool follows(const eager_program *program, const eager_program *trains) {
    for (int i = 0; !program->trains && trains->trains && i < program->trained_count; i++)
        for (int j = 0; j < trains->trained_count; j++)
            if (program->trained[i].param == trains->trained[j].param) return true;
    return false;
}

void eager_program_forget(eager_program *program) {
    for (int i = 0; i < program->store->program_count; i++) {
        eager_program *other = program->store->programs[i];
        if (other != program && !follows(other, program)) continue;
        forget_inputs(other);
        free(other->trace.print);
        other->trace = (Trace){0};
        other->ran = false;
        evaluate(other, true);
        eager_run.program = NULL;
    }
}

bool eager_store_state(eager_store *store, int index, eager_state *state) {
    for (int p = 0, number = 0; p < store->program_count; p++) {
        const eager_program *program = store->programs[p];
        for (int i = 0; program->trains && i < program->trained_count; i++)
            for (int s = 0; s < 4 && program->trained[i].state[s]; s++)
                if (index-- == 0) {
                    *state = (eager_state){program->trained[i].param, s, number,
                                           program->trained[i].state[s]};
                    return true;
                }
        number += program->trains;
    }
    return false;
}

void eager_store_resume(eager_store *store, uint64_t seed) { store->seed = seed; }

void eager_program_resume(eager_program *program, int64_t step) { program->step = step; }

/* ---- a step ---- */

/* Returns the names of a program's inputs, "tokens, targets", in a static buffer. */
static const char *input_names(const eager_program *program) {
    static char text[512];
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < program->input_count && at < sizeof text; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i ? ", " : "",
                               program->inputs[i].name);
    return text;
}

bool eager_program_shape(eager_program *program, const char *name, ht_dtype *dtype,
                         ht_dims *shape) {
    const Input *input = find_input(program, name);
    if (!input) return false;
    *dtype = input->dtype;
    *shape = input->dims;
    return true;
}

static void take_feeds(eager_program *program, const ht_fed *feeds) {
    if (feeds) feeds_check_once(feeds);
    for (const ht_fed *feed = feeds; feed && feed->name; feed++) {
        Input *input = find_input(program, feed->name);
        if (!input)
            ht_fail("no input is named %s; the model's inputs are: %s", feed->name,
                    input_names(program));
        if (!feed->data && input->bytes > 0) ht_fail("input %s was fed NULL", feed->name);
        feed_check(feed, input->dtype, eager_elements(input->dims), NULL);
        if (input->bytes > 0) memcpy(input->data, feed->data, input->bytes);
        input->fed = true;
    }
}

static ht_node *gradient_of(const Trained *t) { return t->node ? t->node->gradient : NULL; }

/* Returns the square of the global L2 norm of all gradients. */
static float square_norm(const eager_program *program) {
    double total = 0;
    for (int i = 0; i < program->trained_count; i++) {
        ht_node *gradient = gradient_of(&program->trained[i]);
        const float *g = gradient ? eager_f32(gradient) : NULL;
        for (int64_t j = 0; g && j < gradient->count; j++) total += (double)g[j] * g[j];
    }
    return (float)total;
}

static ht_view view_of(float *data, ht_dims shape) {
    ht_view view = {.data = data, .dtype = HT_F32, .rank = shape.rank};
    for (int d = 0; d < shape.rank; d++) view.extent[d] = view.global[d] = shape.extent[d];
    return view;
}

/* Runs the optimizer's kernel on one parameter in place. */
static void update_by_kernel(const eager_program *program, Trained *t, float *norm) {
    const ht_optimizer *o = optimizer_of(program, t);
    eager_param *param = t->param;
    ht_view result[5], operand[7];
    ht_attr attr[] = {{.i = !t->no_decay}, {.i = t->group * HT_HYPER}};
    result[0] = operand[0] = view_of(param->data, param->shape);
    operand[1] = view_of(eager_f32(gradient_of(t)), param->shape);
    for (int s = 0; s < o->states; s++)
        result[1 + s] = operand[2 + s] = view_of(t->state[s], param->shape);
    operand[2 + o->states] = view_of(norm, (ht_dims){0});
    ht_call call = {result,        operand, 1 + o->states,
                    3 + o->states, attr,    program->hyper,
                    program->step, 1,       program->store->seed};
    o->kernel(&call);
    eager_look_update(&t->note, o->name ? o->name : "update", param);
}

static void update_by_kernels(const eager_program *program, float *norm) {
    for (int i = 0; i < program->trained_count; i++) {
        Trained *t = &program->trained[i];
        if (gradient_of(t) && t->param->count > 0 && !optimizer_of(program, t)->rule)
            update_by_kernel(program, t, norm);
    }
}

/* Runs the optimizer's `rule`, which builds the new value of a parameter from operators, then its
 * `after` function. A dry evaluation assumes a gradient for each parameter. */
static void update_by_rule(eager_program *program, int number, ht_node *norm) {
    const Trained *t = &program->trained[number];
    const ht_optimizer *o = optimizer_of(program, t);
    ht_node *p = t->node, *g = eager_dry() ? eager_node(HT_F32, t->param->shape) : gradient_of(t);
    ht_update given = {.p = {p},
                       .g = {g},
                       .norm = {program->clipped ? norm : NULL},
                       .decay = !t->no_decay,
                       .first = t->group * HT_HYPER};
    ht_scope("%s", t->param->name);
    if (o->rule && g) {
        ht_node *made = o->rule(&given).node;
        if (!made || made->dtype != HT_F32 || !eager_same_shape(made->dims, p->dims))
            ht_fail("the rule of the optimizer gives the parameter \"%s\" another shape or type",
                    program->trained[number].param->name);
        program->trained[number].next = given.p.node = made;
    }
    given.g.node = NULL;
    if (o->after) o->after(&given);
}

static void update_by_rules(eager_program *program, ht_node *norm) {
    for (int i = 0, count = program->trained_count; i < count; i++) {
        const ht_optimizer *o = optimizer_of(program, &program->trained[i]);
        if (program->trains && program->trained[i].node && !program->trained[i].frozen &&
            (o->rule || o->after))
            update_by_rule(program, i, norm);
    }
}

static void update_all(eager_program *program) {
    ht_node *norm = eager_node(HT_F32, (ht_dims){0});
    if (program->clipped) *(float *)norm->data = square_norm(program);
    eager_run.recording = false;
    update_by_kernels(program, program->clipped ? norm->data : NULL);
    update_by_rules(program, norm);
}

/* Copies new values into parameters and states, through copies, since values may share memory. */
static void assign_all(const eager_program *program) {
    for (int i = 0; i < program->trained_count; i++) {
        const Trained *t = &program->trained[i];
        size_t bytes = (size_t)t->param->count * sizeof(float);
        if (t->next) t->next->data = memcpy(eager_alloc(bytes), eager_f32(t->next), bytes);
    }
    for (int i = 0; i < program->trained_count; i++) {
        const Trained *t = &program->trained[i];
        if (t->next) memcpy(t->param->data, t->next->data, (size_t)t->param->count * sizeof(float));
    }
}

/* Copies outputs that are parameters or views of parameters, before the update overwrites them. */
static void keep_outputs(const eager_program *program) {
    for (int i = 0; i < program->output_count; i++) {
        Output *output = &program->outputs[i];
        const float *data = eager_data(output->node);
        size_t bytes = (size_t)output->node->count * ht_dtype_bytes(output->node->dtype);
        for (int t = 0; t < program->trained_count && !output->kept; t++) {
            const eager_param *param = program->trained[t].param;
            if (data >= param->data && data < param->data + param->count)
                output->kept = memcpy(eager_alloc(bytes), data, bytes);
        }
    }
}

float eager_program_step(eager_program *program, const ht_fed *feeds, const float *hyper) {
    memcpy(program->hyper, hyper, sizeof program->hyper);
    hooks_step(program->step);
    take_feeds(program, feeds);
    hooks_mark(HT_STREAM_HOST, "feed", NULL);
    ht_node *value = evaluate(program, false);
    bool scalar = value->dims.rank == 0 && value->dtype == HT_F32;
    float loss = scalar ? eager_f32(value)[0] : 0;
    if (program->trains) eager_backward(value);
    keep_outputs(program);
    eager_run.looked = NULL;
    if (program->trains) {
        update_all(program);
        eager_trace_backward(&program->trace);
    }
    assign_all(program);
    program->step++;
    program->ran = true;
    eager_run.program = NULL;
    return loss;
}

bool eager_program_named(const eager_program *program, int index, Named *named) {
    int outputs = program->output_count, params = outputs + program->trained_count,
        inputs = params + program->input_count;
    if (index < outputs) *named = (Named){program->outputs[index].name, NAMED_OUTPUT, index};
    else if (index < params)
        *named =
            (Named){program->trained[index - outputs].param->name, NAMED_PARAM, index - outputs};
    else if (index < inputs)
        *named = (Named){program->inputs[index - params].name, NAMED_INPUT, index - params};
    return index < inputs;
}

static void fetch_output(const eager_program *program, const Output *output, void *to) {
    if (!program->ran) ht_fail("the output \"%s\" is fetched before the program ran", output->name);
    memcpy(to, output->kept ? output->kept : eager_data(output->node),
           (size_t)output->node->count * ht_dtype_bytes(output->node->dtype));
}

static void fetch_input(const Input *input, void *to) {
    if (!input->fed) ht_fail("the input \"%s\" is fetched, and was never fed", input->name);
    memcpy(to, input->data, input->bytes);
}

int64_t eager_program_bytes(const eager_program *program, const Named *named) {
    if (named->kind == NAMED_INPUT) return (int64_t)program->inputs[named->index].bytes;
    if (named->kind == NAMED_PARAM)
        return program->trained[named->index].param->count * (int64_t)sizeof(float);
    const ht_node *node = program->outputs[named->index].node;
    return node ? node->count * (int64_t)ht_dtype_bytes(node->dtype) : 0;
}

void eager_program_fetch(eager_program *program, const Named *named, void *to) {
    const eager_param *param =
        named->kind == NAMED_PARAM ? program->trained[named->index].param : NULL;
    switch (named->kind) {
    case NAMED_OUTPUT: fetch_output(program, &program->outputs[named->index], to); return;
    case NAMED_PARAM: memcpy(to, param->data, (size_t)param->count * sizeof(float)); return;
    case NAMED_INPUT: fetch_input(&program->inputs[named->index], to); return;
    }
}

int64_t eager_program_tokens(const eager_program *program) {
    int64_t most = 0;
    for (int i = 0; i < program->input_count; i++) {
        const Input *input = &program->inputs[i];
        int64_t count = eager_elements(input->dims);
        bool integers = input->dtype == HT_I32 || input->dtype == HT_I64;
        most = integers && count > most ? count : most;
    }
    return most;
}

float eager_program_grad_norm(const eager_program *program) { return sqrtf(square_norm(program)); }
