/* Options of gcc that change what C means. Options that are not listed here change generated code
 * only. A word that ends in * stands for all options with this beginning. */
#include "driver/compile.h"

#include <stdbool.h>
#include <string.h>

/* Options that clang has, too. The search for an option begins with these. */
static const char same[] =
    "-ansi -trigraphs -undef -funsigned-char -fsigned-char -fshort-enums -fno-short-enums "
    "-fshort-wchar -fms-extensions -fgnu89-inline -fpack-struct=* -fdollars-in-identifiers "
    "-fno-dollars-in-identifiers -fexec-charset=UTF-8 -finput-charset=UTF-8 -m64 -march=* -mavx* "
    "-mno-avx* -msse* -mno-sse4* -mssse3 -mfma -mno-fma -mfma4 -mbmi -mbmi2 -mpopcnt -mlzcnt "
    "-mf16c -maes -mpclmul -msha -mmovbe -mrdrnd -mrdseed -madx -mgfni -mvaes -mcx16 "
    "-ffp-contract=* -ffast-math -Ofast -fwrapv -fno-wrapv -fstrict-overflow -fno-strict-overflow "
    "-ftrapv -funsafe-math-optimizations -fassociative-math -freciprocal-math -ffinite-math-only "
    "-fno-signed-zeros -fmacro-prefix-map=* -ffile-prefix-map=* -Wp,-D* -Wp,-U*";

/* Pairs of an option and what clang gets instead. A macro stands for -O, which clang never gets. */
static const char *const translated[][2] = {
    {"-pthread", "-D_REENTRANT=1"},
    {"-fopenmp", "-D_OPENMP=201511"},
    {"-fno-unsigned-char", "-fsigned-char"},
    {"-fno-signed-char", "-funsigned-char"},
    {"-O0", "-UHETU_OPTIMIZES"},
    {"-O*", "-DHETU_OPTIMIZES"},
};

/* Options that clang does not have. */
static const char refused[] =
    "-fno-signed-bitfields -funsigned-bitfields -fplan9-extensions -fpack-struct -fexec-charset=* "
    "-fwide-exec-charset=* -finput-charset=* -fsso-struct=* -fsingle-precision-constant "
    "-frounding-math -fexcess-precision=16 -m32 -m16 -mx32 -mlong-double-* -malign-double "
    "-mabi=ms -mfpmath=387 -mfpmath=both -mfpmath=387,sse -mfpmath=sse,387 -mfpmath=sse+387 "
    "-ffreestanding -fno-hosted -fno-builtin -fno-builtin-* -fpreprocessed -traditional* "
    "-Xpreprocessor -mms-bitfields";

/* Returns whether an option is among words with blanks between; "-m*" is any with this start. */
static bool is_listed(const char *option, const char *words) {
    for (size_t length; *words; words += length + (words[length] == ' ')) {
        length = strcspn(words, " ");
        bool begins_so = words[length - 1] == '*';
        if (begins_so ? !strncmp(option, words, length - 1)
                      : !strncmp(option, words, length) && !option[length])
            return true;
    }
    return false;
}

const char *language_option(Diag *diag, const char *option) {
    if (is_listed(option, same)) return option;
    for (size_t i = 0; i < sizeof translated / sizeof *translated; i++)
        if (is_listed(option, translated[i][0])) return translated[i][1];
    if (is_listed(option, refused))
        diag_error(diag, (Position){0},
                   "%s changes what C means, and models cannot be evaluated under it at compile "
                   "time; leave it out, or compile files without models by the C compiler",
                   option);
    return NULL;
}
