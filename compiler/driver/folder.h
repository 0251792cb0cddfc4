/* Writes folders: of emitted files, and of whole programs, whose runtime is compiled with the
 * program. `make` builds such a folder on machines without hetucc.
 *
 *     Makefile, gpt.*.c, gpt.*.cu   emitted; the Makefile includes runtime/program.mk
 *     MANIFEST                      the hash of each file (manifest.c)
 *     include, runtime              copies of hetucc's installed files
 *     source                        copies of the user's files (sources.c)
 */
#pragma once

#include "driver/compile.h"

/* ---- copies of the user's files (sources.c) ---- */

/* The user's files of a program: those of the command line, and those that its sources include, but
 * no system headers. Copies keep their relative places: gpt/gpt.c and common/train.h become
 * source/gpt/gpt.c and source/common/train.h. */
typedef struct UserFiles {
    Arena *arena;
    Array(const char *) paths; // absolute, ascending, each once
    const char *root;          // the deepest folder that contains all files and their -I folders
} UserFiles;

/* Finds the user's files of the command line. Returns NULL after a message. */
UserFiles *user_files_find(Driver *driver);

/* Returns the name of a file's copy, "source/gpt/gpt.c"; NULL for any other file. */
const char *user_file_name(const UserFiles *files, const char *path);

/* Returns the name of a folder's copy; NULL when the folder contains none of the files. */
const char *user_folder_name(const UserFiles *files, const char *path);

/* ---- folders (folder.c) ---- */

typedef struct FolderFile {
    const char *name; // relative to the folder
    const char *text; // NULL: a copy of the file `from`
    const char *from;
} FolderFile;

typedef struct Folder {
    Driver *driver;
    const UserFiles *user;
    Array(FolderFile) files;
    const char *program; // the target of make
} Folder;

/* Returns a program's folder for `ranks` ranks, not yet written; NULL after a message. */
Folder *folder_create(Driver *driver, const UserFiles *user, const EmittedFiles *emitted,
                      const char *program, int ranks);

/* Returns a folder of emitted files only, not yet written. */
Folder *folder_of_emitted(Driver *driver, const EmittedFiles *emitted);

/* Writes all files; false after a message. Files that did not change keep their time, and copies
 * get the time of their originals, so that make builds only what changed. */
bool folder_write(const Folder *folder, const char *path);

/* Writes the folder, builds the program in it, copies the program to `written`, which output_begin
 * gave for `program`. Keeps the folder only with --save-temps. Returns the exit status. */
int folder_build(const Folder *folder, const char *written, const char *program);

/* ---- manifests (manifest.c) ---- */

#define MANIFEST_NAME "MANIFEST"

/* Adds the manifest, which names all files that the folder has. */
void manifest_add(Folder *folder);

/* Returns the manifest of an earlier emission into the folder at `path`; "": there is none. */
const char *manifest_read(const Folder *folder, const char *path);

/* Removes from the folder at `path` what the earlier manifest names and this emission does not
 * write; warns of a file that has been changed since, and keeps it. */
void manifest_remove_old(const Folder *folder, const char *path, const char *manifest);
