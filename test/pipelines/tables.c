/* Pipelines without a compiler: an image whose tables are made here, and the runtime that walks them.
 *
 *     mpirun -n PIPELINES*STAGES tables SCHEDULE STAGES PIPELINES MICROBATCHES FORWARD BACKWARD [RANK PART MICROBATCH]
 *
 * A stage multiplies what comes by its weights, element by element; the loss is the sum of what the last one gives. SCHEDULE is gpipe or
 * 1f1b; FORWARD and BACKWARD are milliseconds for which a part sleeps. Pipeline p takes MICROBATCHES - p micro-batches. Their gradients are
 * summed once a step, beside computing where the schedule allows it. With more arguments a rank kills itself in a part: forward, backward,
 * update.
 *
 * What a stage computes is in stages.c, for CUDA in stages.cu.
 *
 * Rank 0 computes the same by itself and compares all bits, and prints "same bits", and the seconds of the shortest step. */
#include "tables.h"

#include <hetu/hetu.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STEPS = 4, MOST = 64 };

static const char *const part_names[PARTS] = {"forward", "backward", "tail", "update"};

int stages, pipelines;

static bool breadth_first; // gpipe
static int microbatches;
static int milliseconds[UPDATE];
static int victim = -1, last_part, last_microbatch;

void part_begins(const ht_worker *r, int part)
{
    if (r->device == victim && part == last_part && (part >= TAIL || r->microbatch == last_microbatch) && r->step == 1)
        raise(SIGKILL);
    if (part < UPDATE)
        usleep((useconds_t)milliseconds[part] * 1000);
}

/* ---- tables ---- */

static const ht_reshard_tensor f32 = {HT_F32, HT_SUM, 0};
static const ht_block one_block[2] = {{HT_FROM, 0, 0, 0, WIDTH}, {HT_TO, 0, 0, 0, WIDTH}};
static ht_reshard_device ends[2][MOST][2], members[MOST];
static ht_group group[MOST];
static ht_reshard plan[2][MOST],
    sum_plan = {.name = "tables.c: sum", .kind = -1, .tensor_count = 1, .tensor = &f32, .device = members, .group = group};
static const ht_reshard *plans[2 * MOST + 1];
static int plan_count;

/* One message between the positions `low` and low + 1 of a pipeline, up or down. */
static void make_message(int low, bool up)
{
    for (int end = 0; end < 2; end++) {
        bool sends = (end == 0) == up;
        ht_block *block = malloc(sizeof *block);
        ht_reshard_step *step = calloc(1, sizeof *step);
        *block = one_block[sends ? 0 : 1];
        block->peer = low + 1 - end;
        *step = (ht_reshard_step){
            .verb = HT_EXCHANGE, .dtype = HT_F32, .send_count = sends, .receive_count = !sends, .send = block, .receive = block};
        ends[up][low][end] = (ht_reshard_device){low + end, 1, 0, step};
    }
    plan[up][low] =
        (ht_reshard){.name = "tables.c: message", .kind = 0, .tensor_count = 1, .device_count = 2, .tensor = &f32, .device = ends[up][low]};
    plans[plan_count++] = &plan[up][low];
}

/* The sum over the pipelines of what stages hold alike. */
static void make_sum(void)
{
    for (int s = 0; s < stages; s++) {
        int *ranks = calloc((size_t)pipelines, sizeof *ranks);
        for (int p = 0; p < pipelines; p++)
            ranks[p] = p * stages + s;
        group[s] = (ht_group){pipelines, ranks};
    }
    for (int d = 0; d < stages * pipelines; d++) {
        ht_reshard_step *step = calloc(1, sizeof *step);
        *step = (ht_reshard_step){.verb = HT_ALL_REDUCE,
                                  .dtype = HT_F32,
                                  .reduction = HT_SUM,
                                  .group = d % stages,
                                  .send_count = 1,
                                  .receive_count = 1,
                                  .send = &one_block[0],
                                  .receive = &one_block[1]};
        members[d] = (ht_reshard_device){d, 1, 0, step};
    }
    sum_plan.group_count = stages;
    sum_plan.device_count = stages * pipelines;
    plans[plan_count++] = &sum_plan;
}

static ht_transfer transfer_of(const ht_reshard *which, int64_t from, int64_t to, ht_queue queue, const char *where)
{
    int64_t *buffers = calloc(3, sizeof *buffers);
    buffers[0] = from;
    buffers[1] = to;
    return (ht_transfer){.plan = which,
                         .from = buffers,
                         .to = buffers + 1,
                         .turn = buffers + 2,
                         .queue = queue,
                         .ready = queue == HT_QUEUE_GRADIENTS,
                         .where = where};
}

static const int receives[PARTS][1] = {[FORWARD] = {ACTIVATION_IN}, [BACKWARD] = {GRADIENT_IN}, [UPDATE] = {SUM}};
static const int sends[PARTS][1] = {[FORWARD] = {ACTIVATION_OUT}, [BACKWARD] = {GRADIENT_OUT}};

/* The parts and transfers of a stage; those at an end of the pipeline lack some. */
static ht_image_role role_of_stage(int s)
{
    bool first = s == 0, last = s == stages - 1, sums = pipelines > 1;
    ht_transfer *t = calloc(TRANSFERS, sizeof *t);
    ht_part *part = calloc(PARTS, sizeof *part);
    t[ACTIVATION_IN] = transfer_of(first ? &plan[1][0] : &plan[1][s - 1], 0, HT_KEPT, HT_QUEUE_STAGES, "tables.c: activation in");
    t[ACTIVATION_OUT] = transfer_of(&plan[1][last ? 0 : s], HT_KEPT + LINE, 0, HT_QUEUE_STAGES, "tables.c: activation out");
    t[GRADIENT_IN] = transfer_of(&plan[0][last ? 0 : s], 0, HT_KEPT + 2 * LINE, HT_QUEUE_STAGES, "tables.c: gradient in");
    t[GRADIENT_OUT] = transfer_of(first ? &plan[0][0] : &plan[0][s - 1], HT_KEPT + 3 * LINE, 0, HT_QUEUE_STAGES, "tables.c: gradient out");
    t[SUM] = transfer_of(&sum_plan, 0, LINE, HT_QUEUE_GRADIENTS, "tables.c: sum of gradients");
    part[FORWARD] = (ht_part){"forward", forward, !first, !last, receives[FORWARD], sends[FORWARD], 0, NULL, NULL, NULL, NULL, 0, NULL};
    part[BACKWARD] = (ht_part){"backward", backward, !last, !first, receives[BACKWARD], sends[BACKWARD], 0, NULL, NULL, NULL, NULL, 0, NULL};
    part[TAIL] = (ht_part){"tail", tail, 0, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL, 0, NULL};
    part[UPDATE] = (ht_part){"update", update, sums, 0, receives[UPDATE], NULL, 0, NULL, NULL, NULL, NULL, 0, NULL};
    return (ht_image_role){3 * LINE, 4 * LINE, PARTS, sums ? TRANSFERS : SUM, part, t};
}

/* The rows of a stage for `count` micro-batches. */
static const ht_schedule *schedule_of(int s, int count)
{
    int slots = breadth_first || count < stages - s ? count : stages - s, ahead = breadth_first ? count : slots, rows = 0, f = 0;
    ht_row *row = calloc(2 * (size_t)count + 2, sizeof *row);
    ht_schedule *made = malloc(sizeof *made);
    for (int b = 0; b < count; b++) {
        for (; f < count && f < b + ahead; f++)
            row[rows++] = (ht_row){FORWARD, f, f % slots};
        row[rows++] = (ht_row){BACKWARD, b, b % slots};
    }
    row[rows++] = (ht_row){TAIL, count - 1, -1};
    row[rows++] = (ht_row){UPDATE, 0, -1};
    *made = (ht_schedule){rows, slots, row};
    return made;
}

static int own[MOST], no_piece[MOST]; // by rank: itself; -1

/* The pieces of a tensor of `rows` rows, of which rank d has those from first[d] to before first[d] + count[d]: a run and a row for each
 * rank that has any. */
static const ht_pieces *pieces_of(int rows, const int *first, const int *count)
{
    int ranks = stages * pipelines, held = 0;
    int64_t *extent = malloc(2 * sizeof *extent), *box = calloc(7 * (size_t)ranks, sizeof *box);
    ht_run *run = calloc((size_t)ranks, sizeof *run);
    ht_pieces *made = malloc(sizeof *made);
    extent[0] = rows;
    extent[1] = WIDTH;
    for (int d = 0; d < ranks; d++)
        if (count[d]) {
            run[held] = (ht_run){d, 1, held, 0};
            memcpy(box + 7 * held, (int64_t[]){held, first[d], first[d] + count[d], 0, 0, WIDTH, 0}, 7 * sizeof *box);
            held++;
        }
    *made = (ht_pieces){2, held, held, extent, run, NULL, box, NULL};
    return made;
}

static int64_t zero_extent[1] = {1};
static int microbatches_of(int p) { return microbatches - p; }
static int first_row_of(int p) { return p * microbatches - p * (p - 1) / 2; }

/* ---- the image ---- */

static ht_image_role roles[MOST];
static ht_pipeline pipeline[MOST];
static ht_image_param params[MOST];
static ht_image_input inputs[1];
static ht_image_output outputs[1];
static int role_of[MOST], pipeline_of[MOST];
static const ht_schedule *schedule[MOST];
static ht_image image;

static void make_pipelines(void)
{
    for (int p = 0; p < pipelines; p++) {
        int *ranks = calloc((size_t)stages, sizeof *ranks);
        for (int s = 0; s < stages; s++) {
            int d = ranks[s] = p * stages + s;
            role_of[d] = s;
            pipeline_of[d] = p;
            own[d] = d;
            no_piece[d] = -1;
            schedule[d] = schedule_of(s, microbatches_of(p));
        }
        pipeline[p] = (ht_pipeline){0, microbatches_of(p), 1, first_row_of(p), stages, ranks};
    }
}

static void make_tensors(void)
{
    static int first[MOST], count[MOST];
    static int64_t loss_box[1];
    static ht_run loss_run[MOST];
    static ht_pieces loss = {.rank = 0, .row_count = 1, .extent = zero_extent, .run = loss_run, .box = loss_box};
    static int64_t buffer[MOST];
    memset(count, 0, sizeof count);
    for (int d = 0; d < stages * pipelines; d++) {
        if (d == stages - 1)
            loss_run[loss.run_count++] = (ht_run){d, 1, 0, 0};
        buffer[d] = 2 * LINE;
        count[d] = d % stages == 0 ? microbatches_of(d / stages) : 0;
        first[d] = first_row_of(d / stages);
    }
    inputs[0] = (ht_image_input){"x", HT_F32, pieces_of(first_row_of(pipelines), first, count), "tables.c", NULL};
    outputs[0] = (ht_image_output){"", HT_F32, &loss, buffer};
    for (int d = 0; d < stages * pipelines; d++) {
        first[d] = d % stages;
        count[d] = 1;
    }
    params[0] = (ht_image_param){.name = "w", .shape = "", .pieces = pieces_of(stages, first, count), .init = 1, .a = 1};
}

ht_tensor model(void);
ht_tensor model(void) { abort(); }
static void step_operator(void) {}
static void step_kernel(const ht_call *call) { (void)call; }

static void make_image(void)
{
    static void (*const updates[])(void) = {step_operator, NULL};
    static const char *const names[] = {NULL};
    for (int s = 0; s < stages - 1; s++) {
        make_message(s, true);
        make_message(s, false);
    }
    make_sum();
    for (int s = 0; s < stages; s++)
        roles[s] = role_of_stage(s);
    make_pipelines();
    make_tensors();
    image = (ht_image){.version = HT_IMAGE_VERSION,
                       .group_count = 1,
                       .groups = names,
                       .rule_names = names,
                       .fingerprint = "tables",
                       .model = "model",
                       .source = "tables.c",
                       .trains = true,
                       .dtype = HT_F32,
                       .device_count = stages * pipelines,
                       .param_count = 1,
                       .input_count = 1,
                       .output_count = 1,
                       .role_count = stages,
                       .params = params,
                       .inputs = inputs,
                       .outputs = outputs,
                       .loss = 0,
                       .roles = roles,
                       .role_of = role_of,
                       .piece_of = no_piece,
                       .pipeline_count = pipelines,
                       .pipelines = pipeline,
                       .pipeline_of = pipeline_of,
                       .schedule_of = own,
                       .schedule = schedule,
                       .plan_count = pipelines > 1 ? plan_count : plan_count - 1,
                       .plan = plans};
    ht_register(&image, model, updates, NULL);
}

/* ---- rank 0 ---- */

static float x[MOST * MOST][WIDTH], w[MOST][WIDTH], found[MOST][WIDTH];

/* A step of pipeline p: adds up the gradients of all stages. */
static void run_pipeline(int p, float (*sum)[WIDTH], float *loss)
{
    static float value[MOST + 1][WIDTH];
    for (int m = 0; m < microbatches_of(p); m++)
        for (int i = 0; i < WIDTH; i++) {
            value[0][i] = x[first_row_of(p) + m][i];
            for (int s = 0; s < stages; s++)
                value[s + 1][i] = value[s][i] * w[s][i];
            *loss += value[stages][i];
            float back = 1;
            for (int s = stages - 1; s >= 0; back *= w[s--][i])
                sum[s][i] = m ? sum[s][i] + back * value[s][i] : back * value[s][i];
        }
}

/* A step as one device does it; the loss of pipeline 0. */
static float run_alone(void)
{
    static float sum[MOST][WIDTH], all[MOST][WIDTH];
    float loss = 0, other = 0;
    for (int p = 0; p < pipelines; p++) {
        run_pipeline(p, sum, p ? &other : &loss);
        for (int s = 0; s < stages; s++)
            for (int i = 0; i < WIDTH; i++)
                all[s][i] = p ? all[s][i] + sum[s][i] : sum[s][i];
    }
    for (int s = 0; s < stages; s++)
        for (int i = 0; i < WIDTH; i++)
            w[s][i] -= RATE * all[s][i];
    return loss;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int train(ht_session *session)
{
    ht_program *program = ht_train(session, model, ((ht_optimizer){.update = step_operator, .kernel = step_kernel}));
    double shortest = 1e9;
    bool same = true;
    for (int m = 0; m < first_row_of(pipelines); m++)
        for (int i = 0; i < WIDTH; i++)
            x[m][i] = (float)((m * 31 + i * 7) % 101 - 50) / 512;
    for (int s = 0; s < stages; s++)
        for (int i = 0; i < WIDTH; i++)
            w[s][i] = 1 + (float)((s + i) % 9) / 64;
    ht_set_param(session, "w", w[0], (size_t)stages * WIDTH);
    for (int step = 0; step < STEPS; step++) {
        double start = now();
        float loss = ht_step(program, ht_feed_n("x", &x[0][0], (int64_t)first_row_of(pipelines) * WIDTH));
        shortest = now() - start < shortest ? now() - start : shortest;
        same = loss == run_alone() && same;
    }
    ht_get_param(session, "w", found[0], (size_t)stages * WIDTH);
    same = !memcmp(found, w, sizeof(float) * WIDTH * (size_t)stages) && same;
    printf("%s\nseconds %.4f\n", same ? "same bits" : "other bits", shortest);
    return !same;
}

int main(int argc, char **argv)
{
    if (argc < 7 || atoi(argv[2]) * atoi(argv[3]) > MOST)
        return 2;
    breadth_first = !strcmp(argv[1], "gpipe");
    stages = atoi(argv[2]);
    pipelines = atoi(argv[3]);
    microbatches = atoi(argv[4]);
    milliseconds[FORWARD] = atoi(argv[5]);
    milliseconds[BACKWARD] = atoi(argv[6]);
    milliseconds[TAIL] = getenv("TABLES_TAIL") ? atoi(getenv("TABLES_TAIL")) : 0;
    for (int part = 0; argc > 9 && part < PARTS; part++)
        if (!strcmp(argv[8], part_names[part])) {
            victim = atoi(argv[7]);
            last_part = part;
            last_microbatch = atoi(argv[9]);
        }
    make_image();
    return train(ht_open(&argc, &argv));
}
