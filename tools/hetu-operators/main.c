/* hetu-operators: generates the one-device library's operators from their rules.
 *
 *     hetu-operators include/hetu/ops.h operators.c kernels.h names.h
 *     hetu-operators --reference HEADER... > operators.md
 *
 * operators.c    the C functions of the operators: tables and loops for runtime/eager/operator.h
 * kernels.h      prototypes of the kernels that the rules name
 * names.h        UNCOMPILED(name) for each operator, for backends without the one-device library
 */
#include "operators.h"

#include "support/reading.h"
#include "support/tool.h"

#include <stdlib.h>
#include <string.h>

static const char *read_file(Arena *arena, const char *file) {
    enum { MOST = 1 << 26 };
    InputText text = reading_text(arena, READ_PIPES, file, MOST);
    if (!text.bytes) {
        tool_message(stderr, "error", "%s cannot be read: %s", file, text.why);
        exit(1);
    }
    return text.bytes;
}

static void write_file(Arena *arena, const char *file,
                       void (*write)(Text *out, const Declarations *all), const Declarations *all) {
    Text out = {.arena = arena};
    write(&out, all);
    FILE *stream = fopen(file, "wb");
    if (!stream || fwrite(text_bytes(&out), 1, out.length, stream) != out.length ||
        fclose(stream)) {
        tool_message(stderr, "error", "%s cannot be written", file);
        exit(1);
    }
}

/* Writes the reference of all operators of the headers (reference.c). Returns the exit status. */
static int write_reference(char **headers) {
    Arena *arena = arena_create();
    const char *why;
    int status = 0;
    for (char **header = headers; *header && !status; header++)
        if ((why = reference_write(arena, *header))) {
            tool_message(stderr, "error", "%s cannot be read: %s", *header, why);
            status = 1;
        }
    arena_destroy(arena);
    return status | (fflush(stdout) != 0);
}

int main(int argc, char **argv) {
    tool_begin("hetu-operators", argc, argv);
    if (argc > 2 && !strcmp(argv[1], "--reference")) return write_reference(argv + 2);
    tool_read_words("HEADER OPERATORS.c KERNELS.h NAMES.h",
                    "Writes the one-device library's operators from their rules.\vhetu-operators "
                    "--reference HEADER... prints a reference of operators.",
                    4, 4, argc, argv);
    Arena *arena = arena_create();
    Diag *diag = diag_create(arena, stderr);
    Declarations all = declarations_read(arena, diag, argv[1], read_file(arena, argv[1]));
    diag_finish(diag);
    if (diag_errors(diag) == 0) {
        write_file(arena, argv[2], operators_write, &all);
        write_file(arena, argv[3], kernels_write, &all);
        write_file(arena, argv[4], names_write, &all);
    }
    int status = diag_errors(diag) > 0;
    arena_destroy(arena);
    return status;
}
