/* Bytes of a profile are those that calls touch: none for views, the rows that are looked up for a table; and no share of the machine is above 100%.

RUN: %cc %s -o %t.plain %flags && env HETU_PROFILE=1 %t.plain 2> %t.said && %python %S/Inputs/profile.py %t.said
RUN: %hetucc %s -o %t.one && env HETU_PROFILE=1 %t.one 2> %t.said && %python %S/Inputs/profile.py %t.said
*/
#include <hetu/hetu.h>

enum { ROWS = 64, WORDS = 32768, WIDTH = 64, STEPS = 400 };

static ht_tensor model(void)
{
    ht_tensor words = ht_input("words", HT_I32, ht_shape(ROWS));
    ht_tensor x = ht_embedding(ht_param(ht_shape(WORDS, WIDTH), ht_zeros(), "table"), words);
    x = ht_reshape(x, ht_shape(ROWS * WIDTH / 32, 32));
    x = ht_layer_norm(x, ht_param(ht_shape(32), ht_ones(), "scale"), ht_param(ht_shape(32), ht_zeros(), "shift"), 1e-5f);
    x = ht_linear(x, ht_param(ht_shape(32, 32), ht_normal(0.1f), "w"), HT_NONE);
    return ht_mean(ht_mul(x, x));
}

int main(int argc, char **argv)
{
    static int words[ROWS];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_infer(session, model);
    for (int step = 0; step < STEPS; step++)
        ht_run(program, ht_feed("words", words));
    return 0;
}
