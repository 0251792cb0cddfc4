/* How the CPU's kernels end the program where they are a library of their own. */
#include <hetu/kernel.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void ht_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}
