/* Properties of layouts and plans over random pairs: every destination element arrives, bytes stay at the bound, loads are spread, holders
 * agree to the bit. */
#include "generate.h"
#include "cluster/cluster.h"
#include "reshard/plan.h"
#include "oracle.h"
#include "simulate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__ // an order of magnitude slower; each seed is tried without it
#define PAIRS 5000
#else
#define PAIRS 22000
#endif
enum { MOST_DEVICES = 24, MOST_ELEMENTS = 700, ELEMENT = sizeof(float) };

/* One random conversion. */
typedef struct Pair {
    Arena *arena;
    uint64_t seed;
    Shape shape;
    const Layout *from, *to;
    const char *text;
    Held had, has;
    const Plan *plan;
} Pair;

/* How far the busiest devices are above what they must move and an even share. */
static float *receive_ratios, *send_ratios;
static int ratio_count;

static const Layout *parsed(Arena *arena, Shape shape, const char *text)
{
    Diag *diag = diag_create(arena, stderr);
    diag_source(diag, "random", text);
    const Layout *layout = layout_parse_text(arena, diag, (Position){"random", 1, 1}, text);
    assert_non_null(layout);
    assert_true(layout_check(diag, (Position){"random", 1, 1}, layout, shape));
    return layout;
}

static const char *printed(Arena *arena, const Layout *layout)
{
    Text text = {.arena = arena};
    layout_print(&text, layout);
    return text_bytes(&text);
}

static Pair random_pair(Arena *arena, uint64_t seed)
{
    Random random = {seed};
    Pair pair = {.arena = arena, .seed = seed};
    const char *partial = random_below(&random, 5) ? "sum" : "max";
    int devices = 1 + random_below(&random, random_below(&random, 2) ? 8 : MOST_DEVICES),
        highest = devices + random_below(&random, MOST_DEVICES + 1 - devices);
    pair.shape = random_shape(arena, &random, MOST_ELEMENTS);
    const char *from = random_layout(arena, &random, pair.shape, devices, highest, random_below(&random, 2) ? partial : NULL);
    const char *to = random_layout(arena, &random, pair.shape, devices, highest, random_below(&random, 5) ? NULL : partial);
    pair.from = parsed(arena, pair.shape, from);
    pair.to = parsed(arena, pair.shape, to);
    Text text = {.arena = arena};
    for (int d = 0; d < pair.shape.rank; d++)
        text_print(&text, d ? ",%d" : "%d", (int)pair.shape.extent[d]);
    pair.text = arena_format(arena, "f32[%s]: %s -> %s", text_bytes(&text), from, to);
    pair.had = held_under(arena, pair.from, pair.shape);
    pair.has = held_under(arena, pair.to, pair.shape);
    return pair;
}

#define CHECK(pair, condition, ...)                                                                                                        \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            print_error("%s\n", (pair)->text);                                                                                             \
            fail_msg(__VA_ARGS__);                                                                                                         \
        }                                                                                                                                  \
    } while (0)

/* Print, parse, print is the identity, and the layouts are equal. */
static void check_text(const Pair *pair, const Layout *layout)
{
    const char *text = printed(pair->arena, layout);
    const Layout *again = parsed(pair->arena, pair->shape, text);
    CHECK(pair, !strcmp(text, printed(pair->arena, again)), "%s prints differently when parsed", text);
    CHECK(pair, layout_equal(layout, again, pair->shape), "%s is not equal to what was printed", text);
}

static float *filled(const Pair *pair, int device)
{
    const Held *had = &pair->had;
    int i = 0;
    while (i < had->device_count && had->devices[i] != device)
        i++;
    float *data = malloc(sizeof *data * (size_t)(i < had->device_count ? had->regions[i].volume : 0) + 1);
    for (int e = 0; i < had->device_count && e < had->volume; e++)
        if (had->offset[i][e] >= 0)
            data[had->offset[i][e]] = contribution_value(had, pair->seed, had->regions[i].replica, had->regions[i].partial, e);
    return data;
}

static int plan_index(const Plan *plan, int device)
{
    for (int i = 0; i < plan->device_count; i++)
        if (plan->devices[i] == device)
            return i;
    return -1;
}

/* Every holder of a contribution has the same bits, and the contributions of a replica make the value. */
static void check_element(const Pair *pair, float *const *to, int e)
{
    const Held *has = &pair->has;
    bool reduced = has->partial == STATE_DUP;
    float value = element_value(pair->seed, e);
    for (int r = 0; r < has->replica_count; r++) {
        float parts[32], made = has->partial == STATE_MAX ? -INFINITY : 0;
        uint32_t seen = 0;
        for (int i = 0; i < has->device_count; i++) {
            if (has->offset[i][e] < 0 || (!reduced && has->regions[i].replica != r))
                continue;
            int id = reduced ? 0 : has->regions[i].partial;
            float x = to[plan_index(pair->plan, has->devices[i])][has->offset[i][e]];
            CHECK(pair, !(seen >> id & 1) || !memcmp(&parts[id], &x, sizeof x), "holders of element %d differ: %a and %a on device %d", e,
                  parts[id], x, has->devices[i]);
            parts[id] = x;
            if (!(seen >> id & 1))
                made = has->partial == STATE_MAX ? fmaxf(made, x) : made + x;
            seen |= 1u << id;
        }
        CHECK(pair, !seen || fabsf(made - value) < 2e-5f, "element %d is %g, not %g", e, made, value);
    }
}

static void check_result(const Pair *pair)
{
    const Plan *plan = pair->plan;
    float **from = arena_array(pair->arena, float *, plan->device_count), **to = arena_array(pair->arena, float *, plan->device_count);
    for (int i = 0; i < plan->device_count; i++) {
        Region region = layout_region(pair->arena, pair->to, pair->shape, plan->devices[i]);
        from[i] = filled(pair, plan->devices[i]);
        to[i] = malloc(sizeof(float) * (size_t)region.volume + 1);
        memset(to[i], 0xff, sizeof(float) * (size_t)region.volume);
    }
    const ht_reshard *lowered = plan_lowered(pair->arena, plan, pair->text);
    CHECK(pair, simulate(pair->arena, lowered, from, plan->in_place ? from : to), "the devices wait for each other, or a message is lost");
    for (int e = 0; e < pair->has.volume; e++)
        check_element(pair, plan->in_place ? from : to, e);
    for (int i = 0; i < plan->device_count; i++) {
        free(from[i]);
        free(to[i]);
    }
}

static void check_bytes(const Pair *pair)
{
    if (pair->had.partial != STATE_DUP && pair->has.partial != STATE_DUP)
        return;
    long moved = (long)(plan_bytes(pair->plan) / ELEMENT),
         most = lower_bound(&pair->had, &pair->has) + textbook_slack(&pair->had, &pair->has);
    CHECK(pair, moved <= most, "%ld elements are received, %ld are allowed, by: %s", moved, most, plan_name(pair->plan));
}

static float load_ratio(double load, double must, double even)
{
    double least = must > even ? must : even;
    return load <= least ? 1 : (float)(load / least);
}

/* Remembers how uneven the loads are, of pairs with at least 4 elements a device. */
static void note_loads(const Pair *pair)
{
    const Plan *plan = pair->plan;
    int64_t total = plan_bytes(plan) / ELEMENT;
    if (!total || pair->has.partial != STATE_DUP || pair->had.volume < 4 * plan->device_count)
        return;
    double even = (double)total / plan->device_count, received = 0, sent = 0, must_send, must_receive;
    for (int i = 0; i < plan->device_count; i++) {
        received = fmax(received, (double)(plan->received[i] / ELEMENT));
        sent = fmax(sent, (double)(plan->sent[i] / ELEMENT));
    }
    must_move(pair->arena, &pair->had, &pair->has, &must_send, &must_receive);
    CHECK(pair, total != lower_bound(&pair->had, &pair->has) || (sent >= must_send && received >= must_receive),
          "the busiest devices move %.0f and %.0f elements, less than the bounds %.0f and %.0f", sent, received, must_send, must_receive);
    receive_ratios[ratio_count] = load_ratio(received, must_receive, even);
    send_ratios[ratio_count] = load_ratio(sent, must_send, even);
    if (getenv("RESHARDING_VERBOSE") && (receive_ratios[ratio_count] > 2 || send_ratios[ratio_count] > 2))
        print_message("received %.2f sent %.2f even %.1f most %.0f %.0f: %s\n    %s\n", (double)receive_ratios[ratio_count],
                      (double)send_ratios[ratio_count], even, received, sent, plan_name(plan), pair->text);
    ratio_count++;
}

/* One to four hosts, and links between them that are slower. */
static const Cluster *random_cluster(Arena *arena, Random *random)
{
    Cluster *cluster = arena_new(arena, Cluster);
    ClusterDevice *devices = arena_array(arena, ClusterDevice, MOST_DEVICES);
    int hosts = 1 + random_below(random, 4), each = 1 + random_below(random, MOST_DEVICES / hosts);
    bool mixed = !random_below(random, 3);
    for (int d = 0; d < MOST_DEVICES; d++)
        devices[d] = (ClusterDevice){.host = mixed ? random_below(random, hosts) : d / each % hosts, .processor = d};
    *cluster = (Cluster){
        .device_count = MOST_DEVICES - random_below(random, 4), .processor_count = MOST_DEVICES, .devices = devices, .local = {1e-6, 1e11}};
    cluster->remote = (Link){.latency = random_below(random, 2) ? 1e-6 : 1e-5, .bandwidth = random_below(random, 2) ? 1e8 : 1e10};
    return cluster;
}

/* The same pair on several hosts, a third of the time. */
static void check_on_hosts(const Pair *pair)
{
    Random random = {pair->seed};
    Pair other = *pair;
    if (random_below(&random, 3))
        return;
    const Cluster *cluster = random_cluster(pair->arena, &random);
    Text hosts = {.arena = pair->arena};
    for (int d = 0; d < MOST_DEVICES; d++)
        text_print(&hosts, "%d", cluster_host(cluster, d));
    other.text = arena_format(pair->arena, "%s, devices on hosts %s", pair->text, text_bytes(&hosts));
    other.plan = reshard_plan(pair->arena, cluster, &(Conversion){pair->shape, HT_F32, pair->from, pair->to});
    check_result(&other);
    check_bytes(&other);
}

static void test_pairs(void **state)
{
    (void)state;
    receive_ratios = malloc(sizeof *receive_ratios * PAIRS);
    send_ratios = malloc(sizeof *send_ratios * PAIRS);
    const char *first = getenv("RESHARDING_SEED");
    for (uint64_t seed = first ? (uint64_t)atoll(first) : 1, end = seed + PAIRS; seed < end; seed++) {
        Arena *arena = arena_create();
        Pair pair = random_pair(arena, seed);
        check_text(&pair, pair.from);
        pair.plan = reshard_plan(arena, NULL, &(Conversion){pair.shape, HT_F32, pair.from, pair.to});
        check_result(&pair);
        check_bytes(&pair);
        note_loads(&pair);
        check_on_hosts(&pair);
        arena_destroy(arena);
    }
}

/* A layout becomes itself: nothing moves. */
static void test_same(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= PAIRS / 10; seed++) {
        Arena *arena = arena_create();
        Pair pair = random_pair(arena, seed);
        pair.text = printed(arena, pair.from);
        const Plan *plan = reshard_plan(arena, NULL, &(Conversion){pair.shape, HT_F32, pair.from, parsed(arena, pair.shape, pair.text)});
        CHECK(&pair, plan_nothing(plan) && !plan_bytes(plan), "%lld bytes are received, by: %s", (long long)plan_bytes(plan),
              plan_name(plan));
        arena_destroy(arena);
    }
}

/* Pipelines of two widths, four of each: `top` over subgroups that cut dimension 0, or copy, as `state` says. */
static const Layout *union_layout(Arena *arena, Shape shape, const char *top, const char *state, const int widths[2])
{
    Text text = {.arena = arena}, weights = {.arena = arena};
    for (int g = 0, first = 0; g < 8; first += widths[g++ % 2]) {
        int width = widths[g % 2];
        text_print(&weights, "%s%d", g ? ":" : "", width);
        text_print(&text, "%s[%d-%d]{%s:%d}", g ? " | " : "", first, first + width - 1, state, width);
    }
    const char *by = strstr(top, "inner") ? arena_format(arena, " by %s ", text_bytes(&weights)) : "";
    return parsed(arena, shape, arena_format(arena, "%s%s(%s)", top, by, text_bytes(&text)));
}

static void check_union(Arena *arena, const Layout *from, const Layout *to, Shape shape, ht_verb verb)
{
    Pair pair = {.arena = arena, .seed = 1, .shape = shape, .from = from, .to = to};
    pair.text = arena_format(arena, "%s -> %s", printed(arena, from), printed(arena, to));
    pair.had = held_under(arena, from, shape);
    pair.has = held_under(arena, to, shape);
    pair.plan = reshard_plan(arena, NULL, &(Conversion){shape, HT_F32, from, to});
    check_result(&pair);
    check_bytes(&pair);
    for (int s = 0; s < pair.plan->steps.count; s++)
        CHECK(&pair, pair.plan->steps.at[s].verb == verb, "step %d is of kind %d, not %d", s, (int)pair.plan->steps.at[s].verb, (int)verb);
}

/* Pipelines of several widths reduce to each device's share and gather it by collectives alone: messages would be as many as their pairs.
 */
static void test_unions(void **state)
{
    static const int widths[][2] = {{4, 2}, {2, 1}, {4, 3}, {3, 2}};
    (void)state;
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        Arena *arena = arena_create();
        Shape shape = {2, (const int64_t[]){37, 13}};
        for (int d = 0; d < 2; d++) {
            const Layout *pieces = union_layout(arena, shape, d ? "split 1 inner" : "split 0 inner", "0", widths[w]);
            check_union(arena, union_layout(arena, shape, "sum", "0", widths[w]), pieces, shape, HT_REDUCE_SCATTER);
            check_union(arena, pieces, union_layout(arena, shape, "dup", "0", widths[w]), shape, HT_ALL_GATHER);
        }
        arena_destroy(arena);
    }
}

static int compare_floats(const void *a, const void *b)
{
    return (*(const float *)a > *(const float *)b) - (*(const float *)a < *(const float *)b);
}

static void print_ratios(const char *what, const float *ratios)
{
    print_message("most %s over what must be or an even share: median %.3f, worst %.3f of %d pairs\n", what,
                  (double)ratios[ratio_count / 2], (double)ratios[ratio_count - 1], ratio_count);
}

/* After test_pairs: nobody moves more than 1.25 times the larger of what must be and an even share in the median pair, and more than twice
 * as much in any. */
static void test_loads(void **state)
{
    (void)state;
    assert_true(ratio_count > PAIRS / 40);
    qsort(receive_ratios, (size_t)ratio_count, sizeof *receive_ratios, compare_floats);
    qsort(send_ratios, (size_t)ratio_count, sizeof *send_ratios, compare_floats);
    print_ratios("received", receive_ratios);
    print_ratios("sent", send_ratios);
    assert_true(receive_ratios[ratio_count / 2] <= 1.25f && send_ratios[ratio_count / 2] <= 1.25f);
    assert_true(receive_ratios[ratio_count - 1] <= 2 && send_ratios[ratio_count - 1] <= 2);
    free(receive_ratios);
    free(send_ratios);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pairs), cmocka_unit_test(test_loads), cmocka_unit_test(test_same),
                                       cmocka_unit_test(test_unions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
