/* Prints a failing rank's message and ends the rank. watchdog.c decides which rank is blamed. */
#include "base/fail.h"

#include "base/files.h"
#include "base/c_locale.h"

#include <hetu/kernel.h>

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* Nanoseconds between the message and the end of this rank. Other ranks find the same failure and
 * print their messages in this time, before a launcher kills them. */
enum { TOGETHER = 200000000 };

static const FailRanks *ranks; // NULL: this process is the only rank
static const char *volatile doing, *volatile part;
static volatile long long step = -1;
static const volatile FailNote *noted;

void fail_connect(const FailRanks *given) { ranks = given; }

void fail_doing(const char *what) { doing = what; }

const char *fail_doing_what(void) { return doing; }

void fail_part(const char *given) { part = given; }

void fail_step(long long number) { step = number; }

static _Noreturn void fail(FailStatus status, const char *format, va_list arguments) {
    char message[2048], place[512] = "";
    plain_vformat(message, sizeof message, format, arguments);
    if (doing)
        snprintf(place, sizeof place, " (at %s)%s%s", doing, part ? ", in " : "", part ? part : "");
    fflush(stdout);
    if (ranks && ranks->size() > 1)
        fprintf(stderr, "hetu: rank %d: %s%s\n", ranks->rank(), message, place);
    else fprintf(stderr, "hetu: %s%s\n", message, place);
    fflush(stderr);
    private_close();
    if (ranks) ranks->abort(status);
    _exit(status);
}

void ht_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fail(FAIL_PROGRAM, format, arguments);
}

void fail_as(FailStatus status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fail(status, format, arguments);
}

/* Appends text to a line, and returns the new length; safe in a signal handler. */
static size_t add_text(char *line, size_t length, size_t size, const char *text) {
    while (*text && length + 1 < size) line[length++] = *text++;
    return length;
}

static size_t add_number(char *line, size_t length, size_t size, long long number) {
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = 0;
    do digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0 && at > 0);
    return add_text(line, length, size, digits + at);
}

/* Begins a line, "hetu: rank 2 was ended in step 12", and returns its length. */
static size_t add_rank_and_step(char *line, size_t size, const char *what) {
    size_t length = add_text(line, 0, size, "hetu: rank ");
    length = add_number(line, length, size, ranks ? ranks->rank() : 0);
    length = add_text(line, length, size, what);
    if (step >= 0) {
        length = add_text(line, length, size, " in step ");
        length = add_number(line, length, size, step);
    }
    return length;
}

static size_t add_all_noted(char *line, size_t length, size_t size) {
    const char *what = doing, *of = part;
    length = add_text(line, length, size, of ? " (" : "");
    length = add_text(line, length, size, of ? of : "");
    length = add_text(line, length, size, of ? ")" : "");
    length = add_text(line, length, size, what ? " at " : "");
    return add_text(line, length, size, what ? what : "");
}

void fail_describe(char *text, size_t size) { text[add_all_noted(text, 0, size)] = 0; }

/* Appends what this rank is doing. Returns the new length. */
static size_t add_doing(char *line, size_t length, size_t size) {
    return doing || part ? add_all_noted(line, length, size)
                         : add_text(line, length, size, " while it waited");
}

static void write_line(char *line, size_t length, size_t size) {
    length = add_text(line, length, size, "\n");
    ssize_t written = write(STDERR_FILENO, line, length);
    (void)written;
}

void fail_ended_by(const char *signal_name, const char *more) {
    char line[512], what[64];
    what[add_text(what, add_text(what, 0, sizeof what, " was ended by "), sizeof what,
                  signal_name)] = 0;
    size_t length = add_rank_and_step(line, sizeof line, what);
    length = add_doing(line, length, sizeof line);
    write_line(line, add_text(line, length, sizeof line, more), sizeof line);
}

/* Appends the device's last note, if there is one. Returns the new length. */
static size_t add_noted(char *line, size_t length, size_t size) {
    if (!noted || !noted->what) return length;
    length = add_text(line, length, size, "; its device last began ");
    length = add_text(line, length, size, noted->what);
    length = add_text(line, length, size, " of ");
    return add_text(line, length, size, noted->where ? noted->where : "the program");
}

/* Flushes standard output unless a thread prints. If that takes 1 s, SIGALRM ends the process. */
static void flush_printed(void) {
    signal(SIGALRM, SIG_DFL);
    alarm(1);
    if (!ftrylockfile(stdout)) fflush_unlocked(stdout);
    alarm(0);
}

void fail_end(const char *why) {
    char line[1024];
    size_t length = add_rank_and_step(line, sizeof line, " ends");
    length = add_doing(line, length, sizeof line);
    length = add_noted(line, length, sizeof line);
    length = add_text(line, length, sizeof line, ": ");
    write_line(line, add_text(line, length, sizeof line, why), sizeof line);
    nanosleep(&(struct timespec){.tv_nsec = TOGETHER}, NULL);
    flush_printed();
    private_close();
    signal(SIGTERM, SIG_DFL);
    if (ranks) ranks->leave(false);
    _exit(1);
}

void fail_noted(const volatile FailNote *note) { noted = note; }
