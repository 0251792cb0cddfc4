/* An operator of a user's own that uses no processor, so that cores do not compete: max(x, 0), which sleeps.
 *
 * Before it is included, `static double nap_of(const ht_call *call)` says how many nanoseconds an element takes forward; backward takes
 * twice as many. By its rule the operator has 10000 operations an element forward and 20000 backward.
 */
#include <hetu/hetu.h>

#include <time.h>

static void slow_sleep(const ht_call *call, int times)
{
    const ht_view *x = &call->operand[0];
    int64_t most = (int64_t)((double)(ht_view_count(x, 0, x->rank) * times) * nap_of(call));
    if (most)
        nanosleep(&(struct timespec){.tv_sec = most / 1000000000, .tv_nsec = most % 1000000000}, NULL);
}

void slow_kernel(const ht_call *call);
void slow_kernel(const ht_call *call)
{
    const float *x = call->operand[0].data;
    float *y = call->result[0].data;
    for (int64_t i = 0, n = ht_view_count(&call->operand[0], 0, call->operand[0].rank); i < n; i++)
        y[i] = x[i] > 0 ? x[i] : 0;
    slow_sleep(call, 1);
}

void slow_back_kernel(const ht_call *call);
void slow_back_kernel(const ht_call *call)
{
    const float *dy = call->operand[0].data, *x = call->operand[1].data;
    float *dx = call->result[0].data;
    for (int64_t i = 0, n = ht_view_count(&call->operand[0], 0, call->operand[0].rank); i < n; i++)
        dx[i] = x[i] > 0 ? dy[i] : 0;
    slow_sleep(call, 2);
}

#pragma hspmd op dx[r.., c] = slow_back(dy[r.., c], x[r.., c]) linear(dy) types(f32) operations(20000 * size(r) * size(c))                 \
                             kernel(slow_back_kernel) grad(none)
static inline ht_tensor slow_back(ht_tensor dy, ht_tensor x)
{
    ht_tensor dx;
    ht_apply(&(ht_application){.kernel = slow_back_kernel,
                               .result_count = 1,
                               .operand_count = 2,
                               .result = {{HT_F32, ht_dims_of(dy)}},
                               .operand = (ht_tensor[]){dy, x}},
             &dx);
    return dx;
}

static inline void slow_gradient(ht_grad *g) { g->dx[0] = slow_back(g->dy[0], g->x[0]); }

#pragma hspmd op y[r.., c] = slow(x[r.., c]) types(f32) operations(10000 * size(r) * size(c)) kernel(slow_kernel) grad(slow_gradient)
static inline ht_tensor slow(ht_tensor x)
{
    ht_tensor y;
    ht_apply(&(ht_application){.kernel = slow_kernel,
                               .gradient = slow_gradient,
                               .result_count = 1,
                               .operand_count = 1,
                               .result = {{HT_F32, ht_dims_of(x)}},
                               .operand = (ht_tensor[]){x}},
             &y);
    return y;
}
