/* Loaded before a program (LD_PRELOAD): its main has called setlocale(LC_ALL, TEST_LOCALE), while what the program's own file prints and
 * reads has the numbers of the C locale, by which suites know them. Processes without libhetu, and tools that have it, stay as they are.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static bool chosen;
static void *program; // where it lies in memory
static locale_t plain;

__attribute__((constructor)) static void choose(void)
{
    Dl_info found;
    const char *name = getenv("TEST_LOCALE");
    if (!name || !dlsym(RTLD_DEFAULT, "ht_open") || !strncmp(program_invocation_short_name, "hetu", 4))
        return;
    if (!setlocale(LC_ALL, name) || !dladdr((void *)getauxval(AT_ENTRY), &found)) {
        fprintf(stderr, "there is no locale %s\n", name);
        _exit(3);
    }
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    program = found.dli_fbase;
    chosen = true;
}

/* Whether the program's own file calls from there; then this thread has the C locale until `leave`. */
static locale_t enter(void *from)
{
    Dl_info found;
    bool own = chosen && dladdr(from, &found) && found.dli_fbase == program;
    return uselocale(own ? plain : (locale_t)0);
}

static void leave(locale_t before) { uselocale(before); }

#define IN_C(type, call)                                                                                                                   \
    va_list arguments;                                                                                                                     \
    locale_t before = enter(__builtin_return_address(0));                                                                                  \
    va_start(arguments, format);                                                                                                           \
    type result = (call);                                                                                                                  \
    va_end(arguments);                                                                                                                     \
    leave(before);                                                                                                                         \
    return result

int printf(const char *format, ...) { IN_C(int, vprintf(format, arguments)); }
int fprintf(FILE *out, const char *format, ...) { IN_C(int, vfprintf(out, format, arguments)); }
int snprintf(char *text, size_t size, const char *format, ...) { IN_C(int, vsnprintf(text, size, format, arguments)); }
int __isoc99_sscanf(const char *text, const char *format, ...);
int __isoc99_sscanf(const char *text, const char *format, ...) { IN_C(int, vsscanf(text, format, arguments)); }
int __isoc23_sscanf(const char *text, const char *format, ...);
int __isoc23_sscanf(const char *text, const char *format, ...) { IN_C(int, vsscanf(text, format, arguments)); }

/* From elsewhere, libhetu say, this is strtod itself. */
double strtod(const char *text, char **end)
{
    static double (*next)(const char *, char **);
    locale_t before = enter(__builtin_return_address(0));
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "strtod");
    double result = next(text, end);
    leave(before);
    return result;
}
