/* What a model asks for as f32 stays f32 in a program of bf16, and counts, places and indices are exact: tokens that are counted, seats of a mixture of experts by gather and by one-hot, places of
 * arange and argmax, products of one-hots. bf16 that meets f32 becomes f32. By the one-device library and by hetucc, whole and cut, in f32 and in bf16.
 *
 * RUN: %cc %s -o %t.f32 %flags && %t.f32 | FileCheck %s
 * RUN: %cc -DDTYPE=HT_BF16 %s -o %t.bf16 %flags && %t.bf16 | FileCheck %s
 * RUN: %hetucc --strategy=whole -DDTYPE=HT_BF16 %s -o %t.whole -lm && %t.whole | FileCheck %s
 * RUN: %hetucc --strategy=cut -DDTYPE=HT_BF16 %s -o %t.cut -lm && %mpirun 2 %t.cut | FileCheck %s
 * RUN: %hetucc --strategy=whole -DDTYPE=HT_BF16 -DWIDE=HT_F32 %s -o %t.whole -lm && %t.whole | FileCheck %s
 *
 * CHECK: seen 599 100 sum 599 100 pairs 599 100 ones 699
 * CHECK: place 698 from 1396 by 1047 rows 698
 * CHECK: argmax 431 531 argmin 432 532 equal 0 below 432
 * CHECK: by gather 699 of 699, by one-hot 699 of 699
 * CHECK: router 1.001953125
 * CHECK: mixed 0.75 0.75 0.75
 * CHECK: narrow 256 up to 700
 */
#include <hetu/hetu.h>
#include <stdio.h>

#ifndef DTYPE
#define DTYPE HT_F32
#endif
#ifndef WIDE
#define WIDE DTYPE // of the state
#endif
enum { N = 699, E = 2, ROOM = 620, D = 2 };

#pragma hspmd strategy whole
#pragma hspmd   stage devices(0)
#pragma hspmd end strategy
#pragma hspmd strategy cut
#pragma hspmd   split token:d
#pragma hspmd   stage devices(0-1) mesh(d:2)
#pragma hspmd end strategy

/* Counts, by sums along the tokens, by a sum, and by a product. */
static ht_tensor counted(ht_tensor id)
{
    ht_tensor hot = ht_cast(ht_one_hot(id, E), HT_F32), seen = ht_output(ht_cumsum(hot, 0), "seen");
    ht_output(ht_sum(hot, .dim = ht_shape(0)), "sum");
    ht_output(ht_einsum("ne,nf->ef", ht_list(hot, hot)), "pairs");
    ht_output(ht_cumsum(ht_full(ht_shape(N), 1, HT_F32), 0), "ones");
    return ht_sub(seen, ht_scalar(1));
}

/* Places that meet other numbers; x is row / 2048 + 1. */
static void placed(ht_tensor x, ht_tensor table)
{
    ht_tensor place = ht_output(ht_arange(0, N, 1, HT_F32), "place"), start = ht_slice(x, 1, 0, 1);
    ht_output(ht_add(place, ht_scale(place, 1)), "from");
    ht_output(ht_mul(place, ht_full(ht_shape(N), 1.5, WIDE)), "by");
    ht_output(ht_index_select(table, 0, ht_cast(ht_add(place, ht_scalar(0)), HT_I64)), "rows");
    ht_output(ht_argmax(x, .dim = ht_shape(0)), "argmax");
    ht_output(ht_argmin(x, .dim = ht_shape(0)), "argmin");
    ht_output(ht_eq(ht_slice(x, 0, 0, 1), ht_slice(x, 0, 1, 1)), "equal");
    ht_output(ht_sum(ht_lt(ht_neg(start), ht_neg(ht_scalar(1 + 266.5 / 2048)))), "below");
}

/* Seats among the tokens of an expert; each token finds itself again in its seat. */
static void seated(ht_tensor id, ht_tensor seat, ht_tensor place)
{
    ht_tensor hot = ht_cast(ht_one_hot(id, E), HT_F32), own = ht_sum(ht_mul(seat, hot), .dim = ht_shape(-1));
    ht_tensor at = ht_cast(ht_add(own, ht_mul(ht_cast(id, HT_F32), ht_scalar(ROOM))), HT_I64);
    ht_tensor rows = ht_scatter_add(ht_full(ht_shape(E * ROOM), 0, HT_F32), 0, at, place);
    ht_output(ht_sum(ht_eq(ht_index_select(rows, 0, at), place)), "gathered");
    ht_tensor room = ht_cast(ht_one_hot(ht_cast(own, HT_I64), ROOM), HT_F32), send = ht_mul(ht_unsqueeze(hot, -1), ht_unsqueeze(room, 1));
    ht_tensor there = ht_einsum("ner,n->er", ht_list(send, place));
    ht_output(ht_sum(ht_eq(ht_einsum("ner,er->n", ht_list(send, there)), place)), "sent");
}

static ht_tensor loss(void)
{
    ht_tensor id = ht_input("id", HT_I64, ht_shape(N)), x = ht_input("x", HT_F32, ht_shape(N, D)), table = ht_input("table", HT_F32, ht_shape(N));
    ht_tensor w = ht_param(ht_shape(D, D), ht_constant(1.001953125f), "w");
#pragma hspmd dims(id: token)
#pragma hspmd dims(x: token, _)
    ht_tensor seat = counted(id);
    placed(x, table);
    seated(id, seat, ht_arange(0, N, 1, HT_F32));
    ht_output(ht_matmul(ht_cast(w, HT_F32), ht_cast(ht_triu(ht_tril(ht_cast(ht_full(ht_shape(D, D), 1, HT_I64), HT_F32), 0), 0), HT_F32)), "router");
    ht_tensor state = ht_full(ht_shape(N, D), 0.25, WIDE), half = ht_full(ht_shape(N, D), 0.5, HT_F32), one = ht_scale(ht_detach(w), 0);
    ht_output(ht_add(state, half), "sum2");
    ht_output(ht_slice(ht_concat(ht_list(ht_scale(state, 3), half), 0), 0, 0, 1), "joined");
    ht_output(ht_add(ht_linear(state, one, HT_NONE), ht_full(ht_shape(N, D), 0.75, WIDE)), "layer");
    ht_output(ht_cast(ht_cast(ht_full(ht_shape(1), 257, HT_F32), HT_BF16), HT_F32), "narrow");
    ht_output(ht_cast(ht_cumsum(ht_cast(ht_full(ht_shape(N), 1, HT_F32), HT_BF16), 0), HT_F32), "upto"); // 699, rounded once
    return ht_mean(ht_tanh(ht_add(ht_linear(x, w, HT_NONE), state)));
}

int main(int argc, char **argv)
{
    static int64_t id[N], argmax[D], argmin[D];
    static float x[N * D], table[N], seen[N * E], place[N], sums[E], pairs[E * E], wide[N * D], router[D * D], joined[D];
    int32_t equal[D];
    int64_t number, sent;
    float narrow, layer[N * D];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = 0.1f), .dtype = DTYPE);
    for (int i = 0; i < N; i++) {
        id[i] = i % 7 == 3;
        table[i] = (float)i;
        for (int d = 0; d < D; d++)
            x[i * D + d] = (float)((i + 698 - 431 - 100 * d + (d ? N : 0)) % N) / 2048 + 1;
    }
    ht_step(program, ht_feed("id", id), ht_feed("x", x), ht_feed("table", table));
    ht_fetch(program, "seen", seen);
    ht_fetch(program, "sum", sums);
    ht_fetch(program, "pairs", pairs);
    ht_fetch(program, "ones", wide);
    printf("seen %.9g %.9g sum %.9g %.9g pairs %.9g %.9g ones %.9g\n", seen[(N - 1) * E], seen[(N - 1) * E + 1], sums[0], sums[1], pairs[0], pairs[3], wide[N - 1]);
    ht_fetch(program, "place", place);
    printf("place %.9g", place[N - 1]);
    ht_fetch(program, "from", place);
    printf(" from %.9g", place[N - 1]);
    ht_fetch(program, "by", place);
    printf(" by %.9g", place[N - 1]);
    ht_fetch(program, "rows", place);
    printf(" rows %.9g\n", place[N - 1]);
    ht_fetch(program, "argmax", argmax);
    ht_fetch(program, "argmin", argmin);
    ht_fetch(program, "equal", equal);
    ht_fetch(program, "below", &number);
    printf("argmax %lld %lld argmin %lld %lld equal %d below %lld\n", (long long)argmax[0], (long long)argmax[1], (long long)argmin[0], (long long)argmin[1], equal[0], (long long)number);
    ht_fetch(program, "gathered", &number);
    ht_fetch(program, "sent", &sent);
    printf("by gather %lld of %d, by one-hot %lld of %d\n", (long long)number, N, (long long)sent, N);
    ht_fetch(program, "router", router);
    printf("router %.10g\n", router[0]);
    ht_fetch(program, "sum2", wide);
    ht_fetch(program, "joined", joined);
    ht_fetch(program, "layer", layer);
    printf("mixed %.9g %.9g %.9g\n", wide[0], joined[0], layer[0]);
    ht_fetch(program, "narrow", &narrow);
    ht_fetch(program, "upto", place);
    printf("narrow %.9g up to %.9g\n", narrow, place[N - 1]);
    return 0;
}
