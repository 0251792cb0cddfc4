/* Adds notes to clang's errors: names that were meant, headers that are missing.
 *
 *     call to undeclared function 'srand'     ->   #include <stdlib.h> declares "srand"
 *     field designator 'weight_decay' ...     ->   did you mean ".decay"? */
#include "frontend/clang/reader.h"
#include "support/text.h"

#include <string.h>

typedef Array(const char *) NameList;

/* Returns the text in quotation marks that follows `start` in a message; NULL: it has none. */
static const char *quoted_after(Arena *arena, const char *text, const char *start) {
    const char *from = strstr(text, start);
    if (!from) return NULL;
    from += strlen(start);
    return arena_substring(arena, from, strcspn(from, "'"));
}

/* ---- functions ---- */

/* {header, functions}: of the C library and POSIX, each with a blank before and after it. */
static const char *const declared[][2] = {
    {"stdlib.h", " srand rand malloc calloc realloc free exit abort atexit atoi atol atof strtol "
                 "strtoul strtoll strtod strtof qsort bsearch getenv setenv abs "},
    {"stdio.h", " printf fprintf sprintf snprintf scanf sscanf fscanf fopen fclose fread fwrite "
                "fgets fputs puts putchar getchar fflush fseek ftell perror remove rename "},
    {"string.h", " memset memcpy memmove memcmp strlen strcmp strncmp strcpy strncpy strcat strchr "
                 "strrchr strstr strdup strtok strerror "},
    {"math.h", " sqrt sqrtf exp expf log logf pow powf sin sinf cos cosf tan tanf tanh tanhf fabs "
               "fabsf floor floorf ceil ceilf round roundf fmax fmaxf fmin fminf isnan isinf "},
    {"time.h", " time clock clock_gettime nanosleep difftime localtime gmtime strftime "},
    {"unistd.h", " sleep usleep getpid read write close access isatty "},
};

static const char *header_of(Arena *arena, const char *function) {
    const char *word = arena_format(arena, " %s ", function);
    for (size_t i = 0; i < sizeof declared / sizeof *declared; i++)
        if (strstr(declared[i][1], word)) return declared[i][0];
    return NULL;
}

/* Suggests an undeclared function's header, or another function; clang suggests none for C. */
static void hint_function(Reader *r, const char *text, Position at) {
    const char *name = quoted_after(r->arena, text, "call to undeclared function '");
    const char *header = name ? header_of(r->arena, name) : NULL;
    if (!name) return;
    if (header) {
        diag_note(r->diag, at, "#include <%s> declares \"%s\"", header, name);
        return;
    }
    NameList names = {0};
    Cursors all = clang_children(r, clang_getTranslationUnitCursor(r->tu));
    for (int i = 0; i < all.count; i++) {
        const char *other = clang_string(r, clang_getCursorSpelling(all.at[i]));
        if (clang_getCursorKind(all.at[i]) == CXCursor_FunctionDecl && strcmp(other, name))
            array_push(r->arena, &names, other);
    }
    diag_suggest(r->diag, at, name, names.at, names.count);
}

/* ---- members ---- */

/* Words of other libraries for options of hetu.h; {word, option}. */
static const char *const words[][2] = {
    {"weight_decay", "decay"}, {"weightdecay", "decay"},
    {"wd", "decay"},           {"l2", "decay"},
    {"learning_rate", "lr"},   {"rate", "lr"},
    {"betas", "beta1"},        {"beta", "beta1"},
    {"epsilon", "eps"},        {"grad_clip", "clip"},
    {"clip_norm", "clip"},     {"max_norm", "clip"},
    {"max_grad_norm", "clip"}, {"kernel_size", "size"},
    {"dims", "dim"},           {"axis", "dim"},
    {"axes", "dim"},           {"keepdims", "keepdim"},
    {"keep_dims", "keepdim"},  {"momentum_decay", "momentum"},
};
enum { WORDS = sizeof words / sizeof *words };

/* Returns the members of a struct type, "ht_adamw_options" or "struct ht_adamw_options". */
static NameList members_of(Reader *r, const char *type) {
    NameList names = {0};
    const char *name = strncmp(type, "struct ", 7) ? type : type + 7;
    Cursors all = clang_children(r, clang_getTranslationUnitCursor(r->tu));
    for (int i = 0; i < all.count && !names.count; i++) {
        if (clang_getCursorKind(all.at[i]) != CXCursor_StructDecl ||
            strcmp(clang_string(r, clang_getCursorSpelling(all.at[i])), name))
            continue;
        Cursors fields = clang_children(r, all.at[i]);
        for (int f = 0; f < fields.count; f++)
            if (clang_getCursorKind(fields.at[f]) == CXCursor_FieldDecl)
                array_push(r->arena, &names,
                           clang_string(r, clang_getCursorSpelling(fields.at[f])));
    }
    return names;
}

static bool is_among(const NameList *names, const char *name) {
    for (int i = 0; i < names->count; i++)
        if (!strcmp(names->at[i], name)) return true;
    return false;
}

/* Returns the member that `word` means. The word may be misspelt, or another library's name of the
 * member. NULL: none is close. */
static const char *meant_member(Arena *arena, const NameList *members, const char *word) {
    NameList known = {0};
    for (int i = 0; i < members->count; i++) array_push(arena, &known, members->at[i]);
    for (int i = 0; i < WORDS; i++) {
        if (!is_among(members, words[i][1])) continue;
        if (!strcmp(words[i][0], word)) return words[i][1];
        array_push(arena, &known, words[i][0]);
    }
    const char *closest = diag_closest(word, known.at, known.count);
    for (int i = 0; closest && i < WORDS; i++)
        if (!strcmp(words[i][0], closest) && !is_among(members, closest)) return words[i][1];
    return closest;
}

/* For an error of an unknown member in an initializer, suggests a member and lists all. */
static void hint_member(Reader *r, const char *text, Position at) {
    const char *word = quoted_after(r->arena, text, "field designator '"),
               *type = quoted_after(r->arena, text, "any field in type '");
    if (!word || !type) return;
    NameList members = members_of(r, type);
    const char *meant = meant_member(r->arena, &members, word);
    Text all = {.arena = r->arena};
    for (int i = 0; i < members.count; i++) text_print(&all, "%s.%s", i ? ", " : "", members.at[i]);
    if (meant) diag_note(r->diag, at, "did you mean \".%s\"?", meant);
    if (members.count) diag_note(r->diag, at, "there are %s", text_bytes(&all));
}

void clang_hint(Reader *r, const char *text, Position at) {
    hint_function(r, text, at);
    hint_member(r, text, at);
    if (strstr(text, "initialization of flexible array member"))
        diag_note(r->diag, at, "options have names, as in ht_sum(x, .dim = ht_shape(-1))");
    if (strstr(text, "ht_tensor") && (strstr(text, "scalar") || strstr(text, "invalid operands") ||
                                      strstr(text, "invalid argument type")))
        diag_note(r->diag, at,
                  "a tensor is not known at compile time: use operators instead of branches and "
                  "arithmetic on it");
}
