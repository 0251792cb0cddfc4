/* Reads .npy, .bin and raw files: the row at a position (shuffle.c has the shuffled order of an
 * epoch), converted to the input's type. */
#include "session/data/dataset.h"
#include "session/data/feed.h"

#include "base/files.h"
#include "base/memory.h"
#include "base/c_locale.h"
#include "exchange/copy_boxes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- types of elements ---- */

typedef enum Element { U8, S8, U16, S16, U32, S32, S64, F32, F64, ELEMENTS } Element;

/* By element type: name, NumPy's code, bytes, bit mask of input types that hold all its values. */
static const struct {
    const char *name, *code;
    int bytes;
    unsigned inputs;
} elements[ELEMENTS] = {
    [U8] = {"uint8", "u1", 1, 1 << HT_I32 | 1 << HT_I64 | 1 << HT_F32 | 1 << HT_F64},
    [S8] = {"int8", "i1", 1, 1 << HT_I32 | 1 << HT_I64 | 1 << HT_F32 | 1 << HT_F64},
    [U16] = {"uint16", "u2", 2,
             1 << HT_I32 | 1 << HT_I64 | 1 << HT_F32 | 1 << HT_F64 |
                 1 << HT_BF16}, // the bits of HT_BF16
    [S16] = {"int16", "i2", 2, 1 << HT_I32 | 1 << HT_I64 | 1 << HT_F32 | 1 << HT_F64},
    [U32] = {"uint32", "u4", 4, 1 << HT_I64 | 1 << HT_F64},
    [S32] = {"int32", "i4", 4, 1 << HT_I32 | 1 << HT_I64 | 1 << HT_F64},
    [S64] = {"int64", "i8", 8, 1 << HT_I64},
    [F32] = {"float32", "f4", 4, 1 << HT_F32 | 1 << HT_F64},
    [F64] = {"float64", "f8", 8, 1 << HT_F64},
};

static Element element_of_input(ht_dtype input) {
    static const Element same[] = {
        [HT_F32] = F32, [HT_BF16] = U16, [HT_F64] = F64, [HT_I32] = S32, [HT_I64] = S64};
    return same[input];
}

/* ---- files ---- */

typedef struct RowsFile {
    char *path, *said; // said: type of elements given when the file was opened; NULL: none
    ht_dtype input;    // type of the input for which the file was opened
    int descriptor;
    int64_t size, data; // data: offset of the elements in the file
    Element element;
    int64_t count; // elements in the file
    int64_t row;   // number of elements of a row; 0: as the input needs
} RowsFile;

static struct {
    RowsFile *at;
    int count;
} files;

static char reason[1024];

#define REFUSE(...) (snprintf(reason, sizeof reason, __VA_ARGS__), reason)

static const char *open_file(RowsFile *file) {
    struct stat found;
    const char *wrong = NULL;
    file->descriptor = file_open_input(file->path, &wrong);
    if (file->descriptor < 0) return wrong;
    if (fstat(file->descriptor, &found)) wrong = REFUSE("%s", plain_error(errno));
    else if (!found.st_size) wrong = "it is empty";
    file->size = wrong ? 0 : found.st_size;
    return wrong;
}

/* Reads bytes of the file. Returns how many were read, up to `bytes`; -1 and errno on failure. */
static int64_t read_bytes(const RowsFile *file, void *to, int64_t bytes, int64_t at) {
    int64_t done = 0;
    while (done < bytes) {
        ssize_t part =
            pread(file->descriptor, (char *)to + done, (size_t)(bytes - done), (off_t)(at + done));
        if (part < 0 && errno != EINTR) return -1;
        if (!part) break;
        done += part > 0 ? part : 0;
    }
    return done;
}

/* Returns why the file is shorter than its header says; NULL: it is long enough. */
static const char *check_size(const RowsFile *file) {
    int64_t bytes;
    if (__builtin_mul_overflow(file->count, elements[file->element].bytes, &bytes) ||
        bytes > file->size - file->data)
        return REFUSE("its header says %lld elements of %s, and it has %lld bytes behind that",
                      (long long)file->count, elements[file->element].name,
                      (long long)(file->size - file->data));
    return NULL;
}

/* ---- .npy ---- */

/* Returns the header's text after a key and its colon; NULL: the key is missing. */
static const char *value_of(const char *header, const char *key) {
    const char *at = strstr(header, key);
    at = at ? strchr(at + strlen(key), ':') : NULL;
    return at ? at + 1 + strspn(at + 1, " ") : NULL;
}

static const char *read_descr(const char *descr, Element *element) {
    char code[8] = "";
    if (!descr || sscanf(descr, "'%7[^']'", code) != 1)
        return "the header of the .npy file has no type of elements";
    bool order = strchr("<|=", code[0]) && code[0];
    for (int e = 0; e < ELEMENTS; e++)
        if (order && !strcmp(code + 1, elements[e].code)) {
            *element = (Element)e;
            return NULL;
        }
    return REFUSE("its elements are of NumPy's type %s, which no input takes; integers, float32 or "
                  "float64 in the order of this machine are read",
                  code);
}

/* Parses "(60000, 28, 28)": sets the product of all extents, and of all but the first. Returns the
 * number of dimensions; -1 if the text is missing or wrong. */
static int read_shape(const char *shape, int64_t *all, int64_t *row) {
    int rank = 0;
    *all = *row = 1;
    if (!shape || *shape != '(') return -1;
    for (shape++; *(shape += strspn(shape, ", "));) {
        char *end;
        long long extent = strtoll(shape, &end, 10);
        if (*shape == ')') return rank;
        if (end == shape || extent < 0 || __builtin_mul_overflow(*all, extent, all)) return -1;
        *row *= rank++ ? extent : 1;
        shape = end;
    }
    return -1;
}

static const char *read_npy(RowsFile *file) {
    unsigned char head[12] = "";
    read_bytes(file, head, sizeof head, 0);
    int version = file->size > 10 ? head[6] : 0, wide = version > 1 ? 4 : 2;
    uint32_t length = 0;
    if (version < 1 || version > 3 || file->size < 8 + wide)
        return "its header is none of .npy, version 1 to 3";
    memcpy(&length, head + 8, (size_t)wide);
    file->data = 8 + wide + (int64_t)length;
    if (file->data > file->size) return "its header is cut off";
    char *header = memory_array((int64_t)length + 1, 1);
    read_bytes(file, header, length, 8 + wide);
    const char *order = value_of(header, "'fortran_order'"),
               *wrong = read_descr(value_of(header, "'descr'"), &file->element);
    int rank = read_shape(value_of(header, "'shape'"), &file->count, &file->row);
    if (!wrong && (!order || strncmp(order, "False", 5) != 0))
        wrong = "its elements stand in Fortran's order; numpy.ascontiguousarray gives C's";
    if (!wrong && rank < 1) wrong = "the header of the .npy file has no shape of rows";
    file->row = rank > 1 ? file->row : 0;
    free(header);
    return wrong ? wrong : check_size(file);
}

/* ---- llm.c's .bin: 256 numbers of 32 bits, of which the first three are a magic number, the
 * version, and how many tokens follow ---- */

enum { BIN_HEADER = 1024, BIN_GPT2 = 20240520, BIN_LLAMA3 = 20240801 };

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), own = strlen(end);
    return length >= own && !strcmp(text + length - own, end);
}

static bool is_bin(const RowsFile *file, int32_t *header) {
    if (!ends_with(file->path, ".bin") || file->size < (int64_t)(3 * sizeof *header)) return false;
    if (read_bytes(file, header, 3 * sizeof *header, 0) < (int64_t)(3 * sizeof *header))
        return false;
    return header[0] == BIN_GPT2 || header[0] == BIN_LLAMA3;
}

static const char *read_bin(RowsFile *file, const int32_t *header) {
    int version = header[0] == BIN_GPT2 ? 1 : 7;
    if (file->size < BIN_HEADER) return "its header is cut off";
    if (header[1] != version)
        return REFUSE("it is of version %d of llm.c's tokens, not %d", (int)header[1], version);
    file->element = version == 1 ? U16 : U32;
    file->count = header[2];
    file->data = BIN_HEADER;
    return file->count < 0 ? "its header says fewer than no tokens" : check_size(file);
}

/* ---- opening ---- */

/* Sets type and number of elements of a file without header. Returns what is wrong, or NULL. */
static const char *read_raw(RowsFile *file, const char *element, ht_dtype input) {
    file->element = element ? ELEMENTS : element_of_input(input);
    for (int e = 0; element && e < ELEMENTS; e++)
        if (!strcmp(element, elements[e].name)) file->element = (Element)e;
    if (file->element == ELEMENTS)
        return REFUSE("\"%s\" is no type of elements: write uint8, int8, uint16, int16, uint32, "
                      "int32, int64, float32 or float64",
                      element);
    file->count = file->size / elements[file->element].bytes;
    if (file->size % elements[file->element].bytes)
        return REFUSE("its %lld bytes are no whole number of elements of %s", (long long)file->size,
                      elements[file->element].name);
    return NULL;
}

/* Returns `wrong` unless it is NULL. Otherwise returns why the type of elements in the header is
 * not the given one; NULL: the types agree, or none is given. */
static const char *check_element(const RowsFile *file, const char *element, const char *wrong) {
    const char *own = elements[file->element].name;
    return wrong || !element || !strcmp(element, own)
               ? wrong
               : REFUSE(
                     "its header says elements of %s, and the dataset \"%s\"; leave .element out",
                     own, element);
}

static const char *read_header(RowsFile *file, const char *element, ht_dtype input) {
    int32_t header[3];
    char magic[6] = "";
    bool npy = read_bytes(file, magic, sizeof magic, 0) == sizeof magic &&
               !memcmp(magic, "\x93NUMPY", sizeof magic);
    if (npy) return check_element(file, element, read_npy(file));
    if (ends_with(file->path, ".npy")) return "it is no .npy file";
    return is_bin(file, header) ? check_element(file, element, read_bin(file, header))
                                : read_raw(file, element, input);
}

int dataset_find(const char *path, const char *element, ht_dtype input) {
    for (int i = 0; i < files.count; i++) {
        const RowsFile *file = &files.at[i];
        bool said = element ? file->said && !strcmp(file->said, element)
                            : !file->said && file->input == input;
        if (said && !strcmp(file->path, path)) return i;
    }
    return -1;
}

const char *dataset_open(const char *path, const char *element, ht_dtype input, int *file) {
    *file = dataset_find(path, element, input);
    if (*file >= 0) return NULL;
    RowsFile opened = {
        .path = strdup(path), .said = element ? strdup(element) : NULL, .input = input};
    RowsFile *grown = realloc(files.at, sizeof *grown * (size_t)(files.count + 1));
    if (!opened.path || !opened.said != !element || !grown)
        ht_fail("no memory for the file %s", path);
    files.at = grown;
    const char *wrong = open_file(&opened);
    wrong = wrong ? wrong : read_header(&opened, element, input);
    if (wrong) {
        if (opened.descriptor >= 0) close(opened.descriptor);
        return wrong;
    }
    *file = files.count;
    files.at[files.count++] = opened;
    return NULL;
}

int64_t dataset_elements(int file) {
    return files.at[file].count * ELEMENTS + files.at[file].element;
}

const char *dataset_wrong(int file, ht_dtype input) {
    const RowsFile *opened = &files.at[file];
    if (elements[opened->element].inputs >> input & 1) return NULL;
    return REFUSE("its elements are of %s, and %s does not have all values of these; write the "
                  "file anew with elements of %s",
                  elements[opened->element].name, feed_type_name(input),
                  elements[element_of_input(input)].name);
}

int64_t dataset_rows(int file, int64_t row, int64_t shift, const char **wrong) {
    const RowsFile *opened = &files.at[file];
    *wrong = NULL;
    if (opened->row && opened->row != row)
        *wrong = REFUSE("its rows have %lld elements, and those of the input %lld",
                        (long long)opened->row, (long long)row);
    else if (opened->row && shift) *wrong = "it has rows of its own, and none of them begins later";
    else if (shift < 0 || row < 1 || opened->count < shift + row)
        *wrong = REFUSE("its %lld elements are no row of %lld%s", (long long)opened->count,
                        (long long)row, shift ? " behind the shift" : "");
    return *wrong ? -1 : (opened->count - shift) / row;
}

/* ---- reading ---- */

/* Copies elements with a conversion to the input's type. */
#define CONVERT(from, to_type)                                                                     \
    for (int64_t i = 0; i < count; i++) {                                                          \
        from value;                                                                                \
        memcpy(&value, at + i * (int64_t)sizeof value, sizeof value);                              \
        ((to_type *)to)[i] = (to_type)value;                                                       \
    }                                                                                              \
    break
#define CONVERT_TO(to_type)                                                                        \
    switch (element) {                                                                             \
    case U8: CONVERT(uint8_t, to_type);                                                            \
    case S8: CONVERT(int8_t, to_type);                                                             \
    case U16: CONVERT(uint16_t, to_type);                                                          \
    case S16: CONVERT(int16_t, to_type);                                                           \
    case U32: CONVERT(uint32_t, to_type);                                                          \
    case S32: CONVERT(int32_t, to_type);                                                           \
    case S64: CONVERT(int64_t, to_type);                                                           \
    case F32: CONVERT(float, to_type);                                                             \
    case F64: CONVERT(double, to_type);                                                            \
    case ELEMENTS: break;                                                                          \
    }                                                                                              \
    break

static void convert(Element element, const char *at, int64_t count, ht_dtype input, void *to) {
    switch (input) {
    case HT_I32: CONVERT_TO(int32_t);
    case HT_I64: CONVERT_TO(int64_t);
    case HT_F32: CONVERT_TO(float);
    case HT_F64: CONVERT_TO(double);
    default:
        ht_fail("an input of type %d has no elements of %s", (int)input, elements[element].name);
    }
}

/* Reads `count` raw elements from `element` on. Ends the program if the file has become shorter. */
static void read_elements(const RowsFile *file, int64_t element, int64_t count, void *to) {
    int64_t size = elements[file->element].bytes, bytes = count * size,
            at = file->data + element * size;
    int64_t done = read_bytes(file, to, bytes, at);
    struct stat now = {.st_size = (off_t)(at + done)};
    if (done < 0) ht_fail("the data set %s cannot be read: %s", file->path, plain_error(errno));
    if (done < bytes) fstat(file->descriptor, &now);
    if (done < bytes)
        ht_fail("the data set %s has become shorter while the program runs: it had %lld bytes, and "
                "ends at byte %lld now; put a new file "
                "in its place (mv) instead of writing over it, and go on from the last checkpoint",
                file->path, (long long)file->size, (long long)now.st_size);
}

/* Reads `count` elements from `element` on into `to`; converts them if the input's type differs. */
static void take_elements(const RowsFile *file, int64_t element, int64_t count, ht_dtype input,
                          void *to) {
    enum { PIECE = 4096 };
    char piece[PIECE];
    int64_t most = PIECE / elements[file->element].bytes, bytes = (int64_t)ht_dtype_bytes(input);
    if (file->element == element_of_input(input)) {
        read_elements(file, element, count, to);
        return;
    }
    for (int64_t done = 0, some; done < count; done += some) {
        some = count - done < most ? count - done : most;
        read_elements(file, element + done, some, piece);
        convert(file->element, piece, some, input, (char *)to + done * bytes);
    }
}

/* Reads elements that are consecutive in the file, of one row or several, at once. */
void dataset_fill(const RowsPlan *plan, ht_dtype input, int64_t first, int64_t end, void *to) {
    const RowsFile *file = &files.at[plan->file];
    int64_t bytes = (int64_t)ht_dtype_bytes(input), begin = 0, waits = 0;
    char *next = to;
    while (first < end) {
        int64_t row = first / plan->row, column = first % plan->row, count = plan->row - column;
        count = count < end - first ? count : end - first;
        int64_t element = dataset_row(plan, plan->order ? plan->order[row] : row) * plan->row +
                          plan->shift + column;
        if (waits && element != begin + waits) {
            take_elements(file, begin, waits, input, next);
            next += waits * bytes;
            waits = 0;
        }
        begin = waits ? begin : element;
        waits += count;
        first += count;
    }
    if (waits) take_elements(file, begin, waits, input, next);
}
