/* Decides when ht_progress prints a line: loss, speed, time left. */
#include "session/core/session.h"

#include "base/c_locale.h"
#include "base/timeline.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum { LINES = 20 };               // lines of a whole training, if standard error is not a terminal
static const double REFRESH = 0.2; // seconds between two lines on a terminal
static const double APART = 10;    // most seconds between two lines, if not on a terminal

/* Prints a duration: 1:02:03. */
static void print_duration(FILE *out, double seconds) {
    long whole = (long)(seconds + 0.5);
    fprintf(out, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
}

/* Prints an amount with three digits: 950, 12.3k, 4.56M. */
static void print_amount(FILE *out, double amount) {
    static const char units[] = " kMGT";
    int unit = 0;
    for (; amount >= 999.5 && units[unit + 1]; unit++) amount /= 1000;
    c_locale_print(out, amount >= 99.95 ? "%.0f" : amount >= 9.995 ? "%.1f" : "%.2f", amount);
    if (unit) fputc(units[unit], out);
}

static bool is_due(const Progress *progress, bool terminal, int64_t done, int64_t steps,
                   double now) {
    if (!progress->lines || done >= steps) return true;
    if (terminal) return now - progress->printed >= REFRESH;
    return done * LINES / steps != (done - 1) * LINES / steps || now - progress->printed >= APART;
}

static void print_line(const ProgressStep *step, double each) {
    c_locale_print(stderr, "step %lld of %lld  loss %.4f  rate %.3g", (long long)step->done,
                   (long long)step->steps, isnan(step->loss) ? (double)NAN : (double)step->loss,
                   (double)step->rate);
    if (each > 0) {
        fputs("  ", stderr);
        print_amount(stderr, (double)(step->tokens ? step->tokens : 1) / each);
        fputs(step->tokens ? " tokens/s  " : " steps/s  ", stderr);
        print_duration(stderr,
                       each * (double)(step->steps > step->done ? step->steps - step->done : 0));
        fputs(" left", stderr);
    }
}

void progress_print(Progress *progress, const ProgressStep *step) {
    double now = timeline_now();
    bool terminal = isatty(STDERR_FILENO);
    if (!progress->lines) {
        progress->begun = now;
        progress->first = step->done;
    }
    if (!is_due(progress, terminal, step->done, step->steps, now)) return;
    double made = (double)(step->done - progress->first);
    fputs(terminal ? "\r\033[K" : "", stderr);
    print_line(step, made > 0 ? (now - progress->begun) / made : 0);
    fputs(terminal && step->done < step->steps ? "" : "\n", stderr);
    fflush(stderr);
    progress->lines++;
    progress->printed = now;
}
