/* An operator on one device: what its tensors are there, and the terms that its body adds up. */
#ifndef EMIT_KERNEL_LOCAL_H
#define EMIT_KERNEL_LOCAL_H

#include "emit/program/role.h"

enum { EMIT_MAX_TENSORS = IR_MAX_RESULTS + IR_MAX_OPERANDS };

/* A tensor of an operator: the local extents and the bound factor of each dimension. */
typedef struct Tensor {
    const Value *value; // NULL: absent
    const Access *access;
    const BoundAccess *bound;
    const char *name; // in emitted C
    bool empty;       // this device holds nothing of it
    int64_t extent[IR_MAX_RANK];
    int64_t pitch; // how far apart its rows are (clause pitch); 0: it lies in a row
} Tensor;

/* One of the terms that a body adds up. */
typedef struct Term {
    const Expr *expr;
    bool minus;
    uint32_t contracted; // the bound factors over which it is summed
    bool flagged;        // added only where the device's number says so
} Term;

typedef struct LocalOp {
    Module *module;
    const Backend *backend;
    const Op *op;
    int device; // the role's first
    const Rule *rule;
    int result_count, operand_count, tensor_count;
    Tensor tensors[EMIT_MAX_TENSORS]; // the results, then the operands
    Tensor *results, *operands;       // in tensors
    int factor_count;
    int64_t extent[IR_MAX_FACTORS]; // local, by bound factor
    uint32_t contracted;            // bound factors that no result has
    const Op *sum; // that a product makes on its way (ir/analysis/side_reduction.h); NULL: none
    int summed;    // the operand that it adds up
    Tensor sums;   // its result
    int term_count;
    Term *terms; // RULE_BODY, and the product in front of an epilogue
} LocalOp;

/* Fills in `local`; false after an error was reported: pieces of several boxes that the operator
 * cannot take. */
bool local_op(LocalOp *local, RoleWriter *writer, const Op *op);

/* Gives a product the sum in front of it to make, where its kernel can. */
void local_take_sum(LocalOp *local, RoleWriter *writer);

/* Whether every result is empty on this device; whether some factor is (the non-empty results of a
 * C kernel are then identities). */
bool local_nothing(const LocalOp *local);
bool local_empty(const LocalOp *local);

/* Elements of a tensor on this device, and how far apart they are along a bound factor: 0 where the
 * tensor lacks it. */
int64_t tensor_elements(const Tensor *tensor);
int64_t tensor_stride(const Tensor *tensor, int factor);

/* Whether a tensor is there, and its elements are bf16: computed with in f32. */
bool tensor_is_half(const Tensor *tensor);

/* The index of the operand of the call that rule operand `index` stands for; -1 when absent. */
int operand_of(const LocalOp *local, int index);

/* The operands that an expression reads, as a set of indices into the call's; *absent is set when
 * it reads one that is absent. */
uint64_t expr_operands(const LocalOp *local, const Expr *expr, bool *absent);

/* Whether a tensor of an operator is a micro-batch's part of an input or of collected rows, which
 * may begin anywhere; `value` as the operator has it. */
bool value_turns(const Module *module, const Op *op, const Value *value);

#endif
