/* A classifier of 37 numbers into 11 classes with 53 hidden units, 13 rows a step: sizes that no number of devices divides.
 *
 *     hetucc --strategy=tp4 mlp.c ../common/[a-z]*.c -o mlp -lm
 *     ./mlp
 *
 * The data are made up: rows are normal noise, and a fixed random network gives their classes.
 */
#include "../common/train.h"

#include <stdlib.h>

#ifndef INPUTS
#define INPUTS 37
#endif
#ifndef HIDDEN
#define HIDDEN 53
#endif
#ifndef CLASSES
#define CLASSES 11
#endif
#ifndef BATCH
#define BATCH 13
#endif
#ifndef CLIP
#define CLIP 1.0f
#endif

int batch = BATCH;
#pragma hspmd shape(batch)

#pragma hspmd strategy single
#pragma hspmd   pipeline
#pragma hspmd     stage devices(0)
#pragma hspmd end strategy

#pragma hspmd strategy dp4
#pragma hspmd   split batch:dp
#pragma hspmd   pipeline
#pragma hspmd     stage devices(0-3) mesh(dp:4)
#pragma hspmd end strategy

#pragma hspmd strategy tp4
#pragma hspmd   split hidden:tp  classes:tp
#pragma hspmd   pipeline
#pragma hspmd     stage devices(0-3) mesh(tp:4)
#pragma hspmd end strategy

#pragma hspmd strategy dp2tp2
#pragma hspmd   split batch:dp  hidden:tp  classes:tp
#pragma hspmd   pipeline
#pragma hspmd     stage devices(0-3) mesh(dp:2, tp:2)
#pragma hspmd end strategy

/* Tensors without the dimension `hidden` are cut by tp along the batch: the counterpart of sequence parallelism. */
#pragma hspmd strategy dp2tp2sp
#pragma hspmd   split hidden:tp  batch:dp*tp
#pragma hspmd   pipeline
#pragma hspmd     stage devices(0-3) mesh(dp:2, tp:2)
#pragma hspmd end strategy

#pragma hspmd strategy zero4
#pragma hspmd   split batch:dp
#pragma hspmd   zero 1
#pragma hspmd   pipeline
#pragma hspmd     stage devices(0-3) mesh(dp:4)
#pragma hspmd end strategy

#pragma hspmd strategy uneven
#pragma hspmd   split batch:dp  hidden:tp  classes:tp
#pragma hspmd   pipeline
#pragma hspmd     stage devices(0-3) mesh(dp:2 by 3:1, tp:2 by 3:1)
#pragma hspmd end strategy

static ht_tensor layer(ht_tensor x, ht_tensor w, const char *name)
{
    return ht_linear(x, w, ht_param(ht_shape(ht_extent(w, 0)), ht_zeros(), name, .no_decay = true));
}

ht_tensor mlp_logits(ht_tensor x)
{
    ht_tensor w1 = ht_param(ht_shape(HIDDEN, INPUTS), ht_uniform(0.16), "fc1.w");
    ht_tensor w2 = ht_param(ht_shape(HIDDEN, HIDDEN), ht_uniform(0.14), "fc2.w");
    ht_tensor w3 = ht_param(ht_shape(CLASSES, HIDDEN), ht_uniform(0.14), "fc3.w");
#pragma hspmd dims(w1: hidden)
#pragma hspmd dims(w2: _, hidden)
#pragma hspmd dims(w3: classes)
    ht_tensor h1 = ht_relu(layer(x, w1, "fc1.b"));
    ht_tensor h2 = ht_silu(layer(h1, w2, "fc2.b"));
#pragma hspmd dims(x: batch)
#pragma hspmd dims(h1: batch, hidden)
#pragma hspmd dims(h2: batch)
    return layer(h2, w3, "fc3.b");
}

ht_tensor mlp_loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(batch, INPUTS));
    ht_tensor class = ht_input("class", HT_I32, ht_shape(batch));
    return ht_mean(ht_cross_entropy(mlp_logits(x), class));
}

ht_tensor mlp_guess(void)
{
    return mlp_logits(ht_input("x", HT_F32, ht_shape(batch, INPUTS)));
}

/* The network that gives the classes: the index of the greatest of CLASSES random combinations of the inputs. */
typedef struct Teacher {
    float weight[CLASSES][INPUTS];
} Teacher;

static Teacher *teacher_create(uint64_t *draw)
{
    Teacher *teacher = memory(1, sizeof *teacher);
    for (int c = 0; c < CLASSES; c++)
        for (int i = 0; i < INPUTS; i++)
            teacher->weight[c][i] = (float)draw_normal(draw);
    return teacher;
}

static int greatest(const float *value, int count)
{
    int best = 0;
    for (int i = 1; i < count; i++)
        if (value[i] > value[best])
            best = i;
    return best;
}

static void rows_draw(const Teacher *teacher, uint64_t *draw, float *x, int32_t *class)
{
    for (int r = 0; r < batch; r++) {
        float score[CLASSES] = {0}, *row = x + r * INPUTS;
        for (int i = 0; i < INPUTS; i++)
            row[i] = (float)draw_normal(draw);
        for (int c = 0; c < CLASSES; c++)
            for (int i = 0; i < INPUTS; i++)
                score[c] += teacher->weight[c][i] * row[i];
        class[r] = greatest(score, CLASSES);
    }
}

/* Returns how many rows of a batch the model puts in their class. */
static int rows_right(ht_program *guess, const float *x, const int32_t *class)
{
    float *logits = memory((size_t)batch * CLASSES, sizeof *logits);
    int right = 0;
    ht_run(guess, ht_feed("x", x));
    ht_fetch(guess, "", logits);
    for (int r = 0; r < batch; r++)
        right += greatest(logits + r * CLASSES, CLASSES) == class[r];
    free(logits);
    return right;
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    Options options = options_read(argc, argv, (Options){.steps = 500, .rate = 3e-3f, .every = 50, .sample = 20});
    uint64_t draw = options.seed;
    ht_seed(session, options.seed);
#ifdef SGD
    ht_program *mlp = ht_train(session, mlp_loss, ht_sgd(.lr = options.rate, .momentum = 0.9f));
#else
    ht_program *mlp = ht_train(session, mlp_loss, ht_adamw(.lr = options.rate, .clip = CLIP));
#endif
    Teacher *teacher = teacher_create(&draw);
    float *x = memory((size_t)batch * INPUTS, sizeof *x);
    int32_t *class = memory((size_t)batch, sizeof *class);
    Progress progress = progress_start(&options, batch, "rows");
    for (int step = progress_resume(&progress, session, &draw); step < options.steps && !progress_ended(&progress); step++) {
        rows_draw(teacher, &draw, x, class);
        progress_step(&progress, ht_step(mlp, ht_feed("x", x), ht_feed("class", class)));
    }
    progress_end(&progress, session);
    if (options.sample > 0 && !progress.told) {
        ht_program *guess = ht_infer(session, mlp_guess);
        int right = 0;
        for (int i = 0; i < options.sample; i++) {
            rows_draw(teacher, &draw, x, class);
            right += rows_right(guess, x, class);
        }
        printf("%d of %d new rows right\n", right, options.sample * batch);
    }
    ht_close(session);
    return 0;
}
