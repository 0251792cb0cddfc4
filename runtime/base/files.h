/* Files that another local user may have put something in place of.
 *
 * An input is opened without waiting: a pipe that nobody writes to holds nobody up, and what is no
 * plain file is named. A file that the runtime makes for itself is new (O_EXCL), and no link is
 * followed to another. Files that only this process needs lie in its private folder, which other
 * users cannot enter.
 *
 *     char *object = private_path("arrival0.so");
 * /tmp/hetu-1000-4f1c08d2a9b37e65.4711.Xc3b2a/arrival0.so int file = file_open_own(object, &why);
 * this user's, and no other's to write
 */
#ifndef BASE_FILES_H
#define BASE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- inputs ---- */

/* What is no plain file: "it is a folder, and no file", "it is a pipe, and no file"; NULL: a plain
 * file. */
const char *file_kind(mode_t mode);

/* Opens a plain file for reading. Returns its descriptor, or -1 with the reason, which is kept
 * until the next call of this thread. */
int file_open_input(const char *path, const char **why);

/* The same as a stream; NULL with the reason. `why` may be NULL. */
FILE *file_read_input(const char *path, const char **why);

/* Opens a plain file that this user owns and nobody else may write, at no link. Returns -1 with the
 * reason. */
int file_open_own(const char *path, const char **why);

/* The same as a stream; NULL with the reason. */
FILE *file_read_own(const char *path, const char **why);

/* Whether what has a path, or the link there, can have been put there by another user: it is
 * theirs, and all may write in its folder. */
bool file_is_foreign(const char *path);

/* ---- outputs ---- */

/* Makes a new file for writing, in place of what has its name. Returns -1, and errno. */
int file_create(const char *path);

/* Opens a plain file that is there for writing, at no link, symbolic or hard. Returns -1, and
 * errno. */
int file_open_made(const char *path);

/* Makes a new file beside a path, of a name that nobody can foresee, which goes to *name; free()
 * it. NULL, and errno. */
FILE *file_create_beside(const char *path, char **name);

/* A folder that files are written into. It stays the one that was opened, whatever others make of
 * its path. */
typedef struct OpenFolder {
    int file;        // -1: none
    char path[3072]; // for files in it, as long as it is open
} OpenFolder;

/* Opens a folder, which is made with those that it is in where they are not there; through no link
 * that another user can have put on the way. Returns 0, or an errno. */
int folder_open(OpenFolder *folder, const char *path);

/* Makes a folder in an open one and opens it, at no link. Returns 0, or an errno. */
int folder_make(OpenFolder *folder, const OpenFolder *in, const char *name);

void folder_close(OpenFolder *folder);

/* The reason of an error of folder_open, and of files in the folder. */
const char *folder_error(int error);

/* From now on a file that would be larger than the process may make it (RLIMIT_FSIZE) is an error
 * of this thread, and not the end of the program by SIGXFSZ. */
void file_size_errors(void);

/* ---- folders of this user alone ---- */

/* Whether a path is a folder that this user owns and nobody else may enter. */
bool private_is(const char *path);

/* Makes a folder PARENT/HEAD.XXXXXX for this user alone. Returns 0, or an errno. */
int private_make(char *path, size_t room, const char *parent, const char *head);

/* Removes a file, or a private folder with the files in it. */
void private_remove(const char *path);

/* The path without links of a folder that this user can write in, where nobody but this user and
 * root can put something else in place of what is made there, or of the folder; free() it. NULL:
 * there is none. */
char *private_parent(const char *parent);

/* Removes what has a name HEAD... in a folder, where `dead` says of what stands behind the head
 * that its maker is dead. */
void private_sweep(const char *parent, const char *head, bool (*dead)(const char *mark));

/* ---- this process's private folder ---- */

/* The path of a file in it; free() it. NULL with the reason where there is no place for such a
 * folder. The folder's name tells of the machine, `node`, and of the process; those that dead
 * processes have left go, of whose "NODE.PROCESS" `dead` knows. */
char *private_path(const char *name, uint64_t node, bool (*dead)(const char *mark),
                   const char **why);

/* Removes the folder and the files in it, when the process ends. */
void private_close(void);

#ifdef __cplusplus
}
#endif

#endif
