/* Fetches of names that a program's model has not, and to arrays that are too small; programs that may be several, and pointers, are left to the run.
 *
 * RUN: not %hetucc -c %s -o %t 2>&1 | FileCheck %s
 * CHECK: fetches.c:43:17: error: the model loss has no value "h0.yy"
 * CHECK: fetches.c:43:17: note: did you mean "h0.y"?
 * CHECK: fetches.c:44:17: error: the model loss has no value "logits"
 * CHECK: fetches.c:44:17: note: ht_output names values
 * CHECK: fetches.c:45:17: error: "y" has 96 bytes, and is fetched to an array of 92
 * CHECK: fetches.c:24:19: note: it is made here, f32 of shape (4, 6)
 * CHECK: fetches.c:46:17: error: "x" has 96 bytes, and is fetched to an array of 92
 * CHECK: fetches.c:47:17: error: the model y has no value "w"
 * CHECK-NOT: error:
 * RUN: %hetucc -DRIGHT -c %s -o %t
 */
#include <hetu/hetu.h>

static ht_tensor y(void) { return ht_input("x", HT_F32, ht_shape(4, 6)); }

static ht_tensor loss(void)
{
    ht_tensor x = y();
    ht_scope("h0");
    ht_tensor w = ht_param(ht_shape(6, 6), ht_normal(0.5), "w");
    ht_tensor z = ht_linear(x, w, HT_NONE);
    return ht_mean(ht_output(z, "y"));
}

int main(int argc, char **argv)
{
    static float rows[24], part[23], weight[36], *pointer = part;
    ht_session *session = ht_open(&argc, &argv);
    ht_program *p = ht_train(session, loss, ht_sgd(.lr = 1)), *q = ht_infer(session, y), *either = argc > 1 ? p : q;
    ht_step(p, ht_feed("x", rows));
    ht_fetch(p, "h0.y", rows);
    ht_fetch(p, "y", rows);
    ht_fetch(p, "w", weight);
    ht_fetch(p, "", part);
    ht_fetch(p, "x", pointer);
    ht_fetch(q, "", rows);
    ht_fetch(either, "w", weight);
#ifndef RIGHT
    /* wrong */
    ht_fetch(p, "h0.yy", rows);
    ht_fetch(p, "logits", rows);
    ht_fetch(p, "y", part);
    ht_fetch(p, "x", part);
    ht_fetch(q, "w", weight);
#endif
    return 0;
}
