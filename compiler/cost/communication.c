/* What conversions of layouts cost. */
#include "cost/cost.h"
#include "reshard/plan.h"

enum { CACHE_LINE = 64, MOST_DEVICES = 64 };

/* Bytes that one side of a move touches: whole cache lines of each row of neighbours. */
static double side_bytes(const ht_move *move, bool from, size_t element)
{
    double rows = 1, bytes = (double)element;
    int inner = move->rank - 1;
    for (int64_t next = 1; inner >= 0 && (from ? move->dim[inner].from : move->dim[inner].to) == next; inner--) {
        next *= move->dim[inner].extent;
        bytes *= (double)move->dim[inner].extent;
    }
    for (int d = 0; d <= inner; d++)
        rows *= (double)move->dim[d].extent;
    return rows * (bytes < CACHE_LINE ? CACHE_LINE : bytes);
}

static size_t tensor_element(const Plan *plan, int tensor)
{
    for (int s = 0; s < plan->buckets.count; s++)
        for (int t = 0; t < plan->buckets.at[s].tensor_count; t++)
            if (plan->buckets.at[s].tensors[t] == tensor)
                return (size_t)plan->buckets.at[s].element;
    BUG("tensor %d is in no bucket", tensor);
}

/* Of copies what is read and what is written, of combinations what is written twice, since it is read before; of fills what is written. */
static double moved_by_step(const Plan *plan, const ht_reshard_step *step)
{
    double bytes = 0;
    for (int m = 0; m < step->move_count; m++) {
        const ht_move *move = &step->move[m];
        size_t element = tensor_element(plan, move->tensor);
        double written = side_bytes(move, false, element);
        bytes += step->verb == HT_FILL ? written : side_bytes(move, true, element) + written * (step->verb == HT_COMBINE ? 2 : 1);
    }
    return bytes;
}

double plan_moved_bytes(const Plan *plan, int device)
{
    const ht_reshard_device *part = plan_device(plan, device);
    double bytes = 0;
    for (int s = 0; s < part->step_count; s++)
        if (part->step[s].verb <= HT_FILL)
            bytes += moved_by_step(plan, &part->step[s]);
    return bytes;
}

/* Seconds in which the slowest device moves what lies in its memory; of many devices, the first ones stand for all. */
static double moving_seconds(const Cluster *cluster, const Plan *plan)
{
    double longest = 0;
    for (int i = 0; i < plan->device_count && i < MOST_DEVICES; i++) {
        const DeviceClass *class = cluster_class(cluster, plan->devices[i]);
        double bytes = class && class->memory_bandwidth.count ? plan_moved_bytes(plan, plan->devices[i]) : 0;
        double seconds = bytes > 0 ? bytes / curve_at(&class->memory_bandwidth, bytes) : 0;
        longest = seconds > longest ? seconds : longest;
    }
    return longest;
}

double conversion_seconds(const Cluster *cluster, const Plan *plan) { return plan_seconds(plan) + moving_seconds(cluster, plan); }
