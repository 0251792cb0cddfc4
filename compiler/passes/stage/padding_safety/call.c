/* Finds an operator's padded dimensions, and reports why padding cannot be dropped. */
#include "passes/stage/padding_safety/call.h"

static bool padding_shortens(const PaddingCheck *behind, const Value *value, int d) {
    return behind->own[value->id]->type.extent[d] != value->type.extent[d];
}

int padding_short_dims(const PaddingCheck *behind, const Value *value) {
    int count = 0;
    for (int d = 0; d < value->type.rank; d++) count += padding_shortens(behind, value, d);
    return count;
}

int call_bit(const Call *call, int factor) {
    for (int i = 0; i < call->count; i++)
        if (call->factors[i] == factor) return i;
    return -1;
}

unsigned call_bits(const Call *call, const Access *access) {
    unsigned bits = 0;
    for (int i = 0; i < call->count; i++)
        if (access_has(access, call->op->binding->factors[call->factors[i]].factor))
            bits |= 1u << i;
    return bits;
}

const Factor *call_factor(const Call *call, int bit) {
    return &call->op->def->rule->factors[call->op->binding->factors[call->factors[bit]].factor];
}

unsigned call_block(const Call *call, const Value *value, const BoundAccess *access,
                    unsigned assignment) {
    unsigned block = 0;
    for (int d = 0, place = 0; d < value->type.rank; d++)
        if (padding_shortens(call->behind, value, d)) {
            int bit = access->dims[d].count == 1 ? call_bit(call, access->dims[d].factors[0]) : -1;
            if (bit >= 0 && assignment >> bit & 1) block |= 1u << place;
            place++;
        }
    return block;
}

Bounds call_operand(const Call *call, int k, unsigned assignment) {
    const Value *value = call->op->operands[k];
    return call->behind
        ->blocks[value->id][call_block(call, value, &call->op->binding->operands[k], assignment)];
}

/* Returns whether exactly the dimensions along the operator's shorter factors are shorter. */
static bool tensor_fits(const Call *call, const Value *value, const BoundAccess *access) {
    for (int d = 0; d < value->type.rank; d++) {
        bool factor = access->dims[d].count == 1 && call_bit(call, access->dims[d].factors[0]) >= 0;
        if (padding_shortens(call->behind, value, d) != factor) return false;
    }
    return true;
}

bool call_find_factors(Call *call) {
    const Binding *binding = call->op->binding, *own = call->own->binding;
    bool fits = binding->factor_count == own->factor_count;
    for (int f = 0; fits && f < binding->factor_count; f++)
        if (binding->factors[f].extent != own->factors[f].extent) {
            fits = call->count < MOST_SHORT;
            call->factors[fits ? call->count++ : 0] = f;
        }
    for (int k = 0; fits && k < call->op->operand_count; k++)
        fits = !call->op->operands[k] ||
               tensor_fits(call, call->op->operands[k], &binding->operands[k]);
    for (int r = 0; fits && r < call->op->result_count; r++)
        fits = tensor_fits(call, call->op->results[r], &binding->results[r]);
    return fits;
}

/* Returns the name of a dimension along a shorter factor in `bits`; NULL: none has a name. */
static const char *dimension_name(const Call *call, unsigned bits) {
    for (int k = 0; k < call->op->operand_count; k++) {
        const Value *value = call->op->operands[k];
        for (int d = 0; value && d < value->type.rank; d++) {
            const BoundDim *dim = &call->op->binding->operands[k].dims[d];
            int bit = dim->count == 1 ? call_bit(call, dim->factors[0]) : -1;
            if (bit >= 0 && bits >> bit & 1 && dim_name(value->dims, d).name)
                return dim_name(value->dims, d).name;
        }
    }
    return NULL;
}

bool call_refuse(const Call *call, unsigned bits, const char *why) {
    const char *name = dimension_name(call, bits);
    Diag *diag = call->behind->module->diag;
    diag_error(
        diag, call->op->at,
        "%s%s%s%s%s, so a pipeline that reads less gives something else than the padded batch",
        call->op->section == SECTION_BACKWARD ? "the gradient of this " : "this ", why,
        name ? " along \"" : "", name ? name : "", name ? "\"" : "");
    diag_note(diag, call->behind->at,
              "the lengths are here; a loss that leaves out what the pragma padding names, causal "
              "attention and masks keep apart what is "
              "behind them; else give all pipelines the same");
    return false;
}
