/* Cluster files, and the seconds of plans by what they measured. test/resharding/hierarchical.c has conversions across hosts. */
#include "cluster/measured.h"
#include "reshard/plan.h"
#include "support/text.h"

#include "clusters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Two hosts of two devices; a slow pair of groups in front of a fast pair of hosts. */
static const char paired[] =
    "{\"classes\": {\"g\": {\"memory_bandwidth\": [[100, 1e9], [10000, 4e9]], \"products\": {\"bf16\": [[10, 5]]}}},\n"
    " \"devices\": [{\"class\": \"g\", \"host\": \"a\", \"count\": 2}, {\"class\": \"g\", \"host\": \"b\", \"count\": 2}],\n"
    " \"links\": {\"local\": {\"latency\": 1e-6, \"bandwidth\": 1e11}, \"remote\": {\"latency\": 1e-5, \"bandwidth\": 1e9},\n"
    "  \"pairs\": [{\"between\": [[0], [3, 2]], \"latency\": 1, \"bandwidth\": 2}, {\"between\": [\"b\", \"a\"], \"latency\": 3, "
    "\"bandwidth\": "
    "4,\n   \"measured\": [{\"what\": \"send\", \"ranks\": 2, \"seconds\": [[8, 1]]}, {\"what\": \"send-receive\", \"ranks\": 4, "
    "\"seconds\": "
    "[[8, 2]]}]}]}}";

/* Four devices; a quarter of the tensor takes a microsecond after one of latency, and by the measurement two devices twice as long, four
 * six times or for all-reduces eight times, and two groups of two three times. */
static const char measured[] =
    "{\"classes\": {\"g\": {}}, \"devices\": [{\"class\": \"g\", \"host\": \"a\", \"count\": 4}],\n"
    " \"links\": {\"remote\": {\"latency\": 1, \"bandwidth\": 1}, \"local\": {\"latency\": 1e-6, \"bandwidth\": 98304e6, \"measured\": [\n"
    "  {\"what\": \"send-receive\", \"ranks\": 2, \"seconds\": [[196608, 4e-6]]},\n"
    "  {\"what\": \"send-receive\", \"ranks\": 4, \"seconds\": [[393216, 12e-6]]},\n"
    "  {\"what\": \"all-reduce\", \"ranks\": 4, \"seconds\": [[393216, 96e-6]]},\n"
    "  {\"what\": \"all-reduce\", \"ranks\": 2, \"groups\": 2, \"seconds\": [[196608, 12e-6]]},\n"
    "  {\"what\": \"all-reduce\", \"ranks\": 2, \"seconds\": [[393216, 12e-6]]}]}}}";

/* Four devices on two processors, in turn. A quarter of the tensor takes a message two microseconds by latency and bandwidth, four between
 * two processors, and five on one; two such messages to and fro on one eight: so an exchange takes a device one microsecond, and then the
 * sender one and the receiver two. An all-reduce of two takes twice as long as by latency and bandwidth, on one processor five times. */
static const char in_turn[] =
    "{\"classes\": {\"g\": {}}, \"devices\": [\n"
    "  {\"class\": \"g\", \"host\": \"a\", \"processor\": 6}, {\"class\": \"g\", \"host\": \"a\", \"processor\": 2},\n"
    "  {\"class\": \"g\", \"host\": \"a\", \"processor\": 6}, {\"class\": \"g\", \"host\": \"a\", \"processor\": 2}],\n"
    " \"links\": {\"remote\": {\"latency\": 1, \"bandwidth\": 1}, \"local\": {\"latency\": 1e-6, \"bandwidth\": 98304e6, \"measured\": [\n"
    "  {\"what\": \"send-receive\", \"ranks\": 2, \"processors\": 1, \"seconds\": [[196608, 8e-6]]},\n"
    "  {\"what\": \"send\", \"ranks\": 2, \"processors\": 1, \"seconds\": [[196608, 5e-6]]},\n"
    "  {\"what\": \"all-reduce\", \"ranks\": 2, \"processors\": 1, \"seconds\": [[393216, 30e-6]]},\n"
    "  {\"what\": \"send-receive\", \"ranks\": 2, \"processors\": 2, \"seconds\": [[196608, 4e-6]]},\n"
    "  {\"what\": \"send\", \"ranks\": 2, \"processors\": 2, \"seconds\": [[196608, 4e-6]]},\n"
    "  {\"what\": \"all-reduce\", \"ranks\": 2, \"processors\": 2, \"seconds\": [[393216, 12e-6]]}]}}}";

/* ---- files ---- */

static void test_file(void **state)
{
    (void)state;
    Arena *arena = arena_create();
    const Cluster *cluster = read_well(arena, uneven);
    assert_int_equal(cluster->device_count, 12);
    assert_string_equal(cluster->devices[7].class->name, "h800");
    assert_string_equal(cluster->devices[8].class->name, "h20");
    assert_int_equal(cluster->devices[0].class->memory, 85899345920);
    assert_int_equal(cluster->devices[8].class->memory, 0);
    assert_int_equal(cluster_host(cluster, 0), cluster_host(cluster, 7));
    assert_int_not_equal(cluster_host(cluster, 7), cluster_host(cluster, 8));
    assert_true(cluster_link(cluster, 0, 7).bandwidth == 1e11 && cluster_link(cluster, 7, 8).bandwidth == 1e9);
    assert_true(cluster_link(cluster, 0, 7).latency == 1e-6 && cluster_link(cluster, 7, 8).latency == 1e-5);
    arena_destroy(arena);
}

static void test_pairs(void **state)
{
    (void)state;
    Arena *arena = arena_create();
    const Cluster *cluster = read_well(arena, paired);
    assert_true(cluster_link(cluster, 0, 1).latency == 1e-6 && cluster_link(cluster, 2, 0).latency == 1 &&
                cluster_link(cluster, 1, 3).latency == 3);
    Link link = cluster_link(cluster, 3, 1);
    assert_int_equal(link_measured(&link, HT_EXCHANGE, false, 2, false)->ranks, 4);
    assert_int_equal(link_measured(&link, HT_EXCHANGE, true, 8, true)->ranks, 2);
    assert_null(link_measured(&link, HT_ALL_REDUCE, false, 2, true));
    const DeviceClass *class = cluster_class(cluster, 3);
    const struct {
        double size, rate;
    } points[] = {{1, 1e9}, {100, 1e9}, {1000, 2e9}, {10000, 4e9}, {1e9, 4e9}};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++)
        assert_true(fabs(curve_at(&class->memory_bandwidth, points[i].size) / points[i].rate - 1) < 1e-12);
    assert_true(curve_at(&class->products[HT_BF16], 3) == 5 && curve_at(&class->products[HT_F32], 3) == 0);
    arena_destroy(arena);
}

static const struct {
    const char *text, *said;
} mistakes[] = {
    {"{\"devices\": [],", "F:1:15: error: string or '}' expected near end of file\n    1 | {\"devices\": [],\n      |               ^\n"},
    {"{\n \"classes\": {\"g\": {}},\n \"devices\": [{\"class\": \"g\", \"host\": \"a\"}]}",
     "F:1:1: error: \"links\" needs an object \"local\"\n    1 | {\n      | ^\nF:1:1: error: \"links\" needs an object \"remote\"\n    1 | "
     "{\n      | ^\n"},
    {"{\"classes\": {\"g\": {}}, \"devices\": [{\"class\": \"g\", \"host\": \"a\"}],\n \"links\": {\"local\": {\"latency\": -1, "
     "\"bandwidth\": 1},\n \"remote\": {\"latency\": 1}}}",
     "F:2:22: error: the link class \"local\" needs a positive number \"latency\"\n    2 |  \"links\": {\"local\": {\"latency\": -1, "
     "\"bandwidth\": 1},\n      |                      ^\n"
     "F:3:2: error: the link class \"remote\" needs a positive number \"bandwidth\"\n    3 |  \"remote\": {\"latency\": 1}}}\n      |  "
     "^\n"},
    {"{\"classes\": {},\n \"devices\": [], " LINKS "}",
     "F:2:2: error: the cluster needs a list \"devices\" of one entry at least\n    2 |  \"devices\": [], " LINKS "}\n      |  ^\n"},
    {"{\"classes\": {\"g\": {}}, " LINKS ",\n \"devices\": [{\"class\": \"g\", \"host\": \"{a}\"},\n  {\"class\": \"g\"},\n  {\"class\": "
     "\"x\", \"host\": \"a\"},\n  {\"class\": \"g\", \"host\": "
     "\"a\", \"count\": 0}]}",
     "F:3:3: error: an entry of \"devices\" needs strings \"class\" and \"host\"\n    3 |   {\"class\": \"g\"},\n      |   ^\n"
     "F:4:13: error: \"classes\" has no object \"x\"\n    4 |   {\"class\": \"x\", \"host\": \"a\"},\n      |             ^\n"
     "F:5:31: error: \"count\" is no number from 1 to 1048576\n    5 |   {\"class\": \"g\", \"host\": \"a\", \"count\": 0}]}\n      |      "
     "                         ^\n"},
    {"{\"classes\": {\"g\": {\"memory\": \"80 GiB\"}},\n \"devices\": [{\"class\": \"g\", \"host\": \"a\"}],\n " LINKS "}",
     "F:1:20: error: the memory of \"g\" is no positive number of bytes\n    1 | {\"classes\": {\"g\": {\"memory\": \"80 GiB\"}},\n      | "
     "                   ^\n"},
    {"{\"classes\": {\"g\": {\"start\": 0,\n \"products\": {\"f31\": [[1, 1]], \"f32\": [[1, 1], [1, 2]]}}}, " LINKS
     ",\n \"devices\": [{\"class\": "
     "\"g\", \"host\": \"a\"}]}",
     "F:1:20: error: the class \"g\" needs a positive number \"start\"\n    1 | {\"classes\": {\"g\": {\"start\": 0,\n      |              "
     "      "
     "^\n"
     "F:2:15: error: \"f31\" is no element type of products: f32, bf16, f64, i32 or i64\n    2 |  \"products\": {\"f31\": [[1, 1]], "
     "\"f32\": "
     "[[1, 1], [1, 2]]}}}, " LINKS ",\n      |               ^\n"
     "F:2:32: error: the products of \"g\" need a list of pairs of positive numbers, [size, value], with ascending sizes\n    2 |  "
     "\"products\": {\"f31\": [[1, 1]], \"f32\": [[1, 1], [1, 2]]}}}, " LINKS ",\n      |                                ^\n"},
    {"{\"classes\": {\"g\": {\"copy\": 1e300,\n \"products\": {\"f32\": [[1, 1], [2, 1e-300]]}}},\n " LINKS
     ",\n \"devices\": [{\"class\": \"g\", "
     "\"host\": \"a\"}]}",
     "F:1:20: error: \"copy\" of the class \"g\" is not from 1e-30 to 1e+30\n    1 | {\"classes\": {\"g\": {\"copy\": 1e300,\n      |      "
     "    "
     "          ^\n"
     "F:2:15: error: the products of \"g\": a number of pair 2 is not from 1e-30 to 1e+30\n    2 |  \"products\": {\"f32\": [[1, 1], [2, "
     "1e-300]]}}},\n      |               ^\n"},
    {"{\"classes\": {\"g\": {}}, \"devices\": [{\"class\": \"g\", \"host\": \"a\", \"count\": 4}], \"links\": {\"local\": {\"latency\": 1, "
     "\"bandwidth\": 1},\n \"remote\": {\"latency\": 1, \"bandwidth\": 1}, \"pairs\": [\n  {\"between\": [\"a\"]},\n  {\"between\": "
     "[\"a\", [4]], "
     "\"latency\": 1, \"bandwidth\": 1,\n   \"measured\": [{\"what\": \"sing\"}]}]}}",
     "F:3:3: error: an entry of \"pairs\" needs a list \"between\" of two ends\n    3 |   {\"between\": [\"a\"]},\n      |   ^\n"
     "F:3:3: error: an entry of \"pairs\" needs a positive number \"latency\"\n    3 |   {\"between\": [\"a\"]},\n      |   ^\n"
     "F:3:3: error: an entry of \"pairs\" needs a positive number \"bandwidth\"\n    3 |   {\"between\": [\"a\"]},\n      |   ^\n"
     "F:4:3: error: each end of \"between\" is a host of \"devices\" or a list of their numbers\n    4 |   {\"between\": [\"a\", [4]], "
     "\"latency\": 1, \"bandwidth\": 1,\n      |   ^\n"
     "F:5:17: error: what was measured needs a string \"what\": all-reduce, reduce-scatter, all-gather, all-to-all, broadcast, reduce, "
     "send-receive or send\n    5 |    \"measured\": [{\"what\": \"sing\"}]}]}}\n      |                 ^\n"},
    {"{\"classes\": {\"g\": {}}, \"devices\": [{\"class\": \"g\", \"host\": \"a\",\n \"processor\": \"b\"}], \"links\": {\"remote\": "
     "{\"latency\": 1, \"bandwidth\": 1},\n \"local\": {\"latency\": 1, \"bandwidth\": 1,\n  \"measured\": [{\"what\": \"send\", "
     "\"ranks\": 2, "
     "\"processors\": 3, \"seconds\": [[1, 1]]}]}}}",
     "F:4:16: error: the \"processors\" of what was measured are no number from 1 to that of its devices\n    4 |   \"measured\": "
     "[{\"what\": "
     "\"send\", \"ranks\": 2, \"processors\": 3, \"seconds\": [[1, 1]]}]}}}\n      |                ^\n"
     "F:2:2: error: \"processor\" is no number from 0 on\n    2 |  \"processor\": \"b\"}], \"links\": {\"remote\": {\"latency\": 1, "
     "\"bandwidth\": 1},\n      |  ^\n"},
};

static void test_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        Arena *arena = arena_create();
        const char *said;
        assert_null(read_said(arena, mistakes[i].text, &said));
        assert_string_equal(said, mistakes[i].said);
        arena_destroy(arena);
    }
}

static void test_missing(void **state)
{
    (void)state;
    Arena *arena = arena_create();
    const Cluster *cluster = read_well(arena, uneven);
    assert_int_equal(cluster_missing(cluster, parsed(arena, "[0-11]{0:12}")), -1);
    assert_int_equal(cluster_missing(cluster, parsed(arena, "dup ([14,2]{0:2} | [13,12]{dup:2})")), 12);
    assert_int_equal(cluster_missing(NULL, parsed(arena, "[99]{}")), -1);
    arena_destroy(arena);
}

/* An exchange takes what its busiest device does beside one other, or all of them together; numbers of devices in between, what is between;
 * groups at once, what several take. */
static void test_measured(void **state)
{
    (void)state;
    Arena *arena = arena_create();
    const Cluster *cluster = read_well(arena, measured);
    const struct {
        const char *from, *to;
        double seconds;
    } cases[] = {{"[0-3]{0:4}", "[1,2,3,0]{0:4}", 12e-6},
                 {"[0-1]{0:2}", "[1,0]{0:2}", 6e-6},
                 {"[0]{}", "[0-3]{0:4}", 10.5e-6},
                 {"[0]{}", "[3]{}", 10e-6},
                 {"[0-3]{sum:4}", "[0-3]{dup:4}", 96e-6},
                 {"[0-1]{sum:2}", "[0-1]{dup:2}", 12e-6},
                 {"[0-2]{sum:3}", "[0-2]{dup:3}", 112e-6 / 3},
                 {"[0-3]{0:2,sum:2}", "[0-3]{0:2,dup:2}", 12e-6}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(fabs(plan_seconds(planned(arena, cluster, cases[i].from, cases[i].to)) / cases[i].seconds - 1) < 1e-9);
    arena_destroy(arena);
}

/* A processor does in turn what its devices have to do; two processors go on at once. */
static void test_in_turn(void **state)
{
    (void)state;
    Arena *arena = arena_create();
    const Cluster *cluster = read_well(arena, in_turn);
    const struct {
        const char *from, *to;
        double seconds;
    } cases[] = {{"[0-3]{0:4}", "[1,2,3,0]{0:4}", 8e-6},
                 {"[0]{}", "[0-3]{0:4}", 7e-6},
                 {"[0-1]{0:2}", "[2-3]{0:2}", 7e-6},
                 {"[0,2]{0:2}", "[1,3]{0:2}", 9e-6},
                 {"[0-1]{0:2}", "[1,0]{0:2}", 6e-6},
                 {"[0-1]{sum:2}", "[0-1]{dup:2}", 12e-6},
                 {"[0,2]{sum:2}", "[0,2]{dup:2}", 30e-6},
                 {"[0-3]{0:2,sum:2}", "[0-3]{0:2,dup:2}", 20e-6},
                 {"[0-3]{sum:2,0:2}", "[0-3]{dup:2,0:2}", 20e-6}};
    assert_int_equal(cluster->processor_count, 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double seconds = plan_seconds(planned(arena, cluster, cases[i].from, cases[i].to));
        if (fabs(seconds / cases[i].seconds - 1) > 1e-9)
            fail_msg("%s -> %s takes %g s, not %g s", cases[i].from, cases[i].to, seconds, cases[i].seconds);
    }
    arena_destroy(arena);
}

/* What a cluster file has beside what is read is told. */
static void test_unknown_keys(void **state)
{
    (void)state;
    Arena *arena = arena_create();
    const char *said;
    assert_non_null(read_said(
        arena, "{\"classes\": {\"g\": {\"memmory\": 1}},\n \"devices\": [{\"class\": \"g\", \"host\": \"a\"}],\n " LINKS "}", &said));
    assert_string_equal(said, "F:1:20: warning: \"memmory\" means nothing here, and is not read\n"
                              "    1 | {\"classes\": {\"g\": {\"memmory\": 1}},\n      |                    ^\n"
                              "F:1:20: note: did you mean \"memory\"?\n"
                              "    1 | {\"classes\": {\"g\": {\"memmory\": 1}},\n      |                    ^\n");
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),        cmocka_unit_test(test_pairs),     cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_missing),     cmocka_unit_test(test_measured),  cmocka_unit_test(test_in_turn),
        cmocka_unit_test(test_unknown_keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
