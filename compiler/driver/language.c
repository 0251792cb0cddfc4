#include "driver/compile.h"

#include <stdbool.h>
#include <string.h>

typedef struct LanguageRule {
    const char *option; // one that ends in * stands for all options with this beginning
    const char *parser; // the option for clang; "": the same, NULL: the option is refused
} LanguageRule;

/* Options of gcc that change what C means. The first rule that matches counts. Options without a
 * rule change generated code only. */
static const LanguageRule rules[] = {
    {"-ansi", ""},
    {"-trigraphs", ""},
    {"-undef", ""},
    {"-pthread", "-D_REENTRANT=1"},
    {"-fopenmp", "-D_OPENMP=201511"},
    {"-funsigned-char", ""},
    {"-fno-unsigned-char", "-fsigned-char"},
    {"-fsigned-char", ""},
    {"-fno-signed-char", "-funsigned-char"},
    {"-fshort-enums", ""},
    {"-fno-short-enums", ""},
    {"-fshort-wchar", ""},
    {"-fms-extensions", ""},
    {"-fgnu89-inline", ""},
    {"-fpack-struct=*", ""},
    {"-fdollars-in-identifiers", ""},
    {"-fno-dollars-in-identifiers", ""},
    {"-fexec-charset=UTF-8", ""},
    {"-finput-charset=UTF-8", ""},
    {"-m64", ""},
    {"-march=*", ""},
    {"-mavx*", ""},
    {"-mno-avx*", ""},
    {"-msse*", ""},
    {"-mno-sse4*", ""},
    {"-mssse3", ""},
    {"-mfma", ""},
    {"-mno-fma", ""},
    {"-mfma4", ""},
    {"-mbmi", ""},
    {"-mbmi2", ""},
    {"-mpopcnt", ""},
    {"-mlzcnt", ""},
    {"-mf16c", ""},
    {"-maes", ""},
    {"-mpclmul", ""},
    {"-msha", ""},
    {"-mmovbe", ""},
    {"-mrdrnd", ""},
    {"-mrdseed", ""},
    {"-madx", ""},
    {"-mgfni", ""},
    {"-mvaes", ""},
    {"-mcx16", ""},
    {"-ffp-contract=*", ""},
    {"-ffast-math", ""},
    {"-Ofast", ""},
    {"-O0", "-UHETU_OPTIMIZES"},
    {"-O*", "-DHETU_OPTIMIZES"}, // clang reads the source in the same way at all levels
    {"-fwrapv", ""},
    {"-fno-wrapv", ""},
    {"-fstrict-overflow", ""},
    {"-fno-strict-overflow", ""},
    {"-ftrapv", ""},
    {"-funsafe-math-optimizations", ""},
    {"-fassociative-math", ""},
    {"-freciprocal-math", ""},
    {"-ffinite-math-only", ""},
    {"-fno-signed-zeros", ""},
    {"-fmacro-prefix-map=*", ""},
    {"-ffile-prefix-map=*", ""},
    {"-Wp,-D*", ""},
    {"-Wp,-U*", ""},
    {"-fno-signed-bitfields", NULL},
    {"-funsigned-bitfields", NULL},
    {"-fplan9-extensions", NULL},
    {"-fpack-struct", NULL},
    {"-fexec-charset=*", NULL},
    {"-fwide-exec-charset=*", NULL},
    {"-finput-charset=*", NULL},
    {"-fsso-struct=*", NULL},
    {"-fsingle-precision-constant", NULL},
    {"-frounding-math", NULL},
    {"-fexcess-precision=16", NULL},
    {"-m32", NULL},
    {"-m16", NULL},
    {"-mx32", NULL},
    {"-mlong-double-*", NULL},
    {"-malign-double", NULL},
    {"-mabi=ms", NULL},
    {"-mfpmath=387", NULL},
    {"-mfpmath=both", NULL},
    {"-mfpmath=387,sse", NULL},
    {"-mfpmath=sse,387", NULL},
    {"-mfpmath=sse+387", NULL},
    {"-ffreestanding", NULL},
    {"-fno-hosted", NULL},
    {"-fno-builtin", NULL},
    {"-fno-builtin-*", NULL},
    {"-fpreprocessed", NULL},
    {"-traditional*", NULL},
    {"-Xpreprocessor", NULL},
    {"-mms-bitfields", NULL},
};

static bool fits(const LanguageRule *rule, const char *option) {
    size_t length = strlen(rule->option);
    bool open = rule->option[length - 1] == '*';
    return open ? !strncmp(option, rule->option, length - 1) : !strcmp(option, rule->option);
}

const char *language_option(Diag *diag, const char *option) {
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (!fits(&rules[i], option)) continue;
        if (!rules[i].parser)
            diag_error(diag, (Position){0},
                       "%s changes what C means, and models cannot be evaluated under it at "
                       "compile time; leave it out, or compile files "
                       "without models by the C compiler",
                       option);
        return !rules[i].parser ? NULL : *rules[i].parser ? rules[i].parser : option;
    }
    return NULL;
}
