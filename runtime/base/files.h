/* Opens and creates files safely where others may write (symbolic links, planted files).
 *
 * Inputs are opened without blocking; a pipe, folder or device is an error. Files that the runtime
 * creates are new (O_EXCL), and links are not followed. Temporary files are in the process's
 * private folder, which other users cannot enter.
 *
 *     char *object = private_path("arrival0.so", node, dead, &why);
 *     // "/tmp/hetu-1000-4f1c08d2a9b37e65.4711.Xc3b2a/arrival0.so"
 *     int file = file_open_own(object, &why);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- inputs ---- */

/* Returns why a file of this mode is not plain: "it is a folder, and no file"; NULL: plain. */
const char *file_kind(mode_t mode);

/* Opens a plain file for reading. Returns -1 with the reason, kept until the thread's next call. */
int file_open_input(const char *path, const char **why);

/* Does the same as file_open_input, but returns a stream. On failure, returns NULL and sets *why
 * unless `why` is NULL. */
FILE *file_read_input(const char *path, const char **why);

/* Opens a plain file of this user that no other may write; no links. Returns -1 with the reason. */
int file_open_own(const char *path, const char **why);

/* Does the same as file_open_own, but returns a stream, or NULL with the reason. */
FILE *file_read_own(const char *path, const char **why);

/* Returns whether a path names a folder that no other user can have put there. Returns false if all
 * users may write in its parent, and the owner of the folder, or of the link to it, is neither this
 * user nor the parent's owner. If other users change the path meanwhile, the answer holds before or
 * after the change: the entry is looked at once. */
bool folder_is_trusted(const char *path);

/* Returns whether another user can have chosen what a path leads to. This is possible if nothing
 * exists at the path yet. It is also possible if another user owns a component of the path or of a
 * link on it, in a folder that all users may write. Files of the owner of the running program's
 * file are trusted. */
bool file_is_led(const char *path);

/* ---- outputs ---- */

/* Creates a file for writing; replaces a file of that name. Returns -1 and sets errno on error. */
int file_create(const char *path);

/* Opens a plain file for writing. Refuses symbolic and hard links. Sets errno if it returns -1. */
int file_open_made(const char *path);

/* Creates a new file of random name in the folder of `path`, unless another user's link leads
 * there. *name is its path, free() it. Returns NULL and sets errno on failure, for folder_error. */
FILE *file_create_beside(const char *path, char **name);

/* An open folder for output files, which stays the same if another user replaces its path. */
typedef struct OpenFolder {
    int file;        // -1: none
    char path[3072]; // prefix for paths of files in the folder while it is open
} OpenFolder;

/* Opens a folder; creates it and its parents if they are missing. Follows no link that another user
 * can have made. Returns 0, or an errno. */
int folder_open(OpenFolder *folder, const char *path);

/* Creates a folder in an open folder and opens it, following no links. Returns 0, or an errno. */
int folder_make(OpenFolder *folder, const OpenFolder *in, const char *name);

void folder_close(OpenFolder *folder);

/* Returns the message for an error of folder_open, or of a file in the folder. */
const char *folder_error(int error);

/* Blocks SIGXFSZ in this thread, so that files beyond RLIMIT_FSIZE are mere write errors. */
void file_size_errors(void);

/* ---- private folders ---- */

/* Returns whether a path is a folder that this user owns and no other user may enter. */
bool private_is(const char *path);

/* Creates a private folder PARENT/HEAD.XXXXXX. Writes its name to `path`. Returns 0 or an errno. */
int private_make(char *path, size_t room, const char *parent, const char *head);

/* Removes a file, or a private folder with its contents, down to 4 levels of subfolders. */
void private_remove(const char *path);

/* Returns the path of `parent` without links; free() it. Returns NULL unless this user can write
 * there, and only this user and root can replace the folder or files in it. */
char *private_parent(const char *parent);

/* Removes a folder's entries with names HEAD + MARK for which dead(MARK) is true. */
void private_sweep(const char *parent, const char *head, bool (*dead)(const char *mark));

/* ---- this process's private folder ---- */

/* Returns the path of a file in the private folder; free() it. Returns NULL and sets *why if no
 * folder can be created. The folder's name contains "NODE.PROCESS", and folders of processes that
 * `dead` reports as dead are removed. */
char *private_path(const char *name, uint64_t node, bool (*dead)(const char *mark),
                   const char **why);

/* Removes the folder and the files in it, when the process ends. */
void private_close(void);

#ifdef __cplusplus
}
#endif
