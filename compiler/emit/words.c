/* Names, literals and comments of emitted C. Tensors have the names of the operator's rule, with _
 * where generated code uses such a name itself (tensor_name). kernel_for (kernel/kernel.c) and
 * module_name (program/unit.c) name functions. */
#include "emit/words.h"

#include "emit/backend.h"
#include "emit/emit.h"
#include "hetu/rt.h"

#include <ctype.h>
#include <string.h>

const char *c_identifier(Arena *arena, const char *text) {
    const char *head = isdigit((unsigned char)*text) || !*text ? "_" : "";
    char *name = arena_format(arena, "%s%s", head, text);
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c)) *c = '_';
    return name;
}

const char *c_string(Arena *arena, const char *text) {
    Text out = {.arena = arena};
    for (const char *c = text; *c; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte == '"' || byte == '\\') text_print(&out, "\\%c", byte);
        else if (byte < 32 || byte > 126 || byte == '?') text_print(&out, "\\%03o", byte);
        else text_append(&out, c, 1);
    }
    return text_bytes(&out);
}

const char *c_comment(Arena *arena, const char *text) {
    char *inside = arena_string(arena, text);
    for (char *c = inside; *c; c++) {
        bool mark = (c[0] == '*' && c[1] == '/') || (c[0] == '/' && c[1] == '*');
        if (mark || (unsigned char)*c < 32) *c = ' ';
    }
    return inside;
}

const char *c_number(Arena *arena, int64_t number) {
    return arena_format(arena, "%lld", (long long)number);
}

const char *c_include(Arena *arena, const char *path) {
    bool quote = strchr(path, '"');
    if (strchr(path, '\n') || (quote && strchr(path, '>'))) return NULL;
    return arena_format(arena, quote ? "<%s>" : "\"%s\"", path);
}

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.'; }

bool has_word(const char *text, const char *name) {
    size_t length = strlen(name);
    for (const char *at = text; (at = strstr(at, name)); at += length)
        if ((at == text || !in_word(at[-1])) && !in_word(at[length])) return true;
    return false;
}

const char *c_buffer(Arena *arena, int64_t buffer) {
    bool kept = ht_buffer_kind_of(buffer) == HT_BUFFER_KEPT;
    return arena_format(arena, "%s%lld", kept ? "HT_KEPT + " : "",
                        (long long)(kept ? ht_buffer_place(buffer) : buffer));
}

const char *c_type(DType dtype) {
    // in the order of DType
    static const char *const NAMES[DTYPE_COUNT] = {"float", "uint16_t", "double", "int32_t",
                                                   "int64_t"};
    return NAMES[dtype];
}

const char *c_dtype(DType dtype) {
    // in the order of DType, which is that of ht_dtype
    static const char *const NAMES[DTYPE_COUNT] = {"HT_F32", "HT_BF16", "HT_F64", "HT_I32",
                                                   "HT_I64"};
    return NAMES[dtype];
}

void text_shape(Text *out, int rank, const int64_t *extent) {
    text_string(out, "(");
    for (int d = 0; d < rank; d++) text_print(out, "%s%lld", d ? ", " : "", (long long)extent[d]);
    text_string(out, ")");
}

const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Returns whether generated functions use a name themselves: reserved words of a backend, loop
 * counters, and numbered names such as i0. */
static bool is_own_name(const char *name, bool loops) {
    if (backend_word(name) || (loops && strlen(name) == 1 && strchr("ijke", *name))) return true;
    const char *digits = name + (strncmp(name, "at", 2) ? 1 : 2);
    return strchr("aik", name[0]) && *digits && strspn(digits, "0123456789") == strlen(digits);
}

/* Returns whether a name looks like the variables in which generated functions keep elements of a
 * tensor: NAME_v, NAME_w, NAME_h, NAME_s. */
static bool is_variable(const char *name) {
    size_t length = strlen(name);
    return length > 2 && name[length - 2] == '_' && strchr("vwhs", name[length - 1]);
}

const char *tensor_name(Arena *arena, const Rule *rule, const char *name, int number) {
    bool taken = is_variable(name) || is_own_name(name, rule->kind != RULE_CALL);
    return number < 0 ? arena_format(arena, "%s%s", name, taken ? "_" : "")
                      : arena_format(arena, "%s_%d", name, number);
}

/* Returns the lines of the operators that were fused into this one: "+98+104". */
static const char *lines_also(Arena *arena, const Op *op) {
    Text lines = {.arena = arena};
    for (int i = 0; i < op->source->fused_count; i++)
        if (op->source->fused_at[i].line != (i ? op->source->fused_at[i - 1].line : op->at.line))
            text_print(&lines, "+%d", op->source->fused_at[i].line);
    return text_bytes(&lines);
}

const char *op_place(Arena *arena, const Op *op, const char *scope) {
    const char *file = op->at.file ? file_name(op->at.file) : "inserted",
               *also = lines_also(arena, op);
    const char *place = scope && *scope
                            ? arena_format(arena, "%s:%d%s %s", file, op->at.line, also, scope)
                            : arena_format(arena, "%s:%d%s", file, op->at.line, also);
    return c_comment(arena, place);
}
