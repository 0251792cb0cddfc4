/* Keeps a parameter whole along an axis that its readers use for another dimension. */
#include "passes/seed_layouts/consumer_constraints.h"

#include "passes/seed_layouts/tensor_sequence_expert_splits.h"

_Static_assert(MESH_MOST <= 16, "axes are bits of 16");

/* Returns whether an operator is in the forward section and reads `given` values alone. */
static bool is_given(const bool *given, const Op *op) {
    bool any = false, all = true;
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k]) {
            any = true;
            all = all && given[op->operands[k]->id];
        }
    return any && all && op->section == SECTION_FORWARD;
}

/* Adds to `unwanted` each axis that cuts a factor which operand k lacks, if a split rule would cut
 * a named dimension of the operand along the axis. */
static void note_operand(const Mesh *mesh, const Op *op, int k, const NamedCut *cuts, int count,
                         uint16_t *unwanted) {
    const Value *value = op->operands[k];
    for (int i = 0; i < count; i++)
        for (int r = 0; r < mesh->rules.count; r++) {
            int d = factor_dim(&op->binding->operands[k], cuts[i].factor);
            bool named = false;
            for (int e = 0; mesh->rules.at[r].axis == cuts[i].axis && e < value->type.rank; e++)
                named |= e != d && dim_equal(dim_name(value->dims, e), mesh->rules.at[r].dim);
            if (named && d < 0) *unwanted |= (uint16_t)(1u << cuts[i].axis);
        }
}

/* Adds the constraints that an operator puts on its operands. An operator on parameters alone also
 * passes on the constraints of its results. */
static void note_op(const Module *module, const Op *op, const bool *given, uint16_t *unwanted) {
    NamedCut cuts[MESH_MOST];
    const Mesh *mesh = op_mesh(module, op);
    int count = factors_named(mesh, op, NULL, cuts);
    uint16_t through = 0;
    for (int r = 0; r < op->result_count && is_given(given, op); r++)
        through |= unwanted[op->results[r]->id];
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && given[op->operands[k]->id]) {
            note_operand(mesh, op, k, cuts, count, &unwanted[op->operands[k]->id]);
            unwanted[op->operands[k]->id] |= through;
        }
}

const ConsumerConstraints *wanted_of(Arena *arena, const Module *module) {
    // find the values that are computed from parameters alone
    ConsumerConstraints *wanted = arena_new(arena, ConsumerConstraints);
    bool *given = arena_array(arena, bool, module->next_id);
    uint16_t *unwanted = arena_array(arena, uint16_t, module->next_id);
    for (int i = 0; i < module->params.count; i++) given[module->params.at[i]->value->id] = true;
    for (int i = 0; i < module->ops.count; i++)
        for (int r = 0; r < module->ops.at[i]->result_count && is_given(given, module->ops.at[i]);
             r++)
            given[module->ops.at[i]->results[r]->id] = true;
    // walk backward, so that the constraints of results are known before those of operands
    for (int i = module->ops.count - 1; i >= 0; i--)
        if (module->ops.at[i]->section == SECTION_FORWARD)
            note_op(module, module->ops.at[i], given, unwanted);
    *wanted = (ConsumerConstraints){unwanted, given};
    return wanted;
}

uint16_t op_unwanted(const ConsumerConstraints *wanted, const Op *op) {
    uint16_t unwanted = 0;
    for (int r = 0; r < op->result_count && is_given(wanted->given, op); r++)
        unwanted |= wanted->unwanted[op->results[r]->id];
    return unwanted;
}
