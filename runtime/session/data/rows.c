/* ht_dataset: finds a step's rows; rows_of_rank.c finds a rank's share of them. */
#include "session/data/rows.h"

#include "base/memory.h"
#include "base/random.h"
#include "exchange/copy_boxes.h"

#include <stdlib.h>
#include <string.h>

/* ---- the public interface ---- */

ht_fed ht_dataset_with(const ht_rows *rows) {
    if (!rows || !rows->name || !*rows->name || !rows->path)
        ht_fail("ht_dataset was called without the %s",
                rows && rows->name && *rows->name ? "path of a file" : "name of a dataset");
    return (ht_fed){.name = rows->input ? rows->input : rows->name, .rows = rows};
}

Dataset *rows_dataset(ht_session *session, const char *name) {
    Datasets *datasets = &session->datasets;
    for (int d = 0; d < datasets->count; d++)
        if (!strcmp(datasets->at[d].name, name)) return &datasets->at[d];
    Dataset *grown = realloc(datasets->at, sizeof *grown * (size_t)(datasets->count + 1));
    if (!grown || !(grown[datasets->count].name = strdup(name)))
        ht_fail("no memory for another dataset");
    datasets->at = grown;
    grown[datasets->count].position = 0;
    return &grown[datasets->count++];
}

static void check_name(const ht_session *session, const char *call, const char *name) {
    session_check_open(session);
    if (!name || !*name) ht_fail("%s was called without the name of a dataset", call);
}

int64_t ht_dataset_position(ht_session *session, const char *name) {
    check_name(session, "ht_dataset_position", name);
    return rows_dataset(session, name)->position;
}

void ht_dataset_seek(ht_session *session, const char *name, int64_t rows) {
    check_name(session, "ht_dataset_seek", name);
    if (rows < 0) ht_fail("ht_dataset_seek was called with %lld rows", (long long)rows);
    rows_dataset(session, name)->position = rows;
}

/* ---- the rows of a step ---- */

/* An input that is fed from a file. */
typedef struct FedRows {
    const ht_rows *given;
    const char *name;
    ht_dtype dtype;
    RowsPlan plan;
} FedRows;

_Noreturn static void refuse(const FedRows *fed, const char *reason) {
    ht_fail("the dataset \"%s\" cannot give the input \"%s\" rows of %s: %s", fed->given->name,
            fed->name, fed->given->path, reason);
}

/* Describes how rows of a file feed an input. A row has all dimensions but the first. */
static FedRows fed_rows(ht_session *session, const ht_fed *feed, ht_dtype dtype, int rank,
                        const int64_t *extent) {
    const ht_rows *given = feed->rows;
    FedRows fed = {.given = given, .name = feed->name, .dtype = dtype};
    fed.plan = (RowsPlan){.batch = rank ? extent[0] : 1,
                          .in_order = given->in_order,
                          .row = 1,
                          .shift = given->shift,
                          .seed = given->seed ? given->seed : session->seed};
    fed.plan.position = rows_dataset(session, given->name)->position;
    fed.plan.stream = random_stream_of_name(given->name);
    for (int d = 1; d < rank; d++) fed.plan.row *= extent[d];
    return fed;
}

/* Sets the plan's file and number of rows; ends the program if they do not fit the input. */
static void take_file(FedRows *fed, int file) {
    const char *wrong = dataset_wrong(file, fed->dtype);
    if (wrong) refuse(fed, wrong);
    fed->plan.file = file;
    fed->plan.rows = dataset_rows(file, fed->plan.row, fed->plan.shift, &wrong);
    if (wrong) refuse(fed, wrong);
}

/* Checks that feeds of one dataset read the same rows. Files must have equal numbers of rows. Feeds
 * of one file all get the number of the feed with the largest shift, which has the fewest rows. */
static void agree(FedRows *fed, int count) {
    for (int i = 0; i < count; i++)
        for (int k = 0; k < count; k++) {
            if (i == k || strcmp(fed[i].given->name, fed[k].given->name) != 0) continue;
            bool same = !strcmp(fed[i].given->path, fed[k].given->path);
            if (same && fed[k].plan.rows < fed[i].plan.rows) fed[i].plan.rows = fed[k].plan.rows;
            if (!same && fed[i].plan.rows != fed[k].plan.rows)
                ht_fail("the dataset \"%s\" has %lld rows in %s, and %lld in %s",
                        fed[i].given->name, (long long)fed[i].plan.rows, fed[i].given->path,
                        (long long)fed[k].plan.rows, fed[k].given->path);
            if (fed[i].plan.batch != fed[k].plan.batch)
                ht_fail("the dataset \"%s\" gives the input \"%s\" %lld rows a step, and the input "
                        "\"%s\" %lld",
                        fed[i].given->name, fed[i].name, (long long)fed[i].plan.batch, fed[k].name,
                        (long long)fed[k].plan.batch);
            if (fed[i].plan.seed != fed[k].plan.seed ||
                fed[i].plan.in_order != fed[k].plan.in_order)
                ht_fail("the dataset \"%s\" has one order of rows for the input \"%s\", and "
                        "another for \"%s\"",
                        fed[i].given->name, fed[i].name, fed[k].name);
        }
}

/* Moves the datasets' positions past the rows of the step. */
static void advance(ht_session *session, const FedRows *fed, int count) {
    for (int i = 0; i < count; i++)
        rows_dataset(session, fed[i].given->name)->position =
            fed[i].plan.position + fed[i].plan.batch;
}

static int count_rows(const ht_fed *feeds) {
    int count = 0;
    for (; feeds && feeds->name; feeds++) count += feeds->rows != NULL;
    return count;
}

/* ---- images ---- */

/* Opens the file of an input on all ranks, unless it is open, and sets the plan's file and rows. */
static void open_everywhere(ht_session *session, int number, int input, FedRows *fed) {
    int file = dataset_find(fed->given->path, fed->given->element, fed->dtype);
    if (file < 0) {
        const char *wrong = dataset_open(fed->given->path, fed->given->element, fed->dtype, &file);
        if (wrong) refuse(fed, wrong);
        Command command = {
            .kind = COMMAND_OPEN_ROWS,
            .rows = {.program = number, .input = input, .elements = dataset_elements(file)}};
        Payload payload = {.open_rows = {.path = fed->given->path, .element = fed->given->element}};
        session_issue(session, &command, &payload);
        if (payload.open_rows.reason) refuse(fed, payload.open_rows.reason);
    }
    take_file(fed, file);
}

/* Ends the program because no pipeline with free rows reads all of a row. */
_Noreturn static void too_long(const FedRows *fed, int64_t left) {
    ht_fail("the dataset \"%s\" gives a step row %lld of %s, and no pipeline that has room for "
            "another row reads so far: only padding may "
            "stand behind "
            "what pipelines read; give more rows to pipelines that read longer ones",
            fed->given->name, (long long)dataset_row(&fed->plan, left), fed->given->path);
}

/* Assigns each row to a pipeline that reads all of it, for all feeds of the dataset that feed
 * `first` has. Returns the order that the feeds share; free() it. */
static int64_t *arrange(const Program *program, FedRows *fed, int count, int first) {
    int same = 0;
    int64_t left;
    AssignedInput *inputs = memory_array(count, sizeof *inputs);
    for (int i = first; i < count; i++)
        if (!strcmp(fed[i].given->name, fed[first].given->name))
            inputs[same++] = (AssignedInput){
                &program->image->inputs[program_input(program, fed[i].name)], &fed[i].plan};
    int64_t *order = assign_rows(program->image, inputs, same, fed[first].plan.batch, &left);
    if (left >= 0) too_long(&fed[first], left);
    for (int i = first; i < count; i++)
        if (!strcmp(fed[i].given->name, fed[first].given->name)) fed[i].plan.order = order;
    free(inputs);
    return order;
}

/* Returns whether an earlier feed is of the same dataset as feed i. */
static bool is_another(const FedRows *fed, int i) {
    for (int k = 0; k < i; k++)
        if (!strcmp(fed[k].given->name, fed[i].given->name)) return true;
    return false;
}

void rows_read(ht_session *session, const Program *program, int number, const ht_fed *feeds) {
    int count = count_rows(feeds), made = 0;
    FedRows *fed = memory_array(count + 1, sizeof *fed);
    for (const ht_fed *feed = feeds; count && feed->name; feed++) {
        int input = feed->rows ? program_input(program, feed->name) : -1;
        if (input < 0) continue;
        const ht_image_input *image = &program->image->inputs[input];
        fed[made] =
            fed_rows(session, feed, image->dtype, image->pieces->rank, image->pieces->extent);
        open_everywhere(session, number, input, &fed[made++]);
    }
    agree(fed, made);
    int64_t **orders = memory_array(made + 1, sizeof *orders);
    for (int i = 0; i < made; i++)
        orders[i] = is_another(fed, i) ? NULL : arrange(program, fed, made, i);
    for (int i = 0; i < made; i++) {
        Command command = {
            .kind = COMMAND_ROWS,
            .rows = {.program = number, .input = program_input(program, fed[i].name)}};
        session_issue(session, &command, &(Payload){.rows = fed[i].plan});
    }
    advance(session, fed, made);
    for (int i = 0; i < made; i++) free(orders[i]);
    free(orders);
    free(fed);
}

/* ---- the one-device library ---- */

ht_fed *rows_arrays(ht_session *session, eager_program *program, const ht_fed *feeds) {
    int count = count_rows(feeds), all = 0, made = 0;
    if (!count) return NULL;
    for (const ht_fed *feed = feeds; feed->name; feed++) all++;
    ht_fed *arrays = memory_array(all + 1, sizeof *arrays);
    FedRows *fed = memory_array(count, sizeof *fed);
    for (int i = 0; i < all; i++) {
        ht_dtype dtype;
        ht_dims shape;
        arrays[i] = feeds[i];
        if (!feeds[i].rows ||
            !session_eager()->program_input(program, feeds[i].name, &dtype, &shape))
            continue; // missing inputs are reported when the arrays are fed
        fed[made] = fed_rows(session, &feeds[i], dtype, shape.rank, shape.extent);
        int file;
        const char *wrong = dataset_open(feeds[i].rows->path, feeds[i].rows->element, dtype, &file);
        if (wrong) refuse(&fed[made], wrong);
        take_file(&fed[made++], file);
    }
    agree(fed, made);
    for (int i = 0, k = 0; i < all && k < made; i++)
        if (feeds[i].rows == fed[k].given && feeds[i].rows) {
            int64_t elements = fed[k].plan.batch * fed[k].plan.row;
            void *data = memory_array(elements + 1, ht_dtype_bytes(fed[k].dtype));
            dataset_fill(&fed[k].plan, fed[k].dtype, 0, elements, data);
            arrays[i].data = data;
            k++;
        }
    advance(session, fed, made);
    free(fed);
    return arrays;
}

void rows_free(ht_fed *feeds) {
    for (ht_fed *feed = feeds; feed && feed->name; feed++)
        if (feed->rows) free((void *)feed->data);
    free(feeds);
}
