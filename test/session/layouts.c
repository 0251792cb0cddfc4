/* What a session holds in layouts of all kinds: parameters that two programs lay out in different ways, inputs and outputs in several
boxes, in single columns, on some
 * devices, with their numbers in another order. Values go in and out as on one device, and each program sees what the other, or
ht_set_param, changed last.

RUN: %cc %s -o %t.plain %flags && %t.plain > %t.expected
RUN: %hetucc -O1 %s -o %t -lm && env HETU_CHECK=1 %mpirun 4 %t | diff %t.expected -
RUN: FileCheck %s < %t.expected
CHECK: step 3
*/
#include <hetu/hetu.h>

#include <stdio.h>

enum { ROWS = 6, DEEP = 2, WIDE = 3, MANY = 11, STEPS = 4 };

#pragma hspmd strategy four
#pragma hspmd   split rows:a wide:b
#pragma hspmd   stage devices(0-3) mesh(a:2, b:2)
#pragma hspmd end strategy

static ht_tensor input(int i)
{
    char name[8];
    snprintf(name, sizeof name, "x%d", i);
    return ht_input(name, HT_F32, ht_shape(ROWS, DEEP, WIDE));
}

/* Inputs in 11 layouts, added up with weights. */
static ht_tensor inputs(void)
{
    ht_tensor x[MANY];
    for (int i = 0; i < MANY; i++)
        x[i] = input(i);
#pragma hspmd shard(x[0]: [0-2]{2:3})
#pragma hspmd shard(x[1]: split 2 inner by 1:3 ([0-2]{2:3} | [3]{}))
#pragma hspmd shard(x[2]: split 0 inner ([0-1]{0:2} | [2]{}))
#pragma hspmd shard(x[3]: [3,1]{0:2})
#pragma hspmd shard(x[4]: [2]{})
#pragma hspmd shard(x[5]: [3,2,1,0]{1:2, dup:2})
#pragma hspmd shard(x[6]: split 2 ([1]{} | [0]{}))
#pragma hspmd shard(x[7]: split 0 by 1:5 ([3]{} | [0-1]{1:2}))
#pragma hspmd shard(x[8]: {0:a, 2:b})
#pragma hspmd shard(x[9]: [0-3]{0:4 by 3:1:1:2})
#pragma hspmd shard(x[10]: [0,3]{dup:2})
    ht_tensor sum = x[0];
#pragma hspmd dims(sum: rows, _, wide)
    for (int i = 1; i < MANY; i++)
        sum = ht_add(ht_scale(sum, 0.7f), x[i]);
    return sum;
}

static ht_tensor train(void)
{
    ht_tensor w = ht_param(ht_shape(DEEP, WIDE), ht_normal(0.5f), "w"), b = ht_param(ht_shape(DEEP, WIDE), ht_uniform(0.25f), "b");
#pragma hspmd shard(w: [0-2]{1:3})
#pragma hspmd shard(b: [3,1]{1:2})
    ht_tensor y = ht_add(ht_mul(inputs(), w), b), columns = ht_scale(y, 2), boxes = ht_scale(y, 3);
#pragma hspmd reshard(columns: [1,3,0]{2:3})
#pragma hspmd reshard(boxes: split 2 inner by 1:3 ([2,0,1]{2:3} | [3]{}))
    ht_output(columns, "columns");
    ht_output(boxes, "boxes");
    return ht_mean(ht_mul(y, y));
}

/* Of the same parameters, laid out in other ways. */
static ht_tensor infer(void)
{
    ht_tensor b = ht_param(ht_shape(DEEP, WIDE), ht_uniform(0.25f), "b"), w = ht_param(ht_shape(DEEP, WIDE), ht_normal(0.5f), "w");
#pragma hspmd shard(w: split 1 inner by 1:3 ([0-2]{1:3} | [3]{}))
#pragma hspmd shard(b: [3,2]{0:2})
    return ht_add(ht_mul(w, w), b);
}

static void print(const char *name, const float *value, int count)
{
    printf("%s", name);
    for (int i = 0; i < count; i++)
        printf(" %.3f", value[i] == 0 ? 0.0 : value[i]);
    puts("");
}

int main(int argc, char **argv)
{
    static float x[MANY][ROWS * DEEP * WIDE], value[ROWS * DEEP * WIDE];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *first = ht_train(session, train, ht_sgd(.lr = 0.1f)), *second = ht_infer(session, infer);
    for (int step = 0; step < STEPS; step++) {
        printf("step %d\n", step);
        for (int i = 0; i < MANY * ROWS * DEEP * WIDE; i++)
            x[0][i] = (float)((i + step) * 7 % 13 - 6) / 8;
        float loss = step == 2 ? ht_step(first, ht_feed("x10", x[9]), ht_feed("x1", x[5]))
                               : ht_step(first, ht_feed("x0", x[0]), ht_feed("x1", x[1]), ht_feed("x2", x[2]), ht_feed("x3", x[3]),
                                         ht_feed("x4", x[4]), ht_feed("x5", x[5]), ht_feed("x6", x[6]), ht_feed("x7", x[7]),
                                         ht_feed("x8", x[8]), ht_feed("x9", x[9]), ht_feed("x10", x[10]));
        print("loss", &loss, 1);
        ht_fetch(first, "columns", value);
        print("columns", value, ROWS * DEEP * WIDE);
        ht_fetch(first, "boxes", value);
        print("boxes", value, ROWS * DEEP * WIDE);
        ht_run(second);
        ht_fetch(second, "", value);
        print("value", value, DEEP * WIDE);
        ht_get_param(session, "w", value, DEEP * WIDE);
        print("w", value, DEEP * WIDE);
        ht_get_param(session, "b", value, DEEP * WIDE);
        print("b", value, DEEP * WIDE);
        value[step] += 1;
        ht_set_param(session, "b", value, DEEP * WIDE);
        ht_run(second);
        ht_fetch(second, "", value);
        print("changed", value, DEEP * WIDE);
    }
    return 0;
}
