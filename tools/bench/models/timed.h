/* Trains a model of this folder on one batch, and answers how long its steps take.
 *
 *     hetucc -DMODEL=vit images.c -o vit && ./vit FOLDER
 *
 * FOLDER has the elements of the inputs x, y and z, a file each; the parameters are written into it
 * as "NAME COUNT\n" and COUNT floats each. A line with a number on standard input trains as many
 * steps; the answer is a line with the least milliseconds of a step and the last loss. After the
 * last line, the program prints the bytes of its peak memory beyond those that it began with.
 *
 * Models are written as for one device. -DDTYPE=HT_BF16 trains in mixed precision.
 */
#ifndef BENCH_TIMED_H
#define BENCH_TIMED_H

#include <hetu/hetu.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef DTYPE
#define DTYPE HT_F32
#endif

/* A parameter of normal numbers. */
static inline ht_tensor normal(ht_dims dims, const char *name) {
    return ht_param(dims, ht_normal(0.05f), name);
}

/* A linear layer with a bias. */
static inline ht_tensor dense(ht_tensor x, int outputs, const char *name) {
    ht_scope("%s", name);
    ht_tensor w = normal(ht_shape(outputs, ht_extent(x, -1)), "w");
    return ht_linear(x, w, normal(ht_shape(outputs), "b"));
}

static inline ht_tensor layer_normed(ht_tensor x, const char *name) {
    ht_scope("%s", name);
    ht_dims width = ht_shape(ht_extent(x, -1));
    ht_tensor g = ht_param(width, ht_ones(), "g"), b = ht_param(width, ht_zeros(), "b");
    return ht_layer_norm(x, g, b, 1e-5f);
}

/* Self-attention of x (batch, places, width). */
static inline ht_tensor attended(ht_tensor x, int heads, bool causal) {
    ht_dims dims = ht_dims_of(x),
            split = ht_shape(dims.extent[0], dims.extent[1], heads, dims.extent[2] / heads);
    int width = (int)dims.extent[2];
    ht_tensor q = ht_reshape(dense(x, width, "q"), split),
              k = ht_reshape(dense(x, width, "k"), split);
    ht_tensor v = ht_reshape(dense(x, width, "v"), split);
    return dense(ht_reshape(ht_attention(q, k, v, HT_NONE, causal), dims), width, "out");
}

/* The bytes that /proc/self/status names. */
static inline double status_bytes(const char *name) {
    char line[256];
    double kibibytes = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, name, strlen(name))) kibibytes = strtod(line + strlen(name), NULL);
    if (status) fclose(status);
    return 1024 * kibibytes;
}

/* The bytes of a file FOLDER/NAME; NULL: there is none. */
static inline void *file_read(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    void *data = malloc(size);
    if (!data || fread(data, 1, size, file) != size) exit(1);
    fclose(file);
    return data;
}

static inline void weights_write(ht_session *session, const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/weights", folder);
    FILE *file = fopen(path, "wb");
    size_t count = 0;
    const char *name;
    for (int i = 0; file && (name = ht_param_name(session, i, &count)); i++) {
        float *values = malloc(count * sizeof *values);
        ht_get_param(session, name, values, count);
        fprintf(file, "%s %zu\n", name, count);
        fwrite(values, sizeof *values, count, file);
        free(values);
    }
    if (!file || fclose(file)) exit(1);
}

static inline double milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

ht_tensor MODEL(void);

int main(int argc, char **argv) {
    static const char *const names[] = {"x", "y", "z"};
    double before = status_bytes("VmRSS:");
    ht_session *session = ht_open(&argc, &argv);
    ht_program *model = ht_train(session, MODEL, ht_adamw(.lr = 1e-3f), .dtype = DTYPE);
    ht_fed feeds[4] = {{0}};
    int count = 0, steps;
    for (int i = 0; i < 3; i++) {
        void *data = file_read(argv[1], names[i]);
        if (data) feeds[count++] = ht_feed(names[i], data);
    }
    weights_write(session, argv[1]);
    for (bool fed = false; scanf("%d", &steps) == 1; fed = true) {
        double least = 1e30;
        float loss = 0;
        for (int i = 0; i < steps; i++) {
            double start = milliseconds();
            loss = ht_step_with(model, fed || i ? (ht_fed[]){{0}} : feeds);
            double taken = milliseconds() - start;
            least = taken < least ? taken : least;
        }
        printf("%.4f %.6f\n", least, loss);
        fflush(stdout);
    }
    printf("%.0f\n", status_bytes("VmHWM:") - before);
    fflush(stdout);
    ht_close(session);
    return 0;
}

#endif
