/* The optimizers against their formulas in double: AdamW, Adam, Lion, SGD with momentum and with Nesterov's, weight decay, clipping, a rate that changes, and parameters that do not decay or do not train.
 *
 * The loss is the sum of <parameter, input>, so that a parameter's gradient is the input that is fed. Prints a line for each disagreement and "N optimizers, M wrong".
 */
#include <hetu/hetu.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 5, WIDTH = 7, SIZE = ROWS * WIDTH, STEPS = 6 };
static const float CLIP = 3.0f, RATE = 0.02f, LATE_RATE = 0.005f, DECAY = 0.1f, MOMENTUM = 0.9f;

/* <w, g> + <b, h>: w decays, b does not; a third parameter is frozen. */
static ht_tensor pull(const char *scope)
{
    ht_scope("%s", scope);
    ht_tensor w = ht_param(ht_shape(ROWS, WIDTH), ht_constant(0.5), "w");
    ht_tensor b = ht_param(ht_shape(WIDTH), ht_constant(-0.25), "b", .no_decay = true);
    ht_tensor still = ht_param(ht_shape(WIDTH), ht_constant(2), "still", .frozen = true);
    ht_tensor g = ht_input("g", HT_F32, ht_shape(ROWS, WIDTH));
    ht_tensor h = ht_input("h", HT_F32, ht_shape(WIDTH));
#pragma hspmd dims(w, g: f0, f1)
#pragma hspmd dims(b, h: f1)
    return ht_add(ht_sum(ht_mul(w, g)), ht_sum(ht_mul(ht_mul(b, h), still)));
}

ht_tensor adamw_pull(void)
{
    return pull("adamw");
}

ht_tensor adamw_clipped_pull(void)
{
    return pull("clipped");
}

ht_tensor adam_pull(void)
{
    return pull("adam");
}

ht_tensor lion_pull(void)
{
    return pull("lion");
}

ht_tensor nesterov_pull(void)
{
    return pull("nesterov");
}

ht_tensor sgd_pull(void)
{
    return pull("sgd");
}

ht_tensor sgd_clipped_pull(void)
{
    return pull("sgd_clipped");
}

/* What a parameter should be: its value and its states. */
typedef struct Reference {
    double p[SIZE], m[SIZE], v[SIZE];
    int count;
    bool decays;
} Reference;

typedef enum Kind { ADAMW, ADAM, LION, SGD, NESTEROV } Kind;

static void adam_step(Reference *r, const double *g, double rate, int step, bool coupled)
{
    for (int i = 0; i < r->count; i++) {
        double decay = r->decays ? (double)DECAY * r->p[i] : 0, d = g[i] + (coupled ? decay : 0);
        r->m[i] = 0.9 * r->m[i] + 0.1 * d;
        r->v[i] = 0.999 * r->v[i] + 0.001 * d * d;
        double m = r->m[i] / (1 - pow(0.9, step + 1)), v = r->v[i] / (1 - pow(0.999, step + 1));
        r->p[i] -= coupled ? 0 : rate * decay;
        r->p[i] -= rate * m / (sqrt(v) + 1e-8);
    }
}

static void lion_step(Reference *r, const double *g, double rate)
{
    for (int i = 0; i < r->count; i++) {
        double ahead = 0.9 * r->m[i] + 0.1 * g[i];
        r->p[i] -= rate * (r->decays ? (double)DECAY * r->p[i] : 0) + rate * (ahead > 0 ? 1 : -1);
        r->m[i] = 0.99 * r->m[i] + 0.01 * g[i];
    }
}

static void sgd_step(Reference *r, const double *g, double rate, bool nesterov)
{
    for (int i = 0; i < r->count; i++) {
        double d = g[i] + (r->decays ? (double)DECAY * r->p[i] : 0);
        r->m[i] = (double)MOMENTUM * r->m[i] + d;
        r->p[i] -= rate * (nesterov ? d + (double)MOMENTUM * r->m[i] : r->m[i]);
    }
}

static void reference_step(Kind kind, Reference *r, const double *g, double rate, int step)
{
    if (kind == LION)
        lion_step(r, g, rate);
    else if (kind == ADAMW || kind == ADAM)
        adam_step(r, g, rate, step, kind == ADAM);
    else
        sgd_step(r, g, rate, kind == NESTEROV);
}

/* The factor by which gradients g and h (h counts with the frozen 2) are clipped. */
static double clip_of(const double *g, const double *h, bool clipped)
{
    double square = 0;
    for (int i = 0; i < SIZE; i++)
        square += g[i] * g[i];
    for (int i = 0; i < WIDTH; i++)
        square += h[i] * h[i];
    return clipped ? fmin(1, (double)CLIP / (sqrt(square) + 1e-6)) : 1;
}

static int parameter_check(ht_session *session, const char *scope, const char *name, const Reference *r)
{
    char full[80];
    float p[SIZE];
    double worst = 0;
    snprintf(full, sizeof full, "%s.%s", scope, name);
    ht_get_param(session, full, p, (size_t)r->count);
    for (int i = 0; i < r->count; i++) {
        double error = fabs(p[i] - r->p[i]);
        worst = error <= worst ? worst : error;
    }
    if (worst <= 2e-5)
        return 0;
    printf("wrong: %s is off by %.2g\n", full, worst);
    return 1;
}

/* Runs STEPS steps of a program beside its formula. */
static int optimizer_check(ht_session *session, ht_program *program, const char *scope, Kind kind, bool clipped)
{
    static const int seed = 3;
    Reference w = {.count = SIZE, .decays = true}, b = {.count = WIDTH}, still = {.count = WIDTH};
    for (int i = 0; i < SIZE; i++)
        w.p[i] = 0.5, b.p[i] = -0.25, still.p[i] = 2;
    srand((unsigned)seed);
    for (int step = 0; step < STEPS; step++) {
        float g[SIZE], h[WIDTH], rate = step < 3 ? RATE : LATE_RATE;
        double dw[SIZE], db[WIDTH];
        for (int i = 0; i < SIZE; i++)
            dw[i] = g[i] = (float)rand() / (float)RAND_MAX * 2 - 1;
        for (int i = 0; i < WIDTH; i++) {
            h[i] = (float)rand() / (float)RAND_MAX;
            db[i] = 2 * (double)h[i];
        }
        double clip = clip_of(dw, db, clipped);
        for (int i = 0; i < SIZE; i++)
            dw[i] *= clip;
        for (int i = 0; i < WIDTH; i++)
            db[i] *= clip;
        ht_set_rate(program, rate);
        ht_step(program, ht_feed("g", g), ht_feed("h", h));
        reference_step(kind, &w, dw, (double)rate, step);
        reference_step(kind, &b, db, (double)rate, step);
    }
    return parameter_check(session, scope, "w", &w) + parameter_check(session, scope, "b", &b) + parameter_check(session, scope, "still", &still);
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_program *adamw = ht_train(session, adamw_pull, ht_adamw(.lr = RATE, .decay = DECAY));
    ht_program *adamw_clipped = ht_train(session, adamw_clipped_pull, ht_adamw(.lr = RATE, .decay = DECAY, .clip = CLIP));
    ht_program *sgd = ht_train(session, sgd_pull, ht_sgd(.lr = RATE, .decay = DECAY, .momentum = MOMENTUM));
    ht_program *sgd_clipped = ht_train(session, sgd_clipped_pull, ht_sgd(.lr = RATE, .decay = DECAY, .momentum = MOMENTUM, .clip = CLIP));
    ht_program *adam = ht_train(session, adam_pull, ht_adam(.lr = RATE, .decay = DECAY));
    ht_program *lion = ht_train(session, lion_pull, ht_lion(.lr = RATE, .decay = DECAY, .clip = CLIP));
    ht_program *nesterov = ht_train(session, nesterov_pull, ht_sgd(.lr = RATE, .decay = DECAY, .momentum = MOMENTUM, .nesterov = true));
    int wrong = optimizer_check(session, adamw, "adamw", ADAMW, false) + optimizer_check(session, adamw_clipped, "clipped", ADAMW, true) +
                optimizer_check(session, sgd, "sgd", SGD, false) + optimizer_check(session, sgd_clipped, "sgd_clipped", SGD, true) +
                optimizer_check(session, adam, "adam", ADAM, false) + optimizer_check(session, lion, "lion", LION, true) +
                optimizer_check(session, nesterov, "nesterov", NESTEROV, false);
    printf("7 optimizers, %d wrong\n", wrong);
    return wrong > 0;
}
