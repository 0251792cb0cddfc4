/* Response files: @FILE on a command line stands for the words in FILE, as C compilers read it. */
#ifndef DRIVER_RESPONSE_H
#define DRIVER_RESPONSE_H

#include "support/arena.h"

/* The words of a command line, `words` with NULL behind the last, with those of files in place of
 * @FILE: words are parted by white space, may stand in single or double quotes, and a backslash
 * takes the next character as it is. A file may name others. What names no file that can be read
 * stays as it is. A NULL stands behind the last. Files that name themselves end the process with
 * status 1. */
char **response_expand(Arena *arena, char **words);

#endif
