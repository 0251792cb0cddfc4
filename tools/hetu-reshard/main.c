/* hetu-reshard 'f32[8,12]: [0-3]{0:4} -> [0-3]{1:4}'
 *
 * Prints the plan of a conversion, as a table or as JSON; under mpirun, with --fill and --dump, runs it. With --batch, each line of a file is a case, and case n
 * (from 0) uses the subfolders n of both folders; lines that are empty or begin with '#' or '!' are left out.
 */
#include "case.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct Options {
    const char *text, *fill, *dump, *cluster, *batch;
    bool json;
} Options;

static const struct argp_option option_list[] = {
    {"json", 'j', 0, 0, "Print the plan as JSON", 0},
    {"cluster", 'c', "FILE", 0, "Price the plan for the cluster that FILE describes", 0},
    {"fill", 'f', "DIR", 0, "Run the case: DIR/DEVICE.bin has what each device of the source holds", 0},
    {"dump", 'd', "DIR", 0, "Write what the devices of the target hold, and the traffic, to DIR", 0},
    {"batch", 'b', "FILE", 0, "Run every case of FILE, in subfolders 0, 1, ... of both folders", 0},
    {0},
};

static error_t take_option(int key, char *value, struct argp_state *state)
{
    Options *options = state->input;
    switch (key) {
    case 'j': options->json = true; return 0;
    case 'c': options->cluster = value; return 0;
    case 'f': options->fill = value; return 0;
    case 'd': options->dump = value; return 0;
    case 'b': options->batch = value; return 0;
    case ARGP_KEY_ARG:
        if (options->text)
            argp_error(state, "one case at a time");
        options->text = value;
        return 0;
    case ARGP_KEY_END:
        if (!options->text == !options->batch)
            argp_error(state, "give a case, such as 'f32[8,12]: [0-3]{0:4} -> [0-3]{1:4}', or --batch");
        if (!options->fill != !options->dump || (options->batch && !options->fill))
            argp_error(state, "--fill and --dump belong together");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int highest_device(const Case *conversion)
{
    return conversion->plan->devices[conversion->plan->device_count - 1];
}

/* The case of one line of a batch; its text is cut at '#'. */
static Case *read_line(Arena *arena, Diag *diag, char *line)
{
    line[strcspn(line, "#\n")] = 0;
    const char *text = line + strspn(line, " \t");
    return *text && *text != '!' ? case_read(arena, diag, (Position){"case", 1, 1}, arena_string(arena, text)) : NULL;
}

static int run_batch(const Options *options, const Cluster *cluster, int rank, int ranks)
{
    FILE *file = fopen(options->batch, "r");
    if (!file)
        ht_fail("cannot open %s", options->batch);
    char *line = NULL;
    size_t room = 0;
    int number = 0;
    mkdir(options->dump, 0777); // by every rank: one that has no part in the first cases may come here before rank 0
    while (getline(&line, &room, file) > 0) {
        Arena *arena = arena_create();
        Case *conversion = read_line(arena, diag_create(arena, stderr), line);
        if (conversion) {
            case_plan(arena, conversion, cluster);
            if (highest_device(conversion) >= ranks)
                ht_fail("the case needs %d ranks: %s", highest_device(conversion) + 1, conversion->text);
            run_case(conversion, rank, arena_format(arena, "%s/%d", options->fill, number), arena_format(arena, "%s/%d", options->dump, number));
            number++;
        }
        arena_destroy(arena);
    }
    free(line);
    fclose(file);
    return 0;
}

static int run_or_show(const Options *options, Case *conversion, int rank, int ranks)
{
    if (!options->fill) {
        (options->json ? report_json : report_table)(stdout, conversion);
        return 0;
    }
    if (highest_device(conversion) >= ranks)
        ht_fail("the case needs %d ranks: mpirun -np %d hetu-reshard ...", highest_device(conversion) + 1, highest_device(conversion) + 1);
    run_case(conversion, rank, options->fill, options->dump);
    return 0;
}

int main(int argc, char **argv)
{
    Options options = {0};
    const struct argp parser = {option_list, take_option, "CASE", "Plans, shows and runs a conversion between two layouts of a tensor.", 0, 0, 0};
    argp_parse(&parser, argc, argv, 0, 0, &options);
    Arena *arena = arena_create();
    Diag *diag = diag_create(arena, stderr);
    Case *conversion = NULL;
    const Cluster *cluster = NULL;
    if (options.text) {
        diag_source(diag, "case", options.text);
        conversion = case_read(arena, diag, (Position){"case", 1, 1}, options.text);
    }
    if (options.cluster)
        cluster = cluster_read(arena, diag, options.cluster);
    diag_finish(diag);
    if (diag_errors(diag))
        return 1;
    if (conversion)
        case_plan(arena, conversion, cluster);
    int rank = 0, ranks = 1;
    if (options.fill)
        run_open(&argc, &argv, &rank, &ranks);
    int status = conversion ? run_or_show(&options, conversion, rank, ranks) : run_batch(&options, cluster, rank, ranks);
    run_close();
    arena_destroy(arena);
    return status;
}
