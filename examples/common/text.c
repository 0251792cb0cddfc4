/* Text files, and random numbers to choose from them. */
#include "train.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

_Noreturn static void text_fail(const char *path, const char *what)
{
    fprintf(stderr, "error: %s: %s\n", path, what);
    exit(1);
}

void *memory(size_t count, size_t size)
{
    void *at = calloc(count ? count : 1, size);
    if (!at) {
        fprintf(stderr, "error: no memory for %zu elements of %zu bytes\n", count, size);
        exit(1);
    }
    return at;
}

/* Appends a file's bytes to the text. */
static void file_append(Text *text, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        text_fail(path, strerror(errno));
    size_t room = 1 << 16, got;
    do {
        text->bytes = realloc(text->bytes, text->size + room);
        if (!text->bytes)
            text_fail(path, "too large for memory");
        got = fread(text->bytes + text->size, 1, room, file);
        text->size += got;
    } while (got == room);
    if (ferror(file))
        text_fail(path, "cannot be read");
    fclose(file);
}

static bool is_plain(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0 && S_ISREG(about.st_mode);
}

static void folder_append(Text *text, const char *path)
{
    struct dirent **entry;
    int count = scandir(path, &entry, NULL, alphasort);
    if (count < 0)
        text_fail(path, strerror(errno));
    for (int i = 0; i < count; i++) {
        size_t length = strlen(path) + strlen(entry[i]->d_name) + 2;
        char *name = memory(length, 1);
        snprintf(name, length, "%s/%s", path, entry[i]->d_name);
        if (is_plain(name))
            file_append(text, name);
        free(name);
        free(entry[i]);
    }
    free(entry);
}

Text text_read(const char *path, size_t least)
{
    struct stat about;
    Text text = {0};
    if (stat(path, &about))
        text_fail(path, strerror(errno));
    if (S_ISDIR(about.st_mode))
        folder_append(&text, path);
    else
        file_append(&text, path);
    if (text.size <= least) {
        char what[100];
        snprintf(what, sizeof what, "holds %zu bytes of text; this model needs more than %zu", text.size, least);
        text_fail(path, what);
    }
    return text;
}

void text_batch(const Text *text, uint64_t *draw, int rows, int length, int32_t *tokens, int32_t *targets)
{
    for (int r = 0; r < rows; r++) {
        const unsigned char *from = text->bytes + draw_bits(draw) % (text->size - (size_t)length);
        for (int i = 0; i < length; i++) {
            tokens[r * length + i] = from[i];
            targets[r * length + i] = from[i + 1];
        }
    }
}

void text_logits(ht_program *program, const Text *text, int rows, int length, int vocab, const char *path)
{
    size_t places = (size_t)rows * (size_t)length, count = places * (size_t)vocab;
    int32_t *tokens = memory(places, sizeof *tokens);
    float *logits = memory(count, sizeof *logits);
    for (size_t i = 0; i < places; i++)
        tokens[i] = text->bytes[i % text->size];
    ht_run(program, ht_feed_n("tokens", tokens, places));
    ht_fetch(program, "", logits);
    FILE *out = fopen(path, "wb");
    if (!out || fwrite(logits, sizeof *logits, count, out) != count || fclose(out))
        text_fail(path, strerror(errno));
    free(tokens);
    free(logits);
}

/* Sebastiano Vigna's splitmix64. */
uint64_t draw_bits(uint64_t *draw)
{
    uint64_t z = *draw += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double draw_uniform(uint64_t *draw)
{
    return (double)(draw_bits(draw) >> 11) * 0x1p-53;
}

double draw_normal(uint64_t *draw)
{
    double radius = sqrt(-2 * log(1 - draw_uniform(draw)));
    return radius * cos(6.283185307179586 * draw_uniform(draw));
}

int draw_index(uint64_t *draw, const float *logits, int count, float temperature)
{
    float top = logits[0];
    for (int i = 1; i < count; i++)
        top = fmaxf(top, logits[i]);
    double mass = 0;
    for (int i = 0; i < count; i++)
        mass += exp((logits[i] - top) / temperature);
    double left = draw_uniform(draw) * mass;
    for (int i = 0; i < count - 1; i++)
        if ((left -= exp((logits[i] - top) / temperature)) < 0)
            return i;
    return count - 1;
}
