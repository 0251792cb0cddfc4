/* Finds options that let the C compiler deviate from C's arithmetic.
 *
 *     -ffast-math              (x + y) - x may be y
 *     -fwrapv                  INT_MAX + 1 is INT_MIN
 *     -mfma, -march=haswell    a * b + c may be rounded once, unless -ffp-contract=off or -std=c17
 *                              forbids it */
#include "frontend/clang/reader.h"

#include <string.h>

/* Returns the option that frees floating point from C's rules; NULL when none is given. */
static const char *free_option(const FrontendPart *part) {
    static const char *const options[] = {"-ffast-math",
                                          "-Ofast",
                                          "-funsafe-math-optimizations",
                                          "-fassociative-math",
                                          "-freciprocal-math",
                                          "-ffinite-math-only",
                                          "-fno-signed-zeros"};
    for (int i = 0; i < part->arg_count; i++)
        for (size_t k = 0; k < sizeof options / sizeof *options; k++)
            if (!strcmp(part->args[i], options[k])) return options[k];
    return NULL;
}

/* Returns whether products and sums may be contracted, as -ffp-contract says, or else in GNU C. */
static bool may_contract(const FrontendPart *part) {
    bool standard = false, given = false, fast = false;
    for (int i = 0; i < part->arg_count; i++) {
        const char *word = part->args[i];
        if (!strcmp(word, "-ansi") || !strncmp(word, "-std=", 5))
            standard = !strcmp(word, "-ansi") || strncmp(word, "-std=gnu", 8) != 0;
        if (strncmp(word, "-ffp-contract=", 14)) continue;
        given = true;
        fast = !strcmp(word + 14, "fast");
    }
    return given ? fast : !standard;
}

static enum CXChildVisitResult find_fma(CXCursor cursor, CXCursor parent, CXClientData data) {
    static const char *const macros[] = {"__FMA__", "__FMA4__", "__AVX512F__"};
    (void)parent;
    if (clang_getCursorKind(cursor) != CXCursor_MacroDefinition) return CXChildVisit_Continue;
    CXString name = clang_getCursorSpelling(cursor);
    for (size_t i = 0; i < sizeof macros / sizeof *macros; i++)
        *(bool *)data |= !strcmp(clang_getCString(name), macros[i]);
    clang_disposeString(name);
    return CXChildVisit_Continue;
}

/* Returns whether the target has fused multiply-add, or an attribute or pragma sets a target. */
static bool has_fma(Reader *r) {
    bool found = false;
    clang_visitChildren(clang_getTranslationUnitCursor(r->tu), find_fma, &found);
    for (int i = 0; i < r->files.sources.count && !found; i++)
        found = strstr(r->files.sources.at[i]->text, "target(\"") ||
                strstr(r->files.sources.at[i]->text, "GCC target");
    return found;
}

/* Returns whether signed integers wrap around; the last option counts. */
static bool wraps(const FrontendPart *part) {
    bool found = false;
    for (int i = 0; i < part->arg_count; i++) {
        const char *word = part->args[i];
        if (!strcmp(word, "-fwrapv") || !strcmp(word, "-fno-strict-overflow")) found = true;
        if (!strcmp(word, "-fno-wrapv") || !strcmp(word, "-fstrict-overflow") ||
            !strcmp(word, "-ftrapv"))
            found = false;
    }
    return found;
}

/* Returns whether the last -O option asks for optimization; driver/language.c makes -O a macro. */
static bool optimizes(const FrontendPart *part) {
    bool found = false;
    for (int i = 0; i < part->arg_count; i++) {
        found |= !strcmp(part->args[i], "-DHETU_OPTIMIZES") || !strcmp(part->args[i], "-Ofast");
        found &= strcmp(part->args[i], "-UHETU_OPTIMIZES") != 0;
    }
    return found;
}

void clang_note_rounding(Reader *r) {
    bool first = !r->unit->part;
    r->unit->arithmetic.wraps = wraps(r->part) && (first || r->unit->arithmetic.wraps);
    r->unit->arithmetic.optimizes = optimizes(r->part) && (first || r->unit->arithmetic.optimizes);
    if (!r->unit->arithmetic.free_option) r->unit->arithmetic.free_option = free_option(r->part);
    r->unit->arithmetic.contracts |= may_contract(r->part) && has_fma(r);
}
