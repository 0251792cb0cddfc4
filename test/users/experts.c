/* A mixture of experts: each token goes to the expert that its gate names, as far as the expert's
 * capacity for a sequence allows. Experts lie on devices of their own, and tokens go to them and
 * come back (all-to-all). By names alone, and with PRAGMAS by `reshard`. */
#include <hetu/hetu.h>
#include <stdio.h>

#ifndef EXPERTS
#define EXPERTS 4
#endif
#ifndef BATCH
#define BATCH 8
#endif
enum { SEQ = 12, WIDE = 16, HIDDEN = 24, CAPACITY = 5 };

#ifdef PRAGMAS
#define EXPERT_NAME _
#else
#define EXPERT_NAME expert
#endif

#pragma hspmd strategy experts
#pragma hspmd   split batch:ep  expert:ep
#pragma hspmd   stage devices(0-3) mesh(ep:4)
#pragma hspmd end strategy
#pragma hspmd strategy later
#pragma hspmd   split expert:ep  batch:ep
#pragma hspmd   stage devices(0-3) mesh(ep:4)
#pragma hspmd end strategy
#pragma hspmd strategy rows
#pragma hspmd   split batch:dp*ep  expert:ep
#pragma hspmd   stage devices(0-3) mesh(dp:2, ep:2)
#pragma hspmd end strategy
#pragma hspmd strategy batch
#pragma hspmd   split batch:ep
#pragma hspmd   stage devices(0-3) mesh(ep:4)
#pragma hspmd end strategy
#pragma hspmd strategy lacks
#pragma hspmd   split batch:dp
#pragma hspmd   stage devices(0-3) mesh(dp:4)
#pragma hspmd end strategy

/* What the experts make of rows (batch, expert, room, wide). */
static ht_tensor experts(ht_tensor h)
{
    ht_tensor up = ht_param(ht_shape(EXPERTS, HIDDEN, WIDE), ht_normal(0.3f), "up"), down = ht_param(ht_shape(EXPERTS, WIDE, HIDDEN), ht_normal(0.3f), "down");
#pragma hspmd dims(up, down: EXPERT_NAME, _, _)
#ifdef PRAGMAS
#pragma hspmd shard(up, down: {0:ep})
#pragma hspmd reshard(h: {1:ep})
#endif
    h = ht_gelu(ht_einsum("becd,ehd->bech", ht_list(h, up)));
    h = ht_einsum("bech,edh->becd", ht_list(h, down));
#ifdef PRAGMAS
#pragma hspmd reshard(h: {batch:ep})
#endif
    return h;
}

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(BATCH, SEQ, WIDE)), gate = ht_param(ht_shape(EXPERTS, WIDE), ht_normal(0.5f), "gate");
#pragma hspmd dims(x: batch, _, _)
    ht_tensor share = ht_softmax(ht_linear(x, gate, HT_NONE)), chosen = ht_cast(ht_one_hot(ht_argmax(share, .dim = ht_shape(-1)), EXPERTS), HT_F32);
    ht_tensor place = ht_sub(ht_cumsum(chosen, 1), ht_scalar(1)), weight = ht_sum(ht_mul(share, chosen), .dim = ht_shape(-1));
    ht_tensor slot = ht_cast(ht_one_hot(ht_cast(ht_sum(ht_mul(place, chosen), .dim = ht_shape(-1)), HT_I64), CAPACITY), HT_F32);
    ht_tensor dispatch = ht_mul(ht_unsqueeze(chosen, -1), ht_unsqueeze(slot, 2));
    ht_tensor h = ht_einsum("bsec,bsd->becd", ht_list(dispatch, x));
    h = experts(h);
    ht_tensor y = ht_mul(ht_einsum("bsec,becd->bsd", ht_list(dispatch, h)), ht_unsqueeze(weight, -1));
    ht_tensor error = ht_sub(ht_add(x, y), ht_mul(x, x));
    return ht_mean(ht_mul(error, error));
}

int main(int argc, char **argv)
{
    static float x[BATCH * SEQ * WIDE];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_adamw(.lr = 0.01f));
    for (int i = 0; i < BATCH * SEQ * WIDE; i++)
        x[i] = (float)(i * 37 % 101 - 50) / 50;
    for (int i = 0; i < 8; i++)
        printf("%.7g\n", (double)ht_step(program, ht_feed("x", x)));
    return 0;
}
