/* Reads tensors of other programs' checkpoints: names by patterns, transposed, F16 and BF16. */
#include "checkpoint/foreign_tensors.h"

#include "base/files.h"
#include "base/memory.h"
#include "base/c_locale.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_ROOM = 8192, NAME_ROOM = 1024 };

/* ---- files ---- */

/* Returns the text "PATH: WHY", which is valid until the next call. */
static const char *reason_of(const char *path, const char *why) {
    static char text[TEXT_ROOM];
    snprintf(text, sizeof text, "%s: %s", path, why);
    return text;
}

static const char *open_file(Stored *stored, const char *path) {
    StoredFile *file = &stored->at[stored->count++];
    const char *why;
    file->descriptor = file_open_input(path, &why);
    return file->descriptor < 0 ? why : safetensors_read(file->descriptor, &file->file);
}

static int is_stored(const struct dirent *entry) {
    static const char suffix[] = ".safetensors";
    size_t length = strlen(entry->d_name), tail = sizeof suffix - 1;
    return *entry->d_name != '.' && length > tail && !strcmp(entry->d_name + length - tail, suffix);
}

static const char *open_folder(Stored *stored, const char *path) {
    char name[TEXT_ROOM / 2];
    struct dirent **entries = NULL;
    const char *wrong = NULL;
    int count = scandir(path, &entries, is_stored, alphasort);
    if (count <= 0) return count ? plain_error(errno) : "there is no file *.safetensors in it";
    stored->at = memory_array(count, sizeof *stored->at);
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        free(entries[i]);
        if (!wrong && (wrong = open_file(stored, name))) wrong = reason_of(name, wrong);
    }
    free(entries);
    return wrong;
}

const char *stored_open(Stored *stored, const char *path, const char *names) {
    struct stat status;
    *stored = (Stored){.names = names};
    if (!stat(path, &status) && S_ISDIR(status.st_mode)) return open_folder(stored, path);
    stored->at = memory_array(1, sizeof *stored->at);
    return open_file(stored, path);
}

void stored_close(Stored *stored) {
    for (int i = 0; i < stored->count; i++) {
        safetensors_free(&stored->at[i].file);
        if (stored->at[i].descriptor >= 0) close(stored->at[i].descriptor);
    }
    free(stored->at);
    *stored = (Stored){0};
}

/* ---- names ---- */

/* Returns whether `pattern`, up to its tab, matches `name`. Writes the number that each * matched
 * to `stars`, each followed by a space. */
static bool match_name(const char *pattern, const char *name, char *stars) {
    for (; *pattern != '\t'; pattern++) {
        if (*pattern != '*') {
            if (*pattern != *name++) return false;
            continue;
        }
        if (!isdigit((unsigned char)*name)) return false;
        while (isdigit((unsigned char)*name)) *stars++ = *name++;
        *stars++ = ' ';
    }
    *stars = 0;
    return !*name;
}

/* Writes the pattern, up to its tab, to `name`, with the numbers in `stars` for each *. */
static void fill_name(char *name, const char *pattern, const char *stars) {
    char *end = name + NAME_ROOM - 1;
    for (; *pattern != '\t' && name < end; pattern++) {
        if (*pattern != '*') {
            *name++ = *pattern;
            continue;
        }
        while (*stars && *stars != ' ' && name < end) *name++ = *stars++;
        stars += *stars == ' ';
    }
    *name = 0;
}

static bool find_exactly(const Stored *stored, const char *name, bool transposed,
                         StoredTensor *found) {
    for (int i = 0; i < stored->count; i++) {
        const SafeTensor *tensor = safetensors_find(&stored->at[i].file, name);
        *found = (StoredTensor){&stored->at[i], tensor, transposed};
        if (tensor) return true;
    }
    return false;
}

bool stored_find(const Stored *stored, const char *name, StoredTensor *found) {
    char stars[NAME_ROOM], other[NAME_ROOM];
    if (strlen(name) >= NAME_ROOM / 2) return false;
    if (!stored->names) return find_exactly(stored, name, false, found);
    for (const char *row = stored->names; *row; row = strchr(row, '\n') + 1) {
        const char *pattern = strchr(row, '\t') + 1, *flag = strchr(pattern, '\t') + 1;
        if (!match_name(row, name, stars)) continue;
        fill_name(other, pattern, stars);
        if (find_exactly(stored, other, *flag == '1', found)) return true;
    }
    return false;
}

/* ---- values ---- */

static int stored_size(const StoredTensor *stored) {
    return strcmp(stored->tensor->dtype, "F32") ? 2 : 4;
}

/* Returns whether a shape has two dimensions. */
static bool is_matrix(const char *shape) {
    const char *comma = strchr(shape, ',');
    return comma && !strchr(comma + 1, ',');
}

/* Writes the shape as the file has it: "3, 4", or "4, 3" if transposed. */
static void text_shape(char *text, size_t room, const char *shape, bool transposed) {
    const char *comma = strchr(shape, ',');
    if (transposed) snprintf(text, room, "%s, %.*s", comma + 2, (int)(comma - shape), shape);
    else snprintf(text, room, "%s", shape);
}

const char *stored_wrong(const StoredTensor *stored, const char *shape) {
    static char text[TEXT_ROOM];
    const SafeTensor *tensor = stored->tensor;
    char wanted[NAME_ROOM];
    bool readable = !strcmp(tensor->dtype, "F32") || !strcmp(tensor->dtype, "BF16") ||
                    !strcmp(tensor->dtype, "F16");
    if (stored->transposed && !is_matrix(shape)) {
        snprintf(text, sizeof text,
                 "\"%.*s\" cannot be stored transposed: a parameter of the shape (%s) is no matrix",
                 NAME_ROOM, tensor->name, shape);
        return text;
    }
    text_shape(wanted, sizeof wanted, shape, stored->transposed);
    if (strcmp(tensor->shape, wanted))
        snprintf(text, sizeof text, "\"%.*s\" has the shape (%s) in it, and (%s) here", NAME_ROOM,
                 tensor->name, tensor->shape, wanted);
    else if (!readable)
        snprintf(text, sizeof text, "\"%.*s\" is of type %s; F32, F16 and BF16 can be read",
                 NAME_ROOM, tensor->name, tensor->dtype);
    else if (tensor->begin % stored_size(stored))
        snprintf(text, sizeof text, "\"%.*s\" lies at no multiple of its type's size", NAME_ROOM,
                 tensor->name);
    else return NULL;
    return text;
}

/* Converts IEEE 754 binary16 to the bits of an f32. */
static uint32_t half_bits(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31,
             fraction = half & 1023;
    if (exponent == 31) return sign | 0x7f800000 | fraction << 13;
    if (exponent) return sign | (exponent + 112) << 23 | fraction << 13;
    if (!fraction) return sign;
    int shift = __builtin_clz(fraction) - 21;
    return sign | (uint32_t)(113 - shift) << 23 | (fraction << shift & 1023) << 13;
}

/* Converts `count` stored elements to f32. */
static void convert(const StoredTensor *stored, const char *bytes, int64_t count, float *values) {
    bool brain = !strcmp(stored->tensor->dtype, "BF16");
    if (stored_size(stored) == 4) {
        memcpy(values, bytes, (size_t)count * sizeof *values);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, bytes + 2 * i, sizeof half);
        uint32_t word = brain ? (uint32_t)half << 16 : half_bits(half);
        memcpy(&values[i], &word, sizeof word);
    }
}

/* Reads elements [from, to) in the order of the file. Returns why that failed; NULL: read. */
static const char *read_elements(const StoredTensor *stored, int64_t from, int64_t to,
                                 float *values) {
    int size = stored_size(stored);
    int64_t bytes = (to - from) * size;
    char *raw = memory_storage(bytes);
    const char *wrong = NULL;
    for (int64_t at = 0; at < bytes && !wrong;) {
        ssize_t part =
            pread(stored->in->descriptor, raw + at, (size_t)(bytes - at),
                  (off_t)(stored->in->file.data + stored->tensor->begin + from * size + at));
        wrong = part > 0 ? NULL : part ? plain_error(errno) : "it ends early";
        at += part;
    }
    if (!wrong) convert(stored, raw, to - from, values);
    free(raw);
    return wrong;
}

/* Does the same for a matrix (rows, columns) that is stored as (columns, rows), and read whole. */
static const char *read_transposed(const StoredTensor *stored, int64_t from, int64_t to,
                                   float *values) {
    int64_t columns = strtoll(stored->tensor->shape, NULL, 10),
            rows = strtoll(strchr(stored->tensor->shape, ',') + 1, NULL, 10);
    float *whole = memory_storage(rows * columns * (int64_t)sizeof *whole);
    const char *wrong = from < to ? read_elements(stored, 0, rows * columns, whole) : NULL;
    for (int64_t i = from; i < to && !wrong; i++)
        values[i - from] = whole[i % columns * rows + i / columns];
    free(whole);
    return wrong;
}

const char *stored_read(const StoredTensor *stored, int64_t from, int64_t to, float *values) {
    return (stored->transposed ? read_transposed : read_elements)(stored, from, to, values);
}
