#include "file.h"

#include "support/reading.h"

#include <string.h>

char *file_text(Arena *arena, Diag *diag, const char *path) {
    enum { MOST = 1 << 24 };
    size_t length = 0;
    const char *why, *text = reading_text(arena, READ_FILES, path, MOST, &length, &why);
    if (!text)
        diag_error(diag, (Position){0}, "%s cannot be read: %s", path, why);
    else if (memchr(text, 0, length))
        diag_error(diag, (Position){path, 1, 1}, "this is no text");
    return diag_errors(diag) || !text ? NULL : arena_string(arena, text);
}
