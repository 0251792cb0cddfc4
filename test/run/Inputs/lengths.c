/* An example whose rows are of several lengths: what lies behind row r's, LENGTH(r), stands for nothing. -DMODEL names the example's file. */
#include "../../../examples/common/train.h"

static void padded_batch(const Text *text, uint64_t *draw, int rows, int seq, int32_t *tokens, int32_t *targets)
{
    text_batch(text, draw, rows, seq, tokens, targets);
    for (int r = 0; r < rows; r++)
        for (int i = LENGTH(r); i < seq; i++)
            targets[r * seq + i] = -100;
}
#define text_batch padded_batch
#pragma hspmd padding(targets: -100)
#include MODEL
