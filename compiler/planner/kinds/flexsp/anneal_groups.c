/* Decides sequence-parallel degrees and which group computes which sequence, by simulated
 * annealing. tournament.c chooses the number of micro-batches. */
#include "planner/kinds/flexsp/anneal_groups.h"

#include "planner/kinds/budget.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A group, recorded at the index of its first device; its other devices' records are unused. */
typedef struct Group {
    int size, degree, sequences;
    double work, tokens; // sums over the sequences; work: ms on one device
    double power; // size / gpus * (time / scale)^(2^p): the group's term of the smoothed maximum
} Group;

struct FlexspState {
    const Flexsp *q;
    int batches;
    int p;        // binary logarithm of the exponent of the smoothed maximum
    double scale; // ms by which times are divided before they are raised to a power
    Random random;
    Group *group;               // (batches * gpus): by batch and device, as in `owner`
    int *owner;                 // by batch and device: the first device of its group
    int *at;                    // by sequence: its group's index in `group`
    double *work;               // (sequences): ms on one device
    double *power;              // by batch: the sum of its groups' powers
    int *order;                 // (sequences), longest first
    double temperature;         // current temperature of annealing
    double best;                // ms of the best state
    int *best_at, *best_degree; // the best state: by sequence its group, by group its degree
    int *gathered;              // scratch (sequences): the sequences of a block (block_gather)
};

/* As multiples of the scale: the last temperature; the limit of times before powers are taken. */
static const double COLD = 2e-5, MOST_TIMES = 200;

enum { FIRST_POWER = 2, LAST_POWER = 7, OVERFLOW_WEIGHT = 1000, OVERFLOW_MOST = 40 };

/* Returns whether annealing accepts a change of the objective (Metropolis et al. 1953). */
static bool accepts(FlexspState *s, double change) {
    return change <= 0 || (change < 40 * s->temperature &&
                           change <= -s->temperature * log(1 - random_unit(&s->random)));
}

/* Returns the milliseconds of a group, 0 if it is empty. If the group overflows its memory, the
 * time grows with the overflow, up to 1 + OVERFLOW_MOST times. */
static double group_time(const FlexspState *s, const Group *g) {
    if (!g->sequences) return 0;
    double over =
        fmax(0, OVERFLOW_WEIGHT * (g->tokens / s->q->degree[g->degree].tokens - 1 - 1e-12));
    return flexsp_time(s->q, g->degree, g->work, g->tokens) *
           (1 + over / (1 + over / OVERFLOW_MOST));
}

static double group_power(const FlexspState *s, const Group *g) {
    double x = fmin(group_time(s, g) / s->scale, MOST_TIMES);
    for (int p = 0; p < s->p; p++) x *= x;
    return x * g->size / s->q->gpus;
}

/* Returns the smoothed maximum of a micro-batch whose groups' powers sum to `power`. */
static double smoothed(const FlexspState *s, double power) {
    double x = power > 0 ? power : 0;
    for (int p = 0; p < s->p; p++) x = sqrt(x);
    return x * s->scale;
}

static int batch_of(const FlexspState *s, int group) { return group / s->q->gpus; }

/* Adds a sequence's work to a group, or takes it away with sign -1. */
static void group_add(const FlexspState *s, Group *g, int sequence, int sign) {
    g->sequences += sign;
    g->work = g->sequences ? g->work + sign * s->work[sequence] : 0;
    g->tokens = g->sequences ? g->tokens + sign * (double)s->q->length[sequence] : 0;
}

/* Writes two changed groups to the state, and returns true, if annealing accepts the change. */
static bool groups_change(FlexspState *s, int a, int b, Group *to_a, Group *to_b) {
    int batch_a = batch_of(s, a), batch_b = batch_of(s, b);
    to_a->power = group_power(s, to_a), to_b->power = group_power(s, to_b);
    double more_a = to_a->power - s->group[a].power, more_b = to_b->power - s->group[b].power,
           change;
    if (batch_a == batch_b)
        change = smoothed(s, s->power[batch_a] + more_a + more_b) - smoothed(s, s->power[batch_a]);
    else
        change = smoothed(s, s->power[batch_a] + more_a) - smoothed(s, s->power[batch_a]) +
                 (smoothed(s, s->power[batch_b] + more_b) - smoothed(s, s->power[batch_b]));
    if (!accepts(s, change)) return false;
    s->power[batch_a] += more_a, s->power[batch_b] += more_b;
    s->group[a] = *to_a, s->group[b] = *to_b;
    return true;
}

/* Moves a random sequence to the group of a random device. */
static void sequence_move(FlexspState *s) {
    int i = random_below(&s->random, s->q->length_count), a = s->at[i],
        b = s->owner[random_below(&s->random, s->batches * s->q->gpus)];
    if (a == b) return;
    Group to_a = s->group[a], to_b = s->group[b];
    group_add(s, &to_a, i, -1), group_add(s, &to_b, i, 1);
    if (groups_change(s, a, b, &to_a, &to_b)) s->at[i] = b;
}

/* Swaps two sequences of different groups, half of the time two of nearly equal length. */
static void sequence_swap(FlexspState *s) {
    int n = s->q->length_count, near = n < 32 ? n : 32, x = random_below(&s->random, n);
    int y = random_bits(&s->random) & 1 ? random_below(&s->random, n)
                                        : (x + 1 + random_below(&s->random, near)) % n;
    int i = s->order[x], j = s->order[y], a = s->at[i], b = s->at[j];
    if (a == b) return;
    Group to_a = s->group[a], to_b = s->group[b];
    group_add(s, &to_a, i, -1), group_add(s, &to_a, j, 1);
    group_add(s, &to_b, j, -1), group_add(s, &to_b, i, 1);
    if (groups_change(s, a, b, &to_a, &to_b)) s->at[i] = b, s->at[j] = a;
}

/* Returns the first device of a random block with no group across its border, and sets *degree to
 * the index of its size. If a larger group covers the block, returns the group's block. */
static int block_pick(FlexspState *s, int *degree) {
    int gpus = s->q->gpus, batch = random_below(&s->random, s->batches),
        d = random_below(&s->random, s->q->degree_count);
    int size = s->q->degree[d].size,
        start = batch * gpus + random_below(&s->random, gpus / size) * size,
        owner = s->owner[start];
    bool covered = s->group[owner].size > size;
    *degree = covered ? s->group[owner].degree : d;
    return covered ? owner : start;
}

/* Fills `gathered`, longest first, with the sequences of groups in [start, start + size). Returns
 * how many. */
static int block_gather(FlexspState *s, int start, int size) {
    int count = 0;
    for (int x = 0; x < s->q->length_count; x++)
        if (s->at[s->order[x]] >= start && s->at[s->order[x]] < start + size)
            s->gathered[count++] = s->order[x];
    return count;
}

/* Appends to the `count` groups a block of the size of `degree`, cut into empty groups of random
 * degrees in order of devices. Returns the new number of groups. */
static int block_cut(FlexspState *s, int degree, Group *groups, int count) {
    const FlexspDegree *d = s->q->degree;
    if (degree == 0 || random_bits(&s->random) & 1) {
        groups[count] = (Group){.size = d[degree].size, .degree = degree};
        return count + 1;
    }
    for (int part = 0; part < d[degree].size; part += d[degree - 1].size)
        count = block_cut(s, degree - 1, groups, count);
    return count;
}

/* Returns the group that finishes soonest with one more sequence; the times of groups that would
 * overflow are much longer (group_time). */
static int group_soonest(const FlexspState *s, const Group *groups, int count, int sequence) {
    int best = 0;
    double best_time = INFINITY;
    for (int g = 0; g < count; g++) {
        Group with = groups[g];
        group_add(s, &with, sequence, 1);
        double time = group_time(s, &with);
        if (time < best_time) best = g, best_time = time;
    }
    return best;
}

/* Forms new groups of a block if annealing accepts the change. Returns the work, in moves. */
static int block_form(FlexspState *s) {
    int degree, start = block_pick(s, &degree), size = s->q->degree[degree].size,
                batch = batch_of(s, start);
    Group groups[size];
    int starts[size], chosen[s->q->length_count];
    int sequences = block_gather(s, start, size), count = block_cut(s, degree, groups, 0);
    for (int g = 0, at = start; g < count; at += groups[g++].size) starts[g] = at;
    for (int x = 0; x < sequences; x++) {
        chosen[x] = group_soonest(s, groups, count, s->gathered[x]);
        group_add(s, &groups[chosen[x]], s->gathered[x], 1);
    }
    double power = s->power[batch];
    for (int g = start; g < start + size; g += s->group[g].size) power -= s->group[g].power;
    for (int g = 0; g < count; g++) power += groups[g].power = group_power(s, &groups[g]);
    if (accepts(s, smoothed(s, power) - smoothed(s, s->power[batch]))) {
        s->power[batch] = power;
        for (int x = 0; x < sequences; x++) s->at[s->gathered[x]] = starts[chosen[x]];
        for (int g = 0; g < count; g++) {
            s->group[starts[g]] = groups[g];
            for (int device = 0; device < groups[g].size; device++)
                s->owner[starts[g] + device] = starts[g];
        }
    }
    return 4 + s->q->length_count / 16 + sequences * count / 4;
}

static double block_power(const FlexspState *s, int start, int size) {
    double power = 0;
    for (int g = start; g < start + size; g += s->group[g].size) power += s->group[g].power;
    return power;
}

/* Exchanges the groups of two blocks. */
static void block_exchange(FlexspState *s, int a, int b, int size) {
    for (int i = 0; i < s->q->length_count; i++)
        if (s->at[i] >= a && s->at[i] < a + size) s->at[i] += b - a;
        else if (s->at[i] >= b && s->at[i] < b + size) s->at[i] += a - b;
    for (int device = 0; device < size; device++) {
        Group group = s->group[a + device];
        s->group[a + device] = s->group[b + device];
        s->group[b + device] = group;
        int owner = s->owner[a + device];
        s->owner[a + device] = s->owner[b + device] + a - b;
        s->owner[b + device] = owner + b - a;
    }
}

/* Swaps two blocks of the same size of different micro-batches, if accepted. Returns the work. */
static int block_swap(FlexspState *s) {
    int degree, a = block_pick(s, &degree), size = s->q->degree[degree].size, gpus = s->q->gpus;
    int batch_a = batch_of(s, a), batch_b = random_below(&s->random, s->batches);
    int b = batch_b * gpus + random_below(&s->random, gpus / size) * size;
    if (batch_a == batch_b || s->group[s->owner[b]].size > size) return 1;
    double more = block_power(s, b, size) - block_power(s, a, size);
    double change = smoothed(s, s->power[batch_a] + more) - smoothed(s, s->power[batch_a]) +
                    (smoothed(s, s->power[batch_b] - more) - smoothed(s, s->power[batch_b]));
    if (!accepts(s, change)) return 2;
    s->power[batch_a] += more, s->power[batch_b] -= more;
    block_exchange(s, a, b, size);
    return 4 + s->q->length_count / 16;
}

/* Recomputes the sums of powers: for a new p, and against rounding errors. */
static void powers_renew(FlexspState *s) {
    for (int batch = 0; batch < s->batches; batch++) {
        int start = batch * s->q->gpus;
        s->power[batch] = 0;
        for (int g = start; g < start + s->q->gpus; g += s->group[g].size)
            s->power[batch] += s->group[g].power = group_power(s, &s->group[g]);
    }
}

/* Returns the milliseconds of the state; INFINITY when a group does not fit. */
static double state_time(const FlexspState *s) {
    double sum = 0;
    for (int batch = 0; batch < s->batches; batch++) {
        double slowest = 0;
        for (int g = batch * s->q->gpus; g < (batch + 1) * s->q->gpus; g += s->group[g].size) {
            if (s->group[g].sequences &&
                s->group[g].tokens > s->q->degree[s->group[g].degree].tokens * (1 + 1e-9))
                return INFINITY;
            slowest = fmax(slowest, group_time(s, &s->group[g]));
        }
        sum += slowest;
    }
    return sum;
}

static void best_keep(FlexspState *s) {
    double time = state_time(s);
    if (time >= s->best) return;
    s->best = time;
    memcpy(s->best_at, s->at, sizeof *s->at * (size_t)s->q->length_count);
    for (int g = 0; g < s->batches * s->q->gpus; g++) s->best_degree[g] = s->group[g].degree;
}

static int step(FlexspState *s) {
    int dice = random_below(&s->random, 256);
    if (dice < 2) return block_form(s);
    if (dice < 6) return block_swap(s);
    if (dice < 120) sequence_move(s);
    else sequence_swap(s);
    return 1;
}

static void best_restore(FlexspState *s) {
    for (int g = 0; g < s->batches * s->q->gpus; g += s->group[g].size) {
        int degree = s->best_degree[g];
        s->group[g] = (Group){.size = s->q->degree[degree].size, .degree = degree};
        for (int device = 0; device < s->group[g].size; device++) s->owner[g + device] = g;
    }
    for (int i = 0; i < s->q->length_count; i++) {
        s->at[i] = s->best_at[i];
        group_add(s, &s->group[s->at[i]], i, 1);
    }
}

void flexsp_anneal(FlexspState *s, double hot, int64_t work) {
    enum { CHECK = 2048, BETWEEN = 64 };
    int64_t check = 0;
    if (isfinite(s->best)) best_restore(s);
    for (int64_t done = 0; done < work;) {
        double progress = (double)done / (double)work;
        s->temperature = s->scale * hot * pow(COLD / hot, progress);
        if (done >= check) {
            check = done + CHECK;
            s->p = FIRST_POWER + (int)((LAST_POWER - FIRST_POWER + 1) * progress);
            powers_renew(s);
            best_keep(s);
        }
        for (int k = 0; k < BETWEEN; k++) done += step(s);
    }
    powers_renew(s);
    best_keep(s);
}

double flexsp_best(const FlexspState *s) { return s->best; }

typedef struct Length {
    int64_t tokens;
    int sequence;
} Length;

static int longer_first(const void *a, const void *b) {
    const Length *x = a, *y = b;
    return x->tokens != y->tokens ? (x->tokens < y->tokens) - (x->tokens > y->tokens)
                                  : x->sequence - y->sequence;
}

/* Returns the sequence numbers, longest first. */
static int *longest_first(Arena *arena, const Flexsp *q) {
    int *order = arena_array(arena, int, q->length_count);
    Length *lengths = arena_array(arena, Length, q->length_count);
    for (int i = 0; i < q->length_count; i++) lengths[i] = (Length){q->length[i], i};
    qsort(lengths, (size_t)q->length_count, sizeof *lengths, longer_first);
    for (int x = 0; x < q->length_count; x++) order[x] = lengths[x].sequence;
    return order;
}

/* Fills each micro-batch with empty groups, each of the largest degree that fits. */
static void groups_begin(FlexspState *s) {
    int gpus = s->q->gpus;
    for (int start = 0, degree; start < s->batches * gpus; start += s->q->degree[degree].size) {
        for (degree = s->q->degree_count - 1; s->q->degree[degree].size > gpus - start % gpus;)
            degree--;
        s->group[start] = (Group){.size = s->q->degree[degree].size, .degree = degree};
        for (int device = 0; device < s->group[start].size; device++)
            s->owner[start + device] = start;
    }
}

/* Starts from a cut, with each micro-batch's sequences in its first group. Then calls block_form
 * 200 times for each micro-batch; at temperature 0 it accepts no change for the worse. */
static void state_begin(FlexspState *s, const int *cut) {
    s->scale = flexsp_bound(s->q).value / s->batches;
    s->best = INFINITY;
    groups_begin(s);
    for (int batch = 0; batch < s->batches; batch++)
        for (int x = cut[batch]; x < cut[batch + 1]; x++) {
            s->at[s->order[x]] = batch * s->q->gpus;
            group_add(s, &s->group[batch * s->q->gpus], s->order[x], 1);
        }
    s->p = LAST_POWER;
    powers_renew(s);
    for (int tries = 0; tries < 200 * s->batches; tries++) block_form(s);
}

FlexspState *flexsp_state(Arena *arena, const Flexsp *q, int batches, double fill, uint64_t seed) {
    FlexspState *s = arena_new(arena, FlexspState);
    int devices = batches * q->gpus;
    *s = (FlexspState){.q = q, .batches = batches, .random = {seed}};
    s->group = arena_array(arena, Group, devices);
    s->owner = arena_array(arena, int, devices);
    s->at = arena_array(arena, int, q->length_count);
    s->work = arena_array(arena, double, q->length_count);
    s->power = arena_array(arena, double, batches);
    s->best_at = arena_array(arena, int, q->length_count);
    s->best_degree = arena_array(arena, int, devices);
    s->gathered = arena_array(arena, int, q->length_count);
    s->order = longest_first(arena, q);
    for (int i = 0; i < q->length_count; i++) s->work[i] = flexsp_work(q, i);
    state_begin(s, flexsp_cuts(arena, q, s->order, batches, fill));
    return s;
}

FlexspPlan *flexsp_state_plan(Arena *arena, const FlexspState *s) {
    FlexspPlan *plan = arena_new(arena, FlexspPlan);
    FlexspGroup *groups = arena_array(arena, FlexspGroup, s->batches * s->q->gpus);
    plan->milliseconds = s->best;
    plan->groups = groups;
    for (int g = 0; g < s->batches * s->q->gpus; g++) {
        int *members = arena_array(arena, int, s->q->length_count), count = 0;
        for (int i = 0; i < s->q->length_count; i++)
            if (s->best_at[i] == g) members[count++] = i;
        if (count)
            groups[plan->group_count++] =
                (FlexspGroup){batch_of(s, g), s->best_degree[g], count, members};
    }
    return plan;
}
