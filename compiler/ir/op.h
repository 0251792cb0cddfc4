/* Operators of the intermediate representation. Passes read an operator's rule from its definition;
 * there is no enumeration of operators.
 *
 *     %9 = ht_linear(%7, %3, -) layer 5 scope "h5" loop each stage 1 visit 2 : f32[8, 64]
 */
#pragma once

#include "ir/binding.h"
#include "ir/mesh.h"
#include "ir/pipeline_template.h"
#include "rule/rule.h"
#include "support/array.h"

typedef struct Value Value;
typedef struct Op Op;
typedef struct Module Module;

typedef struct Function Function;
typedef struct Layer Layer; // strategy/strategy.h

/* When an operator runs, relative to the loop over micro-batches (gradient accumulation). */
typedef enum LoopPosition {
    LOOP_BEFORE, // once, before the loop; all operators if the step has no loop
    LOOP_EACH,   // with each micro-batch
    LOOP_AFTER,  // once, after the loop
    LOOP_COUNT   // with each micro-batch, in a loop of its own before all else: sums of inputs only
} LoopPosition;

static inline bool loop_repeats(LoopPosition loop) {
    return loop == LOOP_EACH || loop == LOOP_COUNT;
}

typedef enum Section { SECTION_FORWARD, SECTION_BACKWARD, SECTION_UPDATE } Section;

/* The call stack at which the frontend evaluated an operator, innermost call first. */
typedef struct Frame Frame;
struct Frame {
    const char *function;
    Position at; // position of the call
    const Frame *caller;
};

/* The provenance of an operator. Operators share it; op_change_source makes a private copy. */
typedef struct OpSource {
    int op;             // number of the model's operator that Op runs or differentiates; -1: none
    const char *scope;  // "h3": ht_scope's path; NULL: none
    const Layer *layer; // from the pragma `layer`; NULL: none
    int recompute;      // number, from 1, of the execution of a `recompute` statement; 0: none
    const Frame *frames;
    const Position *fused_at; // positions of the operators that pass fuse joined to this one
    int fused_count;
    int chunk;            // after pass chunk: number of the operator's chunk, from 1; 0: none
    const Op *recomputes; // from pass recompute to pass fuse: the forward operator that this one
                          // repeats; NULL: none
    const char *reason;   // why a pass inserted the conversion; NULL: the source has it
} OpSource;

/* The plan of a conversion, after pass specialize (ir/programs/conversions.h). */
typedef struct OpConversion {
    const struct PlannedConversion *plan; // NULL: the operator is not a conversion
    int tensor;                           // index into plan->tensors
} OpConversion;

struct Op {
    const OpDef *def;
    const Attr *attrs; // def->attr_count arguments
    const Binding *binding;
    int operand_count, result_count;
    Value **operands; // NULL: an absent optional operand
    Value **results;
    Section section;
    LoopPosition loop;
    int stage; // index into module->templates->stages; STAGE_ALL: runs on all devices
    int visit; // model chunk of its template, in forward order; 0 in LOOP_COUNT
    Position at;
    const OpSource *source;
    bool is_wgrad;     // weight-gradient op: only the optimizer depends on it (pass split_wgrad)
    bool run_in_place; // must run as soon as its operands exist, so that they can be freed
    OpConversion convert;
    const Function *gradient; // clause `grad`, for the types and attributes of this call; NULL:
                              // the rule is an expression, a view, or has grad(none)
    int index;                // in module->ops, set by ir_number
    int loop_first;           // index at which the ops of its loop position begin, set by ir_number
};

typedef Array(Op *) Ops;

/* The gradient of a call, as IR. `params` has dy of each result, the results, and the operands
 * (NULL: absent or unused). `returns` has a value for each operand; NULL: no gradient flows. */
struct Function {
    const char *name;
    Array(Value *) params;
    Array(Op *) ops;
    Array(Value *) returns;
};

extern const OpSource op_no_source; // provenance of an operator that is not in the source

/* Gives an operator a private copy of its source, and returns the copy for the caller to change. */
OpSource *op_change_source(Arena *arena, Op *op);

/* Copies to `op` the position, source, section, loop, stage, visit and is_wgrad of `like`, and to
 * its results the position. Clears fused positions, reason and `recomputes` in op's source. */
void op_take_place(Arena *arena, Op *op, const Op *like);

/* Returns an operator that has only a source position, to be argument `like` of op_take_place. */
static inline Op op_place_at(Position at) {
    return (Op){.at = at, .stage = STAGE_ALL, .source = &op_no_source};
}

/* Returns the element type that the rule gives a result. `arena` is scratch. */
DType op_result_dtype(Arena *arena, const Op *op, int result);

/* Writes to *dtype the type that the rule fixes for an operand; returns false if it fixes none. */
bool op_operand_dtype(Arena *arena, const Op *op, int operand, DType *dtype);

/* Returns the extent over which an operator runs along a bound factor. It is less than the factor's
 * extent where the tensors have the rows of a micro-batch, or the padding length of a pipeline. */
int64_t op_extent(const Op *op, int factor);

/* Returns the value of a call's attribute `attr` (not a shape) as a number in a rule's text.
 *
 *     ht_scale(x, 0.5)  with the rule  y[i..] = x[i..] * by    ->    y[i..] = x[i..] * 0.5f
 */
const Expr *argument_number(Arena *arena, const Op *op, int attr);
