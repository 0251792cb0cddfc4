/* A program of several devices that is started by itself starts its other ranks on this host; heturun -n starts all of them.

RUN: %hetucc -O1 %s -o %t
RUN: env HETU_RANKS= %t 2>&1 | FileCheck %s --check-prefix=ALONE
ALONE: before rank 0 of 3 is open
ALONE-NEXT: hetu: strategy three on 3 ranks of this host, 1 thread and at most {{[0-9.]*[1-9][0-9.]*}} KB each
ALONE-NEXT: loss 0.50000
ALONE-NEXT: loss 0.47500

heturun does the same without the line. What rank 0 alone does before ht_open, all ranks do, but only rank 0 reads the input.
RUN: echo 7 | heturun -n 3 %t read 2>&1 | FileCheck %s --check-prefix=LAUNCHED --implicit-check-not="on 3 ranks"
RUN: echo 7 | %t read 2>&1 | FileCheck %s --check-prefix=LAUNCHED
LAUNCHED-DAG: read 7
LAUNCHED-DAG: loss 0.50000

HETU_RANKS=external leaves the start to a launcher, and so does a launcher that started one rank alone.
RUN: not env HETU_RANKS=external %t 2>&1 | FileCheck %s --check-prefix=EXTERNAL
RUN: not heturun -n 1 %t 2>&1 | FileCheck %s --check-prefix=EXTERNAL
EXTERNAL: hetu: local_ranks.c was compiled for 3 devices (strategy three), but 1 rank runs it
EXTERNAL-NEXT: hetu: run it by
EXTERNAL-NEXT: heturun -n 3 {{.*}}local_ranks
RUN: not env HETU_RANKS=2 %t 2>&1 | FileCheck %s --check-prefix=UNKNOWN
UNKNOWN: hetu: HETU_RANKS=2 is not known; HETU_RANKS=external leaves the start of ranks to a launcher

The program's own help comes before ranks are counted.
RUN: %t --help 2>&1 | FileCheck %s --check-prefix=HELP --implicit-check-not=ranks
HELP: usage: local_ranks [read]

A rank that ends before it has met the others ends the program at once, with a status.
RUN: not env HETU_TIMEOUT=50 timeout 20 %t early 2>&1 | FileCheck %s --check-prefix=EARLY
EARLY: hetu: rank 0: rank {{[12]}}, which this program started, ended before it met the others (status 5)
RUN: not env HETU_TIMEOUT=50 timeout 20 heturun -n 3 %t early 2>&1 | FileCheck %s --check-prefix=LATE
LATE: heturun: error: rank {{[12]}} ended with status 5; the others are ended

Statuses: main's own; 128 and the signal.
RUN: sh -c '%t status; test $? = 9'
RUN: sh -c 'heturun -n 3 %t status; test $? = 9'
RUN: sh -c '%t signal; test $? = 137'
RUN: sh -c 'heturun -n 3 %t signal; test $? = 137'

Neither leaves a process nor a file behind.
RUN: not pgrep -f '^%t'
RUN: not ls /dev/shm/hetu-ranks.*
*/
#include <hetu/hetu.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#pragma hspmd strategy three
#pragma hspmd   split rows:dp
#pragma hspmd   stage devices(0-2) mesh(dp:3)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(6, 4));
    ht_tensor w = ht_param(ht_shape(4), ht_constant(0.5f), "w");
#pragma hspmd dims(x: rows, _)
    return ht_mean(ht_mul(x, w));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *rank = getenv("HETU_RANK");
    float ones[24];
    int number = 0;
    if (!strcmp(what, "--help")) {
        puts("usage: local_ranks [read]");
        return 0;
    }
    if (!strcmp(what, "early") && rank && strcmp(rank, "0"))
        return 5;
    if (!*what)
        printf("before rank %s of 3 is open\n", rank ? rank : "0");
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = 0.1f));
    for (int i = 0; i < 24; i++)
        ones[i] = 1;
    if (!strcmp(what, "read") && scanf("%d", &number) == 1)
        printf("read %d\n", number);
    for (int step = 0; step < 2; step++)
        printf("loss %.5f\n", ht_step(program, ht_feed("x", ones)));
    if (!strcmp(what, "signal"))
        raise(SIGKILL);
    ht_close(session);
    return strcmp(what, "status") ? 0 : 9;
}
