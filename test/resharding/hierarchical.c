/* Hierarchical conversions: first inside hosts, then across them; who sends, and what crosses hosts. */
#include "clusters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static bool spans_hosts(const Cluster *cluster, const Devices *group)
{
    for (int i = 1; i < group->count; i++)
        if (cluster_host(cluster, group->at[i]) != cluster_host(cluster, group->at[0]))
            return true;
    return false;
}

/* The most devices in a group that spans hosts; 2 where a message does; 0 when nothing crosses hosts. */
static int widest_crossing(const Cluster *cluster, const Plan *plan)
{
    int widest = 0;
    for (int s = 0; s < plan->steps.count; s++) {
        const Step *step = &plan->steps.at[s];
        if (spans_hosts(cluster, &step->group) && step->group.count > widest)
            widest = step->group.count;
        for (int m = 0; m < step->messages.count; m++)
            if (widest < 2 && cluster_host(cluster, step->messages.at[m].sender) != cluster_host(cluster, step->messages.at[m].receiver))
                widest = 2;
    }
    return widest;
}

/* Bytes of messages between hosts. */
static int64_t crossing_bytes(const Cluster *cluster, const Plan *plan)
{
    int64_t bytes = 0;
    for (int s = 0; s < plan->steps.count; s++)
        for (int m = 0; m < plan->steps.at[s].messages.count; m++) {
            const Message *message = &plan->steps.at[s].messages.at[m];
            bytes += cluster_host(cluster, message->sender) != cluster_host(cluster, message->receiver) ? message->bytes : 0;
        }
    return bytes;
}

/* The fewest bytes that all devices receive, for one reduction of `contributions` that `wanted` devices want, some of which hold
 * contributions. */
static int64_t least_bytes(int contributions, int wanted) { return (int64_t)(contributions - 1 + wanted - 1) * ROWS * COLUMNS * ELEMENT; }

static void test_two_tiers(void **state)
{
    (void)state;
    Arena *arena = arena_create();
    const Cluster *cluster = read_well(arena, even);
    const Plan *plan = planned(arena, cluster, "[0-15]{sum:16}", "[0-15]{dup:16}");
    assert_string_equal(plan_name(plan), "reduce-scatter, all-reduce, all-gather");
    assert_int_equal(widest_crossing(cluster, plan), 2);
    assert_int_equal(plan->steps.count, 2 + 8 + 2);
    assert_int_equal(plan_bytes(plan), least_bytes(16, 16));
    assert_true(plan_in_place(plan));
    plan = planned(arena, cluster, "[0-15]{sum:16}", "[0-15]{0:16}");
    assert_string_equal(plan_name(plan), "reduce-scatter");
    assert_int_equal(widest_crossing(cluster, plan), 2);
    assert_int_equal(plan_bytes(plan), least_bytes(16, 1));
    plan = planned(arena, cluster, "[0-15]{0:16}", "[0-15]{dup:16}");
    assert_string_equal(plan_name(plan), "all-gather");
    assert_int_equal(widest_crossing(cluster, plan), 2);
    assert_int_equal(plan_bytes(plan), least_bytes(1, 16));
    arena_destroy(arena);
}

/* Where hosts differ, the borders of their slices together give the finest ones, and one group reduces each of these. */
static void test_finest_slices(void **state)
{
    (void)state;
    Arena *arena = arena_create();
    const Cluster *cluster = read_well(arena, uneven);
    const Plan *plan = planned(arena, cluster, "[0-11]{sum:12}", "[0-11]{dup:12}");
    assert_string_equal(plan_name(plan), "reduce-scatter, all-reduce, all-gather");
    assert_int_equal(plan->steps.count, 2 + 8 + 2);
    assert_int_equal(plan_bytes(plan), least_bytes(12, 12));
    for (int s = 0; s < plan->steps.count; s++)
        if (plan->steps.at[s].verb == HT_ALL_REDUCE) {
            assert_int_equal(plan->steps.at[s].group.count, 2);
            assert_int_equal(segments_bytes(plan, &plan->steps.at[s].parts[0]), ROWS * COLUMNS * ELEMENT / 8);
        }
    arena_destroy(arena);
}

/* Duplicates of contributions share the work across hosts. */
static void test_duplicates(void **state)
{
    (void)state;
    Arena *arena = arena_create();
    const Cluster *cluster = read_well(arena, even);
    const Plan *plan = planned(arena, cluster, "[0-15]{sum:2,dup:8}", "[0-15]{dup:16}");
    assert_string_equal(plan_name(plan), "all-reduce, all-gather");
    assert_int_equal(plan->steps.count, 8 + 2);
    for (int s = 0; s < 8; s++)
        assert_int_equal(segments_bytes(plan, &plan->steps.at[s].parts[0]), ROWS * COLUMNS * ELEMENT / 8);
    arena_destroy(arena);
}

/* A device that wants a value gets it from its own host where somebody there has it; and to a host where nobody has it, it goes once. */
static void test_senders(void **state)
{
    (void)state;
    Arena *arena = arena_create();
    const Cluster *cluster = read_well(arena, even);
    static const char *const nearby[][2] = {
        {"[0,8]{dup:2}", "[0-15]{dup:16}"},
        {"[0-15]{dup:2,0:8}", "[0-15]{dup:2,1:8}"},
        {"dup ([0-7]{0:8} | [8-15]{1:8})", "dup ([0-3]{0:4} | [12-15]{0:4})"},
        {"[0,8,1,9,2,10]{sum:3,dup:2}", "[3]{}"},
        {"[0,8,1,9,2,10]{sum:3,dup:2}", "[9,12]{dup:2}"},
    };
    for (size_t i = 0; i < sizeof nearby / sizeof *nearby; i++)
        assert_int_equal(widest_crossing(cluster, planned(arena, cluster, nearby[i][0], nearby[i][1])), 0);
    const Plan *plan = planned(arena, cluster, "[0-1]{0:2}", "[8-15]{dup:8}");
    assert_int_equal(crossing_bytes(cluster, plan), ROWS * COLUMNS * ELEMENT);
    plan = planned(arena, cluster, "[0,9]{dup:2}", "[2,3,12]{dup:3}");
    assert_int_equal(widest_crossing(cluster, plan), 0);
    assert_int_equal(plan_bytes_sent(plan, 9), ROWS * COLUMNS * ELEMENT);
    arena_destroy(arena);
}

/* The same where one tier is cheaper, since the tensor is small: only what a host lacks crosses. */
static void test_near_senders(void **state)
{
    (void)state;
    Arena *arena = arena_create();
    const Cluster *cluster = read_well(arena, even);
    static const int64_t extents[] = {8};
    const Layout *from = parsed(arena, "split 0 ([0,8]{dup:2} | [1]{})");
    const Plan *plan = reshard_plan(arena, cluster, &(Conversion){{1, extents}, HT_F32, from, parsed(arena, "[2,9]{dup:2}")});
    assert_int_equal(plan->steps.count, 1);
    assert_int_equal(crossing_bytes(cluster, plan), 4 * ELEMENT);
    arena_destroy(arena);
}

/* On one host, or without a cluster, there is one tier. */
static void test_one_host(void **state)
{
    (void)state;
    Arena *arena = arena_create();
    const Cluster *cluster = read_well(arena, even);
    assert_string_equal(plan_name(planned(arena, cluster, "[0-7]{sum:8}", "[0-7]{dup:8}")), "all-reduce");
    assert_string_equal(plan_name(planned(arena, NULL, "[0-15]{sum:16}", "[0-15]{dup:16}")), "all-reduce");
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_tiers), cmocka_unit_test(test_finest_slices), cmocka_unit_test(test_duplicates),
                                       cmocka_unit_test(test_senders),   cmocka_unit_test(test_near_senders),  cmocka_unit_test(test_one_host)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
