/* Strategies: how a model is laid over devices, as written in `#pragma hspmd strategy` or a
 * strategy file.
 *
 *     strategy hetero (seq = 1024, batch = 48)
 *       split batch:dp  heads:tp  ffn:tp        several axes: batch:dp*ep; `seq:cp zigzag`:
 *                                               position k of n has pieces k and 2n-1-k
 *       turns seq:cp                            pieces along cp move on in turns; where no split
 *                                               says so, seq is also cut by cp
 *       zero 1                                  0 to 3; `zero 1 over dp*ep` names axes
 *       optimizer NAME                          states and master parameters lie as under the
 *                                               strategy NAME
 *       schedule 1f1b                           gpipe, 1f1b, interleaved, zero_bubble
 *       pipeline microbatches(8) rows(4)        rows of one micro-batch
 *         stage devices(0-3) mesh(tp:4) layers(0-9) recompute(full)
 *         stage devices(4,5) mesh(tp:3 by 5:3:1) layers(10-15, head)
 *       idle devices(7)
 *     end strategy
 *
 * One statement a line; comments as in C. `stage` without a `pipeline` before it means one pipeline
 * of one micro-batch; a strategy without any stage is device 0 alone. Numbers are integer
 * expressions over constants of the model; ends of ranges and weights are a number, a name or an
 * expression in parentheses.
 *
 * What stands before a colon in a list belongs to its own item alone: `devices(h800: 0-3, h800: 6,
 * 12)` are numbers 0 to 3 and 6 of the devices that the cluster file calls h800, and device 12;
 * `layers(vision: 0-3, 4-7, head)` are layers of the tower "vision", of the default tower, and the
 * layer that has the name "head". Each range is a visit of its stage (strategy_place), so
 * `layers(0-1, 6-7)` has two.
 *
 * parse.c and stage.c read, check.c and devices.c say what does not fit together, place.c what does
 * not fit the model, print.c writes text that parses back.
 */
#ifndef STRATEGY_STRATEGY_H
#define STRATEGY_STRATEGY_H

#include "support/text.h"
#include "syntax/tokens.h"

#include <stdbool.h>
#include <stdint.h>

/* split NAME:AXIS*AXIS, or turns NAME:AXIS*AXIS: the dimension and the axes that cut it, the first
 * major. */
typedef struct SplitRule {
    const char *dim;
    int axis_count;
    const char *const *axes;
    const Position *axis_at; // of each axis
    bool zigzag;             // position k of n has pieces k and 2n-1-k
    bool implied;            // by a rule of `turns` alone
    Position at;
} SplitRule;

/* mesh(NAME:COUNT by W:W:..): the last axis is the fastest over the stage's devices. */
typedef struct MeshAxis {
    const char *name;
    int count;
    const int64_t *weights; // count, or NULL
    Position at;
} MeshAxis;

/* A layer of the model, as the pragma `layer` names it. */
typedef struct Layer {
    const char *tower; // NULL: the default tower
    const char *name;  // a name such as "head"; NULL: it has a number
    int number;
} Layer;

/* An item of layers(...). */
typedef struct LayerRange {
    const char *tower; // NULL: the default tower
    const char *name;  // a name such as "head"; NULL: first..last
    int64_t first, last;
    Position at;
} LayerRange;

typedef struct Stage {
    Array(int) devices;
    Array(Position) device_at;        // of each device: where the list names it
    Array(const char *) device_class; // of each device: that its number counts in; NULL, as all are
                                      // after strategy_resolve: it counts in all
    Array(MeshAxis) mesh;             // empty: one device
    Position mesh_at;                 // of the clause mesh, or of the clause devices
    Array(LayerRange) layers;         // empty: all
    Position layers_at;
    const char *recompute; // NULL, "full", "selective"
    Position recompute_at;
    Position at;
} Stage;

/* strategy NAME (seq = 1024, batch = 48): values of `shape` variables. */
typedef struct ShapeValue {
    const char *name;
    int64_t value;
    Position at;
} ShapeValue;
typedef Array(ShapeValue) ShapeValues;

typedef struct Pipeline {
    int64_t microbatches; // 1 when not written
    int64_t rows;         // of one micro-batch; 0 when not written: all
    ShapeValues lengths;  // values of `shape` variables in it, at most the strategy's: its rows are
                          // read only so far
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
    Array(SplitRule) turns;        // each of axes that a split of its dimension has
    int zero;                      // 0 to 3
    Array(const char *) zero_axes; // empty: all axes along which a parameter has copies
    Array(Position) zero_axis_at;
    Position zero_at;
    const char *optimizer; // the strategy under whose layouts states and master parameters are
                           // kept; NULL: its own
    Position optimizer_at; // of the name
    const char *schedule;  // the word; NULL not written
    Position schedule_at;
    Array(Pipeline) pipelines;
    Array(int) idle;
    Array(Position) idle_at;
    Array(const char *) idle_class; // as Stage.device_class
} Strategy;
typedef Array(Strategy *) StrategyList;

/* What the text may refer to; either function may be NULL. With `only`, numbers of other strategies
 * are all 1. */
typedef struct StrategyNames {
    void *state;
    bool (*value)(void *state, const char *name,
                  int64_t *value); // an integer constant of the model (enum, macro, -D); false: no
                                   // such constant
    bool (*axis_used)(
        void *state,
        const char *axis); // whether the source names the mesh axis in a `shard` or `reshard`
    const char *only; // the strategy that is wanted: of all others the syntax alone is checked;
                      // NULL: all are
} StrategyNames;

struct Cluster; // cluster/cluster.h

/* ---- reading and writing ---- */

/* Reads all strategies that the tokens hold, lines up to TOKEN_END, and checks each. Statements
 * that stand outside `strategy NAME ... end strategy` form one strategy called `unnamed` (a
 * strategy file may leave the frame out); with `unnamed` NULL they are an error. Tokens that no
 * strategy has become TOKEN_BAD. Returns whether there were no errors; what could be read is
 * appended to `list`. After success every strategy has a pipeline, every pipeline a stage, every
 * stage a device and a mesh that fits; devices of classes are not known yet (strategy_resolve). */
bool strategy_parse(Arena *arena, Diag *diag, Token *tokens, const StrategyNames *names,
                    const char *unnamed, StrategyList *list);

/* Reads the strategy that begins here, up to the end of its line `end strategy`; NULL after an
 * error. */
Strategy *strategy_parse_one(Tokens *tokens);

/* What strategy_parse calls for each strategy: reports what does not fit together. Returns whether
 * everything does. */
bool strategy_check(Diag *diag, const Strategy *strategy, const StrategyNames *names);

/* Finds the devices of classes in the cluster; without one (NULL) they are an error. `file` is what
 * messages call the cluster. Returns whether all were found, and none stands in the strategy twice
 * or is forgotten. */
bool strategy_resolve(Diag *diag, Strategy *strategy, const struct Cluster *cluster,
                      const char *file);

/* Writes a strategy as text that parses back to the same; `indent` stands before each line. */
void strategy_print(Text *out, const Strategy *strategy, const char *indent);

/* Returns the 64-bit FNV-1a hash of that text: strategies of one name that say the same have
 * one. `arena` is scratch. */
uint64_t strategy_digest(Arena *arena, const Strategy *strategy);

/* Returns whether the word begins a statement inside a strategy. */
bool strategy_has_statement(const char *word);

/* Returns whether the word is one of a schedule; its kind. The words, in the order of their
 * kinds. */
bool schedule_kind(const char *word, ScheduleKind *kind);
extern const char *const schedule_words[SCHEDULE_ZERO_BUBBLE + 1];

/* ---- what it says ---- */

/* Returns how many devices the strategy has, idle ones included: the number of ranks. Of a
 * strategy that is resolved. */
int strategy_device_count(const Strategy *strategy);

/* Returns the schedule that is written; where none is, 1f1b, and interleaved where a stage of
 * the strategy has several ranges of layers. */
ScheduleKind strategy_schedule(const Strategy *strategy);

/* Returns whether pipelines have lengths of their own. */
bool strategy_has_lengths(const Strategy *strategy);

/* Returns whether pieces of the dimension move on in turns along the axis. */
bool strategy_turns(const Strategy *strategy, const char *dim, const char *axis);

/* Returns whether both are none (NULL), or one layer; and how messages call one: "layer 3",
 * "layer 3 of the tower \"vision\"", "the layer \"head\"". */
bool layer_same(const Layer *a, const Layer *b);
const char *layer_shown(Arena *arena, const Layer *layer);

/* ---- the strategy and a model ---- */

/* A visit of a stage by a micro-batch: layers that it has there before it goes on to another. */
typedef struct Visit {
    int stage;
    int item;    // of the stage's list of layers: the first of the visit; 0 where there is no list
    Position at; // of that item, or of the stage
} Visit;

/* Where the layers of a model run in a pipeline. */
typedef struct Placement {
    int visit_count;
    // in the order in which the model runs the first layer of each, or along the data
    const Visit *visits;
    int layer_count;
    const Layer *const *layers;
    int *visit_of; // by layer
} Placement;

/* Returns the places the layers of a model, each once and in the order in which the model runs
 * them, in a pipeline of the strategy. A stage without a list has them all, in one visit.
 * Otherwise each range of its list is a visit; a name belongs to the visit of the layer that the
 * model runs before it, or else after it, on the same stage, and names that have no such layer
 * beside them are a visit of their own. What the list has and the model does not
 * (strategy_check_layers) is in no visit. A model without layers has a visit of the first stage.
 * NULL after an error: layers that no stage has. */
Placement *strategy_place(Arena *arena, Diag *diag, const Strategy *strategy, int pipeline,
                          const Layer *const *layers, int count);

/* Reports layers and towers of the strategy that are not among the layers of the program's models.
 * Returns whether there were none. */
bool strategy_check_layers(Diag *diag, const Strategy *strategy, const Layer *const *layers,
                           int count);

/* Reports what is against the data's order, where data goes from visit edge[i][0] to visit
 * edge[i][1]: visits that wait for each other, ranges of a stage, and stages (their first visits)
 * that stand behind others that need what they give. Returns whether nothing is. */
bool strategy_check_order(Diag *diag, const Strategy *strategy, int pipeline,
                          const Placement *placement, const int (*edge)[2], int edge_count);

/* Numbers visits along the data, which goes from visit edge[i][0] to visit edge[i][1], and those
 * that do not need each other as the strategy lists them. Visits that wait for each other, which
 * strategy_check_order reports, come last. */
void strategy_sort(Arena *arena, Placement *placement, const int (*edge)[2], int edge_count);

/* Puts visits of a stage together of which one hands data to the other while none of it goes by
 * another stage, and numbers all as strategy_sort does; of a placement that strategy_check_order
 * finds whole. By visit as it was, its number now. */
const int *strategy_join(Arena *arena, Placement *placement, const int (*edge)[2], int edge_count);

/* Reports rows(...) that do not add up to the rows of the batch, at the strategy's first pipeline.
 * Returns whether they do. */
bool strategy_check_rows(Diag *diag, const Strategy *strategy, int64_t batch);

#endif
