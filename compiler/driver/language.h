/* Options of the C compiler that change what C means: the parser of models is given them, too, or
 * they are refused. */
#ifndef DRIVER_LANGUAGE_H
#define DRIVER_LANGUAGE_H

#include "support/diag.h"

/* The parser's words for an option of gcc; NULL: it needs none. Reports an option that the parser
 * does not have. */
const char *language_option(Diag *diag, const char *option);

#endif
