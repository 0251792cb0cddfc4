/* What ran when (HETU_EMULATE_LOG). */
#include "inside.h"

#include <atomic>
#include <chrono>
#include <unistd.h>

/* What the program does, as its messages have it (base/fail.h), where its runtime is there. */
extern "C" __attribute__((weak)) void fail_describe(char *text, size_t size);

static const char *name_of_log()
{
    static const char *const name = getenv("HETU_EMULATE_LOG");
    return name;
}

/* Milliseconds, on a clock that all processes of a machine share. */
double ht_emulated_now()
{
    auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(since).count();
}

/* In front of it stands, with a tab, how much was issued before. */
std::string ht_emulated_doing()
{
    static std::atomic<int64_t> issued;
    char text[512] = "";
    if (!name_of_log())
        return text;
    if (fail_describe)
        fail_describe(text, sizeof text);
    std::string doing = std::to_string(issued++);
    return doing.append("\t").append(text);
}

static FILE *open_log()
{
    char name[4096];
    snprintf(name, sizeof name, "%s.%d", name_of_log(), (int)getpid());
    return fopen(name, "w");
}

void ht_emulated_log(const char *kind, int stream, double began, const std::string &place, const std::string &what)
{
    if (!name_of_log())
        return;
    static FILE *const file = open_log();
    bool good =
        file && fprintf(file, "%s\t%d\t%.3f\t%.3f\t%s\t%s\n", kind, stream, began, ht_emulated_now(), place.c_str(), what.c_str()) > 0;
    if (!good || fflush(file))
        emulate::fail("HETU_EMULATE_LOG: %s cannot be written", name_of_log());
}
