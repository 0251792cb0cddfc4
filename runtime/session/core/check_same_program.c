/* Refuses ranks whose programs or library versions differ; with HETU_CHECK, also executables. */
#include "session/core/session.h"

#include "transport/world.h"
#include "session/core/image.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/c_locale.h"

#include <hetu/version.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The fingerprint of a rank's program. */
typedef struct Fingerprint {
    uint64_t whole;      // hash of the whole text
    uint64_t executable; // checksum of the executable, with bit 32 set; 0: not compared
    char text[1008];     // beginning of the text
} Fingerprint;

/* Returns the checksum of this program's file, with bit 32 set to distinguish it from 0. */
static uint64_t sum_executable(void) {
    char bytes[1 << 14];
    uint32_t sum = 0;
    FILE *file = fopen("/proc/self/exe", "rb");
    if (!file) ht_fail("cannot read this program (/proc/self/exe): %s", plain_error(errno));
    for (size_t count; (count = fread(bytes, 1, sizeof bytes, file)) > 0;)
        sum = checksum(sum, bytes, count);
    fclose(file);
    return UINT64_C(1) << 32 | sum;
}

static void add_text(Fingerprint *fingerprint, const char *text) {
    size_t length = strlen(fingerprint->text);
    snprintf(fingerprint->text + length, sizeof fingerprint->text - length, "%s", text);
    fingerprint->whole = hash_bytes(fingerprint->whole, text, strlen(text));
}

/* Returns whether an earlier image has the same fingerprint. */
static bool is_known(int index) {
    for (int i = 0; i < index; i++)
        if (!strcmp(image_at(i)->image->fingerprint, image_at(index)->image->fingerprint))
            return true;
    return false;
}

static Fingerprint own_fingerprint(bool check) {
    Fingerprint own = {.whole = HASH_START, .executable = check ? sum_executable() : 0};
    for (int i = 0; i < image_count(); i++)
        if (!is_known(i)) {
            add_text(&own, image_at(i)->image->fingerprint);
            add_text(&own, "; ");
        }
    if (!image_count()) {
        add_text(&own, program_invocation_short_name);
        add_text(&own, ", not compiled by hetucc; ");
    }
    add_text(&own, "libhetu " HETU_VERSION);
    return own;
}

static bool same_text(const Fingerprint *a, const Fingerprint *b) {
    return a->whole == b->whole && !strncmp(a->text, b->text, sizeof a->text);
}

static bool same(const Fingerprint *a, const Fingerprint *b) {
    return same_text(a, b) && (a->executable == b->executable || !a->executable || !b->executable);
}

/* Prints how two ranks differ. */
static void explain(const Fingerprint *all, int first, int second) {
    const Fingerprint *a = &all[first], *b = &all[second];
    if (same_text(a, b))
        fprintf(stderr,
                "hetu: rank %d: rank %d and rank %d run different builds of one program "
                "(HETU_CHECK)\nhetu:   both: %s\nhetu:   rank %d: "
                "executable %08llx\nhetu:   rank %d: executable %08llx\n",
                world_rank(), first, second, a->text, first,
                (unsigned long long)(uint32_t)a->executable, second,
                (unsigned long long)(uint32_t)b->executable);
    else
        fprintf(stderr,
                "hetu: rank %d: rank %d and rank %d run different programs\nhetu:   rank %d: "
                "%s\nhetu:   rank %d: %s\n",
                world_rank(), first, second, first, a->text, second, b->text);
}

bool session_agree(bool check) {
    int size = world_size(), other = -1;
    Fingerprint own = own_fingerprint(check), *all = memory_array(size, sizeof own);
    world_gather(&own, sizeof own, all);
    for (int rank = size - 1; rank > 0; rank--)
        if (!same(&all[0], &all[rank])) other = rank;
    if (other >= 0 && !same(&all[0], &own)) other = world_rank();
    if (other >= 0) explain(all, 0, other);
    free(all);
    return other < 0;
}
