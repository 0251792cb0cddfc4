/* Shared memory of blocks: the bytes that launches ask for, and those of __shared__ variables beside them.
 *
 * A GPU knows both before a kernel runs. Here a __shared__ variable is a static one of its function, whose size says the table of symbols
 * of the program or library that it is in. When a function that keeps such variables runs for the first time in a launch, their bytes are
 * added to those of the block. So what a launch never comes to is not counted; nvcc counts that, too.
 */
#include "inside.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <map>
#include <set>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

uint64_t ht_emulated_launches;

namespace emulate {
namespace {

constexpr size_t unasked_bytes = 48 * 1024, alignment = 128; // of dynamic shared memory, which lies behind the variables
const char mark[] = "ht_emulated_use_";

std::map<const void *, size_t> allowed; // by kernel: dynamic bytes that cudaFuncSetAttribute has asked for

/* Shared memory of the blocks at work. */
struct {
    ht_emulated_shared_limit limit;
    size_t fixed;
    std::set<std::string> counted; // functions
} at_work;

/* A file in memory. */
struct File {
    const char *data = (const char *)MAP_FAILED;
    size_t size = 0;

    explicit File(const char *path)
    {
        struct stat about;
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file >= 0 && !fstat(file, &about)) {
            size = (size_t)about.st_size;
            data = (const char *)mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
        }
        if (file >= 0)
            close(file);
        if (data == (const char *)MAP_FAILED)
            fail("%s cannot be read, which says how much shared memory kernels need", path);
    }
    ~File() { munmap((void *)data, size); }
};

/* The variables of one program or library that is loaded. */
struct Symbols {
    bool moved;                            // its addresses are counted from where it is loaded
    std::map<uint64_t, std::string> marks; // the function of each mark by its address
    std::map<std::string, size_t> bytes;   // that a function keeps
};

/* A writable variable of the table of symbols. `source` tells static functions of one name apart. */
struct Variable {
    std::string source, name;
    uint64_t address;
    size_t size;
};

std::vector<Variable> read_variables(const File &file)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)file.data;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(file.data + head->e_shoff);
    std::vector<Variable> variables;
    for (unsigned s = 0; s < head->e_shnum; s++) {
        if (sections[s].sh_type != SHT_SYMTAB)
            continue;
        const Elf64_Sym *symbols = (const Elf64_Sym *)(file.data + sections[s].sh_offset);
        const char *names = file.data + sections[sections[s].sh_link].sh_offset;
        size_t source = 0;
        for (size_t i = 0; i < sections[s].sh_size / sizeof *symbols; i++) {
            const Elf64_Sym &symbol = symbols[i];
            const bool local = ELF64_ST_BIND(symbol.st_info) == STB_LOCAL;
            source += ELF64_ST_TYPE(symbol.st_info) == STT_FILE;
            if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && symbol.st_shndx < head->e_shnum &&
                sections[symbol.st_shndx].sh_flags & SHF_WRITE)
                variables.push_back({local ? std::to_string(source) : "", names + symbol.st_name, symbol.st_value, symbol.st_size});
        }
    }
    return variables;
}

/* The function that a variable's name begins with: _ZZ, the function, E, the variable's length and name. All functions are known in
 * `among` but those of marks. */
std::string function_of(const Variable &variable, const std::map<std::string, size_t> *among)
{
    const std::string &name = variable.name;
    for (size_t end = name.find('E'); end != std::string::npos; end = name.find('E', end + 1)) {
        const std::string function = variable.source + name.substr(0, end);
        const size_t letters = name.find_first_not_of("0123456789", end + 1);
        if (letters == end + 1 || letters == std::string::npos)
            continue;
        if (among ? among->count(function) > 0 : !name.compare(letters, sizeof mark - 1, mark))
            return function;
    }
    return "";
}

Symbols read_symbols(const char *path)
{
    const File file(path);
    const std::vector<Variable> variables = read_variables(file);
    Symbols found = {((const Elf64_Ehdr *)file.data)->e_type == ET_DYN, {}, {}};
    for (const Variable &variable : variables)
        if (variable.name.find(mark) != std::string::npos) {
            const std::string function = function_of(variable, nullptr);
            found.marks[variable.address] = function;
            found.bytes[function] = 0;
        }
    for (const Variable &variable : variables)
        if (variable.name.find(mark) == std::string::npos)
            if (auto of = found.bytes.find(function_of(variable, &found.bytes)); of != found.bytes.end())
                of->second += variable.size;
    return found;
}

/* A mark's function, and how many bytes it keeps. */
std::pair<std::string, size_t> look_up(const ht_emulated_shared_use *use)
{
    static std::map<std::string, Symbols> known;
    Dl_info about;
    if (!dladdr(use, &about) || !about.dli_fname)
        fail("a __shared__ variable belongs to no program and no library");
    const char *path = strchr(about.dli_fname, '/') ? about.dli_fname : "/proc/self/exe";
    auto [entry, added] = known.try_emplace(path);
    if (added)
        entry->second = read_symbols(path);
    Symbols &symbols = entry->second;
    const auto found = symbols.marks.find((uint64_t)use - (symbols.moved ? (uint64_t)about.dli_fbase : 0));
    if (found == symbols.marks.end())
        fail("%s has no table of symbols, which says how much shared memory kernels need; link it without -s", path);
    return {path + found->second, symbols.bytes[found->second]};
}

} // namespace

void begin_shared(const ht_emulated_shared_limit &limit)
{
    ht_emulated_launches++;
    at_work.limit = limit;
    at_work.fixed = 0;
    at_work.counted.clear();
}

void check_shared(const ht_emulated_shared_limit &limit, size_t fixed)
{
    const size_t beside = limit.dynamic ? (fixed + alignment - 1) / alignment * alignment : fixed;
    if (beside + limit.dynamic > limit.most)
        fail("a launch with %zu bytes of dynamic shared memory and %zu of __shared__ variables; a block has at most %zu%s", limit.dynamic,
             beside, limit.most, limit.opted_in ? "" : " unless cudaFuncSetAttribute asks for more");
}

} // namespace emulate

using namespace emulate;

ht_emulated_shared_limit ht_emulated_limit_shared(const void *kernel, size_t dynamic)
{
    const auto asked = allowed.find(kernel);
    if (asked == allowed.end())
        return {dynamic, unasked_bytes, false};
    if (dynamic > asked->second)
        fail("a launch with %zu bytes of dynamic shared memory; cudaFuncSetAttribute has asked for %zu", dynamic, asked->second);
    return {dynamic, (size_t)options().shared, true};
}

void ht_emulated_add_shared(ht_emulated_shared_use *use)
{
    static std::map<const ht_emulated_shared_use *, std::pair<std::string, size_t>> known;
    use->launch = ht_emulated_launches;
    auto [found, added] = known.try_emplace(use);
    if (added)
        found->second = look_up(use);
    if (!at_work.counted.insert(found->second.first).second)
        return;
    at_work.fixed += found->second.second;
    check_shared(at_work.limit, at_work.fixed);
}

cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value)
{
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize)
        return report(options().devices > 0 ? cudaSuccess : cudaErrorNoDevice);
    if (value < 0 || value > options().shared)
        return report(cudaErrorInvalidValue);
    allowed[function] = (size_t)value;
    return report(options().devices > 0 ? cudaSuccess : cudaErrorNoDevice);
}
