#include "emit/backend.h"

#include <string.h>

/* Maxima and minima keep NaN, as PyTorch's do. */
#define EXTREMES                                                                                                                           \
    {"fmaxf", "ht_fmaxf"}, {"fminf", "ht_fminf"}, {"fmax", "ht_fmax"}, { "fmin", "ht_fmin" }

/* <hetu/vector_math.h> has some that vectorise. */
static const char *const CPU_FUNCTIONS[][2] = {{"expf", "ht_expf"}, {"tanhf", "ht_tanhf"}, EXTREMES, {NULL, NULL}};

static const char *const CUDA_FUNCTIONS[][2] = {EXTREMES, {NULL, NULL}};

static const char *cpu_kernel(const Rule *rule) { return rule->kernel; }

/* Kernels of the runtime, whose names begin with ht_, are there for every backend; a user's own is a function of the host unless the rule
 * names one for CUDA. */
static const char *cuda_kernel(const Rule *rule)
{
    if (rule->kernel_cuda)
        return rule->kernel_cuda;
    return rule->kernel && !strncmp(rule->kernel, "ht_", 3) ? rule->kernel : NULL;
}

static const Backend BACKENDS[] = {
    {.name = "cpu",
     .suffix = "c",
     .role_opening = "#include <hetu/rt.h>\n",
     .kernel_opening = "#include <hetu/rt.h>\n"
                       "#include <hetu/vector_math.h>\n",
     .closing = "",
     .role_flags = "-O1",
     .kernel_flags = "-O3 -fopenmp -fno-math-errno -fno-trapping-math",
     .image_flags = "-O0",
     .functions = CPU_FUNCTIONS,
     .kernel = cpu_kernel,
     .kernel_clause = "kernel(f)",
     .loops = loops_cpu,
     .rows = rows_cpu},
    {.name = "cuda",
     .suffix = "cu",
     .role_opening = "#include <hetu/rt.h>\n"
                     "\n"
                     "extern \"C\" {\n",
     .kernel_opening = "#include <hetu/cuda_loops.h>\n"
                       "\n"
                       "extern \"C\" {\n",
     .closing = "\n}\n",
     .role_flags = "",
     .kernel_flags = "",
     .image_flags = "",
     .functions = CUDA_FUNCTIONS,
     .kernel = cuda_kernel,
     .kernel_clause = "kernel(cuda: f)",
     .runtime = "base transport transport/fabric transport/meet transport/watch exchange device session cuda",
     .loops = loops_cuda,
     .rows = rows_cuda},
};

const Backend *backend_find(const char *name)
{
    for (size_t i = 0; i < sizeof BACKENDS / sizeof *BACKENDS; i++)
        if (!strcmp(BACKENDS[i].name, name))
            return &BACKENDS[i];
    return NULL;
}

const char *backend_function(const Backend *backend, const char *name)
{
    for (int i = 0; backend->functions[i][0]; i++)
        if (!strcmp(backend->functions[i][0], name))
            return backend->functions[i][1];
    return name;
}
