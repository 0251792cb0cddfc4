/* ht_dispatch: chooses for each batch the strategy with the least predicted step time, and a row
 * for each of its sequences. */
#include "session/control/control.h"

#include "session/core/initial_strategy.h"
#include "session/control/pace.h"
#include "base/memory.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A strategy: its rows, and its step time. */
typedef struct Holds {
    int image;
    int64_t rows, length; // rows of a batch; sequence length in tokens: the largest capacity
    int64_t *capacity;    // by row, in tokens
    int64_t *order;       // rows, by falling capacity
    double tokens;        // tokens per device of the slowest pipeline; estimates the step time
    double seconds;       // measured time of a step; 0: not measured
    double lost;          // seconds lost since the last switch by not using this strategy
} Holds;

/* A batch and its plan: the strategy, and a row for each sequence. */
typedef struct Batch {
    int64_t count, *lengths, *order; // lengths in tokens; order: sequences, longest first
    int64_t *row;                    // by sequence: its row
    int chosen;                      // index of the strategy; -1: none holds the batch
    double *lost;                    // by strategy: Holds.lost as it is after this batch
    bool planned;
} Batch;

struct Dispatch {
    ht_program *program;
    int known;           // number of images when the strategies were listed
    const int *variable; // variable of main that holds the sequence length
    int count;
    Holds *at;
    int in_force; // index of the current strategy; -1: none yet
    double switch_seconds;
    Batch now, next;
    bool planning; // the thread plans `next`
    pthread_t thread;
    ht_dispatched answer;
    int64_t warm; // steps since the last switch
};

/* ---- strategies ---- */

/* Returns the padding lengths of the first input that has them; NULL: all rows are read whole. */
static const ht_padding *padding_of(const ht_image *image) {
    for (int i = 0; i < image->input_count; i++)
        if (image->inputs[i].padding && image->inputs[i].padding->rank > 1)
            return image->inputs[i].padding;
    return NULL;
}

/* Returns the number of rows of a batch. */
static int64_t rows_of(const ht_image *image) {
    int64_t rows = 0;
    for (int p = 0; p < image->pipeline_count; p++)
        rows += image->pipelines[p].rows * image->pipelines[p].microbatches;
    if (!rows && image->input_count) rows = image->inputs[0].pieces->extent[0];
    return rows;
}

/* Sets the capacity of each row, in tokens. */
static void find_capacity(Holds *holds, const ht_image *image) {
    const ht_padding *padding = padding_of(image);
    for (int64_t r = 0; r < holds->rows; r++) holds->capacity[r] = holds->length;
    for (int p = 0; padding && p < padding->count; p++) {
        const int64_t *own = padding->rows + (ptrdiff_t)p * (padding->rank + 1);
        for (int64_t r = own[0]; r < own[1] && r < holds->rows; r++) holds->capacity[r] = own[2];
    }
}

/* Returns the most tokens per device in a pipeline; without pipelines, the mean over devices. */
static double tokens_of(const Holds *holds, const ht_image *image) {
    double most = 0, all = 0;
    for (int64_t r = 0; r < holds->rows; r++) all += (double)holds->capacity[r];
    for (int p = 0; p < image->pipeline_count; p++) {
        const ht_pipeline *pipeline = &image->pipelines[p];
        int64_t first = pipeline->first_row < holds->rows ? pipeline->first_row : 0;
        double own = (double)(pipeline->rows * pipeline->microbatches * holds->capacity[first]) /
                     pipeline->device_count;
        most = fmax(most, own);
    }
    return most > 0 ? most : all / image_devices(image);
}

/* Sizes by which by_size sorts indices: larger sizes first, equal sizes by rising index. */
static const int64_t *sorted_by;

static int by_size(const void *a, const void *b) {
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    if (sorted_by[left] != sorted_by[right]) return sorted_by[left] < sorted_by[right] ? 1 : -1;
    return (left > right) - (left < right);
}

/* Returns the indices of `sizes`, sorted by by_size; free() it. */
static int64_t *order_of(const int64_t *sizes, int64_t count) {
    int64_t *order = memory_array(count, sizeof *order);
    for (int64_t i = 0; i < count; i++) order[i] = i;
    sorted_by = sizes;
    qsort(order, (size_t)count, sizeof *order, by_size);
    return order;
}

static void free_batch(Batch *batch) {
    free(batch->lengths);
    free(batch->order);
    free(batch->row);
    free(batch->lost);
    *batch = (Batch){0};
}

/* Fills in the properties of a strategy with this sequence length. */
static void list_strategy(Holds *holds, int image, int64_t length) {
    *holds = (Holds){.image = image, .rows = rows_of(image_at(image)->image), .length = length};
    holds->capacity = memory_array(holds->rows, sizeof *holds->capacity);
    find_capacity(holds, image_at(image)->image);
    holds->order = order_of(holds->capacity, holds->rows);
    holds->tokens = tokens_of(holds, image_at(image)->image);
}

static void free_strategies(Holds *list, int count) {
    for (int k = 0; k < count; k++) {
        free(list[k].capacity);
        free(list[k].order);
    }
    free(list);
}

/* Lists the strategies again if new ones came or `variable` changed; keeps measured times. Ends
 * the program if no strategy was compiled with `variable`. */
static void list_strategies(struct Dispatch *dispatch, const int *variable) {
    int own = session_image_program(dispatch->program)->number, old_count = dispatch->count;
    Holds *old = dispatch->at;
    int64_t length;
    if (dispatch->known == image_count() && dispatch->variable == variable) return;
    free_batch(&dispatch->next);
    dispatch->at = memory_array(image_count(), sizeof *dispatch->at);
    dispatch->count = 0;
    for (int i = initial_strategy_next(own, -1); i >= 0; i = initial_strategy_next(own, i))
        if (image_read_integer(i, variable, &length))
            list_strategy(&dispatch->at[dispatch->count++], i, length);
    for (int k = 0; k < old_count && k < dispatch->count && old[k].image == dispatch->at[k].image;
         k++)
        dispatch->at[k].seconds = old[k].seconds;
    free_strategies(old, old_count);
    if (!dispatch->count)
        ht_fail("ht_dispatch was given a variable that the model %s does not read",
                image_at(own)->image->model);
    dispatch->known = image_count();
    dispatch->variable = variable;
}

/* ---- plans ---- */

/* Returns whether each sequence of a batch fits into a row of a strategy. */
static bool holds(const Holds *own, const Batch *batch) {
    for (int64_t i = 0; i < batch->count; i++)
        if (i >= own->rows || batch->lengths[batch->order[i]] > own->capacity[own->order[i]])
            return false;
    return true;
}

/* Returns the step time of strategy k in seconds: measured, or else estimated from its tokens and
 * the measured strategies' seconds per token. */
static double seconds_of(const struct Dispatch *dispatch, int k) {
    double seconds = 0, tokens = 0;
    if (dispatch->at[k].seconds > 0) return dispatch->at[k].seconds;
    for (int i = 0; i < dispatch->count; i++)
        if (dispatch->at[i].seconds > 0) {
            seconds += dispatch->at[i].seconds;
            tokens += dispatch->at[i].tokens;
        }
    return dispatch->at[k].tokens * (tokens > 0 ? seconds / tokens : 1e-6);
}

/* Returns the index of the fastest strategy that holds the batch; -1: none does. */
static int fastest(const struct Dispatch *dispatch, const Batch *batch) {
    int best = -1;
    for (int k = 0; k < dispatch->count; k++)
        if (holds(&dispatch->at[k], batch) &&
            (best < 0 || seconds_of(dispatch, k) < seconds_of(dispatch, best)))
            best = k;
    return best;
}

/* Returns the index of the strategy for a batch; -1: none holds it. Sets batch->lost, and leaves
 * the current strategy once the time lost by staying reaches the time of a switch. */
static int choose(const struct Dispatch *dispatch, const Batch *batch) {
    int now = dispatch->in_force, best = fastest(dispatch, batch);
    if (best < 0 || now < 0 || !holds(&dispatch->at[now], batch)) return best;
    best = now;
    for (int k = 0; k < dispatch->count; k++) {
        double gain = seconds_of(dispatch, now) - seconds_of(dispatch, k);
        batch->lost[k] = holds(&dispatch->at[k], batch) ? fmax(0, dispatch->at[k].lost + gain) : 0;
        if (batch->lost[k] >= dispatch->switch_seconds &&
            batch->lost[k] > (best == now ? 0 : batch->lost[best]))
            best = k;
    }
    return best;
}

/* Sets batch->chosen and batch->row: the i-th longest sequence gets the i-th largest row. */
static void plan(const struct Dispatch *dispatch, Batch *batch) {
    batch->chosen = choose(dispatch, batch);
    const Holds *own = batch->chosen < 0 ? NULL : &dispatch->at[batch->chosen];
    for (int64_t i = 0; own && i < batch->count; i++) batch->row[batch->order[i]] = own->order[i];
    batch->planned = true;
}

/* Plans the next batch. A thread function. */
static void *plan_next(void *argument) {
    struct Dispatch *dispatch = argument;
    dispatch->next.order = order_of(dispatch->next.lengths, dispatch->next.count);
    plan(dispatch, &dispatch->next);
    return NULL;
}

static Batch new_batch(const struct Dispatch *dispatch, const int64_t *lengths, int64_t count) {
    Batch batch = {.count = count,
                   .lengths = memory_array(count, sizeof *lengths),
                   .row = memory_array(count, sizeof(int64_t))};
    batch.lost = memory_array(dispatch->count, sizeof(double));
    memcpy(batch.lengths, lengths, sizeof *lengths * (size_t)count);
    return batch;
}

/* Waits for the thread that plans, if there is one. */
static void end_planning(struct Dispatch *dispatch) {
    if (dispatch->planning) pthread_join(dispatch->thread, NULL);
    dispatch->planning = false;
}

/* Starts a thread that plans the next batch. */
static void begin_planning(struct Dispatch *dispatch, const int64_t *lengths, int64_t count) {
    free_batch(&dispatch->next);
    dispatch->next = new_batch(dispatch, lengths, count);
    dispatch->planning = !pthread_create(&dispatch->thread, NULL, plan_next, dispatch);
}

/* Sets `now` to a batch and its plan: the thread's if its lengths are equal, else a new plan. */
static void take_plan(struct Dispatch *dispatch, const int64_t *lengths, int64_t count) {
    end_planning(dispatch);
    Batch *next = &dispatch->next;
    bool same = next->planned && next->count == count &&
                !memcmp(next->lengths, lengths, sizeof *lengths * (size_t)count);
    free_batch(&dispatch->now);
    dispatch->now = same ? *next : new_batch(dispatch, lengths, count);
    if (same) *next = (Batch){0};
    if (!same) dispatch->now.order = order_of(dispatch->now.lengths, count);
    if (!same || dispatch->now.chosen >= dispatch->count) plan(dispatch, &dispatch->now);
}

/* ---- the call ---- */

/* Ends the program if ht_dispatch cannot be called with these arguments. */
static void check(const ht_program *program, const int *variable, const int64_t *lengths,
                  int64_t count, ht_dispatch_options options) {
    if (!program) ht_fail("ht_dispatch was called with NULL for the program");
    if (!program->trains) ht_fail("ht_dispatch is for a program of ht_train");
    if (!variable || !lengths || count < 1)
        ht_fail("ht_dispatch was called %s", !variable  ? "with NULL for the variable"
                                             : !lengths ? "with NULL for the lengths"
                                                        : "for no sequences");
    if (options.next_count < 0 || (options.next_count && !options.next))
        ht_fail("ht_dispatch was called with .next_count = %lld%s", (long long)options.next_count,
                options.next ? "" : " and without .next");
    for (int64_t i = 0; i < count; i++)
        if (lengths[i] < 1 || lengths[i] > INT32_MAX)
            ht_fail("ht_dispatch was given length %lld for sequence %lld; lengths are 1 or more",
                    (long long)lengths[i], (long long)i);
    for (int64_t i = 0; options.next && i < (options.next_count ? options.next_count : count); i++)
        if (options.next[i] < 1 || options.next[i] > INT32_MAX)
            ht_fail("ht_dispatch was given length %lld for sequence %lld of .next; lengths are 1 "
                    "or more",
                    (long long)options.next[i], (long long)i);
}

/* Ends the program because no strategy holds a batch. Says that it has too many sequences, or names
 * the longest one that does not fit under the strategy that holds most sequences. */
static _Noreturn void no_room(const struct Dispatch *dispatch, const Batch *batch) {
    int64_t rows = 0, found = 0;
    const Holds *most = &dispatch->at[0];
    for (int k = 0; k < dispatch->count; k++) {
        const Holds *own = &dispatch->at[k];
        int64_t held = 0;
        while (held < batch->count && held < own->rows &&
               batch->lengths[batch->order[held]] <= own->capacity[own->order[held]])
            held++;
        rows = own->rows > rows ? own->rows : rows;
        if (held >= found) {
            found = held;
            most = own;
        }
    }
    const char *model = image_at(most->image)->image->model;
    if (batch->count > rows)
        ht_fail("ht_dispatch was given %lld sequences, and the strategies of the model %s have "
                "%lld rows at most",
                (long long)batch->count, model, (long long)rows);
    ht_fail("ht_dispatch: no strategy of the model %s holds the batch: under \"%s\", which comes "
            "furthest, sequence %lld of length %lld "
            "finds no row as long; the next one has %lld",
            model, image_at(most->image)->image->strategy, (long long)batch->order[found],
            (long long)batch->lengths[batch->order[found]],
            (long long)(found < most->rows ? most->capacity[most->order[found]] : 0));
}

/* Plans a batch on one device: sequence i gets row i. Sets *variable to the longest length and has
 * the model evaluated again (eager_program_forget). */
static const ht_dispatched *answer_eager(struct Dispatch *dispatch, int *variable,
                                         const int64_t *lengths, int64_t count) {
    int64_t longest = 0;
    free_batch(&dispatch->now);
    dispatch->now = new_batch(dispatch, lengths, count);
    for (int64_t i = 0; i < count; i++) {
        dispatch->now.row[i] = i;
        longest = lengths[i] > longest ? lengths[i] : longest;
    }
    *variable = (int)longest;
    session_eager()->program_forget(dispatch->program->eager);
    dispatch->answer = (ht_dispatched){dispatch->now.row, count, longest, NULL};
    return &dispatch->answer;
}

/* Updates `lost` and main's variables. If another strategy is planned, switches to it and times the
 * switch. */
static void go(struct Dispatch *dispatch) {
    Batch *batch = &dispatch->now;
    int own = session_image_program(dispatch->program)->number,
        image = dispatch->at[batch->chosen].image;
    for (int k = 0; k < dispatch->count; k++)
        dispatch->at[k].lost = own == image ? batch->lost[k] : 0;
    dispatch->in_force = batch->chosen;
    initial_strategy_follow(image, own);
    if (own == image) return;
    double begin = pace_now();
    ht_switch(dispatch->program, image_at(image)->image->strategy);
    dispatch->switch_seconds = pace_now() - begin;
    dispatch->warm = 0;
}

static struct Dispatch *open_dispatch(ht_program *program) {
    ht_session *session = program->session;
    if (!session->dispatch) {
        session->dispatch = memory_array(1, sizeof *session->dispatch);
        *session->dispatch = (struct Dispatch){.program = program, .known = -1, .in_force = -1};
    }
    if (session->dispatch->program != program)
        ht_fail("ht_dispatch was called for a second program of the session; one is dispatched to");
    return session->dispatch;
}

const ht_dispatched *ht_dispatch_with(ht_program *program, int *variable, const int64_t *lengths,
                                      int64_t count, ht_dispatch_options options) {
    check(program, variable, lengths, count, options);
    session_check_open(program->session);
    struct Dispatch *dispatch = open_dispatch(program);
    if (program->eager) return answer_eager(dispatch, variable, lengths, count);
    end_planning(dispatch);
    list_strategies(dispatch, variable);
    take_plan(dispatch, lengths, count);
    if (dispatch->now.chosen < 0) no_room(dispatch, &dispatch->now);
    go(dispatch);
    const Holds *own = &dispatch->at[dispatch->now.chosen];
    dispatch->answer = (ht_dispatched){dispatch->now.row, own->rows, own->length,
                                       image_at(own->image)->image->strategy};
    if (options.next)
        begin_planning(dispatch, options.next, options.next_count ? options.next_count : count);
    return &dispatch->answer;
}

void dispatch_note(const ht_program *program, double seconds) {
    struct Dispatch *dispatch = program->session->dispatch;
    if (!dispatch || dispatch->program != program || dispatch->in_force < 0 ||
        dispatch->at[dispatch->in_force].image != session_image_program(program)->number)
        return;
    end_planning(dispatch);
    Holds *own = &dispatch->at[dispatch->in_force];
    if (dispatch->warm++) // the first step after a switch warms up
        own->seconds = own->seconds > 0 ? 0.7 * own->seconds + 0.3 * seconds : seconds;
}

void dispatch_close(ht_session *session) {
    struct Dispatch *dispatch = session->dispatch;
    if (!dispatch) return;
    end_planning(dispatch);
    free_strategies(dispatch->at, dispatch->count);
    free_batch(&dispatch->now);
    free_batch(&dispatch->next);
    free(dispatch);
    session->dispatch = NULL;
}
