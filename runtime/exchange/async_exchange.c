/* Threads that drive messages beside computing on CPUs, keep the order of exchanges of one tag, and
 * limit the memory of reductions. */
#include "exchange/async_exchange.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/c_locale.h"
#include "base/timeline.h"
#include "exchange/collective_rounds.h"
#include "exchange/staging.h"
#include "transport/post.h"
#include "transport/watchdog/watchdog.h"
#include "transport/world.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum {
    YIELDS = 8,        // passes without progress before the first sleep
    FIRST_NAP = 20000, // nanoseconds
    LONGEST_NAP = 200000,
    CHECK_EVERY = 1000, // passes without progress between two checks of the other ranks
    /* Most bytes received at once for reductions by all running exchanges of HT_QUEUE_GRADIENTS. */
    MOST_ROOM = 1 << 22
};

/* State of an async exchange. */
typedef enum Progress {
    PROGRESS_WAITING, // the device has not finished earlier work
    PROGRESS_BETWEEN, // the next step begins
    PROGRESS_MOVING,  // the device runs local moves
    PROGRESS_LOADING, // sent data are copied from the device
    PROGRESS_EXCHANGING,
    PROGRESS_STORING, // received data are copied to the device
    PROGRESS_OVER
} Progress;

/* Progress of one run of an async exchange. */
typedef struct ExchangeState {
    bool begun;            // earlier exchanges have ended, and there is memory for reductions
    double since;          // start of the run, for the timeline
    int64_t receive_bytes; // most bytes that a round receives for reductions
    Progress progress;
    void *mark; // the device's work before the exchange (ChannelMemory.mark); NULL: none
    const ht_reshard_step *step, *end; // the current or next step; the end of the steps
    Staged staged;                     // for device memory: the step's copy in host memory
    ChannelRun on_host;                // for device memory: the run with its buffer on the host
    Rounds rounds;
    int post_count; // messages of the round in flight
    Post *posts;
} ExchangeState;

typedef struct Queue {
    int lane;
    pthread_t thread;
    pthread_cond_t filled;
    AsyncExchange *first; // exchanges that have not ended, in the order in which they began
    bool closing;
} Queue;

static struct {
    bool open;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    Queue queue[LANES];
} async_exchanges = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

static const ChannelMemory *device_memory(void) { return channel_of_device()->memory; }

/* ---- rounds ---- */

/* Begins, in `posts`, the transfers that have bytes and are with other ranks. `like` has their tag
 * and direction. Returns how many were begun. */
static int begin_posts(const Queue *queue, Post *posts, const HostTransfer *transfers, int count,
                       Post like) {
    int begun = 0;
    for (int i = 0; i < count; i++)
        if (transfers[i].bytes && transfers[i].rank != world_rank()) {
            posts[begun] = like;
            posts[begun].transfer = transfers[i];
            post_begin(queue->lane, &posts[begun++]);
        }
    return begun;
}

static void begin_round(const Queue *queue, const AsyncExchange *async, ExchangeState *state) {
    Rounds *r = &state->rounds;
    state->posts = memory_array(r->send_count + r->receive_count, sizeof *state->posts);
    state->post_count =
        begin_posts(queue, state->posts, r->receives, r->receive_count, (Post){.tag = async->tag});
    state->post_count += begin_posts(queue, state->posts + state->post_count, r->sends,
                                     r->send_count, (Post){.tag = async->tag, .sends = true});
    transfer_copy_own(world_rank(), r->sends, r->send_count, r->receives, r->receive_count);
}

/* Makes progress on the messages of a round; returns how many have completed in this call. */
static int look_after_posts(const Queue *queue, ExchangeState *state) {
    int kept = 0, count = state->post_count;
    for (int i = 0; i < count; i++)
        if (!post_done(queue->lane, &state->posts[i])) state->posts[kept++] = state->posts[i];
    state->post_count = kept;
    return count - kept;
}

/* ---- steps: each function advances without waiting, and returns whether it made progress ---- */

static bool enter(ExchangeState *state, Progress progress) {
    state->progress = progress;
    return true;
}

static bool wait_for_device(const Queue *queue, AsyncExchange *async, ExchangeState *state) {
    (void)queue, (void)async;
    return (!state->mark || device_memory()->passed(state->mark)) && enter(state, PROGRESS_BETWEEN);
}

static void load(void *lane, void *to, const void *from, int64_t bytes) {
    device_memory()->copy(*(int *)lane, to, from, bytes, false);
}

static void store(void *lane, void *to, const void *from, int64_t bytes) {
    device_memory()->copy(*(int *)lane, to, from, bytes, true);
}

static bool begin_moves(const Queue *queue, AsyncExchange *async, ExchangeState *state) {
    if (!device_memory()) {
        channel_move_on_host(&async->run, state->step++);
        return true;
    }
    device_memory()->move(queue->lane, &async->run, state->step);
    return enter(state, PROGRESS_MOVING);
}

static bool begin_exchange(const Queue *queue, AsyncExchange *async, ExchangeState *state) {
    if (!device_memory()) {
        state->rounds = rounds_open(&async->run, state->step);
        return enter(state, PROGRESS_EXCHANGING);
    }
    int lane = queue->lane;
    state->staged = staging_open(state->step);
    state->on_host = staging_run(&async->run, async->kept);
    staging_load(&state->staged, &state->on_host, &async->run, state->step,
                 (StagingCopy){load, &lane});
    return enter(state, PROGRESS_LOADING);
}

static bool begin_step(const Queue *queue, AsyncExchange *async, ExchangeState *state) {
    if (state->step == state->end) return enter(state, PROGRESS_OVER);
    return channel_communicates(state->step) ? begin_exchange(queue, async, state)
                                             : begin_moves(queue, async, state);
}

/* Returns whether the device has finished the step; if so, continues with the next step. */
static bool end_device(const Queue *queue, AsyncExchange *async, ExchangeState *state) {
    (void)async;
    if (!device_memory()->idle(queue->lane)) return false;
    staging_close(&state->staged);
    state->step++;
    return enter(state, PROGRESS_BETWEEN);
}

static bool end_load(const Queue *queue, AsyncExchange *async, ExchangeState *state) {
    (void)async;
    if (!device_memory()->idle(queue->lane)) return false;
    state->rounds = rounds_open(&state->on_host, &state->staged.step);
    return enter(state, PROGRESS_EXCHANGING);
}

static bool end_exchange(const Queue *queue, AsyncExchange *async, ExchangeState *state) {
    int lane = queue->lane;
    if (!device_memory()) {
        state->step++;
        return enter(state, PROGRESS_BETWEEN);
    }
    staging_store(&state->staged, &state->on_host, &async->run, state->step,
                  (StagingCopy){store, &lane});
    return enter(state, PROGRESS_STORING);
}

static bool exchange(const Queue *queue, AsyncExchange *async, ExchangeState *state) {
    bool moved = look_after_posts(queue, state) > 0;
    if (state->post_count) return moved;
    free(state->posts);
    state->posts = NULL;
    if (!rounds_next(&state->rounds)) return end_exchange(queue, async, state);
    begin_round(queue, async, state);
    return true;
}

/* Advances an async exchange without blocking; returns false if it made no progress. */
static bool advance(const Queue *queue, AsyncExchange *async) {
    static bool (*const advance[])(const Queue *, AsyncExchange *, ExchangeState *) = {
        [PROGRESS_WAITING] = wait_for_device, [PROGRESS_BETWEEN] = begin_step,
        [PROGRESS_MOVING] = end_device,       [PROGRESS_LOADING] = end_load,
        [PROGRESS_EXCHANGING] = exchange,     [PROGRESS_STORING] = end_device};
    ExchangeState *state = async->state;
    bool moved = false;
    while (state->progress != PROGRESS_OVER && advance[state->progress](queue, async, state))
        moved = true;
    return moved;
}

static bool is_over(const AsyncExchange *async) {
    return ((const ExchangeState *)async->state)->progress == PROGRESS_OVER;
}

/* ---- the thread ---- */

/* Returns whether memory for reductions, MOST_ROOM in all, suffices to begin. Gradient exchanges
 * get memory in queue order, equal on all ranks, against deadlock. The caller holds the lock. */
static bool has_room(const Queue *queue, const AsyncExchange *async) {
    int64_t taken = 0, own = ((const ExchangeState *)async->state)->receive_bytes;
    bool waits = false;
    for (const AsyncExchange *earlier = queue->first; earlier != async; earlier = earlier->next) {
        const ExchangeState *state = earlier->state;
        taken += state->receive_bytes;
        waits |= state->receive_bytes && !state->begun;
    }
    return !own || !taken || async->queue != HT_QUEUE_GRADIENTS ||
           (!waits && taken + own <= MOST_ROOM);
}

/* Returns whether an async exchange has begun, or marks it as begun if exchanges in `after` and
 * earlier ones of its tag have ended and its reductions have memory. The caller holds the lock. */
static bool may_go(const Queue *queue, AsyncExchange *async) {
    ExchangeState *state = async->state;
    for (int i = 0; !state->begun && i < async->after_count; i++)
        if (!async->after[i]->ended) return false;
    for (const AsyncExchange *earlier = queue->first; !state->begun && earlier != async;
         earlier = earlier->next)
        if (earlier->tag == async->tag) return false;
    if (!state->begun && has_room(queue, async)) {
        state->begun = true;
        state->since = timeline_keeps() ? timeline_now() : 0;
    }
    return state->begun;
}

/* Adds a finished async exchange to the timeline. */
static void note(const AsyncExchange *async) {
    const ExchangeState *state = async->state;
    if (state->since > 0)
        timeline_add(&(TimelineEvent){
            .begin = state->since,
            .end = timeline_now(),
            .name = async->run.plan->name,
            .at = async->where,
            .step = -1,
            .microbatch = -1,
            .stream = async->queue == HT_QUEUE_GRADIENTS ? HT_STREAM_SUMS : HT_STREAM_MESSAGES});
}

/* Removes a finished exchange from its queue and wakes the main thread, under the lock. */
static void finish(Queue *queue, AsyncExchange *async) {
    AsyncExchange **link = &queue->first;
    while (*link != async) link = &(*link)->next;
    *link = async->next;
    note(async);
    free(async->state);
    async->state = NULL;
    async->ended = true;
    pthread_cond_broadcast(&async_exchanges.ended);
}

/* Advances every async exchange of a queue; returns false if none made progress. The caller holds
 * the lock; pass releases the lock while it advances an exchange. */
static bool pass(Queue *queue) {
    bool moved = false;
    for (AsyncExchange *async = queue->first, *next; async; async = next) {
        if (may_go(queue, async)) {
            pthread_mutex_unlock(&async_exchanges.lock);
            moved |= advance(queue, async);
            pthread_mutex_lock(&async_exchanges.lock);
        }
        next = async->next;
        if (is_over(async)) {
            finish(queue, async);
            moved = true;
        }
    }
    return moved;
}

/* Yields or sleeps, longer with `idle`: passes in a row without progress. May check the ranks. */
static void rest(int idle) {
    long nap = FIRST_NAP;
    for (int i = YIELDS; i < idle && nap < LONGEST_NAP; i++) nap += nap / 4;
    if (idle % CHECK_EVERY == 0) world_check();
    if (idle <= YIELDS) sched_yield();
    else nanosleep(&(struct timespec){.tv_nsec = nap < LONGEST_NAP ? nap : LONGEST_NAP}, NULL);
}

static void *serve(void *argument) {
    Queue *queue = argument;
    if (device_memory()) device_memory()->attach(queue->lane);
    pthread_mutex_lock(&async_exchanges.lock);
    for (int idle = 0; !queue->closing || queue->first;) {
        if (!queue->first) {
            idle = 0;
            pthread_cond_wait(&queue->filled, &async_exchanges.lock);
        } else if (pass(queue)) {
            idle = 0;
            watchdog_report_progress();
        } else {
            pthread_mutex_unlock(&async_exchanges.lock);
            rest(++idle);
            pthread_mutex_lock(&async_exchanges.lock);
        }
    }
    pthread_mutex_unlock(&async_exchanges.lock);
    if (device_memory()) device_memory()->detach(queue->lane);
    return NULL;
}

/* Starts the thread of a queue, with all signals blocked: the main thread gets them. */
static void start(Queue *queue, int lane) {
    sigset_t all, before;
    *queue = (Queue){.lane = lane, .filled = PTHREAD_COND_INITIALIZER};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&queue->thread, NULL, serve, queue);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) ht_fail("cannot start a thread: %s", plain_error(error));
}

/* ---- from the main thread ---- */

void async_exchanges_prepare(const ChannelPlans *plans) {
    bool beside = false;
    for (int p = 0; p < plans->count; p++) beside |= plans->queues[p] != 0;
    if (async_exchanges.open || !beside) return;
    async_exchanges.open = true;
    channels_open();
    if (device_memory()) device_memory()->prepare();
    for (int lane = 0; lane < LANES; lane++) start(&async_exchanges.queue[lane], lane);
}

void async_exchanges_close(void) {
    if (!async_exchanges.open) return;
    async_exchanges.open = false;
    pthread_mutex_lock(&async_exchanges.lock);
    for (int lane = 0; lane < LANES; lane++) {
        async_exchanges.queue[lane].closing = true;
        pthread_cond_signal(&async_exchanges.queue[lane].filled);
    }
    pthread_mutex_unlock(&async_exchanges.lock);
    for (int lane = 0; lane < LANES; lane++) pthread_join(async_exchanges.queue[lane].thread, NULL);
    channels_close();
}

/* Allocates host memory for the largest step of an async exchange. */
static void *alloc_staging(const AsyncExchange *async) {
    int64_t most = 0;
    for (int s = 0; s < async->run.part->step_count; s++) {
        const ht_reshard_step *step = &async->run.part->step[s];
        Staged staged = channel_communicates(step) ? staging_open(step) : (Staged){0};
        most = staged.bytes > most ? staged.bytes : most;
        staging_close(&staged);
    }
    return device_memory()->alloc(most);
}

/* Returns a queue's lane (transport/post.h). Prefetches use the lane of pipeline messages. */
static int lane_of(ht_queue queue) {
    return queue == HT_QUEUE_AHEAD ? HT_QUEUE_STAGES : (int)queue;
}

/* Appends an async exchange to its queue and wakes the queue's thread. */
static void enqueue(Queue *queue, AsyncExchange *async) {
    pthread_mutex_lock(&async_exchanges.lock);
    AsyncExchange **link = &queue->first;
    while (*link) link = &(*link)->next;
    *link = async;
    pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&async_exchanges.lock);
}

void async_exchange_begin_on_thread(AsyncExchange *async) {
    ExchangeState *state = memory_array(1, sizeof *state);
    const ht_reshard_device *part = async->run.part;
    *state = (ExchangeState){.step = part->step,
                             .end = part->step + part->step_count,
                             .receive_bytes = rounds_room(&async->run)};
    if (device_memory() && !async->kept) async->kept = alloc_staging(async);
    if (device_memory()) state->mark = device_memory()->mark();
    async->state = state;
    async->ended = false;
    async->next = NULL;
    enqueue(&async_exchanges.queue[lane_of(async->queue)], async);
}

void async_exchange_forget_on_thread(AsyncExchange *async) {
    if (async->kept) device_memory()->free(async->kept);
    async->kept = NULL;
}

void async_exchange_end_on_thread(AsyncExchange *async) {
    watchdog_begin_wait();
    pthread_mutex_lock(&async_exchanges.lock);
    while (!async->ended) pthread_cond_wait(&async_exchanges.ended, &async_exchanges.lock);
    pthread_mutex_unlock(&async_exchanges.lock);
    watchdog_end_wait();
}

/* Counts a run, and ends the program if an exchange in `after` has another number of runs. The
 * `ended` flag of that exchange would be left from its previous run. */
static void count_run(AsyncExchange *async) {
    async->runs++;
    for (int i = 0; i < async->after_count; i++)
        if (async->after[i]->runs != async->runs)
            ht_fail("%s: a transfer begins before the one of %s, whose memory it uses; this is a "
                    "fault of hetucc: report it with the "
                    "source and the strategy",
                    async->where, async->after[i]->where);
}

void async_exchange_begin(AsyncExchange *async) {
    const char *doing = fail_doing_what();
    fail_doing(async->where);
    count_run(async);
    channel_of_device()->begin_async_exchange(async);
    fail_doing(doing);
}

void async_exchange_forget(AsyncExchange *async) {
    if (channel_of_device()->forget_async_exchange)
        channel_of_device()->forget_async_exchange(async);
}

void async_exchange_end(AsyncExchange *async) {
    const char *doing = fail_doing_what();
    fail_doing(async->where);
    channel_of_device()->end_async_exchange(async);
    fail_doing(doing);
}
