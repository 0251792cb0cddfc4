/* The file MANIFEST of a program's folder: the hash and the name of each file that hetucc wrote. An
 * emission into the same folder removes the files of the last one that it does not write itself.
 *
 *     # Written by hetucc: hash (64-bit FNV-1a) and name of each file.
 *     9f1c0a5b3d2e4f60 gpt.role0.c
 *
 * uneven emitted roles 0 to 3, single emits role 0: gpt.role1.c to gpt.role3.c are removed. A file
 * that the user has changed since stays, with a warning. */
#include "driver/folder.h"

#include "support/hash.h"
#include "support/tool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char HEAD[] = "# Written by hetucc: hash (64-bit FNV-1a) and name of each file.\n";
enum { DIGITS = 16 };

/* Returns the hash of a file of the folder at `path`; 0 when the file cannot be read. */
static uint64_t hash_of_file(Arena *arena, const char *path) {
    Text bytes = {.arena = arena};
    return file_read(path, &bytes) ? hash_bytes(HASH_START, text_bytes(&bytes), bytes.length) : 0;
}

void manifest_add(Folder *folder) {
    Arena *arena = folder->driver->arena;
    Text text = {.arena = arena};
    text_string(&text, HEAD);
    for (int i = 0; i < folder->files.count; i++) {
        const FolderFile *file = &folder->files.at[i];
        uint64_t hash =
            file->text ? hash_text(HASH_START, file->text) : hash_of_file(arena, file->from);
        text_print(&text, "%0*llx %s\n", DIGITS, (unsigned long long)hash, file->name);
    }
    array_push(arena, &folder->files,
               (FolderFile){.name = MANIFEST_NAME, .text = text_bytes(&text)});
}

static bool writes(const Folder *folder, const char *name) {
    for (int i = 0; i < folder->files.count; i++)
        if (!strcmp(folder->files.at[i].name, name)) return true;
    return false;
}

/* Removes the file `name`, and the folders around it that are empty then. */
static void remove_file(Arena *arena, const char *path, const char *name) {
    unlink(arena_format(arena, "%s/%s", path, name));
    for (size_t end = strlen(name); end--;)
        if (name[end] == '/' && rmdir(arena_format(arena, "%s/%.*s", path, (int)end, name))) return;
}

/* Returns whether a manifest's line names a file below the folder, not "../x" or "/x". */
static bool is_below(const char *name) {
    return *name && *name != '/' && strncmp(name, "../", 3) != 0 && !strstr(name, "/../");
}

const char *manifest_read(const Folder *folder, const char *path) {
    Arena *arena = folder->driver->arena;
    Text old = {.arena = arena};
    bool found = writes(folder, MANIFEST_NAME) &&
                 file_read(arena_format(arena, "%s/%s", path, MANIFEST_NAME), &old);
    return found ? text_bytes(&old) : "";
}

void manifest_remove_old(const Folder *folder, const char *path, const char *manifest) {
    Arena *arena = folder->driver->arena;
    for (const char *line = manifest, *end; (end = strchr(line, '\n')); line = end + 1) {
        char *rest;
        uint64_t hash = strtoull(line, &rest, 16);
        if (rest != line + DIGITS || *rest != ' ') continue;
        const char *name = arena_substring(arena, rest + 1, (size_t)(end - rest - 1));
        if (!is_below(name) || writes(folder, name)) continue;
        const char *file = arena_format(arena, "%s/%s", path, name);
        if (access(file, F_OK)) continue;
        if (hash_of_file(arena, file) == hash) remove_file(arena, path, name);
        else
            tool_message(stderr, "warning",
                         "%s stays: it was part of the program, which no longer has it, and has "
                         "been changed since hetucc wrote it",
                         file);
    }
}
