/* Bounds what a rank may have beside MPI: a library to preload.
 *
 *     LIMITED_BYTES=N mpirun -x LD_PRELOAD=limited.so -x LIMITED_BYTES ... program
 *
 * From the end of MPI_Init_thread on, a rank's address space may grow by so many bytes.
 */
#define _GNU_SOURCE
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int rc = PMPI_Init_thread(argc, argv, required, provided);
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    const char *bytes = getenv("LIMITED_BYTES");
    if (!file || fscanf(file, "%lld", &pages) != 1 || !bytes) {
        fprintf(stderr, "limited.so: no LIMITED_BYTES, or nothing to read in /proc/self/statm\n");
        exit(1);
    }
    fclose(file);
    rlim_t most = (rlim_t)(pages * 4096 + atoll(bytes));
    if (setrlimit(RLIMIT_AS, &(struct rlimit){most, most}))
        perror("setrlimit");
    return rc;
}
