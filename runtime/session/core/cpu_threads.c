/* Sets the number of OpenMP threads of a rank: the cores of its host over the ranks there, at most
 * the cores on which the rank may run. OMP_NUM_THREADS overrides this.
 *
 *     8 cores, 4 ranks on the host                       ->  2 threads each
 *     8 cores, 4 ranks on the host, OMP_NUM_THREADS=3    ->  3 threads each
 */
#include "transport/world.h"
#include "session/core/session.h"

#include <omp.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

int session_node_cores(void) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : (int)cores;
}

/* Returns the number of cores on which this process may run. */
static int own_cores(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? session_node_cores() : CPU_COUNT(&set);
}

void session_set_threads(void) {
    int threads = session_node_cores() / world_node_size();
    if (threads > own_cores()) threads = own_cores();
    if (threads < 1) threads = 1;
    if (getenv("OMP_NUM_THREADS")) threads = omp_get_max_threads();
    omp_set_num_threads(threads);
}
