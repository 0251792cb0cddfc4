#include "data.h"

#include <stdio.h>
#include <stdlib.h>

Text text_read(const char *path, size_t least) {
    Text text = {.draw = 1};
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(1);
    }
    for (size_t room = 0; !feof(file) && !ferror(file);) {
        if (text.size == room) text.bytes = realloc(text.bytes, room = 2 * room + 65536);
        if (!text.bytes) {
            fprintf(stderr, "%s: no memory for more than %zu bytes\n", path, text.size);
            exit(1);
        }
        text.size += fread(text.bytes + text.size, 1, room - text.size, file);
    }
    if (ferror(file) || text.size <= least) {
        fprintf(stderr, "%s: %zu bytes are read, more than %zu are needed\n", path, text.size,
                least);
        exit(1);
    }
    fclose(file);
    return text;
}

/* Returns a random index below `end` (a linear congruential generator). */
static size_t draw_place(Text *text, size_t end) {
    text->draw = text->draw * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(text->draw >> 33) % end;
}

void text_batch(Text *text, int rows, int length, int32_t *context, int32_t *next) {
    for (int row = 0; row < rows; row++) {
        const unsigned char *from = text->bytes + draw_place(text, text->size - (size_t)length);
        for (int i = 0; i < length; i++) context[row * length + i] = from[i];
        next[row] = from[length];
    }
}
