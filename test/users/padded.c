/* Rows of unequal lengths from files, to pipelines that read 8, 6 and 3 places of them: each row goes where it is read. Prints of each step the loss, and numbers of rows as the batch has them. */
#include <hetu/hetu.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 6, WIDE = 2 };
int seq = 8;

#pragma hspmd shape(seq)
#pragma hspmd padding(x: 0)
#pragma hspmd strategy lengths
#pragma hspmd   split batch:dp
#pragma hspmd   pipeline microbatches(2) rows(1) (seq = 3)
#pragma hspmd     stage devices(0) mesh(dp:1)
#pragma hspmd   pipeline microbatches(1) rows(2) (seq = 6)
#pragma hspmd     stage devices(1-2) mesh(dp:2)
#pragma hspmd   pipeline microbatches(1) rows(2)
#pragma hspmd     stage devices(3) mesh(dp:1)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(BATCH, seq, WIDE)), id = ht_input("id", HT_I64, ht_shape(BATCH));
#pragma hspmd dims(x: batch, _, _)
#pragma hspmd dims(id: batch)
    ht_tensor w = ht_param(ht_shape(WIDE), ht_ones(), "w"), sums = ht_sum(ht_mul(ht_mul(x, x), w), .dim = ht_shape(1, 2));
    return ht_scale(ht_sum(ht_mul(sums, ht_add(ht_cast(id, HT_F32), ht_scalar(1)))), 0.0001f);
}

int main(int argc, char **argv)
{
    int64_t id[BATCH];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_adamw(.lr = 0.1f));
    for (int step = 0; step < atoi(argv[3]); step++) {
        printf("%.7g", (double)ht_step(program, ht_dataset("train", argv[1], .input = "x"), ht_dataset("train", argv[2], .input = "id")));
        ht_fetch(program, "id", id);
        for (int i = 0; i < BATCH; i++)
            printf(" %lld", (long long)id[i]);
        puts("");
    }
    return 0;
}
