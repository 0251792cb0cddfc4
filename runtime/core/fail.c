#include "core/fail.h"

#include "comm/mpi.h"

#include <hetu/kernel.h>

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *volatile doing;
static volatile long long step = -1;

void fail_doing(const char *what) { doing = what; }

void fail_step(long long number) { step = number; }

void ht_fail(const char *format, ...)
{
    char message[2048], place[512] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (doing)
        snprintf(place, sizeof place, " (at %s)", doing);
    fflush(stdout);
    if (ht_mpi_size() > 1)
        fprintf(stderr, "hetu: rank %d: %s%s\n", ht_mpi_rank(), message, place);
    else
        fprintf(stderr, "hetu: %s%s\n", message, place);
    fflush(stderr);
    ht_mpi_abort();
}

/* Appends text or a number to a line; safe in a signal handler. */
static size_t add_text(char *line, size_t length, size_t size, const char *text)
{
    while (*text && length + 1 < size)
        line[length++] = *text++;
    return length;
}

static size_t add_number(char *line, size_t length, size_t size, long long number)
{
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = 0;
    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0 && at > 0);
    return add_text(line, length, size, digits + at);
}

static void on_terminate(int signal_number)
{
    char line[512];
    size_t length = add_text(line, 0, sizeof line, "hetu: rank ");
    length = add_number(line, length, sizeof line, ht_mpi_rank());
    length = add_text(line, length, sizeof line, " was ended");
    if (step >= 0) {
        length = add_text(line, length, sizeof line, " in step ");
        length = add_number(line, length, sizeof line, step);
    }
    const char *what = doing;
    length = add_text(line, length, sizeof line, what ? " at " : " while it waited");
    length = add_text(line, length, sizeof line, what ? what : "");
    length = add_text(line, length, sizeof line, "\n");
    if (write(STDERR_FILENO, line, length) < 0)
        _exit(1);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

void fail_watch(void)
{
    struct sigaction action = {.sa_handler = on_terminate};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
}

void fail_unwatch(void) { signal(SIGTERM, SIG_DFL); }
