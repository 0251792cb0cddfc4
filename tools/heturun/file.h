/* Small files of text. */
#ifndef HETURUN_FILE_H
#define HETURUN_FILE_H

#include "support/diag.h"

/* The text of a file, of which diagnostics show lines; NULL after an error. */
char *file_text(Arena *arena, Diag *diag, const char *path);

#endif
