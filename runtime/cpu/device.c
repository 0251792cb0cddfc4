/* The host as the device: tensors lie in host memory, and all work is done when it is issued. */
#include "device/device.h"

#include "exchange/copy_boxes.h"
#include "base/memory.h"

#include <hetu/rt.h>

#include <cblas.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void openblas_set_num_threads(int threads);

const char *device_open(void) {
    openblas_set_num_threads(omp_get_max_threads());
    return NULL;
}

void device_connect(void) {}

void device_close(void) {}

double device_trial(void) {
    enum { WIDTH = 96, TIMES = 5 };
    static float x[WIDTH * WIDTH], y[WIDTH * WIDTH];
    double least = 0;
    for (int i = 0; i < WIDTH * WIDTH; i++) x[i] = (float)(i % 7) - 3;
    for (int i = 0; i < TIMES; i++) {
        double begin = omp_get_wtime();
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, WIDTH, WIDTH, WIDTH, 1, x, WIDTH, x,
                    WIDTH, 0, y, WIDTH);
        double took = omp_get_wtime() - begin;
        least = i && least < took ? least : took;
    }
    return least;
}

bool device_is_host(void) { return true; }

/* Returns the seconds that `work` takes in the fastest of TIMES runs. */
static double least_seconds(void (*work)(float *a, float *b, float *c), float *a, float *b,
                            float *c) {
    enum { TIMES = 6 };
    double least = 0;
    for (int i = 0; i < TIMES; i++) {
        double begin = omp_get_wtime();
        work(a, b, c);
        double took = omp_get_wtime() - begin;
        least = i && least < took ? least : took;
    }
    return least;
}

enum {
    RATED_WIDTH = 512,       // rows and columns of the measured product's matrices
    RATED_ELEMENTS = 1 << 23 // elements of the measured copy, more than caches hold
};

static void rated_product(float *a, float *b, float *c) {
    enum { N = RATED_WIDTH };
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, N, N, N, 1, a, N, b, N, 0, c, N);
}

static void rated_copy(float *a, float *b, float *c) {
    (void)c;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < RATED_ELEMENTS; i += 1 << 16) memcpy(b + i, a + i, sizeof *a << 16);
}

DeviceRates device_rates(void) {
    const int64_t bytes = RATED_ELEMENTS * (int64_t)sizeof(float);
    const double n = RATED_WIDTH;
    float *a = device_alloc(bytes), *b = device_alloc(bytes), *c = b + RATED_WIDTH * RATED_WIDTH;
    for (int64_t i = 0; i < RATED_ELEMENTS; i++) a[i] = b[i] = (float)(i % 7) - 3;
    double product = least_seconds(rated_product, a, b, c),
           copy = least_seconds(rated_copy, a, b, c);
    device_free(a);
    device_free(b);
    return (DeviceRates){product > 0 ? 2 * n * n * n / product : 0,
                         copy > 0 ? 2 * (double)bytes / copy : 0};
}

/* The header in front of an allocation. */
typedef union StorageHead {
    size_t mapped; // bytes mapped, including the header; 0: allocated by the C library
    char room[64]; // keeps the alignment of tensors
} StorageHead;

/* Bytes from which an allocation is mapped separately, so that its memory returns to the system. */
enum { LEAST_MAPPED = 1 << 20 };

static StorageHead *map_storage(size_t bytes) {
    StorageHead *head =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (head == MAP_FAILED)
        ht_fail("no memory for %.2f GB of tensors on this rank; hetucc -Rmemory lists what each "
                "device keeps, and more devices, zero, recompute and more micro-batches need less",
                (double)bytes / 1e9);
    head->mapped = bytes;
    return head;
}

void *device_alloc(int64_t bytes) {
    size_t whole = (size_t)bytes + sizeof(StorageHead);
    if (bytes >= LEAST_MAPPED) return map_storage(whole) + 1;
    StorageHead *head = memory_storage((int64_t)whole);
    head->mapped = 0;
    return head + 1;
}

void device_free(void *memory) {
    StorageHead *head = memory ? (StorageHead *)memory - 1 : NULL;
    if (head && head->mapped) munmap(head, head->mapped);
    else free(head);
}

void device_zero(void *memory, int64_t bytes) { memset(memory, 0, (size_t)bytes); }

void *device_map(void *memory, int64_t bytes, DeviceAccess access) {
    (void)bytes, (void)access;
    return memory;
}

void device_unmap(void *memory, void *host, int64_t bytes, DeviceAccess access) {
    (void)memory, (void)host, (void)bytes, (void)access;
}

void *device_alloc_host(int64_t bytes) { return memory_storage(bytes); }

void device_free_host(void *memory) { free(memory); }

void device_upload(void *to, const void *from, int64_t bytes) { memcpy(to, from, (size_t)bytes); }

void device_download(void *to, const void *from, int64_t bytes) { memcpy(to, from, (size_t)bytes); }

void device_wait(void) {}

const float *device_numbers(const StepNumbers *numbers) { return numbers->hyper; }

void device_run(DeviceRecording **recording, void (*issue)(void *argument), void *argument) {
    (void)recording;
    issue(argument);
}

void device_forget(DeviceRecording *recording) { (void)recording; }

/* ---- marks of observers: nothing to do, since work is done when it is issued ---- */

void device_look(void) {}

int device_mark(void) { return 0; }

double device_marked(int mark) { return (void)mark, 0; }

void device_marks_clear(void) {}

bool device_name(const char *name) { return (void)name, false; }

/* ---- functions that emitted code calls ---- */

void ht_accumulate(const ht_worker *r, void *to, const void *from, int64_t count, ht_dtype dtype) {
    if (r->microbatch) ht_combine(dtype, HT_SUM, to, from, count);
    else memmove(to, from, (size_t)count * ht_dtype_bytes(dtype));
}

void ht_fill_identity(void *to, ht_dtype dtype, int64_t count, bool maximum) {
    ht_fill(dtype, maximum ? HT_MAX : HT_SUM, to, count);
}
