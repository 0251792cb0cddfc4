/* What goes wrong while a program runs: one message that says what, on which rank, and what to do; no rank is left behind.

RUN: %hetucc -O1 %s -o %t

RUN: not env HETU_RANKS=external %t 2>&1 | FileCheck %s --check-prefix=ALONE
ALONE: hetu: failures.c was compiled for 2 devices (strategy two), but 1 rank runs it
ALONE-NEXT: hetu: run it by
ALONE-NEXT: heturun -n 2 {{.*}}failures

RUN: not %mpirun 3 %t feed 2>&1 | FileCheck %s --check-prefix=MANY
MANY: hetu: failures.c was compiled for 2 devices (strategy two), but 3 ranks run it
MANY-NOT: was compiled

RUN: not %mpirun 2 %t missing 2>&1 | FileCheck %s --check-prefix=MISSING
MISSING: hetu: rank 0: the input "x" (failures.c:{{[0-9]+}}) was never fed: give it to the step by ht_feed("x", data)

RUN: not %mpirun 2 %t wrong 2>&1 | FileCheck %s --check-prefix=WRONG
WRONG: hetu: rank 0: the model loss has no input "wrong"; it has "x"

RUN: not %mpirun 2 %t again 2>&1 | FileCheck %s --check-prefix=AGAIN
AGAIN: hetu: rank 0: the input "x" is fed twice in one step

RUN: not %mpirun 2 %t output 2>&1 | FileCheck %s --check-prefix=OUTPUT
OUTPUT: hetu: rank 0: the model loss has no value "t"; near it are "w", "x"; ht_output names others

RUN: not %mpirun 2 %t early 2>&1 | FileCheck %s --check-prefix=EARLY
EARLY: hetu: rank 0: the output "" is fetched before the program ran

RUN: not %mpirun 2 %t count 2>&1 | FileCheck %s --check-prefix=COUNT
COUNT: hetu: rank 0: the parameter "w" has 12 elements, not 11

RUN: not %mpirun 2 %t name 2>&1 | FileCheck %s --check-prefix=NAME
NAME: hetu: rank 0: there is no parameter "v"

RUN: not %mpirun 2 %t run 2>&1 | FileCheck %s --check-prefix=RUN-TRAIN
RUN-TRAIN: hetu: rank 0: ht_run needs a program of ht_infer

RUN: not %mpirun 2 %t seed 2>&1 | FileCheck %s --check-prefix=SEED
SEED: hetu: rank 0: ht_seed must be called before the first ht_train or ht_infer

RUN: not %mpirun 2 %t twice 2>&1 | FileCheck %s --check-prefix=TWICE
TWICE: hetu: rank 0: ht_open is called a second time

RUN: not %mpirun 2 %t hyper 2>&1 | FileCheck %s --check-prefix=HYPER
HYPER: hetu: rank 0: the optimizers of a program have the numbers 0 to 63; there is no number 64

A kernel that fails says where in the source; the other ranks say what they did when they were ended.
RUN: not %mpirun 2 %t kernel 2>&1 | FileCheck %s --check-prefix=KERNEL
KERNEL: hetu: rank {{[01]}}: row {{[0-9]}} holds 99 (at failures.c:[[#]]{{.*}})

Two threads that step at once, and a misspelled variable.
RUN: not %mpirun 2 %t threads 2>&1 | FileCheck %s --check-prefix=THREADS
THREADS: hetu: rank 0: ht_step is called by a thread while another one runs a step; call the session by one thread at a time
RUN: env HETU_TIMEOUTS=9 HETU_OWN=1 %mpirun 2 %t feed 2>&1 | FileCheck %s --check-prefix=MISSPELLED
MISSPELLED-NOT: HETU_OWN
MISSPELLED: hetu: HETU_TIMEOUTS is not known; did you mean HETU_TIMEOUT?
MISSPELLED-NOT: HETU_

A status of main is the program's.
RUN: sh -c '%mpirun 2 %t status; test $? = 9'

HETU_DUMP writes what each rank holds after a step.
RUN: rm -rf %t.dump && env HETU_DUMP=%t.dump %mpirun 2 %t feed
RUN: FileCheck %s --check-prefix=BOXES < %t.dump/step0/1/w.boxes
BOXES: 3 4
BOXES-NEXT: 0:3 0:4
RUN: cmp %t.dump/step0/0/w.bin %t.dump/step0/1/w.bin
RUN: not env HETU_DUMP=/dev/null/nowhere %mpirun 2 %t feed 2>&1 | FileCheck %s --check-prefix=NOWHERE
NOWHERE: cannot make the folder /dev/null/nowhere
*/
#include <hetu/hetu.h>

#include <pthread.h>
#include <string.h>

#pragma hspmd strategy two
#pragma hspmd   split rows:dp
#pragma hspmd   stage devices(0-1) mesh(dp:2)
#pragma hspmd end strategy

void checked_kernel(const ht_call *call);
void checked_kernel(const ht_call *call)
{
    const ht_view *x = &call->operand[0], *y = &call->result[0];
    for (int64_t i = 0; i < ht_view_count(x, 0, 2); i++) {
        float value = ((const float *)x->data)[i];
        if (value == 99)
            ht_fail("row %lld holds 99", (long long)(x->offset[0] + i / x->extent[1]));
        ((float *)y->data)[i] = value;
    }
}

#pragma hspmd op y[r, c] = checked(x[r, c]) offset(r) kernel(checked_kernel) grad(none)
ht_tensor checked(ht_tensor x);
ht_tensor checked(ht_tensor x)
{
    ht_tensor y;
    ht_apply(&(ht_application){.kernel = checked_kernel, .result_count = 1, .operand_count = 1, .result = {{HT_F32, ht_dims_of(x)}}, .operand = &x}, &y);
    return y;
}

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(6, 4));
    ht_tensor w = ht_param(ht_shape(3, 4), ht_normal(0.5f), "w");
#pragma hspmd dims(x: rows, _)
    return ht_mean(ht_linear(checked(x), w, HT_NONE));
}

static void *step_on(void *program)
{
    static float x[24];
    for (int step = 0; step < 100000; step++)
        ht_step(program, ht_feed("x", x));
    return NULL;
}

static void step_in_threads(ht_program *program)
{
    pthread_t thread;
    pthread_create(&thread, NULL, step_on, program);
    step_on(program);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "feed";
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = 0.1f));
    float x[24] = {1, 2, 3}, w[12], *at = x;
    if (!strcmp(what, "twice"))
        ht_open(&argc, &argv);
    if (!strcmp(what, "early"))
        ht_fetch(program, "", w);
    if (!strcmp(what, "missing"))
        ht_step(program);
    if (!strcmp(what, "wrong"))
        ht_step(program, ht_feed(what, at));
    if (!strcmp(what, "again"))
        ht_step(program, ht_feed("x", x), ht_feed("x", at));
    if (!strcmp(what, "kernel"))
        x[22] = 99;
    if (!strcmp(what, "threads"))
        step_in_threads(program);
    ht_step(program, ht_feed("x", x));
    if (!strcmp(what, "output"))
        ht_fetch(program, what + 5, w);
    if (!strcmp(what, "count"))
        ht_get_param(session, "w", w, 11);
    if (!strcmp(what, "name"))
        ht_get_param(session, "v", w, 12);
    if (!strcmp(what, "run"))
        ht_run(program);
    if (!strcmp(what, "seed"))
        ht_seed(session, 3);
    if (!strcmp(what, "hyper"))
        ht_set_hyper(program, 64, 1);
    return strcmp(what, "status") ? 0 : 9;
}
