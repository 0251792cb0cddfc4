/* Bytes of device memory that a launch reads and writes (HETU_EMULATE_TRAFFIC).
 *
 * Before a launch all of it is protected. The first access to a page faults, and says whether it reads or writes; a page that is read may
 * be written later, and then counts twice, as what is read and written once each does on a GPU whose caches hold all that a launch touches
 * again. A page that is written first is not read from memory. So what a launch touches is known to a page at each end of a tensor.
 */
#include "inside.h"

#include <cstring>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>

namespace emulate {
namespace {

constexpr size_t page = 4096, stack_bytes = 1 << 16;
constexpr unsigned long long writes = 2; // of a fault's error code, on x86-64

char *begin;
size_t size;                                      // of device memory in use while a launch is counted; else 0
std::vector<unsigned char> was_read, was_written; // by page
struct sigaction other;                           // what a fault elsewhere is for

[[noreturn]] void fail_protecting() { fail("cannot protect device memory"); }

void allow(char *memory, bool write)
{
    if (mprotect(memory, page, write ? PROT_READ | PROT_WRITE : PROT_READ))
        fail_protecting();
}

void touched(int, siginfo_t *info, void *context)
{
    char *address = (char *)info->si_addr;
    if (address < begin || address >= begin + size) {
        sigaction(SIGSEGV, &other, nullptr); // it faults again
        return;
    }
    const size_t number = (size_t)(address - begin) / page;
    const bool write = (unsigned long long)((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & writes;
    (write ? was_written : was_read)[number] = 1;
    allow(begin + number * page, write);
}

/* Fibers have small stacks: faults are served on one of their own. */
void catch_faults()
{
    static thread_local std::vector<char> stack(stack_bytes);
    stack_t own = {};
    own.ss_sp = stack.data();
    own.ss_size = stack.size();
    struct sigaction action = {};
    action.sa_sigaction = touched;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    if (sigaltstack(&own, nullptr) || sigaction(SIGSEGV, &action, &other))
        fail("cannot look at accesses to device memory");
}

int64_t bytes_of(const std::vector<unsigned char> &pages)
{
    int64_t count = 0;
    for (unsigned char one : pages)
        count += one;
    return count * (int64_t)page;
}

} // namespace

void traffic_begin()
{
    if (!options().traffic)
        return;
    begin = device_range(&size);
    was_read.assign(size / page, 0);
    was_written.assign(size / page, 0);
    catch_faults();
    if (size && mprotect(begin, size, PROT_NONE))
        fail_protecting();
}

std::string traffic_end()
{
    if (!options().traffic)
        return "";
    if (size && mprotect(begin, size, PROT_READ | PROT_WRITE))
        fail_protecting();
    size = 0;
    sigaction(SIGSEGV, &other, nullptr);
    return std::to_string(bytes_of(was_read)) + " " + std::to_string(bytes_of(was_written));
}

} // namespace emulate
