/* x squared, damped: z has the last dimensions of x. */
#pragma hspmd op y[a.., b..] = x[a.., b..] * x[a.., b..] / (1 + z[b..] * z[b..])
ht_tensor ht_damped_square(ht_tensor x, ht_tensor z);

/* y[c] is the sum of x[0] to x[c]; direction -1: of x[c] to the last. */
#pragma hspmd op y[r.., c] = running_sum(x[r.., c]) \
    replicate(c) linear(x) types(f32) requires(direction == 1 ? 1 : direction == -1) kernel(ht_running_sum_kernel) grad(ht_running_sum_gradient)
ht_tensor ht_running_sum(ht_tensor x, int direction);

static inline void ht_running_sum_gradient(ht_grad *g)
{
    g->dx[0] = ht_running_sum(g->dy[0], -(int)g->attr[0].i);
}

