/* Files and folders that other users of the machine cannot replace.
 *
 *     const char *parent = secure_parent();    TMPDIR, /tmp or /dev/shm
 *     ... mkdtemp below it, mode 0700 ...
 *     FILE *file = secure_create(path);        fails when the path exists, follows no link
 */
#ifndef SUPPORT_SECURE_H
#define SUPPORT_SECURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Returns whether a path is a folder of this user that nobody else may enter. */
bool secure_is_private(const char *path);

/* Returns why other users could replace files in a folder, or a folder on its path; NULL: they
 * cannot. The text is valid until the next call. */
const char *secure_parent_wrong(const char *parent);

/* Returns whether another user can create a file or link, or has created it: that user owns it or
 * it does not exist, in a folder where all may write. */
bool secure_is_foreign(const char *path);

/* Whether another user can have chosen where a path leads: by a link, or by a folder with links,
 * which they have put where all may write. */
bool secure_is_led(const char *path);

/* Opens a folder to which no other user's link may lead, and writes to `inside` the prefix for
 * paths of its files, which holds while the folder is open even if its path is replaced. Returns -1
 * with the reason on failure. */
int secure_enter(const char *folder, char *inside, size_t room, const char **why);

/* Sets the permissions of an existing plain file; follows no link. False, with errno, on failure.
 * */
bool secure_permit(const char *path, unsigned mode);

/* Removes a private folder and its content; removes nothing else. */
void secure_remove(const char *path);

/* Creates a file for writing, which must not exist. NULL, with errno set, on failure. */
FILE *secure_create(const char *path);

/* Opens an existing plain file for writing; follows no link. NULL, with errno set, on failure. */
FILE *secure_rewrite(const char *path);

/* Returns whether a path names an open descriptor of this process, as /dev/stdout does; such a path
 * cannot be replaced by a file. */
bool secure_is_descriptor(const char *path);

/* Returns why an output cannot be written: another user's link leads to its folder, or it is no
 * plain file but a folder, another user's file, or a pipe without reader; NULL: it can. */
const char *secure_output_wrong(const char *path);

/* Writes an output. A plain file is replaced when it is complete, any other is written to directly.
 * False with the reason. */
bool secure_write(const char *path, const char *bytes, size_t size, const char **why);

#endif
