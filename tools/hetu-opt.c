/* hetu-opt: reads IR text, runs one pass (or none), prints the IR. For tests and for looking at one pass alone.
 *
 *     hetu-opt [PASS] FILE        FILE - is the standard input
 */
#include "ir/ir.h"
#include "passes/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The whole of a stream. */
static char *read_all(Arena *arena, FILE *stream)
{
    Text text = {.arena = arena};
    char block[1 << 14];
    for (size_t size; (size = fread(block, 1, sizeof block, stream)) > 0;)
        text_append(&text, block, size);
    return arena_string(arena, text_bytes(&text));
}

static Module *read_module(Arena *arena, Diag *diag, const char *file)
{
    bool standard = !strcmp(file, "-");
    FILE *stream = standard ? stdin : fopen(file, "rb");
    if (!stream) {
        diag_error(diag, (Position){0}, "%s cannot be read", file);
        return NULL;
    }
    const char *text = read_all(arena, stream);
    if (!standard)
        fclose(stream);
    return ir_parse(arena, diag, standard ? "<stdin>" : file, text);
}

/* Prints the module after the pass; the exit status. */
static int run(Arena *arena, Diag *diag, const char *pass, const char *file)
{
    Module *module = read_module(arena, diag, file);
    if (!module)
        return 1;
    if (!ir_verify(module))
        return 2;
    if (pass && !pass_run_one(module, pass)) {
        fprintf(stderr, "hetu-opt: there is no pass '%s'\n", pass);
        return 1;
    }
    if (diag_errors(diag))
        return 1;
    if (!ir_verify(module))
        return 2;
    Text out = {.arena = arena};
    ir_print(&out, module);
    fputs(text_bytes(&out), stdout);
    return fflush(stdout) ? 1 : 0;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: hetu-opt [PASS] FILE\n");
        return 1;
    }
    Arena *arena = arena_create();
    Diag *diag = diag_create(arena, stderr);
    int status = run(arena, diag, argc == 3 ? argv[1] : NULL, argv[argc - 1]);
    diag_finish(diag);
    arena_destroy(arena);
    return status;
}
