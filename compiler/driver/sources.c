/* Finds the user's files that a program's folder needs, by the C compiler's -M. */
#include "driver/folder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *copied(Arena *arena, char *path) {
    const char *copy = path ? arena_string(arena, path) : NULL;
    free(path);
    return copy;
}

/* Returns the absolute path of a file, with the links of its folder resolved, so that `..` means
 * what it means to the C compiler; NULL when the folder does not exist. */
static const char *absolute_path(Arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    const char *folder = copied(
        arena,
        realpath(slash ? arena_substring(arena, path, (size_t)(slash + 1 - path)) : ".", NULL));
    return folder ? arena_format(arena, "%s/%s", strcmp(folder, "/") ? folder : "",
                                 slash ? slash + 1 : path)
                  : NULL;
}

/* Returns the part of an absolute path below a folder; NULL when the path is elsewhere. */
static const char *behind(const char *folder, const char *path) {
    size_t length = strcmp(folder, "/") ? strlen(folder) : 0;
    return !strncmp(path, folder, length) && path[length] == '/' ? path + length + 1 : NULL;
}

static const char *folder_of(Arena *arena, const char *path) {
    size_t length = (size_t)(strrchr(path, '/') - path);
    return arena_substring(arena, path, length ? length : 1);
}

/* Adds a file to `files`, once. Ignores what is not a plain file, such as a missing header. */
static void add_file(UserFiles *files, const char *path) {
    struct stat found;
    const char *name = absolute_path(files->arena, path);
    if (!name || stat(name, &found) || !S_ISREG(found.st_mode)) return;
    if (text_find(files->paths.at, files->paths.count, name) < 0)
        array_push(files->arena, &files->paths, name);
}

/* Returns how many bytes at `at` spell one byte of a file name in a rule of make: escapes, then the
 * name's byte. Returns 0 at the end of the name. Make escapes blanks and # by a backslash, a dollar
 * by another dollar, and doubles backslashes before blanks. */
static size_t name_byte(const char *at) {
    size_t backslashes = strspn(at, "\\");
    bool blank = at[backslashes] && strchr(" \t", at[backslashes]);
    if (blank && backslashes) return 2;
    if (!*at || strchr(" \t\n", *at) || (*at == '\\' && at[1] == '\n')) return 0;
    return (*at == '\\' && at[1] == '#') || (*at == '$' && at[1] == '$') ? 2 : 1;
}

/* Adds the files of a rule that the C compiler wrote: "x.o: a.c b.h \". */
static void add_rule(UserFiles *files, const char *rule) {
    const char *at = strstr(rule, ": ");
    for (at = at ? at + 2 : ""; *at; at++) {
        Text word = {.arena = files->arena};
        for (size_t length; (length = name_byte(at)); at += length)
            text_append(&word, at + length - 1, 1);
        if (word.length) add_file(files, text_bytes(&word));
        if (!*at) return;
    }
}

/* Adds a source and the headers that the C compiler lists for it. Returns false on errors. */
static bool add_source(Driver *driver, UserFiles *files, const Item *item) {
    const char *list = temporary(&driver->tools, "files.d");
    Command command = compile_command(driver);
    command_add(&command, "-w", "-MM", "-MF", list, NULL);
    if (item->kind == ITEM_DEVICE)
        command_add(&command, "-MG", "-x", driver->options->backend->folder->read_as, NULL);
    if (item->kind == ITEM_SOURCE) add_source_word(&command, item->text);
    else command_add(&command, item->text, NULL);
    if (command_run(&driver->tools, &command)) return false;
    add_file(files, item->text);
    if (!driver->tools.dry_run) add_rule(files, file_text(driver->arena, list));
    return true;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns the folder of an option for header folders; NULL for any other option. */
static const char *option_folder(const Item *item) {
    static const char *const options[] = {"-isystem", "-iquote", "-idirafter"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (item->kind == ITEM_FLAG && !strcmp(item->text, options[i])) return item->value;
    return item->kind == ITEM_FLAG && !strncmp(item->text, "-I", 2) ? item->text + 2 : NULL;
}

/* Returns whether a folder contains any of the files; false for NULL. */
static bool has_files(const UserFiles *files, const char *folder) {
    for (int i = 0; folder && i < files->paths.count; i++)
        if (behind(folder, files->paths.at[i])) return true;
    return false;
}

/* Returns the deepest folder that contains all files and all header folders with files; or "/". */
static const char *common_folder(const Driver *driver, const UserFiles *files) {
    Arena *arena = files->arena;
    const char *root = files->paths.count ? folder_of(arena, files->paths.at[0]) : "/";
    for (int i = 0; i < files->paths.count; i++)
        while (!behind(root, files->paths.at[i])) root = folder_of(arena, root);
    for (int i = 0; i < driver->options->cc.items.count; i++) {
        const char *option = option_folder(&driver->options->cc.items.at[i]),
                   *folder = option ? copied(arena, realpath(option, NULL)) : NULL;
        while (has_files(files, folder) && strcmp(root, folder) && !behind(root, folder))
            root = folder_of(arena, root);
    }
    return root;
}

UserFiles *user_files_find(Driver *driver) {
    UserFiles *files = arena_new(driver->arena, UserFiles);
    *files = (UserFiles){.arena = driver->arena};
    for (int i = 0; i < driver->options->cc.items.count; i++) {
        const Item *item = &driver->options->cc.items.at[i];
        if ((item->kind == ITEM_SOURCE || item->kind == ITEM_DEVICE) &&
            !add_source(driver, files, item))
            return NULL;
        if (item->kind == ITEM_INPUT && item->text[0] != '-') add_file(files, item->text);
    }
    if (files->paths.count)
        qsort(files->paths.at, (size_t)files->paths.count, sizeof *files->paths.at, by_name);
    files->root = common_folder(driver, files);
    return files;
}

const char *user_file_name(const UserFiles *files, const char *path) {
    const char *name = absolute_path(files->arena, path);
    for (int i = 0; name && i < files->paths.count; i++)
        if (!strcmp(files->paths.at[i], name))
            return arena_format(files->arena, "source/%s", behind(files->root, name));
    return NULL;
}

const char *user_folder_name(const UserFiles *files, const char *path) {
    const char *folder = copied(files->arena, realpath(path, NULL));
    if (!has_files(files, folder)) return NULL;
    const char *rest = behind(files->root, folder);
    return rest                          ? arena_format(files->arena, "source/%s", rest)
           : strcmp(folder, files->root) ? NULL
                                         : "source";
}
