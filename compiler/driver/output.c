/* Writes outputs under temporary names, renames complete ones, removes others at exit or signal. */
#include "driver/output.h"

#include "support/reading.h"
#include "support/sarif.h"
#include "support/secure.h"
#include "support/tool.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* ---- messages ---- */

static bool soft; // complain prints warnings

void complain_softly(void) { soft = true; }

void complain(const char *format, ...) {
    enum { MOST = 8192 };
    char message[MOST];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    sarif_add(soft ? SARIF_WARNING : SARIF_ERROR, NULL, message);
    if (!sarif_has_stderr()) tool_message(stderr, soft ? "warning" : "error", "%s", message);
}

/* ---- files to remove at the end ----
 *
 * Entries are added in front or emptied, never freed, since a signal handler walks the list. */

typedef struct Removal Removal;
struct Removal {
    Removal *next;
    const char *volatile path; // NULL: removed already
};

static Removal *volatile removals;
static const char *volatile temporary_folder;

/* A folder of outputs, which stays open, and the prefix for paths of its files. */
typedef struct Entered {
    struct Entered *next;
    const char *folder, *inside;
} Entered;

static Entered *entered;

static void remove_at_end(Arena *arena, const char *path) {
    Removal *removal = arena_new(arena, Removal);
    *removal = (Removal){.next = removals, .path = path};
    removals = removal;
}

static void remove_no_more(const char *path) {
    for (Removal *removal = removals; removal; removal = removal->next)
        if (removal->path == path) removal->path = NULL;
}

void outputs_clean(void) {
    for (Removal *removal = removals; removal; removal = removal->next)
        if (removal->path && unlink(removal->path)) rmdir(removal->path);
    if (temporary_folder) rmdir(temporary_folder);
}

void outputs_close(void) {
    outputs_clean();
    if (temporary_folder) secure_remove(temporary_folder); // also files that programs left in it
    removals = NULL;
    entered = NULL;
    temporary_folder = NULL;
}

/* ---- temporary files ---- */

/* Makes a folder for temporary files. Ends the process with a message when that fails. */
static const char *make_folder(Arena *arena) {
    const char *base = getenv("TMPDIR");
    base = base && *base ? base : "/tmp";
    char *whole = realpath(base, NULL),
         *folder = arena_format(arena, "%s/hetucc-XXXXXX", whole ? whole : base);
    const char *wrong = secure_parent_wrong(base);
    free(whole);
    if (wrong || !mkdtemp(folder)) {
        complain("cannot make a folder for temporary files (%s): %s; TMPDIR names another place",
                 folder, wrong ? wrong : strerror(errno));
        exit(1);
    }
    return folder;
}

const char *temporary(Toolchain *tools, const char *name) {
    if (!tools->folder) tools->folder = tools->dry_run ? "/tmp/hetucc" : make_folder(tools->arena);
    if (!tools->dry_run) temporary_folder = tools->folder;
    const char *path = arena_format(tools->arena, "%s/%s", tools->folder, name);
    remove_at_end(tools->arena, path);
    return path;
}

bool temporary_full(const Toolchain *tools) {
    enum { TIGHT = 16 << 20 }; // bytes that a C compiler may need for one file
    struct statvfs space;
    if (!tools->folder || tools->dry_run || statvfs(tools->folder, &space) ||
        (double)space.f_bavail * (double)space.f_frsize >= TIGHT)
        return false;
    complain(
        "the folder for temporary files, %s, has no room left (%lld KiB); TMPDIR names another",
        tools->folder, (long long)((double)space.f_bavail * (double)space.f_frsize / 1024));
    return true;
}

/* ---- outputs ---- */

/* Returns a prefix for paths of files in a folder, which stays valid when the folder's path is
 * replaced; NULL with the reason in *why. */
static const char *enter(Arena *arena, const char *folder, const char **why) {
    char inside[PATH_MAX];
    for (const Entered *known = entered; known; known = known->next)
        if (!strcmp(known->folder, folder)) return known->inside;
    if (secure_enter(folder, inside, sizeof inside, why) < 0) return NULL;
    Entered *made = arena_new(arena, Entered);
    *made = (Entered){entered, folder, arena_string(arena, inside)};
    entered = made;
    return made->inside;
}

const char *output_begin(Toolchain *tools, const char *path) {
    struct stat found;
    bool exists = !stat(path, &found);
    const char *wrong = tools->dry_run ? NULL : secure_output_wrong(path);
    if (wrong) {
        complain("cannot write %s: %s", path, wrong);
        return NULL;
    }
    if (tools->dry_run || (exists && (!S_ISREG(found.st_mode) || secure_is_descriptor(path))))
        return path;
    if (exists && access(path, W_OK)) {
        complain("cannot write %s: %s", path, strerror(errno));
        return NULL;
    }
    const char *slash = strrchr(path, '/'),
               *folder = slash ? arena_format(tools->arena, "%.*s",
                                              slash > path ? (int)(slash - path) : 1, path)
                               : ".",
               *inside = enter(tools->arena, folder, &wrong);
    if (!inside) {
        complain("cannot write %s: %s", path, wrong);
        return NULL;
    }
    char *written = arena_format(tools->arena, "%s/.%s.XXXXXX", inside, slash ? slash + 1 : path);
    int file = mkstemp(written);
    if (file < 0) {
        complain("cannot write %s: %s", path, strerror(errno));
        return NULL;
    }
    remove_at_end(tools->arena, written);
    close(file);
    return written;
}

bool output_finish(Toolchain *tools, const char *written, const char *path, unsigned mode) {
    if (tools->dry_run || written == path) return true;
    const char *slash = strrchr(path, '/');
    int folder = (int)(strrchr(written, '/') - written);
    const char *target =
        arena_format(tools->arena, "%.*s/%s", folder, written, slash ? slash + 1 : path);
    mode_t mask = umask(0);
    umask(mask);
    if (!secure_permit(written, mode & ~mask) || rename(written, target)) {
        complain("cannot write %s: %s", path, strerror(errno));
        return false;
    }
    remove_no_more(written);
    return true;
}

bool file_read(const char *path, Text *bytes) {
    enum { MOST = 1 << 28 };
    char piece[8192];
    struct stat status;
    const char *why;
    int file = reading_open(path, &why);
    FILE *stream = file < 0 ? NULL : fdopen(file, "rb");
    bool large = stream && !fstat(fileno(stream), &status) && status.st_size > MOST;
    for (size_t length; stream && !large && (length = fread(piece, 1, sizeof piece, stream));) {
        text_append(bytes, piece, length);
        large = bytes->length > MOST;
    }
    bool good = stream && !ferror(stream) && !large;
    if (stream) fclose(stream);
    if (large) errno = EFBIG;
    return good;
}

/* Opens `written`, which output_begin returned for `path`, for writing; NULL with errno set. */
static FILE *open_written(const char *written, const char *path) {
    return written == path ? fopen(written, "w") : secure_rewrite(written);
}

bool output_fill(const Toolchain *tools, const char *written, const char *path, const char *bytes,
                 size_t size) {
    if (tools->dry_run) return true;
    FILE *file = open_written(written, path);
    bool good = file && fwrite(bytes, 1, size, file) == size;
    if (file && fclose(file)) good = false;
    if (!good) complain("cannot write %s: %s", path, strerror(errno));
    return good;
}

/* Returns a path in the private temporary folder. Linkers remove their output before they write it,
 * and elsewhere another user could put a link in its place. */
const char *output_private(Toolchain *tools, const char *written) {
    return tools->dry_run ? written : temporary(tools, "output");
}

bool output_take(const Toolchain *tools, const char *made, const char *written, const char *path) {
    char piece[1 << 16];
    if (tools->dry_run) return true;
    FILE *from = fopen(made, "rb"), *to = from ? open_written(written, path) : NULL;
    bool good = to;
    for (size_t length; good && (length = fread(piece, 1, sizeof piece, from));)
        good = fwrite(piece, 1, length, to) == length;
    good = good && !ferror(from);
    if (from) fclose(from);
    if (to && fclose(to)) good = false;
    if (!good) complain("cannot write %s: %s", path, strerror(errno));
    return good;
}

const char *output_bytes(Toolchain *tools, const char *path, const char *bytes, size_t size) {
    const char *written = output_begin(tools, path);
    return written && output_fill(tools, written, path, bytes, size) ? written : NULL;
}

bool output_text(Toolchain *tools, const char *path, const char *text) {
    const char *written = output_bytes(tools, path, text, strlen(text));
    return written && output_finish(tools, written, path, 0666);
}
