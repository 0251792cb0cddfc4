/* Packing: items that are needed together lie apart, and the stretch is at most 1.1 of what is
 * needed at one time. */
#include "passes/memory/arena_packing.h"
#include "ir/programs/device_programs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 600 };

static uint64_t state;

static int draw(int count) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)(state % (uint64_t)count);
}

/* What is needed at time t. */
static int64_t needed_at(const PackItem *items, int count, int t) {
    int64_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += items[i].begin <= t && t <= items[i].end ? items[i].bytes : 0;
    return bytes;
}

static int64_t least_of(const PackItem *items, int count) {
    int64_t most = 0;
    for (int i = 0; i < count; i++) {
        int64_t bytes = needed_at(items, count, items[i].begin);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void check_places(const PackItem *items, int count, int64_t length) {
    for (int i = 0; i < count; i++) {
        const PackItem *a = &items[i];
        assert_true(a->offset >= 0 && a->offset + a->bytes <= length);
        assert_int_equal(a->offset % ARENA_ALIGNMENT, 0);
        for (int k = 0; k < i; k++) {
            const PackItem *b = &items[k];
            bool together = a->begin <= b->end && b->begin <= a->end && a->bytes && b->bytes;
            assert_true(!together || a->offset + a->bytes <= b->offset ||
                        b->offset + b->bytes <= a->offset);
        }
    }
}

static double length_over_least(PackItem *items, int count) {
    Arena *scratch = arena_create();
    int64_t length = pack(scratch, items, count), least = least_of(items, count);
    check_places(items, count, length);
    arena_destroy(scratch);
    return least ? (double)length / (double)least : 1;
}

/* Layers forward and backward: each makes values of a few sizes, some of which its backward, or
 * only its own forward, needs. */
static int make_layers(PackItem *items, int layers) {
    int count = 0, steps = 2 * layers * 8;
    int64_t wide = 64 * (20 + draw(400)),
            sizes[] = {wide, wide * (2 + draw(4)), wide / (2 + draw(3)), 64 * (1 + draw(9)),
                       wide * 3 / 2};
    for (int l = 0; l < layers; l++)
        for (int k = 0; k < 8; k++) {
            int at = l * 8 + k, back = steps - 1 - at;
            int64_t bytes = sizes[draw(5)];
            items[count++] =
                (PackItem){.begin = at, .end = draw(3) ? back : at + 1 + draw(3), .bytes = bytes};
            items[count++] =
                (PackItem){.begin = back, .end = back + 1 + draw(4), .bytes = sizes[draw(5)]};
            if (!draw(4))
                items[count++] = (PackItem){.begin = back, .end = steps + 2, .bytes = sizes[3]};
        }
    return count;
}

static void near_what_is_needed(void **unused) {
    (void)unused;
    static PackItem items[MOST];
    for (uint64_t seed = 1; seed <= 40; seed++) {
        state = seed * 2654435761u;
        int count = make_layers(items, 1 + draw(20));
        assert_true(length_over_least(items, count) <= 1.1);
    }
}

static void equal_items_get_equal_places(void **unused) {
    (void)unused;
    static PackItem once[MOST], again[MOST];
    state = 99;
    int count = make_layers(once, 12);
    memcpy(again, once, sizeof once);
    length_over_least(once, count);
    length_over_least(again, count);
    assert_memory_equal(once, again, sizeof *once * (size_t)count);
}

static void little_to_place(void **unused) {
    (void)unused;
    PackItem none[1] = {{.begin = 0, .end = 5, .bytes = 0}},
             one[2] = {{.begin = 0, .end = 5, .bytes = 100}, {.begin = 5, .end = 5, .bytes = 1}};
    Arena *scratch = arena_create();
    assert_int_equal(pack(scratch, none, 0), 0);
    assert_int_equal(pack(scratch, none, 1), 0);
    assert_int_equal(none[0].offset, 0);
    assert_int_equal(pack(scratch, one, 2), 129);
    arena_destroy(scratch);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(near_what_is_needed),
                                       cmocka_unit_test(equal_items_get_equal_places),
                                       cmocka_unit_test(little_to_place)};
    return cmocka_run_group_tests_name("packing", tests, NULL, NULL);
}
