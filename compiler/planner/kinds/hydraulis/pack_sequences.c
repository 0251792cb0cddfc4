/* Assigns sequences to micro-batches (bin packing), and chooses the numbers of micro-batches by
 * local search. swap_sequences.c moves sequences afterwards; strategies.c chooses strategies. */
#include "planner/kinds/hydraulis/pack_sequences.h"

#include <math.h>
#include <string.h>

/* A micro-batch while it is filled (a bin of the packing). */
typedef struct Bin {
    double weight;
    int tokens, pipeline, number; // tokens in it; its pipeline; its number within the pipeline
} Bin;

/* The bins of equal pipelines, a heap with the lightest bin on top. */
typedef struct Class {
    int scheme, microbatches; // scheme and number of micro-batches of each of its pipelines
    int first, count;         // its bins: first index and count
    int room;                 // upper bound of the tokens that any bin has room for
    double factor, c;         // a bin of weight w ends at factor (w + c)
} Class;

struct Dispatcher {
    const Schemes *schemes;
    int most_pipelines, most_bins;
    Bin *bins;
    Class *classes;
    int class_count, bin_count;
    Dispatch now, best;
    long work;
    int *places; // by sequence: most_bins * pipeline + number of the micro-batch
};

long dispatcher_work(const Dispatcher *dispatcher) { return dispatcher->work; }

static Dispatch dispatch_create(Arena *arena, int pipelines) {
    return (Dispatch){0, arena_array(arena, int, pipelines), arena_array(arena, int, pipelines),
                      INFINITY};
}

Dispatcher *dispatcher_create(Arena *arena, const Schemes *schemes, int gpus, int sequences) {
    Dispatcher *dispatcher = arena_new(arena, Dispatcher);
    int least = gpus, most_bins = sequences + gpus;
    for (int i = 0; i < schemes->count; i++)
        least = schemes->at[i].gpus < least ? schemes->at[i].gpus : least;
    *dispatcher =
        (Dispatcher){.schemes = schemes, .most_pipelines = gpus / least, .most_bins = most_bins};
    dispatcher->bins = arena_array(arena, Bin, most_bins);
    dispatcher->classes = arena_array(arena, Class, dispatcher->most_pipelines);
    dispatcher->now = dispatch_create(arena, dispatcher->most_pipelines);
    dispatcher->best = dispatch_create(arena, dispatcher->most_pipelines);
    dispatcher->places = arena_array(arena, int, sequences);
    return dispatcher;
}

static void dispatch_copy(Dispatch *to, const Dispatch *from) {
    to->count = from->count;
    to->time = from->time;
    memcpy(to->schemes, from->schemes, sizeof(int) * (size_t)from->count);
    memcpy(to->microbatches, from->microbatches, sizeof(int) * (size_t)from->count);
}

/* ---- dispatching the longest sequences first ---- */

/* Adds a pipeline's bins to the last class if the class's pipelines equal it, else to a new one. */
static void add_pipeline(Dispatcher *dispatcher, const Dispatch *dispatch, int pipeline) {
    int scheme = dispatch->schemes[pipeline], v = dispatch->microbatches[pipeline];
    const Scheme *of = &dispatcher->schemes->at[scheme];
    Class *last =
        dispatcher->class_count ? &dispatcher->classes[dispatcher->class_count - 1] : NULL;
    if (!last || last->scheme != scheme || last->microbatches != v) {
        last = &dispatcher->classes[dispatcher->class_count++];
        *last = (Class){scheme, v, dispatcher->bin_count, 0, of->tokens, of->pp - 1 + v, of->c};
    }
    for (int i = 0; i < v; i++)
        dispatcher->bins[dispatcher->bin_count++] = (Bin){0, 0, pipeline, i};
    last->count += v;
}

/* Opens empty bins for the micro-batches of all pipelines. Returns false if there are too many. */
static bool open_bins(Dispatcher *dispatcher, const Dispatch *dispatch) {
    dispatcher->class_count = dispatcher->bin_count = 0;
    for (int p = 0; p < dispatch->count; p++) {
        if (dispatcher->bin_count + dispatch->microbatches[p] > dispatcher->most_bins) return false;
        if (dispatch->microbatches[p]) add_pipeline(dispatcher, dispatch, p);
    }
    return true;
}

/* Returns the index in a class of its lightest bin with room for a sequence; -1: none has room. */
static int lightest(const Dispatcher *dispatcher, Class *class, int length) {
    const Bin *bins = dispatcher->bins + class->first;
    int most = dispatcher->schemes->at[class->scheme].tokens, best = -1, room = 0;
    if (length > class->room) return -1;
    if (bins[0].tokens + length <= most) return 0;
    for (int i = 0; i < class->count; i++) {
        room = most - bins[i].tokens > room ? most - bins[i].tokens : room;
        if (bins[i].tokens + length <= most && (best < 0 || bins[i].weight < bins[best].weight))
            best = i;
    }
    class->room = room;
    return best;
}

/* Adds a sequence to a bin and restores the heap. */
static void put(Dispatcher *dispatcher, const Class *class, int at, double weight, int length) {
    Bin *bins = dispatcher->bins + class->first, bin = bins[at];
    bin.weight += weight;
    bin.tokens += length;
    for (int child; (child = 2 * at + 1) < class->count; at = child) {
        if (child + 1 < class->count && bins[child + 1].weight < bins[child].weight) child++;
        if (bins[child].weight >= bin.weight) break;
        bins[at] = bins[child];
    }
    bins[at] = bin;
}

/* Adds sequence `i` where a bin then ends earliest. Returns that end in ms; INFINITY: no room. */
static double put_best(Dispatcher *dispatcher, const Batch *batch, int i) {
    Class *best = NULL;
    int best_bin = 0;
    double least = INFINITY;
    for (int k = 0; k < dispatcher->class_count; k++) {
        Class *class = &dispatcher->classes[k];
        int bin = lightest(dispatcher, class, batch->lengths[i]);
        double end = bin < 0 ? INFINITY
                             : (dispatcher->bins[class->first + bin].weight +
                                batch->weights[class->scheme][i] + class->c) *
                                   class->factor;
        if (end < least) {
            least = end;
            best = class;
            best_bin = bin;
        }
    }
    if (!best) return INFINITY;
    const Bin *bin = &dispatcher->bins[best->first + best_bin];
    dispatcher->places[i] = bin->pipeline * dispatcher->most_bins + bin->number;
    put(dispatcher, best, best_bin, batch->weights[best->scheme][i], batch->lengths[i]);
    return least;
}

/* Returns the time of a step with these numbers of micro-batches; INFINITY if it is not below
 * `most` or a sequence finds no room. */
static double time_of(Dispatcher *dispatcher, const Dispatch *dispatch, const Batch *batch,
                      double most) {
    double time = 0;
    if (!open_bins(dispatcher, dispatch)) return INFINITY;
    for (int i = 0; i < batch->count; i++) {
        dispatcher->work++;
        time = fmax(time, put_best(dispatcher, batch, i));
        if (time >= most) return INFINITY;
    }
    return time;
}

void dispatch_places(Dispatcher *dispatcher, const Batch *batch, const Dispatch *dispatch,
                     SequencePlaces places) {
    time_of(dispatcher, dispatch, batch, INFINITY);
    for (int i = 0; i < batch->count; i++) {
        places.pipelines[i] = dispatcher->places[i] / dispatcher->most_bins;
        places.microbatches[i] = dispatcher->places[i] % dispatcher->most_bins;
    }
}

/* ---- choosing the numbers of micro-batches ---- */

/* Returns the number of micro-batches, at most `most`, with which a pipeline takes the most tokens
 * in a time. Assumes that sequences are divisible. Sets *tokens to the number of tokens. */
static int best_number(const Scheme *scheme, double per_token, double time, int most,
                       double *tokens) {
    *tokens = 0;
    for (int v = 1; v <= most; v++) {
        double each = fmin(scheme->tokens, (time / (scheme->pp - 1 + v) - scheme->c) / per_token);
        if (v * each <= *tokens) return v - 1;
        *tokens = v * each;
    }
    return most;
}

/* Returns the tokens that the pipelines must take if sequences are divisible: the batch's tokens,
 * but at most the tokens of the largest micro-batch times the number of sequences. */
static double needed_tokens(const Dispatcher *dispatcher, const Batch *batch,
                            const Dispatch *dispatch) {
    int most = 0;
    for (int p = 0; p < dispatch->count; p++)
        most = (int)fmax(most, dispatcher->schemes->at[dispatch->schemes[p]].tokens);
    return fmin((double)batch->tokens, (double)most * batch->count);
}

/* Sets the numbers of micro-batches that fit in a time. Returns whether they hold the batch. */
static bool begin_with(const Dispatcher *dispatcher, const Batch *batch, double time,
                       Dispatch *dispatch) {
    double all = 0, tokens;
    for (int p = 0; p < dispatch->count; p++) {
        int scheme = dispatch->schemes[p];
        if (p && dispatch->schemes[p - 1] == scheme)
            dispatch->microbatches[p] = dispatch->microbatches[p - 1];
        else
            dispatch->microbatches[p] =
                best_number(&dispatcher->schemes->at[scheme], batch->per_token[scheme], time,
                            batch->count, &tokens);
        all += tokens;
    }
    return all >= needed_tokens(dispatcher, batch, dispatch);
}

/* Sets the pipelines of a strategy with the numbers of micro-batches that take the batch's tokens
 * in the least time when sequences are divisible. Returns that time. */
static double begin(Dispatcher *dispatcher, const Strategy *strategy, const Batch *batch,
                    Dispatch *dispatch) {
    double low = 0, high = 1;
    dispatch->count = 0;
    for (int scheme = 0; scheme < dispatcher->schemes->count; scheme++)
        for (int i = 0; i < strategy->pipelines[scheme]; i++)
            dispatch->schemes[dispatch->count++] = scheme;
    while (!begin_with(dispatcher, batch, high, dispatch)) high *= 2;
    for (int turn = 0; turn < 12; turn++) {
        double middle = 0.5 * (low + high);
        *(begin_with(dispatcher, batch, middle, dispatch) ? &high : &low) = middle;
    }
    begin_with(dispatcher, batch, high, dispatch);
    return high;
}

double dispatch_smooth(Dispatcher *dispatcher, const Strategy *strategy, const Batch *batch) {
    return begin(dispatcher, strategy, batch, &dispatcher->now);
}

/* A run of adjacent pipelines with equal schemes and numbers of micro-batches. */
typedef struct Run {
    int first, last;
} Run;

/* Returns the run that begins with pipeline `first`. */
static Run run_from(const Dispatch *dispatch, int first) {
    Run run = {first, first};
    while (run.last + 1 < dispatch->count &&
           dispatch->schemes[run.last + 1] == dispatch->schemes[first] &&
           dispatch->microbatches[run.last + 1] == dispatch->microbatches[first])
        run.last++;
    return run;
}

/* Returns the pipelines of a run that change: all of them, or one. To keep equal pipelines
 * adjacent, that one is the first if it gets more micro-batches, else the last. */
static Run chosen(Run run, int change, bool all) {
    int one = change > 0 ? run.first : run.last;
    return all ? run : (Run){one, one};
}

static void change_numbers(Dispatch *dispatch, Run run, int change) {
    for (int p = run.first; p <= run.last; p++) dispatch->microbatches[p] += change;
}

/* Returns whether the step is shorter with the changed numbers of micro-batches, and if so stores
 * its time in *dispatch. */
static bool is_shorter(Dispatcher *dispatcher, const Batch *batch, Dispatch *dispatch) {
    double time = time_of(dispatcher, dispatch, batch, dispatch->time * (1 - 1e-9));
    if (time >= dispatch->time) return false;
    dispatch->time = time;
    return true;
}

/* Changes the micro-batches of each pipeline of a run by `change`, and keeps the change if the step
 * gets shorter. Returns whether the change was kept. */
static bool try_one(Dispatcher *dispatcher, const Batch *batch, Dispatch *dispatch, Run own,
                    int change) {
    if (dispatch->microbatches[own.first] + change < 0) return false;
    change_numbers(dispatch, own, change);
    if (is_shorter(dispatcher, batch, dispatch)) return true;
    change_numbers(dispatch, own, -change);
    return false;
}

/* Changes two runs at once: one gets fewer micro-batches, the other more (as in try_one). */
static bool try_two(Dispatcher *dispatcher, const Batch *batch, Dispatch *dispatch, Run from,
                    Run to) {
    if (dispatch->microbatches[from.first] < 1) return false;
    change_numbers(dispatch, from, -1);
    change_numbers(dispatch, to, 1);
    if (is_shorter(dispatcher, batch, dispatch)) return true;
    change_numbers(dispatch, from, 1);
    change_numbers(dispatch, to, -1);
    return false;
}

/* Makes the first change of one run that shortens the step. Returns false when there is none. */
static bool change_one(Dispatcher *dispatcher, const Batch *batch, Dispatch *dispatch) {
    for (Run run = {0, -1}; run.last + 1 < dispatch->count;) {
        run = run_from(dispatch, run.last + 1);
        for (int way = 0; way < (run.last > run.first ? 4 : 2); way++) {
            int change = way & 1 ? -1 : 1;
            if (try_one(dispatcher, batch, dispatch, chosen(run, change, way & 2), change))
                return true;
        }
    }
    return false;
}

/* Makes the first change of two runs that shortens the step. Returns false when there is none. */
static bool change_two(Dispatcher *dispatcher, const Batch *batch, Dispatch *dispatch) {
    for (Run less = {0, -1}; less.last + 1 < dispatch->count;) {
        less = run_from(dispatch, less.last + 1);
        for (Run more = {0, -1}; more.last + 1 < dispatch->count;) {
            more = run_from(dispatch, more.last + 1);
            for (int way = 0; less.first != more.first && way < 4; way++)
                if (((way & 1) == 0 || less.last > less.first) &&
                    ((way & 2) == 0 || more.last > more.first) &&
                    try_two(dispatcher, batch, dispatch, chosen(less, -1, way & 1),
                            chosen(more, 1, way & 2)))
                    return true;
        }
    }
    return false;
}

/* Sorts each scheme's numbers of micro-batches, descending, so that equal ones are adjacent. */
static void sort_numbers(Dispatch *dispatch) {
    for (int i = 1; i < dispatch->count; i++)
        for (int j = i; j > 0 && dispatch->schemes[j] == dispatch->schemes[j - 1] &&
                        dispatch->microbatches[j] > dispatch->microbatches[j - 1];
             j--) {
            int swap = dispatch->microbatches[j];
            dispatch->microbatches[j] = dispatch->microbatches[j - 1];
            dispatch->microbatches[j - 1] = swap;
        }
}

/* Changes the numbers of micro-batches of one run or of two, as long as the step gets shorter. */
static void descend(Dispatcher *dispatcher, const Batch *batch, Dispatch *dispatch) {
    while (change_one(dispatcher, batch, dispatch) || change_two(dispatcher, batch, dispatch))
        sort_numbers(dispatch);
}

/* Changes a few numbers of micro-batches at random, and computes the time of the step. */
static void kick(Dispatcher *dispatcher, const Batch *batch, Dispatch *dispatch, Random *random) {
    for (int turn = 1 + random_below(random, 3); turn > 0; turn--) {
        Run run = run_from(dispatch, random_below(random, dispatch->count));
        int change = random_below(random, 2) ? 1 : -1;
        run.last = random_below(random, 2) ? run.last : run.first;
        if (dispatch->microbatches[run.first] + change >= 0) change_numbers(dispatch, run, change);
    }
    sort_numbers(dispatch);
    dispatch->time = time_of(dispatcher, dispatch, batch, INFINITY);
}

/* Starts with one micro-batch for each sequence, dealt round robin to the pipelines that hold it.
 * Dispatching the longest first then always finds room. Pipelines that hold a long sequence also
 * hold shorter ones, so one of their micro-batches is empty. Returns false when no pipeline holds
 * the longest sequence. */
static bool deal_numbers(Dispatcher *dispatcher, const Batch *batch, Dispatch *dispatch) {
    memset(dispatch->microbatches, 0, sizeof(int) * (size_t)dispatch->count);
    for (int i = 0, p = 0; i < batch->count; i++) {
        int turns = 0;
        while (turns++ < dispatch->count &&
               dispatcher->schemes->at[dispatch->schemes[p]].tokens < batch->lengths[i])
            p = (p + 1) % dispatch->count;
        if (turns > dispatch->count) return false;
        dispatch->microbatches[p]++;
        p = (p + 1) % dispatch->count;
    }
    return true;
}

/* Gives all pipelines one micro-batch more, up to 8 times, until the sequences find room; if they
 * find none, deals one micro-batch for each sequence. */
static void make_room(Dispatcher *dispatcher, const Batch *batch, Dispatch *dispatch) {
    dispatch->time = time_of(dispatcher, dispatch, batch, INFINITY);
    for (int turn = 0; turn < 8 && isinf(dispatch->time); turn++) {
        for (int p = 0; p < dispatch->count; p++) dispatch->microbatches[p]++;
        dispatch->time = time_of(dispatcher, dispatch, batch, INFINITY);
    }
    if (isinf(dispatch->time) && deal_numbers(dispatcher, batch, dispatch)) {
        sort_numbers(dispatch);
        dispatch->time = time_of(dispatcher, dispatch, batch, INFINITY);
    }
}

/* ---- small batches: trying all numbers of micro-batches ---- */

enum { FEW = 1 << 14 };

/* Returns whether all combinations of numbers of micro-batches are few enough to try. */
static bool are_few(const Batch *batch, const Dispatch *dispatch) {
    double all = 1;
    for (int p = 0; p < dispatch->count; p++) all *= batch->count + 1;
    return all <= FEW;
}

/* Advances to the next combination of numbers of micro-batches, in which the first pipeline's
 * number changes fastest. Returns false after the last. */
static bool next_numbers(const Batch *batch, Dispatch *dispatch) {
    for (int p = 0; p < dispatch->count; p++) {
        if (dispatch->microbatches[p]++ < batch->count) return true;
        dispatch->microbatches[p] = 0;
    }
    return false;
}

/* Returns whether each scheme's numbers descend: one order stands for all permutations. */
static bool are_falling(const Dispatch *dispatch) {
    for (int p = 1; p < dispatch->count; p++)
        if (dispatch->schemes[p] == dispatch->schemes[p - 1] &&
            dispatch->microbatches[p] > dispatch->microbatches[p - 1])
            return false;
    return true;
}

/* Tries all combinations of numbers of micro-batches. Leaves the best in dispatcher->best. */
static void try_all(Dispatcher *dispatcher, const Batch *batch) {
    Dispatch *best = &dispatcher->best, *now = &dispatcher->now;
    dispatch_copy(now, best);
    memset(now->microbatches, 0, sizeof(int) * (size_t)now->count);
    while (next_numbers(batch, now))
        if (are_falling(now) && is_shorter(dispatcher, batch, now)) dispatch_copy(best, now);
}

const Dispatch *dispatch_find(Dispatcher *dispatcher, const Strategy *strategy, const Batch *batch,
                              Random *random, int kicks) {
    Dispatch *best = &dispatcher->best, *now = &dispatcher->now;
    begin(dispatcher, strategy, batch, best);
    make_room(dispatcher, batch, best);
    if (are_few(batch, best)) {
        try_all(dispatcher, batch);
        return best;
    }
    if (isinf(best->time)) return best;
    descend(dispatcher, batch, best);
    for (int i = 0; i < kicks; i++) {
        dispatch_copy(now, best);
        kick(dispatcher, batch, now, random);
        if (isinf(now->time)) continue;
        descend(dispatcher, batch, now);
        if (now->time < best->time) dispatch_copy(best, now);
    }
    return best;
}
