/* NCCL's interface over MPI and host memory, for programs that run under test/cuda/emulate: it does what every call says, and ends the
 * program where the ranks' calls do not fit together, with both calls in the message. On a GPU such programs hang, or read what is not
 * there.
 *
 * Checked are: the order of the calls on a communicator and what each says (verb, count, type, operation, root), that groups have the same
 * calls on all members, that sends meet receives of as many elements, that memory is the device's and ranges do not overlap but where NCCL
 * allows it, that a communicator stays on one stream, that a part shares only what its parent was made to share, and that nobody waits for
 * a call that never comes. A call is carried out when its stream does. What a captured call works on counts as registered by the graph, as
 * NCCL may do it, until the graph is destroyed.
 *
 *     HETU_STAND_IN_TIMEOUT   seconds until a call that meets no other ends the program; 30
 *     HETU_STAND_IN_FAIL      ncclCommGetAsyncError reports an error after so many calls
 *     HETU_STAND_IN_DELAY     milliseconds that pass between the moment in which all members of a reduction have come to it and its end; of
 *                             a group the first has to wait for it
 *     HETU_STAND_IN_LOG       a file name: every call of rank r is listed in NAME.r, and every communicator that was split off
 *
 * In the log of HETU_EMULATE_LOG a call's line, or a group's, begins with "exchange"; behind what the program did stand when all members of
 * its first reduction had come (0: none), in the same milliseconds, and what the calls say.
 */
#include <nccl.h>

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <thread>
#include <vector>

struct ncclComm {
    MPI_Comm mpi = MPI_COMM_NULL;
    int rank = 0, size = 0;
    std::vector<int> members; // ranks of the world
    cudaStream_t stream = nullptr;
    bool used = false, world = false;
    bool shares = false; // made to share what it has with the parts that it is split into
    int64_t calls = 0;   // collectives that were carried out
};

namespace {

enum Verb { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, REDUCE, SPLIT, SEND, RECEIVE };

const char *const verb_names[] = {"all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce", "split", "send", "receive"};
const char *const type_names[] = {"int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bfloat16"};
const size_t type_bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
const char *const op_names[] = {"sum", "product", "max", "min", "mean"};

/* What a call says; compared between ranks byte for byte. `of` is how many calls its group has on this communicator. */
struct Words {
    int64_t number, count;
    int32_t verb, type, op, root, of, unused;
};

struct Call {
    Words words;
    const void *send;
    void *receive;
    ncclComm *comm;
    cudaStream_t stream;
};

int depth; // of groups
std::vector<Call> collected;
int64_t executed;
bool own_mpi;

int world_rank()
{
    int rank = 0, up = 0;
    MPI_Initialized(&up);
    if (up)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

void fail(const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "emulated NCCL: rank %d: %s\n", world_rank(), text);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

/* ---- words for messages ---- */

std::string name_of(const Words &words)
{
    std::string text = verb_names[words.verb];
    if (words.verb == SPLIT)
        return text;
    text += " of " + std::to_string(words.count) + " " + type_names[words.type];
    if (words.verb == ALL_REDUCE || words.verb == REDUCE_SCATTER || words.verb == REDUCE)
        text += std::string(" (") + op_names[words.op] + ")";
    if (words.verb == BROADCAST || words.verb == REDUCE)
        text += ", root " + std::to_string(words.root);
    if (words.verb == SEND || words.verb == RECEIVE)
        text += (words.verb == SEND ? " to " : " from ") + std::to_string(words.root);
    if (words.of > 1)
        text += ", in a group of " + std::to_string(words.of);
    return text;
}

std::string name_of(const ncclComm *comm)
{
    std::string text = "the communicator of ranks";
    for (size_t i = 0; i < comm->members.size(); i++)
        text += (i ? ", " : " ") + std::to_string(comm->members[i]);
    return text;
}

void log_line(const std::string &line)
{
    static FILE *file;
    const char *name = getenv("HETU_STAND_IN_LOG");
    if (!name)
        return;
    if (!file)
        file = fopen((std::string(name) + "." + std::to_string(world_rank())).c_str(), "w");
    if (!file)
        fail("cannot write %s", name);
    fprintf(file, "%s\n", line.c_str());
    fflush(file);
}

/* ---- waiting with an end ---- */

typedef std::chrono::steady_clock::time_point Time;

double seconds_allowed()
{
    const char *text = getenv("HETU_STAND_IN_TIMEOUT");
    return text ? atof(text) : 30;
}

/* Milliseconds that each reduction takes at least. */
double delay()
{
    static const char *const text = getenv("HETU_STAND_IN_DELAY");
    return text ? atof(text) : 0;
}

Time time_allowed() { return std::chrono::steady_clock::now() + std::chrono::milliseconds((int64_t)(1000 * seconds_allowed())); }

bool is_over(Time end) { return std::chrono::steady_clock::now() > end; }

/* Whether a request is done; ends the program when that takes longer than it may. */
bool is_done(MPI_Request *request, Time end, const ncclComm *comm, const Words &words)
{
    int done = 0;
    MPI_Test(request, &done, MPI_STATUS_IGNORE);
    if (!done && is_over(end))
        fail("call %lld on %s, %s, meets no call of some other rank for %g s", (long long)words.number, name_of(comm).c_str(),
             name_of(words).c_str(), seconds_allowed());
    return done;
}

/* What every member passes, in the order of the members; waits for them. */
template <typename T> std::vector<T> gather(const ncclComm *comm, const T &mine, const Words &words)
{
    std::vector<T> all((size_t)comm->size);
    MPI_Request request;
    MPI_Iallgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, comm->mpi, &request);
    for (Time end = time_allowed(); !is_done(&request, end, comm, words);)
        ht_emulated_advance();
    return all;
}

/* Ends the program unless all members say the same. */
void compare(const ncclComm *comm, const Words &words, const std::vector<Words> &all)
{
    for (int i = 0; i < comm->size; i++)
        if (memcmp(&all[(size_t)i], &words, sizeof words))
            fail("call %lld on %s is %s; call %lld of rank %d is %s", (long long)words.number, name_of(comm).c_str(),
                 name_of(words).c_str(), (long long)all[(size_t)i].number, comm->members[(size_t)i], name_of(all[(size_t)i]).c_str());
}

/* ---- arithmetic ---- */

float bf16_load(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

uint16_t bf16_store(float value)
{
    uint32_t wide;
    memcpy(&wide, &value, sizeof wide);
    return value != value ? (uint16_t)0x7fff : (uint16_t)((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
}

template <typename T> T apply(T a, T b, int op) { return op == ncclSum ? (T)(a + b) : b > a ? b : a; }

template <typename T> void fold_as(void *to, const void *from, int64_t count, int op)
{
    for (int64_t i = 0; i < count; i++)
        ((T *)to)[i] = apply(((T *)to)[i], ((const T *)from)[i], op);
}

void fold(void *to, const void *from, int64_t count, int type, int op)
{
    switch (type) {
    case ncclFloat32: fold_as<float>(to, from, count, op); return;
    case ncclFloat64: fold_as<double>(to, from, count, op); return;
    case ncclInt32: fold_as<int32_t>(to, from, count, op); return;
    case ncclInt64: fold_as<int64_t>(to, from, count, op); return;
    case ncclBfloat16:
        for (int64_t i = 0; i < count; i++)
            ((uint16_t *)to)[i] = bf16_store(apply(bf16_load(((uint16_t *)to)[i]), bf16_load(((const uint16_t *)from)[i]), op));
        return;
    default: fail("reductions of %s are not emulated", type_names[type]);
    }
}

/* ---- carrying out ---- */

/* A collective on its way: it waits for nobody, since a call on another stream may have to go first elsewhere. */
class Collective {
    Call call;
    Time end = time_allowed();
    MPI_Request request;
    std::vector<Words> said;     // by all members
    double met = 0;              // when all had come, in milliseconds
    double wait;                 // so long passes then, if it is a reduction
    std::vector<char> mine, all; // elements, of one member after another; empty: words are still under way

    int64_t sent() const { return call.words.verb == REDUCE_SCATTER ? call.words.count * call.comm->size : call.words.count; }

    void send_elements()
    {
        size_t size = type_bytes[call.words.type], bytes = (size_t)sent() * size;
        MPI_Datatype element;
        mine.resize(bytes + 1);
        all.resize(bytes * (size_t)call.comm->size + 1);
        if (call.send)
            memcpy(mine.data(), call.send, bytes);
        MPI_Type_contiguous((int)size, MPI_BYTE, &element);
        MPI_Type_commit(&element);
        MPI_Iallgather(mine.data(), (int)sent(), element, all.data(), (int)sent(), element, call.comm->mpi, &request);
        MPI_Type_free(&element);
    }

    void finish()
    {
        const Words &w = call.words;
        int members = call.comm->size, rank = call.comm->rank;
        size_t size = type_bytes[w.type], bytes = (size_t)sent() * size;
        if (w.verb == ALL_GATHER) {
            memcpy(call.receive, all.data(), bytes * (size_t)members);
            return;
        }
        if (w.verb == BROADCAST) {
            memcpy(call.receive, all.data() + (size_t)w.root * bytes, bytes);
            return;
        }
        for (int i = 1; i < members; i++)
            fold(all.data(), all.data() + (size_t)i * bytes, sent(), w.type, w.op);
        size_t first = w.verb == REDUCE_SCATTER ? (size_t)(w.count * rank) * size : 0;
        if (w.verb != REDUCE || rank == w.root)
            memcpy(call.receive, all.data() + first, (size_t)w.count * size);
    }

  public:
    Collective(const Call &given, double delay) : call(given), said((size_t)given.comm->size), wait(delay)
    {
        call.words.number = ++call.comm->calls;
        MPI_Iallgather(&call.words, sizeof(Words), MPI_BYTE, said.data(), sizeof(Words), MPI_BYTE, call.comm->mpi, &request);
    }
    Collective(const Collective &) = delete;

    bool reduces() const { return call.words.verb == ALL_REDUCE || call.words.verb == REDUCE_SCATTER || call.words.verb == REDUCE; }

    /* When all members of a reduction had come to it; 0: it is none. */
    double met_at() const { return met; }

    /* Goes as far as it can; whether it is carried out. */
    bool advance()
    {
        if (!is_done(&request, end, call.comm, call.words))
            return false;
        if (all.empty()) {
            compare(call.comm, call.words, said);
            send_elements();
            return advance();
        }
        if (reduces() && met == 0)
            met = ht_emulated_now();
        if (reduces() && ht_emulated_now() < met + wait)
            return false;
        finish();
        return true;
    }
};

/* A message as it travels: its words, then its elements. */
struct Parcel {
    const Call *call;
    std::vector<char> bytes;
};

const int message_tag = 5;

size_t parcel_bytes(const Call &call) { return sizeof(Words) + (size_t)call.words.count * type_bytes[call.words.type]; }

/* Begins the sends of a group. */
std::vector<Parcel> post(const std::vector<Call> &sends, std::vector<MPI_Request> &requests)
{
    std::vector<Parcel> parcels;
    for (const Call &call : sends) {
        parcels.push_back({&call, std::vector<char>(parcel_bytes(call))});
        memcpy(parcels.back().bytes.data(), &call.words, sizeof(Words));
        memcpy(parcels.back().bytes.data() + sizeof(Words), call.send, parcels.back().bytes.size() - sizeof(Words));
    }
    for (Parcel &parcel : parcels) {
        MPI_Request request;
        MPI_Issend(parcel.bytes.data(), (int)parcel.bytes.size(), MPI_BYTE, parcel.call->words.root, message_tag, parcel.call->comm->mpi,
                   &request);
        requests.push_back(request);
    }
    return parcels;
}

/* What came must be what the receiver expects. */
void open_parcel(const Parcel &parcel)
{
    const Call &call = *parcel.call;
    Words sent;
    memcpy(&sent, parcel.bytes.data(), sizeof sent);
    if (sent.count != call.words.count || sent.type != call.words.type)
        fail("its %s on %s meets a %s of rank %d", name_of(call.words).c_str(), name_of(call.comm).c_str(), name_of(sent).c_str(),
             call.comm->members[(size_t)call.words.root]);
    memcpy(call.receive, parcel.bytes.data() + sizeof sent, parcel.bytes.size() - sizeof sent);
}

/* Whether the message of a receive has come. One that is too long for its receive is an error of MPI, which tells no sizes. */
bool has_come(const Call &call)
{
    MPI_Status status;
    int flag = 0, length = 0;
    MPI_Iprobe(call.words.root, message_tag, call.comm->mpi, &flag, &status);
    if (!flag)
        return false;
    MPI_Get_count(&status, MPI_BYTE, &length);
    if ((size_t)length != parcel_bytes(call))
        fail("its %s on %s meets a send of %lld bytes by rank %d", name_of(call.words).c_str(), name_of(call.comm).c_str(),
             (long long)length - (long long)sizeof(Words), call.comm->members[(size_t)call.words.root]);
    return true;
}

/* The calls of a group on their way: collectives one after another, then sends, without waiting, and receives one after another, each after
 * a look at its length. */
class Group {
    std::vector<Call> collectives, sends, receives;
    std::unique_ptr<Collective> collective; // at work; the first of those left
    std::vector<MPI_Request> requests;
    std::vector<Parcel> parcels; // that are sent
    Time end;
    size_t collected = 0, received = 0;
    bool posted = false;
    double began = ht_emulated_now(), met = 0; // milliseconds; met: of the first reduction
    std::string text;                          // what its calls say

    /* Whether all collectives are carried out. */
    bool advance_collectives()
    {
        for (; collected < collectives.size(); collected++) {
            if (!collective)
                collective = std::make_unique<Collective>(collectives[collected], met > 0 ? 0 : delay());
            if (!collective->advance())
                return false;
            met = met > 0 ? met : collective->met_at();
            collective = nullptr;
        }
        return true;
    }

    void receive(const Call &call)
    {
        Parcel parcel = {&call, std::vector<char>(parcel_bytes(call))};
        MPI_Recv(parcel.bytes.data(), (int)parcel.bytes.size(), MPI_BYTE, call.words.root, message_tag, call.comm->mpi, MPI_STATUS_IGNORE);
        open_parcel(parcel);
        received++;
    }

    void check_time() const
    {
        if (!is_over(end))
            return;
        const Call &call = received < receives.size() ? receives[received] : sends[0];
        fail("its %s on %s meets no %s for %g s", name_of(call.words).c_str(), name_of(call.comm).c_str(),
             call.words.verb == SEND ? "receive" : "send", seconds_allowed());
    }

  public:
    explicit Group(const std::vector<Call> &calls)
    {
        for (Call call : calls) {
            executed++;
            log_line(name_of(call.words) + " on " + name_of(call.comm));
            text += (text.empty() ? "" : "; ") + name_of(call.words) + " on " + name_of(call.comm);
            for (const Call &other : calls)
                call.words.of += call.words.verb < SEND && other.comm == call.comm && other.words.verb < SEND;
            (call.words.verb < SEND ? collectives : call.words.verb == SEND ? sends : receives).push_back(call);
        }
    }

    void log(int stream, const std::string &place) const
    {
        char when[32];
        snprintf(when, sizeof when, "%.3f\t", met);
        ht_emulated_log("exchange", stream, began, place, when + text);
    }

    /* Goes as far as it can without waiting for another rank; whether all is done. */
    bool advance()
    {
        if (!advance_collectives())
            return false;
        if (!posted) {
            parcels = post(sends, requests);
            end = time_allowed();
            posted = true;
        }
        while (received < receives.size() && has_come(receives[received]))
            receive(receives[received]);
        int sent = 0;
        MPI_Testall((int)requests.size(), requests.data(), &sent, MPI_STATUSES_IGNORE);
        if (sent && received == receives.size())
            return true;
        check_time();
        return false;
    }
};

/* ---- issuing ---- */

void check_range(const Call &call, const void *memory, int64_t count, const char *what)
{
    size_t bytes = (size_t)count * type_bytes[call.words.type];
    if (bytes && !ht_emulated_is_device(memory, bytes))
        fail("%s %s memory that is not one piece of a device's (%zu bytes)", name_of(call.words).c_str(), what, bytes);
}

/* The two ranges of a collective are apart, or one lies in the other where NCCL computes in place: `inside` bytes from its beginning. */
void check_overlap(const Call &call, const void *small, size_t small_bytes, const void *large, size_t large_bytes, size_t inside)
{
    const char *a = (const char *)small, *b = (const char *)large;
    if (a + small_bytes <= b || b + large_bytes <= a || a == b + inside)
        return;
    fail("%s: what is sent and what is received overlap", name_of(call.words).c_str());
}

void check_memory(const Call &call)
{
    const Words &w = call.words;
    int64_t all = w.count * call.comm->size;
    size_t bytes = (size_t)w.count * type_bytes[w.type], all_bytes = bytes * (size_t)call.comm->size,
           mine = bytes * (size_t)call.comm->rank;
    bool root = call.comm->rank == w.root, reads = w.verb != RECEIVE && (w.verb != BROADCAST || root);
    bool writes = w.verb != SEND && (w.verb != REDUCE || root);
    if (reads)
        check_range(call, call.send, w.verb == REDUCE_SCATTER ? all : w.count, "reads");
    if (writes)
        check_range(call, call.receive, w.verb == ALL_GATHER ? all : w.count, "writes");
    if (!reads || !writes || !bytes)
        return;
    if (w.verb == REDUCE_SCATTER)
        check_overlap(call, call.receive, bytes, call.send, all_bytes, mine);
    else if (w.verb == ALL_GATHER)
        check_overlap(call, call.send, bytes, call.receive, all_bytes, mine);
    else
        check_overlap(call, call.send, bytes, call.receive, bytes, 0);
}

void check_stream(Call &call)
{
    if (call.comm->used && call.comm->stream != call.stream)
        fail("%s goes to another stream than the calls before it on %s", name_of(call.words).c_str(), name_of(call.comm).c_str());
    call.comm->used = true;
    call.comm->stream = call.stream;
}

void enqueue(std::vector<Call> calls)
{
    for (const Call &call : calls)
        if (call.stream != calls[0].stream)
            fail("the calls of a group go to several streams: %s and %s", name_of(calls[0].words).c_str(), name_of(call.words).c_str());
    for (const Call &call : calls)
        for (const void *memory : {call.send, (const void *)call.receive})
            ht_emulated_register(call.stream, memory);
    const std::string place = ht_emulated_doing();
    const int stream = ht_emulated_stream(calls[0].stream);
    ht_emulated_enqueue_waiting(calls[0].stream, [calls, place, stream, group = std::shared_ptr<Group>()]() mutable {
        if (!group)
            group = std::make_shared<Group>(calls);
        if (!group->advance())
            return false;
        group->log(stream, place);
        group = nullptr; // a graph runs it again
        return true;
    });
}

ncclResult_t issue(int verb, const void *send, void *receive, size_t count, int type, int op, int root, ncclComm_t comm,
                   cudaStream_t stream)
{
    if (!comm || type < 0 || type > ncclBfloat16 || op < 0 || op >= ncclNumOps || root < 0 || root >= comm->size)
        return ncclInvalidArgument;
    Call call = {{0, (int64_t)count, verb, type, op, root, 0, 0}, send, receive, comm, stream};
    if (verb == BROADCAST && comm->rank != root)
        call.send = nullptr;
    check_memory(call);
    check_stream(call);
    if (depth)
        collected.push_back(call);
    else
        enqueue({call});
    return ncclSuccess;
}

/* ---- communicators ---- */

/* The world of MPI, which the program may have initialised or not. */
void open_mpi()
{
    int up = 0;
    MPI_Initialized(&up);
    if (up)
        return;
    MPI_Init(NULL, NULL);
    own_mpi = true;
}

ncclComm *make_comm(MPI_Comm mpi)
{
    ncclComm *comm = new ncclComm;
    comm->mpi = mpi;
    MPI_Comm_rank(mpi, &comm->rank);
    MPI_Comm_size(mpi, &comm->size);
    comm->members.resize((size_t)comm->size);
    int mine = world_rank();
    MPI_Allgather(&mine, 1, MPI_INT, comm->members.data(), 1, MPI_INT, mpi);
    return comm;
}

} // namespace

ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "stand-in %d %lld", world_rank(),
             (long long)std::chrono::steady_clock::now().time_since_epoch().count());
    return ncclSuccess;
}

static bool asks_to_share(const ncclConfig_t *config) { return config && config->splitShare == 1; }

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    open_mpi();
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (ranks != size)
        fail("a communicator of %d ranks is made; the stand-in makes one of all %d, and splits it", ranks, size);
    MPI_Comm mpi;
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &mpi);
    *comm = make_comm(mpi);
    (*comm)->world = true;
    (*comm)->shares = asks_to_share(config);
    Words nothing = {0, 0, SPLIT, 0, 0, 0, 0, 0};
    for (const ncclUniqueId &other : gather(*comm, id, nothing))
        if (memcmp(&other, &id, sizeof id))
            fail("ranks make one communicator by different identifiers");
    if ((*comm)->rank != rank)
        fail("another process is rank %d of a communicator, too", rank);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
    return ncclCommInitRankConfig(comm, ranks, id, rank, NULL);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *part, ncclConfig_t *config)
{
    if (asks_to_share(config) && !comm->shares)
        fail("a part of %s is to share what it has, and it was made without splitShare", name_of(comm).c_str());
    const Words words = {++comm->calls, 0, SPLIT, 0, 0, 0, 0, 0};
    compare(comm, words, gather(comm, words, words));
    MPI_Comm mpi;
    MPI_Comm_split(comm->mpi, color == NCCL_SPLIT_NOCOLOR ? MPI_UNDEFINED : color, key, &mpi);
    *part = mpi == MPI_COMM_NULL ? NULL : make_comm(mpi);
    if (*part) {
        (*part)->shares = config ? asks_to_share(config) : comm->shares;
        log_line("split off: " + name_of(*part) + (comm->shares ? ", shares" : ""));
    }
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    bool world = comm->world;
    MPI_Comm_free(&comm->mpi);
    delete comm;
    if (world && own_mpi)
        MPI_Finalize();
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) { return ncclCommDestroy(comm); }

ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t *error)
{
    const char *after = getenv("HETU_STAND_IN_FAIL");
    *error = after && executed >= atoll(after) ? ncclRemoteError : ncclSuccess;
    return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    *count = comm->size;
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    *rank = comm->rank;
    return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t, int *device)
{
    return cudaGetDevice(device) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const names[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "in progress"};
    return result >= 0 && result < ncclNumResults ? names[result] : "unknown result";
}

const char *ncclGetLastError(ncclComm_t) { return "emulated"; }

/* ---- calls ---- */

ncclResult_t ncclGroupStart(void)
{
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    if (depth == 0)
        return ncclInvalidUsage;
    if (--depth || collected.empty())
        return ncclSuccess;
    std::vector<Call> calls = std::move(collected);
    collected.clear();
    enqueue(std::move(calls));
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream)
{
    return issue(ALL_REDUCE, send, receive, count, type, op, 0, comm, stream);
}

ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream)
{
    return issue(REDUCE_SCATTER, send, receive, count, type, op, 0, comm, stream);
}

ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
    return issue(ALL_GATHER, send, receive, count, type, ncclSum, 0, comm, stream);
}

ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream)
{
    return issue(BROADCAST, send, receive, count, type, ncclSum, root, comm, stream);
}

ncclResult_t ncclReduce(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
                        cudaStream_t stream)
{
    return issue(REDUCE, send, receive, count, type, op, root, comm, stream);
}

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    return issue(SEND, send, NULL, count, type, ncclSum, peer, comm, stream);
}

ncclResult_t ncclRecv(void *receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    return issue(RECEIVE, NULL, receive, count, type, ncclSum, peer, comm, stream);
}
