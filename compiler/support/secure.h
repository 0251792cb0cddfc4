/* Folders and files that tools make for themselves on machines that other users work on, too: nobody else can put something in place of
 * them.
 */
#ifndef SUPPORT_SECURE_H
#define SUPPORT_SECURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Whether a path is a folder that this user owns and nobody else may enter. */
bool secure_is_private(const char *path);

/* Why other users could put something in place of what is made in a folder; NULL: they cannot. */
const char *secure_parent_wrong(const char *parent);

/* The first of TMPDIR, /tmp and /dev/shm where they cannot; NULL: none. */
const char *secure_parent(void);

/* Removes a private folder and what is in it. Nothing else is removed. */
void secure_remove(const char *path);

/* Opens a file for writing that must not be there yet; NULL, and errno. */
FILE *secure_create(const char *path);

/* Opens a plain file that is there for writing, at no link; NULL, and errno. */
FILE *secure_rewrite(const char *path);

#endif
