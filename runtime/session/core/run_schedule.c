/* Runs a schedule's rows, and decides when messages begin and end.
 * compiler/schedule/gpipe_1f1b_zero_bubble.c decides the order of rows. */
#include "session/core/program.h"

#include "base/fail.h"
#include "base/memory.h"
#include "exchange/async_exchange.h"
#include "session/control/pace.h"
#include "session/observe/hooks.h"

#include <stdio.h>
#include <stdlib.h>

enum { SHOWN = 64 }; // characters of a row's name in messages

/* A message: a transfer for a micro-batch. Time r is before row r, time row_count the end. */
typedef struct StageMessage {
    AsyncExchange async;
    int begins, ends;            // times; begins -1: begins at ht_ready or ht_begin_ahead
    struct StageMessage *before; // message of the same transfer, previous micro-batch; NULL: none
} StageMessage;

typedef enum TransferEnd { BEGINS, ENDS, TURNS } TransferEnd; // TURNS: number of members before it

/* Gradient transfers, which run once a step in the order of the role's list, and prefetches. */
struct AsyncExchanges {
    const ht_image_role *role;
    int count;
    int *number;            // by gradient transfer: index among the role's transfers
    StageMessage **message; // by gradient transfer; NULL: this rank takes no part
    int *awaited;           // by the role's transfer: calls of ht_ready still missing in this step
    int next;               // gradient transfer that begins next
    StageMessage **ahead;   // by the role's transfer: its prefetch; NULL: this rank has none
};

struct Schedule {
    const ht_schedule *rows;
    const ht_image_role *role;
    const ht_pipeline *pipeline;
    char *kept; // memory of the slots, after the arena
    StageMessage *messages;
    int message_count;
    int *first[TURNS];           // by row, then for the end: index in `order` of the first message
    StageMessage **order[TURNS]; // messages, sorted by the row before which they begin or end
    struct AsyncExchanges *async_exchanges;
    char (*shown)[SHOWN]; // by row: "backward of visit 1, micro-batch 3"
};

/* ---- memory ---- */

int64_t schedule_bytes(const ht_image_role *role, const ht_schedule *rows) {
    return memory_aligned(role->arena_bytes) + rows->slot_count * memory_aligned(role->slot_bytes);
}

static char *slot_at(const Schedule *schedule, int slot) {
    return slot < 0 ? NULL : schedule->kept + slot * memory_aligned(schedule->role->slot_bytes);
}

/* ---- when transfers begin and end ---- */

/* State of a slot (activation buffer) while scan_rows goes through the rows. */
typedef struct SlotUse {
    int owner; // micro-batch whose values the slot holds; -1: none
    int left;  // first row after the last row that used the slot
    int guest_count;
    StageMessage **occupant; // guest_count sends of the owner's values, which read the slot
} SlotUse;

/* State of the pass over the rows. */
typedef struct Scan {
    const ht_image *image;
    const ht_worker *worker;
    Schedule *schedule;
    int tags;              // first message tag of this program
    SlotUse *slot;         // by slot
    StageMessage **of;     // by transfer and micro-batch; NULL: not added yet
    StageMessage **latest; // by transfer: the message added last
} Scan;

/* Returns the index of a transfer's plan in the image. Ends the program if there is none. */
static int plan_number(const ht_image *image, const ht_transfer *transfer) {
    for (int p = 0; p < image->plan_count; p++)
        if (image->plan[p] == transfer->plan) return p;
    ht_fail("%s: the program does not have the plan of a transfer; the program and the library are "
            "of different versions",
            transfer->where);
}

/* Sets a transfer's source, target and scratch buffers for a row's micro-batch and slot. */
static void find_buffers(const Scan *scan, const ht_transfer *transfer, const ht_row *row,
                         ChannelRun *run) {
    int count = transfer->plan->tensor_count;
    ht_worker worker = *scan->worker;
    const void **from = memory_array(count, sizeof *from);
    void **to = memory_array(count, sizeof *to);
    worker.kept = slot_at(scan->schedule, row->slot);
    worker.microbatch = row->microbatch;
    for (int t = 0; t < count; t++) {
        from[t] = ht_turn(&worker, transfer->from[t], transfer->turn[t]);
        to[t] = ht_at(&worker, transfer->to[t]);
    }
    run->from = from;
    run->to = to;
    run->scratch = ht_at(&worker, transfer->scratch);
}

static bool runs_once(const ht_transfer *transfer) { return transfer->queue == HT_QUEUE_GRADIENTS; }

static StageMessage **message_of(const Scan *scan, int number, int microbatch) {
    int64_t wide = scan->schedule->pipeline->microbatches;
    return &scan->of[number * wide +
                     (runs_once(&scan->schedule->role->transfers[number]) ? 0 : microbatch)];
}

/* Returns the message tag of a transfer: by number for gradients, else by plan. Gradients have
 * their own queue, so both kinds may have equal tags. */
static int tag_of(const Scan *scan, const ht_transfer *transfer) {
    return scan->tags +
           (runs_once(transfer) ? transfer->number : plan_number(scan->image, transfer));
}

/* Returns a new message of transfer `number` for the micro-batch of `row`, which begins before row
 * `begins` or later (settle). NULL: this device takes no part in the transfer. */
static StageMessage *add_message(Scan *scan, int number, const ht_row *row, int begins) {
    const ht_transfer *transfer = &scan->schedule->role->transfers[number];
    const ht_worker *worker = scan->worker;
    StageMessage *before = scan->latest[number],
                 *message = &scan->schedule->messages[scan->schedule->message_count];
    ChannelRun run =
        channel_run(transfer->plan, worker->pipeline, worker->position, worker->device);
    if (!run.part) return NULL;
    find_buffers(scan, transfer, row, &run);
    *message = (StageMessage){.begins = begins, .ends = -1, .before = before};
    message->async = (AsyncExchange){.run = run,
                                     .queue = transfer->queue,
                                     .tag = tag_of(scan, transfer),
                                     .where = transfer->where};
    scan->schedule->message_count++;
    scan->latest[number] = *message_of(scan, number, row->microbatch) = message;
    return message;
}

/* Makes a message end before a row, unless it ends earlier. */
static void end_before(StageMessage *message, int row) {
    if (message->ends < 0) message->ends = row;
}

/* Makes a message that fills a slot wait for unfinished sends of the slot's micro-batch. */
static void follow_occupants(StageMessage *message, const SlotUse *slot) {
    AsyncExchange *async = &message->async;
    async->after = memory_array(slot->guest_count, sizeof(AsyncExchange *));
    for (int g = 0; g < slot->guest_count; g++)
        if (slot->occupant[g]->ends < 0 || slot->occupant[g]->ends >= message->begins)
            async->after[async->after_count++] = &slot->occupant[g]->async;
}

/* Sets the target of a transfer from this device to itself: the slot of the receiving row. The
 * transfer begins once the slot is free. */
static void redirect(const Scan *scan, StageMessage *message, const ht_transfer *transfer,
                     const ht_row *row, const SlotUse *slot) {
    ChannelRun here = message->async.run;
    find_buffers(scan, transfer, row, &here);
    free((void *)here.from);
    free((void *)message->async.run.to);
    message->async.run.to = here.to;
    if (slot && slot->left > message->begins) message->begins = slot->left;
}

/* Adds the receives of a row. Each begins once the row's slot is free. A transfer from this device
 * to itself begins after the sending row, too. */
static void begin_receives(Scan *scan, int number, const ht_part *part) {
    const ht_row *row = &scan->schedule->rows->row[number];
    SlotUse *slot = row->slot < 0 ? NULL : &scan->slot[row->slot];
    for (int i = 0; i < part->receive_count; i++) {
        const ht_transfer *transfer = &scan->schedule->role->transfers[part->receive[i]];
        StageMessage *message =
            runs_once(transfer) ? NULL : *message_of(scan, part->receive[i], row->microbatch);
        if (runs_once(transfer)) continue;
        if (message) redirect(scan, message, transfer, row, slot);
        else message = add_message(scan, part->receive[i], row, slot ? slot->left : number);
        if (message && slot && slot->owner != row->microbatch) follow_occupants(message, slot);
    }
}

static void add_occupant(SlotUse *slot, StageMessage *message) {
    if (slot && message) slot->occupant[slot->guest_count++] = message;
}

/* Gives a slot to a micro-batch. Sends of the previous micro-batch end before `row`. */
static void move_in(SlotUse *slot, int microbatch, int row) {
    if (slot->owner == microbatch) return;
    for (int g = 0; g < slot->guest_count; g++) end_before(slot->occupant[g], row);
    slot->guest_count = 0;
    slot->owner = microbatch;
}

static void scan_row(Scan *scan, int number) {
    const ht_row *row = &scan->schedule->rows->row[number];
    const ht_part *part = &scan->schedule->role->parts[row->part];
    SlotUse *slot = row->slot < 0 ? NULL : &scan->slot[row->slot];
    begin_receives(scan, number, part);
    if (slot) move_in(slot, row->microbatch, number);
    for (int i = 0; i < part->receive_count; i++) {
        StageMessage *message = *message_of(scan, part->receive[i], row->microbatch);
        if (message) end_before(message, number);
    }
    for (int i = 0; i < part->send_count; i++) {
        const ht_transfer *transfer = &scan->schedule->role->transfers[part->send[i]];
        if (*message_of(scan, part->send[i], row->microbatch))
            ht_fail("%s: a transfer begins twice for a micro-batch; this is a fault of hetucc: "
                    "report it with the source and the strategy",
                    transfer->where);
        add_occupant(slot, add_message(scan, part->send[i], row, number + 1));
    }
    if (slot) slot->left = number + 1;
}

static int row_of(const StageMessage *message, TransferEnd turn) {
    return turn == BEGINS ? message->begins : message->ends;
}

/* Returns a message that `message` waits for. Number -1: the previous message of the same
 * transfer, or NULL; from 0 on: sends that still read the target memory. */
static StageMessage *awaited(const StageMessage *message, int number) {
    return number < 0 ? message->before : (StageMessage *)message->async.after[number];
}

/* Delays messages so that each begins no earlier than any message that it waits for. A wait for a
 * message that has not begun would end at once: `ended` is still set from the last step. */
static void settle(Schedule *schedule) {
    for (bool moved = true; moved;) {
        moved = false;
        for (StageMessage *c = schedule->messages; c < schedule->messages + schedule->message_count;
             c++)
            for (int a = -1; a < c->async.after_count; a++) {
                const StageMessage *first = awaited(c, a);
                if (!first || first->begins <= c->begins) continue;
                c->begins = first->begins;
                moved = true;
                if (c->begins > schedule->rows->row_count || (c->ends >= 0 && c->begins > c->ends))
                    ht_fail("%s: a transfer would end before it begins; this is a fault of hetucc: "
                            "report it with the source and the strategy",
                            c->async.where);
            }
    }
}

/* Returns whether a message waits for one of the messages [from, end). */
static bool waits_for(const StageMessage *message, StageMessage *const *from,
                      StageMessage *const *end) {
    for (int a = -1; a < message->async.after_count; a++)
        for (StageMessage *const *other = from; other < end; other++)
            if (*other == awaited(message, a)) return true;
    return false;
}

/* Sorts the messages that begin before one row so that each follows the messages that it waits
 * for (topological order). Ends the program at a cycle. */
static void order_row(StageMessage **from, StageMessage **end) {
    for (; from < end; from++) {
        StageMessage **free = from;
        while (free < end && waits_for(*free, from, end)) free++;
        if (free == end)
            ht_fail("%s: transfers wait for each other; this is a fault of hetucc: report it with "
                    "the source and the strategy",
                    (*from)->async.where);
        StageMessage *taken = *free;
        for (; free > from; free--) *free = free[-1];
        *from = taken;
    }
}

/* Fills first[turn] and order[turn]: messages sorted by `begins`, or by `ends` (counting sort). */
static void sort_messages(Schedule *schedule, TransferEnd turn) {
    int rows = schedule->rows->row_count,
        *first = schedule->first[turn] = memory_array(rows + 3, sizeof(int));
    schedule->order[turn] = memory_array(schedule->message_count, sizeof(StageMessage *));
    for (int c = 0; c < schedule->message_count; c++)
        first[row_of(&schedule->messages[c], turn) + 2]++;
    first[1] = 0;
    for (int r = 0; r <= rows; r++) first[r + 2] += first[r + 1];
    for (int c = 0; c < schedule->message_count; c++)
        if (row_of(&schedule->messages[c], turn) >= 0)
            schedule->order[turn][first[row_of(&schedule->messages[c], turn) + 1]++] =
                &schedule->messages[c];
}

/* Adds the gradient transfers, which run once a step, and the prefetches. */
static void list_async_exchanges(Scan *scan) {
    const ht_image_role *role = scan->schedule->role;
    struct AsyncExchanges *async_exchanges = scan->schedule->async_exchanges =
        memory_array(1, sizeof *async_exchanges);
    static const ht_row outside = {.slot = -1};
    *async_exchanges = (struct AsyncExchanges){
        .role = role,
        .number = memory_array(role->transfer_count, sizeof(int)),
        .message = memory_array(role->transfer_count, sizeof(StageMessage *)),
        .awaited = memory_array(role->transfer_count, sizeof(int)),
        .ahead = memory_array(role->transfer_count, sizeof(StageMessage *))};
    for (int t = 0; t < role->transfer_count; t++) {
        if (role->transfers[t].queue == HT_QUEUE_AHEAD)
            async_exchanges->ahead[t] = add_message(scan, t, &outside, -1);
        if (!runs_once(&role->transfers[t])) continue;
        StageMessage *message = add_message(scan, t, &outside, -1);
        if (message) message->begins = -1;
        async_exchanges->message[async_exchanges->count] = message;
        async_exchanges->number[async_exchanges->count++] = t;
    }
}

static void scan_rows(Scan *scan) {
    Schedule *schedule = scan->schedule;
    list_async_exchanges(scan);
    for (int s = 0; s < schedule->rows->slot_count; s++)
        scan->slot[s] = (SlotUse){
            .owner = -1,
            .occupant = memory_array(schedule->role->transfer_count, sizeof(StageMessage *))};
    for (int r = 0; r < schedule->rows->row_count; r++) scan_row(scan, r);
    for (int c = 0; c < schedule->message_count; c++)
        if (schedule->messages[c].async.queue != HT_QUEUE_AHEAD)
            end_before(&schedule->messages[c], schedule->rows->row_count);
    for (int s = 0; s < schedule->rows->slot_count; s++) free(scan->slot[s].occupant);
}

/* Names the rows: "backward of visit 1, micro-batch 3", or the part alone if it runs once. */
static void name_rows(Schedule *schedule) {
    const ht_schedule *rows = schedule->rows;
    int *times = memory_array(schedule->role->part_count, sizeof *times);
    schedule->shown = memory_array(rows->row_count, sizeof *schedule->shown);
    for (int r = 0; r < rows->row_count; r++) times[rows->row[r].part]++;
    for (int r = 0; r < rows->row_count; r++) {
        const char *name = schedule->role->parts[rows->row[r].part].name;
        if (times[rows->row[r].part] > 1)
            snprintf(schedule->shown[r], SHOWN, "%s, micro-batch %d", name,
                     rows->row[r].microbatch);
        else snprintf(schedule->shown[r], SHOWN, "%s", name);
    }
    free(times);
}

Schedule *schedule_open(const ht_image *image, const ht_image_role *role, const ht_worker *worker,
                        int tags) {
    Schedule *schedule = memory_array(1, sizeof *schedule);
    *schedule = (Schedule){.rows = image->schedule[image->schedule_of[worker->device]],
                           .role = role,
                           .pipeline = worker->pipeline,
                           .kept = worker->arena + memory_aligned(role->arena_bytes)};
    int64_t wide = schedule->pipeline->microbatches * role->transfer_count;
    schedule->messages = memory_array(wide, sizeof(StageMessage));
    Scan scan = {.image = image,
                 .worker = worker,
                 .schedule = schedule,
                 .tags = tags,
                 .slot = memory_array(schedule->rows->slot_count, sizeof(SlotUse)),
                 .of = memory_array(wide, sizeof(StageMessage *)),
                 .latest = memory_array(role->transfer_count, sizeof(StageMessage *))};
    scan_rows(&scan);
    settle(schedule);
    sort_messages(schedule, BEGINS);
    sort_messages(schedule, ENDS);
    for (int r = 0; r <= schedule->rows->row_count; r++)
        order_row(schedule->order[BEGINS] + schedule->first[BEGINS][r],
                  schedule->order[BEGINS] + schedule->first[BEGINS][r + 1]);
    name_rows(schedule);
    free(scan.slot);
    free(scan.of);
    free(scan.latest);
    return schedule;
}

void schedule_close(Schedule *schedule) {
    for (int c = 0; schedule && c < schedule->message_count; c++) {
        async_exchange_forget(&schedule->messages[c].async);
        free(schedule->messages[c].async.after);
        free((void *)schedule->messages[c].async.run.from);
        free((void *)schedule->messages[c].async.run.to);
    }
    for (int turn = 0; schedule && turn < TURNS; turn++) {
        free(schedule->first[turn]);
        free(schedule->order[turn]);
    }
    if (schedule) {
        free(schedule->messages);
        free(schedule->shown);
        free(schedule->async_exchanges->number);
        free(schedule->async_exchanges->message);
        free(schedule->async_exchanges->awaited);
        free(schedule->async_exchanges->ahead);
        free(schedule->async_exchanges);
    }
    free(schedule);
}

/* ---- running ---- */

/* Calls `act` for the messages that begin (BEGINS) or end (ENDS) before a row. */
static void cross(const Schedule *schedule, TransferEnd turn, int row,
                  void (*act)(AsyncExchange *)) {
    for (int c = schedule->first[turn][row]; c < schedule->first[turn][row + 1]; c++)
        act(&schedule->order[turn][c]->async);
}

/* Waits until an exchange has ended, and reports the wait to the trace. */
static void end_async_exchange(AsyncExchange *async) {
    static const char *const waits[HT_QUEUES] = {
        "wait for a message", "wait for a sum of gradients", "wait for a parameter"};
    async_exchange_end(async);
    hooks_mark(HT_STREAM_WAITING, waits[async->queue], async->where);
}

/* Begins gradient transfers in order, up to the first that still misses an ht_ready call. */
static void take_off(struct AsyncExchanges *async_exchanges) {
    for (; async_exchanges->next < async_exchanges->count &&
           !async_exchanges->awaited[async_exchanges->number[async_exchanges->next]];
         async_exchanges->next++)
        if (async_exchanges->message[async_exchanges->next])
            async_exchange_begin(&async_exchanges->message[async_exchanges->next]->async);
}

static void begin_step(struct AsyncExchanges *async_exchanges) {
    async_exchanges->next = 0;
    for (int i = 0; i < async_exchanges->count; i++)
        async_exchanges->awaited[async_exchanges->number[i]] =
            async_exchanges->role->transfers[async_exchanges->number[i]].ready;
    take_off(async_exchanges);
}

void ht_ready(const ht_worker *r, int number) {
    if (r->microbatch != r->pipeline->microbatches - 1) return;
    r->async_exchanges->awaited[number]--;
    take_off(r->async_exchanges);
}

void ht_begin_ahead(const ht_worker *r, int number) {
    if (r->async_exchanges->ahead[number])
        async_exchange_begin(&r->async_exchanges->ahead[number]->async);
}

void ht_end_ahead(const ht_worker *r, int number) {
    if (r->async_exchanges->ahead[number])
        end_async_exchange(&r->async_exchanges->ahead[number]->async);
}

/* Runs a row: calls its part's function, if there is one, for the row's micro-batch. */
static void run_row(const Schedule *schedule, const ht_row *row, ht_worker *worker) {
    const ht_part *part = &schedule->role->parts[row->part];
    worker->microbatch = row->microbatch;
    worker->row = schedule->pipeline->first_row + row->microbatch * schedule->pipeline->rows;
    worker->kept = slot_at(schedule, row->slot);
    if (!part->run) return;
    hooks_phase(part);
    pace_begin();
    part->run(worker);
    pace_end();
}

void schedule_run(const Schedule *schedule, ht_worker *worker) {
    worker->async_exchanges = schedule->async_exchanges;
    begin_step(schedule->async_exchanges);
    for (int r = 0; r <= schedule->rows->row_count; r++) {
        fail_part(r < schedule->rows->row_count ? schedule->shown[r] : NULL);
        cross(schedule, BEGINS, r, async_exchange_begin);
        cross(schedule, ENDS, r, end_async_exchange);
        if (r < schedule->rows->row_count) run_row(schedule, &schedule->rows->row[r], worker);
    }
}
