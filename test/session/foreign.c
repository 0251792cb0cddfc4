/* Another model's checkpoints are not overwritten, and arrays are not overrun: both by hetucc and by cc.

RUN: rm -rf %t.saves && %hetucc -O1 %s -o %t -lm && %hetucc -O1 -DCOUNT=5 %s -o %t.wider -lm && %hetucc -O1 -DNAME='"v"' %s -o %t.other -lm
RUN: %cc %flags %s -o %t.cc -lhetu -lm && %cc %flags -DCOUNT=5 %s -o %t.ccwider -lhetu -lm

The same model continues, from either compiler.
RUN: %t %t.saves 2>&1 | FileCheck %s --check-prefix=SAVED
RUN: %t.cc %t.saves 2>&1 | FileCheck %s --check-prefix=SAVED
SAVED: saved

A model of other shapes, and one of other names, end at the first call, and leave the files as they are.
RUN: cat %t.saves/* | cksum > %t.before
RUN: not %t.wider %t.saves 2>&1 | FileCheck %s --check-prefix=SHAPE --implicit-check-not=saved
RUN: not %t.ccwider %t.saves 2>&1 | FileCheck %s --check-prefix=SHAPE --implicit-check-not=saved
RUN: not %t.wider %t.saves resume 2>&1 | FileCheck %s --check-prefix=RESUME --implicit-check-not=saved --implicit-check-not=begins
RUN: not %t.other %t.saves 2>&1 | FileCheck %s --check-prefix=NAMES --implicit-check-not=saved
RUN: cat %t.saves/* | cksum | cmp - %t.before
SHAPE: ht_save was called with the folder {{.*}}.saves, which holds checkpoints of another model ({{.*}}step-00000002.safetensors: "w" is of shape (4, 3) there, and (5, 3) in this model); name another folder, or remove these checkpoints
RESUME: ht_resume was called with the folder {{.*}}.saves, which holds checkpoints of another model ({{.*}}"w" is of shape (4, 3) there, and (5, 3) in this model)
NAMES: ht_save was called with the folder {{.*}}.saves, which holds checkpoints of another model ({{.*}}it has "w", which this model lacks, and lacks "v")

A name that is known at run time alone: the array is too small for that value.
RUN: not %t - small 2>&1 | FileCheck %s --check-prefix=SMALL
RUN: not %t.cc - small 2>&1 | FileCheck %s --check-prefix=SMALL
SMALL: "y" has 96 bytes, and is fetched to an array of 92
RUN: not %t - param 2>&1 | FileCheck %s --check-prefix=PARAM
RUN: not %t.cc - param 2>&1 | FileCheck %s --check-prefix=PARAM
PARAM: "w" has 48 bytes, and is fetched to an array of 44
RUN: not %t - input 2>&1 | FileCheck %s --check-prefix=INPUT
RUN: not %t.cc - input 2>&1 | FileCheck %s --check-prefix=INPUT
INPUT: "x" has 128 bytes, and is fetched to an array of 124
RUN: %t - fits 2>&1 | FileCheck %s --check-prefix=FITS
RUN: %t.cc - fits 2>&1 | FileCheck %s --check-prefix=FITS
FITS: fetched

A strategy that the program lacks: those that it has.
RUN: not env HETU_STRATEGY=nix %t - fits 2>&1 | FileCheck %s --check-prefix=LACKS
LACKS: the program cannot begin under strategy "nix" (HETU_STRATEGY): it was not compiled with it; it has "two"; give hetucc --strategy=FILE for each
*/
#include <hetu/hetu.h>

#include <stdio.h>
#include <string.h>

#ifndef COUNT
#define COUNT 4
#endif
#ifndef NAME
#define NAME "w"
#endif

#pragma hspmd strategy two
#pragma hspmd   split rows:dp
#pragma hspmd   stage devices(0-1) mesh(dp:2)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(8, COUNT));
#pragma hspmd dims(x: rows, _)
    ht_tensor w = ht_param(ht_shape(COUNT, 3), ht_normal(0.1f), NAME);
    ht_tensor y = ht_output(ht_matmul(x, w), "y");
    return ht_mean(ht_mul(y, y));
}

int main(int argc, char **argv)
{
    static float x[8 * COUNT] = {1, 2, 3}, room[8 * COUNT], small[23], param[11], input[31];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *train = ht_train(session, loss, ht_adamw(.lr = 0.1f));
    const char *folder = argv[1], *what = argc > 2 ? argv[2] : "";
    const char *name = !strcmp(what, "param") ? NAME : !strcmp(what, "input") ? "x" : "y";
    if (!strcmp(what, "resume")) printf("begins at %d\n", (int)ht_resume(session, folder));
    for (int i = 0; i < 2; i++) ht_step(train, ht_feed("x", x));
    fflush(stdout);
    if (!strcmp(what, "small")) ht_fetch(train, name, small);
    if (!strcmp(what, "param")) ht_fetch(train, name, param);
    if (!strcmp(what, "input")) ht_fetch(train, name, input);
    ht_fetch(train, name, room);
    ht_fetch(train, name, &room[0]);
    puts("fetched");
    if (*what) return 0;
    ht_save(session, folder);
    ht_close(session);
    puts("saved");
    return 0;
}
