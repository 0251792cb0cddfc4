/* Devices that are alike: what a plan is for some of them it is, under other names, for the others. */
#include "hetu/reshard.h"
#include "reshard/replica_groups.h"
#include "reshard/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DEVICES = 24, CASES = 600, CASES_A_CLUSTER = 40, MOST_PAIRS = 3 };

static uint64_t state;

static int draw(int below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)below);
}

/* ---- clusters ---- */

static const Link local = {1e-6, 1e11, 0, NULL}, remote = {1e-5, 1e10, 0, NULL};
static const DeviceClass classes[] = {{.name = "a", .overlap = 1}, {.name = "b", .overlap = 1}};

/* Links of a host and two devices, some of them alike. */
static const LinkPair *draw_pairs(Arena *arena, int hosts, int count)
{
    LinkPair *pairs = arena_array(arena, LinkPair, count);
    for (int p = 0; p < count; p++) {
        int *devices = arena_array(arena, int, 2);
        devices[0] = draw(DEVICES);
        devices[1] = draw(DEVICES);
        pairs[p] = (LinkPair){{{draw(hosts), 0, NULL}, {-1, 2, devices}}, {1e-5, draw(2) ? 3e9 : 5e9, 0, NULL}};
    }
    return pairs;
}

/* Hosts of one size or several, of a class or two, which share processors or not. */
static Cluster draw_cluster(Arena *arena)
{
    Cluster cluster = {.device_count = DEVICES, .local = local, .remote = remote};
    ClusterDevice *devices = arena_array(arena, ClusterDevice, DEVICES);
    bool shares = !draw(3), mixed = !draw(3);
    int size = draw(4);
    for (int d = 0; d < DEVICES; d++) {
        bool another = size ? d % size == 0 : !d || !draw(3);
        cluster.host_count += another;
        cluster.processor_count += another || !shares || draw(2);
        devices[d] = (ClusterDevice){&classes[mixed && !draw(5)], cluster.host_count - 1, cluster.processor_count - 1};
    }
    cluster.devices = devices;
    cluster.pair_count = draw(MOST_PAIRS + 1);
    cluster.pairs = draw_pairs(arena, cluster.host_count, cluster.pair_count);
    return cluster;
}

/* ---- conversions ---- */

/* `count` of the cluster's devices: neighbours, or any in any order. */
static const int *draw_devices(Arena *arena, int count)
{
    int *all = arena_array(arena, int, DEVICES), first = draw(DEVICES - count + 1);
    for (int d = 0; d < DEVICES; d++)
        all[d] = d;
    if (draw(3))
        return all + first;
    for (int i = 0; i < count; i++) {
        int from = i + draw(DEVICES - i), device = all[from];
        all[from] = all[i];
        all[i] = device;
    }
    return all;
}

static const Layout *layout_on(Arena *arena, const char *states, const int *devices, int count)
{
    Text text = {.arena = arena};
    for (int i = 0; i < count; i++)
        text_print(&text, "%s%d", i ? "," : "[", devices[i]);
    text_print(&text, "]{%s}", states);
    return layout_parse_text(arena, diag_create(arena, stderr), (Position){"test", 1, 1}, text_bytes(&text));
}

static Conversion draw_conversion(Arena *arena)
{
    static const char *const from[] = {"sum:4", "0:4", "dup:4", "0:2,sum:2", "sum:2,1:2", "1:4"}, *const to[] = {"0:4", "1:4", "dup:4",
                                                                                                                 "0:2,1:2", "dup:2,0:2"};
    static const int64_t extent[] = {12, 10};
    const int *one = draw_devices(arena, 4), *two = draw(2) ? one : draw_devices(arena, 4);
    return (Conversion){(Shape){2, extent}, HT_F32, layout_on(arena, from[draw(6)], one, 4), layout_on(arena, to[draw(5)], two, 4)};
}

/* ---- plans ---- */

static void check_devices(const ReplicaGroups *replica_groups, const Devices *own, const Devices *named)
{
    assert_int_equal(own->count, named->count);
    for (int i = 0; i < own->count; i++)
        assert_int_equal(replica_groups_name(replica_groups, own->at[i]), named->at[i]);
}

/* The same steps, at the same times, of the same bytes. */
static void check_plans(const ReplicaGroups *replica_groups, const Plan *own, const Plan *named)
{
    assert_true(own->seconds == named->seconds);
    assert_string_equal(plan_name(own), plan_name(named));
    assert_int_equal(own->steps.count, named->steps.count);
    for (int s = 0; s < own->steps.count; s++) {
        const Step *a = &own->steps.at[s], *b = &named->steps.at[s];
        assert_true(a->verb == b->verb && a->seconds == b->seconds && a->messages.count == b->messages.count);
        check_devices(replica_groups, &a->group, &b->group);
        for (int m = 0; m < a->messages.count; m++) {
            assert_int_equal(replica_groups_name(replica_groups, a->messages.at[m].sender), b->messages.at[m].sender);
            assert_int_equal(replica_groups_name(replica_groups, a->messages.at[m].receiver), b->messages.at[m].receiver);
            assert_int_equal(a->messages.at[m].bytes, b->messages.at[m].bytes);
        }
    }
    for (int i = 0; i < own->device_count; i++) {
        int device = own->devices[i], name = replica_groups_name(replica_groups, device);
        assert_int_equal(plan_bytes_received(own, device), plan_bytes_received(named, name));
        assert_int_equal(plan_scratch_bytes(own, device), plan_scratch_bytes(named, name));
    }
}

/* Plans by names are those of the devices themselves; and there are fewer of them. */
static void test_plans(void **unused)
{
    (void)unused;
    int others = 0;
    for (int c = 0; c < CASES;) {
        Arena *arena = arena_create();
        state = (uint64_t)c + 1;
        Cluster cluster = draw_cluster(arena);
        Intern *alike = intern_create(arena);
        for (int i = 0; i < CASES_A_CLUSTER; i++, c++) {
            Conversion conversion = draw_conversion(arena);
            ReplicaGroups replica_groups = replica_groups_of(arena, &cluster, alike, &conversion, 1);
            check_plans(&replica_groups, reshard_plan(arena, &cluster, &conversion), reshard_plan(arena, &cluster, replica_groups.first));
            others += replica_groups.name[0] != replica_groups.devices[0];
        }
        arena_destroy(arena);
    }
    assert_true(others > CASES / 10);
}

/* ---- what is alike ---- */

static int first_of(Intern *known, const Cluster *cluster, int a, int b, int c)
{
    const int devices[] = {a, b, c};
    return cluster_equivalent_devices(known, cluster, devices, 3)[0];
}

static void test_sets(void **unused)
{
    (void)unused;
    Arena *arena = arena_create();
    Intern *known = intern_create(arena);
    /* Four hosts of three devices; the third has another class, the last shares a processor; the first has a link of its own to device 3.
     */
    ClusterDevice devices[12];
    for (int d = 0; d < 12; d++)
        devices[d] = (ClusterDevice){&classes[d / 3 == 2], d / 3, d < 9 ? d : 9};
    const int fourth[] = {3};
    const LinkPair pair = {{{0, 0, NULL}, {-1, 1, fourth}}, {1e-5, 2e10, 0, NULL}};
    Cluster cluster = {.device_count = 12, .processor_count = 10, .devices = devices, .host_count = 4, .local = local, .remote = remote};
    assert_int_equal(first_of(known, &cluster, 0, 1, 2), 0);
    assert_int_equal(first_of(known, &cluster, 3, 4, 5), 0);
    assert_int_equal(first_of(known, &cluster, 6, 7, 8), 6);   // another class
    assert_int_equal(first_of(known, &cluster, 9, 10, 11), 9); // one processor
    assert_int_equal(first_of(known, &cluster, 1, 2, 3), 1);   // two hosts
    assert_int_equal(first_of(known, &cluster, 0, 1, 4), 1);
    assert_int_equal(first_of(known, &cluster, 2, 3, 4), 2);  // the other two are together
    assert_int_equal(first_of(known, &cluster, 5, 9, 10), 5); // and share a processor
    cluster.pair_count = 1;
    cluster.pairs = &pair;
    known = intern_create(arena);
    assert_int_equal(first_of(known, &cluster, 0, 1, 4), 0);
    assert_int_equal(first_of(known, &cluster, 1, 2, 3), 1); // over the pair's link
    assert_int_equal(first_of(known, &cluster, 1, 2, 5), 0);
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plans), cmocka_unit_test(test_sets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
