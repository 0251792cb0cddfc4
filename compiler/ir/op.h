/* Operators of the intermediate representation. An operator refers to its definition, that is, to
 * its rule; nothing switches on which operator it is.
 *
 *     %9 = ht_linear(%7, %3) forward loop each stage 1 visit 2 layer "block" 5
 */
#ifndef IR_OP_H
#define IR_OP_H

#include "ir/binding.h"
#include "ir/mesh.h"
#include "ir/pipeline_template.h"
#include "ir/value.h"
#include "rule/rule.h"
#include "strategy/strategy.h"
#include "support/array.h"

typedef struct Function Function;

/* When an operator runs in a step of micro-batches. */
typedef enum LoopPosition {
    LOOP_BEFORE, // once, before the loop; every operator, when the step has no micro-batches
    LOOP_EACH,   // with each micro-batch
    LOOP_AFTER,  // once, after the loop
    LOOP_COUNT   // with each micro-batch, before everything else: sums of inputs alone
} LoopPosition;

static inline bool loop_repeats(LoopPosition loop) {
    return loop == LOOP_EACH || loop == LOOP_COUNT;
}

typedef enum Section { SECTION_FORWARD, SECTION_BACKWARD, SECTION_UPDATE } Section;

/* The chain of calls that led to an operator, innermost first. */
typedef struct Frame Frame;
struct Frame {
    const char *function;
    Position at; // of the call
    const Frame *caller;
};

/* What an operator comes from in the source. */
typedef struct OpSource {
    int op;             // number of the operator of the model whose work or gradient it is; -1 none
    const char *scope;  // "h3": ht_scope's path; NULL none
    const Layer *layer; // of the pragma `layer`; NULL none
    int recompute;      // run of a statement with pragma `recompute`, from 1 on; 0 none
    const Frame *frames;
    const Position *fused_at; // of the other operators that pass fuse put into this one
    int fused_count;
} OpSource;

/* What a conversion does. */
typedef struct OpConversion {
    const char *reason; // why pass propagate_layouts inserted it, for -Rcomm; NULL elsewhere
    const struct PlannedConversion *plan; // after pass specialize (ir/programs/device_programs.h)
    int tensor;                           // which one of its plan's tensors
} OpConversion;

/* What passes tell later passes. */
typedef struct OpMarks {
    bool is_wgrad; // weight-gradient op: nothing but the optimizer depends on it (pass split_wgrad)
    bool run_in_place; // must run as soon as its operands exist, so that they can be freed
} OpMarks;

struct Op {
    const OpDef *def;
    const Attr *attrs; // def->attr_count
    const Binding *binding;
    int operand_count, result_count;
    Value **operands; // NULL entries are absent
    Value **results;
    Section section;
    LoopPosition loop;
    int stage; // of module->templates.stages; STAGE_ALL: it runs on all devices
    int visit; // number of the model chunk in its template, along the data; 0 in LOOP_COUNT
    int chunk; // after pass chunk: number of the chunk that it computes, from 1 on; 0 none
    Position at;
    OpSource source;
    OpMarks marks;
    OpConversion convert;
    const Op *recomputes; // between passes recompute and fuse: the forward operator that it runs
                          // again; NULL elsewhere
    const Function *gradient; // of clause grad, for this call's types and attributes; NULL for
                              // bodies, views and grad(none)
    int index;                // in module->ops, set by ir_number
    int loop_first; // index of the first operator of this run of one loop position; set by
                    // ir_number
};

typedef Array(Op *) Ops;

/* The gradient of a call as a piece of IR. Params: dy of each result, the results, the operands
 * (NULL where absent or not used). Returns: one value an operand, NULL where no gradient flows. */
struct Function {
    const char *name;
    Array(Value *) params;
    Array(Op *) ops;
    Array(Value *) returns;
};

/* Gives `op` and its results the place of `like`: position, source, section, loop and stage. */
void op_take_place(Op *op, const Op *like);

/* Returns a place without an operator, for op_take_place. */
static inline Op op_place_at(Position at) {
    return (Op){.at = at, .stage = STAGE_ALL, .source.op = -1};
}

/* Returns the element type that the rule gives a result. `arena` is scratch. */
DType op_result_dtype(Arena *arena, const Op *op, int result);

/* Gives *dtype the element type that the rule gives an operand; false: the rule leaves it open. */
bool op_operand_dtype(Arena *arena, const Op *op, int operand, DType *dtype);

/* Returns the extent over which an operator runs along a bound factor: the factor's own, or that of
 * its tensors where they have the rows of a micro-batch or the length of a pipeline. */
int64_t op_extent(const Op *op, int factor);

#endif
