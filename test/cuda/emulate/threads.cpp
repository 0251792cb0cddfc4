/* CUDA emulated on a CPU: the threads of a block as fibers, and what they do together. */
#include "inside.h"

#include <string>
#include <sys/mman.h>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

uint3 ht_emulated_thread, ht_emulated_block;
dim3 ht_emulated_block_extent, ht_emulated_grid_extent;

namespace emulate {
namespace {

constexpr size_t stack_bytes = 256 * 1024;
constexpr unsigned warp_lanes = 32;
constexpr unsigned char canary = 0xff;
constexpr size_t canary_bytes = 128;

/* ---- switching stacks ---- */

struct Fiber;
void fiber_main(void);

} // namespace
} // namespace emulate

#if defined(__x86_64__) && !defined(HT_EMULATE_UCONTEXT)

/* Saves the callee's registers on this stack and its pointer in *from, and goes on where `to` was left. */
extern "C" void ht_emulated_switch(void **from, void *to);
asm(".text\n"
    ".p2align 4\n"
    ".type ht_emulated_switch, @function\n"
    ".hidden ht_emulated_switch\n"
    ".globl ht_emulated_switch\n"
    "ht_emulated_switch:\n"
    "    pushq %rbp\n"
    "    pushq %rbx\n"
    "    pushq %r12\n"
    "    pushq %r13\n"
    "    pushq %r14\n"
    "    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n"
    "    popq %r14\n"
    "    popq %r13\n"
    "    popq %r12\n"
    "    popq %rbx\n"
    "    popq %rbp\n"
    "    ret\n"
    ".size ht_emulated_switch, .-ht_emulated_switch\n");

namespace emulate {
namespace {

struct Context {
    void *top;

    void prepare(char *stack, size_t size)
    {
        void **place = (void **)(stack + size - 64);
        constexpr int saved_registers = 6;
        *--place = nullptr;
        *--place = (void *)fiber_main;
        for (int i = 0; i < saved_registers; i++)
            *--place = nullptr;
        top = place;
    }
    void leave_for(Context &to) { ht_emulated_switch(&top, to.top); }
};

} // namespace
} // namespace emulate

#else
#include <ucontext.h>

namespace emulate {
namespace {

struct Context {
    ucontext_t context;

    void prepare(char *stack, size_t size)
    {
        getcontext(&context);
        context.uc_stack.ss_sp = stack;
        context.uc_stack.ss_size = size;
        context.uc_link = nullptr;
        makecontext(&context, fiber_main, 0);
    }
    void leave_for(Context &to) { swapcontext(&context, &to.context); }
};

} // namespace
} // namespace emulate
#endif

namespace emulate {
namespace {

struct Fiber {
    Context context;
    char *stack = nullptr;
    void *shadow = nullptr; // address sanitizer's
};

Fiber scheduler, *running = &scheduler;
std::vector<Fiber *> idle;

/* Goes on with `to`; returns when something goes on with this fiber. */
void switch_to(Fiber *to)
{
    Fiber *from = running;
    running = to;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&from->shadow, to->stack, to->stack ? stack_bytes : 0);
#endif
    from->context.leave_for(to->context);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(from->shadow, nullptr, nullptr);
#endif
}

Fiber *new_fiber()
{
    constexpr size_t guard = 4096;
    Fiber *fiber = new Fiber;
    char *memory = (char *)mmap(nullptr, stack_bytes + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, guard, PROT_NONE))
        fail("no memory for the stack of a thread");
    fiber->stack = memory + guard;
    fiber->context.prepare(fiber->stack, stack_bytes);
    return fiber;
}

Fiber *take_fiber()
{
    if (idle.empty())
        return new_fiber();
    Fiber *fiber = idle.back();
    idle.pop_back();
    return fiber;
}

/* ---- a block ---- */

/* Lanes of one warp on their way to one operation; it belongs to the mask's lowest lane. */
struct Meeting {
    ht_emulated_operation *operation = nullptr;
    unsigned mask = 0, arrived = 0;
};

struct Warp {
    Meeting meeting[warp_lanes];
    void *argument[warp_lanes];
};

struct Thread {
    Fiber *fiber = nullptr;
    const char *waits_for = nullptr; // NULL: it does not wait
    ht_emulated_place where;
    bool done = false;
};

struct Block {
    const std::function<void()> *program;
    unsigned count, started, finished, waiting;
    int predicate, predicate_sum; // of the barrier that is being filled, and of the last one
    unsigned current;
    std::vector<Thread> threads;
    std::vector<Warp> warps;
    std::vector<unsigned> ready; // a ring
    size_t ready_begin, ready_end;
} block;

char *shared_memory;
uint64_t blocks_started;

void make_ready(unsigned thread)
{
    block.threads[thread].waits_for = nullptr;
    block.ready[block.ready_end++ % block.ready.size()] = thread;
}

void enter(unsigned thread)
{
    block.current = thread;
    unsigned width = blockDim.x, height = blockDim.y;
    threadIdx = {thread % width, thread / width % height, thread / width / height};
}

/* One line for each run of threads that wait at the same place. */
[[noreturn]] void fail_deadlock()
{
    std::string text;
    for (unsigned first = 0, last; first < block.count; first = last) {
        const Thread &t = block.threads[first];
        auto same = [&](const Thread &u) { return u.waits_for == t.waits_for && u.done == t.done && u.where.line() == t.where.line(); };
        for (last = first + 1; last < block.count && same(block.threads[last]); last++)
            ;
        char line[512];
        if (t.done)
            snprintf(line, sizeof line, "\n  threads %u to %u have returned", first, last - 1);
        else
            snprintf(line, sizeof line, "\n  threads %u to %u wait in %s at %s:%u", first, last - 1, t.waits_for ? t.waits_for : "nothing",
                     t.where.file_name(), (unsigned)t.where.line());
        text += line;
    }
    fail("a block's threads wait for each other forever (block %u,%u,%u of %u threads):%s", blockIdx.x, blockIdx.y, blockIdx.z, block.count,
         text.c_str());
}

/* Goes on with a thread that can run; `self` is not among them. */
void run_another()
{
    if (block.ready_begin != block.ready_end) {
        unsigned thread = block.ready[block.ready_begin++ % block.ready.size()];
        enter(thread);
        if (block.threads[thread].fiber != running)
            switch_to(block.threads[thread].fiber);
    } else if (block.started < block.count) {
        switch_to(take_fiber());
    } else {
        fail_deadlock();
    }
}

/* Leaves the current thread until another makes it ready. */
void wait(const char *what, ht_emulated_place where)
{
    Thread &mine = block.threads[block.current];
    mine.waits_for = what;
    mine.where = where;
    mine.fiber = running;
    run_another();
}

const char *const barrier_name = "__syncthreads";

/* All that live have come to the barrier: they go on. */
void open_barrier()
{
    block.predicate_sum = block.predicate;
    block.predicate = 0;
    block.waiting = 0;
    for (unsigned i = 0; i < block.count; i++)
        if (block.threads[i].waits_for == barrier_name)
            make_ready(i);
}

void finish_thread()
{
    block.threads[block.current].done = true;
    block.finished++;
    if (block.waiting > 0 && block.waiting + block.finished == block.count)
        open_barrier();
}

/* A fiber runs threads of whatever block there is, one after another, and rests when none can start. */
void fiber_main(void)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(running->shadow, nullptr, nullptr);
#endif
    for (;;) {
        while (block.started < block.count) {
            unsigned n = block.started++;
            enter(options().backward ? block.count - 1 - n : n);
            (*block.program)();
            finish_thread();
        }
        idle.push_back(running);
        if (block.finished == block.count)
            switch_to(&scheduler);
        else
            run_another();
    }
}

void start_block(unsigned threads, const std::function<void()> &program)
{
    blocks_started++;
    block.program = &program;
    block.count = threads;
    block.started = block.finished = block.waiting = 0;
    block.predicate = block.predicate_sum = 0;
    block.ready_begin = block.ready_end = 0;
    block.threads.assign(threads, Thread());
    block.warps.assign((threads + warp_lanes - 1) / warp_lanes, Warp());
    block.ready.resize(threads);
}

/* The lanes of a warp that exist, as a mask. */
unsigned lanes_of(unsigned warp)
{
    unsigned lanes = block.count - warp * warp_lanes;
    return lanes >= warp_lanes ? ~0u : (1u << lanes) - 1;
}

void check_mask(const Meeting &m, ht_emulated_operation *operation, const char *name, unsigned mask, ht_emulated_place where)
{
    unsigned lane = block.current % warp_lanes;
    if (!(mask >> lane & 1))
        fail("%s:%u: lane %u calls %s with the mask %#x, which it is not part of", where.file_name(), (unsigned)where.line(), lane, name,
             mask);
    if (m.arrived && (m.operation != operation || m.mask != mask))
        fail("%s:%u: lane %u calls %s with the mask %#x while others of its warp wait in another operation or with the mask %#x",
             where.file_name(), (unsigned)where.line(), lane, name, mask, m.mask);
}

} // namespace

uint64_t block_number() { return blocks_started; }

} // namespace emulate

using namespace emulate;

unsigned ht_emulated_lane(void) { return block.current % warp_lanes; }

void *ht_emulated_shared(void) { return shared_memory; }

int ht_emulated_barrier(int predicate, ht_emulated_place where)
{
    unsigned self = block.current;
    for (unsigned i = 0; i < block.count && block.waiting > 0; i++) {
        const Thread &other = block.threads[i];
        if (other.waits_for == barrier_name && other.where.line() != where.line())
            fail("threads %u and %u of a block wait at different barriers: %s:%u and %s:%u", i, self, other.where.file_name(),
                 (unsigned)other.where.line(), where.file_name(), (unsigned)where.line());
        if (other.waits_for == barrier_name)
            break;
    }
    block.predicate += predicate;
    block.waiting++;
    if (block.waiting + block.finished == block.count)
        open_barrier();
    else
        wait(barrier_name, where);
    return block.predicate_sum;
}

void ht_emulated_together(ht_emulated_operation *operation, const char *name, unsigned mask, void *argument, ht_emulated_place where)
{
    unsigned self = block.current, lane = self % warp_lanes;
    Warp &warp = block.warps[self / warp_lanes];
    mask &= lanes_of(self / warp_lanes);
    Meeting &m = warp.meeting[__builtin_ctz(mask | 1u << (warp_lanes - 1))];
    check_mask(m, operation, name, mask, where);
    m.operation = operation;
    m.mask = mask;
    m.arrived |= 1u << lane;
    warp.argument[lane] = argument;
    if (m.arrived != mask) {
        wait(name, where);
        return;
    }
    void *arguments[warp_lanes];
    for (unsigned i = 0; i < warp_lanes; i++)
        arguments[i] = mask >> i & 1 ? warp.argument[i] : nullptr;
    operation(arguments, mask);
    m.arrived = 0;
    for (unsigned i = 0; i < warp_lanes; i++)
        if (i != lane && (mask >> i & 1))
            make_ready(self - lane + i);
}

void ht_emulated_grid(dim3 grid, dim3 extent, const ht_emulated_shared_limit &limit, const std::function<void()> &thread)
{
    const size_t shared = limit.dynamic;
    begin_shared(limit);
    std::vector<unsigned char> memory(shared + 2 * canary_bytes);
    shared_memory = (char *)(((uintptr_t)memory.data() + canary_bytes - 1) & ~(uintptr_t)(canary_bytes - 1));
    unsigned char *end = (unsigned char *)shared_memory + shared, *last = memory.data() + memory.size();
    gridDim = grid;
    blockDim = extent;
    uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
    for (uint64_t i = 0; i < blocks; i++) {
        uint64_t b = options().backward ? blocks - 1 - i : i;
        blockIdx = {(unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y), (unsigned)(b / grid.x / grid.y)};
        poison(shared_memory, shared);
        memset(end, canary, (size_t)(last - end));
        start_block(extent.x * extent.y * extent.z, thread);
        switch_to(take_fiber());
        for (const unsigned char *p = end; p < last; p++)
            if (*p != canary)
                fail("block %u,%u,%u wrote %ld bytes beyond its %zu bytes of shared memory", blockIdx.x, blockIdx.y, blockIdx.z,
                     (long)(p - end), shared);
    }
    shared_memory = nullptr;
}
