/* A program that reads what its words name, for inputs.py: `data=FILE`, `load=FILE`, `resume=FOLDER`, `prepare=FILE`, `save=FOLDER`, `step`, `wait=FILE` (until there is one). */
#include <hetu/hetu.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 4, WIDTH = 6 };
int batch = ROWS;
#pragma hspmd shape(batch)
#pragma hspmd strategy own
#pragma hspmd   split batch:dp
#pragma hspmd   stage devices(0-1) mesh(dp:2)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(batch, WIDTH)), w = ht_param(ht_shape(3, WIDTH), ht_normal(0.5f), "w");
#pragma hspmd dims(x: batch, _)
    ht_tensor y = ht_linear(x, w, HT_NONE);
    return ht_mean(ht_mul(y, y));
}

/* What stands behind "NAME=". */
static const char *value_of(const char *word, const char *name)
{
    size_t length = strlen(name);
    return !strncmp(word, name, length) && word[length] == '=' ? word + length + 1 : NULL;
}

static float rows[ROWS * WIDTH];

static void work(ht_session *session, ht_program *program, const char *word)
{
    const char *value;
    if ((value = value_of(word, "data")))
        printf("loss %.9g\n", ht_step(program, ht_dataset("rows", value, .input = "x", .element = "float32")));
    else if ((value = value_of(word, "load")))
        ht_load(session, value);
    else if ((value = value_of(word, "resume")))
        printf("resumed %lld\n", (long long)ht_resume(session, value));
    else if ((value = value_of(word, "save")))
        ht_save(session, value);
    else if ((value = value_of(word, "prepare"))) {
        ht_prepare(program, value);
        printf("switch %d\n", ht_switch(program, value));
    } else if ((value = value_of(word, "wait")))
        while (access(value, F_OK))
            usleep(1000);
    else
        printf("loss %.9g\n", ht_step(program, ht_feed("x", rows)));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = 0.1f));
    for (int i = 0; i < ROWS * WIDTH; i++)
        rows[i] = (float)(i % 7) - 3;
    for (int i = 1; i < argc; i++)
        work(session, program, argv[i]);
    return 0;
}
