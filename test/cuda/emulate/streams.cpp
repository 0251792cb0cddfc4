/* Streams, events and graphs.
 *
 * A stream is a queue of tasks. With HETU_EMULATE_ORDER=issue a task runs as soon as it is issued; with "late" it runs when something waits
 * for it: a synchronisation, or a task of another stream behind cudaStreamWaitEvent. A task that cannot be done yet, since it waits for
 * another process, holds up its own stream alone. Several host threads may call at once; one after another goes on.
 */
#include "inside.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace emulate {
namespace {

typedef std::function<bool()> Task; // whether it is done; else it is tried again

struct Node {
    Task work;
    std::vector<size_t> after;
};

struct Capture {
    struct StreamState *origin;
    cudaStreamCaptureMode mode;
    bool ended = false;
    std::vector<Node> nodes;
    std::vector<const void *> registered;
};

struct StreamState {
    unsigned flags = cudaStreamDefault;
    int number = 0;
    std::deque<Task> tasks;
    bool busy = false; // its first task is at work
    uint64_t issued = 0;
    std::atomic<uint64_t> done{0};
    std::atomic<uint64_t> asked{0};   // what was issued when a query last came: the first one after new work finds it unfinished
    std::shared_ptr<Capture> capture; // that this stream is part of
    std::vector<size_t> frontier;     // nodes that the next one follows
};

typedef std::shared_ptr<StreamState> StreamPointer;

} // namespace
} // namespace emulate

struct CUstream_st {
    emulate::StreamPointer state;
};

struct CUevent_st {
    bool timed = true;
    emulate::StreamPointer stream; // of the last record; NULL: never recorded
    uint64_t position = 0;
    std::shared_ptr<emulate::Capture> capture;
    std::vector<size_t> nodes;
    std::shared_ptr<double> milliseconds;
};

struct CUgraph_st {
    std::vector<emulate::Node> nodes;
    std::vector<const void *> registered;
};

struct CUgraphExec_st {
    std::vector<emulate::Node> nodes;
    std::vector<const void *> registered; // memory that work of the graph relies on
};

namespace emulate {
namespace {

std::set<cudaStream_t> streams;
std::set<StreamPointer> alive; // those of `streams`
std::set<Capture *> captures;
std::set<cudaGraphExec_t> graphs;

StreamState *legacy()
{
    static StreamState state;
    return &state;
}

bool is_legacy(cudaStream_t stream) { return stream == nullptr || stream == cudaStreamLegacy; }

StreamState *state_of(cudaStream_t stream)
{
    if (is_legacy(stream))
        return legacy();
    if (!streams.count(stream))
        fail("a stream that was never created, or was destroyed, is used");
    return stream->state.get();
}

StreamPointer pointer_of(cudaStream_t stream)
{
    static StreamPointer to_legacy(legacy(), [](StreamState *) {});
    return is_legacy(stream) ? to_legacy : stream->state;
}

/* Tries a stream's next task; false when there is none, or it cannot be done yet. */
bool try_next(StreamState *s)
{
    if (s->busy || s->tasks.empty())
        return false;
    DeviceAccess access;
    s->busy = true;
    bool done = s->tasks.front()();
    s->busy = false;
    if (done) {
        s->tasks.pop_front();
        s->done++;
    }
    return done;
}

/* Runs what a stream can run up to the given number of all tasks that were ever issued; whether it came there. */
bool advance(StreamState *s, uint64_t position)
{
    while (s->done < position && try_next(s))
        ;
    return s->done >= position || s->tasks.empty();
}

bool advance_all()
{
    bool moved = false;
    for (const StreamPointer &s : std::set<StreamPointer>(alive))
        while (try_next(s.get()))
            moved = true;
    return moved;
}

/* Runs a stream's tasks up to a number; while one waits for another process, the other streams go on, and other threads. */
void run_until(StreamState *s, uint64_t position)
{
    while (!advance(s, position))
        if (!advance_all())
            Guard::pause();
}

/* Goes on with a stream that somebody asks for, and with others where it waits. */
void look_after(StreamState *s, uint64_t position)
{
    if (!advance(s, position))
        advance_all();
}

void run_all(StreamState *s) { run_until(s, s->issued); }

void issue(StreamState *s, Task task)
{
    s->tasks.push_back(std::move(task));
    s->issued++;
    if (s == legacy())
        run_all(s);
    else if (!options().late)
        advance_all();
}

void append_node(StreamState *s, Task work)
{
    s->capture->nodes.push_back({std::move(work), s->frontier});
    s->frontier = {s->capture->nodes.size() - 1};
}

void join_frontier(StreamState *s, const std::vector<size_t> &nodes)
{
    for (size_t node : nodes)
        if (std::find(s->frontier.begin(), s->frontier.end(), node) == s->frontier.end())
            s->frontier.push_back(node);
}

/* Whether the streams that a capture forked into have all come back to its origin. */
bool is_joined(const Capture &capture)
{
    std::vector<bool> reached(capture.nodes.size());
    std::vector<size_t> open = capture.origin->frontier;
    while (!open.empty()) {
        size_t node = open.back();
        open.pop_back();
        if (reached[node])
            continue;
        reached[node] = true;
        open.insert(open.end(), capture.nodes[node].after.begin(), capture.nodes[node].after.end());
    }
    return std::find(reached.begin(), reached.end(), false) == reached.end();
}

/* A graph that is launched: the nodes that can run, and how many others each waits for. */
struct Launched {
    std::vector<Node> nodes;
    std::vector<size_t> missing;
    std::set<size_t> ready;

    explicit Launched(const std::vector<Node> &of) : nodes(of), missing(of.size())
    {
        for (size_t i = 0; i < nodes.size(); i++) {
            missing[i] = nodes[i].after.size();
            if (missing[i] == 0)
                ready.insert(i);
        }
    }

    void finish(size_t node)
    {
        ready.erase(node);
        for (size_t i = node + 1; i < nodes.size(); i++)
            if (std::find(nodes[i].after.begin(), nodes[i].after.end(), node) != nodes[i].after.end() && --missing[i] == 0)
                ready.insert(i);
    }

    /* Runs a node that can be done: the first in the order of capture, or, when late, the last. False: none can now. */
    bool run_one()
    {
        std::vector<size_t> order(ready.begin(), ready.end());
        if (options().late)
            std::reverse(order.begin(), order.end());
        for (size_t node : order)
            if (nodes[node].work()) {
                finish(node);
                return true;
            }
        return false;
    }

    bool run()
    {
        while (run_one())
            ;
        return ready.empty();
    }
};

cudaError_t no_device() { return report(standing_error()); }

} // namespace

bool capturing()
{
    for (const Capture *capture : captures)
        if (capture->mode != cudaStreamCaptureModeRelaxed)
            return true;
    return false;
}

void check_registered(const void *memory, size_t size)
{
    const char *low = (const char *)memory;
    for (const CUgraphExec_st *graph : graphs)
        for (const void *registered : graph->registered)
            if ((const char *)registered >= low && (const char *)registered < low + size)
                fail("memory is freed that a graph has registered; destroy the graph first");
}

void synchronize_default()
{
    for (const StreamPointer &s : std::set<StreamPointer>(alive))
        if (!(s->flags & cudaStreamNonBlocking))
            run_all(s.get());
}

void synchronize_all()
{
    for (const StreamPointer &s : std::set<StreamPointer>(alive))
        run_all(s.get());
}

} // namespace emulate

using namespace emulate;

void ht_emulated_enqueue_waiting(cudaStream_t stream, std::function<bool()> work)
{
    Guard guard;
    StreamState *s = state_of(stream);
    if (s->capture) {
        append_node(s, std::move(work));
        return;
    }
    if (s == legacy()) {
        if (capturing())
            fail("work for the default stream while another stream is captured into a graph");
        synchronize_default();
    }
    issue(s, std::move(work));
}

/* Work that has been done is over when it has taken as long as it has to; meanwhile other streams go on. */
void ht_emulated_enqueue(cudaStream_t stream, std::function<void()> work, const char *kind, const char *name)
{
    const double pace = strcmp(kind, "kernel") ? 0 : options().pace;
    const std::string place = ht_emulated_doing();
    const int number = ht_emulated_stream(stream);
    ht_emulated_enqueue_waiting(stream,
                                [work = std::move(work), kind, name, place, number, pace, began = 0.0, bytes = std::string()]() mutable {
                                    if (began == 0) {
                                        began = ht_emulated_now();
                                        traffic_begin();
                                        if (!strcmp(kind, "kernel"))
                                            count_kernel();
                                        work();
                                        bytes = traffic_end();
                                    }
                                    if (ht_emulated_now() < began + pace)
                                        return false;
                                    ht_emulated_log(kind, number, began, place, bytes.empty() ? bytes : bytes + " " + name);
                                    began = 0; // a graph runs it again
                                    return true;
                                });
}

int ht_emulated_stream(cudaStream_t stream)
{
    Guard guard;
    return state_of(stream)->number;
}

void ht_emulated_advance()
{
    Guard guard;
    if (!advance_all())
        Guard::pause();
}

void ht_emulated_register(cudaStream_t stream, const void *memory)
{
    if (StreamState *s = state_of(stream); s->capture)
        s->capture->registered.push_back(memory);
}

/* ---- one thread after another ---- */

static std::recursive_mutex turn;
static thread_local int turns; // that this thread has taken

Guard::Guard()
{
    turn.lock();
    turns++;
}

Guard::~Guard()
{
    turns--;
    turn.unlock();
}

void Guard::pause()
{
    int taken = turns;
    for (int i = 0; i < taken; i++)
        turn.unlock();
    std::this_thread::yield();
    for (int i = 0; i < taken; i++)
        turn.lock();
}

/* ---- streams ---- */

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int)
{
    Guard guard;
    if (cudaError_t error = no_device())
        return error;
    static int count;
    *stream = new CUstream_st{std::make_shared<StreamState>()};
    (*stream)->state->flags = flags;
    (*stream)->state->number = ++count;
    streams.insert(*stream);
    alive.insert((*stream)->state);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) { return cudaStreamCreateWithPriority(stream, flags, 0); }
cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0); }

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    Guard guard;
    if (is_legacy(stream) || !streams.count(stream))
        return report(cudaErrorInvalidResourceHandle);
    run_all(stream->state.get());
    streams.erase(stream);
    alive.erase(stream->state);
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    Guard guard;
    if (cudaError_t error = no_device())
        return error;
    StreamState *s = state_of(stream);
    if (s->capture)
        return report(cudaErrorStreamCaptureUnsupported);
    if (s == legacy())
        synchronize_default();
    run_all(s);
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    Guard guard;
    if (cudaError_t error = no_device())
        return error;
    StreamState *s = state_of(stream);
    if (s->capture)
        return report(cudaErrorStreamCaptureUnsupported);
    if (s->asked.exchange(s->issued) != s->issued)
        return report(cudaErrorNotReady);
    look_after(s, s->issued);
    return report(s->done >= s->issued ? cudaSuccess : cudaErrorNotReady);
}

/* While a stream is captured, what it waits for becomes edges of the graph; an event of a capture takes the stream into it. */
static cudaError_t wait_captured(StreamState *s, cudaEvent_t event)
{
    if (!event->capture)
        return report(cudaErrorStreamCaptureIsolation);
    if (event->capture->ended)
        return report(cudaErrorCapturedEvent);
    if (s->capture && s->capture != event->capture)
        return report(cudaErrorStreamCaptureMerge);
    if (s == legacy())
        return report(cudaErrorStreamCaptureImplicit);
    s->capture = event->capture;
    join_frontier(s, event->nodes);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    Guard guard;
    StreamState *s = state_of(stream);
    if (!event->stream)
        fail("a stream waits for an event that was never recorded: that is no wait at all");
    if (s->capture || event->capture)
        return wait_captured(s, event);
    issue(s, [from = event->stream, position = event->position] { return advance(from.get(), position); });
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data)
{
    Guard guard;
    ht_emulated_enqueue(stream, [=] { function(data); });
    return cudaSuccess;
}

/* ---- events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    Guard guard;
    if (cudaError_t error = no_device())
        return error;
    *event = new CUevent_st;
    (*event)->timed = !(flags & cudaEventDisableTiming);
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    Guard guard;
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    Guard guard;
    StreamState *s = state_of(stream);
    event->stream = pointer_of(stream);
    event->capture = s->capture;
    if (s->capture) {
        event->nodes = s->frontier;
        return cudaSuccess;
    }
    if (s == legacy())
        synchronize_default();
    event->milliseconds = std::make_shared<double>();
    event->position = s->issued + 1;
    issue(s, [at = event->milliseconds] {
        *at = ht_emulated_now();
        return true;
    });
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    Guard guard;
    if (!event->stream)
        fail("the host waits for an event that was never recorded: that is no wait at all");
    if (event->capture)
        return report(cudaErrorCapturedEvent);
    run_until(event->stream.get(), event->position);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    Guard guard;
    if (!event->stream)
        return cudaSuccess;
    if (event->capture)
        return report(cudaErrorCapturedEvent);
    look_after(event->stream.get(), event->position);
    return report(event->stream->done >= event->position ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    Guard guard;
    if (!start->milliseconds || !end->milliseconds || !start->timed || !end->timed)
        return report(cudaErrorInvalidResourceHandle);
    if (start->stream->done < start->position || end->stream->done < end->position)
        return report(cudaErrorNotReady);
    *milliseconds = (float)(*end->milliseconds - *start->milliseconds);
    return cudaSuccess;
}

/* ---- graphs ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
    Guard guard;
    if (is_legacy(stream))
        return report(cudaErrorStreamCaptureUnsupported);
    StreamState *s = state_of(stream);
    if (s->capture)
        return report(cudaErrorInvalidValue);
    s->capture = std::make_shared<Capture>();
    s->capture->origin = s;
    s->capture->mode = mode;
    s->frontier.clear();
    captures.insert(s->capture.get());
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    Guard guard;
    StreamState *s = state_of(stream);
    *graph = nullptr;
    std::shared_ptr<Capture> capture = s->capture;
    if (!capture || capture->origin != s)
        return report(cudaErrorStreamCaptureUnmatched);
    bool joined = is_joined(*capture);
    capture->ended = true;
    captures.erase(capture.get());
    for (const StreamPointer &other : alive)
        if (other->capture == capture) {
            other->capture = nullptr;
            other->frontier.clear();
        }
    if (!joined)
        return report(cudaErrorStreamCaptureUnjoined);
    *graph = new CUgraph_st{std::move(capture->nodes), std::move(capture->registered)};
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status)
{
    Guard guard;
    *status = state_of(stream)->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    Guard guard;
    for (size_t i = 0; nodes && i < *count && i < graph->nodes.size(); i++)
        nodes[i] = (cudaGraphNode_t)&graph->nodes[i];
    *count = graph->nodes.size();
    return cudaSuccess;
}

/* Adds a line with the number of a graph's nodes to the file that HETU_EMULATE_NODES names. */
static void note_nodes(size_t count)
{
    const char *path = getenv("HETU_EMULATE_NODES");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (path && (!file || fprintf(file, "%zu\n", count) < 0 || fclose(file)))
        fail("HETU_EMULATE_NODES: %s cannot be written", path);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    Guard guard;
    note_nodes(graph->nodes.size());
    *exec = new CUgraphExec_st{graph->nodes, graph->registered};
    graphs.insert(*exec);
    return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    Guard guard;
    if (state_of(stream)->capture)
        fail("a graph is launched into a stream that is captured; only plain work is emulated there");
    ht_emulated_enqueue(
        stream, [] {}, "graph");
    ht_emulated_enqueue_waiting(stream, [launched = std::make_shared<Launched>(exec->nodes)] { return launched->run(); });
    return cudaSuccess;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info)
{
    Guard guard;
    auto same = [](const Node &a, const Node &b) { return a.after == b.after; };
    bool fits = std::equal(exec->nodes.begin(), exec->nodes.end(), graph->nodes.begin(), graph->nodes.end(), same);
    *info = {fits ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged, nullptr, nullptr};
    if (!fits)
        return report(cudaErrorGraphExecUpdateFailure);
    exec->nodes = graph->nodes;
    exec->registered = graph->registered;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    Guard guard;
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    Guard guard;
    graphs.erase(exec);
    delete exec;
    return cudaSuccess;
}
