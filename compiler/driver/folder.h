/* Folders that hetucc writes: of emitted files, and a program as a folder of its own, for back ends
 * whose runtime goes with the program as source. `make` builds it where hetucc is not installed.
 *
 *     Makefile, gpt.*.c, gpt.*.cu   written by hetucc; the Makefile lists what to build and
 *                                   includes runtime/program.mk, which says how
 *     include, runtime              copies of what hetucc is installed with
 *     source                        copies of the user's files (sources.c)
 */
#ifndef DRIVER_FOLDER_H
#define DRIVER_FOLDER_H

#include "driver/compile.h"

/* ---- copies of the user's files (sources.c) ---- */

/* The user's files of a program: those that the command line names, and all that they include but
 * system headers.
 *
 * A folder that stands alone has copies of them, placed to each other as they were: gpt/gpt.c and
 * common/train.h are source/gpt/gpt.c and source/common/train.h there.
 */
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

/* ---- folders (folder.c) ---- */

typedef struct FolderFile {
    const char *name; // in the folder
    const char *text; // NULL: a copy
    const char *from;
} FolderFile;

typedef struct Folder {
    Driver *driver;
    const UserFiles *user;
    Array(FolderFile) files;
    const char *program; // what make builds
} Folder;

/* The folder for emitted files that make a program for `ranks` ranks. NULL after a message. */
Folder *folder_create(Driver *driver, const UserFiles *user, const EmittedFiles *emitted,
                      const char *program, int ranks);

/* One with emitted files alone. */
Folder *folder_of_emitted(Driver *driver, const EmittedFiles *emitted);

/* Writes all files, or none after a message. Those that are as they were keep their time, and
 * copies have that of what they are copied from, so that make builds what has changed. */
bool folder_write(const Folder *folder, const char *path);

/* Writes the folder, builds `program` there, and removes the folder at the end unless it shall be
 * kept (--save-temps). The exit status. */
int folder_build(const Folder *folder, const char *program);

#endif
