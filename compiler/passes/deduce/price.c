#include "passes/deduce/price.h"

#include "ir/roles.h"

#include <math.h>
#include <string.h>

/* What a price depends on. */
typedef struct PriceKey {
    Sharding from, to;
    int64_t dtype, rank;
    int64_t extent[IR_MAX_RANK];
} PriceKey;

static PriceKey key_of(const Value *value, const Sharding *from, const Sharding *to)
{
    PriceKey key;
    memset(&key, 0, sizeof key);
    key.from = *from;
    key.to = *to;
    key.dtype = value->type.dtype;
    key.rank = value->type.rank;
    for (int d = 0; d < value->type.rank; d++)
        key.extent[d] = value->type.extent[d];
    return key;
}

/* The kind of reduction that is pending; STATE_SPLIT where there are two. */
static StateKind pending(const Mesh *mesh, const Sharding *sharding)
{
    StateKind kind = STATE_DUP;
    for (int a = 0; a < mesh->axis_count; a++)
        if (sharding->at[a] < AXIS_DUP && mesh->axis[a].count > 1) {
            StateKind own = sharding->at[a] == AXIS_SUM ? STATE_SUM : STATE_MAX;
            kind = kind == STATE_DUP || kind == own ? own : STATE_SPLIT;
        }
    return kind;
}

/* Whether a conversion has a meaning. */
static bool convertible(const Mesh *mesh, const Sharding *from, const Sharding *to)
{
    StateKind before = pending(mesh, from), after = pending(mesh, to);
    return before != STATE_SPLIT && after != STATE_SPLIT && (before == STATE_DUP || after == STATE_DUP || before == after);
}

/* Plans in a scratch arena; only the price is kept. */
static double plan_price(const Mesh *mesh, const Value *value, const Sharding *from, const Sharding *to)
{
    if (!convertible(mesh, from, to))
        return INFINITY;
    Arena *scratch = arena_create();
    Intern *shared = intern_create(scratch);
    Conversion conversion = {type_shape(value->type), dtype_runtime(value->type.dtype), sharding_layout(mesh, from, shared),
                             sharding_layout(mesh, to, shared)};
    double price = (double)plan_bytes(reshard_plan(scratch, mesh->cluster, &conversion)) / mesh->device_count;
    arena_destroy(scratch);
    return price;
}

double price_conversion(const Mesh *mesh, const Value *value, const Sharding *from, const Sharding *to)
{
    if (sharding_equal(mesh, from, to))
        return 0;
    PriceKey key = key_of(value, from, to);
    double **price = intern_slot(mesh->prices, &key, sizeof key);
    if (!*price) {
        double *made = arena_new(mesh->arena, double);
        *made = plan_price(mesh, value, from, to);
        price = intern_slot(mesh->prices, &key, sizeof key);
        *price = made;
    }
    return **price;
}
