/* Strategies: how a model is laid over devices, as written in `#pragma hspmd strategy` or a strategy file.
 *
 *     strategy hetero (seq = 1024, batch = 48)
 *       split batch:dp  heads:tp  ffn:tp        several axes: batch:dp*ep
 *       zero 1                                  1, 2 or 3; `zero 1 over dp*ep` names axes
 *       schedule 1f1b                           gpipe, 1f1b, interleaved
 *       pipeline microbatches(8) rows(4)        rows of one micro-batch
 *         stage devices(0-3) mesh(tp:4) layers(0-9) recompute(full)
 *         stage devices(4,5) mesh(tp:3 by 5:3:1) layers(10-15, head)
 *       idle devices(7)
 *     end strategy
 *
 * One statement a line; comments as in C. `stage` without a `pipeline` before it means one pipeline of one micro-batch; a strategy without any stage
 * is device 0 alone. Numbers are integer expressions over constants of the model; ends of ranges and weights are a number, a name or an expression in parentheses.
 * parse.c reads, check.c says what does not fit together, print.c writes text that parses back.
 */
#ifndef STRATEGY_STRATEGY_H
#define STRATEGY_STRATEGY_H

#include "support/text.h"
#include "syntax/tokens.h"

#include <stdbool.h>
#include <stdint.h>

/* split NAME:AXIS*AXIS: the dimension and the axes that cut it, the first major. */
typedef struct SplitRule {
    const char *dim;
    int axis_count;
    const char *const *axes;
    const Position *axis_at; // of each axis
    Position at;
} SplitRule;

/* mesh(NAME:COUNT by W:W:..): the last axis is the fastest over the stage's devices. */
typedef struct MeshAxis {
    const char *name;
    int count;
    const int64_t *weights; // count, or NULL
    Position at;
} MeshAxis;

typedef struct LayerRange {
    const char *tower; // NULL: the default tower
    const char *name;  // a name such as "head"; NULL: first..last
    int64_t first, last;
    Position at;
} LayerRange;

typedef struct Stage {
    Array(int) devices;
    Array(Position) device_at; // of each device: where the list names it
    Array(MeshAxis) mesh;   // empty: one device
    Position mesh_at;       // of the clause mesh, or of the clause devices
    Array(LayerRange) layers; // empty: all
    Position layers_at;
    const char *recompute;  // NULL, "full", "selective"
    Position recompute_at;
    Position at;
} Stage;

typedef struct Pipeline {
    int64_t microbatches;   // 1 when not written
    int64_t rows;           // of one micro-batch; 0 when not written: all
    Array(Stage) stages;
    Position at;
} Pipeline;

/* strategy NAME (seq = 1024, batch = 48): values of `shape` variables. */
typedef struct ShapeValue {
    const char *name;
    int64_t value;
    Position at;
} ShapeValue;

typedef struct Strategy {
    const char *name;
    Position at;
    Array(ShapeValue) shapes;
    Array(SplitRule) splits;
    int zero;                     // 0 to 3
    Array(const char *) zero_axes; // empty: all axes along which a parameter has copies
    Array(Position) zero_axis_at;
    Position zero_at;
    const char *schedule;         // "gpipe", "1f1b", "interleaved"; NULL not written
    Position schedule_at;
    Array(Pipeline) pipelines;
    Array(int) idle;
    Array(Position) idle_at;
} Strategy;
typedef Array(Strategy *) StrategyList;

/* What the text may refer to; either function may be NULL. */
typedef struct StrategyNames {
    void *state;
    bool (*value)(void *state, const char *name, int64_t *value); // an integer constant of the model (enum, macro, -D); false: no such constant
    bool (*axis_used)(void *state, const char *axis);             // whether the source names the mesh axis in a `shard` or `reshard`
} StrategyNames;

/* Reads all strategies that the tokens hold, lines up to TOKEN_END, and checks each. Statements that stand outside `strategy NAME ... end strategy` form
 * one strategy called `unnamed` (a strategy file may leave the frame out); with `unnamed` NULL they are an error. Tokens that no strategy has become TOKEN_BAD.
 * Returns whether there were no errors; what could be read is appended to `list`. After success every strategy has a pipeline, every pipeline a stage,
 * every stage a device and a mesh that fits. */
bool strategy_parse(Arena *arena, Diag *diag, Token *tokens, const StrategyNames *names, const char *unnamed, StrategyList *list);

/* Reads the strategy that begins here, up to the end of its line `end strategy`; NULL after an error. */
Strategy *strategy_parse_one(Tokens *tokens);

/* What strategy_parse calls for each strategy: reports what does not fit together. Returns whether everything does. */
bool strategy_check(Diag *diag, const Strategy *strategy, const StrategyNames *names);

/* Reports what of a strategy that is to be run this version does not do (syntax/undone.h). Returns whether it does everything. */
bool strategy_check_done(Diag *diag, const Strategy *strategy);

/* Writes a strategy as text that parses back to the same; `indent` stands before each line. */
void strategy_print(Text *out, const Strategy *strategy, const char *indent);

/* Whether the word begins a statement inside a strategy. */
bool strategy_has_statement(const char *word);

/* How many devices the strategy has, idle ones included: the number of ranks. */
int strategy_device_count(const Strategy *strategy);

#endif
