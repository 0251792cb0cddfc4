/* session.h: functions that main calls: it opens a session, makes programs, feeds and runs them.
 * Included by hetu.h.
 *
 *     ht_session *session = ht_open(&argc, &argv);
 *     ht_program *train = ht_train(session, model, ht_adamw(.lr = 1e-3f));
 *     float loss = ht_step(train, ht_feed("x", x));
 */
#ifndef HETU_SESSION_H
#define HETU_SESSION_H

#include <hetu/model.h>

typedef struct ht_session ht_session;
typedef struct ht_program ht_program;

/* Opens the session; on all ranks but 0, carries out rank 0's commands and does not return. */
ht_session *ht_open(int *argc, char ***argv);

/* Options of a program. dtype HT_BF16 is mixed precision: matrix products and values computed from
 * them are stored in bf16, with sums in f32. Parameters, their gradients, optimizer states, norms,
 * the loss, inputs and outputs stay in f32. Values that the model makes in f32 (ht_cast,
 * ht_arange), and values computed from those, stay in f32, too. hetucc must know the dtype at
 * compile time; the one-device library always computes in f32. */
typedef struct ht_program_options {
    ht_dtype dtype;
    ht_group_list groups; // ht_train: ht_groups({"*.bias", ht_adamw(.decay = 0)}, ...): a parameter uses its first match, else ht_train's optimizer
    bool averaged;        // ht_infer: reads the averages that ht_averaged keeps instead of the parameters
} ht_program_options;

/* Makes a program that trains; the model function returns a scalar loss. ht_train(session, model,
 * ht_adamw(.lr = 1e-3f), .dtype = HT_BF16) */
#define ht_train(session, model, optimizer, ...) \
    ht_train_with((session), (model), (optimizer), (ht_program_options){.dtype = HT_F32 __VA_OPT__(,) __VA_ARGS__})
ht_program *ht_train_with(ht_session *session, ht_tensor (*model)(void), ht_optimizer optimizer, ht_program_options options);

/* Makes a forward-only program; ht_fetch finds the model's value under the name "". */
#define ht_infer(session, model, ...) ht_infer_with((session), (model), (ht_program_options){.dtype = HT_F32 __VA_OPT__(,) __VA_ARGS__})
ht_program *ht_infer_with(ht_session *session, ht_tensor (*model)(void), ht_program_options options);

typedef enum ht_fed_size { HT_FED_POINTER, HT_FED_BYTES, HT_FED_ELEMENTS } ht_fed_size;

/* A value for an input of a step: the whole input, row-major, on rank 0. */
typedef struct ht_fed {
    const char *name;
    const void *data;
    const char *type; // C name of the element type; NULL: unknown (void)
    ht_fed_size known;
    int64_t size; // HT_FED_BYTES: bytes of the array; HT_FED_ELEMENTS: number of elements; HT_FED_POINTER: not used
    const struct ht_rows *rows; // a dataset that replaces `data`; NULL: `data` is fed
} ht_fed;

/* Feed an array, whose element type and count must be those of the input; a mismatch ends the
 * program with a message. For a pointer, ht_feed checks only the type; ht_feed_n also checks
 * `count`. float is HT_F32, double is HT_F64, unsigned short (the upper half of a float) is
 * HT_BF16; integers are HT_I32 or HT_I64 by size. The elements behind a void pointer are not
 * checked. */
#define ht_feed(name, data) \
    ((ht_fed){(name), (data), HT_ELEMENT_TYPE_(data), HT_IS_ARRAY_(data) ? HT_FED_BYTES : HT_FED_POINTER, (int64_t)sizeof(__typeof__(data)), 0})
#define ht_feed_n(name, pointer, count) ((ht_fed){(name), (pointer), HT_ELEMENT_TYPE_(pointer), HT_FED_ELEMENTS, (count), 0})

typedef struct ht_rows {
    const char *name, *path;
    const char *input;   // name of the input; NULL: the dataset's name
    const char *element; // "uint8", "int8", "uint16", "int16", "uint32", "int32", "int64", "float32" or "float64"
    int64_t shift;       // number of elements by which each row begins later (1 for targets); only for files of one dimension
    bool in_order;       // the rows of each epoch in the order of the file, not shuffled
    uint64_t seed;       // seed of the shuffle; 0: the session's seed
} ht_rows;

/* Feeds rows of a file: as many rows as the input's first dimension, each with the elements of the
 * other dimensions. Each rank maps the file and reads the rows that it works on, so the file must
 * be at this path on every host. Formats: NumPy's .npy (integers or floating point; rows are the
 * first dimension, and a one-dimensional file is cut into rows); llm.c's .bin with its header; a
 * file of elements of one type alone, `.element = "uint16"` (default: the input's type). Values are
 * converted to the input's type if it represents all values of the file's type.
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
#define ht_dataset(dataset, file, ...) ht_dataset_with(&(ht_rows){.name = (dataset), .path = (file) __VA_OPT__(,) __VA_ARGS__})
ht_fed ht_dataset_with(const ht_rows *rows);

/* Return, or set, the number of rows of a dataset read so far, over all epochs. Setting 0 starts
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

/* Runs a training step; returns the loss before the update. Inputs not fed keep their values. */
#define ht_step(program, ...) ht_step_with((program), (ht_fed[]){__VA_ARGS__ __VA_OPT__(,) {0}})
float ht_step_with(ht_program *program, const ht_fed *feeds);

/* Runs a forward-only program. */
#define ht_run(program, ...) ht_run_with((program), (ht_fed[]){__VA_ARGS__ __VA_OPT__(,) {0}})
void ht_run_with(ht_program *program, const ht_fed *feeds);

/* Gathers a whole tensor by name into `to`, row-major:
 *
 * - an output (ht_output) of the last step or run, over all micro-batches; "" is the model's value
 * - a parameter or state after the update, also a state of an optimizer rule ("w.momentum")
 * - an input as it was fed last
 *
 * A name may be shortened to a unique suffix after a dot: "y" for "h0.y" where there is no "h1.y".
 * Among equal names, outputs precede parameters and states, which precede inputs. An unknown name
 * ends the program with a message that lists similar names. */
#define ht_fetch(program, name, to) ht_fetch_with((program), (name), (to), HT_IS_ARRAY_(to) ? (int64_t)sizeof(__typeof__(to)) : -1)

/* Does the same as ht_fetch; `room` is the array's size in bytes, -1: unknown. A value of more
 * bytes ends the program with a message. */
void ht_fetch_with(ht_program *program, const char *name, void *to, int64_t room);

/* Set the learning rate (hyper[0]), or hyper-parameter `index` of the optimizer, from the next step
 * on. Indices of the first parameter group begin at HT_HYPER, of the next one at 2 * HT_HYPER. */
void ht_set_rate(ht_program *program, float rate);
void ht_set_hyper(ht_program *program, int index, float value);

/* Sets a learning rate schedule: from the next step on, every learning rate is multiplied by
 * factor(step), with steps counted from 0. NULL ends the schedule. */
void ht_set_schedule(ht_program *program, double (*factor)(int64_t step));

/* Returns the global gradient norm of the last step, before clipping. */
float ht_grad_norm(ht_program *program);

/* Reports progress of a training of `steps` steps; call it only after a step. Prints the loss, the
 * learning rate, tokens a second and the time left to standard error. Tokens are the elements of
 * the largest integer input; without such an input, steps are counted. A terminal gets one line
 * that is overwritten, a file about twenty lines. */
void ht_progress(ht_program *program, int64_t steps);

/* Copy a whole parameter out of, or into, the session. `count` must be its number of elements. */
void ht_get_param(ht_session *session, const char *name, float *to, size_t count);
void ht_set_param(ht_session *session, const char *name, const float *from, size_t count);

/* Returns the name of parameter `index`, NULL past the last; sets *count to its element count. */
const char *ht_param_name(ht_session *session, int index, size_t *count);

/* Seeds initialization and dropout (default 1); call it before the first ht_train. */
void ht_seed(ht_session *session, uint64_t seed);

/* Returns the number of ranks. */
int ht_device_count(ht_session *session);

/* Ends the session on all ranks; leaving main does the same. */
void ht_close(ht_session *session);

#endif
