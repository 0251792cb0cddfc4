/* ht_remember: keeps each range on two hosts; finds and loads the newest complete checkpoint. */
#include "session/persist/checkpoint.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/c_locale.h"
#include "checkpoint/copies.h"
#include "checkpoint/writing.h"
#include "session/persist/saved_tensors.h"
#include "transport/fabric/sockets.h"
#include "transport/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* A range of an in-memory checkpoint on some rank's host. All ranks have the same table. */
typedef struct Entry {
    CopyHead head;  // describes the range
    int rank, file; // rank that has the range; index in that rank's `files`
} Entry;

struct Copies {
    char *folder;           // folder of HETU_COPIES on this host
    bool failed;            // no checkpoint can be taken; the error has been printed
    uint64_t start, number; // as in CopyHead: this run's start; its last checkpoint's number
    int partner; // rank on another host that keeps a replica of this rank's range; -1: one host
    bool *keeps; // by rank r: whether this rank keeps the range of r
    int local, locals; // index of this rank on its host; number of ranks there
    CopyFile *written; // files that this rank writes: [range * COPY_TURNS + number % COPY_TURNS]
    int file_count;    // number of `files`, which copies_find found on this host
    CopyFile *files;
    Entry *found; // by range: entries of the checkpoint to load
    int found_count;
};

/* ---- hosts ---- */

static int first_of(const uint64_t *host, int rank) {
    int first = 0;
    while (host[first] != host[rank]) first++;
    return first;
}

/* Returns the next host's first rank, in a ring of hosts by first rank; -1: there is one host. */
static int next_host(const uint64_t *host, int ranks, int rank) {
    for (int step = 1, first = first_of(host, rank); step < ranks; step++) {
        int next = (first + step) % ranks;
        if (host[next] != host[rank] && first_of(host, next) == next) return next;
    }
    return -1;
}

/* Returns the partner of a rank: the rank with the same index on the next host (modulo the number
 * of ranks there); -1: there is one host. Hosts {0, 1} and {2, 3}: rank 1 has partner 3. */
static int partner_of(const uint64_t *host, int ranks, int rank) {
    int next = next_host(host, ranks, rank), place = 0, count = 0;
    for (int r = 0; r < rank; r++) place += host[r] == host[rank];
    for (int r = 0; r < ranks && next >= 0; r++) count += host[r] == host[next];
    place = count ? place % count : 0;
    for (int r = next; next >= 0; r++)
        if (host[r] == host[next] && !place--) return r;
    return -1;
}

static void find_hosts(struct Copies *copies) {
    int ranks = world_size(), me = world_rank();
    uint64_t mine = hash_text(socket_node(), copies->folder),
             *host = memory_array(ranks, sizeof *host);
    world_gather(&mine, sizeof mine, host);
    copies->partner = partner_of(host, ranks, me);
    for (int r = 0; r < ranks; r++) {
        copies->keeps[r] = r == me || partner_of(host, ranks, r) == me;
        copies->local += r < me && host[r] == mine;
        copies->locals += host[r] == mine;
    }
    free(host);
}

/* Finds the folder for HETU_COPIES; a host's first rank creates it before the other ranks look. */
static void find_folder(struct Copies *copies) {
    char *named = copies->folder;
    for (int turn = 0; turn < 2; turn++) {
        if (!copies->local == !turn) copies->folder = copies_folder(named);
        world_least(0);
    }
    free(named);
}

/* Returns the session's in-memory checkpoints, opened at the first call; NULL: HETU_COPIES is not
 * set on all ranks. */
static struct Copies *open_copies(ht_session *session) {
    const char *folder = getenv("HETU_COPIES");
    if (session->copies || !world_least(folder && *folder)) return session->copies;
    struct timespec now;
    struct Copies *copies = memory_array(1, sizeof *copies);
    clock_gettime(CLOCK_REALTIME, &now);
    *copies = (struct Copies){.folder = strdup(folder),
                              .start = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec};
    copies->keeps = memory_array(world_size(), sizeof *copies->keeps);
    copies->written = memory_array((int64_t)world_size() * COPY_TURNS, sizeof *copies->written);
    world_broadcast(&copies->start, sizeof copies->start);
    find_hosts(copies);
    find_folder(copies);
    return session->copies = copies;
}

/* ---- taking ---- */

static CopyFile *file_of(struct Copies *copies, int range) {
    return &copies->written[range * COPY_TURNS + (int)(copies->number % COPY_TURNS)];
}

static CopyHead head_of(const struct Copies *copies, CopyHead head, int range) {
    int64_t end;
    writing_range(head.all, range, world_size(), &head.at, &end);
    head.bytes = end - head.at;
    head.range = range;
    head.start = copies->start;
    head.number = copies->number;
    return head;
}

/* Opens the files of this rank's ranges; reopens files of another size. Returns 0, or an errno. */
static int open_files(struct Copies *copies, CopyHead common) {
    int error = 0;
    for (int range = 0; range < world_size() && !error; range++) {
        CopyHead head = head_of(copies, common, range);
        CopyFile *file = file_of(copies, range);
        if (!copies->keeps[range]) continue;
        if (file->head &&
            (file->head->bytes != head.bytes || file->head->header_bytes != head.header_bytes))
            copy_close(file);
        error = file->head ? 0 : copy_open(copies->folder, &head, file);
        if (!error) copy_begin(file, &head);
    }
    return error;
}

/* Sends this rank's range to its partner, and receives the ranges that it keeps for others. */
static void exchange_ranges(struct Copies *copies) {
    int me = world_rank(), ranks = world_size(), count = 0;
    CopyFile *own = file_of(copies, me);
    HostTransfer send = {copy_range(own), (size_t)own->head->bytes, copies->partner},
                 *receives = memory_array(ranks, sizeof *receives);
    for (int r = 0; r < ranks; r++)
        if (copies->keeps[r] && r != me)
            receives[count++] = (HostTransfer){copy_range(file_of(copies, r)),
                                               (size_t)file_of(copies, r)->head->bytes, r};
    world_exchange(&send, copies->partner >= 0, receives, count);
    free(receives);
}

/* Opens the files on all ranks. If one fails, returns false on all and stops taking checkpoints. */
static bool all_opened(struct Copies *copies, CopyHead common) {
    int error = open_files(copies, common);
    if (world_least(!error)) return true;
    if (error)
        fprintf(stderr, "hetu: rank %d: no copies are taken in shared memory: %s: %s\n",
                world_rank(), copies->folder, plain_error(error));
    copies->failed = true;
    return false;
}

/* Broadcasts rank 0's safetensors header and returns it; free() it. Sets the sizes in *head. */
static char *share_header(const SafeFile *file, CopyHead *head) {
    size_t bytes = 0;
    char *header = world_rank() ? NULL : safetensors_header(file, &bytes);
    world_broadcast(&bytes, sizeof bytes);
    header = header ? header : memory_array((int64_t)bytes + 1, 1);
    world_broadcast(header, bytes);
    head->header_bytes = (int64_t)bytes;
    head->all = file->bytes;
    return header;
}

/* Writes the ranges that this rank keeps: collects its own, receives others, adds the header. */
static void write_files(struct Copies *copies, const SavedTensors *list, const SafeFile *file,
                        const char *header) {
    CopyFile *own = file_of(copies, world_rank());
    saved_tensors_collect(list, file, own->head->at, copy_range(own));
    exchange_ranges(copies);
    for (int range = 0; range < world_size(); range++)
        if (copies->keeps[range]) {
            memcpy(copy_header(file_of(copies, range)), header,
                   (size_t)file_of(copies, range)->head->header_bytes);
            copy_end(file_of(copies, range));
        }
}

/* Removes checkpoints of earlier runs, once the first one of this run is complete on all hosts. */
static void forget_older(struct Copies *copies) {
    world_least(0);
    if (!copies->local) copies_remove(copies->folder, copies->start);
}

void copies_take(ht_session *session, uint64_t key, int64_t step, const SafeNote *notes,
                 int note_count) {
    struct Copies *copies = open_copies(session);
    if (!copies || copies->failed) return;
    world_least(0); // barrier: the previous checkpoint is complete on all ranks
    copies->number++;
    CopyHead head = {.key = key, .step = step, .ranges = world_size()};
    SavedTensors list = saved_tensors_list(session);
    SafeFile file = saved_tensors_file(&list, notes, note_count);
    char *header = share_header(&file, &head);
    if (all_opened(copies, head)) write_files(copies, &list, &file, header);
    if (copies->number == 1 && !copies->failed) forget_older(copies);
    free(header);
    free(file.at);
    saved_tensors_free(&list);
}

/* ---- finding ---- */

/* Sets copies->files; returns all ranks' *count entries with `key`; free() them. */
static Entry *gather_entries(struct Copies *copies, uint64_t key, int *count) {
    int ranks = world_size(), most = 0, *counts = memory_array(ranks, sizeof *counts), kept = 0;
    copies->files = copies_read(copies->folder, copies->local, copies->locals, &copies->file_count);
    world_gather(&copies->file_count, sizeof *counts, counts);
    for (int r = 0; r < ranks; r++) most = counts[r] > most ? counts[r] : most;
    Entry *mine = memory_array(most, sizeof *mine),
          *all = memory_array((int64_t)most * ranks, sizeof *all);
    for (int f = 0; f < copies->file_count; f++)
        mine[f] = (Entry){*copies->files[f].head, world_rank(), f};
    if (most) world_gather(mine, sizeof *mine * (size_t)most, all);
    for (int i = 0; i < most * ranks; i++)
        if (i % most < counts[i / most] && all[i].head.key == key) all[kept++] = all[i];
    free(mine);
    free(counts);
    *count = kept;
    return all;
}

/* Orders entries by falling step, start of the run and number, then by rising range. */
static int compare_entries(const void *left, const void *right) {
    const CopyHead *a = &((const Entry *)left)->head, *b = &((const Entry *)right)->head;
    if (a->step != b->step) return a->step > b->step ? -1 : 1;
    if (a->start != b->start) return a->start > b->start ? -1 : 1;
    if (a->number != b->number) return a->number > b->number ? -1 : 1;
    return (a->range > b->range) - (a->range < b->range);
}

static bool same_copy(const CopyHead *a, const CopyHead *b) {
    return a->step == b->step && a->start == b->start && a->number == b->number &&
           a->ranges == b->ranges && a->all == b->all && a->header_bytes == b->header_bytes;
}

/* Returns whether entries from `first` on are a whole checkpoint. If so, sets copies->found. */
static bool take_whole(struct Copies *copies, const Entry *all, int first, int count) {
    int ranges = all[first].head.ranges, next = 0;
    int64_t end = 0;
    Entry *found = memory_array(ranges, sizeof *found);
    for (int i = first; i < count && same_copy(&all[i].head, &all[first].head); i++)
        if (next < ranges && all[i].head.range == next && all[i].head.at == end) {
            end = all[i].head.at + all[i].head.bytes;
            found[next++] = all[i];
        }
    if (next == ranges && end == all[first].head.all) {
        copies->found = found;
        copies->found_count = ranges;
        return true;
    }
    free(found);
    return false;
}

static void forget_found(struct Copies *copies) {
    for (int f = 0; f < copies->file_count; f++) copy_close(&copies->files[f]);
    free(copies->files);
    free(copies->found);
    copies->files = NULL;
    copies->found = NULL;
    copies->file_count = copies->found_count = 0;
}

int64_t copies_find(ht_session *session, uint64_t key) {
    struct Copies *copies = open_copies(session);
    int count;
    bool found = false;
    if (!copies) return -1;
    forget_found(copies);
    Entry *all = gather_entries(copies, key, &count);
    qsort(all, (size_t)count, sizeof *all, compare_entries);
    for (int first = 0; first < count && !found;) {
        found = take_whole(copies, all, first, count);
        for (int was = first; first < count && same_copy(&all[first].head, &all[was].head);)
            first++;
    }
    free(all);
    return found ? copies->found[0].head.step : -1;
}

/* ---- loading ---- */

/* Sends from the ranges on this rank, and receives into this rank's share. */
typedef struct Exchange {
    HostTransfer *sends, *receives;
    int send_count, receive_count;
    int64_t from; // byte of the checkpoint at which this rank's share begins
    char *share;  // memory of the share
} Exchange;

/* Transfers the bytes common to a range and the share of `rank`. Adds a send or a receive, or
 * copies the bytes if both are on this rank. */
static void add_overlap(struct Copies *copies, Exchange *exchange, const Entry *entry, int rank) {
    int64_t from, to, begin = entry->head.at, end = begin + entry->head.bytes;
    writing_range(entry->head.all, rank, world_size(), &from, &to);
    begin = from > begin ? from : begin;
    end = to < end ? to : end;
    if (begin >= end) return;
    char *there = entry->rank == world_rank()
                      ? copy_range(&copies->files[entry->file]) + (begin - entry->head.at)
                      : NULL,
         *here = exchange->share + (begin - exchange->from);
    if (there && rank == world_rank()) memcpy(here, there, (size_t)(end - begin));
    else if (there)
        exchange->sends[exchange->send_count++] =
            (HostTransfer){there, (size_t)(end - begin), rank};
    else if (rank == world_rank())
        exchange->receives[exchange->receive_count++] =
            (HostTransfer){here, (size_t)(end - begin), entry->rank};
}

/* Returns this rank's share [from, to) of the checkpoint, gathered from its holders; free() it. */
static char *gather_share(struct Copies *copies, int64_t from, int64_t to) {
    int64_t most = (int64_t)copies->found_count * world_size();
    Exchange exchange = {.sends = memory_array(most, sizeof(HostTransfer)),
                         .receives = memory_array(most, sizeof(HostTransfer)),
                         .from = from,
                         .share = memory_storage(to - from)};
    for (int range = 0; range < copies->found_count; range++)
        for (int rank = 0; rank < world_size(); rank++)
            add_overlap(copies, &exchange, &copies->found[range], rank);
    world_exchange(exchange.sends, exchange.send_count, exchange.receives, exchange.receive_count);
    free(exchange.sends);
    free(exchange.receives);
    return exchange.share;
}

/* Returns the safetensors header, which the rank with range 0 sends to all ranks; free() it. */
static char *gather_header(struct Copies *copies) {
    const Entry *entry = &copies->found[0];
    int ranks = world_size(), count = 0;
    size_t bytes = (size_t)entry->head.header_bytes;
    char *header = memory_array((int64_t)bytes + 1, 1);
    HostTransfer *sends = memory_array(ranks, sizeof *sends),
                 receive = {header, bytes, entry->rank};
    if (entry->rank == world_rank())
        memcpy(header, copy_header(&copies->files[entry->file]), bytes);
    for (int rank = 0; rank < ranks && entry->rank == world_rank(); rank++)
        if (rank != entry->rank) sends[count++] = (HostTransfer){header, bytes, rank};
    world_exchange(sends, count, &receive, entry->rank != world_rank());
    free(sends);
    return header;
}

/* Creates an in-memory file with the header, and zeros for tensors. Returns a descriptor, or -1. */
static int header_file(const char *header, int64_t bytes, int64_t all) {
    int file = memfd_create("hetu", MFD_CLOEXEC);
    if (file >= 0 && write(file, header, (size_t)bytes) == bytes && !ftruncate(file, bytes + all))
        return file;
    if (file >= 0) close(file);
    return -1;
}

/* Loads all tensors into the session. Returns why the header does not match; NULL: loaded. */
static const char *give_all(ht_session *session, const Stored *stored) {
    struct Copies *copies = session->copies;
    SavedTensors list = saved_tensors_list(session);
    const char *wrong = saved_tensors_wrong(&list, stored, true);
    int64_t from, to, all = copies->found[0].head.all;
    if (!wrong) {
        writing_range(all, world_rank(), world_size(), &from, &to);
        char *share = gather_share(copies, from, to);
        for (int i = 0; i < list.count; i++) {
            StoredTensor tensor;
            stored_find(stored, list.at[i].name, &tensor);
            saved_tensors_give(&list.at[i], all, tensor.tensor->begin, from, share);
        }
        free(share);
    }
    saved_tensors_free(&list);
    return wrong;
}

const char *copies_load(ht_session *session) {
    char path[64];
    struct Copies *copies = session->copies;
    Stored stored = {0};
    char *header = gather_header(copies);
    int file = header_file(header, copies->found[0].head.header_bytes, copies->found[0].head.all);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    bool opened = file >= 0 && !stored_open(&stored, path, NULL);
    const char *wrong =
        world_least(opened) ? give_all(session, &stored) : "its header cannot be read";
    safetensors_free(&session->loaded);
    if (!wrong) {
        session->loaded = stored.at[0].file;
        stored.at[0].file = (SafeFile){0};
    }
    if (opened) stored_close(&stored);
    if (file >= 0) close(file);
    free(header);
    forget_found(copies);
    return wrong;
}

void copies_close(ht_session *session) {
    struct Copies *copies = session->copies;
    if (!copies) return;
    forget_found(copies);
    world_least(0);
    for (int i = 0; i < world_size() * COPY_TURNS; i++) copy_close(&copies->written[i]);
    if (!copies->local) copies_remove(copies->folder, 0);
    free(copies->written);
    free(copies->folder);
    free(copies->keeps);
    free(copies);
    session->copies = NULL;
}
