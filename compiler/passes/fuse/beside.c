/* Sums go in front of products that can make them on their way (ir/beside.h). */
#include "ir/beside.h"

#include "passes/fuse/fuse.h"

#include "ir/parts.h"

/* Whether a sum may stand in front of a product: nothing reads it before. */
static bool may_stand_before(const Fuse *fuse, const Op *sum, const Op *product)
{
    const Users *users = &fuse->users[sum->results[0]->id];
    for (int i = 0; i < users->count; i++)
        if (users->at[i]->index < product->index)
            return false;
    return true;
}

/* In how many parts a group of devices cuts a factor of a layout's view; 0: the parts are of several lengths by weights. */
static int64_t parts_of(const Group *group, int factor)
{
    int64_t parts = 1;
    for (int s = 0; s < group->state_count; s++) {
        const State *state = &group->states[s];
        if (state->kind == STATE_SPLIT && state->dim == factor)
            parts *= state->weights ? 0 : state->fold ? 2 * state->count : state->count;
    }
    return parts;
}

/* Whether all devices of a layout have as many elements of a dimension. */
static bool cuts_evenly(const Layout *layout, Shape shape, int dim)
{
    Shape view = layout_view(layout, shape);
    for (int f = 0; f < view.rank; f++) {
        if ((layout->view_rank ? layout->view_dim[f] : f) != dim)
            continue;
        if (layout->top == TOP_SPLIT && (layout->top_dim == f || layout->top_dim == dim))
            return false;
        for (int g = 0; g < layout->group_count; g++) {
            int64_t parts = parts_of(&layout->groups[g], f);
            if (!parts || view.extent[f] % parts || parts != parts_of(&layout->groups[0], f))
                return false;
        }
    }
    return true;
}

static bool has_factor(const BoundAccess *access, int factor)
{
    for (int d = 0; d < access->rank; d++)
        for (int i = 0; i < access->dims[d].count; i++)
            if (access->dims[d].factors[i] == factor)
                return true;
    return false;
}

/* Whether devices with one piece of a sum have pieces of one shape of the product: a product of another shape adds up in another order, and
 * holders of one piece must have the same bits. */
static bool are_alike(const Op *sum, const Op *product)
{
    const Value *result = product->results[0];
    const BoundAccess *whole = &product->binding->results[0], *summed = &product->binding->operands[summed_operand(sum, product)];
    for (int d = 0; d < whole->rank; d++)
        for (int i = 0; i < whole->dims[d].count; i++)
            if (!has_factor(summed, whole->dims[d].factors[i]) && result->layout &&
                !cuts_evenly(result->layout, type_shape(result->type), d))
                return false;
    return true;
}

/* The product that can make a sum, and makes none yet; NULL: there is none. */
static const Op *product_for(const Fuse *fuse, const Op *sum, Op *const *before)
{
    const Users *users = sum->operand_count == 1 && sum->operands[0] ? &fuse->users[sum->operands[0]->id] : NULL;
    for (int i = 0; users && i < users->count; i++) {
        const Op *product = users->at[i];
        if (product != sum && !before[product->index] && !product->again && !sum->again && !sum->joins && !product->joins &&
            same_part(fuse->module, sum, product) && summed_operand(sum, product) >= 0 && are_alike(sum, product) &&
            may_stand_before(fuse, sum, product))
            return product;
    }
    return NULL;
}

void put_sums_beside(Fuse *fuse)
{
    Module *module = fuse->module;
    Op **before = arena_array(fuse->arena, Op *, module->ops.count + 1);
    bool *moved = arena_array(fuse->arena, bool, module->ops.count + 1);
    Ops ops = {0};
    for (int i = 0; i < module->ops.count; i++) {
        const Op *product = product_for(fuse, module->ops.at[i], before);
        if (!product)
            continue;
        before[product->index] = module->ops.at[i];
        moved[i] = true;
    }
    for (int i = 0; i < module->ops.count; i++) {
        if (before[i])
            array_push(module->arena, &ops, before[i]);
        if (!moved[i])
            array_push(module->arena, &ops, module->ops.at[i]);
    }
    module->ops.at = ops.at;
    module->ops.count = ops.count;
    module->ops.capacity = ops.capacity;
    ir_number(module);
}
