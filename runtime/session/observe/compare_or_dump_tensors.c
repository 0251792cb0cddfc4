/* HETU_CHECK and HETU_DUMP: compare, or write to files, all ranks' tensors after a step. */
#include "transport/world.h"
#include "device/device.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/c_locale.h"
#include "session/data/boxes.h"
#include "session/core/program.h"

#include <hetu/kernel.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_ROOM = 4096 };

static void check_one(const Program *program, const char *what, const char *name,
                      const ht_pieces *pieces, const void *data) {
    Distribution where = {pieces, boxes_elements(pieces), program->image->device_count, NULL};
    int rank = boxes_differ(where, data, sizeof(float));
    if (rank == world_rank())
        ht_fail("after step %lld rank %d holds other bits of %s \"%s\" than a rank before it",
                (long long)program->worker.step - 1, rank, what, name);
    if (rank >= 0) world_least(0);
}

void program_check(Program *program) {
    const ht_image *image = program->image;
    for (int p = 0; p < image->param_count; p++) {
        check_one(program, "parameter", image->params[p].name, image->params[p].pieces,
                  program->slots[p]);
        for (int s = 0; s < image->params[p].state_count; s++)
            check_one(program, "a state of", image->params[p].name, image->params[p].state[s],
                      program->slots[image->param_count + (ptrdiff_t)p * image->state_count + s]);
    }
}

/* Removes a folder and its files. If the path is a link, removes the link. */
static void remove_folder(const char *path) {
    int opened = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = opened < 0 ? NULL : fdopendir(opened);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        unlinkat(opened, entry->d_name, 0);
    if (folder) closedir(folder);
    if (rmdir(path)) unlink(path);
}

/* A dump that is being written. */
typedef struct Dump {
    const char *name;     // path of the folder, for messages
    OpenFolder step, own; // the step's folder, and this rank's folder in it
} Dump;

/* Ends the program, and removes what was written of the dump. */
HT_NORETURN static void give_up(const Dump *dump, const char *name) {
    char part[PATH_ROOM + 32];
    int error = errno;
    snprintf(part, sizeof part, "%s/%d.part", dump->step.path, world_rank());
    remove_folder(part);
    ht_fail("cannot write the dump of %s to %s: %s", name, dump->name, plain_error(error));
}

/* Creates the file of a parameter (NAME, `state` -1) or of its state (NAME%STATE), plus `suffix`. A
 * slash in the name becomes %2F, a percent sign %25. Ends the program on failure. */
static FILE *open_file(const Dump *dump, const char *name, int state, const char *suffix) {
    char path[PATH_ROOM];
    size_t length = (size_t)snprintf(path, sizeof path, "%s/", dump->own.path);
    for (const char *c = name; *c && length + 16 < sizeof path; c++)
        length += (size_t)snprintf(path + length, sizeof path - length,
                                   *c == '/'   ? "%%2F"
                                   : *c == '%' ? "%%25"
                                               : "%c",
                                   *c);
    if (state >= 0) length += (size_t)snprintf(path + length, sizeof path - length, "%%%d", state);
    snprintf(path + length, sizeof path - length, "%s", suffix);
    int made = file_create(path);
    FILE *file = made < 0 ? NULL : fdopen(made, "wb");
    if (!file) give_up(dump, name);
    return file;
}

static void close_file(const Dump *dump, FILE *file, const char *name) {
    if (ferror(file) | fclose(file)) give_up(dump, name);
}

/* Writes the shape, then one line for each box: "0:4 2:6" has rows 0 to 3 and columns 2 to 5. */
static void write_boxes(FILE *file, const ht_pieces *pieces, int rank) {
    for (int d = 0; d < pieces->rank; d++)
        fprintf(file, "%s%lld", d ? " " : "", (long long)pieces->extent[d]);
    fprintf(file, "\n");
    for (int b = boxes_first(pieces, rank); b < boxes_end(pieces, rank); b++) {
        int64_t bounds[PIECES_MOST_BOUNDS];
        boxes_bounds(pieces, b, bounds);
        for (int d = 0; d < pieces->rank; d++)
            fprintf(file, "%s%lld:%lld", d ? " " : "", (long long)bounds[2 * d],
                    (long long)bounds[2 * d + 1]);
        fprintf(file, "\n");
    }
}

static void dump_one(const Dump *dump, const char *name, int state, const ht_pieces *pieces,
                     void *data) {
    FILE *file = open_file(dump, name, state, ".bin");
    int64_t bytes = boxes_count(pieces, world_rank()) * (int64_t)sizeof(float);
    void *host = device_map(data, bytes, DEVICE_READ);
    void *packed = memory_array(bytes, 1);
    boxes_pack(pieces, world_rank(), host, packed, true);
    fwrite(packed, 1, (size_t)bytes, file);
    free(packed);
    device_unmap(data, host, bytes, DEVICE_READ);
    close_file(dump, file, name);
    file = open_file(dump, name, state, ".boxes");
    write_boxes(file, pieces, world_rank());
    close_file(dump, file, name);
}

/* Opens the step's folder, and creates RANK.part in it. */
static void open_dump(Dump *dump, const char *step) {
    char part[PATH_ROOM + 32], name[32];
    int error = folder_open(&dump->step, step);
    if (error) ht_fail("cannot make the folder %s: %s", step, folder_error(error));
    snprintf(name, sizeof name, "%d.part", world_rank());
    snprintf(part, sizeof part, "%s/%s", dump->step.path, name);
    remove_folder(part);
    if ((error = folder_make(&dump->own, &dump->step, name)))
        ht_fail("cannot make the folder %s.part: %s", dump->name, plain_error(error));
}

/* Renames RANK.part to RANK, once all files are written. */
static void close_dump(Dump *dump) {
    char path[PATH_ROOM + 32], part[PATH_ROOM + 32];
    snprintf(path, sizeof path, "%s/%d", dump->step.path, world_rank());
    snprintf(part, sizeof part, "%s/%d.part", dump->step.path, world_rank());
    remove_folder(path);
    if (rename(part, path)) give_up(dump, "all");
    folder_close(&dump->own);
    folder_close(&dump->step);
}

void program_dump(const Program *program, const char *folder, const char *when) {
    char step[PATH_ROOM], name[PATH_ROOM + 32];
    snprintf(step, sizeof step, "%s/%s%lld", folder, when, (long long)program->worker.step - 1);
    snprintf(name, sizeof name, "%s/%d", step, world_rank());
    Dump dump = {.name = name};
    open_dump(&dump, step);
    for (int p = 0; p < program->image->param_count; p++) {
        const ht_image_param *image = &program->image->params[p];
        dump_one(&dump, image->name, -1, image->pieces, program->slots[p]);
        for (int s = 0; s < image->state_count; s++)
            dump_one(
                &dump, image->name, s, image->state[s],
                program->slots[program->image->param_count + p * program->image->state_count + s]);
    }
    close_dump(&dump);
}
