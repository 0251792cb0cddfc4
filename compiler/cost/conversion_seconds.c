/* The seconds of layout conversions: communication steps, and local copies between them. */
#include "cost/cost.h"
#include "reshard/plan.h"

#include <math.h>

enum { CACHE_LINE = 64, MOST_DEVICES = 64 };

/* The memory traffic of moves: bytes, rows of contiguous elements, and pages. `pages` is the sum
 * over rows of the distance in pages from the row before, at most 1 each. */
typedef struct Moved {
    double moves, rows, pages, bytes;
    double combining; // seconds of additions and maxima
} Moved;

/* Returns the traffic of a move's source (`from`) or target; each row is at least a cache line. */
static Moved moved_side(const ht_move *move, bool from, size_t element) {
    double rows = 1, bytes = (double)element;
    int inner = move->rank - 1;
    for (int64_t next = 1;
         inner >= 0 && (from ? move->dim[inner].from : move->dim[inner].to) == next; inner--) {
        next *= move->dim[inner].extent;
        bytes *= (double)move->dim[inner].extent;
    }
    double apart =
        inner < 0 ? 0
                  : (double)element * (double)(from ? move->dim[inner].from : move->dim[inner].to);
    for (int d = 0; d <= inner; d++) rows *= (double)move->dim[d].extent;
    return (Moved){.rows = rows,
                   .pages = rows * fmin(apart / PAGE_BYTES, 1),
                   .bytes = rows * fmax(bytes, CACHE_LINE)};
}

static const Bucket *tensor_bucket(const Plan *plan, int tensor) {
    for (int s = 0; s < plan->buckets.count; s++)
        for (int t = 0; t < plan->buckets.at[s].tensor_count; t++)
            if (plan->buckets.at[s].tensors[t] == tensor) return &plan->buckets.at[s];
    BUG("tensor %d is in no bucket", tensor);
}

static double move_volume(const ht_move *move) {
    double volume = 1;
    for (int d = 0; d < move->rank; d++) volume *= (double)move->dim[d].extent;
    return volume;
}

/* Adds a step's traffic: a fill writes, a copy also reads, a combination also reads its target. */
static void add_moved(const Plan *plan, const DeviceClass *class, const ht_reshard_step *step,
                      Moved *sum) {
    for (int m = 0; m < step->move_count; m++) {
        const ht_move *move = &step->move[m];
        const Bucket *bucket = tensor_bucket(plan, move->tensor);
        size_t element = (size_t)bucket->element;
        Moved to = moved_side(move, false, element),
              from = step->verb == HT_FILL ? (Moved){0} : moved_side(move, true, element);
        double rate = class->combined[bucket->reduction == HT_MAX][bucket->dtype];
        sum->moves++;
        sum->rows += fmax(to.rows, from.rows);
        sum->pages += fmax(to.pages, from.pages);
        sum->bytes += from.bytes + to.bytes * (step->verb == HT_COMBINE ? 2 : 1);
        sum->combining += step->verb == HT_COMBINE && rate > 0 ? move_volume(move) / rate : 0;
    }
}

/* Returns a device's traffic before its next communication step; sets *step past it (-1: end). */
static Moved moved_until(const Plan *plan, const DeviceClass *class, const ht_reshard_device *part,
                         int *step) {
    Moved sum = {0};
    for (; *step >= 0 && *step < part->step_count; ++*step) {
        if (part->step[*step].verb > HT_FILL) {
            ++*step;
            return sum;
        }
        add_moved(plan, class, &part->step[*step], &sum);
    }
    *step = -1;
    return sum;
}

/* A device of a plan while its memory traffic is timed. */
typedef struct Copier {
    const ht_reshard_device *part;
    const DeviceClass *class;
    double touched; // the working set in bytes; the class's curves give memory rates by it
    int processor, sharing;
    int step; // the next step; -1: none
    double seconds;
} Copier;

/* Returns the most bytes that a device moves between two communication steps. */
static double most_moved(const Plan *plan, int device) {
    static const DeviceClass none;
    double most = 0;
    for (int step = 0; step >= 0;)
        most = fmax(most, moved_until(plan, &none, plan_device(plan, device), &step).bytes);
    return most;
}

static double touched_bytes(const Plan *plan, int device) {
    return fmax(plan_touched_bytes(plan, device) + (double)plan_scratch_bytes(plan, device),
                most_moved(plan, device));
}

/* Returns the bytes that a plan touches on a host, divided by the host's number of devices. */
static double mean_touched(const Cluster *cluster, const Plan *plan, int host) {
    double bytes = 0;
    int count = 0;
    for (int i = 0; i < plan->device_count && i < MOST_DEVICES; i++)
        bytes += cluster_host(cluster, plan->devices[i]) == host
                     ? touched_bytes(plan, plan->devices[i])
                     : 0;
    for (int i = 0; i < cluster->device_count; i++) count += cluster->devices[i].host == host;
    return bytes / count;
}

/* Returns a device's copier. Devices of a processor share caches: `touched` is the host's mean. */
static Copier copier_of(const Cluster *cluster, const Plan *plan, int device) {
    const ClusterDevice *own = &cluster->devices[device];
    Copier copier = {plan_device(plan, device),        own->class, 0, own->processor,
                     cluster_sharing(cluster, device), 0,          0};
    copier.touched =
        copier.sharing > 1 ? mean_touched(cluster, plan, own->host) : touched_bytes(plan, device);
    return copier;
}

/* Returns the extra seconds of a copied row of `bytes` that is not contiguous with the row before,
 * by the given curve. Returns 0 when the class has no such measurement. */
static double row_seconds(const DeviceClass *class, const Curve *rows, double bytes,
                          double touched) {
    double apart = curve_at(rows, touched), together = curve_at(&class->memory_bandwidth, touched);
    return apart > 0 ? fmax(2 * bytes / apart - 2 * bytes / together, 0) : 0;
}

/* Returns the extra seconds of all rows of the moves, compared with contiguous bytes. Rows that
 * begin on another page take the seconds of the curve of pages. */
static double rows_seconds(const Moved *moved, const DeviceClass *class, double touched) {
    double near = row_seconds(class, &class->row_bandwidth, ROW_BYTES, touched);
    double far = row_seconds(class, &class->page_bandwidth, PAGE_ROW_BYTES, touched);
    return (moved->rows - moved->moves) * near + moved->pages * fmax(far - near, 0);
}

static double moved_seconds(const Moved *moved, const Copier *copier) {
    const DeviceClass *class = copier->class;
    double moving = rows_seconds(moved, class, copier->touched) +
                    moved->bytes / curve_at(&class->memory_bandwidth, copier->touched);
    return moved->moves * class->copy + fmax(moving, moved->combining);
}

/* Returns the seconds of the copiers' traffic up to their next communication step, on the processor
 * that takes longest. The times of devices that share a processor add up. */
static double turn_seconds(const Plan *plan, Copier *copiers, int count) {
    double longest = 0;
    for (int i = 0; i < count; i++) {
        Moved moved = moved_until(plan, copiers[i].class, copiers[i].part, &copiers[i].step);
        copiers[i].seconds = moved_seconds(&moved, &copiers[i]) / copiers[i].sharing;
    }
    for (int i = 0; i < count; i++) {
        double seconds = 0;
        for (int k = 0; k < count; k++)
            seconds += copiers[k].processor == copiers[i].processor ? copiers[k].seconds : 0;
        longest = seconds > longest ? seconds : longest;
    }
    return longest;
}

static bool any_going(const Copier *copiers, int count) {
    for (int i = 0; i < count; i++)
        if (copiers[i].step >= 0) return true;
    return false;
}

double moving_seconds(const Cluster *cluster, const Plan *plan) {
    Copier copiers[MOST_DEVICES];
    double seconds = 0;
    int count = 0;
    for (int i = 0; i < plan->device_count && i < MOST_DEVICES; i++) {
        const DeviceClass *class = cluster_class(cluster, plan->devices[i]);
        if (class && class->memory_bandwidth.count)
            copiers[count++] = copier_of(cluster, plan, plan->devices[i]);
    }
    while (any_going(copiers, count)) seconds += turn_seconds(plan, copiers, count);
    return seconds;
}

double conversion_seconds(const Cluster *cluster, const Plan *plan) {
    return plan_seconds(plan) + moving_seconds(cluster, plan);
}
