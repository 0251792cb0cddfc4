/* What stages.c and stages.cu share with tables.c. */
#ifndef PIPELINES_TABLES_H
#define PIPELINES_TABLES_H

#include <hetu/rt.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { WIDTH = 3000, LINE = (WIDTH * 4 + 63) / 64 * 64 };
enum { FORWARD, BACKWARD, TAIL, UPDATE, PARTS };
enum { ACTIVATION_IN, ACTIVATION_OUT, GRADIENT_IN, GRADIENT_OUT, SUM, TRANSFERS };

static const float RATE = 0.0625f;

extern int stages, pipelines;

/* The parts. */
void forward(ht_worker *r);
void backward(ht_worker *r);
void tail(ht_worker *r);
void update(ht_worker *r);

/* Called when one begins: sleeps, or ends this rank. */
void part_begins(const ht_worker *r, int part);

/* In a slot: what came and what goes on, forward and backward. In the arena: the gradient, its sum over pipelines, the loss. */
static inline float *came(const ht_worker *r)
{
    ht_address at = r->position ? ht_kept(r, 0) : ht_turn(r, -1 - 1, WIDTH * 4);
    return at;
}
static inline float *goes(const ht_worker *r) { return ht_kept(r, LINE); }
static inline float *back_came(const ht_worker *r) { return ht_kept(r, 2 * LINE); }
static inline float *back_goes(const ht_worker *r) { return ht_kept(r, 3 * LINE); }
static inline float *gradient(const ht_worker *r) { return ht_arena(r, 0); }
static inline float *total(const ht_worker *r) { return ht_arena(r, LINE); }
static inline float *loss_of(const ht_worker *r) { return ht_arena(r, 2 * LINE); }
static inline float *weights(const ht_worker *r) { return ht_slot(r, 0); }

#ifdef __cplusplus
}
#endif

#endif
