/* Folders that hetucc writes: of emitted files, and a program as a folder of its own, for back ends
 * whose runtime goes with the program as source. `make` builds it where hetucc is not installed.
 *
 *     Makefile, gpt.*.c, gpt.*.cu   written by hetucc; the Makefile lists what to build and
 *                                   includes runtime/program.mk, which says how
 *     include, runtime              copies of what hetucc is installed with
 *     source                        copies of the user's files (driver/sources.h)
 */
#ifndef DRIVER_FOLDER_H
#define DRIVER_FOLDER_H

#include "driver/sources.h"

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

/* Writes the folder, builds `program` there, and takes it to `written`, which output_begin gave.
 * Removes the folder at the end unless it shall be kept (--save-temps). The exit status. */
int folder_build(const Folder *folder, const char *written, const char *program);

#endif
