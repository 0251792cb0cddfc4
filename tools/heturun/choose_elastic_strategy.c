/* Chooses the strategy that runs after ranks died or slots changed: the first one that fits the
 * slots left (strategies_fit). Reads the strategies of heturun --elastic. */
#include "choose_elastic_strategy.h"

#include "cluster/cluster.h"
#include "slots.h"
#include "strategy/strategy.h"
#include "syntax/lex.h"

#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char SUFFIX[] = ".strategy";

typedef struct Reader {
    Arena *arena;
    Diag *diag;
    const Cluster *cluster; // NULL: none
    const char *cluster_file;
    ChoiceList *list;
} Reader;

/* Returns the name that hetucc gives an unnamed strategy: "dp4" in file "runs/dp4.strategy". */
static const char *base_name(Arena *arena, const char *file) {
    const char *slash = strrchr(file, '/'), *begin = slash ? slash + 1 : file;
    return arena_substring(arena, begin, strcspn(begin, "."));
}

static void add_choice(Reader *reader, const char *file, Strategy *strategy) {
    if (!strategy_resolve(reader->diag, strategy, reader->cluster, reader->cluster_file)) return;
    for (int i = 0; i < reader->list->count; i++)
        if (!strcmp(reader->list->at[i].name, strategy->name))
            diag_error(reader->diag, strategy->at, "there is another strategy \"%s\" among them",
                       strategy->name);
    Choice choice = {strategy->name, arena_format(reader->arena, "%s:%s", file, strategy->name),
                     strategy_device_count(strategy), strategy_digest(reader->arena, strategy)};
    array_push(reader->arena, reader->list, choice);
}

static void read_file(Reader *reader, const char *path) {
    char *whole = realpath(path, NULL);
    const char *file = arena_string(reader->arena, whole ? whole : path);
    free(whole);
    const char *text = file_text(reader->arena, reader->diag, file);
    TokenList tokens = {0};
    StrategyList found = {0};
    if (!text) return;
    Lexer lexer = lex_begin(reader->arena, reader->diag, (Position){file, 1, 1}, text);
    lexer.lines = lexer.hashes = true;
    lex_rest(&lexer, &tokens);
    if (strategy_parse(reader->arena, reader->diag, tokens.at, NULL, base_name(reader->arena, file),
                       &found))
        for (int i = 0; i < found.count; i++) add_choice(reader, file, found.at[i]);
}

static int is_strategy(const struct dirent *entry) {
    size_t length = strlen(entry->d_name), suffix = sizeof SUFFIX - 1;
    return *entry->d_name != '.' && length > suffix &&
           !strcmp(entry->d_name + length - suffix, SUFFIX);
}

static void read_folder(Reader *reader, const char *path) {
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, is_strategy, alphasort);
    if (count <= 0)
        diag_error(reader->diag, (Position){0},
                   count ? "%s cannot be read: %s" : "%s has no files *.strategy", path,
                   strerror(errno));
    for (int i = 0; i < count; i++) {
        read_file(reader, arena_format(reader->arena, "%s/%s", path, entries[i]->d_name));
        free(entries[i]);
    }
    free(entries);
}

bool strategies_read(Arena *arena, const char *path, const char *cluster, ChoiceList *list) {
    struct stat about;
    Reader reader = {
        .arena = arena, .diag = diag_create(arena, stderr), .cluster_file = cluster, .list = list};
    if (cluster) reader.cluster = cluster_read(arena, reader.diag, cluster);
    bool known = !cluster || reader.cluster;
    if (known && !stat(path, &about) && S_ISDIR(about.st_mode)) read_folder(&reader, path);
    else if (known) read_file(&reader, path);
    bool good = !diag_errors(reader.diag);
    diag_finish(reader.diag);
    return good;
}

void strategies_drop(ChoiceList *list, const Choice *choice) {
    ptrdiff_t at = choice - list->at;
    list->count--;
    memmove(&list->at[at], &list->at[at + 1], sizeof *choice * (size_t)(list->count - at));
}

const Choice *strategies_fit(const ChoiceList *list, int slots, int *ranks) {
    const Choice *first = NULL;
    *ranks = 0;
    for (int i = 0; i < list->count; i++) {
        const Choice *choice = &list->at[i];
        if (choice->devices > slots) continue;
        first = first ? first : choice;
        *ranks = choice->devices > *ranks ? choice->devices : *ranks;
    }
    return first;
}
