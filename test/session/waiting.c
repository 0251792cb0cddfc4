/* How threads wait is chosen before OpenMP reads the environment: they sleep where they share cores, unless the user says otherwise.

RUN: %cc %s -o %t %flags
RUN: env OMP_NUM_THREADS=4096 HETU_VERBOSE=1 OMP_DISPLAY_ENV=verbose %t 2>&1 | FileCheck %s --check-prefix=SLEEP
SLEEP-DAG: GOMP_SPINCOUNT = '0'
SLEEP-DAG: hetu: 1 rank on {{[0-9]+ processors?}} of {{.*}}, 4096 threads a rank; threads that wait sleep (OMP_WAIT_POLICY=passive); OpenBLAS takes kernels {{.+}}

One thread waits for nobody.
RUN: env OMP_NUM_THREADS=1 HETU_VERBOSE=1 OMP_DISPLAY_ENV=verbose %t 2>&1 | FileCheck %s --check-prefix=SPIN --implicit-check-not="GOMP_SPINCOUNT = '0'"
SPIN: 1 thread a rank; threads that wait spin; OpenBLAS

What the user has set stays.
RUN: env OMP_WAIT_POLICY=active OMP_NUM_THREADS=4096 HETU_VERBOSE=1 OMP_DISPLAY_ENV=verbose %t 2>&1 | FileCheck %s --check-prefix=ASKED --implicit-check-not="GOMP_SPINCOUNT = '0'"
ASKED: threads that wait do as the environment says; OpenBLAS

A program that hetucc compiled does the same, and more ranks than processors yield.
RUN: %hetucc %s -o %t.compiled
RUN: env OMP_NUM_THREADS=4096 OMP_DISPLAY_ENV=verbose %t.compiled 2>&1 | FileCheck %s --check-prefix=COMPILED
COMPILED: GOMP_SPINCOUNT = '0'
RUN: env OMPI_COMM_WORLD_LOCAL_SIZE=5000 HETU_VERBOSE=1 %t 2>&1 | FileCheck %s --check-prefix=YIELD
YIELD: hetu: 5000 ranks on {{.*}}, ranks that wait yield; OpenBLAS

OpenBLAS's kernels are those of the processor's instructions, unless the user says otherwise.
RUN: env -u OPENBLAS_CORETYPE %t kernels > %t.kernels
RUN: %python -c "import sys; c = open('/proc/cpuinfo').read(); i = 'GenuineIntel' in c and ' avx2' in c; print('SkylakeX' if i and ' avx512vl' in c else 'Haswell' if i else 'none')" | diff - %t.kernels
RUN: env OPENBLAS_CORETYPE=Nehalem %t kernels | FileCheck %s --check-prefix=KERNELS
KERNELS: Nehalem
RUN: env -u OPENBLAS_CORETYPE HETU_VERBOSE=1 %t kernels 2>&1 | %python -c "import sys; said = sys.stdin.read(); name = said.split()[-1]; print('of its own choice' if name == 'none' else f'{name} (OPENBLAS_CORETYPE)', end=' ')" > %t.wanted
RUN: env -u OPENBLAS_CORETYPE HETU_VERBOSE=1 %t 2>&1 | tr '\n' ' ' | sed 's/.*takes kernels //' | diff - %t.wanted
RUN: env OPENBLAS_CORETYPE=Nehalem HETU_VERBOSE=1 %t 2>&1 | FileCheck %s --check-prefix=KEPT
KEPT: takes kernels as the environment says{{$}}

Open MPI sends over TCP without puts, unless the user says otherwise.
RUN: env -u OMPI_MCA_btl_tcp_flags %t tcp | FileCheck %s --check-prefix=TCP
TCP: send
RUN: env OMPI_MCA_btl_tcp_flags=put,send %t tcp | FileCheck %s --check-prefix=PUTS
PUTS: put,send

Without HETU_VERBOSE nothing is said.
RUN: env OMP_NUM_THREADS=4096 %t 2>&1 | count 0
*/
#include <hetu/hetu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ht_tensor loss(void)
{
    return ht_mean(ht_param(ht_shape(4), ht_ones(), "w"));
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "kernels"))
        puts(getenv("OPENBLAS_CORETYPE") ? getenv("OPENBLAS_CORETYPE") : "none");
    else if (argc > 1 && !strcmp(argv[1], "tcp"))
        puts(getenv("OMPI_MCA_btl_tcp_flags"));
    else if (argc > 1)
        ht_step(ht_train(ht_open(&argc, &argv), loss, ht_sgd(.lr = 0.1f)));
    return 0;
}
