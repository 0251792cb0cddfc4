/* image.h: tables that hetucc writes for a program: its image, and migrations between images. */
#ifndef HETU_IMAGE_H
#define HETU_IMAGE_H

#include <hetu/schedule.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Pieces of consecutive devices: device `device` + i has piece `piece` + i * `step`, where i goes
 * from 0 to `count` - 1. */
typedef struct ht_run {
    int device, count, piece, step;
} ht_run;

/* Layout of a tensor: the boxes that each device holds. Boxes are ranges of indices in the shape
 * `extent`, a row-major reshape of the tensor. No box is empty. A device stores its boxes one after
 * another, each row-major.
 *
 * A row of `box` describes boxes at equal distances: number of the first box, then lo, hi and step
 * of each dimension. The i-th box after the first has bounds lo + i * step and hi + i * step. */
typedef struct ht_pieces {
    int rank, run_count, row_count;
    const int64_t *extent;
    const ht_run *run;      // ascending by device; devices in no run hold nothing; replicas share one piece
    const int *first;       // piece p has the boxes [first[p], first[p + 1]); NULL: piece p is box p
    const int64_t *box;     // row_count rows of 1 + 3 * rank numbers
    const int64_t *placing; // NULL: boxes are contiguous; else each box is a part of a larger tensor
                            // in the device's storage, with 1 + rank numbers: element at which the
                            // box begins, extents of the larger tensor
} ht_pieces;

enum { HT_MAX_STATES = 4 };

typedef struct ht_image_param {
    const char *name, *shape; // "(3, 4)"
    const ht_pieces *pieces;
    int init; // ht_init_kind of hetu.h
    double a; // the argument of ht_constant, ht_normal or ht_uniform
    int state_count;
    const ht_pieces *state[HT_MAX_STATES];
    bool changes; // whether a step updates the parameter
} ht_image_param;

/* Padding of an input (pragma padding): the elements that pipelines do not read. The caller must
 * feed `value` there, such as -100 for ignored targets. */
typedef struct ht_padding {
    double value;
    int rank, count;
    const int64_t *extent; // extents of the input; the first dimension is the batch's rows
    const int64_t *rows;   // 1 + rank numbers a pipeline: first row, end of the rows, and how many elements are read along each other dimension
} ht_padding;

typedef struct ht_image_input {
    const char *name;
    ht_dtype dtype;
    const ht_pieces *pieces;
    const char *at;            // "gpt.c:30"
    const ht_padding *padding; // NULL: all elements are read, or elements that are not read may have any value
} ht_image_input;

typedef struct ht_image_output {
    const char *name;
    ht_dtype dtype;
    const ht_pieces *pieces;
    const int64_t *buffer; // by role: number of the buffer (rt.h)
} ht_image_output;

typedef enum ht_number { HT_SIGNED, HT_UNSIGNED, HT_FLOATING } ht_number;

/* A range of a C variable that hetucc read while it evaluated the model. The values must not change
 * while the program runs this strategy. */
typedef struct ht_image_read {
    const char *name, *at; // "seq", "gpt.c:30"
    int64_t first, count;  // index of the first element, and how many; `first` -1: not an array
    ht_number kind;
    int size;         // bytes of an element
    const void *then; // the values that hetucc read
} ht_image_read;

/* Output with the square of the global gradient norm, if the source calls ht_grad_norm. */
#define HT_GRADIENT_NORM "ht_grad_norm"

/* Version of the interface between emitted code and the runtime; changes with every change of
 * rt.h, image.h or schedule.h. */
enum { HT_IMAGE_VERSION = 17 };

typedef struct ht_image {
    int version;                           // HT_IMAGE_VERSION at compile time; version and fingerprint are the first fields in every version
    const char *fingerprint;               // digest of all that hetucc wrote for the source file
    const char *model, *source, *strategy; // the model function; the file; the strategy's name, NULL for one device
    bool trains, clipped;                  // whether the program trains; whether gradients are clipped
    ht_dtype dtype;                        // the program's dtype: HT_F32 or HT_BF16
    int device_count;                      // ranks 0 .. device_count - 1
    int state_count;                       // optimizer states of each parameter
    bool averaged;                         // whether the program reads averages of parameters (ht_averaged)
    int group_count;                       // parameter groups, with one for the parameters of no group
    const char *const *groups;             // name patterns; groups[0] is NULL, for parameters that match none
    const char *const *rule_names;         // two a group: names of `rule` and `after` (ht_optimizer); NULL: ht_train compares their addresses
    int param_count, input_count, output_count, role_count, read_count;
    const ht_image_param *params;
    const ht_image_input *inputs;
    const ht_image_output *outputs;
    int loss; // index into outputs; -1 when the program does not train
    const ht_image_role *roles;
    const ht_image_read *reads;
    const int *role_of;          // by device: index into `roles`; -1: the device is idle
    const int *piece_of;         // by device: index into `piece`; -1: the device has no ht_worker.piece
    const int64_t *const *piece; // arrays for ht_worker.piece
    int pipeline_count;
    const ht_pipeline *pipelines;
    const int *pipeline_of;             // by device; -1: the device is in no pipeline
    const int *schedule_of;             // by device: index into `schedule`; -1: the device is idle
    const ht_schedule *const *schedule; // the schedules that schedule_of indexes
    int plan_count;
    const ht_reshard *const *plan; // conversions of the program
    uint64_t digest;               // digest of the evaluated model under the strategy; 0: no strategies arrive
    uint64_t strategy_digest;      // digest of the strategy's text; 0 for one device
    bool clustered;                // whether hetucc knew the cluster (--cluster), so that sums run inside each host first
} ht_image;

/* A window: a batch of parameters and states that one conversion moves in a switch. `from` and
 * `to` are their slots (rt.h) under the old and the new strategy. */
typedef struct ht_migration_window {
    const ht_reshard *plan;
    const int *from, *to; // by tensor
} ht_migration_window;

/* Migration of a program from one strategy to another, window by window. Tensors in no window
 * have the same layout under both strategies. */
typedef struct ht_migration {
    const ht_image *from, *to;
    int window_count;
    const ht_migration_window *window;
} ht_migration;

typedef struct ht_migrations {
    int count;
    const ht_migration *at;
} ht_migrations;

struct ht_tensor;
typedef struct ht_tensor ht_model(void);

/* Registers an image before main. `updates` has two functions a group: the optimizer's operator or
 * rule, and its `after`. `now` has, for each ht_image_read of the image, the variable's address. */
void ht_register(const ht_image *image, ht_model *model, void (*const *updates)(void), const volatile void *const *now);

/* Registers the migrations between images. */
void ht_register_migrations(const ht_migrations *migrations);

/* Content of a shared object that ht_prepare loads (symbol ht_arriving): images of new strategies,
 * and the migrations to and from these images. `known` lists the program's own images in order of
 * registration; only their model, strategy and digest are set. Image fresh[i] belongs to the same
 * program as known[like[i]]. */
typedef struct ht_arrival {
    int version; // HT_IMAGE_VERSION
    int known_count, fresh_count;
    const ht_image *const *known, *const *fresh;
    const int *like;
    const ht_migrations *migrations;
} ht_arrival;

/* Registers the command by which ht_prepare compiles new strategies for the images of a
 * fingerprint. `words` has the folder, the variable CC and the command; or one line that says why
 * compiling is impossible. NULL ends the list. */
void ht_register_source(const char *fingerprint, const char *const *words);

/* Does the same as ht_register_source for a source that calls neither ht_prepare nor ht_balance:
 * its new strategies arrive only under HETU_BALANCE=1. */
void ht_register_balanced_source(const char *fingerprint, const char *const *words);

/* Registers the source and header files of the source that was registered last, ended by NULL. The
 * output of hetucc changes only when one of these files changes. */
void ht_register_files(const char *const *files);

/* Registers what the cluster file says of the links between hosts. `hosts` has their names, ended
 * by NULL; `devices` has a host and a number of devices for each run of devices, ended by -1.
 * `links` has latency in seconds and bytes a second there and back of the usual link, then hosts
 * a < b and the same for each link that differs, ended by -1. */
void ht_register_links(const char *const *hosts, const int *devices, const double *links);

#ifdef __cplusplus
}
#endif

#endif
