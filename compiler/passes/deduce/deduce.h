/* Pass deduce from the inside: what it knows on its way through the operators. */
#ifndef PASSES_DEDUCE_DEDUCE_H
#define PASSES_DEDUCE_DEDUCE_H

#include "passes/deduce/assign.h"

typedef Array(Op *) TurnOps;

/* What a value is computed from: the greatest of what its operands are. */
typedef enum Origin { ORIGIN_CONSTANTS, ORIGIN_PARAMETERS, ORIGIN_INPUTS } Origin;

typedef struct Deduce {
    Module *module;
    const Mesh *mesh; // of the operator at hand, as in assigner
    Arena *arena;     // scratch
    Assigner assigner;
    RuleUse **rules; // by stage, the last of all devices: by rule of its mesh
    Intern *shared;
    Version **forms;              // by value id of the original value
    Op **update;                  // by parameter: the operator that updates it; NULL: none
    const Parameter **gradient;   // by value id: the parameter whose gradient it is, or what a stage gives of it; NULL: none
    const Layout **reduced;       // by value id: of gradients, where they go; NULL: nowhere else
    Origin *origin;               // by value id
    Array(const Value *) passing; // original values that have versions for one layer
    bool *again;                  // by operator: it runs again
    Assignment **assigned;        // by operator: how the axes cut those that do
    TurnOps *turned;              // by operator: of those that do and run in turns, what runs in their place
    Array(Op *) out;
} Deduce;

/* `original` in the form `to`: one that exists, or a new conversion of the cheapest. */
Value *deduce_converted(Deduce *deduce, Value *original, const Sharding *to, const Op *user, const char *reason);

/* `original` in any layout: one that exists, or a new conversion of the newest; of a parameter itself, which has what its states need. */
Value *deduce_laid_out(Deduce *deduce, Value *original, const Layout *layout, const Op *user, const char *reason);

/* The newest form of a value, as far as the operator at hand may read it. */
const Version *deduce_newest(const Deduce *deduce, const Value *value);

/* Whether a value comes from another stage than that of its user. */
bool deduce_crosses(const Value *value, const Op *user);

/* A conversion, in front of the loop over micro-batches where it is the same in each; it has the place of `user` in the source. */
Value *deduce_conversion(Deduce *deduce, Value *from, const Layout *to, const Op *user, const char *reason);

/* Result k of the operator is made in a layout; `known` is its sharding, or NULL. A result that has another layout already becomes what a
 * conversion of the operator's own result gives. */
void deduce_result(Deduce *deduce, Op *op, int k, const Layout *made, const Sharding *known);

/* Why operand k is converted. */
const char *deduce_reason(Deduce *deduce, const Op *op, int k);

/* An operator that takes elements in any order, of operands that lie in pieces (pieces.c): the pieces that it makes lie so, too. Of equal
 * pieces one counts in what they add up to. False where it does not take them as they lie, and nothing is changed. */
bool deduce_pieces(Deduce *deduce, Op *op);

/* What the source gives (held.c): a value whose layout it gives; and what holds of operand k holds of the results, where they have what is
 * cut. */
void deduce_hold_written(Deduce *deduce, const Value *value);
void deduce_hold_results(Deduce *deduce, const Op *op, int k, Value *const *results, const Assignment *assignment);

/* Operators in turns (turns.c). Puts into the place of an operator one for each piece of the factor `assignment->turned`, and what joins
 * their results; false where results cannot be joined on the devices that make them, and nothing is changed. */
bool deduce_turns(Deduce *deduce, Op *op, const Assignment *assignment);

#endif
