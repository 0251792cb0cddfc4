/* Gives rows of a batch to pipelines that read them whole. Without padding lengths, a rank reads
 * the rows of its input's layout (rows_of_rank.c). */
#include "session/data/rows.h"

#include "base/memory.h"
#include "exchange/copy_boxes.h"
#include "session/data/feed.h"

#include <stdlib.h>

/* The rows of a batch, and which pipelines can take them. */
typedef struct Arrangement {
    int64_t batch;
    int pipelines;
    bool *fits;           // by row and pipeline: whether the pipeline reads the row whole
    int *fitting;         // by pipeline: number of rows that fit
    int *choices;         // by row: number of pipelines that the row fits
    int64_t *room;        // by pipeline: number of rows that are still free
    int *pipeline_of_row; // by row; -1: not assigned yet
} Arrangement;

static int64_t rows_of(const ht_pipeline *pipeline) {
    return pipeline->rows * pipeline->microbatches;
}

/* Clears `fits` where a pipeline does not read a row of an input whole. */
static void look_at(Arrangement *all, const ht_image *image, const AssignedInput *input) {
    int64_t needs[HT_MAX_RANK];
    void *row = memory_array(input->plan->row + 1, ht_dtype_bytes(input->image->dtype));
    for (int64_t r = 0; r < all->batch; r++) {
        dataset_fill(input->plan, input->image->dtype, r * input->plan->row,
                     (r + 1) * input->plan->row, row);
        padding_needs(input->image, row, needs);
        for (int p = 0; p < all->pipelines; p++)
            all->fits[r * all->pipelines + p] &=
                padding_fits(input->image, image->pipelines[p].first_row, needs);
    }
    free(row);
}

static Arrangement look_at_all(const ht_image *image, const AssignedInput *inputs, int count,
                               int64_t batch) {
    int pipelines = image->pipeline_count;
    Arrangement all = {batch,
                       pipelines,
                       memory_array(batch * pipelines + 1, sizeof(bool)),
                       memory_array(pipelines + 1, sizeof(int)),
                       memory_array(batch + 1, sizeof(int)),
                       memory_array(pipelines + 1, sizeof(int64_t)),
                       memory_array(batch + 1, sizeof(int))};
    for (int64_t i = 0; i < batch * pipelines; i++) all.fits[i] = true;
    for (int i = 0; i < count; i++)
        if (inputs[i].image->padding) look_at(&all, image, &inputs[i]);
    for (int64_t i = 0; i < batch * pipelines; i++) {
        all.fitting[i % pipelines] += all.fits[i];
        all.choices[i / pipelines] += all.fits[i];
    }
    for (int p = 0; p < pipelines; p++) all.room[p] = rows_of(&image->pipelines[p]);
    for (int64_t r = 0; r < batch; r++) all.pipeline_of_row[r] = -1;
    return all;
}

static void forget(Arrangement *all) {
    free(all->fits);
    free(all->fitting);
    free(all->choices);
    free(all->room);
    free(all->pipeline_of_row);
}

/* Returns whether every row fits the pipeline at the row's position, so that no row must move. */
static bool stands_well(const Arrangement *all, const ht_image *image) {
    bool well = true;
    for (int p = 0; p < all->pipelines; p++)
        for (int64_t r = image->pipelines[p].first_row;
             r < image->pipelines[p].first_row + rows_of(&image->pipelines[p]); r++)
            well &= r >= all->batch || all->fits[r * all->pipelines + p];
    return well;
}

/* Returns the pipeline for `row`: the one that the fewest rows fit, among the pipelines that have
 * free rows and that `row` fits; -1: none. */
static int tightest(const Arrangement *all, int64_t row) {
    int found = -1;
    for (int p = 0; p < all->pipelines; p++) {
        bool open = all->room[p] && all->fits[row * all->pipelines + p];
        found = open && (found < 0 || all->fitting[p] < all->fitting[found]) ? p : found;
    }
    return found;
}

/* Assigns rows to pipelines greedily, rows with the fewest choices first. Returns a row that fits
 * no pipeline with free rows; -1: all are assigned. */
static int64_t place(Arrangement *all) {
    for (int choices = 0; choices <= all->pipelines; choices++)
        for (int64_t r = 0; r < all->batch; r++) {
            if (all->choices[r] != choices) continue;
            int p = all->pipeline_of_row[r] = tightest(all, r);
            if (p < 0) return r;
            all->room[p]--;
        }
    return -1;
}

/* Returns the rows by position in the batch; free() them. A pipeline's rows keep their order. */
static int64_t *order_of(const Arrangement *all, const ht_image *image) {
    int64_t *order = memory_array(all->batch + 1, sizeof *order);
    for (int p = 0; p < all->pipelines; p++) {
        int64_t at = image->pipelines[p].first_row;
        for (int64_t r = 0; r < all->batch; r++)
            if (all->pipeline_of_row[r] == p) order[at++] = r;
    }
    return order;
}

int64_t *assign_rows(const ht_image *image, const AssignedInput *inputs, int count, int64_t batch,
                     int64_t *left) {
    bool padded = false;
    *left = -1;
    for (int i = 0; i < count; i++) padded |= inputs[i].image->padding != NULL;
    if (!padded) return NULL;
    Arrangement all = look_at_all(image, inputs, count, batch);
    bool well = stands_well(&all, image);
    *left = well ? -1 : place(&all);
    int64_t *order = well || *left >= 0 ? NULL : order_of(&all, image);
    forget(&all);
    return order;
}
