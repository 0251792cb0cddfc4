/* Causal work under zigzag splits, counted from the boxes of layouts: queries of a device that see keys, of all keys and of those that
 * another device holds. */
#include "layout/layout.h"
#include "support/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const double MOST = 1.05; // of the mean

/* Pairs of a query of one region and a key of another that lies not behind it, along dimension 1 of each. */
static int64_t visible_pairs(const Region *queries, const Region *keys)
{
    int64_t pairs = 0;
    for (int q = 0; q < queries->box_count; q++)
        for (int k = 0; k < keys->box_count; k++)
            for (int64_t i = queries->boxes[q].dim[1].lo; i < queries->boxes[q].dim[1].hi; i++) {
                Range range = keys->boxes[k].dim[1];
                int64_t end = range.hi < i + 1 ? range.hi : i + 1;
                pairs += end > range.lo ? end - range.lo : 0;
            }
    return pairs;
}

/* The regions of a sequence of this length in pieces by the states; how many go to *count. */
static const Region *regions_of(Arena *arena, const char *states, int64_t length, int *count)
{
    int64_t extents[] = {3, length, 2};
    Diag *diag = diag_create(arena, stderr);
    const Layout *layout = layout_parse_text(arena, diag, (Position){"test", 1, 1}, states);
    assert_non_null(layout);
    return layout_regions(arena, layout, (Shape){3, extents}, count);
}

/* What the busiest device has of the mean, where device i sees the keys of device (i + turn) % count; of all keys: turn -1. */
static double busiest(const Region *regions, int count, int turn)
{
    int64_t most = 0, sum = 0;
    for (int i = 0; i < count; i++) {
        int64_t pairs = 0;
        for (int k = 0; k < count; k++)
            if (turn < 0 || k == (i + turn) % count)
                pairs += visible_pairs(&regions[i], &regions[k]);
        most = pairs > most ? pairs : most;
        sum += pairs;
    }
    return (double)most * count / (double)sum;
}

static void test_balance(void **state)
{
    (void)state;
    static const char *const layouts[] = {"[0,1]{1:2 zigzag}", "[0-2]{1:3 zigzag}", "[0-3]{1:4 zigzag}", "[0-3]{1:2 zigzag,1:2 zigzag}",
                                          "[0-7]{1:8 zigzag}"};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        for (int64_t length = 1024; length < 1041; length += 5) {
            Arena *arena = arena_create();
            int count;
            const Region *regions = regions_of(arena, layouts[i], length, &count);
            for (int turn = -1; turn < count; turn++)
                if (busiest(regions, count, turn) > MOST)
                    fail_msg("%s of %ld in turn %d: %g", layouts[i], (long)length, turn, busiest(regions, count, turn));
            arena_destroy(arena);
        }
}

/* Without `zigzag` the last of four devices has nearly twice the mean. */
static void test_plain(void **state)
{
    (void)state;
    Arena *arena = arena_create();
    int count;
    const Region *regions = regions_of(arena, "[0-3]{1:4}", 1024, &count);
    assert_true(busiest(regions, count, -1) > 1.7);
    arena_destroy(arena);
}

/* By weights, work goes as they say. */
static void test_weights(void **state)
{
    (void)state;
    static const double wanted[] = {0.5, 0.2, 0.3};
    Arena *arena = arena_create();
    int count;
    int64_t length = 1000;
    const Region *regions = regions_of(arena, "[0-2]{1:3 by 5:2:3 zigzag}", length, &count);
    const Region *all = regions_of(arena, "[0]{}", length, &count);
    for (int i = 0; i < 3; i++) {
        double share = (double)visible_pairs(&regions[i], all) / (double)visible_pairs(all, all);
        assert_true(share < wanted[i] * 1.01 && share > wanted[i] * 0.99);
    }
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_balance), cmocka_unit_test(test_plain), cmocka_unit_test(test_weights)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
