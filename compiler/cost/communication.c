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

/* Bytes that a device moves between two steps of those in which it communicates; `step` goes on to behind the second, or to -1. */
static double moved_until(const Plan *plan, const ht_reshard_device *part, int *step)
{
    double bytes = 0;
    for (; *step >= 0 && *step < part->step_count; ++*step) {
        if (part->step[*step].verb > HT_FILL) {
            ++*step;
            return bytes;
        }
        bytes += moved_by_step(plan, &part->step[*step]);
    }
    *step = -1;
    return bytes;
}

typedef struct Mover {
    const ht_reshard_device *part;
    const Curve *rate;
    double touched; // bytes, by which the rate is read
    int processor, sharing;
    int step; // that comes next; -1: none
    double seconds;
} Mover;

static int devices_sharing(const Cluster *cluster, int processor)
{
    int count = 0;
    for (int i = 0; i < cluster->device_count; i++)
        count += cluster->devices[i].processor == processor;
    return count;
}

static double touched_bytes(const Plan *plan, int device)
{
    return plan_touched_bytes(plan, device) + (double)plan_scratch_bytes(plan, device);
}

/* Bytes that each device of a host touches on average. */
static double mean_touched(const Cluster *cluster, const Plan *plan, int host)
{
    double bytes = 0;
    int count = 0;
    for (int i = 0; i < plan->device_count && i < MOST_DEVICES; i++)
        bytes += cluster_host(cluster, plan->devices[i]) == host ? touched_bytes(plan, plan->devices[i]) : 0;
    for (int i = 0; i < cluster->device_count; i++)
        count += cluster->devices[i].host == host;
    return bytes / count;
}

/* Devices that share processors share caches, too: these hold the more of what one touches the less the others do. */
static Mover mover_of(const Cluster *cluster, const Plan *plan, int device)
{
    const ClusterDevice *own = &cluster->devices[device];
    Mover mover = {
        plan_device(plan, device), &own->class->memory_bandwidth, 0, own->processor, devices_sharing(cluster, own->processor), 0, 0};
    mover.touched = mover.sharing > 1 ? mean_touched(cluster, plan, own->host) : touched_bytes(plan, device);
    return mover;
}

/* Seconds of what the movers do until they next communicate: of the slowest processor, which does in turn what its devices move. */
static double turn_seconds(const Plan *plan, Mover *movers, int count)
{
    double longest = 0;
    for (int i = 0; i < count; i++) {
        double bytes = moved_until(plan, movers[i].part, &movers[i].step);
        movers[i].seconds = bytes > 0 ? bytes / curve_at(movers[i].rate, movers[i].touched) / movers[i].sharing : 0;
    }
    for (int i = 0; i < count; i++) {
        double seconds = 0;
        for (int k = 0; k < count; k++)
            seconds += movers[k].processor == movers[i].processor ? movers[k].seconds : 0;
        longest = seconds > longest ? seconds : longest;
    }
    return longest;
}

static bool any_going(const Mover *movers, int count)
{
    for (int i = 0; i < count; i++)
        if (movers[i].step >= 0)
            return true;
    return false;
}

double moving_seconds(const Cluster *cluster, const Plan *plan)
{
    Mover movers[MOST_DEVICES];
    double seconds = 0;
    int count = 0;
    for (int i = 0; i < plan->device_count && i < MOST_DEVICES; i++) {
        const DeviceClass *class = cluster_class(cluster, plan->devices[i]);
        if (class && class->memory_bandwidth.count)
            movers[count++] = mover_of(cluster, plan, plan->devices[i]);
    }
    while (any_going(movers, count))
        seconds += turn_seconds(plan, movers, count);
    return seconds;
}

double conversion_seconds(const Cluster *cluster, const Plan *plan) { return plan_seconds(plan) + moving_seconds(cluster, plan); }
