/* The table of backends: suffixes, flags of emitted files, functions of math.h, reserved words, and
 * the kernels that a backend has. */
#include "emit/backend.h"

#include "emit/words.h"

#include <string.h>

/* Maxima and minima propagate NaN, as PyTorch's do. */
#define EXTREMES                                                                                   \
    {"fmaxf", "ht_fmaxf"}, {"fminf", "ht_fminf"}, {"fmax", "ht_fmax"}, {"fmin", "ht_fmin"}

/* <hetu/vector_math.h> has variants of some functions that vectorise. */
static const char *const CPU_FUNCTIONS[][2] = {{"expf", "ht_expf"},
                                               {"expm1f", "ht_expm1f"},
                                               {"logf", "ht_logf"},
                                               {"log1pf", "ht_log1pf"},
                                               {"tanhf", "ht_tanhf"},
                                               {"erff", "ht_erff"},
                                               EXTREMES,
                                               {NULL, NULL}};

static const char CPU_WORDS[] = "r at where sum part c end call result operand attr axes s";

static const char *const CUDA_FUNCTIONS[][2] = {EXTREMES, {NULL, NULL}};

/* <hetu/cuda_loops.h> has faster variants for bf16. */
static const char *const CUDA_HALF_FUNCTIONS[][2] = {
    {"expf", "ht_half_expf"}, {"tanhf", "ht_half_tanhf"}, {NULL, NULL}};

/* Keywords of C++ that C lacks, and built-in variables of CUDA threads. */
static const char CUDA_WORDS[] = "threadIdx blockIdx blockDim gridDim alignas alignof and and_eq "
                                 "asm bitand bitor bool catch class compl concept "
                                 "constexpr consteval constinit const_cast co_await co_return "
                                 "co_yield decltype delete dynamic_cast explicit export false "
                                 "friend mutable namespace new noexcept not not_eq nullptr "
                                 "operator or or_eq private protected public reinterpret_cast "
                                 "requires static_assert static_cast template this thread_local "
                                 "throw true try typeid typename typeof using virtual "
                                 "wchar_t xor xor_eq";

static const char *const CUDA_KERNELS[] = {
#include "emit/cuda/kernels.inc"
    NULL};

static const BackendFolder CPU_FOLDER = {
    .runtime =
        "base binding checkpoint transport exchange device session cpu eager start operators rules",
    .makefile = "runtime/cpu.mk"};

static const BackendFolder CUDA_FOLDER = {
    .runtime = "base checkpoint transport exchange device session cuda operators",
    .makefile = "runtime/cuda.mk",
    .compiler = "nvcc",
    .compiler_variable = "NVCC",
    .compiler_home = "/usr/local/cuda/bin",
    .read_as = "c++"};

static const Backend BACKENDS[] = {
    {.name = "cpu",
     .suffix = "c",
     .language = "C",
     .role_opening = "#include <hetu/rt.h>\n",
     .kernel_opening = "#include <hetu/strict_math.h>\n"
                       "#include <hetu/rt.h>\n"
                       "#include <hetu/vector_math.h>\n",
     .closing = "",
     .role_flags = "-O1",
     .kernel_flags = "-O3 -fopenmp -fno-math-errno -fno-trapping-math",
     .image_flags = "-O0",
     .clones = "HT_CLONES ",
     .shares_bodies = true,
     .functions = CPU_FUNCTIONS,
     .words = CPU_WORDS,
     .folder = &CPU_FOLDER,
     .loops = loops_cpu,
     .rows = rows_cpu},
    {.name = "cuda",
     .suffix = "cu",
     .language = "CUDA C",
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
     .overlaps = true,
     .functions = CUDA_FUNCTIONS,
     .half_functions = CUDA_HALF_FUNCTIONS,
     .words = CUDA_WORDS,
     .kernels = CUDA_KERNELS,
     .folder = &CUDA_FOLDER,
     .built_by_make = true,
     .loops = loops_cuda,
     .rows = rows_cuda},
};
enum { BACKEND_COUNT = sizeof BACKENDS / sizeof *BACKENDS };

const char *const *backend_names(void) {
    static const char *names[BACKEND_COUNT + 1];
    for (int i = 0; i < BACKEND_COUNT; i++) names[i] = BACKENDS[i].name;
    return names;
}

const Backend *backend_find(const char *name) {
    for (int i = 0; i < BACKEND_COUNT; i++)
        if (!strcmp(BACKENDS[i].name, name)) return &BACKENDS[i];
    return NULL;
}

const Backend *backend_of_file(const char *file) {
    const char *dot = strrchr(file, '.');
    for (int i = 0; dot && dot > file && i < BACKEND_COUNT; i++)
        if (!strcmp(BACKENDS[i].suffix, dot + 1)) return &BACKENDS[i];
    return NULL;
}

static bool is_one_of(const char *word, const char *const *words) {
    while (*words && strcmp(*words, word)) words++;
    return *words;
}

static const char *find_function(const char *const (*functions)[2], const char *name) {
    for (int i = 0; functions && functions[i][0]; i++)
        if (!strcmp(functions[i][0], name)) return functions[i][1];
    return NULL;
}

const char *backend_function(const Backend *backend, const char *name, bool half) {
    const char *found = half ? find_function(backend->half_functions, name) : NULL;
    found = found ? found : find_function(backend->functions, name);
    return found ? found : name;
}

const char *backend_kernel(const Backend *backend, const Rule *rule) {
    const RuleKernel *kernel = rule_kernel(rule, backend->name);
    bool there = kernel && (kernel->backend || !backend->kernels ||
                            is_one_of(kernel->function, backend->kernels));
    return there ? kernel->function : NULL;
}

const char *backend_kernel_clause(Arena *arena, const Backend *backend) {
    return backend->kernels ? arena_format(arena, "kernel(%s: f)", backend->name) : "kernel(f)";
}

bool backend_word(const char *name) {
    for (int i = 0; i < BACKEND_COUNT; i++)
        if (has_word(BACKENDS[i].words, name)) return true;
    return false;
}
