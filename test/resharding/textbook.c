/* The textbook's conversions are one collective, and at most one copy of the piece where it is strided; tools/bench/textbook.c has their
 * times. */
#include "reshard/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { ROWS = 24, COLUMNS = 48, WHOLE = -1 };

/* A conversion on n devices, and what the first and what the other devices may copy: so many n-th parts of the tensor, or WHOLE. */
typedef struct Textbook {
    const char *from, *to;
    ht_verb verb;
    int copied_first, copied_other;
} Textbook;

static const Textbook textbooks[] = {
    {"[0-%d]{sum:%d}", "[0-%d]{dup:%d}", HT_ALL_REDUCE, 0, 0},
    {"[0-%d]{max:%d}", "[0-%d]{dup:%d}", HT_ALL_REDUCE, 0, 0},
    {"[0-%d]{sum:%d}", "[0-%d]{0:%d}", HT_REDUCE_SCATTER, 0, 0},
    {"[0-%d]{sum:%d}", "[0-%d]{1:%d}", HT_REDUCE_SCATTER, WHOLE, WHOLE},
    {"[0-%d]{0:%d}", "[0-%d]{dup:%d}", HT_ALL_GATHER, 0, 0},
    {"[0-%d]{1:%d}", "[0-%d]{dup:%d}", HT_ALL_GATHER, WHOLE, WHOLE},
    {"[0-%d]{0:%d}", "[0-%d]{1:%d}", HT_ALL_TO_ALL, 1, 1},
    {"[0-%d]{1:%d}", "[0-%d]{0:%d}", HT_ALL_TO_ALL, 1, 1},
    {"[0]{}", "[0-%d]{dup:%d}", HT_BROADCAST, WHOLE, 0},
    {"[0-%d]{sum:%d}", "[0]{}", HT_REDUCE, 0, 0},
    {"[0-%d]{0:%d}", "[0]{}", HT_EXCHANGE, 1, 0},
    {"[0-%d]{1:%d}", "[0]{}", HT_EXCHANGE, WHOLE, 0},
    {"[0]{}", "[0-%d]{0:%d}", HT_EXCHANGE, 1, 0},
    {"[0]{}", "[0-%d]{1:%d}", HT_EXCHANGE, WHOLE, 0},
};

/* All divide the extents. */
static const int sizes[] = {3, 4, 6, 8};

static const Layout *read_layout(Arena *arena, const char *pattern, int n)
{
    Diag *diag = diag_create(arena, stderr);
    const char *text = arena_format(arena, pattern, n - 1, n);
    diag_source(diag, "layout", text);
    const Layout *layout = layout_parse_text(arena, diag, (Position){"layout", 1, 1}, text);
    assert_non_null(layout);
    return layout;
}

static int64_t copied_elements(const ht_reshard_step *step)
{
    int64_t copied = 0;
    for (int i = 0; i < step->move_count; i++) {
        int64_t volume = 1;
        for (int d = 0; d < step->move[i].rank; d++)
            volume *= step->move[i].dim[d].extent;
        copied += volume;
    }
    return copied;
}

static void check_device(const ht_reshard_device *device, const char *name, ht_verb verb, int64_t most)
{
    int64_t copied = 0;
    int communications = 0;
    for (int s = 0; s < device->step_count; s++) {
        const ht_reshard_step *step = &device->step[s];
        if (step->verb == HT_COPY) {
            copied += copied_elements(step);
            continue;
        }
        if (step->verb != verb)
            fail_msg("%s: device %d runs a step of kind %d, not %d", name, device->device, (int)step->verb, (int)verb);
        communications++;
    }
    if (communications != 1 || copied > most)
        fail_msg("%s: device %d communicates %d times and copies %lld elements; %lld are enough", name, device->device, communications,
                 (long long)copied, (long long)most);
}

static int64_t part_elements(int parts, int n) { return parts == WHOLE ? ROWS * COLUMNS : parts * (int64_t)(ROWS * COLUMNS / n); }

static void check(const Textbook *textbook, int n)
{
    Arena *arena = arena_create();
    const int64_t extents[] = {ROWS, COLUMNS};
    const Conversion conversion = {{2, extents}, HT_F32, read_layout(arena, textbook->from, n), read_layout(arena, textbook->to, n)};
    const char *name = arena_format(arena, "%s -> %s for %d", textbook->from, textbook->to, n);
    const ht_reshard *plan = plan_lowered(arena, reshard_plan(arena, NULL, &conversion), name);
    assert_int_equal(plan->device_count, n);
    check_device(&plan->device[0], name, textbook->verb, part_elements(textbook->copied_first, n));
    for (int i = 1; i < n; i++)
        check_device(&plan->device[i], name, textbook->verb, part_elements(textbook->copied_other, n));
    arena_destroy(arena);
}

static void test_textbooks(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof textbooks / sizeof *textbooks; t++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            check(&textbooks[t], sizes[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_textbooks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
