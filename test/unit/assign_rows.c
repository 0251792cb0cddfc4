/* assign_rows: rows of a dataset go to pipelines that read all of them but padding. Pipeline 0 takes two rows and reads 2 of their 4 elements, pipeline 1
 * takes two rows and reads all 4. */
#include "session/data/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROWS = 4, LENGTH = 4, NONE = -1 };

/* Assigns four rows, of which row r has lengths[r] elements that are no padding. */
static int64_t *assign(const int *lengths, int64_t *left)
{
    static const int64_t extent[] = {ROWS, LENGTH}, reads[] = {0, 2, 2};
    const ht_padding padding = {.value = NONE, .rank = 2, .count = 1, .extent = extent, .rows = reads};
    const ht_image_input image_input = {.name = "x", .dtype = HT_I32, .padding = &padding};
    const ht_pipeline pipelines[] = {{.microbatches = 1, .rows = 2}, {.microbatches = 2, .rows = 1, .first_row = 2}};
    const ht_image image = {.pipeline_count = 2, .pipelines = pipelines};
    int32_t elements[ROWS][LENGTH];
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < LENGTH; i++)
            elements[r][i] = i < lengths[r] ? 7 : NONE;
    char path[] = "/tmp/assign_rows.XXXXXX";
    int made = mkstemp(path);
    assert_true(made >= 0);
    assert_int_equal(write(made, elements, sizeof elements), sizeof elements);
    close(made);
    RowsPlan plan = {.in_order = true, .rows = ROWS, .row = LENGTH, .batch = ROWS};
    assert_null(dataset_open(path, "int32", HT_I32, &plan.file));
    const AssignedInput input = {&image_input, &plan};
    int64_t *order = assign_rows(&image, &input, 1, ROWS, left);
    unlink(path);
    return order;
}

static void long_rows_go_where_they_are_read_whole(void **unused)
{
    (void)unused;
    const int64_t wanted[] = {1, 3, 0, 2};
    int64_t left, *order = assign((const int[]){4, 1, 3, 2}, &left);
    assert_non_null(order);
    assert_memory_equal(order, wanted, sizeof wanted);
    assert_int_equal(left, NONE);
    free(order);
}

static void short_rows_leave_room_for_long_ones(void **unused)
{
    (void)unused;
    int64_t left, *order = assign((const int[]){1, 3, 2, 1}, &left);
    const int64_t moved[] = {0, 2, 1, 3};
    assert_non_null(order);
    assert_memory_equal(order, moved, sizeof moved);
    free(order);
}

static void rows_that_fit_stay(void **unused)
{
    (void)unused;
    int64_t left;
    assert_null(assign((const int[]){2, 1, 1, 4}, &left));
    assert_int_equal(left, NONE);
}

static void row_without_a_pipeline_is_named(void **unused)
{
    (void)unused;
    int64_t left;
    assert_null(assign((const int[]){4, 1, 4, 3}, &left));
    assert_int_equal(left, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_rows_go_where_they_are_read_whole),
        cmocka_unit_test(short_rows_leave_room_for_long_ones),
        cmocka_unit_test(rows_that_fit_stay),
        cmocka_unit_test(row_without_a_pipeline_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
