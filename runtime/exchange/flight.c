#include "exchange/flight.h"

#include "base/fail.h"
#include "base/memory.h"
#include "exchange/rounds.h"
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
    CHECK_EVERY = 1000 // passes that move nothing, between two looks at the other ranks
};

/* Where a flight is on its way. */
typedef struct Course {
    bool begun; // those before it have ended
    int step;
    bool communicates; // the step at work has rounds
    Rounds rounds;
    int post_count; // messages of the round that are under way
    Post *posts;
} Course;

typedef struct Queue {
    int lane;
    pthread_t thread;
    pthread_cond_t filled;
    Flight *first; // those that have not ended, in the order in which they began
    bool closing;
} Queue;

static struct {
    bool open;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    Queue queue[LANES];
} flights = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

/* ---- a flight ---- */

static int begin_posts(Queue *queue, Post *posts, const Transfer *transfers, int count, int tag, bool sends)
{
    int begun = 0;
    for (int i = 0; i < count; i++)
        if (transfers[i].bytes && transfers[i].rank != world_rank()) {
            posts[begun] = (Post){.transfer = transfers[i], .tag = tag, .sends = sends};
            post_begin(queue->lane, &posts[begun++]);
        }
    return begun;
}

static void begin_round(Queue *queue, const Flight *flight, Course *course)
{
    Rounds *r = &course->rounds;
    course->posts = memory_array(r->send_count + r->receive_count, sizeof *course->posts);
    course->post_count = begin_posts(queue, course->posts, r->receives, r->receive_count, flight->tag, false);
    course->post_count += begin_posts(queue, course->posts + course->post_count, r->sends, r->send_count, flight->tag, true);
    transfer_copy_own(world_rank(), r->sends, r->send_count, r->receives, r->receive_count);
}

/* Looks after the messages of a round; returns how many are done now. */
static int look_after_posts(Queue *queue, Course *course)
{
    int kept = 0, count = course->post_count;
    for (int i = 0; i < count; i++)
        if (!post_done(queue->lane, &course->posts[i]))
            course->posts[kept++] = course->posts[i];
    course->post_count = kept;
    return count - kept;
}

/* Takes a flight as far as it goes without waiting; false when nothing moved. */
static bool advance(Queue *queue, Flight *flight)
{
    Course *course = flight->state;
    bool moved = false;
    for (;;) {
        moved |= look_after_posts(queue, course) > 0;
        if (course->post_count)
            return moved;
        free(course->posts);
        course->posts = NULL;
        if (course->communicates && rounds_next(&course->rounds)) {
            begin_round(queue, flight, course);
            continue;
        }
        course->communicates = false;
        if (course->step == flight->run.part->step_count)
            return moved;
        const ht_reshard_step *step = &flight->run.part->step[course->step++];
        course->communicates = channel_communicates(step);
        if (course->communicates)
            course->rounds = rounds_open(&flight->run, step);
        else
            channel_move_on_host(&flight->run, step);
        moved = true;
    }
}

static bool is_over(const Flight *flight)
{
    const Course *course = flight->state;
    return course->step == flight->run.part->step_count && !course->communicates && !course->post_count;
}

/* ---- the thread ---- */

/* Whether a flight may go on: those before it, and those of its tag that began earlier, have ended. With the lock. */
static bool may_go(const Queue *queue, Flight *flight)
{
    Course *course = flight->state;
    for (int i = 0; !course->begun && i < flight->after_count; i++)
        if (!flight->after[i]->ended)
            return false;
    for (const Flight *earlier = queue->first; !course->begun && earlier != flight; earlier = earlier->next)
        if (earlier->tag == flight->tag)
            return false;
    course->begun = true;
    return true;
}

/* Drops a flight, which is over. With the lock. */
static void finish(Queue *queue, Flight *flight)
{
    Flight **link = &queue->first;
    while (*link != flight)
        link = &(*link)->next;
    *link = flight->next;
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
    for (Flight *flight = queue->first, *next; flight; flight = next) {
        if (may_go(queue, flight)) {
            pthread_mutex_unlock(&flights.lock);
            moved |= advance(queue, flight);
            pthread_mutex_lock(&flights.lock);
        }
        next = flight->next;
        if (((Course *)flight->state)->begun && is_over(flight)) {
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
        ht_fail("cannot start a thread: %s", strerror(error));
}

/* ---- from the main thread ---- */

void flights_open(void)
{
    if (flights.open)
        return;
    flights.open = true;
    lanes_open();
    for (int lane = 0; lane < LANES; lane++)
        start(&flights.queue[lane], lane);
}

void flights_close(void)
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
    lanes_close();
}

void flight_begin_on_thread(Flight *flight)
{
    Queue *queue = &flights.queue[flight->queue];
    Course *course = memory_array(1, sizeof *course);
    pthread_mutex_lock(&flights.lock);
    flight->state = course;
    flight->ended = false;
    flight->next = NULL;
    Flight **link = &queue->first;
    while (*link)
        link = &(*link)->next;
    *link = flight;
    pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&flights.lock);
}

void flight_end_on_thread(Flight *flight)
{
    watch_begin();
    pthread_mutex_lock(&flights.lock);
    while (!flight->ended)
        pthread_cond_wait(&flights.ended, &flights.lock);
    pthread_mutex_unlock(&flights.lock);
    watch_end();
}

void flight_begin(Flight *flight)
{
    if (!channel_of_device()->begin_flight)
        ht_fail("%s: this device does not exchange beside computing", flight->where);
    channel_of_device()->begin_flight(flight);
}

void flight_end(Flight *flight)
{
    const char *doing = fail_doing_what();
    fail_doing(flight->where);
    channel_of_device()->end_flight(flight);
    fail_doing(doing);
}
