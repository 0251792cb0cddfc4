#include "file.h"

#include "support/text.h"

#include <errno.h>
#include <string.h>

char *file_text(Arena *arena, Diag *diag, const char *path)
{
    enum { MOST = 1 << 24 };
    char piece[4096];
    Text text = {.arena = arena};
    FILE *in = fopen(path, "r");
    for (size_t bytes; in && text.length < MOST && (bytes = fread(piece, 1, sizeof piece, in));)
        text_append(&text, piece, bytes);
    bool good = in && !ferror(in);
    if (!good)
        diag_error(diag, (Position){0}, "%s cannot be read: %s", path, strerror(errno));
    else if (text.length >= MOST || memchr(text_bytes(&text), 0, text.length))
        diag_error(diag, (Position){path, 1, 1}, "this is no text");
    if (in)
        fclose(in);
    return diag_errors(diag) || !good ? NULL : arena_string(arena, text_bytes(&text));
}
