/* Refuses programs that depend on macros which the C compiler and clang predefine differently,
 * since the two would read different programs.
 *
 *     #if __GNUC__ >= 12         12 in gcc 12, 4 in clang: refused
 *     #if __GNUC__ >= 4          true in both, and so is defined(__GNUC__)
 *     #ifdef __clang__           refused */
#include "frontend/clang/reader.h"

#include <stdlib.h>
#include <string.h>

typedef struct Predefined {
    const char *name; // a name that ends in * stands for all names that begin with it
    bool defined;     // both compilers define it, with different values
    long least;       // a lower bound of the value in every C compiler; 0: none
} Predefined;

/* The predefined macros that differ. `name` may be a list with blanks; all names begin with _. */
static const Predefined predefined[] = {
    {"__GNUC__", true, 4},
    {"__BIGGEST_ALIGNMENT__", true, 16},
    {"__GNUC_MINOR__ __GNUC_PATCHLEVEL__ __VERSION__ __GXX_ABI_VERSION __INT_FAST16_* "
     "__INT_FAST32_* __UINT_FAST16_* __UINT_FAST32_* __has_attribute __has_builtin "
     "__has_c_attribute __has_include __has_include_next __FINITE_MATH_ONLY__",
     true, 0},
    {"__has_feature __has_extension __has_warning __has_declspec_attribute __is_identifier "
     "__clang* __CLANG* __llvm__ __OPTIMIZE__ __OPTIMIZE_SIZE__ __NO_INLINE__ __FAST_MATH__ "
     "__NO_MATH_ERRNO__ __NO_MATH_INLINES __NO_SIGNED_ZEROS__ __NO_TRAPPING_MATH__ "
     "__RECIPROCAL_MATH__ __ASSOCIATIVE_MATH__ __SUPPORT_SNAN__ __FP_FAST_FMA* __EXCEPTIONS "
     "__SSP* __CET__ _OPENACC __ABM__ __INVPCID__ __PRETTY_FUNCTION__ __LITTLE_ENDIAN__ "
     "__FLOAT_WORD_ORDER__ __SIZEOF_FLOAT80__ __FLOAT128__ __POINTER_WIDTH__ __BOOL_WIDTH__ "
     "__SCHAR_WIDTH__ __LLONG_WIDTH__ __LONG_LONG_WIDTH__ __UINTMAX_WIDTH__ __UINTPTR_WIDTH__ "
     "__BITINT_MAXWIDTH__ __WINT_UNSIGNED__ __FPCLASS_* __MEMORY_SCOPE_* __OPENCL_* __OBJC_* "
     "__CONSTANT_CFSTRINGS__ __STDC_EMBED_* __has_embed __has_constexpr_builtin __building_module "
     "__ATOMIC_HLE_* __MMX_WITH_SSE__ __HAVE_SPECULATION_SAFE_VALUE __GNUC_EXECUTION_CHARSET_NAME "
     "__GNUC_WIDE_EXECUTION_CHARSET_NAME __tune_* __SANITIZE_* __PIC__ __pic__ __PIE__ __pie__ "
     "__DEC* __FLT16_* __FLT32* __FLT64* __FLT128_* __GCC_*",
     false, 0},
};

/* In each compiler, C revisions after the last standard have another number. */
static const Predefined revision = {"__STDC_VERSION__", true, 202000};

/* A macro of the user that uses the predefined macro `by`, directly or through other macros. */
typedef struct Tainted {
    const char *name;
    const Predefined *by;
} Tainted;

typedef struct Search {
    Reader *r;
    bool revised; // the program selects a C revision after the last standard
    Array(Tainted) tainted;
} Search;

/* A file: its tokens, its text, and the ranges that the preprocessor skips. */
typedef struct FileTokens {
    CXToken *at;
    unsigned count;
    const char *text;
    const CXSourceRangeList *skipped;
} FileTokens;

/* Returns whether the word of `length` bytes is `name` or, if it ends in *, begins `name`. */
static bool is_word_of(const char *word, size_t length, const char *name) {
    bool begins_so = word[length - 1] == '*';
    return begins_so ? !strncmp(name, word, length - 1)
                     : !strncmp(name, word, length) && !name[length];
}

static bool fits(const Predefined *macro, const char *name) {
    return is_word_of(macro->name, strlen(macro->name), name);
}

static const Predefined *find(const Search *search, const char *name) {
    for (int i = 0; i < search->tainted.count; i++)
        if (!strcmp(search->tainted.at[i].name, name)) return search->tainted.at[i].by;
    if (*name != '_') return NULL;
    for (size_t i = 0, length; i < sizeof predefined / sizeof *predefined; i++)
        for (const char *word = predefined[i].name; *word; word += length + (word[length] == ' ')) {
            length = strcspn(word, " ");
            if (!is_word_of(word, length, name)) continue;
            Predefined *found = arena_copy(search->r->arena, &predefined[i], sizeof *found);
            found->name = arena_substring(search->r->arena, word, length);
            return found;
        }
    return search->revised && fits(&revision, name) ? &revision : NULL;
}

static const char *spelling(const Search *search, const FileTokens *tokens, unsigned i) {
    return i < tokens->count
               ? clang_string(search->r, clang_getTokenSpelling(search->r->tu, tokens->at[i]))
               : "";
}

static unsigned offset_of(CXSourceLocation location) {
    unsigned offset;
    clang_getSpellingLocation(location, NULL, NULL, NULL, &offset);
    return offset;
}

/* Return the offsets of a token's start and end. */
static unsigned begin_of(const Search *search, const FileTokens *tokens, unsigned i) {
    return offset_of(clang_getRangeStart(clang_getTokenExtent(search->r->tu, tokens->at[i])));
}

static unsigned end_of(const Search *search, const FileTokens *tokens, unsigned i) {
    return offset_of(clang_getRangeEnd(clang_getTokenExtent(search->r->tu, tokens->at[i])));
}

/* Returns whether a token begins a line, after lines with a final backslash were joined. */
static bool begins_line(const Search *search, const FileTokens *tokens, unsigned i) {
    if (!i) return true;
    for (unsigned at = end_of(search, tokens, i - 1), end = begin_of(search, tokens, i); at < end;
         at++)
        if (tokens->text[at] == '\n' && tokens->text[at - 1] != '\\') return true;
    return false;
}

/* Returns whether the preprocessor skips the text, or directive, at the offset `begin`. */
static bool is_skipped(const FileTokens *tokens, unsigned begin) {
    for (unsigned i = 0; i < tokens->skipped->count; i++)
        if (offset_of(clang_getRangeStart(tokens->skipped->ranges[i])) < begin &&
            begin < offset_of(clang_getRangeEnd(tokens->skipped->ranges[i])))
            return true;
    return false;
}

/* Returns whether NAME COMPARISON NUMBER has the same result for every value from `least` on. */
static bool is_certain(const Predefined *macro, const char *comparison, const char *number) {
    char *end;
    long limit = strtol(number, &end, 0);
    bool read = end != number && strspn(end, "lLuU") == strlen(end) && macro->least;
    if (!strcmp(comparison, ">=") || !strcmp(comparison, "<")) return read && limit <= macro->least;
    return (!strcmp(comparison, ">") || !strcmp(comparison, "<=")) && read && limit < macro->least;
}

/* Returns whether __has_include asks for a header that may belong to one compiler alone. */
static bool asks_for_own_header(const Search *search, const FileTokens *tokens, unsigned i) {
    static const char *const own[] = {"omp",       "acc_",    "openacc", "quadmath",  "arm_",
                                      "stdckdint", "cpuid",   "cet",     "sanitizer", "__",
                                      "opencl",    "altivec", "gcov",    "stdbit",    "unwind"};
    bool found = strcmp(spelling(search, tokens, i + 1), "(") != 0;
    if (*spelling(search, tokens, i + 2) == '"') return found;
    const char *name = spelling(search, tokens, i + 3);
    for (size_t n = 0; n < sizeof own / sizeof *own; n++)
        found |= !strncmp(name, own[n], strlen(own[n]));
    return found || strstr(name, "intrin");
}

/* Returns whether a use in a condition, such as defined(), has one result in both compilers. */
static bool is_same(const Search *search, const FileTokens *tokens, unsigned i,
                    const Predefined *macro) {
    const char *before = spelling(search, tokens, i - 1),
               *further = i > 1 ? spelling(search, tokens, i - 2) : "";
    bool asked = !strcmp(before, "defined") || !strcmp(before, "ifdef") ||
                 !strcmp(before, "ifndef") || (!strcmp(before, "(") && !strcmp(further, "defined"));
    bool own = !fits(macro, spelling(search, tokens, i)); // a macro of the user's
    if (asked) return macro->defined || own;
    if (!own && !strcmp(macro->name, "__has_include"))
        return !asks_for_own_header(search, tokens, i);
    return is_certain(macro, spelling(search, tokens, i + 1), spelling(search, tokens, i + 2));
}

static void refuse(Search *search, const FileTokens *tokens, unsigned i, const Predefined *macro) {
    const char *name = spelling(search, tokens, i);
    Position at = clang_position(search->r, clang_getTokenLocation(search->r->tu, tokens->at[i]));
    const char *through =
        !fits(macro, name) ? arena_format(search->r->arena, " (through %s)", macro->name) : "";
    diag_error(
        search->r->diag, at,
        "%s%s is not the same in the C compiler and in hetucc's parser, so that each would read "
        "another program; ask for a macro of your own (-D), or move this to a file without models",
        name, through);
}

/* Pragmas that only one of the two compilers has. */
static const char *const own_pragmas[] = {"ms_struct", "options", "scalar_storage_order"};

/* Returns whether a token is a literal that names options of floating-point arithmetic. */
static bool names_arithmetic(const char *literal) {
    return *literal == '"' && (strstr(literal, "fast") || strstr(literal, "math") ||
                               strstr(literal, "signed-zeros") || strstr(literal, "wrapv") ||
                               strstr(literal, "overflow") || strstr(literal, "precision"));
}

/* Returns the index of the first token that only one of the two compilers understands, or `end`.
 *
 *     #pragma ms_struct on                     struct layouts, in clang only, as _Pragma too
 *     __attribute__((optimize("fast-math")))   arithmetic, in the C compiler only */
static unsigned own_meaning(const Search *search, const FileTokens *tokens, unsigned first,
                            unsigned end) {
    bool pragma = !strcmp(spelling(search, tokens, first), "#") &&
                  !strcmp(spelling(search, tokens, first + 1), "pragma");
    for (size_t k = 0; pragma && k < sizeof own_pragmas / sizeof *own_pragmas; k++)
        if (!strcmp(spelling(search, tokens, first + 2), own_pragmas[k])) return first + 2;
    for (unsigned i = first; i + 1 < end; i++) {
        const char *word = spelling(search, tokens, i);
        const char *literal = !strcmp(word, "_Pragma") ? spelling(search, tokens, i + 2) : "";
        for (size_t k = 0; k < sizeof own_pragmas / sizeof *own_pragmas; k++)
            if (*literal && !strncmp(literal + 1, own_pragmas[k], strlen(own_pragmas[k])))
                return i + 2;
        if (strstr(literal, "optimize") && names_arithmetic(literal)) return i + 2;
        bool named = !strcmp(word, "optimize") || !strcmp(word, "__optimize__");
        for (unsigned k = i + 1; named && k < end && strchr("(\",", *spelling(search, tokens, k));
             k++)
            if (names_arithmetic(spelling(search, tokens, k))) return i;
    }
    return end;
}

static void refuse_meaning(Search *search, const FileTokens *tokens, unsigned i) {
    diag_error(search->r->diag,
               clang_position(search->r, clang_getTokenLocation(search->r->tu, tokens->at[i])),
               "%s does not mean the same to the C compiler and to hetucc's parser; leave it out, "
               "or move it to a file without models",
               spelling(search, tokens, i));
}

/* Searches a line, the tokens [first, end), as search_file does a file. True: a macro is new. */
static bool search_line(Search *search, const FileTokens *tokens, unsigned first, unsigned end,
                        bool refuses) {
    bool directive = !strcmp(spelling(search, tokens, first), "#"), found = false;
    const char *kind = directive ? spelling(search, tokens, first + 1) : "";
    bool defines = !strcmp(kind, "define"),
         condition = !strncmp(kind, "if", 2) || !strncmp(kind, "elif", 4);
    bool passed = directive && !defines && !condition && strcmp(kind, "pragma") != 0;
    if (passed || is_skipped(tokens, begin_of(search, tokens, first))) return false;
    unsigned own = own_meaning(search, tokens, first, end);
    if (refuses && own < end) refuse_meaning(search, tokens, own);
    for (unsigned i = first + (directive ? 2 : 0); i < end; i++) {
        enum CXTokenKind token = clang_getTokenKind(tokens->at[i]);
        bool named = token == CXToken_Identifier || token == CXToken_Keyword;
        const Predefined *macro = named ? find(search, spelling(search, tokens, i)) : NULL;
        if (!macro || (condition && is_same(search, tokens, i, macro))) continue;
        if (!defines && refuses) refuse(search, tokens, i, macro);
        const char *name = defines ? spelling(search, tokens, first + 2) : NULL;
        if (name && i > first + 2 && !find(search, name)) {
            array_push(search->r->arena, &search->tainted, (Tainted){name, macro});
            found = true;
        }
    }
    return found;
}

/* Searches a file. Records the file's macros whose definitions use a macro that differs; returns
 * whether a recorded macro is new. With `refuses`, reports uses. */
static bool search_file(Search *search, const Source *source, bool refuses) {
    Reader *r = search->r;
    CXFile file = clang_getFile(r->tu, source->file);
    if (!file) return false;
    CXSourceRange all =
        clang_getRange(clang_getLocationForOffset(r->tu, file, 0),
                       clang_getLocationForOffset(r->tu, file, (unsigned)source->length));
    CXSourceRangeList *skipped = clang_getSkippedRanges(r->tu, file);
    FileTokens tokens = {.text = source->text, .skipped = skipped};
    bool found = false;
    clang_tokenize(r->tu, all, &tokens.at, &tokens.count);
    for (unsigned first = 0, end; first < tokens.count; first = end) {
        for (end = first + 1; end < tokens.count && !begins_line(search, &tokens, end);) end++;
        found |= search_line(search, &tokens, first, end, refuses);
    }
    clang_disposeTokens(r->tu, tokens.at, tokens.count);
    clang_disposeSourceRangeList(skipped);
    return found;
}

/* Returns whether a file may use macros that differ. Most files do not, and are not tokenized. */
static bool is_suspect(const Search *search, const Source *source) {
    for (int i = 0; i < search->tainted.count; i++)
        if (strstr(source->text, search->tainted.at[i].name)) return true;
    for (size_t i = 0, length; i < sizeof predefined / sizeof *predefined; i++)
        for (const char *word = predefined[i].name; *word;
             word += length + strspn(word + length, "* ")) {
            length = strcspn(word, "* ");
            if (memmem(source->text, (size_t)source->length, word, length)) return true;
        }
    for (size_t i = 0; i < sizeof own_pragmas / sizeof *own_pragmas; i++)
        if (strstr(source->text, own_pragmas[i])) return true;
    return strstr(source->text, "optimize") ||
           (search->revised && strstr(source->text, revision.name));
}

static bool is_revised(const FrontendPart *part) {
    const char *standard = "";
    for (int i = 0; i < part->arg_count; i++)
        if (!strncmp(part->args[i], "-std=", 5)) standard = part->args[i] + 5;
    return !strcmp(standard, "c2x") || !strcmp(standard, "gnu2x") || !strcmp(standard, "c23") ||
           !strcmp(standard, "gnu23");
}

void clang_check_predefined(Reader *r) {
    Search search = {.r = r, .revised = is_revised(r->part)};
    for (int refuses = 0; refuses < 2; refuses++)
        for (bool found = true; found;) {
            found = false;
            for (int i = 0; i < r->files.sources.count; i++) {
                const Source *source = r->files.sources.at[i];
                bool library = r->library && !strncmp(source->file, r->library, strlen(r->library));
                if (!library && is_suspect(&search, source))
                    found |= search_file(&search, source, refuses);
            }
        }
}
