/* hetucc --init: copies a first program into a folder. */
#include "driver/compile.h"

#include "driver/output.h"
#include "support/reading.h"
#include "support/secure.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 20 };

static const char *const names[] = {"model.c",       "data.c",         "data.h",
                                    "four.strategy", "CMakeLists.txt", "README.md"};
enum { NAMES = sizeof names / sizeof *names };

/* Makes a missing folder, and checks that none of the files exists. Returns false on errors. */
static bool check_folder(Arena *arena, const char *folder) {
    struct stat about;
    if (mkdir(folder, 0777) &&
        (errno != EEXIST || stat(folder, &about) || !S_ISDIR(about.st_mode))) {
        complain("the folder %s cannot be made: %s", folder, strerror(errno));
        return false;
    }
    for (int i = 0; i < NAMES; i++)
        if (!lstat(arena_format(arena, "%s/%s", folder, names[i]), &about)) {
            complain("%s/%s is there already; give a folder without it", folder, names[i]);
            return false;
        }
    return true;
}

/* Copies one file to a path, which must not exist. Returns false after a message. */
static bool copy_file(Arena *arena, const char *from, const char *to) {
    InputText text = reading_text(arena, READ_FILES, from, MOST_BYTES);
    if (!text.bytes) {
        complain("%s cannot be read: %s; hetucc is not installed as a whole", from, text.why);
        return false;
    }
    FILE *file = secure_create(to);
    bool good = file && fwrite(text.bytes, 1, text.length, file) == text.length;
    if (file && fclose(file)) good = false;
    if (!good) complain("%s cannot be written: %s", to, strerror(errno));
    if (file && !good) unlink(to);
    return good;
}

int init_folder(const Toolchain *tools, const char *folder) {
    Arena *arena = tools->arena;
    if (!check_folder(arena, folder)) return 1;
    for (int i = 0; i < NAMES; i++) {
        const char *to = arena_format(arena, "%s/%s", folder, names[i]);
        if (copy_file(arena, arena_format(arena, "%s/share/hetu/start/%s", tools->prefix, names[i]),
                      to))
            continue;
        for (int made = 0; made < i; made++)
            unlink(arena_format(arena, "%s/%s", folder, names[made]));
        return 1;
    }
    Text path = {.arena = arena};
    text_shell(&path, *folder == '-' ? arena_format(arena, "./%s", folder) : folder);
    printf("%s has a model, its data, and a strategy for four devices. Next:\n"
           "    cd %s\n"
           "    hetucc --strategy=four.strategy model.c data.c -o model -lm\n"
           "    ./model\n",
           folder, text_bytes(&path));
    if (!fflush(stdout)) return 0;
    complain("cannot write to standard output: %s", strerror(errno));
    return 1;
}
