/* Loads of a plan: what each device sends and receives. */
#include "reshard/planner.h"

#include <string.h>

int64_t segment_bytes(const Plan *plan, const Segment *segment) { return (segment->hi - segment->lo) * task_element(plan, segment->task); }

int64_t segments_bytes(const Plan *plan, const Segments *segments)
{
    int64_t bytes = 0;
    for (int i = 0; i < segments->count; i++)
        bytes += segment_bytes(plan, &segments->at[i]);
    return bytes;
}

int segments_element(const Plan *plan, const Segments *lists, int count)
{
    int least = 8;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < lists[i].count; k++) {
            int element = task_element(plan, lists[i].at[k].task);
            least = element < least ? element : least;
        }
    return least;
}

/* The sum; INT64_MAX where it is more. */
static int64_t added(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static void count_moved(Plan *plan, int device, int64_t received, int64_t sent)
{
    int slot = plan_slot(plan, device);
    plan->received[slot] = added(plan->received[slot], received);
    plan->sent[slot] = added(plan->sent[slot], sent);
}

/* Share i of `total` bytes in n parts, whole elements each. */
static int64_t even_share(__int128 total, int element, int i, int n)
{
    __int128 count = total / element;
    return (int64_t)(count * (i + 1) / n - count * i / n) * element;
}

/* What the members of a collective receive and send, as rings and chains move it. */
static void count_collective(Plan *plan, const Step *step)
{
    int n = step->group.count, parts = step_part_count(step), element = segments_element(plan, step->parts, parts);
    int64_t bytes = 0;
    for (int i = 0; i < parts; i++)
        bytes += segments_bytes(plan, &step->parts[i]);
    for (int i = 0; i < n; i++) {
        int64_t received = 0, sent = 0;
        if (step->verb == HT_ALL_REDUCE)
            received = sent = even_share((__int128)bytes * 2 * (n - 1), element, i, n);
        else if (step->verb == HT_REDUCE_SCATTER) {
            received = bytes - segments_bytes(plan, &step->parts[(i + n - 1) % n]);
            sent = bytes - segments_bytes(plan, &step->parts[i]);
        } else if (step->verb == HT_ALL_GATHER) {
            received = bytes - segments_bytes(plan, &step->parts[i]);
            sent = bytes - segments_bytes(plan, &step->parts[(i + 1) % n]);
        } else if (step->verb == HT_BROADCAST) {
            received = i ? bytes : 0;
            sent = i < n - 1 ? bytes : 0;
        } else {
            received = i < n - 1 ? bytes : 0;
            sent = i ? bytes : 0;
        }
        count_moved(plan, step->group.at[i], received, sent);
    }
}

static void count_step(Plan *plan, const Step *step)
{
    for (int i = 0; i < step->messages.count; i++) {
        const Message *message = &step->messages.at[i];
        count_moved(plan, message->sender, 0, message->bytes);
        count_moved(plan, message->receiver, message->bytes, 0);
    }
    if (step->verb != HT_ALL_TO_ALL && step->verb != HT_EXCHANGE)
        count_collective(plan, step);
}

void plan_count(Planner *planner)
{
    size_t size = sizeof(int64_t) * (size_t)planner->plan->device_count;
    memset(planner->plan->received, 0, size);
    memset(planner->plan->sent, 0, size);
    for (int s = planner->first; s < planner->plan->steps.count; s++)
        count_step(planner->plan, &planner->plan->steps.at[s]);
}

int64_t plan_bytes(const Plan *plan)
{
    int64_t total = 0;
    for (int i = 0; i < plan->device_count; i++)
        total = added(total, plan->received[i]);
    return total;
}

int64_t plan_bytes_received(const Plan *plan, int device)
{
    int slot = plan_slot(plan, device);
    return slot < 0 ? 0 : plan->received[slot];
}

int64_t plan_bytes_sent(const Plan *plan, int device)
{
    int slot = plan_slot(plan, device);
    return slot < 0 ? 0 : plan->sent[slot];
}
