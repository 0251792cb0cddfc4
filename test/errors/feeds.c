/* Arrays that are no inputs, of a program that the file makes; of pointers, parts of arrays and rows of files the names; the rest, and programs that may be several, are left to the run.
 *
 * RUN: not %hetucc -c %s -o %t 2>&1 | FileCheck %s
 * CHECK: feeds.c:48:24: error: the input "x" has 96 bytes, and is fed an array of 92 bytes; give it all of them
 * CHECK: feeds.c:26:19: note: the input is here
 * CHECK: feeds.c:48:44: error: the input "n" has elements of i64, and is fed an array of int; give it an array of long
 * CHECK: feeds.c:49:24: error: the input "x" has 96 bytes, and is fed an array of 112 bytes; ht_feed_n("x", pointer, 24) feeds a part of one
 * CHECK: feeds.c:49:44: error: the input "n" has elements of i64, and is fed an array of unsigned long; give it an array of long
 * CHECK: feeds.c:50:24: error: the input "x" has elements of f32, and is fed an array of double; give it an array of float
 * CHECK: feeds.c:51:24: error: the model loss has no input "x_"
 * CHECK: feeds.c:26:19: note: did you mean "x"?
 * CHECK: feeds.c:51:45: error: the model loss has no input "rows"
 * CHECK: feeds.c:26:19: note: it has the input "x"
 * CHECK: feeds.c:26:62: note: it has the input "n"
 * CHECK: feeds.c:52:24: error: the model loss has no input "y"
 * CHECK: feeds.c:52:49: error: the model loss has no input "z"
 * CHECK: feeds.c:53:27: error: the model loss has no input "train"
 * CHECK: feeds.c:53:84: error: the model loss has no input "m"
 * CHECK-NOT: error:
 * RUN: %hetucc -DRIGHT -c %s -o %t
 */
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6)), n = ht_input("n", HT_I64, ht_shape(4)), w = ht_param(ht_shape(6, 6), ht_normal(0.5), "w");
    return ht_add(ht_mean(ht_linear(x, w, HT_NONE)), ht_mean(ht_cast(n, HT_F32)));
}

int main(int argc, char **argv)
{
    static float rows[24], part[23], more[4][7], flat[4][6], *pointer = rows;
    static double wide[24];
    static long n[4];
    static int few[4];
    static unsigned long u[4];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *p = ht_train(session, loss, ht_sgd(.lr = 1)), *q, *either = p;
    q = ht_train(session, loss, ht_adamw(.lr = 1));
    if (argc > 1)
        either = q;
    ht_step(p, ht_feed("x", rows), ht_feed("n", n));
    ht_step(p, ht_feed("x", flat), ht_feed_n("n", n, 4));
    ht_step(q, ht_feed("x", pointer), ht_feed_n("x", more, 24));
    ht_step(either, ht_feed("x", wide));
    ht_step(q, ht_dataset("x", "x.npy"), ht_dataset("train", "n.npy", .input = "n"));
#ifndef RIGHT
    ht_step(p, ht_feed("x", part), ht_feed("n", few));
    ht_step(p, ht_feed("x", more), ht_feed("n", u));
    ht_step(q, ht_feed("x", wide));
    ht_step(q, ht_feed("x_", rows), ht_feed("rows", rows));
    ht_step(q, ht_feed("y", pointer), ht_feed_n("z", wide, 24));
    ht_step(q, ht_dataset("train", "x.npy"), ht_dataset("train", "n.npy", .input = "m"));
#endif
    return 0;
}
