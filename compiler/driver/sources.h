/* The user's files of a program: those that the command line names, and all that they include but
 * system headers.
 *
 * A folder that stands alone has copies of them, placed to each other as they were: gpt/gpt.c and
 * common/train.h are source/gpt/gpt.c and source/common/train.h there.
 */
#ifndef DRIVER_SOURCES_H
#define DRIVER_SOURCES_H

#include "driver/compile.h"

typedef struct UserFiles {
    Arena *arena;
    Array(const char *) paths; // absolute, ascending, each once
    const char *root;          // the folder that has all of them
} UserFiles;

/* Finds the files of the command line. NULL after a message. */
UserFiles *user_files_find(Driver *driver);

/* How a file is called in the copy, "source/gpt/gpt.c"; NULL when it is none of the files. */
const char *user_file_name(const UserFiles *files, const char *path);

/* The same for a folder; NULL when none of the files is in it. */
const char *user_folder_name(const UserFiles *files, const char *path);

#endif
