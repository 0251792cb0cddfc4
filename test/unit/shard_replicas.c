/* Layouts whose copies are shared out: of random unions, every element lies once, with a device
 * that had it; the busiest device's elements; and what conversions to and from such a layout move,
 * against closed forms. */
#include "layout/layout.h"
#include "reshard/reshard.h"
#include "support/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

enum { MOST_GROUPS = 5, MOST_RANK = 3, UNIONS = 400 };

static uint64_t seed = 12;

/* A number below `bound`. */
static int draw(int bound) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)bound);
}

/* A union of subgroups, each with the whole of a tensor: as a parameter lies, and as its gradient
 * does. */
typedef struct Union {
    Shape shape;
    int64_t extent[MOST_RANK];
    const Layout *parameter, *gradient;
    int contributions;
} Union;

/* Appends one state, and the same of the gradient, in which some copies are contributions; gives
 * its count. */
static int draw_state(Union *u, Text *parameter, Text *gradient, bool weighted,
                      int *contributions) {
    int count = 1 + draw(4), dim = draw(u->shape.rank);
    bool copies = draw(3) == 0, sums = copies && draw(2);
    if (copies) {
        text_print(parameter, "dup:%d", count);
        text_print(gradient, "%s:%d", sums ? "sum" : "dup", count);
    } else {
        for (int t = 0; t < 2; t++) {
            uint64_t before = seed;
            Text *out = t ? gradient : parameter;
            text_print(out, "%d:%d", dim, count);
            for (int i = 0; weighted && i < count; i++)
                text_print(out, "%s%d", i ? ":" : " by ", 1 + draw(5));
            seed = t ? seed : before;
        }
    }
    *contributions *= sums ? count : 1;
    return count;
}

/* Appends a subgroup of devices from *device on. */
static void draw_group(Arena *arena, Union *u, Text *parameter, Text *gradient, bool weighted,
                       int *device) {
    Text states = {.arena = arena}, own = {.arena = arena};
    int count = 1, contributions = 1;
    for (int s = draw(3); s > 0; s--) {
        count *= draw_state(u, &states, &own, weighted, &contributions);
        text_string(&states, s > 1 ? "," : "");
        text_string(&own, s > 1 ? "," : "");
    }
    for (int t = 0; t < 2; t++) {
        Text *out = t ? gradient : parameter;
        text_string(out, *device ? " | [" : "[");
        for (int i = 0; i < count; i++) text_print(out, "%s%d", i ? "," : "", *device + i);
        text_print(out, "]{%s}", text_bytes(t ? &own : &states));
    }
    *device += count;
    u->contributions += contributions;
}

static const Layout *read_layout(Arena *arena, const char *text, Shape shape) {
    Diag *diag = diag_create(arena, stderr);
    Position at = {"test", 1, 1};
    diag_source(diag, "test", text);
    const Layout *layout = layout_parse_text(arena, diag, at, text);
    assert_true(layout && layout_check(diag, at, layout, shape));
    return layout;
}

static void draw_union(Arena *arena, Union *u, bool weighted) {
    Text parameter = {.arena = arena}, gradient = {.arena = arena};
    int device = 0;
    *u = (Union){.shape = {.rank = 1 + draw(MOST_RANK)}};
    for (int d = 0; d < u->shape.rank; d++) u->extent[d] = 1 + draw(u->shape.rank == 1 ? 100 : 24);
    u->shape.extent = u->extent;
    text_string(&parameter, "dup(");
    text_string(&gradient, "sum(");
    for (int g = 2 + draw(MOST_GROUPS - 1); g > 0; g--)
        draw_group(arena, u, &parameter, &gradient, weighted, &device);
    text_string(&parameter, ")");
    text_string(&gradient, ")");
    u->parameter = read_layout(arena, text_bytes(&parameter), u->shape);
    u->gradient = read_layout(arena, text_bytes(&gradient), u->shape);
}

static const char *text_of(Arena *arena, const Layout *layout) {
    Text text = {.arena = arena};
    layout_print(&text, layout);
    return text_bytes(&text);
}

static int64_t elements(Shape shape) {
    int64_t count = 1;
    for (int d = 0; d < shape.rank; d++) count *= shape.extent[d];
    return count;
}

/* By element, 1 more for each time that a region holds it. */
static void count_elements(const Region *region, Shape shape, int *times) {
    for (int64_t e = 0; e < elements(shape); e++)
        for (int b = 0; b < region->box_count; b++) {
            bool inside = true;
            int64_t rest = e;
            for (int d = shape.rank - 1; d >= 0; rest /= shape.extent[d--])
                inside = inside && rest % shape.extent[d] >= region->boxes[b].dim[d].lo &&
                         rest % shape.extent[d] < region->boxes[b].dim[d].hi;
            times[e] += inside;
        }
}

/* Every element once, with a device that had it. */
static void check_once(Arena *arena, const Union *u, const Layout *spread) {
    int count;
    const int *devices = layout_devices(arena, spread, &count);
    int *times = arena_array(arena, int, elements(u->shape));
    for (int i = 0; i < count; i++) {
        Region part = layout_region(arena, spread, u->shape, devices[i]),
               whole = layout_region(arena, u->parameter, u->shape, devices[i]);
        int *has = arena_array(arena, int, elements(u->shape)),
            *had = arena_array(arena, int, elements(u->shape));
        count_elements(&part, u->shape, has);
        count_elements(&whole, u->shape, had);
        for (int64_t e = 0; e < elements(u->shape); e++) {
            times[e] += has[e];
            assert_true(has[e] <= had[e]);
        }
    }
    for (int64_t e = 0; e < elements(u->shape); e++)
        if (times[e] != 1)
            fail_msg("%s of %s: element %d lies %d times", text_of(arena, spread),
                     text_of(arena, u->parameter), (int)e, times[e]);
}

/* Into how many pieces a subgroup cuts a dimension. */
static int pieces_of(const Group *group, int dim) {
    int pieces = 1;
    for (int s = 0; s < group->state_count; s++)
        if (group->states[s].kind == STATE_SPLIT && group->states[s].dim == dim)
            pieces *= group->states[s].count;
    return pieces;
}

/* The most finest slices of the top's dimension that lie in one piece of subgroup g. */
static int most_slices(const Layout *layout, int g) {
    int own = pieces_of(&layout->groups[g], layout->top_dim), most = 0;
    for (int i = 0; i < own; i++) {
        double edges[4096];
        int count = 0;
        for (int h = 0; h < layout->group_count; h++)
            for (int k = 1, other = pieces_of(&layout->groups[h], layout->top_dim); k < other;
                 k++) {
                bool inside = k * own > i * other && k * own < (i + 1) * other;
                for (int e = 0; inside && e < count; e++)
                    inside =
                        edges[e] < (double)k / other - 1e-9 || edges[e] > (double)k / other + 1e-9;
                if (inside) edges[count++] = (double)k / other;
            }
        most = count + 1 > most ? count + 1 : most;
    }
    return most;
}

/* A device's part of each dimension, by exact fractions, and a row more for each slice: what
 * layout_shard_replicas promises. */
static void check_even(Arena *arena, const Union *u, const Layout *spread, double *worst) {
    int count;
    layout_devices(arena, spread, &count);
    double mean = (double)elements(u->shape) / count;
    for (int g = 0; g < spread->group_count; g++) {
        double bound = 1;
        for (int d = 0; d < u->shape.rank; d++) {
            bool across = spread->top == TOP_SPLIT && d == spread->top_dim;
            double part = (double)u->shape.extent[d] / pieces_of(&spread->groups[g], d);
            bound *= across ? part * spread->groups[g].device_count / count + most_slices(spread, g)
                            : part + 1;
        }
        for (int i = 0; i < spread->groups[g].device_count; i++) {
            Region region = layout_region(arena, spread, u->shape, spread->groups[g].devices[i]);
            if ((double)region.volume >= bound)
                fail_msg("%s: a device has %d elements, not below %g", text_of(arena, spread),
                         (int)region.volume, bound);
            *worst = (double)region.volume / mean > *worst && mean >= 64
                         ? (double)region.volume / mean
                         : *worst;
        }
    }
}

/* Every contribution but one is received once for each element, and by a device that has what it
 * needs of the parameter all else. */
static void check_bytes(Arena *arena, const Union *u, const Layout *spread) {
    const Plan *reduce =
        reshard_plan(arena, NULL, &(Conversion){u->shape, HT_F32, u->gradient, spread});
    const Plan *gather =
        reshard_plan(arena, NULL, &(Conversion){u->shape, HT_F32, spread, u->parameter});
    int count;
    const Region *regions = layout_regions(arena, u->parameter, u->shape, &count);
    int64_t held = 0;
    for (int i = 0; i < count; i++) held += regions[i].volume;
    if (plan_bytes(reduce) != 4 * (u->contributions - 1) * elements(u->shape))
        fail_msg("%s -> %s: %ld bytes, not %ld", text_of(arena, u->gradient),
                 text_of(arena, spread), (long)plan_bytes(reduce),
                 (long)(4 * (u->contributions - 1) * elements(u->shape)));
    if (plan_bytes(gather) != 4 * (held - elements(u->shape)))
        fail_msg("%s -> %s: %ld bytes, not %ld", text_of(arena, spread),
                 text_of(arena, u->parameter), (long)plan_bytes(gather),
                 (long)(4 * (held - elements(u->shape))));
}

static void test_unions(void **state) {
    (void)state;
    double worst = 0;
    for (int i = 0; i < UNIONS; i++) {
        Arena *arena = arena_create();
        Union u;
        bool weighted = i % 4 == 3;
        draw_union(arena, &u, weighted);
        const Layout *spread = layout_shard_replicas(arena, u.parameter, u.shape);
        assert_true(read_layout(arena, text_of(arena, spread), u.shape) != NULL);
        check_once(arena, &u, spread);
        if (!weighted) check_even(arena, &u, spread, &worst);
        check_bytes(arena, &u, spread);
        arena_destroy(arena);
    }
    print_message(
        "the busiest device has at most %.3f of the mean, where that is 64 elements or more\n",
        worst);
}

static void test_written(void **state) {
    (void)state;
    static const struct {
        int64_t extent[2];
        const char *layout, *spread;
    } cases[] = {
        {{12, 5}, "dup([0-3]{0:4} | [4]{})", "split 1 inner by 4:1 ([0-3]{0:4} | [4]{})"},
        {{15, 4}, "dup([0-3]{0:4} | [4]{})", "split 0 inner by 4:1 ([0-3]{0:4} | [4]{})"},
        {{8, 6},
         "dup([0-3]{dup:2,0:2} | [4,5]{0:2})",
         "split 1 inner by 4:2 ([0,2,1,3]{0:2,0:2} | [4,5]{0:2})"},
        {{7, 6}, "[0-5]{dup:3,0:2}", "[0,2,4,1,3,5]{0:2,1:3}"},
        {{7, 6}, "[0,1]{0:2}", "[0,1]{0:2}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_create();
        Shape shape = {2, cases[i].extent};
        const Layout *spread =
            layout_shard_replicas(arena, read_layout(arena, cases[i].layout, shape), shape);
        assert_string_equal(text_of(arena, spread), cases[i].spread);
        arena_destroy(arena);
    }
}

/* Nothing to cut, and fractions that nobody can tell: the copies stay. */
static void test_copies(void **state) {
    (void)state;
    Arena *arena = arena_create();
    Shape number = {0, NULL}, row = {1, (int64_t[]){12}};
    const Layout *copies = read_layout(arena, "dup([0]{} | [1,2]{dup:2})", number);
    assert_ptr_equal(layout_shard_replicas(arena, copies, number), copies);
    const char *large =
        "dup([0,1]{0:2 by 2147483659:2147483693} | [2,3]{0:2 by 4294967311:4294967357})";
    copies = read_layout(arena, large, row);
    assert_ptr_equal(layout_shard_replicas(arena, copies, row), copies);
    arena_destroy(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_unions),
                                       cmocka_unit_test(test_written),
                                       cmocka_unit_test(test_copies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
