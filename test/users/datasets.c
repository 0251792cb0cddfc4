/* Rows of files: what each step of a program reads, as words of the command line say. The files have the elements 0, 1, 2, ... */
#define _DEFAULT_SOURCE
#include <hetu/hetu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef TYPE
#define TYPE HT_F32
#endif
enum { WIDE = 5, BATCH = 6 };

#pragma hspmd strategy mesh
#pragma hspmd   split batch:dp  wide:tp
#pragma hspmd   stage devices(0-3) mesh(dp:2, tp:2)
#pragma hspmd end strategy
#pragma hspmd strategy uneven
#pragma hspmd   split batch:dp
#pragma hspmd   stage devices(0-3) mesh(dp:4 by 3:1:0:2)
#pragma hspmd end strategy
#pragma hspmd strategy stages
#pragma hspmd   split batch:dp
#pragma hspmd   schedule gpipe
#pragma hspmd   pipeline microbatches(3) rows(2)
#pragma hspmd     stage devices(0) mesh(dp:1) layers(0)
#pragma hspmd     stage devices(1-2) mesh(dp:2) layers(head)
#pragma hspmd   idle devices(3)
#pragma hspmd end strategy

/* Learns to double its rows, and gives them back. */
static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", TYPE, ht_shape(BATCH, WIDE)), next = ht_input("next", TYPE, ht_shape(BATCH, WIDE));
#pragma hspmd dims(x, next: batch, wide)
    ht_tensor w = ht_param(ht_shape(WIDE), ht_ones(), "w"), values, wanted;
#pragma hspmd layer(0)
    values = ht_mul(ht_cast(x, HT_F32), ht_scalar(0.01));
#pragma hspmd layer(head)
    wanted = ht_mul(ht_cast(next, HT_F32), ht_scalar(0.02));
#pragma hspmd layer(head)
    ht_tensor error = ht_sub(ht_mul(values, w), wanted);
    ht_output(ht_mul(values, ht_scalar(100)), "rows");
    ht_output(ht_mul(wanted, ht_scalar(50)), "wanted");
    return ht_mean(ht_mul(error, error));
}

/* A row's number: its first element by its length. */
static void print_rows(ht_program *program, const char *output)
{
    float rows[BATCH * WIDE];
    ht_fetch(program, output, rows);
    for (int r = 0; r < BATCH; r++)
        printf(" %g", (double)rows[r * WIDE]);
}

static float step(ht_program *program, const char *path, const char *other, const char *element)
{
    if (*other)
        return ht_step(program, ht_dataset("train", path, .input = "x", .element = element), ht_dataset("train", other, .input = "next", .element = element));
    return ht_step(program, ht_dataset("train", path, .input = "x", .element = element),
                   ht_dataset("train", path, .input = "next", .shift = 1, .element = element));
}

int main(int argc, char **argv)
{
    const char *path = "rows.bin", *other = "", *element = NULL, *folder = "saved";
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_adamw(.lr = 0.1f));
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = strchr(word, '=') ? strchr(word, '=') + 1 : "";
        if (!strncmp(word, "path=", 5)) {
            path = value;
        } else if (!strncmp(word, "other=", 6)) {
            other = value;
        } else if (!strncmp(word, "element=", 8)) {
            element = value;
        } else if (!strncmp(word, "folder=", 7)) {
            folder = value;
        } else if (!strncmp(word, "cut=", 4)) {
            if (truncate(path, atoll(value)))
                return 5;
        } else if (!strncmp(word, "seek=", 5)) {
            ht_dataset_seek(session, "train", atoll(value));
        } else if (!strncmp(word, "switch=", 7)) {
            ht_switch(program, value);
        } else if (!strcmp(word, "save")) {
            ht_save(session, folder);
        } else if (!strcmp(word, "resume")) {
            printf("resumed %lld\n", (long long)ht_resume(session, folder));
        } else if (!strcmp(word, "step")) {
            float value_now = step(program, path, other, element);
            printf("%.7g %lld", (double)value_now, (long long)ht_dataset_position(session, "train"));
            print_rows(program, "rows");
            print_rows(program, "wanted");
            printf("\n");
        }
    }
    return 0;
}
