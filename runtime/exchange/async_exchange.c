#include "exchange/async_exchange.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/c_locale.h"
#include "base/timeline.h"
#include "exchange/rounds.h"
#include "exchange/staging.h"
#include "transport/post.h"
#include "transport/watch/watch.h"
#include "transport/world.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    YIELDS = 8,        // passes that move nothing, before the first nap
    FIRST_NAP = 20000, // nanoseconds
    LONGEST_NAP = 200000,
    CHECK_EVERY = 1000, // passes that move nothing, between two looks at the other ranks
    MOST_ROOM = 1 << 22 // bytes that come at a time to be reduced, of all flights that run once a step
};

/* What a flight does at present. */
typedef enum Leg {
    LEG_WAITING, // for what the device has to do before
    LEG_BETWEEN, // nothing: the next step begins
    LEG_MOVING,  // the device moves
    LEG_LOADING, // what is sent is copied from the device
    LEG_EXCHANGING,
    LEG_STORING, // what was received is copied to the device
    LEG_OVER
} Leg;

/* Where a flight is on its way. */
typedef struct ExchangeLane {
    bool begun;   // those before it have ended, and there is room for it
    double since; // when it began, for the timeline
    int64_t room; // for what comes to be reduced
    Leg leg;
    void *mark;
    const ht_reshard_step *step, *end; // the step at work, or the next one; the last one's end
    Staged staged;                     // of device memory: the step, and the run, on the host
    ChannelRun on_host;
    Rounds rounds;
    int post_count; // messages of the round that are under way
    Post *posts;
} ExchangeLane;

typedef struct Queue {
    int lane;
    pthread_t thread;
    pthread_cond_t filled;
    AsyncExchange *first; // those that have not ended, in the order in which they began
    bool closing;
} Queue;

static struct {
    bool open;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    Queue queue[LANES];
} flights = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

static const ChannelMemory *device_memory(void) { return channel_of_device()->memory; }

/* ---- rounds ---- */

static int begin_posts(const Queue *queue, Post *posts, const HostTransfer *transfers, int count, int tag, bool sends)
{
    int begun = 0;
    for (int i = 0; i < count; i++)
        if (transfers[i].bytes && transfers[i].rank != world_rank()) {
            posts[begun] = (Post){.transfer = transfers[i], .tag = tag, .sends = sends};
            post_begin(queue->lane, &posts[begun++]);
        }
    return begun;
}

static void begin_round(const Queue *queue, const AsyncExchange *flight, ExchangeLane *course)
{
    Rounds *r = &course->rounds;
    course->posts = memory_array(r->send_count + r->receive_count, sizeof *course->posts);
    course->post_count = begin_posts(queue, course->posts, r->receives, r->receive_count, flight->tag, false);
    course->post_count += begin_posts(queue, course->posts + course->post_count, r->sends, r->send_count, flight->tag, true);
    transfer_copy_own(world_rank(), r->sends, r->send_count, r->receives, r->receive_count);
}

/* Looks after the messages of a round; returns how many are done now. */
static int look_after_posts(const Queue *queue, ExchangeLane *course)
{
    int kept = 0, count = course->post_count;
    for (int i = 0; i < count; i++)
        if (!post_done(queue->lane, &course->posts[i]))
            course->posts[kept++] = course->posts[i];
    course->post_count = kept;
    return count - kept;
}

/* ---- legs: each goes on as far as it can without waiting; false when nothing moved ---- */

static bool enter(ExchangeLane *course, Leg leg)
{
    course->leg = leg;
    return true;
}

static bool wait_for_device(const Queue *queue, AsyncExchange *flight, ExchangeLane *course)
{
    (void)queue, (void)flight;
    return (!course->mark || device_memory()->passed(course->mark)) && enter(course, LEG_BETWEEN);
}

static void load(void *lane, void *to, const void *from, int64_t bytes) { device_memory()->copy(*(int *)lane, to, from, bytes, false); }

static void store(void *lane, void *to, const void *from, int64_t bytes) { device_memory()->copy(*(int *)lane, to, from, bytes, true); }

static bool begin_moves(const Queue *queue, AsyncExchange *flight, ExchangeLane *course)
{
    if (!device_memory()) {
        channel_move_on_host(&flight->run, course->step++);
        return true;
    }
    device_memory()->move(queue->lane, &flight->run, course->step);
    return enter(course, LEG_MOVING);
}

static bool begin_exchange(const Queue *queue, AsyncExchange *flight, ExchangeLane *course)
{
    if (!device_memory()) {
        course->rounds = rounds_open(&flight->run, course->step);
        return enter(course, LEG_EXCHANGING);
    }
    int lane = queue->lane;
    course->staged = staging_open(course->step);
    course->on_host = staging_run(&flight->run, flight->kept);
    staging_load(&course->staged, &course->on_host, &flight->run, course->step, load, &lane);
    return enter(course, LEG_LOADING);
}

static bool begin_step(const Queue *queue, AsyncExchange *flight, ExchangeLane *course)
{
    if (course->step == course->end)
        return enter(course, LEG_OVER);
    return channel_communicates(course->step) ? begin_exchange(queue, flight, course) : begin_moves(queue, flight, course);
}

/* The device is done with a step. */
static bool end_device(const Queue *queue, AsyncExchange *flight, ExchangeLane *course)
{
    (void)flight;
    if (!device_memory()->idle(queue->lane))
        return false;
    staging_close(&course->staged);
    course->step++;
    return enter(course, LEG_BETWEEN);
}

static bool end_load(const Queue *queue, AsyncExchange *flight, ExchangeLane *course)
{
    (void)flight;
    if (!device_memory()->idle(queue->lane))
        return false;
    course->rounds = rounds_open(&course->on_host, &course->staged.step);
    return enter(course, LEG_EXCHANGING);
}

static bool end_exchange(const Queue *queue, AsyncExchange *flight, ExchangeLane *course)
{
    int lane = queue->lane;
    if (!device_memory()) {
        course->step++;
        return enter(course, LEG_BETWEEN);
    }
    staging_store(&course->staged, &course->on_host, &flight->run, course->step, store, &lane);
    return enter(course, LEG_STORING);
}

static bool exchange(const Queue *queue, AsyncExchange *flight, ExchangeLane *course)
{
    bool moved = look_after_posts(queue, course) > 0;
    if (course->post_count)
        return moved;
    free(course->posts);
    course->posts = NULL;
    if (!rounds_next(&course->rounds))
        return end_exchange(queue, flight, course);
    begin_round(queue, flight, course);
    return true;
}

/* Takes a flight as far as it goes without waiting; false when nothing moved. */
static bool advance(const Queue *queue, AsyncExchange *flight)
{
    static bool (*const legs[])(const Queue *, AsyncExchange *,
                                ExchangeLane *) = {[LEG_WAITING] = wait_for_device, [LEG_BETWEEN] = begin_step,  [LEG_MOVING] = end_device,
                                             [LEG_LOADING] = end_load,        [LEG_EXCHANGING] = exchange, [LEG_STORING] = end_device};
    ExchangeLane *course = flight->state;
    bool moved = false;
    while (course->leg != LEG_OVER && legs[course->leg](queue, flight, course))
        moved = true;
    return moved;
}

static bool is_over(const AsyncExchange *flight) { return ((const ExchangeLane *)flight->state)->leg == LEG_OVER; }

/* ---- the thread ---- */

/* Whether there is room for what comes to be reduced. Those that run once a step take it in their order, which is the same on all ranks: so
 * the first of them that has not ended has it everywhere. With the lock. */
static bool has_room(const Queue *queue, const AsyncExchange *flight)
{
    int64_t taken = 0, own = ((const ExchangeLane *)flight->state)->room;
    bool waits = false;
    for (const AsyncExchange *earlier = queue->first; earlier != flight; earlier = earlier->next) {
        const ExchangeLane *course = earlier->state;
        taken += course->room;
        waits |= course->room && !course->begun;
    }
    return !own || !taken || flight->queue != HT_QUEUE_GRADIENTS || (!waits && taken + own <= MOST_ROOM);
}

/* Whether a flight may go on: those before it, and those of its tag that began earlier, have ended. With the lock. */
static bool may_go(const Queue *queue, AsyncExchange *flight)
{
    ExchangeLane *course = flight->state;
    for (int i = 0; !course->begun && i < flight->after_count; i++)
        if (!flight->after[i]->ended)
            return false;
    for (const AsyncExchange *earlier = queue->first; !course->begun && earlier != flight; earlier = earlier->next)
        if (earlier->tag == flight->tag)
            return false;
    if (!course->begun && has_room(queue, flight)) {
        course->begun = true;
        course->since = timeline_keeps() ? timeline_now() : 0;
    }
    return course->begun;
}

/* Puts a flight, which is over, on the timeline. */
static void note(const AsyncExchange *flight)
{
    const ExchangeLane *course = flight->state;
    if (course->since > 0)
        timeline_add(&(TimelineEvent){.begin = course->since,
                                      .end = timeline_now(),
                                      .name = flight->run.plan->name,
                                      .at = flight->where,
                                      .step = -1,
                                      .microbatch = -1,
                                      .stream = flight->queue == HT_QUEUE_GRADIENTS ? HT_STREAM_SUMS : HT_STREAM_MESSAGES});
}

/* Drops a flight, which is over. With the lock. */
static void finish(Queue *queue, AsyncExchange *flight)
{
    AsyncExchange **link = &queue->first;
    while (*link != flight)
        link = &(*link)->next;
    *link = flight->next;
    note(flight);
    free(flight->state);
    flight->state = NULL;
    flight->ended = true;
    pthread_cond_broadcast(&flights.ended);
}

/* Takes every flight of a queue as far as it goes; false when nothing moved. With the lock, which is free while messages are looked after.
 */
static bool pass(Queue *queue)
{
    bool moved = false;
    for (AsyncExchange *flight = queue->first, *next; flight; flight = next) {
        if (may_go(queue, flight)) {
            pthread_mutex_unlock(&flights.lock);
            moved |= advance(queue, flight);
            pthread_mutex_lock(&flights.lock);
        }
        next = flight->next;
        if (is_over(flight)) {
            finish(queue, flight);
            moved = true;
        }
    }
    return moved;
}

/* What the thread does behind a pass that moved nothing; `idle` counts these. */
static void rest(int idle)
{
    long nap = FIRST_NAP;
    for (int i = YIELDS; i < idle && nap < LONGEST_NAP; i++)
        nap += nap / 4;
    if (idle % CHECK_EVERY == 0)
        world_check();
    if (idle <= YIELDS)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = nap < LONGEST_NAP ? nap : LONGEST_NAP}, NULL);
}

static void *serve(void *argument)
{
    Queue *queue = argument;
    if (device_memory())
        device_memory()->attach(queue->lane);
    pthread_mutex_lock(&flights.lock);
    for (int idle = 0; !queue->closing || queue->first;) {
        if (!queue->first) {
            idle = 0;
            pthread_cond_wait(&queue->filled, &flights.lock);
        } else if (pass(queue)) {
            idle = 0;
            watch_moved();
        } else {
            pthread_mutex_unlock(&flights.lock);
            rest(++idle);
            pthread_mutex_lock(&flights.lock);
        }
    }
    pthread_mutex_unlock(&flights.lock);
    if (device_memory())
        device_memory()->detach(queue->lane);
    return NULL;
}

/* Starts the thread of a queue, which gets no signals: they are for the main thread. */
static void start(Queue *queue, int lane)
{
    sigset_t all, before;
    *queue = (Queue){.lane = lane, .filled = PTHREAD_COND_INITIALIZER};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&queue->thread, NULL, serve, queue);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        ht_fail("cannot start a thread: %s", plain_error(error));
}

/* ---- from the main thread ---- */

void async_exchanges_prepare(const ChannelPlans *plans)
{
    bool beside = false;
    for (int p = 0; p < plans->count; p++)
        beside |= plans->queues[p] != 0;
    if (flights.open || !beside)
        return;
    flights.open = true;
    channels_open();
    if (device_memory())
        device_memory()->prepare();
    for (int lane = 0; lane < LANES; lane++)
        start(&flights.queue[lane], lane);
}

void async_exchanges_close(void)
{
    if (!flights.open)
        return;
    flights.open = false;
    pthread_mutex_lock(&flights.lock);
    for (int lane = 0; lane < LANES; lane++) {
        flights.queue[lane].closing = true;
        pthread_cond_signal(&flights.queue[lane].filled);
    }
    pthread_mutex_unlock(&flights.lock);
    for (int lane = 0; lane < LANES; lane++)
        pthread_join(flights.queue[lane].thread, NULL);
    channels_close();
}

/* Host memory for the largest of a flight's steps. */
static void *alloc_staging(const AsyncExchange *flight)
{
    int64_t most = 0;
    for (int s = 0; s < flight->run.part->step_count; s++) {
        const ht_reshard_step *step = &flight->run.part->step[s];
        Staged staged = channel_communicates(step) ? staging_open(step) : (Staged){0};
        most = staged.bytes > most ? staged.bytes : most;
        staging_close(&staged);
    }
    return device_memory()->alloc(most);
}

/* What is gathered ahead shares the thread of messages. */
static int lane_of(ht_queue queue) { return queue == HT_QUEUE_AHEAD ? HT_QUEUE_STAGES : (int)queue; }

/* Puts a flight behind those of its queue. */
static void enqueue(Queue *queue, AsyncExchange *flight)
{
    pthread_mutex_lock(&flights.lock);
    AsyncExchange **link = &queue->first;
    while (*link)
        link = &(*link)->next;
    *link = flight;
    pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&flights.lock);
}

void async_exchange_begin_on_thread(AsyncExchange *flight)
{
    ExchangeLane *course = memory_array(1, sizeof *course);
    const ht_reshard_device *part = flight->run.part;
    *course = (ExchangeLane){.step = part->step, .end = part->step + part->step_count, .room = rounds_room(&flight->run)};
    if (device_memory() && !flight->kept)
        flight->kept = alloc_staging(flight);
    if (device_memory())
        course->mark = device_memory()->mark();
    flight->state = course;
    flight->ended = false;
    flight->next = NULL;
    enqueue(&flights.queue[lane_of(flight->queue)], flight);
}

void async_exchange_forget_on_thread(AsyncExchange *flight)
{
    if (flight->kept)
        device_memory()->free(flight->kept);
    flight->kept = NULL;
}

void async_exchange_end_on_thread(AsyncExchange *flight)
{
    watch_begin();
    pthread_mutex_lock(&flights.lock);
    while (!flight->ended)
        pthread_cond_wait(&flights.ended, &flights.lock);
    pthread_mutex_unlock(&flights.lock);
    watch_end();
}

/* Counts a run. One that is waited for and has not begun in this step seems to have ended, as it has in the step before. */
static void count_run(AsyncExchange *flight)
{
    flight->runs++;
    for (int i = 0; i < flight->after_count; i++)
        if (flight->after[i]->runs != flight->runs)
            ht_fail("%s: a transfer begins before the one of %s, whose memory it uses; this is a fault of hetucc: report it with the "
                    "source and the strategy",
                    flight->where, flight->after[i]->where);
}

void async_exchange_begin(AsyncExchange *flight)
{
    const char *doing = fail_doing_what();
    fail_doing(flight->where);
    count_run(flight);
    channel_of_device()->begin_flight(flight);
    fail_doing(doing);
}

void async_exchange_forget(AsyncExchange *flight)
{
    if (channel_of_device()->forget_flight)
        channel_of_device()->forget_flight(flight);
}

void async_exchange_end(AsyncExchange *flight)
{
    const char *doing = fail_doing_what();
    fail_doing(flight->where);
    channel_of_device()->end_flight(flight);
    fail_doing(doing);
}
