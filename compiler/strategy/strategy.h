/* Strategies: how a model is laid over devices, as written in `#pragma hspmd strategy` or a file.
 *
 *     strategy hetero (seq = 1024, batch = 48)
 *       split batch:dp  heads:tp  ffn:tp      also batch:dp*ep; `seq:cp zigzag` (balanced)
 *       turns seq:cp                          ring attention; it also splits seq by cp
 *       zero 1                                0 to 3; `zero 1 over dp*ep` names axes
 *       optimizer NAME                        states and master parameters laid out as under NAME
 *       schedule 1f1b                         gpipe, 1f1b, interleaved, zero_bubble
 *       pipeline microbatches(8) rows(4)      rows of one micro-batch
 *         stage devices(0-3) mesh(tp:4) layers(0-9) recompute(full)
 *         stage devices(4-6) mesh(tp:3 by 5:3:1) layers(10-15, head)
 *       idle devices(7)
 *     end strategy
 *
 * A line is a statement. Comments are as in C; in files, also `#`. Stages without a `pipeline` form
 * one pipeline of one micro-batch; a strategy without stages runs on device 0. Numbers are integer
 * expressions over the model's constants. A prefix in a list belongs to its item alone:
 * `devices(h800: 0-3, 12)` has numbers 0 to 3 of a class, and device 12; `layers(vision: 0-3, 4-7,
 * head)` has layers of two towers, and a name. Each range is a visit (layer_placement.h).
 *
 * parse.c, parse_stage.c, integer.c read; check.c, check_cluster.c, layer_placement.c check. */
#pragma once

#include "support/array.h"
#include "support/diag.h"
#include "support/text.h"

#include <stdbool.h>
#include <stdint.h>

struct Cluster;
typedef struct Token Token;
typedef struct Tokens Tokens;

/* A rule `split DIM:AXIS*AXIS` or `turns DIM:AXIS*AXIS`, with the slowest axis first. */
typedef struct SplitRule {
    const char *dim;
    int axis_count;
    const char *const *axes;
    const Position *axis_at; // position of each axis
    bool zigzag;             // position k of n along the axes has pieces k and 2n-1-k
    bool implied;            // implied by `turns`
    Position at;
} SplitRule;

/* An axis of mesh(NAME:COUNT by W:W:..). The last axis is the fastest over the stage's devices. */
typedef struct MeshAxis {
    const char *name;
    int count;
    const int64_t *weights; // by position along the axis; NULL: equal pieces
    Position at;
} MeshAxis;

/* A layer of the model, as the pragma `layer` names it. */
typedef struct Layer {
    const char *tower; // NULL: the default tower
    const char *name;  // a name such as "head"; NULL: it has a number
    int number;
} Layer;

/* An item of layers(...): a range or a name. */
typedef struct LayerRange {
    const char *tower; // NULL: the default tower
    const char *name;  // a name such as "head"; NULL: the numbers from first to last
    int64_t first, last;
    Position at;
} LayerRange;

typedef struct Stage {
    Array(int) devices;
    Array(Position) device_at;        // by device: position in the list
    Array(const char *) device_class; // by device: the class in which its number counts; NULL: no
                                      // class, as always after strategy_resolve
    Array(MeshAxis) mesh;             // empty: a single device
    Position mesh_at;                 // position of the clause `mesh`; without it, of `stage`
    Array(LayerRange) layers;         // empty: all layers
    const char *recompute;            // "full" or "selective"; NULL: nothing is recomputed
    Position recompute_at;
    Position at;
} Stage;

/* The value of a `shape` variable, such as `seq = 1024` in: strategy NAME (seq = 1024). */
typedef struct ShapeValue {
    const char *name;
    int64_t value;
    Position at;
} ShapeValue;
typedef Array(ShapeValue) ShapeValues;

typedef struct Pipeline {
    int64_t microbatches; // default 1
    int64_t rows;         // rows of one micro-batch; 0 (default): batch / microbatches
    ShapeValues lengths;  // padding lengths: smaller values of `shape` variables, up to which the
                          // pipeline reads its rows
    Array(Stage) stages;
    Position at;
} Pipeline;

typedef enum ScheduleKind {
    SCHEDULE_GPIPE,
    SCHEDULE_1F1B,
    SCHEDULE_INTERLEAVED,
    SCHEDULE_ZERO_BUBBLE
} ScheduleKind;

typedef struct Strategy {
    const char *name;
    Position at;
    ShapeValues shapes;
    Array(SplitRule) splits;
    Array(SplitRule) turns;        // `turns` rules; each of their axes also splits the dimension
    int zero;                      // level of ZeRO, 0 to 3
    Array(const char *) zero_axes; // empty: all axes along which a parameter is replicated
    Array(Position) zero_axis_at;
    Position zero_at;
    const char *optimizer; // strategy that lays out optimizer states; NULL: this strategy
    Position optimizer_at; // position of the name
    const char *schedule;  // a word of schedule_words; NULL: no `schedule` is given
    Position schedule_at;
    Array(Pipeline) pipelines;
    Array(int) idle;
    Array(Position) idle_at;
    Array(const char *) idle_class; // as Stage.device_class
} Strategy;
typedef Array(Strategy *) StrategyList;

/* The names that a strategy's text may refer to. Either function may be NULL. */
typedef struct StrategyNames {
    void *state;
    // looks up an integer constant of the model (enum, macro, -D); false: there is none
    bool (*value)(void *state, const char *name, int64_t *value);
    // returns whether the source uses the mesh axis in a `shard` or `reshard`
    bool (*axis_used)(void *state, const char *axis);
    const char *only; // the wanted strategy: all other strategies are checked for syntax alone, and
                      // their numbers count as 1; NULL: all strategies are wanted
} StrategyNames;

/* ---- parsing, checking and printing strategies ---- */

/* Reads and checks all strategies in the tokens, up to TOKEN_END. Statements outside of `strategy
 * NAME ... end strategy` form one strategy called `unnamed`, as a strategy file may leave out the
 * frame; with `unnamed` NULL they are an error. Tokens that cannot occur become TOKEN_BAD. Appends
 * to `list` all strategies, also incomplete ones, and returns whether there was no error. Without
 * errors each wanted strategy has a pipeline, each pipeline a stage, each stage a device and a mesh
 * that fits. strategy_resolve then finds devices named by class. */
bool strategy_parse(Arena *arena, Diag *diag, Token *tokens, const StrategyNames *names,
                    const char *unnamed, StrategyList *list);

/* Reads the strategy at the current token, through `end strategy`; NULL after an error. */
Strategy *strategy_parse_one(Tokens *tokens);

/* Reports contradictions within a strategy, for strategy_parse. Returns whether there are none. */
bool strategy_check(Diag *diag, const Strategy *strategy, const StrategyNames *names);

/* Replaces devices named by class by device numbers of the cluster; such devices are errors if
 * `cluster` is NULL. `file` is the cluster file's name in messages. Returns whether all devices
 * were found and no device is named twice or forgotten. */
bool strategy_resolve(Diag *diag, Strategy *strategy, const struct Cluster *cluster,
                      const char *file);

/* Prints a strategy as text that strategy_parse reads; `indent` stands before each line. */
void strategy_print(Text *out, const Strategy *strategy, const char *indent);

/* Returns the 64-bit FNV-1a hash of the strategy's text; `arena` is scratch. */
uint64_t strategy_digest(Arena *arena, const Strategy *strategy);

/* Returns whether the word begins a statement inside a strategy. */
bool strategy_has_statement(const char *word);

/* Returns whether a word names a schedule, and sets *kind. schedule_words has the words by kind. */
bool schedule_kind(const char *word, ScheduleKind *kind);
extern const char *const schedule_words[SCHEDULE_ZERO_BUBBLE + 1];

/* ---- properties of strategies and layers ---- */

/* Returns the number of devices (ranks), idle ones included, of a resolved strategy. */
int strategy_device_count(const Strategy *strategy);

/* Returns the schedule; by default 1f1b, or interleaved if a stage has several numbered ranges. */
ScheduleKind strategy_schedule(const Strategy *strategy);

/* Returns whether any pipeline has padding lengths of its own. */
bool strategy_has_lengths(const Strategy *strategy);

/* Returns whether a `turns` rule moves pieces of the dimension round the axis (ring attention). */
bool strategy_turns(const Strategy *strategy, const char *dim, const char *axis);

/* Returns whether both lists have the same values of the same variables, in the same order. */
bool shapes_same(const ShapeValues *a, const ShapeValues *b);

/* layer_same returns whether both layers are NULL or equal; layer_follows, whether `next` is the
 * numbered layer that follows `last` in its tower. */
bool layer_same(const Layer *a, const Layer *b);
bool layer_follows(const Layer *last, const Layer *next);
