/* What operators once got wrong: roundings to bf16 in a chain, empty members, means of nothing, clipping, momentum 0, parameters that are
 * set between steps, gradients that two tensors share, integers that f32 has not.
 *
 * Prints a line for each disagreement with what is worked out here, and "N checks, M wrong".
 */
#include <hetu/hetu.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 6, WIDTH = 8 };

static int checked, wrong;

static void check(const char *name, float found, float wanted)
{
    checked++;
    if (found == wanted || (isnan(found) && isnan(wanted)) || fabsf(found - wanted) <= 1e-6f * fabsf(wanted))
        return;
    wrong++;
    printf("wrong: %s is %.9g, not %.9g\n", name, (double)found, (double)wanted);
}

/* ---- forward ---- */

/* (x + z) * x - z in bf16, each step rounded, and a cast to bf16 and back. */
static ht_tensor forward(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, WIDTH)), z = ht_input("z", HT_F32, ht_shape(ROWS, WIDTH));
#pragma hspmd dims(x, z : f0, f1)
    ht_tensor a = ht_cast(x, HT_BF16), b = ht_cast(z, HT_BF16);
    ht_output(ht_cast(ht_sub(ht_mul(ht_add(a, b), a), b), HT_F32), "chain");
    ht_output(ht_add(ht_cast(ht_cast(x, HT_BF16), HT_F32), z), "back");
    ht_tensor none = ht_slice(z, 1, 3, 0);
    ht_output(ht_mean(none), "nothing");
    ht_output(ht_concat(ht_list(none, z, none), 1), "members");
    ht_tensor whole = ht_cast(ht_scale(x, 1000), HT_I32);
    ht_output(ht_sum(ht_mul(whole, whole)), "squares");
    ht_tensor same = ht_concat(ht_list(ht_scale(x, 0), ht_scale(x, 0)), 1);
    return ht_cross_entropy(ht_add(same, ht_input("peak", HT_F32, ht_shape(2 * WIDTH))), ht_input("target", HT_I32, ht_shape(ROWS)));
}

static float rounded(float value)
{
    union {
        float f;
        uint32_t i;
    } u = {value};
    u.i = (u.i + 0x7fffu + (u.i >> 16 & 1u)) & 0xffff0000u;
    return u.f;
}

static void forward_check(ht_session *session)
{
    float x[ROWS * WIDTH], z[ROWS * WIDTH], chain[ROWS * WIDTH], back[ROWS * WIDTH], members[ROWS * WIDTH], peak[2 * WIDTH], loss[ROWS],
        mean;
    int32_t target[ROWS];
    int64_t squares, total = 0;
    ht_program *program = ht_infer(session, forward);
    for (int i = 0; i < ROWS * WIDTH; i++) {
        x[i] = (float)(i * 37 % 101) / 7 - 5;
        z[i] = (float)(i * 53 % 89) / 11 - 3;
        total += (int64_t)(int32_t)(x[i] * 1000) * (int32_t)(x[i] * 1000);
    }
    for (int i = 0; i < 2 * WIDTH; i++)
        peak[i] = 1e6f;
    for (int i = 0; i < ROWS; i++)
        target[i] = i;
    ht_run(program, ht_feed("x", x), ht_feed("z", z), ht_feed("peak", peak), ht_feed("target", target));
    ht_fetch(program, "chain", chain);
    ht_fetch(program, "back", back);
    ht_fetch(program, "nothing", &mean);
    ht_fetch(program, "members", members);
    ht_fetch(program, "squares", &squares);
    ht_fetch(program, "", loss);
    for (int i = 0; i < ROWS * WIDTH; i++) {
        float a = rounded(x[i]), b = rounded(z[i]);
        check("a chain in bf16", chain[i], rounded(rounded(rounded(a + b) * a) - b));
        check("a cast to bf16 and back", back[i], a + z[i]);
        check("a member beside empty ones", members[i], z[i]);
    }
    check("the mean of nothing", mean, NAN);
    check("a sum of integers", (float)squares, (float)total);
    for (int i = 0; i < ROWS; i++)
        check("the loss of equal logits of 1e6", loss[i], logf(2 * WIDTH));
}

/* ---- updates ---- */

static ht_tensor weight(void) { return ht_param(ht_shape(ROWS, WIDTH), ht_constant(0.5), "w"); }

/* The gradient of w is `slope`. */
static ht_tensor loss(void)
{
    ht_tensor w = weight();
#pragma hspmd dims(w : f0, f1)
    return ht_sum(ht_mul(w, ht_input("slope", HT_F32, ht_shape(ROWS, WIDTH))));
}

static ht_tensor value(void)
{
    ht_tensor w = weight();
#pragma hspmd dims(w : f1, f0)
    return ht_scale(w, 2);
}

/* A step from w of 0.5 with all slopes alike, and the first at `first`; the second element of w then. */
static float stepped(ht_session *session, ht_program *program, float slope, float first)
{
    float w[ROWS * WIDTH], slopes[ROWS * WIDTH];
    for (int i = 0; i < ROWS * WIDTH; i++) {
        w[i] = 0.5f;
        slopes[i] = i ? slope : first;
    }
    ht_set_param(session, "w", w, ROWS * WIDTH);
    ht_step(program, ht_feed("slope", slopes));
    ht_get_param(session, "w", w, ROWS * WIDTH);
    return w[1];
}

static void clip_check(ht_session *session)
{
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = 1, .clip = 1));
    float norm = 0.01f * sqrtf(ROWS * WIDTH);
    check("a gradient below the clip", stepped(session, program, 0.01f, 0.01f), norm < 1 ? 0.49f : 0);
    check("a gradient above the clip", stepped(session, program, 10, 10), 0.5f - 10 / (10 * sqrtf(ROWS * WIDTH) + 1e-6f));
    check("clipping by NaN", stepped(session, program, 0.01f, NAN), NAN);
    check("clipping by infinity", stepped(session, program, 0.01f, INFINITY), 0.5f);
    ht_program *adamw = ht_train(session, loss, ht_adamw(.lr = 0.1f, .decay = 0, .eps = 1, .clip = 1));
    check("AdamW's gradient below the clip", stepped(session, adamw, 0.01f, 0.01f), 0.5f - 0.1f * 0.01f / (0.01f + 1));
    ht_program *decaying = ht_train(session, loss, ht_adamw(.lr = 0.1f, .decay = 0.5f, .eps = 1));
    check("AdamW's decay", stepped(session, decaying, 0, 0), 0.5f * (1 - 0.1f * 0.5f));
}

static void momentum_check(ht_session *session)
{
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = 1, .momentum = 0));
    check("a step with an infinite slope", stepped(session, program, INFINITY, 0), -INFINITY);
    check("momentum 0 after it", stepped(session, program, 0.25f, 0.25f), 0.25f);
}

/* Values that are set are seen by two programs whose layouts of the parameter differ, and which have run before. */
static void set_check(ht_session *session)
{
    float w[ROWS * WIDTH], y[ROWS * WIDTH];
    ht_program *train = ht_train(session, loss, ht_sgd(.lr = 1)), *infer = ht_infer(session, value);
    for (int round = 0; round < 3; round++) {
        check("a step from a parameter that was set", stepped(session, train, (float)round, 1), 0.5f - (float)round);
        ht_run(infer);
        for (int i = 0; i < ROWS * WIDTH; i++)
            w[i] = (float)(i + 100 * round);
        ht_set_param(session, "w", w, ROWS * WIDTH);
        ht_run(infer);
        ht_fetch(infer, "", y);
        for (int i = 0; i < ROWS * WIDTH; i++)
            check("a parameter that was set", y[i], 2 * w[i]);
    }
}

/* The sum gives both operands one gradient; the first gets another from what was made of it before. */
static ht_tensor shared(void)
{
    ht_tensor first = ht_param(ht_shape(ROWS, WIDTH), ht_constant(1), "first"),
              second = ht_param(ht_shape(ROWS, WIDTH), ht_constant(1), "second");
#pragma hspmd dims(first, second : f0, f1)
    ht_tensor more = ht_sum(ht_scale(first, 3)), sum = ht_add(first, second);
    return ht_add(ht_sum(ht_mul(sum, ht_input("slope", HT_F32, ht_shape(ROWS, WIDTH)))), more);
}

static void shared_check(ht_session *session)
{
    float first[ROWS * WIDTH], second[ROWS * WIDTH], slopes[ROWS * WIDTH];
    ht_program *program = ht_train(session, shared, ht_sgd(.lr = 1));
    for (int i = 0; i < ROWS * WIDTH; i++)
        slopes[i] = (float)i;
    ht_step(program, ht_feed("slope", slopes));
    ht_get_param(session, "first", first, ROWS * WIDTH);
    ht_get_param(session, "second", second, ROWS * WIDTH);
    for (int i = 0; i < ROWS * WIDTH; i++) {
        check("the operand of a sum that is used before", first[i], 1 - slopes[i] - 3);
        check("the other operand of the sum", second[i], 1 - slopes[i]);
    }
}

/* Constants beyond the integers that f32 has, and sums of them. */
static ht_tensor integers(void)
{
    ht_tensor many = ht_input("many", HT_I64, ht_shape(ROWS));
#pragma hspmd dims(many : f0)
    ht_tensor more = ht_add(ht_mul(many, ht_scalar_at(2, HT_I64)), ht_scalar_at(1, HT_I64));
    ht_output(ht_sum(ht_sub(more, ht_full(ht_shape(ROWS), 246913577, HT_I64))), "far");
    ht_output(ht_scalar_at(16777217, HT_I32), "odd");
    return ht_sum(ht_arange(16777217, 16777219, 1, HT_I64));
}

static void check_integer(const char *name, int64_t found, int64_t wanted)
{
    checked++;
    wrong += found != wanted;
    if (found != wanted)
        printf("wrong: %s is %lld, not %lld\n", name, (long long)found, (long long)wanted);
}

static void integers_check(ht_session *session)
{
    int64_t many[ROWS], far, sum, wanted = 0;
    int32_t odd;
    ht_program *program = ht_infer(session, integers);
    for (int i = 0; i < ROWS; i++) {
        many[i] = 123456789 + i;
        wanted += 2 + 2 * i;
    }
    ht_run(program, ht_feed("many", many));
    ht_fetch(program, "far", &far);
    ht_fetch(program, "odd", &odd);
    ht_fetch(program, "", &sum);
    check_integer("a sum of integers less a constant", far, wanted);
    check_integer("an integer that f32 has not", odd, 16777217);
    check_integer("a sum of such integers", sum, 16777217 + 16777218);
}

/* A table that is cast to bf16 and to f64: its gradients are made in f32. */
static ht_tensor halved(void)
{
    ht_tensor table = ht_param(ht_shape(ROWS, WIDTH), ht_constant(1), "table"), id = ht_input("id", HT_I32, ht_shape(2 * ROWS));
#pragma hspmd dims(table : f0, f1)
    ht_tensor narrow = ht_embedding(ht_cast(table, HT_BF16), id), wide = ht_embedding(ht_cast(table, HT_F64), id);
    return ht_add(ht_sum(ht_cast(narrow, HT_F32)), ht_sum(ht_cast(wide, HT_F32)));
}

static void halved_check(ht_session *session)
{
    float table[ROWS * WIDTH];
    int id[2 * ROWS];
    ht_program *program = ht_train(session, halved, ht_sgd(.lr = 0.25f));
    for (int i = 0; i < 2 * ROWS; i++)
        id[i] = i % (ROWS - 1);
    ht_step(program, ht_feed("id", id));
    ht_get_param(session, "table", table, ROWS * WIDTH);
    for (int r = 0; r < ROWS; r++) {
        int uses = 0;
        for (int i = 0; i < 2 * ROWS; i++)
            uses += id[i] == r;
        check("a table cast to bf16 and f64", table[r * WIDTH], 1 - 0.5f * (float)uses);
    }
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    forward_check(session);
    clip_check(session);
    momentum_check(session);
    set_check(session);
    shared_check(session);
    integers_check(session);
    halved_check(session);
    printf("%d checks, %d wrong\n", checked, wrong);
    return wrong > 0;
}
