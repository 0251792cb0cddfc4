/* Prices a conversion and an operator while layouts propagate, in seconds or bytes. */
#include "passes/propagate_layouts/assign_axes.h"

#include "ir/programs/conversions.h"
#include "cost/cost.h"

#include <math.h>
#include <string.h>

static const double BYTES_AN_OPERATION = 0.02;

/* Everything that the price of a conversion depends on. */
typedef struct PriceKey {
    const Mesh *mesh;
    const Layout *layout; // NULL: `from` is valid instead
    Sharding from, to;
    int64_t dtype, rank;
    Micro micro;
    int64_t extent[IR_MAX_RANK];
} PriceKey;

static const Cluster *cluster_of(const Assigner *assigner) {
    return assigner->module->devices->target.cluster;
}

static PriceKey key_of(const Assigner *assigner, const Value *value, const Sharding *from,
                       const Sharding *to) {
    PriceKey key;
    memset(&key, 0, sizeof key);
    key.mesh = assigner->mesh;
    if (from) key.from = *from;
    else key.layout = value->layout;
    key.to = *to;
    key.dtype = value->type.dtype;
    key.rank = value->type.rank;
    if (cluster_of(assigner)) key.micro = value->micro;
    for (int d = 0; d < value->type.rank; d++) key.extent[d] = value->type.extent[d];
    return key;
}

/* Returns the pending reduction of a sharding; STATE_DUP: none, STATE_SPLIT: two different ones. */
static StateKind pending(const Mesh *mesh, const Sharding *sharding) {
    StateKind kind = STATE_DUP;
    for (int a = 0; a < mesh->axis_count; a++)
        if (sharding->at[a] < AXIS_DUP && mesh->axis[a].count > 1) {
            StateKind own = sharding->at[a] == AXIS_SUM ? STATE_SUM : STATE_MAX;
            kind = kind == STATE_DUP || kind == own ? own : STATE_SPLIT;
        }
    return kind;
}

/* Returns whether a conversion between two states of pending reductions is possible. */
static bool convertible(StateKind before, StateKind after) {
    return before != STATE_SPLIT && after != STATE_SPLIT &&
           (before == STATE_DUP || after == STATE_DUP || before == after);
}

/* Cache key of a conversion in the first replica group. Layouts and extents are interned. */
typedef struct ReplicaGroupKey {
    const Layout *from, *to;
    const int64_t *extent;
    int64_t rank, dtype;
} ReplicaGroupKey;

/* The price of a plan for the first replica group. */
typedef struct ReplicaGroupPrice {
    int64_t bytes;  // bytes that the group receives
    double seconds; // read only with a cluster
} ReplicaGroupPrice;

/* Returns the price of the plan for the first replica group. The module keeps the plan, because
 * most priced conversions are also made. Copies of scalars within a device cost nothing. So partial
 * sums of scalars, as in the gradients' norm, stay partial until one message reduces them all. */
static ReplicaGroupPrice plan_replica_group(const Assigner *assigner, const Conversion *first) {
    const Cluster *cluster = cluster_of(assigner);
    const Plan *plan = module_plan(assigner->module, first, 1);
    return (ReplicaGroupPrice){plan_bytes(plan), first->shape.rank && cluster
                                                     ? conversion_seconds(cluster, plan)
                                                     : plan_seconds(plan)};
}

/* Returns the cached result of plan_replica_group. Meshes of equivalent devices share an entry. */
static ReplicaGroupPrice first_price(const Assigner *assigner, const Conversion *first) {
    Intern *shared = assigner->replica_groups;
    ReplicaGroupKey key = {
        layout_intern(shared, first->from), layout_intern(shared, first->to),
        intern(shared, first->shape.extent, sizeof(int64_t) * (size_t)first->shape.rank),
        first->shape.rank, first->dtype};
    ReplicaGroupPrice **price = intern_slot(assigner->replica_groups, &key, sizeof key);
    if (!*price) {
        *price = arena_new(assigner->arena, ReplicaGroupPrice);
        **price = plan_replica_group(assigner, first);
    }
    return **price;
}

/* Returns the seconds that a conversion takes in a step on the module's cluster. */
static double cluster_price(const Assigner *assigner, const Value *value, Arena *scratch,
                            const Conversion *conversion) {
    ReplicaGroups replica_groups =
        replica_groups_of(scratch, cluster_of(assigner), assigner->alike, conversion, 1);
    return first_price(assigner, replica_groups.first).seconds *
           (value->def ? (double)op_runs(assigner->module, value->def) : 1);
}

/* Returns the bytes that a device of the mesh receives in a conversion, on average. */
static double average_bytes(const Assigner *assigner, Arena *scratch,
                            const Conversion *conversion) {
    ReplicaGroups replica_groups = replica_groups_of(scratch, NULL, NULL, conversion, 1);
    int64_t bytes;
    if (__builtin_mul_overflow(first_price(assigner, replica_groups.first).bytes,
                               (int64_t)replica_groups.count, &bytes))
        bytes = INT64_MAX;
    return (double)bytes / assigner->mesh->device_count;
}

/* Plans a conversion and returns its price; INFINITY: the conversion is impossible. */
static double plan_price(const Assigner *assigner, const Value *value, const Sharding *from,
                         const Sharding *to) {
    const Mesh *mesh = assigner->mesh;
    if (!convertible(from ? pending(mesh, from) : layout_partial(value->layout), pending(mesh, to)))
        return INFINITY;
    Arena *scratch = arena_create();
    Intern *shared = intern_create(scratch);
    Conversion conversion = {type_shape(value->type), dtype_runtime(value->type.dtype),
                             from ? sharding_layout(mesh, from, shared) : value->layout,
                             sharding_layout(mesh, to, shared)};
    double price = cluster_of(assigner) ? cluster_price(assigner, value, scratch, &conversion)
                                        : average_bytes(assigner, scratch, &conversion);
    arena_destroy(scratch);
    return price;
}

/* Returns the cached price of a conversion; `from` NULL: from the value's own layout. */
static double known_price(const Assigner *assigner, const Value *value, const Sharding *from,
                          const Sharding *to) {
    PriceKey key = key_of(assigner, value, from, to);
    double **price = intern_slot(assigner->prices, &key, sizeof key);
    if (!*price) {
        double *made = arena_new(assigner->arena, double);
        *made = plan_price(assigner, value, from, to);
        price = intern_slot(assigner->prices, &key, sizeof key);
        *price = made;
    }
    return **price;
}

double price_conversion(const Assigner *assigner, const Value *value, const Sharding *from,
                        const Sharding *to) {
    return sharding_equal(assigner->mesh, from, to) ? 0 : known_price(assigner, value, from, to);
}

double price_crossing(const Assigner *assigner, const Value *value, const Sharding *to) {
    return known_price(assigner, value, NULL, to);
}

/* Returns the price of bytes: seconds over a host's links; without a cluster, the bytes. */
static double bytes_price(const Assigner *assigner, double bytes) {
    return cluster_of(assigner) ? bytes / cluster_of(assigner)->local.bandwidth : bytes;
}

/* Sets extent[f] to the average extent of a device's piece along bound factor f. */
static void local_extents(const Mesh *mesh, const Op *op, const Assignment *assignment,
                          double *extent) {
    for (int f = 0; f < op->binding->factor_count; f++) extent[f] = (double)op_extent(op, f);
    for (int i = 0; i < assignment->order_count; i++)
        extent[assignment->factor[assignment->order[i]]] /= mesh->axis[assignment->order[i]].count;
}

/* Returns the price of computing with one operation for each point of the factors' index space. */
static double plain_price(const Assigner *assigner, const Op *op, const Assignment *assignment) {
    double operations = 1;
    for (int f = 0; f < op->binding->factor_count; f++) operations *= (double)op_extent(op, f);
    for (int i = 0; i < assignment->order_count; i++)
        operations /= assigner->mesh->axis[assignment->order[i]].count;
    return bytes_price(assigner, operations * BYTES_AN_OPERATION);
}

double price_computing(const Assigner *assigner, const Op *op, const Assignment *assignment) {
    double extent[IR_MAX_FACTORS], runs = (double)op_runs(assigner->module, op);
    if (!cluster_of(assigner) || op->def->rule->kind == RULE_VIEW)
        return plain_price(assigner, op, assignment);
    local_extents(assigner->mesh, op, assignment, extent);
    Work work = op_work(op, extent);
    double seconds = slowest_seconds(cluster_of(assigner), assigner->mesh->devices,
                                     assigner->mesh->device_count, &work);
    return isnan(seconds) ? plain_price(assigner, op, assignment) : runs * seconds;
}
