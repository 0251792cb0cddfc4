/* Runs conversions between layouts: goes through the tables of <hetu/reshard.h>, and hands each
 * step to a channel (exchange/channel.h). */
#include "exchange/channel.h"
#include "exchange/copy_boxes.h"
#include "transport/watchdog/watchdog.h"

/* Returns the device's part of a plan; NULL: it has none. */
static const ht_reshard_device *find_device(const ht_reshard *plan, int device) {
    int low = 0, high = plan->device_count - 1;
    while (low <= high) {
        int middle = (low + high) / 2;
        if (plan->device[middle].device == device) return &plan->device[middle];
        if (plan->device[middle].device < device) low = middle + 1;
        else high = middle - 1;
    }
    return NULL;
}

static void communicate(const Channel *channel, const ChannelRun *run,
                        const ht_reshard_step *step) {
    watchdog_begin_wait();
    channel->communicate(run, step);
    watchdog_end_wait();
}

/* Returns a device's replica group and sets *place to its index there. Returns NULL if the device
 * is in no group (*place -1), or if the plan has no groups (*place is the device). */
static const int *find_replica_group(const ht_reshard *plan, int device, int *place) {
    for (int i = 0; plan->replica_group && i < plan->replica_group_count * plan->replica_group_size;
         i++)
        if (plan->replica_group[i] == device) {
            *place = i % plan->replica_group_size;
            return plan->replica_group + (i - *place);
        }
    *place = plan->replica_group ? -1 : device;
    return NULL;
}

ChannelRun channel_run(const ht_reshard *plan, const ht_pipeline *pipeline, int position,
                       int rank) {
    int place;
    bool placed = plan->kind >= 0 && pipeline;
    bool mine = plan->kind < 0 || (pipeline && pipeline->kind == plan->kind);
    const int *replica_group = find_replica_group(plan, placed ? position : rank, &place);
    return (ChannelRun){.plan = plan,
                        .pipeline = placed ? pipeline : NULL,
                        .replica_group = replica_group,
                        .part = mine ? find_device(plan, place) : NULL};
}

ChannelRun channel_replica_group_run(const ht_reshard *plan, const ht_pipeline *pipeline,
                                     int replica_group) {
    const int *own = plan->replica_group
                         ? plan->replica_group + (ptrdiff_t)replica_group * plan->replica_group_size
                         : NULL;
    return (ChannelRun){
        .plan = plan, .pipeline = plan->kind >= 0 ? pipeline : NULL, .replica_group = own};
}

void channel_carry_out(const ChannelRun *run) {
    const Channel *channel = channel_of_device();
    if (!run->part) return;
    if (channel->begin) channel->begin(run);
    for (int s = 0; s < run->part->step_count; s++) {
        const ht_reshard_step *step = &run->part->step[s];
        if (step->verb > HT_EXCHANGE)
            ht_fail("%s: a step of unknown kind %d; the program and the library are of different "
                    "versions",
                    run->plan->name, (int)step->verb);
        if (channel_communicates(step)) communicate(channel, run, step);
        else channel->move(run, step);
    }
    if (channel->end) channel->end(run);
}

void ht_reshard_run_all(const ht_reshard *plan, int device, const void *const *from,
                        void *const *to, void *scratch) {
    ChannelRun run = channel_run(plan, NULL, 0, device);
    run.from = from;
    run.to = to;
    run.scratch = scratch;
    channel_carry_out(&run);
}

void ht_reshard_run(const ht_reshard *plan, int device, const void *from, void *to, void *scratch) {
    ht_reshard_run_all(plan, device, &from, &to, scratch);
}

int64_t ht_reshard_scratch(const ht_reshard *plan, int device) {
    const ht_reshard_device *part = channel_run(plan, NULL, 0, device).part;
    return part ? part->scratch : 0;
}

static int64_t count_blocks(const ht_block *blocks, int count) {
    int64_t sum = 0;
    for (int i = 0; i < count; i++) sum += blocks[i].count;
    return sum;
}

/* Returns how many elements a device receives in a step, as rings and chains move them. */
static int64_t step_received(const ht_reshard *plan, const ht_reshard_step *step, int device) {
    if (step->verb == HT_EXCHANGE) return count_blocks(step->receive, step->receive_count);
    if (step->move_count) return 0;
    const ht_group *group = &plan->group[step->group];
    int64_t n = group->count, i = channel_position(group, device),
            all = count_blocks(step->send, step->send_count);
    switch (step->verb) {
    case HT_ALL_REDUCE: return 2 * (n - 1) * all * (i + 1) / n - 2 * (n - 1) * all * i / n;
    case HT_REDUCE_SCATTER: return (n - 1) * all * (i + 1) / n - (n - 1) * all * i / n;
    case HT_ALL_GATHER: return count_blocks(step->receive, step->receive_count) - all;
    case HT_REDUCE: return i < n - 1 ? all : 0;
    default: return count_blocks(step->receive, step->receive_count);
    }
}

int64_t ht_reshard_received(const ht_reshard *plan, int device) {
    const ht_reshard_device *part = channel_run(plan, NULL, 0, device).part;
    int64_t bytes = 0;
    for (int s = 0; part && s < part->step_count; s++)
        bytes += step_received(plan, &part->step[s], part->device) *
                 (int64_t)ht_dtype_bytes(part->step[s].dtype);
    return bytes;
}
