/* Straggling rates from what ranks report. */
#include "session/control/rates.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { RANKS = 3 };

static const double healthy[RANKS] = {1, 1, 1};

/* A step in which ranks take these seconds (-1: idle), and their kernels these. */
static bool step(Rates *rates, double a, double b, double c, double kernel)
{
    PaceReport reports[RANKS] = {{a, kernel}, {b, kernel}, {c, kernel}};
    return rates_take(rates, reports);
}

static Rates *learnt(void)
{
    Rates *rates = rates_create(RANKS, 0.3);
    rates_go(rates, 7, healthy, NULL);
    assert_false(step(rates, 9, 9, 9, 1)); // it warms up
    assert_false(step(rates, 1, 2, 4, 1));
    assert_false(step(rates, 1.1, 2.5, 4, 1));
    assert_false(step(rates, 0.9, 2, 9, 1)); // what stands out of three is left out
    assert_true(step(rates, 1, 2, 4, 1));
    return rates;
}

static void learns(void **state)
{
    (void)state;
    Rates *rates = learnt();
    for (int r = 0; r < RANKS; r++)
        assert_float_equal(rates->rate[r], 1, 1e-9);
    rates_destroy(rates);
}

static void moves(void **state)
{
    (void)state;
    Rates *rates = learnt();
    double asked[RANKS];
    step(rates, 1, 2.58, 4, 1);
    assert_int_equal(rates->moved[1], 0); // 0.29 of what it was
    step(rates, 1, 2.7, 4, 1);
    step(rates, 1, 2, 4, 1);
    assert_int_equal(rates->moved[1], 0); // in a row
    for (int i = 0; i < 3; i++)
        step(rates, 1, 8, 4.4, 1);
    assert_int_equal(rates->moved[1], 3);
    assert_int_equal(rates->moved[2], 0);
    rates_asked(rates, asked);
    assert_float_equal(asked[1], 4, 1e-9);
    assert_float_equal(asked[2], 1, 1e-9);
    assert_true(rates_near(rates, asked));
    assert_false(rates_near(rates, healthy));
    rates_destroy(rates);
}

/* Under another strategy rank 1 has a quarter of the work: what it takes there is no healing. */
static void goes(void **state)
{
    (void)state;
    const double slow[RANKS] = {1, 4, 1}, work[2 * RANKS] = {1, 2, 4, 1.5, 0.5, 4};
    Rates *rates = learnt();
    for (int i = 0; i < 3; i++)
        step(rates, 1, 8, 4, 1);
    rates_go(rates, 8, slow, work);
    for (int i = 0; i < 4; i++)
        step(rates, 1.6, 2, 4, 1);
    assert_true(step(rates, 1.6, 2, 4, 1));
    assert_float_equal(rates->rate[0], 1, 1e-9);
    assert_float_equal(rates->rate[1], 4, 1e-9);
    for (int i = 0; i < 3; i++)
        step(rates, 1.6, 0.5, 4, 1);
    assert_int_equal(rates->moved[1], 3);
    assert_float_equal(rates->rate[1], 1, 1e-9);
    rates_go(rates, 7, healthy, NULL); // what is known is not learnt again
    step(rates, 1, 2, 4, 1);
    assert_true(step(rates, 1, 2, 4, 1));
    rates_destroy(rates);
}

/* A rank that heals while the program goes over to a strategy is seen to by what the planner expects. */
static void heals_on_the_way(void **state)
{
    (void)state;
    const double slow[RANKS] = {1, 4, 1}, work[2 * RANKS] = {1, 2, 4, 1, 1, 4};
    Rates *rates = learnt();
    rates_go(rates, 8, slow, work);
    for (int i = 0; i < 6; i++)
        step(rates, 1, 1, 4, 1);
    assert_float_equal(rates->rate[1], 1, 1e-9);
    assert_int_equal(rates->moved[1], 2);
    rates_destroy(rates);
}

/* An idle rank is known by its kernel. */
static void idles(void **state)
{
    (void)state;
    const double slow[RANKS] = {1, 4, 1}, work[2 * RANKS] = {1, 2, 4, 1, 0, 4};
    Rates *rates = learnt();
    for (int i = 0; i < 3; i++)
        step(rates, 1, 8, 4, 0.25);
    rates_go(rates, 8, slow, work);
    for (int i = 0; i < 5; i++)
        step(rates, 1, -1, 4, 0.25);
    assert_float_equal(rates->rate[1], 4, 1e-9);
    step(rates, 1, -1, 4, 0.0625);
    assert_float_equal(rates->rate[1], 1, 1e-9);
    assert_int_equal(rates->moved[1], 1);
    rates_destroy(rates);
}

/* A rank that has next to nothing to do, as one of a loss alone: what its calls take besides is neither a rate under that strategy, nor a unit of work for the next. */
static void has_little(void **state)
{
    (void)state;
    const double work[2 * RANKS] = {1, 2, 4, 3, 1e-4, 4};
    Rates *rates = learnt();
    rates_go(rates, 8, healthy, work);
    for (int i = 0; i < 4; i++)
        step(rates, 3, 0.0036, 4, 1);
    for (int i = 0; i < 6; i++) {
        step(rates, 3, i % 2 ? 0.0036 : 0.02, 4, 1);
        assert_int_equal(rates->moved[1], 0);
    }
    for (int i = 0; i < 3; i++) // all that the others take is not little
        step(rates, 3, 4, 4, 1);
    assert_int_equal(rates->moved[1], 3);
    rates_destroy(rates);

    const double back[2 * RANKS] = {1, 1e-4, 4, 1, 2, 2};
    rates = rates_create(RANKS, 0.3);
    rates_go(rates, 7, healthy, NULL);
    for (int i = 0; i < 4; i++)
        step(rates, 1, 0.0036, 4, 1);
    rates_go(rates, 8, healthy, back);
    for (int i = 0; i < 5; i++)
        step(rates, 1, 2, 2, 1);
    assert_float_equal(rates->rate[1], 1, 1e-9);
    assert_int_equal(rates->moved[1], 0);
    rates_destroy(rates);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(learns), cmocka_unit_test(moves), cmocka_unit_test(goes),
                                       cmocka_unit_test(heals_on_the_way), cmocka_unit_test(idles),
                                       cmocka_unit_test(has_little)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
