/* The shuffled order of a dataset (session/data/shuffle.c). */
#include "session/data/dataset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

enum { MOST = 5000 };

/* Whether each place is that of one element. */
static void check_places(int64_t count, int64_t number)
{
    char *taken = calloc((size_t)count, 1);
    for (int64_t i = 0; i < count; i++) {
        int64_t place = permutation_place(7, 11, number, count, i);
        assert_true(place >= 0 && place < count);
        assert_false(taken[place]++);
    }
    free(taken);
}

static void test_every_place_once(void **state)
{
    (void)state;
    for (int64_t count = 1; count <= 300; count++)
        for (int64_t number = 0; number < 3; number++)
            check_places(count, number);
    check_places(4095, 1);
    check_places(4096, 1);
    check_places(4097, 1);
    check_places(100003, 5);
}

/* Where the first of 100 elements goes is any place alike: chi squared with 99 degrees of freedom is below 150 but once in 1500 draws. */
static void test_places_alike(void **state)
{
    (void)state;
    int hits[100] = {0};
    for (int64_t number = 0; number < MOST; number++)
        hits[permutation_place(1, 2, number, 100, 0)]++;
    double chi = 0, wanted = MOST / 100.0;
    for (int p = 0; p < 100; p++)
        chi += (hits[p] - wanted) * (hits[p] - wanted) / wanted;
    assert_true(chi < 150);
}

/* Neighbours go apart: as many of them stay neighbours as of a random permutation, two of n about. */
static void test_neighbours(void **state)
{
    (void)state;
    int together = 0;
    for (int64_t i = 0; i + 1 < MOST; i++) {
        int64_t apart = permutation_place(3, 4, 0, MOST, i + 1) - permutation_place(3, 4, 0, MOST, i);
        together += apart == 1 || apart == -1;
    }
    assert_true(together < 12);
}

/* The seed, the stream and the number each make another permutation. */
static void test_keys(void **state)
{
    (void)state;
    int same[3] = {0};
    for (int64_t i = 0; i < 1000; i++) {
        int64_t place = permutation_place(1, 2, 3, 1000, i);
        same[0] += place == permutation_place(2, 2, 3, 1000, i);
        same[1] += place == permutation_place(1, 3, 3, 1000, i);
        same[2] += place == permutation_place(1, 2, 4, 1000, i);
    }
    for (int k = 0; k < 3; k++)
        assert_true(same[k] < 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_place_once), cmocka_unit_test(test_places_alike),
                                       cmocka_unit_test(test_neighbours), cmocka_unit_test(test_keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
