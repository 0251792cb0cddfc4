/* Writes and builds a program's folder, and caches the CUDA runtime's objects. prepare() leaves
 * unchanged files alone, so that make compiles only the others. */
#include "driver/folder.h"

#include "support/secure.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char PROGRAM_MAKEFILE[] = "runtime/program.mk"; // the folder's Makefile includes it

static const char MAKEFILE_HEAD[] = "# Written by hetucc.";

/* ---- the folder's files ---- */

static void add_text(Folder *folder, const char *name, const char *text) {
    array_push(folder->driver->arena, &folder->files, (FolderFile){.name = name, .text = text});
}

static void add_copy(Folder *folder, const char *name, const char *from) {
    array_push(folder->driver->arena, &folder->files, (FolderFile){.name = name, .from = from});
}

static int is_shown(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Adds an installed source, or a folder of sources, as `name`. Returns false after a message. */
static bool add_installed(Folder *folder, const char *path, const char *name) {
    Arena *arena = folder->driver->arena;
    const char *dot = strrchr(name, '.');
    struct stat found;
    struct dirent **entries;
    if (!stat(path, &found) && !S_ISDIR(found.st_mode)) {
        if (dot && (backend_of_file(name) || !strcmp(dot, ".h") || !strcmp(dot, ".mk")))
            add_copy(folder, name, path);
        return true;
    }
    int count = scandir(path, &entries, is_shown, by_name);
    bool good = count > 0;
    if (!good)
        complain("cannot find the sources of the runtime in %s%s%s", path, count < 0 ? ": " : "",
                 count < 0 ? strerror(errno) : "");
    for (int i = 0; i < count; i++) {
        const char *entry = entries[i]->d_name;
        good = good && add_installed(folder, arena_format(arena, "%s/%s", path, entry),
                                     arena_format(arena, "%s/%s", name, entry));
        free(entries[i]);
    }
    if (count >= 0) free(entries);
    return good;
}

/* Adds headers, makefile and folders of the backend's runtime. Returns false after a message. */
static bool add_runtime(Folder *folder) {
    Arena *arena = folder->driver->arena;
    const BackendFolder *backend = folder->driver->options->backend->folder;
    const char *prefix = folder->driver->tools.prefix;
    bool good =
        add_installed(folder, arena_format(arena, "%s/include/hetu", prefix), "include/hetu") &&
        add_installed(folder, arena_format(arena, "%s/share/hetu/%s", prefix, PROGRAM_MAKEFILE),
                      PROGRAM_MAKEFILE) &&
        add_installed(folder, arena_format(arena, "%s/share/hetu/%s", prefix, backend->makefile),
                      backend->makefile);
    for (const char *at = backend->runtime; good && *(at += strspn(at, " "));) {
        const char *name = arena_format(arena, "runtime/%.*s", (int)strcspn(at, " "), at);
        good = add_installed(folder, arena_format(arena, "%s/share/hetu/%s", prefix, name), name);
        at += strcspn(at, " ");
    }
    return good;
}

/* ---- the Makefile ---- */

static bool needs_quotes(const char *word) {
    for (; *word; word++)
        if ((unsigned char)*word < 0x80 && !isalnum((unsigned char)*word) &&
            !strchr("_@%+=:,./-", *word))
            return true;
    return false;
}

/* Appends a word to a Makefile's variable, escaped for make and for the shell. */
static void add_word(Text *value, const char *word) {
    bool quoted = !*word || needs_quotes(word);
    text_string(value, quoted ? " '" : " ");
    for (; *word; word++) {
        static const char *const special[][2] = {
            {"$", "$$"}, {"#", "\\#"}, {"'", "'\\''"}, {"\\", "\\\\"}};
        const char *written = NULL;
        for (size_t i = 0; i < sizeof special / sizeof *special; i++)
            written = *word == special[i][0][0] ? special[i][1] : written;
        if (*word == '\\' && word[strspn(word, "\\")] != '#') written = NULL;
        text_append(value, written ? written : word, written ? strlen(written) : 1);
    }
    text_string(value, quoted ? "'" : "");
}

static void add_option(Text *value, const char *option, const char *argument) {
    add_word(value, option);
    if (argument) add_word(value, argument);
}

/* Adds an option for a folder of headers, with the name of the folder's copy. A folder that was
 * not copied keeps its name for -isystem and -idirafter; other options for it are left out. */
static void add_include_folder(Text *value, const UserFiles *user, const char *option,
                               const char *path) {
    const char *name = user_folder_name(user, path);
    if (name && !strcmp(option, "-I")) add_word(value, arena_format(value->arena, "-I%s", name));
    else if (name) add_option(value, option, name);
    else if (!strcmp(option, "-isystem") || !strcmp(option, "-idirafter"))
        add_option(value, option, path);
}

/* Adds an option to `preprocessor` when the preprocessor reads it, else to `compiler`. */
static void add_flag(const Folder *folder, const Item *item, Text *preprocessor, Text *compiler) {
    const char *text = item->text;
    if (begins(text, "-D") || begins(text, "-U")) add_word(preprocessor, text);
    else if (begins(text, "-I")) add_include_folder(preprocessor, folder->user, "-I", text + 2);
    else if (item->value &&
             (!strcmp(text, "-isystem") || !strcmp(text, "-iquote") || !strcmp(text, "-idirafter")))
        add_include_folder(preprocessor, folder->user, text, item->value);
    else if (item->value && (!strcmp(text, "-include") || !strcmp(text, "-imacros")))
        add_option(preprocessor, text,
                   user_file_name(folder->user, item->value)
                       ? user_file_name(folder->user, item->value)
                       : item->value);
    else add_option(compiler, text, item->value);
}

/* The user's options and files in the Makefile. */
typedef struct Lists {
    Text preprocessor, compiler, sources, inputs;
    Text code; // options of `compiler` that emitted files get, too
} Lists;

/* Returns the file that make compiles for a source: the source itself, or a file that includes it
 * when make cannot write the source's name. */
static const char *built_name(Folder *folder, const char *name) {
    Arena *arena = folder->driver->arena;
    const char *plain = name_plain(arena, name), *include = c_include(arena, name);
    if (!strcmp(plain, name) || !include) return name;
    char *flat = arena_format(arena, "source/%s", plain + strlen("source/"));
    for (char *slash = strchr(flat, '/'); (slash = strchr(slash + 1, '/'));) *slash = '_';
    add_text(folder, flat, arena_format(arena, "#include %s\n", include));
    return flat;
}

static void add_item(Folder *folder, const Item *item, const char *const *emitted, Lists *lists) {
    const char *name = item->text[0] == '-' ? NULL : user_file_name(folder->user, item->text);
    switch (item->kind) {
    case ITEM_FLAG:
        add_flag(folder, item, &lists->preprocessor, &lists->compiler);
        if (item_is_for_kernels(item)) add_option(&lists->code, item->text, item->value);
        break;
    case ITEM_SOURCE:
    case ITEM_DEVICE:
        for (; *emitted; emitted++)
            if (!strcmp(*emitted, item->text)) return;
        add_word(&lists->sources, name ? built_name(folder, name) : item->text);
        break;
    case ITEM_INPUT: add_option(&lists->inputs, name ? name : item->text, item->value); break;
    case ITEM_DEPEND: break;
    }
}

/* Returns whether a file's name has a quote: #include <NAME> then needs -idirafter (c_include). */
static bool needs_search(const UserFiles *user) {
    for (int i = 0; i < user->paths.count; i++)
        if (strchr(user_file_name(user, user->paths.at[i]), '"')) return true;
    return false;
}

/* Returns lines for make that set the options of each emitted file:
 *     %/gpt.role0.c.o: EMITTED_CFLAGS = -O1 */
static const char *emitted_flags(const Driver *driver, const EmittedFiles *files) {
    Text lines = {.arena = driver->arena};
    for (int i = 0; i < files->count; i++) {
        const EmittedFile *file = &files->at[i];
        const char *none = is_unoptimised(driver->options) ? " -O0" : "";
        if (*file->flags && !file->source)
            text_print(&lines, "%%/%s.o: EMITTED_CFLAGS = %s%s\n", file->name, file->flags, none);
    }
    return text_bytes(&lines);
}

static const char *makefile(Folder *folder, const EmittedFiles *files, const char *const *emitted,
                            int ranks) {
    Arena *arena = folder->driver->arena;
    const Options *options = folder->driver->options;
    Lists lists = {
        {.arena = arena}, {.arena = arena}, {.arena = arena}, {.arena = arena}, {.arena = arena}};
    Text written = {.arena = arena}, out = {.arena = arena}, program = {.arena = arena};
    for (int i = 0; i < files->count; i++) add_word(&written, files->at[i].name);
    add_word(&lists.preprocessor, HSPMD_DEFINE);
    for (int i = 0; i < options->cc.items.count; i++)
        add_item(folder, &options->cc.items.at[i], emitted, &lists);
    if (!options->cc.optimised) add_word(&lists.compiler, "-O2");
    if (needs_search(folder->user)) add_option(&lists.preprocessor, "-idirafter", ".");
    add_word(&program, name_plain(arena, folder->program));
    text_fill(
        &out,
        "$head `make` builds the program; $makefile and $backend.mk beside it\n"
        "# say what can be set.\n"
        "PROGRAM ?=$program\n"
        "RANKS =$ranks\n"
        "BACKEND = $backend\n"
        "\n"
        "# What hetucc emitted, and the user's other sources, their options, and what is linked.\n"
        "EMITTED =$emitted\n"
        "USER =$sources\n"
        "USER_CPPFLAGS =$preprocessor\n"
        "USER_CFLAGS =$compiler\n"
        "USER_LDLIBS =$inputs\n"
        "\n"
        "# Options of emitted files: of all, and of each.\n"
        "CODE_CFLAGS =$code\n"
        "$flags"
        "\n"
        "include $makefile\n",
        "head", MAKEFILE_HEAD, "makefile", PROGRAM_MAKEFILE, "backend", options->backend->name,
        "program", text_bytes(&program), "ranks", arena_format(arena, " %d", ranks), "code",
        text_bytes(&lists.code), "flags", emitted_flags(folder->driver, files), "emitted",
        text_bytes(&written), "sources", text_bytes(&lists.sources), "preprocessor",
        text_bytes(&lists.preprocessor), "compiler", text_bytes(&lists.compiler), "inputs",
        text_bytes(&lists.inputs), NULL);
    return text_bytes(&out);
}

/* Checks that C can include every name, and no two files share a name; false after a message. */
static bool check_names(const Folder *folder) {
    for (int i = 0; i < folder->files.count; i++)
        if (!c_include(folder->driver->arena, folder->files.at[i].name)) {
            complain("C cannot include a file of this name: %s", folder->files.at[i].from);
            return false;
        }
    for (int i = 0; i < folder->files.count; i++)
        for (int k = 0; k < i; k++)
            if (!strcmp(folder->files.at[i].name, folder->files.at[k].name)) {
                complain("two files of the program would be called %s", folder->files.at[i].name);
                return false;
            }
    return true;
}

Folder *folder_of_emitted(Driver *driver, const EmittedFiles *emitted) {
    Folder *folder = arena_new(driver->arena, Folder);
    *folder = (Folder){.driver = driver};
    for (int i = 0; i < emitted->count; i++)
        add_text(folder, emitted->at[i].name, emitted->at[i].text);
    return folder;
}

Folder *folder_create(Driver *driver, const UserFiles *user, const EmittedFiles *emitted,
                      const char *program, int ranks) {
    Arena *arena = driver->arena;
    Folder *folder = folder_of_emitted(driver, emitted);
    folder->user = user;
    folder->program = program;
    const char **models = arena_array(arena, const char *, emitted->count + 1);
    for (int i = 0, count = 0; i < emitted->count; i++)
        if (emitted->at[i].source) models[count++] = emitted->at[i].source;
    add_text(folder, "Makefile", makefile(folder, emitted, models, ranks));
    for (int i = 0; i < user->paths.count; i++)
        add_copy(folder, user_file_name(user, user->paths.at[i]), user->paths.at[i]);
    if (!add_runtime(folder) || !check_names(folder)) return NULL;
    manifest_add(folder);
    return folder;
}

/* ---- writing the folder ---- */

typedef Array(const char *) Names;

/* Returns the folders that contain the files, outer folders first: "runtime", "runtime/base". */
static Names inner_folders(const Folder *folder) {
    Arena *arena = folder->driver->arena;
    Names names = {0};
    for (int i = 0; i < folder->files.count; i++)
        for (const char *name = folder->files.at[i].name, *slash = strchr(name, '/'); slash;
             slash = strchr(slash + 1, '/')) {
            const char *inner = arena_substring(arena, name, (size_t)(slash - name));
            bool known = false;
            for (int k = 0; k < names.count; k++) known = known || !strcmp(names.at[k], inner);
            if (!known) array_push(arena, &names, inner);
        }
    return names;
}

/* Makes a folder and adds it to `made`, or accepts one that no other user controls; else false. */
static bool make_folder(Arena *arena, const char *path, Names *made) {
    struct stat found;
    if (!mkdir(path, 0777)) {
        array_push(arena, made, path);
        return true;
    }
    bool there = errno == EEXIST && !stat(path, &found) && S_ISDIR(found.st_mode);
    bool foreign = there && (secure_is_foreign(path) || secure_is_led(path));
    if (there && !foreign) return true;
    complain("cannot make the folder %s: %s", path,
             foreign ? "it is another user's" : strerror(errno));
    return false;
}

/* Sets *bytes to the content of a file of the folder; false after a message. */
static bool content(const Folder *folder, const FolderFile *file, Text *bytes) {
    *bytes = (Text){.arena = folder->driver->arena};
    if (file->text) text_string(bytes, file->text);
    else if (!file_read(file->from, bytes)) {
        complain("cannot read %s: %s", file->from, strerror(errno));
        return false;
    }
    return true;
}

/* Writes a file to a new path, *written (NULL: `path` is up to date); false after a message. */
static bool prepare(const Folder *folder, const FolderFile *file, const char *path,
                    const char **written) {
    Text bytes, old = {.arena = folder->driver->arena};
    *written = NULL;
    if (!content(folder, file, &bytes)) return false;
    if (file_read(path, &old) && old.length == bytes.length &&
        !memcmp(text_bytes(&old), text_bytes(&bytes), bytes.length))
        return true;
    check_output(folder->driver->options, path);
    *written = output_bytes(&folder->driver->tools, path, text_bytes(&bytes), bytes.length);
    return *written;
}

/* Gives a copy the modification time of its original. */
static void keep_time(const FolderFile *file, const char *path) {
    struct stat found;
    if (file->from && !stat(file->from, &found))
        utimensat(AT_FDCWD, path, (struct timespec[]){found.st_atim, found.st_mtim},
                  AT_SYMLINK_NOFOLLOW);
}

/* Refuses a folder whose Makefile somebody else wrote; false after a message. */
static bool check_makefile(const Folder *folder, const char *path) {
    Arena *arena = folder->driver->arena;
    const char *name = arena_format(arena, "%s/Makefile", path);
    Text old = {.arena = arena};
    if (!folder->program || !file_read(name, &old) || begins(text_bytes(&old), MAKEFILE_HEAD))
        return true;
    complain("%s would be replaced, and hetucc did not write it; -o names another folder", name);
    return false;
}

static bool write_files(const Folder *folder, const char *path, Names *made) {
    Arena *arena = folder->driver->arena;
    Names inner = inner_folders(folder);
    const char **written = arena_array(arena, const char *, folder->files.count);
    const char *manifest = manifest_read(folder, path);
    bool good = make_folder(arena, path, made) && check_makefile(folder, path);
    for (int i = 0; good && i < inner.count; i++)
        good = make_folder(arena, arena_format(arena, "%s/%s", path, inner.at[i]), made);
    for (int i = 0; good && i < folder->files.count; i++)
        good = prepare(folder, &folder->files.at[i],
                       arena_format(arena, "%s/%s", path, folder->files.at[i].name), &written[i]);
    for (int i = 0; good && i < folder->files.count; i++) {
        const char *name = arena_format(arena, "%s/%s", path, folder->files.at[i].name);
        if (written[i]) keep_time(&folder->files.at[i], written[i]);
        good = !written[i] || output_finish(&folder->driver->tools, written[i], name, 0666);
    }
    if (good) manifest_remove_old(folder, path, manifest);
    return good;
}

bool folder_write(const Folder *folder, const char *path) {
    Names made = {0};
    if (folder->driver->tools.dry_run || write_files(folder, path, &made)) return true;
    outputs_close();
    while (made.count) rmdir(made.at[--made.count]);
    return false;
}

/* ---- what a build needs and leaves behind ---- */

/* Registers all files of the folder, and the files that make adds, for removal at the end. */
static void remove_later(const Folder *folder, const char *name) {
    Toolchain *tools = &folder->driver->tools;
    Arena *arena = folder->driver->arena;
    Names inner = inner_folders(folder);
    temporary(tools, arena_format(arena, "%s/build", name));
    for (int i = 0; i < inner.count; i++) {
        temporary(tools, arena_format(arena, "%s/%s", name, inner.at[i]));
        temporary(tools, arena_format(arena, "%s/build/%s", name, inner.at[i]));
    }
    for (int i = 0; i < folder->files.count; i++) {
        const char *file = folder->files.at[i].name;
        temporary(tools, arena_format(arena, "%s/%s", name, file));
        temporary(tools, arena_format(arena, "%s/build/%s.o", name, file));
        temporary(tools, arena_format(arena, "%s/build/%s.d", name, file));
    }
}

/* Returns whether a command exists: a path, or a name found along PATH. */
static bool is_command(Arena *arena, const char *name) {
    const char *path = getenv("PATH");
    if (strchr(name, '/')) return !access(name, X_OK);
    for (path = path ? path : ""; *path; path += strcspn(path, ":"), path += *path == ':')
        if (!access(arena_format(arena, "%.*s/%s", (int)strcspn(path, ":"), path, name), X_OK))
            return true;
    return false;
}

/* Checks that the backend's compiler is where its makefile looks for it; false after a message. */
static bool check_compiler(Arena *arena, const BackendFolder *backend) {
    const char *advice = arena_format(
        arena, "with --emit=c -o FOLDER hetucc writes sources that make builds where %s is",
        backend->compiler);
    const char *named = getenv(backend->compiler_variable);
    const char *command =
        named ? arena_substring(arena, named, strcspn(named, " ")) : backend->compiler;
    if (is_command(arena, command) ||
        (!named && !access(arena_format(arena, "%s/%s", backend->compiler_home, command), X_OK)))
        return true;
    if (named)
        complain("cannot run %s, which the environment variable %s names; %s", command,
                 backend->compiler_variable, advice);
    else
        complain("there is no %s on the path nor in %s, and no environment variable %s; %s",
                 command, backend->compiler_home, backend->compiler_variable, advice);
    return false;
}

/* Returns the C compiler's command as one word for make; the compiler is never hetucc itself. */
static const char *compiler_words(const Toolchain *tools) {
    Command compiler = command_cc_words(tools);
    Text words = {.arena = tools->arena};
    for (int i = 0; i < compiler.words.count; i++)
        text_print(&words, i ? " %s" : "%s", compiler.words.at[i]);
    return text_bytes(&words);
}

/* ---- the cache of the runtime's objects ---- */

/* Makes a folder and its parents. */
static void make_path(Arena *arena, const char *path) {
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/'))
        mkdir(arena_substring(arena, path, (size_t)(slash - path)), 0777);
    mkdir(path, 0700);
}

/* Makes the folder *path and resolves the path's links. Returns why objects in it must not be used:
 * the folder is not writable, or another user controls it. NULL: the folder is safe. */
static const char *cache_wrong(Arena *arena, const char **path) {
    struct stat about;
    char whole[PATH_MAX];
    if (secure_is_led(*path)) return "another user's link leads there";
    make_path(arena, *path);
    if (access(*path, W_OK | X_OK) || !realpath(*path, whole) || stat(whole, &about))
        return strerror(errno);
    *path = arena_string(arena, whole);
    if (about.st_uid != geteuid()) return "it is another user's";
    if (about.st_mode & S_IWOTH || (about.st_mode & S_IWGRP && about.st_gid != getegid()))
        return "other users may write to it (chmod go-w)";
    return secure_parent_wrong(whole);
}

/* Returns the folder that caches the runtime's objects: HETU_RUNTIME_CACHE, or in the user's cache;
 * NULL for HETU_RUNTIME_CACHE=0 or an unusable folder. *good becomes false after a message. */
static const char *runtime_cache(Arena *arena, bool *good) {
    const char *named = getenv("HETU_RUNTIME_CACHE"), *base = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME"), *path = NULL;
    char *here = NULL;
    if (named && (!*named || !strcmp(named, "0"))) return NULL;
    if (named && *named != '/' && (here = getcwd(NULL, 0)))
        path = arena_format(arena, "%s/%s", here, named);
    else if (named) path = named;
    else if (base && *base == '/') path = arena_format(arena, "%s/hetu", base);
    else if (home && *home == '/') path = arena_format(arena, "%s/.cache/hetu", home);
    free(here);
    const char *wrong = path ? cache_wrong(arena, &path) : NULL;
    if (path && !wrong) return path;
    if (named) {
        complain("cannot keep the runtime's objects in %s, which HETU_RUNTIME_CACHE names: %s",
                 named, wrong);
        *good = false;
    }
    return NULL;
}

/* Makes the runtime's missing objects in the cache, under a lock. Returns make's exit status. */
static int build_runtime(Toolchain *tools, const Command *make, const char *cache) {
    Command command = {.arena = tools->arena};
    int lock = tools->dry_run ? -1
                              : open(arena_format(tools->arena, "%s/lock", cache),
                                     O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    for (int i = 0; i < make->words.count; i++) command_add(&command, make->words.at[i], NULL);
    command_add(&command, "runtime", NULL);
    if (lock >= 0) flock(lock, LOCK_EX);
    int status = command_run(tools, &command);
    if (lock >= 0) close(lock);
    return status;
}

/* ---- building the program by make ---- */

int folder_build(const Folder *folder, const char *written, const char *program) {
    Driver *driver = folder->driver;
    Arena *arena = driver->arena;
    Toolchain *tools = &driver->tools;
    const char *name = arena_format(arena, "%s.%s", name_with(arena, folder->program, ""),
                                    driver->options->backend->name);
    const char *path = driver->options->save_temps ? name : temporary(tools, name);
    if (!tools->dry_run && !check_compiler(arena, driver->options->backend->folder)) return 1;
    if (!driver->options->save_temps) remove_later(folder, name);
    if (!folder_write(folder, path)) return 1;
    const char *built = temporary(tools, arena_format(arena, "%s/program", name));
    if (driver->options->save_temps) built = arena_format(arena, "%s/program", path);
    bool good = true;
    const char *cache = runtime_cache(arena, &good);
    if (!good) return 1;
    Command command = {.arena = arena};
    command_add(&command, "make", "--no-print-directory", "--silent",
                arena_format(arena, "-j%ld", sysconf(_SC_NPROCESSORS_ONLN)), "-C", path,
                "PROGRAM=program", arena_format(arena, "CC=%s", compiler_words(tools)), NULL);
    if (cache) command_add(&command, arena_format(arena, "RUNTIME_CACHE=%s", cache), NULL);
    unsetenv("MAKEFLAGS");
    if (!tools->dry_run) setenv("TMPDIR", tools->folder, 1); // nvcc's file names are predictable
    if ((cache && build_runtime(tools, &command, cache)) || command_run(tools, &command)) return 1;
    return output_take(tools, built, written, program) ? 0 : 1;
}
