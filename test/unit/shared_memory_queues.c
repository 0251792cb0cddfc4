/* Queues of shared memory: what is put in parts of any size comes out in order, and a queue that is full takes nothing. */
#include "transport/fabric/shared_memory_queues.h"

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

static void connect_two(Queues *queues[2])
{
    QueueFile files[2];
    for (int r = 0; r < 2; r++) {
        queues[r] = queues_create(r, 2);
        files[r] = queues_file(queues[r]);
    }
    for (int r = 0; r < 2; r++)
        assert_true(queues_connect(queues[r], files));
}

static void full_queue_takes_nothing(void **unused)
{
    (void)unused;
    Queues *queues[2];
    fill();
    connect_two(queues);
    size_t room = queue_put(queues[0], 1, sent, BYTES);
    assert_in_range(room, 1, BYTES - 1);
    assert_int_equal(queue_put(queues[0], 1, sent + room, 1), 0);
    assert_int_equal(queue_get(queues[1], 0, received, 3), 3);
    assert_int_equal(queue_put(queues[0], 1, sent + room, 10), 3);
    assert_int_equal(queue_get(queues[1], 0, received + 3, BYTES - 3), room);
    assert_memory_equal(received, sent, room + 3);
    assert_int_equal(queue_get(queues[1], 0, received, 1), 0);
    assert_int_equal(queue_get(queues[0], 1, received, 1), 0);
    for (int r = 0; r < 2; r++)
        queues_close(queues[r]);
}

static void parts_of_any_size(void **unused)
{
    (void)unused;
    Queues *queues[2];
    fill();
    connect_two(queues);
    for (size_t put = 0, got = 0, round = 1; got < BYTES; round++) {
        size_t more = round * 9973 % 150000, less = round * 7919 % 150000;
        put += queue_put(queues[1], 0, sent + put, more < BYTES - put ? more : BYTES - put);
        got += queue_get(queues[0], 1, received + got, less < BYTES - got ? less : BYTES - got);
    }
    assert_memory_equal(received, sent, BYTES);
    for (int r = 0; r < 2; r++)
        queues_close(queues[r]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(full_queue_takes_nothing), cmocka_unit_test(parts_of_any_size)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
