/* hetu-opt: reads IR text, runs one pass (or none) over each module, and prints the IR. For tests,
 * and for looking at a single pass.
 *
 *     hetu-opt [PASS] FILE        FILE - is standard input
 */
#include "ir/module.h"
#include "ir/verify/verify.h"
#include "ir/text/text.h"
#include "passes/pass_manager.h"
#include "support/reading.h"
#include "support/tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int count_lines(const char *text, const char *end) {
    int lines = 0;
    for (; text < end; text++) lines += *text == '\n';
    return lines;
}

/* Returns the text of a file, or of standard input for "-"; NULL after reporting an error, such as
 * a null byte. */
static const char *read_file(Arena *arena, Diag *diag, const char *file) {
    enum { MOST = 1 << 28 };
    InputText text = reading_text(arena, READ_PIPES, strcmp(file, "-") ? file : "/dev/stdin", MOST);
    if (!text.bytes) {
        diag_error(diag, (Position){0}, "%s cannot be read: %s", file, text.why);
        return NULL;
    }
    const char *whole = text.bytes, *end = memchr(whole, 0, text.length), *line = end;
    while (end && line > whole && line[-1] != '\n') line--;
    if (end)
        diag_error(diag, (Position){file, count_lines(whole, end) + 1, (int)(end - line) + 1},
                   "a null byte; this is no text");
    return end ? NULL : whole;
}

/* Runs the pass over a module and prints the module; returns the exit status. */
static int run_module(Arena *arena, Diag *diag, const char *pass, const ReadModule *read) {
    if (pass) pass_run_one(read->module, pass, read->at);
    if (diag_errors(diag)) return 1;
    if (!ir_verify(read->module)) return 2;
    Text out = {.arena = arena};
    ir_print(&out, read->module);
    fputs(text_bytes(&out), stdout);
    return 0;
}

/* Runs the pass over all modules of a file, one by one. Returns the exit status. */
static int run(Arena *arena, Diag *diag, const char *pass, const char *file) {
    ReadModules modules = {0};
    const char *text = read_file(arena, diag, file);
    if (!text || !ir_parse(arena, diag, file, text, &modules)) return 1;
    for (int i = 0; i < modules.count; i++) {
        int status = run_module(arena, diag, pass, &modules.at[i]);
        if (status) return status;
    }
    if (!fflush(stdout)) return 0;
    tool_message(stderr, "error", "cannot write to standard output: %s", strerror(errno));
    return 1;
}

static void check_pass(const char *name) {
    int count = 0;
    for (; pass_names()[count]; count++)
        if (!strcmp(name, pass_names()[count])) return;
    const char *closest = diag_closest(name, pass_names(), count);
    tool_misused("there is no pass '%s'%s%s%s", name, closest ? "; did you mean '" : "",
                 closest ? closest : "", closest ? "'?" : "");
}

int main(int argc, char **argv) {
    tool_begin("hetu-opt", argc, argv);
    tool_read_words(
        "[PASS] FILE",
        "Reads intermediate representation (- is standard input), runs a pass over each "
        "module, and prints it.",
        1, 2, argc, argv);
    Arena *arena = arena_create();
    Diag *diag = diag_create(arena, stderr);
    if (argc == 3) check_pass(argv[1]);
    int status = run(arena, diag, argc == 3 ? argv[1] : NULL, argv[argc - 1]);
    diag_finish(diag);
    arena_destroy(arena);
    return status;
}
