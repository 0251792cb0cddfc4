/* A model of the examples trained for so many steps, and run so many times behind each. Inputs are fed once, and nothing is fetched.
 *
 *     forms STEPS RUNS, compiled with -DMODEL="gpt.c", -DLOSS and -DNEXT
 */
#define main example_main
#include MODEL
#undef main

static int argument(int argc, char **argv, int index) { return argc > index ? atoi(argv[index]) : 0; }

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_program *trained = ht_train(session, LOSS, ht_adamw(.lr = 1e-3f, .clip = CLIP));
    int steps = argument(argc, argv, 1), runs = argument(argc, argv, 2);
    ht_program *next = runs ? ht_infer(session, NEXT) : NULL;
    int32_t *tokens = memory((size_t)batch * (size_t)seq, sizeof *tokens);
    for (int i = 0; i < batch * seq; i++)
        tokens[i] = i % VOCAB;
    for (int step = 0; step < steps; step++) {
        printf("loss %.9g\n", step ? ht_step(trained) : ht_step(trained, ht_feed("tokens", tokens), ht_feed("targets", tokens)));
        for (int i = 0; i < runs; i++)
            if (step || i)
                ht_run(next);
            else
                ht_run(next, ht_feed("tokens", tokens));
    }
    ht_close(session);
    free(tokens);
    return 0;
}
