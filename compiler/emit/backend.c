#include "emit/backend.h"

#include <string.h>

/* <hetu/vector_math.h> has some that vectorise. */
static const char *const CPU_FUNCTIONS[][2] = {{"expf", "ht_expf"}, {"tanhf", "ht_tanhf"}, {NULL, NULL}};

static const Backend BACKENDS[] = {
    {.name = "cpu",
     .role_flags = "-O1",
     .kernel_flags = "-O3 -fopenmp -fno-math-errno -fno-trapping-math",
     .image_flags = "-O0",
     .functions = CPU_FUNCTIONS},
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

const char *backend_kernel(const Backend *backend, const Rule *rule)
{
    (void)backend;
    return rule->kernel;
}
