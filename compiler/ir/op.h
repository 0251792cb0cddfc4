/* Operators of the intermediate representation. An operator refers to its definition, that is, to
 * its rule; nothing switches on which operator it is.
 *
 *     %9 = ht_linear(%7, %3, -) layer 5 scope "h5" loop each stage 1 visit 2 : f32[8, 64]
 */
#ifndef IR_OP_H
#define IR_OP_H

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

/* The position of an operator around the loop over micro-batches (gradient accumulation). */
typedef enum LoopPosition {
    LOOP_BEFORE, // once, before the loop; all operators if the step has no loop
    LOOP_EACH,   // with each micro-batch
    LOOP_AFTER,  // once, after the loop
    LOOP_COUNT   // with each micro-batch, in a loop before all else: sums of inputs alone
} LoopPosition;

static inline bool loop_repeats(LoopPosition loop) {
    return loop == LOOP_EACH || loop == LOOP_COUNT;
}

typedef enum Section { SECTION_FORWARD, SECTION_BACKWARD, SECTION_UPDATE } Section;

/* The call stack at which the frontend evaluated an operator, innermost call first. */
typedef struct Frame Frame;
struct Frame {
    const char *function;
    Position at; // of the call
    const Frame *caller;
};

/* The provenance of an operator. Operators share it; op_change_source gives one a copy. */
typedef struct OpSource {
    int op;             // number of the model's operator that it runs, or whose gradient; -1: none
    const char *scope;  // "h3": ht_scope's path; NULL: none
    const Layer *layer; // of the pragma `layer`; NULL: none
    int recompute;      // execution of a statement with pragma `recompute`, from 1 on; 0: none
    const Frame *frames;
    const Position *fused_at; // of the operators that pass fuse joined to this one
    int fused_count;
    int chunk;            // after pass chunk: the chunk that it computes, from 1 on; 0: none
    const Op *recomputes; // from pass recompute to pass fuse: the forward operator that it runs
                          // again; NULL: none
    const char *reason;   // why a pass inserted the conversion; NULL: the source has it
} OpSource;

/* What a conversion does, after pass specialize (ir/programs/conversions.h). */
typedef struct OpConversion {
    const struct PlannedConversion *plan; // NULL: the operator is no conversion
    int tensor;                           // which one of its plan's tensors
} OpConversion;

struct Op {
    const OpDef *def;
    const Attr *attrs; // def->attr_count
    const Binding *binding;
    int operand_count, result_count;
    Value **operands; // NULL: an absent optional operand
    Value **results;
    Section section;
    LoopPosition loop;
    int stage; // of module->templates->stages; STAGE_ALL: it runs on all devices
    int visit; // model chunk of its template, in the order of the data; 0 in LOOP_COUNT
    Position at;
    const OpSource *source;
    bool is_wgrad;     // weight-gradient op: only the optimizer depends on it (pass split_wgrad)
    bool run_in_place; // must run as soon as its operands exist, so that they can be freed
    OpConversion convert;
    const Function *gradient; // of clause grad, for the types and attributes of this call; NULL:
                              // the rule is an expression, a view, or has grad(none)
    int index;                // in module->ops, set by ir_number
    int loop_first; // index of the first of the neighbours with its loop position, set by ir_number
};

typedef Array(Op *) Ops;

/* The gradient of a call, as IR. Its parameters: dy of each result, the results, the operands
 * (NULL where absent or not used). Returns: one value an operand, NULL where no gradient flows. */
struct Function {
    const char *name;
    Array(Value *) params;
    Array(Op *) ops;
    Array(Value *) returns;
};

extern const OpSource op_no_source; // of an operator that a pass makes of nothing in the source

/* Gives an operator a copy of its source, which the caller may change. */
OpSource *op_change_source(Arena *arena, Op *op);

/* Gives `op` and its results the place of `like`: position, source, section, loop and stage. The
 * source is without fused positions, without a reason, and recomputes nothing. */
void op_take_place(Arena *arena, Op *op, const Op *like);

/* Returns a place without an operator, for op_take_place. */
static inline Op op_place_at(Position at) {
    return (Op){.at = at, .stage = STAGE_ALL, .source = &op_no_source};
}

/* Returns the element type that the rule gives a result. `arena` is scratch. */
DType op_result_dtype(Arena *arena, const Op *op, int result);

/* Gives *dtype the element type that the rule gives an operand; false: the rule leaves it open. */
bool op_operand_dtype(Arena *arena, const Op *op, int operand, DType *dtype);

/* Returns the extent over which an operator runs along a bound factor: the factor's own, or that of
 * its tensors where they have the rows of a micro-batch or the length of a pipeline. */
int64_t op_extent(const Op *op, int factor);

#endif
