/* Folders and files that tools make for themselves on machines that other users work on, too:
 * nobody else can put something in place of them.
 */
#ifndef SUPPORT_SECURE_H
#define SUPPORT_SECURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Whether a path is a folder that this user owns and nobody else may enter. */
bool secure_is_private(const char *path);

/* Why other users could put something in place of what is made in a folder, or of a folder on the
 * way; NULL: they cannot. The text is kept until the next call. */
const char *secure_parent_wrong(const char *parent);

/* Whether what has a path, or the link there, can be put there by another user: it is theirs or not
 * there, and all may write in its folder. */
bool secure_is_foreign(const char *path);

/* Whether another user can have chosen where a path leads: by a link, or by a folder with links,
 * which they have put where all may write. */
bool secure_is_led(const char *path);

/* Opens a folder, to which no link of another user's may lead, and writes to `inside` what paths of
 * its files begin with while it is open, whatever is put in its place. -1 with the reason. */
int secure_enter(const char *folder, char *inside, size_t room, const char **why);

/* Gives a plain file that is there permissions, at no link; false, and errno. */
bool secure_permit(const char *path, unsigned mode);

/* Removes a private folder and what is in it. Nothing else is removed. */
void secure_remove(const char *path);

/* Opens a file for writing that must not be there yet; NULL, and errno. */
FILE *secure_create(const char *path);

/* Opens a plain file that is there for writing, at no link; NULL, and errno. */
FILE *secure_rewrite(const char *path);

/* Whether a path names what this process has open, as /dev/stdout does, so that nothing may be put
 * in its place. */
bool secure_is_descriptor(const char *path);

/* Why an output is not written to: another user's link leads to its folder, or it is no plain file,
 * but a folder, another user's, a pipe that nobody reads; NULL: it can be. */
const char *secure_output_wrong(const char *path);

/* Writes an output, which has its name when it is whole; what is no plain file is written to as it
 * is. False with the reason. */
bool secure_write(const char *path, const char *bytes, size_t size, const char **why);

#endif
