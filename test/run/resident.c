/* Tells how much memory a rank came to have resident since MPI was up: a library to preload.
 *
 *     RESIDENT_OUT=out mpirun -x LD_PRELOAD=resident.so -x RESIDENT_OUT ... program
 *
 * Each rank writes the bytes to $RESIDENT_OUT.<rank> when it ends.
 */
#define _GNU_SOURCE
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank = -1;
static long long before;

/* A line of /proc/self/status, in bytes. */
static long long status(const char *key)
{
    char line[256];
    long long bytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, key, strlen(key)))
            bytes = 1024 * atoll(line + strlen(key));
    if (file)
        fclose(file);
    return bytes;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int rc = PMPI_Init_thread(argc, argv, required, provided);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    before = status("VmRSS:");
    return rc;
}

__attribute__((destructor)) static void end(void)
{
    const char *base = getenv("RESIDENT_OUT");
    char name[4096];
    if (!base || rank < 0)
        return;
    snprintf(name, sizeof name, "%s.%d", base, rank);
    FILE *file = fopen(name, "w");
    if (!file) {
        perror(name);
        return;
    }
    fprintf(file, "%lld\n", status("VmHWM:") - before);
    fclose(file);
}
