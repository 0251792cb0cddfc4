/* Layouts: notation, regions, equality, and every error with its caret. */
#include "layout/layout.h"
#include "reshard/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static Shape shape_of(Arena *arena, const char *text)
{
    int64_t *extents = arena_array(arena, int64_t, LAYOUT_MAX_RANK);
    Shape shape = {.extent = extents};
    for (char *end; *text; text = *end ? end + 1 : end)
        extents[shape.rank++] = strtoll(text, &end, 10);
    return shape;
}

/* Parses and checks; the diagnostics go to `messages`. NULL when it is refused. */
static const Layout *read_layout(Arena *arena, const char *shape, const char *text, char *messages, size_t room)
{
    memset(messages, 0, room);
    FILE *out = fmemopen(messages, room, "w");
    Diag *diag = diag_create(arena, out);
    diag_source(diag, "test", text);
    Position at = {"test", 1, 1};
    const Layout *layout = layout_parse_text(arena, diag, at, text);
    if (layout && !layout_check(diag, at, layout, shape_of(arena, shape)))
        layout = NULL;
    fclose(out);
    return layout;
}

static const Layout *good(Arena *arena, const char *shape, const char *text)
{
    char messages[2000];
    const Layout *layout = read_layout(arena, shape, text, messages, sizeof messages);
    if (!layout)
        fail_msg("%s was refused: %s", text, messages);
    return layout;
}

static void test_print(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"[0-7]{0:2,dup:2,1:2}", "[0-7]{0:2,dup:2,1:2}"},
        {" [ 0 , 1,2,3 ] { 0 : 4 by 1:1:1:2 } ", "[0-3]{0:4 by 1:1:1:2}"},
        {"[0-3]{0:4 by 2:2:2:2}", "[0-3]{0:4}"},
        {"[0-3]{ 0:4 by 1:1:1:2  zigzag }", "[0-3]{0:4 by 1:1:1:2 zigzag}"},
        {"[0-3]{0:2 zigzag,1:2}", "[0-3]{0:2 zigzag,1:2}"},
        {"sum([0-3]{0:4}|[4]{})", "sum([0-3]{0:4} | [4]{})"},
        {"split 0 by 3:1 ([0-3]{1:4} | [4]{})", "split 0 by 3:1 ([0-3]{1:4} | [4]{})"},
        {"split 1 inner by 1:2 ([3,1]{1:2} | [4]{})", "split 1 inner by 1:2 ([3,1]{1:2} | [4]{})"},
        {"(3*4, 8) [0-3]{1:4}", "(3*4, 8) [0-3]{1:4}"},
        {"dup([5]{})", "[5]{}"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        Arena *arena = arena_create();
        Text text = {.arena = arena};
        layout_print(&text, good(arena, "12,8", pairs[i][0]));
        assert_string_equal(text_bytes(&text), pairs[i][1]);
        arena_destroy(arena);
    }
}

/* A region as text: replica, contribution and boxes. */
static const char *region_text(Arena *arena, const Region *region)
{
    Text text = {.arena = arena};
    text_print(&text, "%d.%d", region->replica, region->partial);
    for (int b = 0; b < region->box_count; b++)
        for (int d = 0; d < region->rank; d++)
            text_print(&text, "%s%d:%d", d ? "," : " ", (int)region->boxes[b].dim[d].lo, (int)region->boxes[b].dim[d].hi);
    return text_bytes(&text);
}

static void test_regions(void **state)
{
    (void)state;
    static const struct {
        const char *shape, *layout;
        int device;
        const char *region;
    } cases[] = {
        {"5", "[0-3]{0:4}", 3, "0.0 3:5"},
        {"5", "[0-3]{0:4}", 0, "0.0 0:1"},
        {"3", "[0-3]{0:4}", 0, "0.0"},
        {"100", "[0-3]{0:4 by 1:1:1:2}", 3, "0.0 60:100"},
        {"8,12", "[0-7]{0:2,dup:2,1:2}", 5, "0.0 4:8,6:12"},
        {"8", "[0-3]{0:2,0:2}", 2, "0.0 4:6"},
        {"8", "sum([0-3]{0:4} | [4]{})", 4, "0.1 0:8"},
        {"8", "dup([0,1]{sum:2} | [2]{})", 1, "0.1 0:8"},
        {"8", "dup([0,1]{sum:2} | [2]{})", 2, "1.0 0:8"},
        {"8", "split 0 by 3:1 ([0,1]{0:2} | [2]{})", 1, "0.0 3:6"},
        {"8", "split 0 inner ([0,1]{0:2} | [2]{})", 2, "0.0 2:4 6:8"},
        {"15,4", "(3*5, 4) [0-4]{1:5}", 2, "0.0 0:3,2:3,0:4"},
        {"16", "[0-3]{0:4 zigzag}", 1, "0.0 2:4 12:14"},
        {"16", "[0-3]{0:4 zigzag}", 3, "0.0 6:8 8:10"},
        {"13", "[0-3]{0:4 zigzag}", 0, "0.0 0:1 11:13"},
        {"3,4", "[0-3]{0:4 zigzag}", 2, "0.0 0:1,0:4 1:2,0:4"},
        {"12", "[0,1]{0:2 by 1:2 zigzag}", 1, "0.0 2:6 6:10"},
        {"16", "[0-3]{0:2 zigzag,0:2 zigzag}", 2, "0.0 4:6 10:12"},
        {"12", "[0-5]{0:2 zigzag,0:3}", 1, "0.0 2:3 9:10"},
        {"16", "[0-3]{0:2,0:2 zigzag}", 3, "0.0 10:12 12:14"},
        {"8,8", "[0-3]{0:2 zigzag,1:2 zigzag}", 1, "0.0 0:2,2:4 0:2,4:6 6:8,2:4 6:8,4:6"},
        {"16", "split 0 ([0,1]{0:2 zigzag} | [2]{})", 0, "0.0 0:2 6:8"},
        {"16", "split 0 inner ([0,1]{0:2 zigzag} | [2]{})", 2, "0.0 2:4 6:8 10:12 14:16"},
        {"1000", "[0-3]{0:2 by 1048575:1048573,0:2 by 1048571:1048569}", 2, "0.0 500:750"},
        {"1000", "split 0 by 1099511627776:1000000000000 ([0]{} | [1]{})", 1, "0.0 523:1000"},
        {"1000000007", "split 0 inner by 5:1048573 ([0,1]{0:2 by 1:2097152} | [2,3]{0:2 by 1048573:1048571})", 1,
         "0.0 476:2861 500000480:500002864"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_create();
        Region region =
            layout_region(arena, good(arena, cases[i].shape, cases[i].layout), shape_of(arena, cases[i].shape), cases[i].device);
        assert_true(region.member);
        assert_string_equal(region_text(arena, &region), cases[i].region);
        arena_destroy(arena);
    }
}

static void test_equality(void **state)
{
    (void)state;
    static const struct {
        const char *shape, *a, *b;
        bool equal;
    } cases[] = {
        {"8", "[0-3]{0:4}", "[0-3]{0:2,0:2}", true},
        {"8", "[0-3]{0:2,dup:2}", "[0,2,1,3]{dup:2,0:2}", true},
        {"8", "dup([0,1]{0:2} | [2,3]{0:2})", "[0-3]{dup:2,0:2}", true},
        {"16", "[0-3]{0:4 zigzag}", "[0-3]{0:2 zigzag,0:2 zigzag}", true},
        {"16", "[0-3]{0:4 zigzag}", "[0-3]{0:4}", false},
        {"16", "[0]{0:1 zigzag}", "[0]{}", true},
        {"4,4", "[0,1]{0:2 zigzag}", "(2*2, 4) [0,1]{1:2}", false},
        {"8,2", "[0,1]{0:2 zigzag}", "split 0 inner ([0]{} | [1]{})", false},
        {"2,4", "split 1 inner by 1:0 ([0,1]{1:2 zigzag} | [2,3]{1:2})", "[0,1]{1:2 zigzag}", false},
        {"4", "split 0 inner by 1:0 ([0,1]{0:2 zigzag} | [2,3]{0:2})", "[0,1]{0:2 zigzag}", true},
        {"8", "sum([0]{} | [1]{})", "[1,0]{sum:2}", true},
        {"8", "[0,1]{sum:2}", "[0,1]{max:2}", false},
        {"8", "[0,1]{sum:2}", "[0,1]{dup:2}", false},
        {"8", "[0-3]{0:4}", "[0,2,1,3]{0:4}", false},
        {"12", "(3*4) [0-2]{0:3}", "[0-2]{0:3}", true},
        {"12", "(3*4) [0-3]{1:4}", "[0-3]{0:4}", false},
        {"12", "(3*4) [0,1]{dup:2}", "(2*6) [0,1]{dup:2}", true},
        {"12", "(3*4) [0,1]{1:2}", "(6*2) [0,1]{0:2}", false},
        {"4,4", "split 1 inner by 1:0 ([0,1]{1:2} | [2,3]{1:2})", "[0,1]{1:2}", true},
        {"1", "[0-3]{0:4}", "[0-2,3]{0:4}", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_create();
        const Layout *a = good(arena, cases[i].shape, cases[i].a), *b = good(arena, cases[i].shape, cases[i].b);
        if (layout_equal(a, b, shape_of(arena, cases[i].shape)) != cases[i].equal)
            fail_msg("%s and %s", cases[i].a, cases[i].b);
        arena_destroy(arena);
    }
}

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *shape, *layout;
        int column;
        const char *message;
    } cases[] = {
        {"8", "", 1, "expected '['"},
        {"8", "[0-3]", 6, "expected '{'"},
        {"8", "[0-3{0:4}", 5, "expected ']'"},
        {"8", "[]{}", 2, "expected a device number"},
        {"8", "[3-1]{}", 2, "ends before it begins"},
        {"8", "[0,1]{0:3}", 6, "multiply to 3"},
        {"8", "[0,1]{0:0}", 9, "from 1 to"},
        {"8", "[0,1]{sun:2}", 7, "did you mean 'sum'?"},
        {"8", "[0,1]{0:2 by 1}", 14, "1 weights for 2 pieces"},
        {"8", "[0,1]{dup:2 zigzag}", 13, "only a split of a dimension can be zigzag"},
        {"8", "[0,1]{0:2 by 0:0}", 14, "all zero"},
        {"8", "[0,1]{0:2} x", 12, "unexpected text"},
        {"8", "[0,0]{0:2}", 4, "device 0 stands twice"},
        {"8", "sum([0-2]{0:3} | [4,1]{0:2})", 21, "device 1 stands twice"},
        {"8", "split 0 by 1:2:3 ([0]{} | [1]{})", 12, "3 weights for 2 pieces"},
        {"8", "split 0 outer ([0]{} | [1]{})", 9, "expected 'inner', 'by' or '('"},
        {"8", "split ([0]{} | [1]{})", 7, "expected a dimension"},
        {"8", "[0,1]{1:2}", 7, "there is no dimension 1"},
        {"8", "split 2 ([0]{} | [1]{})", 1, "there is no dimension 2"},
        {"8", "(3*5) [0]{}", 1, "do not multiply to its extent, 8"},
        {"8", "(8, 1) [0]{}", 1, "the view has 2 dimensions"},
        {"8", "[0-3]{sum:2,max:2}", 13, "one kind of reduction"},
        {"8", "sum([0,1]{max:2} | [2]{})", 11, "one kind of reduction"},
        {"8", "[0-3]{0:2 by 99999999999999:1,0:2}", 14, "a weight must be from 0 to"},
        {"8", "[0-3]{0:2 by 1099511627776:1,0:2 by 8388608:1}", 30, "too large"},
        {"8", "split 0 by 1:1099511627776 ([0,1]{0:2 by 1:4194303} | [2]{})", 1, "those of the subgroups and of the split"},
        {"8", "split 0 inner ([0,1]{0:2 by 1:1099511627776} | [2,3]{0:2 by 1:4194303})", 1, "those of the subgroups and of the split"},
        {"8", "[0,1]é{0:2}", 6, "not 'é'"},
        {"8", "[0-99999999]{}", 4, "a device number must be from 0 to"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_create();
        char messages[2000], place[40];
        snprintf(place, sizeof place, "test:1:%d: error:", cases[i].column);
        if (read_layout(arena, cases[i].shape, cases[i].layout, messages, sizeof messages))
            fail_msg("%s was not refused", cases[i].layout);
        if (!strstr(messages, cases[i].message) || strncmp(messages, place, strlen(place)))
            fail_msg("%s: %s", cases[i].layout, messages);
        arena_destroy(arena);
    }
}

static void test_plan_names(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"[0-3]{0:4}", "[0-3]{0:4}", "nothing"},
        {"[0-3]{dup:4}", "[0-3]{0:4}", "local slice"},
        {"[0-3]{dup:4}", "[0-3]{sum:4}", "local slice"},
        {"[0-3]{sum:4}", "[0-3]{dup:4}", "all-reduce"},
        {"[0-3]{sum:4}", "[0-3]{0:4 by 3:1:1:1}", "reduce-scatter"},
        {"[0-3]{0:4 by 3:1:1:1}", "[0-3]{dup:4}", "all-gather"},
        {"[0-3]{0:4}", "[0-3]{1:4}", "all-to-all"},
        {"[0]{}", "[0-3]{dup:4}", "broadcast"},
        {"[0-3]{sum:4}", "[2]{}", "reduce"},
        {"[0-3]{0:4}", "[4-7]{0:4}", "permute"},
        {"[0-3]{0:2,sum:2}", "[0-3]{0:2,dup:2}", "all-reduce"},
        {"[0-3]{sum:2,dup:2}", "[0-3]{dup:4}", "all-reduce"},
        {"[0-3]{sum:2,sum:2}", "[0-3]{sum:2,dup:2}", "all-reduce"},
        {"[0-7]{sum:4,dup:2}", "[0-7]{dup:8}", "reduce-scatter, all-gather"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_create();
        const Layout *from = good(arena, "24,40", cases[i][0]), *to = good(arena, "24,40", cases[i][1]);
        const Plan *plan = reshard_plan(arena, NULL, &(Conversion){shape_of(arena, "24,40"), HT_F32, from, to});
        assert_string_equal(plan_name(plan), cases[i][2]);
        assert_int_equal(plan_nothing(plan), !strcmp(cases[i][2], "nothing"));
        assert_int_equal(plan_in_place(plan),
                         !strcmp(cases[i][2], "nothing") || !strcmp(cases[i][2], "all-reduce") || !strcmp(cases[i][1], "[0-3]{sum:4}"));
        arena_destroy(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_print), cmocka_unit_test(test_regions), cmocka_unit_test(test_equality),
                                       cmocka_unit_test(test_errors), cmocka_unit_test(test_plan_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
