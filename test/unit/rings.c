/* Rings of shared memory: what is put in parts of any size comes out in order, and a ring that is full takes nothing. */
#include "transport/rings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { BYTES = 1 << 20 };

static char sent[BYTES], received[BYTES];

static void fill(void)
{
    for (int i = 0; i < BYTES; i++)
        sent[i] = (char)(i * 7 + i / 251);
    memset(received, 0, sizeof received);
}

static void connect_two(Rings *rings[2])
{
    RingFile files[2];
    for (int r = 0; r < 2; r++) {
        rings[r] = rings_create(r, 2);
        files[r] = rings_file(rings[r]);
    }
    for (int r = 0; r < 2; r++)
        assert_true(rings_connect(rings[r], files));
}

static void full_ring_takes_nothing(void **unused)
{
    (void)unused;
    Rings *rings[2];
    fill();
    connect_two(rings);
    size_t room = ring_put(rings[0], 1, sent, BYTES);
    assert_in_range(room, 1, BYTES - 1);
    assert_int_equal(ring_put(rings[0], 1, sent + room, 1), 0);
    assert_int_equal(ring_get(rings[1], 0, received, 3), 3);
    assert_int_equal(ring_put(rings[0], 1, sent + room, 10), 3);
    assert_int_equal(ring_get(rings[1], 0, received + 3, BYTES - 3), room);
    assert_memory_equal(received, sent, room + 3);
    assert_int_equal(ring_get(rings[1], 0, received, 1), 0);
    assert_int_equal(ring_get(rings[0], 1, received, 1), 0);
    for (int r = 0; r < 2; r++)
        rings_close(rings[r]);
}

static void parts_of_any_size(void **unused)
{
    (void)unused;
    Rings *rings[2];
    fill();
    connect_two(rings);
    for (size_t put = 0, got = 0, round = 1; got < BYTES; round++) {
        size_t more = round * 9973 % 150000, less = round * 7919 % 150000;
        put += ring_put(rings[1], 0, sent + put, more < BYTES - put ? more : BYTES - put);
        got += ring_get(rings[0], 1, received + got, less < BYTES - got ? less : BYTES - got);
    }
    assert_memory_equal(received, sent, BYTES);
    for (int r = 0; r < 2; r++)
        rings_close(rings[r]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(full_ring_takes_nothing), cmocka_unit_test(parts_of_any_size)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
