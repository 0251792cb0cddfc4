/* hetu.h: the header that a model includes.
 *
 * A model is plain C for one device. `cc model.c -lhetu` runs it on one device; `hetucc model.c -o
 * model` compiles a program for many devices that computes the same values. Pragmas begin with
 * `#pragma hspmd`; a plain C compiler ignores them. See hspmd(7) for the language.
 */
#ifndef HETU_HETU_H
#define HETU_HETU_H

#include <hetu/kernel.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if !defined(_HSPMD) && defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#endif

#ifdef __cplusplus
#error "a model is C, not C++"
#endif

/* ---- tensors ---- */

/* A value of the model. Under hetucc it is unknown at compile time; on one device it stands for a
 * node of the step's tape. An all-zero ht_tensor is "absent". */
typedef struct ht_tensor {
    struct ht_node *node;
} ht_tensor;

/* Several tensors, for operators that take any number: ht_list(a, b, c). */
typedef struct ht_tensors {
    int count;
    const ht_tensor *at;
} ht_tensors;

#define HT_NONE ((ht_tensor){0})
#define ht_list(...) ((ht_tensors){(int)(sizeof((ht_tensor[]){__VA_ARGS__}) / sizeof(ht_tensor)), (ht_tensor[]){__VA_ARGS__}})
#define ht_shape(...) ((ht_dims){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})
#define ht_scalar_shape() ((ht_dims){0})

/* Return the extent of dimension d (negative: from the end), the rank, the shape, the dtype, and
 * whether a tensor is present. All are known at compile time. */
int64_t ht_extent(ht_tensor x, int d);
int ht_rank(ht_tensor x);
ht_dims ht_dims_of(ht_tensor x);
ht_dtype ht_dtype_of(ht_tensor x);
bool ht_present(ht_tensor x);

/* ---- parameters, inputs, outputs ---- */

typedef enum ht_init_kind { HT_INIT_ZEROS, HT_INIT_CONSTANT, HT_INIT_NORMAL, HT_INIT_UNIFORM } ht_init_kind;
typedef struct ht_init {
    ht_init_kind kind;
    double a;
} ht_init;

#define ht_zeros() ((ht_init){HT_INIT_ZEROS, 0})
#define ht_ones() ((ht_init){HT_INIT_CONSTANT, 1})
#define ht_constant(value) ((ht_init){HT_INIT_CONSTANT, (value)})
#define ht_normal(deviation) ((ht_init){HT_INIT_NORMAL, (deviation)})   /* mean 0 */
#define ht_uniform(bound) ((ht_init){HT_INIT_UNIFORM, (bound)})         /* [-bound, bound) */

typedef struct ht_param_options {
    const char *name;
    bool no_decay; // weight decay does not apply
    bool frozen;   // the parameter is not trained
} ht_param_options;

/* A trained f32 tensor: ht_param(ht_shape(3, 4), ht_normal(0.02), "w"), with `.no_decay = true` or
 * `.frozen = true` after the name. The full name has the scopes in front, "h0.w"; a second
 * parameter of the same full name is the same one and must agree. */
#define ht_param(shape, init, ...) ht_parameter((shape), (init), (ht_param_options){.name = __VA_ARGS__})
ht_tensor ht_parameter(ht_dims shape, ht_init init, ht_param_options options);

/* Declares an f32 tensor that the session keeps between runs and does not train, such as a cache or
 * a running mean. States are named as parameters are; programs that use one name share the state.
 * ht_get_param and ht_set_param accept the name. A model reads the value from before the run. */
ht_tensor ht_state(ht_dims shape, ht_init init, const char *name);

/* Sets the value that a state has in the next run. A model assigns each state at most once; no
 * gradient flows through `value`. */
void ht_assign(ht_tensor state, ht_tensor value);

/* Declares an input: the caller feeds its elements with ht_feed. */
ht_tensor ht_input(const char *name, ht_dtype dtype, ht_dims shape);

/* Names a value of the model, for ht_fetch; the full name has the scopes in front, "h0.y", and no
 * other output has it. */
ht_tensor ht_output(ht_tensor x, const char *name);

/* A scope for parameters' names, printf style, until the end of the block: ht_scope("h%d",
 * layer); */
typedef struct ht_scope_mark {
    size_t length;
} ht_scope_mark;
ht_scope_mark ht_scope_enter(const char *format, ...) __attribute__((format(printf, 1, 2)));
void ht_scope_leave(ht_scope_mark *mark);
#define HT_JOIN_(a, b) a##b
#define HT_JOIN(a, b) HT_JOIN_(a, b)
#define ht_scope(...) __attribute__((cleanup(ht_scope_leave), unused)) ht_scope_mark HT_JOIN(ht_scope_at_, __LINE__) = ht_scope_enter(__VA_ARGS__)

/* 0, 1, 2, ...: a new number at each call while a model is evaluated; operators with randomness
 * take one as their stream. */
int64_t ht_stream(void);

/* ---- optimizers ---- */

enum { HT_HYPER = 8, HT_GROUPS = 8 }; // numbers of an optimizer; optimizers of a program

/* Arguments of an optimizer rule, for one parameter. */
typedef struct ht_update {
    ht_tensor p, g; // the parameter, and its gradient
    ht_tensor norm; // the square of the global gradient norm; absent without clipping
    bool decay;     // whether weight decay applies
    int first;      // number i of the optimizer is ht_hyper(first + i)
} ht_update;

/* How a parameter is updated: by an operator, or by a rule.
 *
 * The operator is one (p, g, states..., ?norm; bool decay, int first) -> (p, states...) over the
 * elements of a parameter; its kernel finds its numbers from call->hyper[first] on. An operator
 * without `first` supports no parameter groups. The rule is a function that builds the new value
 * from operators. The rule declares its states with ht_state, under the parameter's scope:
 * "w.momentum". `after` is an optional second rule, which runs after the update: its `p` is the new
 * value, its `g` is absent, and its result is ignored (ht_averaged).
 *
 * All fields but `hyper` must be known at compile time. hyper[0] is the learning rate; the last
 * number belongs to `after`; each optimizer defines the others. */
typedef struct ht_optimizer {
    void (*update)(void); // the operator; NULL: the rule
    int states;           // of the operator: states a parameter, of its shape, zero at the start
    bool clipped;         // the square of the global gradient norm is asked for
    ht_kernel *kernel;    // the operator's kernel, for the one-device library
    float hyper[HT_HYPER];
    ht_tensor (*rule)(const ht_update *u);
    ht_tensor (*after)(const ht_update *u);
    const char *name; // recorded in checkpoints: ht_resume compares the names; NULL: no comparison
    const char *rule_name, *after_name; // names of `rule` and `after`, by which ht_train compares static functions across files; NULL: by address
} ht_optimizer;

/* A parameter group with its own optimizer: the parameters whose full names match a glob pattern
 * (*, ?, [...]). */
typedef struct ht_param_group {
    const char *names;
    ht_optimizer optimizer;
} ht_param_group;
typedef struct ht_group_list {
    int count;
    const ht_param_group *at;
} ht_group_list;
#define ht_groups(...) ((ht_group_list){(int)(sizeof((ht_param_group[]){__VA_ARGS__}) / sizeof(ht_param_group)), (ht_param_group[]){__VA_ARGS__}})

/* ---- running ---- */

typedef struct ht_session ht_session;
typedef struct ht_program ht_program;

/* Opens the session; on ranks other than 0 it serves rank 0 and does not return. */
ht_session *ht_open(int *argc, char ***argv);

/* Options of a program. dtype HT_BF16 is mixed precision: matrix products and values computed from
 * them are stored in bf16, with sums in f32. Parameters, their gradients, optimizer states, norms,
 * the loss, inputs and outputs stay in f32. Values that the model makes in f32 (ht_cast,
 * ht_arange), and values computed from those, stay in f32, too. hetucc must know the dtype at
 * compile time; the one-device library always computes in f32. */
typedef struct ht_program_options {
    ht_dtype dtype;
    ht_group_list groups; // of ht_train: ht_groups({"*.bias", ht_adamw(.decay = 0)}, ...); the first that matches, else ht_train's optimizer
    bool averaged;        // ht_infer: reads the averages that ht_averaged keeps instead of the parameters
} ht_program_options;

/* A program that trains: the model function gives a scalar loss. ht_train(session, model,
 * ht_adamw(.lr = 1e-3f), .dtype = HT_BF16) */
#define ht_train(session, model, optimizer, ...) \
    ht_train_with((session), (model), (optimizer), (ht_program_options){.dtype = HT_F32 __VA_OPT__(,) __VA_ARGS__})
ht_program *ht_train_with(ht_session *session, ht_tensor (*model)(void), ht_optimizer optimizer, ht_program_options options);

/* A program that runs forward only; the model's value is its output "". ht_infer(session, model) */
#define ht_infer(session, model, ...) ht_infer_with((session), (model), (ht_program_options){.dtype = HT_F32 __VA_OPT__(,) __VA_ARGS__})
ht_program *ht_infer_with(ht_session *session, ht_tensor (*model)(void), ht_program_options options);

/* A value for an input of a step: the whole input, row-major, on rank 0. */
typedef enum ht_fed_size { HT_FED_POINTER, HT_FED_BYTES, HT_FED_ELEMENTS } ht_fed_size;
typedef struct ht_fed {
    const char *name;
    const void *data;
    const char *type; // C name of the element type; NULL: unknown (void)
    ht_fed_size known;
    int64_t size; // HT_FED_BYTES: bytes of the array; HT_FED_ELEMENTS: elements; HT_FED_POINTER: meaningless
    const struct ht_rows *rows; // a dataset to read instead of `data`; NULL: none
} ht_fed;

/* Feed an array, whose element type and count must be the input's; a mismatch ends the program with
 * a message. C knows no size behind a pointer: ht_feed checks the pointer's type alone, ht_feed_n
 * also `count`. float is HT_F32, double is HT_F64, unsigned short (the upper half of a float) is
 * HT_BF16; integers are HT_I32 or HT_I64 by size. The elements behind a void pointer are not
 * checked. */
#define ht_feed(name, data) \
    ((ht_fed){(name), (data), HT_ELEMENT_TYPE_(data), HT_IS_ARRAY_(data) ? HT_FED_BYTES : HT_FED_POINTER, (int64_t)sizeof(__typeof__(data)), 0})
#define ht_feed_n(name, pointer, count) ((ht_fed){(name), (pointer), HT_ELEMENT_TYPE_(pointer), HT_FED_ELEMENTS, (count), 0})

/* Feeds rows of a file: as many as the input's first dimension says, each of the elements of the
 * others. The file is mapped into memory, and each rank reads the rows that it works on, so it must
 * be at this path where ranks are. It is NumPy's (.npy, integers or floating point; rows are its
 * first dimension, or where it has no other, elements in a row cut into rows), llm.c's (.bin, with
 * its header), or has elements of one type and nothing else: `.element = "uint16"`, or where that
 * is not said those of the input. Values are converted to the input's type where that has all of
 * them.
 *
 *     ht_step(program, ht_dataset("train", "tokens.bin", .input = "tokens"), ht_dataset("train",
 *         "tokens.bin", .input = "targets", .shift = 1));
 *
 * The dataset's name identifies an order of rows. Each epoch shuffles the rows and reads each once;
 * the order is the same under every strategy and number of ranks. Feeds of one name in one step
 * read the same rows, also from several files. Where pipelines read rows only to a padding length
 * (pragma padding), a row goes to a pipeline that reads all its elements except padding. Each step
 * continues after the rows of the last one. Checkpoints (ht_save, ht_remember) and switches keep
 * the position. */
typedef struct ht_rows {
    const char *name, *path;
    const char *input;   // name of the input; NULL: the dataset's name
    const char *element; // "uint8", "int8", "uint16", "int16", "uint32", "int32", "int64", "float32" or "float64"
    int64_t shift;       // elements by which each row begins later (1 for targets); only for files of one dimension
    bool in_order;       // the rows of each epoch in the order of the file, not shuffled
    uint64_t seed;       // of the shuffle; 0: the session's seed
} ht_rows;
#define ht_dataset(dataset, file, ...) ht_dataset_with(&(ht_rows){.name = (dataset), .path = (file) __VA_OPT__(,) __VA_ARGS__})
ht_fed ht_dataset_with(const ht_rows *rows);

/* Return, or set, how many rows of a dataset have been read over all epochs. Seeking to 0 starts
 * from the first row, as an evaluation does. */
int64_t ht_dataset_position(ht_session *session, const char *name);
void ht_dataset_seek(ht_session *session, const char *name, int64_t rows);

/* Distinguishes an array from a pointer: the comma operator turns an array into a pointer. */
#define HT_IS_ARRAY_(x) (!__builtin_types_compatible_p(__typeof__(x), __typeof__(((void)0, (x)))))
#define HT_ELEMENT_(t) t *: #t, const t *: #t, t (*)[]: #t, const t (*)[]: #t
#define HT_ELEMENT_TYPE_(x) \
    _Generic((x), HT_ELEMENT_(float), HT_ELEMENT_(double), HT_ELEMENT_(int), HT_ELEMENT_(long), HT_ELEMENT_(long long), HT_ELEMENT_(unsigned short), \
        HT_ELEMENT_(short), HT_ELEMENT_(unsigned), HT_ELEMENT_(unsigned long), HT_ELEMENT_(unsigned long long), HT_ELEMENT_(char), \
        HT_ELEMENT_(signed char), HT_ELEMENT_(unsigned char), HT_ELEMENT_(_Bool), default: (const char *)0)

/* Runs one training step and returns the loss before the update. Inputs that are not fed keep their
 * last values. */
#define ht_step(program, ...) ht_step_with((program), (ht_fed[]){__VA_ARGS__ __VA_OPT__(,) {0}})
float ht_step_with(ht_program *program, const ht_fed *feeds);

/* Runs a forward-only program. */
#define ht_run(program, ...) ht_run_with((program), (ht_fed[]){__VA_ARGS__ __VA_OPT__(,) {0}})
void ht_run_with(ht_program *program, const ht_fed *feeds);

/* Switches a program to another strategy that hetucc compiled (--strategy=a --strategy=b; programs
 * begin with the first), together with the ht_infer programs that share its parameters. Parameters,
 * optimizer states and the step number stay the same, bit for bit. NULL selects the first strategy
 * that was compiled for the current values of the `shape` variables. When the strategy has other
 * values, set the variables before the call; values that disagree end the program. Feed all inputs
 * again after a switch. Returns false when a strategy of ht_prepare cannot be made, or
 * (HETU_STRATEGY) when the strategy needs more devices than there are ranks; else true. Steps never
 * switch by themselves. On one device, the call only permits changed `shape` variables. */
bool ht_switch(ht_program *program, const char *strategy);

/* Compiles a new strategy while the program runs: FILE, FILE:NAME or a name of the source, as
 * --strategy takes them. Returns at once; hetucc and the C compiler run beside the training on rank
 * 0's machine, on the source as it was when the program was compiled. All ranks load the strategy
 * together, in a later step, ht_fit or ht_switch. ht_switch accepts the strategy's name or the text
 * given here, and waits for the compiler. When compiling fails, or the strategy needs more devices
 * than there are ranks, ht_switch prints the reason and returns false; training goes on unchanged.
 * The call must stand in the model's source file. On one device, the call does nothing. */
void ht_prepare(ht_program *program, const char *strategy);

/* Keeps a program balanced while it trains: call it once, behind ht_train. Each step measures the
 * computing time of every rank. When a rank slows down against the first steps, or recovers, a new
 * strategy is planned and compiled beside the training. A later step begins with the switch, where
 * the switch pays back. Shape variables, inputs, parameters and the step number stay the same;
 * outputs of ht_infer programs must be fetched before the next step. Rank 0 prints each finding and
 * switch to standard error, unless the environment has HETU_BALANCE=quiet. HETU_BALANCE=0 turns
 * balancing off. The call must stand in the model's source file. On one device, the call does
 * nothing.
 *
 *     ht_balance(program, .horizon = 1000);
 */
typedef struct ht_balance_options {
    double change;  // share by which a rank's computing time must change to count as a straggler or as recovered; 0: 0.3
    int steps;      // steps in a row for which the change must last; 0: 3
    double horizon; // steps within which a switch must pay back its cost; 0: 100
    bool quiet;     // no messages on standard error
} ht_balance_options;
#define ht_balance(program, ...) ht_balance_with((program), (ht_balance_options){.change = 0 __VA_OPT__(,) __VA_ARGS__})
void ht_balance_with(ht_program *program, ht_balance_options options);

/* Chooses the best strategy for a batch of sequences of unequal lengths. Switches to that strategy
 * (ht_switch), sets the `shape` variables to its values, and assigns each sequence a row that its
 * pipeline reads to the end. `seq`, an int, is the shape variable of the sequence length. With
 * `.next`, the lengths of the next batch, that batch is planned while this one trains. Rows without
 * a sequence, and elements after a sequence, are padding. On one device, sequence i gets row i, and
 * seq becomes the longest length.
 *
 *     const ht_dispatched *to = ht_dispatch(program, &seq, lengths, count, .next =
 *         lengths_of_next);
 *     for (int64_t i = 0; i < count; i++)
 *         memcpy(tokens + to->row[i] * seq, sequence[i], sizeof *tokens * (size_t)lengths[i]);
 */
typedef struct ht_dispatched {
    const int64_t *row;   // by sequence: its row in the batch; valid until the next call
    int64_t rows, length; // shape of the batch under the strategy; on one device, the sequences and the longest length
    const char *strategy; // its name; on one device NULL
} ht_dispatched;
typedef struct ht_dispatch_options {
    const int64_t *next; // lengths of the next batch; NULL: not known
    int64_t next_count;  // how many; 0: as many as of this one
} ht_dispatch_options;
#define ht_dispatch(program, seq, lengths, count, ...) \
    ht_dispatch_with((program), (seq), (lengths), (count), (ht_dispatch_options){.next_count = 0 __VA_OPT__(,) __VA_ARGS__})
const ht_dispatched *ht_dispatch_with(ht_program *program, int *seq, const int64_t *lengths, int64_t count, ht_dispatch_options options);

/* Returns the smallest value >= `least` that a strategy of the program gives an integer `shape`
 * variable: seq = ht_fit(program, &seq, 700). On one device, returns `least`. Ends the program when
 * no strategy has such a value. */
int64_t ht_fit(ht_program *program, const void *variable, int64_t least);

/* Gathers a whole tensor by name into `to`, row-major:
 *
 * - an output (ht_output) of the last step or run, over all micro-batches; "" is the model's value
 * - a parameter or state after the update, also of an optimizer rule ("w.momentum")
 * - an input as it was fed last
 *
 * A name may be shortened to a unique suffix behind a dot: "y" for "h0.y" where there is no "h1.y".
 * Among equal names, outputs precede parameters and states, which precede inputs. An unknown name
 * ends the program with a message that lists similar names. */
void ht_fetch(ht_program *program, const char *name, void *to);

/* Sets the learning rate (hyper[0]), or any number of the optimizer, from the next step on. Those
 * of the first group begin at HT_HYPER, of the next at 2 * HT_HYPER. */
void ht_set_rate(ht_program *program, float rate);
void ht_set_hyper(ht_program *program, int index, float value);

/* Sets a learning rate schedule: from the next step on, every learning rate is multiplied by
 * factor(step), with steps from 0. NULL: no schedule. */
void ht_set_schedule(ht_program *program, double (*factor)(int64_t step));

/* Returns the global gradient norm of the last step, before clipping. */
float ht_grad_norm(ht_program *program);

/* Reports progress of a training of `steps` steps; call it after each step. Prints to standard
 * error the loss, the learning rate, tokens a second and the time left. Tokens are the elements of
 * the largest integer input; without one, steps are counted. A terminal gets one line that is
 * overwritten, a file about twenty lines. */
void ht_progress(ht_program *program, int64_t steps);

/* Copies a whole parameter out of, or into, the session; `count` is the number of elements and must
 * agree. */
void ht_get_param(ht_session *session, const char *name, float *to, size_t count);
void ht_set_param(ht_session *session, const char *name, const float *from, size_t count);

/* The session's parameters by number: the name, and the number of elements; NULL past the last. */
const char *ht_param_name(ht_session *session, int index, size_t *count);

/* Checkpoints. ht_save(session, "runs/a", ht_note("tokens", tokens), ...) copies all parameters,
 * states of optimizers, numbers of steps, the seed and main's own numbers; each rank writes an
 * equal part beside the training, and finishes before ht_close. A checkpoint waits in memory while
 * an older one is being written; a newer one replaces the waiting one, with a message on standard
 * error. The file runs/a/step-N.safetensors has whole tensors under their names (state s of a
 * parameter: "NAME%s"), which other tools open; step-N.manifest, written last, has its checksums. A
 * checkpoint that cannot be written is said on standard error. */
typedef struct ht_noted {
    const char *name;
    double value;
} ht_noted;
#define ht_note(name, value) ((ht_noted){(name), (double)(value)})
#define ht_save(session, folder, ...) ht_save_with((session), (folder), (ht_noted[]){__VA_ARGS__ __VA_OPT__(,) {0}})
void ht_save_with(ht_session *session, const char *folder, const ht_noted *notes);

/* Makes an in-memory checkpoint in shared memory (Gemini), for a folder of checkpoints: each rank's
 * part on its own host, and on another host where there is one. The copies survive the ranks: when
 * ranks die, heturun restarts them, and ht_resume reads the copies. A call takes the time of a
 * copy, cheap enough for every few steps. Without heturun the call does nothing; the copies are
 * removed when the run ends. */
#define ht_remember(session, folder, ...) ht_remember_with((session), (folder), (ht_noted[]){__VA_ARGS__ __VA_OPT__(,) {0}})
void ht_remember_with(ht_session *session, const char *folder, const ht_noted *notes);

/* Sets how many checkpoints a folder keeps when a new one is written (default 3; 0: all). */
void ht_keep(ht_session *session, int checkpoints);

/* Resumes from the newest complete in-memory checkpoint (ht_remember), else from the newest valid
 * checkpoint of a folder. Call it after ht_train and ht_infer; the strategy may be another. An
 * incomplete or damaged checkpoint, or one of another model, is reported on standard error and
 * skipped. Returns the number of steps made at the checkpoint; 0 when there is none. A folder that is
 * there and cannot be read ends the program. */
int64_t ht_resume(ht_session *session, const char *folder);

/* Returns whether any rank got SIGTERM, SIGUSR1 or SIGUSR2, which batch systems send before they
 * preempt a job. Call it once a step; the ranks wait until main saves and ends the program. A
 * signal handler of main also runs, on rank 0; main then defines the meaning of SIGUSR1 and
 * SIGUSR2. A program that never calls it, but has saved or resumed, is saved before the next step
 * as by the last ht_save; it exits with 128 + signal. A second SIGTERM, at least a second later,
 * ends the program at once.
 *
 *     for (int64_t step = ht_resume(session, "runs/a"); step < steps && !ht_told_to_end(session);
 *         step++)
 *         ht_step(program, ...);
 *     ht_save(session, "runs/a"); */
bool ht_told_to_end(ht_session *session);

/* Loads parameters, and the states and numbers that are there, from a safetensors file (F32, F16
 * or BF16), or from all such files of a folder. A missing parameter or another shape ends the
 * program. */
void ht_load(ht_session *session, const char *path);

/* Loads parameters from files of other tools. `names` maps the session's names to those of the
 * files and ends with {0}. * stands for a number, equal on both sides; the first entry whose tensor
 * exists counts:
 *
 *     static const ht_stored names[] = {{"h*.attn.qkv.w", "h.*.attn.c_attn.weight", .transposed =
 *         true}, ..., {0}}; */
typedef struct ht_stored {
    const char *name, *stored;
    bool transposed; // the file stores the transposed matrix
} ht_stored;
void ht_load_as(ht_session *session, const char *path, const ht_stored *names);

/* Returns a number that ht_note saved in the checkpoint loaded last; `otherwise` when the
 * checkpoint has none of this name. */
double ht_noted_value(ht_session *session, const char *name, double otherwise);

/* Seeds initialization and dropout (default 1); call it before the first ht_train. */
void ht_seed(ht_session *session, uint64_t seed);

/* Returns the number of ranks. */
int ht_device_count(ht_session *session);

/* Ends the session on all ranks; leaving main does the same. */
void ht_close(ht_session *session);

/* ---- a user's own operators ---- */

/* A gradient, named by the clause grad(g), written once for one device and for many: it builds
 * dx[k], the gradient of operand k, from operators. hetucc evaluates it at compile time; on one
 * device it runs. dx[k] stays absent where no gradient flows; x[k] is absent where the operand is;
 * dy[k] is zero where nothing flows back. A loss that depends on a result whose dy[k] the gradient
 * does not use is an error.
 *
 *     static inline void my_softmax_gradient(ht_grad *g) { g->dx[0] = my_softmax_backward(g->dy[0],
 *         g->y[0]); }
 */
typedef struct ht_grad {
    const ht_tensor *dy; // of each result
    const ht_tensor *y;  // the results
    const ht_tensor *x;  // the operands, in the rule's order
    const ht_attr *attr; // the arguments that are no tensors
    ht_tensor *dx;       // of each operand
} ht_grad;

/* The body of an operator on one device: runs `kernel` on whole tensors, writes the results and
 * remembers `gradient` (NULL: no gradient flows). The kernel and the gradient are those that the
 * operator's pragma names. See examples/custom. */
typedef struct ht_result {
    ht_dtype dtype;
    ht_dims shape;
} ht_result;
typedef struct ht_application {
    ht_kernel *kernel;
    void (*gradient)(ht_grad *g);
    int result_count, operand_count, attr_count;
    ht_result result[4];
    const ht_tensor *operand;
    const ht_attr *attr;
} ht_application;
void ht_apply(const ht_application *application, ht_tensor *results);

#include <hetu/ops.h>
#include <hetu/tensors.h>
#include <hetu/losses.h>
#include <hetu/layers.h>
#include <hetu/optimizers.h>

#endif
