/* Writes and checks headers of safetensors files. session/persist/saved_tensors.c chooses tensors
 * and names. */
#include "checkpoint/safetensors.h"

#include "base/memory.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LENGTH_BYTES = 8, MOST_HEADER = 100 << 20 }; // the format's own limit

/* ---- writing ---- */

static void put_text(FILE *out, const char *text) {
    fputc('"', out);
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < ' ') fprintf(out, "\\u%04x", *c);
        else fprintf(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    fputc('"', out);
}

static void put_entries(FILE *out, const SafeFile *file) {
    fputs("{\"__metadata__\":{", out);
    for (int i = 0; i < file->note_count; i++) {
        fputs(i ? "," : "", out);
        put_text(out, file->notes[i].key);
        fputc(':', out);
        put_text(out, file->notes[i].value);
    }
    fputc('}', out);
    for (int i = 0; i < file->count; i++) {
        fputc(',', out);
        put_text(out, file->at[i].name);
        fprintf(out, ":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%lld,%lld]}",
                file->at[i].dtype, file->at[i].shape, (long long)file->at[i].begin,
                (long long)file->at[i].end);
    }
    fputc('}', out);
}

char *safetensors_header(const SafeFile *file, size_t *bytes) {
    char *text = NULL;
    FILE *out = open_memstream(&text, bytes);
    for (int i = 0; out && i < LENGTH_BYTES; i++) fputc(0, out);
    if (out) put_entries(out, file);
    while (out && ftell(out) % LENGTH_BYTES) fputc(' ', out);
    if (!out || fclose(out)) return NULL;
    uint64_t length = *bytes - LENGTH_BYTES;
    for (int i = 0; i < LENGTH_BYTES; i++) text[i] = (char)(length >> 8 * i);
    return text;
}

/* ---- reading ---- */

/* A header that is being parsed; `wrong` is set at the first error. */
typedef struct Header {
    const char *at;
    bool wrong;
} Header;

static char next(Header *header) {
    header->at += strspn(header->at, " \t\n\v\f\r");
    return *header->at;
}

static bool take(Header *header, char c) {
    bool found = next(header) == c;
    header->at += found;
    return found;
}

static void need(Header *header, char c) { header->wrong |= !take(header, c); }

/* Appends a character as UTF-8; returns the end of the text. */
static char *put_character(char *to, unsigned code) {
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

/* Appends an escaped character; returns the end of the text. Reads exactly four digits after \u. */
static char *take_escaped(Header *header, char *to) {
    static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    enum { DIGITS = 4 };
    char c = *header->at++, digits[DIGITS + 1] = "";
    const char *known = c ? strchr(escapes, c) : NULL;
    if (known) {
        *to++ = meanings[known - escapes];
        return to;
    }
    for (int i = 0; i < DIGITS && c == 'u' && isxdigit((unsigned char)header->at[i]); i++)
        digits[i] = header->at[i];
    header->wrong |= !digits[DIGITS - 1];
    header->at += header->wrong ? 0 : DIGITS;
    return put_character(to, (unsigned)strtoul(digits, NULL, 16));
}

/* Returns the quotation mark that ends a text; NULL: there is none. */
static const char *text_end(const char *at) {
    while (*at && *at != '"') at += *at == '\\' && at[1] ? 2 : 1;
    return *at ? at : NULL;
}

/* Returns a quoted text with its escapes replaced; free() it. */
static char *take_text(Header *header) {
    need(header, '"');
    const char *end = header->wrong ? NULL : text_end(header->at);
    char *text = memory_array(end ? end - header->at + 1 : 1, 1), *to = text;
    header->wrong |= !end;
    while (!header->wrong && header->at < end)
        if (*header->at == '\\') {
            header->at++;
            to = take_escaped(header, to);
        } else {
            *to++ = *header->at++;
        }
    need(header, '"');
    return text;
}

static int64_t take_number(Header *header) {
    char *end = NULL;
    long long number =
        next(header) >= '0' && *header->at <= '9' ? strtoll(header->at, &end, 10) : -1;
    header->wrong |= number < 0;
    header->at = end ? end : header->at;
    return number;
}

/* Returns the list [3,4] as "3, 4", free() it; sets *product to the product of its numbers. */
static char *take_shape(Header *header, int64_t *product) {
    enum { MOST = 640, ROOM = MOST + 32 };
    char *text = memory_array(ROOM, 1);
    size_t length = 0;
    *product = 1;
    need(header, '[');
    while (!header->wrong && !take(header, ']')) {
        if (length) need(header, ',');
        int64_t extent = take_number(header);
        header->wrong |= length > MOST || __builtin_mul_overflow(*product, extent, product);
        length += (size_t)snprintf(text + length, ROOM - length, "%s%lld", length ? ", " : "",
                                   (long long)extent);
    }
    return text;
}

/* Returns the bytes of an element; 0: unknown type. */
static int dtype_bytes(const char *dtype) {
    static const struct {
        const char *name;
        int bytes;
    } types[] = {{"F64", 8}, {"I64", 8},  {"U64", 8}, {"F32", 4}, {"I32", 4},
                 {"U32", 4}, {"BF16", 2}, {"F16", 2}, {"I16", 2}, {"U16", 2},
                 {"I8", 1},  {"U8", 1},   {"BOOL", 1}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, dtype)) return types[i].bytes;
    return 0;
}

static void take_tensor(Header *header, char *name, SafeTensor *tensor) {
    int64_t elements = 0;
    *tensor = (SafeTensor){.name = name};
    need(header, '{');
    for (bool first = true; !header->wrong && !take(header, '}'); first = false) {
        if (!first) need(header, ',');
        char *key = take_text(header);
        need(header, ':');
        if (!strcmp(key, "dtype")) {
            tensor->dtype = take_text(header);
        } else if (!strcmp(key, "shape")) {
            tensor->shape = take_shape(header, &elements);
        } else if (!strcmp(key, "data_offsets")) {
            need(header, '[');
            tensor->begin = take_number(header);
            need(header, ',');
            tensor->end = take_number(header);
            need(header, ']');
        } else {
            header->wrong = true;
        }
        free(key);
    }
    int64_t bytes;
    tensor->dtype = tensor->dtype ? tensor->dtype : memory_array(1, 1);
    tensor->shape = tensor->shape ? tensor->shape : memory_array(1, 1);
    header->wrong |= !dtype_bytes(tensor->dtype) ||
                     __builtin_mul_overflow(elements, dtype_bytes(tensor->dtype), &bytes) ||
                     tensor->end - tensor->begin != bytes;
}

static void take_notes(Header *header, SafeFile *file) {
    need(header, '{');
    for (bool first = true; !header->wrong && !take(header, '}'); first = false) {
        if (!first) need(header, ',');
        file->notes = realloc(file->notes, sizeof *file->notes * (size_t)(file->note_count + 1));
        SafeNote *note = &file->notes[file->note_count++];
        note->key = take_text(header);
        need(header, ':');
        note->value = take_text(header);
    }
}

static void take_entries(Header *header, SafeFile *file) {
    need(header, '{');
    for (bool first = true; !header->wrong && !take(header, '}'); first = false) {
        if (!first) need(header, ',');
        char *name = take_text(header);
        need(header, ':');
        if (!strcmp(name, "__metadata__")) {
            free(name);
            take_notes(header, file);
            continue;
        }
        if ((file->count & (file->count - 1)) == 0)
            file->at =
                realloc(file->at, sizeof *file->at * (size_t)(file->count ? 2 * file->count : 1));
        take_tensor(header, name, &file->at[file->count++]);
    }
    header->wrong |= next(header) != 0;
}

static bool read_all(int descriptor, void *to, size_t bytes, off_t at) {
    for (ssize_t part; bytes; bytes -= (size_t)part, at += part, to = (char *)to + part)
        if ((part = pread(descriptor, to, bytes, at)) <= 0) return false;
    return true;
}

static int by_place(const void *left, const void *right) {
    const SafeTensor *a = *(const SafeTensor *const *)left, *b = *(const SafeTensor *const *)right;
    if (a->begin != b->begin) return a->begin > b->begin ? 1 : -1;
    return a->end != b->end ? (a->end > b->end ? 1 : -1) : (a > b) - (a < b);
}

static int by_name(const void *left, const void *right) {
    return strcmp((*(const SafeTensor *const *)left)->name,
                  (*(const SafeTensor *const *)right)->name);
}

/* Returns why a tensor does not begin at byte `end`, where `before` ends; NULL: it does. */
static const char *between(const SafeTensor *before, const SafeTensor *tensor, int64_t end) {
    static char text[1024];
    enum { NAME = 256 };
    if (tensor->begin < end)
        snprintf(
            text, sizeof text,
            "its tensors \"%.*s\" (bytes %lld to %lld) and \"%.*s\" (bytes %lld to %lld) overlap",
            NAME, before->name, (long long)before->begin, (long long)before->end, NAME,
            tensor->name, (long long)tensor->begin, (long long)tensor->end);
    else
        snprintf(text, sizeof text,
                 "its bytes %lld to %lld, in front of the tensor \"%.*s\", belong to no tensor",
                 (long long)end, (long long)tensor->begin, NAME, tensor->name);
    return tensor->begin == end ? NULL : text;
}

/* Returns a message about two tensors of one name; NULL: there are none. */
static const char *twice(const SafeTensor **all, int count) {
    static char text[512];
    qsort(all, (size_t)count, sizeof *all, by_name);
    for (int i = 1; i < count; i++)
        if (!strcmp(all[i - 1]->name, all[i]->name)) {
            snprintf(text, sizeof text, "it has two tensors \"%.256s\"", all[i]->name);
            return text;
        }
    return NULL;
}

/* Sets file->bytes. Returns why tensors overlap, have gaps, share names or do not fill the file. */
static const char *placed_wrong(SafeFile *file, int64_t size) {
    const SafeTensor **all = memory_array(file->count + 1, sizeof *all);
    const char *wrong = NULL;
    file->bytes = 0;
    for (int i = 0; i < file->count; i++) {
        all[i] = &file->at[i];
        if (file->at[i].begin < 0 || file->at[i].end < file->at[i].begin)
            wrong = "its header is damaged";
    }
    qsort(all, (size_t)file->count, sizeof *all, by_place);
    for (int i = 0; i < file->count && !wrong; i++) {
        wrong = between(all[i ? i - 1 : 0], all[i], file->bytes);
        file->bytes = all[i]->end;
    }
    if (!wrong && file->data + file->bytes != size) wrong = "its tensors do not fill it";
    wrong = wrong ? wrong : twice(all, file->count);
    free(all);
    return wrong;
}

const char *safetensors_read(int descriptor, SafeFile *file) {
    unsigned char bytes[LENGTH_BYTES];
    struct stat status;
    uint64_t length = 0;
    *file = (SafeFile){0};
    if (fstat(descriptor, &status) || !read_all(descriptor, bytes, sizeof bytes, 0))
        return "it is too short for a header";
    for (int i = 0; i < LENGTH_BYTES; i++) length |= (uint64_t)bytes[i] << 8 * i;
    if (length > MOST_HEADER || (int64_t)length + LENGTH_BYTES > status.st_size)
        return "it is shorter than its header";
    char *text = memory_array((int64_t)length + 1, 1);
    Header header = {text,
                     !read_all(descriptor, text, length, LENGTH_BYTES) || strlen(text) != length};
    file->data = LENGTH_BYTES + (int64_t)length;
    if (!header.wrong) take_entries(&header, file);
    free(text);
    return header.wrong ? "its header is damaged" : placed_wrong(file, status.st_size);
}

const SafeTensor *safetensors_find(const SafeFile *file, const char *name) {
    for (int i = 0; i < file->count; i++)
        if (!strcmp(file->at[i].name, name)) return &file->at[i];
    return NULL;
}

const char *safetensors_note(const SafeFile *file, const char *key) {
    for (int i = 0; i < file->note_count; i++)
        if (!strcmp(file->notes[i].key, key)) return file->notes[i].value;
    return NULL;
}

void safetensors_free(SafeFile *file) {
    for (int i = 0; i < file->count; i++) {
        free((char *)file->at[i].name);
        free((char *)file->at[i].dtype);
        free((char *)file->at[i].shape);
    }
    for (int i = 0; i < file->note_count; i++) {
        free((char *)file->notes[i].key);
        free((char *)file->notes[i].value);
    }
    free(file->at);
    free(file->notes);
    *file = (SafeFile){0};
}
