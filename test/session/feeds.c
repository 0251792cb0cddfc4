/* What a step is fed has the type and the number of elements that the input says: the same words of programs of ranks and of one device; arrays of one and several dimensions, of variable
 * length, const, and pointers, of which ht_feed_n says the number.

RUN: %hetucc -O1 -Werror -Wall -Wextra %s -o %t.two
RUN: %cc -O1 -Werror -Wall -Wextra -Wno-unknown-pragmas %s -o %t.one %flags
RUN: %mpirun 2 %t.two good | FileCheck %s --check-prefix=GOOD
RUN: %t.one good | FileCheck %s --check-prefix=GOOD
GOOD: right

RUN: not %mpirun 2 %t.two double 2>&1 | FileCheck %s --check-prefix=PLACE
RUN: not %t.one double 2>&1 | FileCheck %s --check-prefix=DOUBLE
DOUBLE: hetu: {{.*}}the input "x"{{.*}} is 15 elements of HT_F32, and is fed elements of type double; give it an array of float
PLACE: hetu: rank 0: the input "x" (feeds.c:[[#]]) is 15 elements of HT_F32, and is fed elements of type double; give it an array of float

RUN: not %mpirun 2 %t.two long 2>&1 | FileCheck %s --check-prefix=LONG
RUN: not %t.one long 2>&1 | FileCheck %s --check-prefix=LONG
LONG: hetu: {{.*}}the input "id"{{.*}} is 5 elements of HT_I32, and is fed elements of type {{long|long long}}; give it an array of int

RUN: not %mpirun 2 %t.two unsigned 2>&1 | FileCheck %s --check-prefix=UNSIGNED
RUN: not %t.one unsigned 2>&1 | FileCheck %s --check-prefix=UNSIGNED
UNSIGNED: hetu: {{.*}}the input "id"{{.*}} is 5 elements of HT_I32, and is fed elements of type unsigned; give it an array of int

RUN: not %mpirun 2 %t.two small 2>&1 | FileCheck %s --check-prefix=SMALL
RUN: not %t.one small 2>&1 | FileCheck %s --check-prefix=SMALL
SMALL: hetu: {{.*}}the input "x"{{.*}} is 15 elements of HT_F32, 60 bytes, and is fed an array of 56 bytes; give it all of them

RUN: not %mpirun 2 %t.two large 2>&1 | FileCheck %s --check-prefix=LARGE
RUN: not %t.one large 2>&1 | FileCheck %s --check-prefix=LARGE
LARGE: hetu: {{.*}}the input "x"{{.*}} is fed an array of 128 bytes; ht_feed_n("x", pointer, 15) feeds a part of one

A struct has no type that an input has, and a size.
RUN: not %mpirun 2 %t.two struct 2>&1 | FileCheck %s --check-prefix=STRUCT
RUN: not %t.one struct 2>&1 | FileCheck %s --check-prefix=STRUCT
STRUCT: hetu: {{.*}}the input "x"{{.*}} is fed an array of 40 bytes

RUN: not %mpirun 2 %t.two count 2>&1 | FileCheck %s --check-prefix=COUNT
RUN: not %t.one count 2>&1 | FileCheck %s --check-prefix=COUNT
COUNT: hetu: {{.*}}the input "x"{{.*}} is 15 elements of HT_F32, and is fed 14

RUN: not %mpirun 2 %t.two pointer 2>&1 | FileCheck %s --check-prefix=DOUBLE
RUN: not %t.one pointer 2>&1 | FileCheck %s --check-prefix=DOUBLE
*/
#include <hetu/hetu.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma hspmd strategy two
#pragma hspmd   split rows:dp
#pragma hspmd   stage devices(0-1) mesh(dp:2)
#pragma hspmd end strategy

enum { ROWS = 5, WIDTH = 3 };

static ht_tensor sum(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, WIDTH)), id = ht_input("id", HT_I32, ht_shape(ROWS));
    ht_tensor table = ht_param(ht_shape(4, WIDTH), ht_ones(), "table");
#pragma hspmd dims(x: rows, _)
#pragma hspmd dims(id: rows)
    return ht_sum(ht_mul(x, ht_embedding(table, id)));
}

/* Runs with what may be fed in the forms that C has; the sum is that of 0, ..., 14 each time. */
static void good(ht_program *program, int rows)
{
    float flat[ROWS * WIDTH], table[ROWS][WIDTH], grown[rows][WIDTH], deep[ROWS][1][WIDTH], *heap = malloc(2 * sizeof flat), got[6];
    const int id[ROWS] = {0, 1, 2, 3, 0};
    for (int i = 0; i < ROWS * WIDTH; i++)
        flat[i] = heap[i + 7] = (float)i;
    memcpy(table, flat, sizeof flat);
    memcpy(grown, flat, sizeof flat);
    memcpy(deep, flat, sizeof flat);
    const float(*rows_of)[WIDTH] = (const float(*)[WIDTH])flat;
    const void *any = flat;
    const ht_fed forms[6] = {ht_feed("x", flat), ht_feed("x", table), ht_feed("x", grown), ht_feed("x", deep), ht_feed("x", rows_of), ht_feed_n("x", any, 15)};
    for (int f = 0; f < 6; f++) {
        ht_run(program, forms[f], ht_feed("id", id));
        ht_fetch(program, "", &got[f]);
    }
    ht_run(program, ht_feed_n("x", heap + 7, ROWS * WIDTH));
    ht_fetch(program, "", &flat[0]);
    for (int f = 0; f < 6; f++)
        if (got[f] != 105 || flat[0] != 105)
            exit(1);
    free(heap);
    puts("right");
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "good";
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_infer(session, sum), **anywhere = &program; // hetucc does not say which it is, and leaves what is wrong to the run
    static float x[ROWS * WIDTH], few[14], many[32];
    static double wide[ROWS * WIDTH], *to_wide = wide;
    (void)anywhere;
    static int id[ROWS];
    static int64_t long_id[ROWS];
    static unsigned unsigned_id[ROWS];
    static struct {
        float at, more;
    } pairs[5];
    if (!strcmp(what, "good"))
        good(program, ROWS);
    if (!strcmp(what, "double"))
        ht_run(program, ht_feed("x", wide), ht_feed("id", id));
    if (!strcmp(what, "pointer"))
        ht_run(program, ht_feed("x", to_wide), ht_feed("id", id));
    if (!strcmp(what, "long"))
        ht_run(program, ht_feed("x", x), ht_feed("id", long_id));
    if (!strcmp(what, "unsigned"))
        ht_run(program, ht_feed("x", x), ht_feed("id", unsigned_id));
    if (!strcmp(what, "small"))
        ht_run(program, ht_feed("x", few), ht_feed("id", id));
    if (!strcmp(what, "large"))
        ht_run(program, ht_feed("x", many), ht_feed("id", id));
    if (!strcmp(what, "struct"))
        ht_run(program, ht_feed("x", pairs), ht_feed("id", id));
    if (!strcmp(what, "count"))
        ht_run(program, ht_feed_n("x", many, 14), ht_feed("id", id));
    return 0;
}
