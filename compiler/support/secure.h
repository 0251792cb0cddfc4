/* Files and folders that other users of the machine cannot replace.
 *
 *     const char *wrong = secure_parent_wrong("/tmp");    NULL: the folder is safe
 *     ... mkdtemp below it, mode 0700 ...
 *     FILE *file = secure_create(path);    fails when the path exists, follows no link
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Returns whether a path is a folder of this user that nobody else may enter. */
bool secure_is_private(const char *path);

/* Returns why other users could replace files in a folder or a folder on its path, or why this user
 * cannot write there; NULL: the folder is safe. The text is valid until the next call. */
const char *secure_parent_wrong(const char *parent);

/* Returns whether another user may have created the file or link at a path, or can create it: all
 * may write to the folder, and the path does not exist, or is neither this user's nor root's. */
bool secure_is_foreign(const char *path);

/* Returns whether another user can have chosen where a path leads, by putting a link into a folder
 * where all may write; true also when links lead in a circle. */
bool secure_is_led(const char *path);

/* Opens a folder and returns its descriptor; -1, with the reason in *why, also when another user's
 * link leads to the folder. Writes to `inside` a prefix for paths of its files, which stays valid
 * while the descriptor is open, even if the folder's path is replaced. */
int secure_enter(const char *folder, char *inside, size_t room, const char **why);

/* Sets the mode of a plain file with one name; follows no link. Returns false with errno set. */
bool secure_permit(const char *path, unsigned mode);

/* Removes a private folder and the files in it. Does nothing when the folder is not private. */
void secure_remove(const char *path);

/* Creates a file for writing, which must not exist. NULL, with errno set, on failure. */
FILE *secure_create(const char *path);

/* Opens an existing plain file and empties it; follows no link. NULL, with errno, on failure. */
FILE *secure_rewrite(const char *path);

/* Returns whether a path is an open descriptor (/dev/stdout) or in /proc: not to be replaced. */
bool secure_is_descriptor(const char *path);

/* Returns why an output cannot be written, or NULL: another user's link leads to its folder; or it
 * is a folder, a socket, a pipe that nobody reads, or another user's pipe or device. */
const char *secure_output_wrong(const char *path);

/* Replaces a plain file, or writes to any other output. On failure, false with *why set. */
bool secure_write(const char *path, const char *bytes, size_t size, const char **why);
