/* Runs hetucc again for ht_prepare and ht_balance, and hashes its input files. */
#include "session/control/recompile_command.h"

#include "session/control/control.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/c_locale.h"
#include "transport/fabric/sockets.h"
#include "transport/meet/rendezvous_file.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static struct {
    RecompileCommand *at;
    int count;
} recipes;

static void register_source(const char *fingerprint, const char *const *words, bool asks) {
    RecompileCommand *grown = realloc(recipes.at, sizeof *grown * (size_t)(recipes.count + 1));
    if (!grown) ht_fail("no memory to register a source");
    recipes.at = grown;
    recipes.at[recipes.count++] = (RecompileCommand){.fingerprint = fingerprint,
                                                     .words = words,
                                                     .refuses = words[1] ? NULL : words[0],
                                                     .asks = asks};
}

void ht_register_source(const char *fingerprint, const char *const *words) {
    register_source(fingerprint, words, true);
}

void ht_register_balanced_source(const char *fingerprint, const char *const *words) {
    register_source(fingerprint, words, false);
}

void ht_register_files(const char *const *files) { recipes.at[recipes.count - 1].files = files; }

bool recompile_possible(void) {
    for (int s = 0; s < recipes.count; s++)
        if (recipes.at[s].asks || balance_all()) return true;
    return false;
}

RecompileCommand *recompile_command_of(int image) {
    for (int i = 0; i < image_count(); i++)
        for (int s = 0; s < recipes.count; s++)
            if (image_at(i)->model == image_at(image)->model &&
                !strcmp(recipes.at[s].fingerprint, image_at(i)->image->fingerprint))
                return &recipes.at[s];
    return NULL;
}

int recompile_strategies(const RecompileCommand *recipe) {
    int count = recipe->more_count;
    for (const char *const *word = recipe->words + 2; *word; word++)
        count += !strncmp(*word, "--strategy=", 11);
    return count;
}

void recompile_add(RecompileCommand *recipe, char *option) {
    char **more = realloc(recipe->more, sizeof *more * (size_t)(recipe->more_count + 1));
    if (!more) ht_fail("no memory for a strategy");
    recipe->more = more;
    recipe->more[recipe->more_count++] = option;
}

/* ---- hashes of input files ---- */

/* Continues a hash with the name, identity, size and modification time of a file. A relative `name`
 * begins at `folder`. Returns the hash unchanged if there is no such file. */
static uint64_t hash_file(uint64_t hash, const char *folder, const char *name) {
    struct stat found;
    char *path = NULL;
    if (asprintf(&path, "%s%s%s", *name == '/' ? "" : folder, *name == '/' ? "" : "/", name) < 0)
        ht_fail("no memory for a strategy");
    if (!stat(path, &found)) {
        const int64_t known[] = {(int64_t)found.st_dev, (int64_t)found.st_ino, found.st_size,
                                 found.st_mtim.tv_sec, found.st_mtim.tv_nsec};
        hash = hash_bytes(hash_bytes(hash, name, strlen(name)), known, sizeof known);
    }
    free(path);
    return hash;
}

/* Continues a hash with the file of an option --strategy=FILE or --strategy=FILE:NAME. */
static uint64_t hash_strategy(uint64_t hash, const char *folder, const char *option) {
    const char *word = strchr(option, '=') + 1, *colon = strrchr(word, ':');
    char *before = strndup(word, colon ? (size_t)(colon - word) : 0);
    if (!before) ht_fail("no memory for a strategy");
    hash = hash_file(hash_file(hash, folder, word), folder, before);
    free(before);
    return hash;
}

uint64_t recompile_stamp(const RecompileCommand *recipe, const char *option) {
    const char *folder = recipe->words[0];
    uint64_t hash = hash_strategy(HASH_START, folder, option);
    for (const char *const *word = recipe->words + 2; *word; word++)
        hash = !strncmp(*word, "--strategy=", 11)  ? hash_strategy(hash, folder, *word)
               : !strncmp(*word, "--cluster=", 10) ? hash_file(hash, folder, *word + 10)
                                                   : hash_file(hash, folder, *word);
    for (const char *const *file = recipe->files; file && *file; file++)
        hash = hash_file(hash, folder, *file);
    return hash;
}

char *recompile_file(const char *kind, int number, const char *suffix, char *reason) {
    char name[64];
    const char *why;
    snprintf(name, sizeof name, "%s%d%s", kind, number, suffix);
    char *path = private_path(name, socket_node(), rendezvous_file_of_dead, &why);
    if (!path) snprintf(reason, REASON, "there is no place for what is made meanwhile: %s", why);
    return path;
}

/* ---- processes ---- */

/* Returns the environment for hetucc; free() it: this program's environment without LD_PRELOAD,
 * with the compilation's compiler (CC) and this process's private folder (TMPDIR). HETUCC_PARENT
 * is this process: hetucc ends when this process ends. */
static char **maker_environment(const char *cc) {
    const char *why;
    char *folder = private_path("", socket_node(), rendezvous_file_of_dead, &why);

    int count = 0, kept = 0;
    while (environ[count]) count++;
    char **own = memory_array(count + 4, sizeof *own);
    for (int i = 0; i < count; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", 11) && strncmp(environ[i], "CC=", 3) &&
            (!folder || strncmp(environ[i], "TMPDIR=", 7)))
            own[kept++] = environ[i];
    if ((*cc && asprintf(&own[kept++], "CC=%s", cc) < 0) ||
        (folder && asprintf(&own[kept++], "TMPDIR=%s", folder) < 0) ||
        asprintf(&own[kept++], "HETUCC_PARENT=%d", (int)getpid()) < 0)
        ht_fail("no memory for a strategy");
    free(folder);
    return own;
}

static int count_words(const char *const *words) {
    int count = 0;
    while (words[count]) count++;
    return count;
}

/* Returns the command line: the words of the compilation, the options of arrived strategies, and
 * `words`; free() it. `tool` replaces hetucc unless NULL. */
static const char **maker_words(const RecompileCommand *recipe, const char *tool,
                                const char *const *words) {
    int count = 0;
    const char **all = memory_array(
        count_words(recipe->words) + recipe->more_count + count_words(words), sizeof *all);
    for (const char *const *word = recipe->words + 2; *word; word++) all[count++] = *word;
    for (int i = 0; i < recipe->more_count; i++) all[count++] = recipe->more[i];
    for (; *words; words++) all[count++] = *words;
    if (tool) all[0] = tool;
    return all;
}

/* Returns the path of a tool in the folder of hetucc; free() it. */
static char *tool_path(const char *hetucc, const char *tool) {
    char *path = NULL;
    const char *slash = strrchr(hetucc, '/');
    if (asprintf(&path, "%.*s%s", (int)(slash ? slash + 1 - hetucc : 0), hetucc, tool) < 0)
        ht_fail("no memory for a strategy");
    return path;
}

/* Returns whether another user can have chosen the file `name`, a path relative to `folder`. */
static bool is_led(const char *folder, const char *name) {
    char *path = NULL;
    if (asprintf(&path, "%s%s%s", *name == '/' ? "" : folder, *name == '/' ? "" : "/", name) < 0)
        ht_fail("no memory for a strategy");
    bool led = file_is_led(path);
    free(path);
    return led;
}

/* Returns the first of the compilation's folder, hetucc and the sources that is missing, or that
 * another user can have put there; NULL: none. */
static const char *first_led(const RecompileCommand *recipe) {
    const char *folder = recipe->words[0], *hetucc = recipe->words[2];
    if (is_led(folder, folder)) return folder;
    if (strchr(hetucc, '/') && is_led(folder, hetucc)) return hetucc;
    const char *const *file = recipe->files;
    while (file && *file && !is_led(folder, *file)) file++;
    return file ? *file : NULL;
}

/* Uses posix_spawn, since a forked child would inherit memory that the ranks share. */
pid_t recompile_start(const RecompileCommand *recipe, const char *tool, const char *const *words,
                      const char *output, char *reason) {
    pid_t maker = 0;
    const char *led = first_led(recipe);
    if (led) {
        snprintf(reason, REASON,
                 "%s is gone, or another user has put it there; compile the program again, where "
                 "no other user can change what is made",
                 led);
        return 0;
    }
    char *path = tool ? tool_path(recipe->words[2], tool) : NULL,
         **environment = maker_environment(recipe->words[1]);
    const char **all = maker_words(recipe, path, words);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (output)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output,
                                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    posix_spawn_file_actions_addchdir_np(&actions, recipe->words[0]);
    int error = posix_spawn(&maker, all[0], &actions, NULL, (char *const *)all, environment);
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        snprintf(reason, REASON, "%s could not be started in %s: %s", all[0], recipe->words[0],
                 plain_error(error));
    free(all);
    free(environment);
    free(path);
    return error ? 0 : maker;
}

int recompile_ended(pid_t maker, bool wait) {
    int status;
    pid_t ended;
    while ((ended = waitpid(maker, &status, wait ? 0 : WNOHANG)) < 0 && errno == EINTR);
    if (!ended) return -1;
    return ended != maker        ? RECOMPILE_KILLED
           : WIFSIGNALED(status) ? RECOMPILE_KILLED + WTERMSIG(status)
                                 : WEXITSTATUS(status);
}
