#include "clusters.h"

#include "support/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Two hosts of eight and of four devices of different classes. */
const char uneven[] =
    "{\"classes\": {\"h800\": {\"memory\": 85899345920}, \"h20\": {}},\n"
    " \"devices\": [{\"class\": \"h800\", \"host\": \"a\", \"count\": 8}, {\"class\": \"h20\", \"host\": \"b\", \"count\": 4}],\n " LINKS
    "}";

const char even[] = "{\"classes\": {\"gpu\": {}},\n \"devices\": [{\"class\": \"gpu\", \"host\": \"a\", \"count\": 8}, "
                           "{\"class\": \"gpu\", \"host\": \"b\", \"count\": 8}],\n " LINKS "}";

/* Reads a file of this text; what is reported goes to *said, with the file's name as "F". */
const Cluster *read_said(Arena *arena, const char *text, const char **said)
{
    char path[] = "/tmp/hetu-cluster-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, text, strlen(text)), strlen(text));
    close(descriptor);
    char *output = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&output, &size);
    const Cluster *cluster = cluster_read(arena, diag_create(arena, stream), path);
    fclose(stream);
    Text named = {.arena = arena};
    for (const char *c = output; *c;) {
        size_t length = strncmp(c, path, strlen(path)) ? 1 : strlen(path);
        text_append(&named, length > 1 ? "F" : c, 1);
        c += length;
    }
    free(output);
    unlink(path);
    *said = text_bytes(&named);
    return cluster;
}

const Cluster *read_well(Arena *arena, const char *text)
{
    const char *said;
    const Cluster *cluster = read_said(arena, text, &said);
    assert_string_equal(said, "");
    assert_non_null(cluster);
    return cluster;
}

const Layout *parsed(Arena *arena, const char *text)
{
    Diag *diag = diag_create(arena, stderr);
    diag_source(diag, "layout", text);
    const Layout *layout = layout_parse_text(arena, diag, (Position){"layout", 1, 1}, text);
    assert_non_null(layout);
    return layout;
}

const Plan *planned(Arena *arena, const Cluster *cluster, const char *from, const char *to)
{
    static const int64_t extents[] = {ROWS, COLUMNS};
    return reshard_plan(arena, cluster, &(Conversion){{2, extents}, HT_F32, parsed(arena, from), parsed(arena, to)});
}
