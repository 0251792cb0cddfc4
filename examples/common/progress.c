/* Progress of training, and the files that tests compare. */
#include "train.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

_Noreturn static void file_fail(const char *path)
{
    fprintf(stderr, "error: cannot write %s: %s\n", path, strerror(errno));
    exit(1);
}

static FILE *file_create(const char *path)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        file_fail(path);
    return file;
}

static void file_finish(FILE *file, const char *path)
{
    if (ferror(file) | fclose(file))
        file_fail(path);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

Progress progress_start(const Options *options, double items, const char *unit)
{
    Progress progress = {.options = options, .items = items, .unit = unit};
    if (options->losses && !options->saved)
        progress.losses = file_create(options->losses);
    return progress;
}

/* Opens the file of losses to append after its first `steps` lines; deletes its later lines. */
static FILE *losses_open(const char *path, int steps)
{
    FILE *file = steps ? fopen(path, "r+b") : fopen(path, "wb");
    char line[64];
    for (int i = 0; i < steps && file; i++)
        if (!fgets(line, sizeof line, file)) {
            fprintf(stderr, "error: %s has the losses of %d steps, and the checkpoint is of %d\n", path, i, steps);
            exit(1);
        }
    if (!file || fseek(file, 0, SEEK_CUR) || ftruncate(fileno(file), ftell(file)))
        file_fail(path);
    return file;
}

int progress_resume(Progress *progress, ht_session *session, uint64_t *draw)
{
    const Options *options = progress->options;
    if (!options->saved)
        return 0;
    progress->session = session;
    progress->draw = draw;
    progress->step = progress->first = progress->saved = (int)ht_resume(session, options->saved);
    if (progress->first && !options->fixed)
        *draw = (uint64_t)ht_noted_value(session, "draw.high", 0) << 32 | (uint64_t)ht_noted_value(session, "draw.low", 0);
    if (options->losses)
        progress->losses = losses_open(options->losses, progress->first);
    if (progress->first)
        printf("goes on behind step %d\n", progress->first);
    return progress->first;
}

/* Makes the copy and the checkpoint that are due; if training ends, a checkpoint. Writes pending losses first. */
static void save(Progress *progress, bool ends)
{
    const Options *options = progress->options;
    double high = (double)(*progress->draw >> 32), low = (double)(*progress->draw & UINT32_MAX);
    if (progress->losses)
        fflush(progress->losses);
    if (!ends && options->copy && progress->step % options->copy == 0)
        ht_remember(progress->session, options->saved, ht_note("draw.high", high), ht_note("draw.low", low));
    if (!ends && (!options->save || progress->step % options->save))
        return;
    ht_save(progress->session, options->saved, ht_note("draw.high", high), ht_note("draw.low", low));
    progress->saved = progress->step;
}

bool progress_ended(Progress *progress)
{
    if (!progress->session || !ht_told_to_end(progress->session))
        return false;
    if (progress->saved != progress->step)
        save(progress, true);
    progress->told = true;
    printf("told to end behind step %d\n", progress->step);
    fflush(stdout);
    return true;
}

static void line_print(const Progress *progress, float loss)
{
    int done = progress->step - progress->first - 1, left = progress->options->steps - progress->step;
    printf("step %*d/%d  loss %.4f", 4, progress->step, progress->options->steps, loss);
    if (done > 0) {
        double each = progress->elapsed / done;
        int seconds = (int)(each * left + 0.5);
        printf("  %.0f %s/s  %d:%02d:%02d left", progress->items / each, progress->unit, seconds / 3600, seconds / 60 % 60, seconds % 60);
    }
    printf("\n");
    fflush(stdout);
}

void progress_step(Progress *progress, float loss)
{
    if (progress->step++ == progress->first)
        progress->start = now();
    progress->elapsed = now() - progress->start;
    if (progress->losses)
        fprintf(progress->losses, "%.9g\n", loss);
    if (progress->session)
        save(progress, false);
    if (progress->step == progress->first + 1 || progress->step == progress->options->steps || progress->step % progress->options->every == 0)
        line_print(progress, loss);
}

static void parameters_write(ht_session *session, const char *path)
{
    FILE *file = file_create(path);
    size_t count;
    const char *name;
    for (int i = 0; (name = ht_param_name(session, i, &count)); i++) {
        float *value = memory(count, sizeof *value);
        ht_get_param(session, name, value, count);
        fprintf(file, "%s %zu\n", name, count);
        fwrite(value, sizeof *value, count, file);
        free(value);
    }
    file_finish(file, path);
}

void progress_end(Progress *progress, ht_session *session)
{
    if (progress->losses)
        file_finish(progress->losses, progress->options->losses);
    if (progress->options->dump)
        parameters_write(session, progress->options->dump);
}
