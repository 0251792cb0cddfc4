/* NVTX for programs that run without a GPU: ranges are written to the file that HETU_EMULATE_RANGES names and the process, a line when one
 * begins, with how many are around it, and one when it ends: "0 ht_linear gpt.c:42 h3", "0 end". */
#ifndef HETU_EMULATE_NVTX_H
#define HETU_EMULATE_NVTX_H

#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <unistd.h>

static int ht_emulated_ranges;

static inline void ht_emulated_range(int depth, const char *text)
{
    const char *path = getenv("HETU_EMULATE_RANGES");
    FILE *file = path ? fopen((path + ("." + std::to_string(getpid()))).c_str(), "a") : nullptr;
    if (file)
        fprintf(file, "%d %s\n", depth, text);
    if (file)
        fclose(file);
}

static inline int nvtxRangePushA(const char *name)
{
    ht_emulated_range(ht_emulated_ranges, name);
    return ht_emulated_ranges++;
}

static inline int nvtxRangePop()
{
    ht_emulated_range(--ht_emulated_ranges, "end");
    return ht_emulated_ranges;
}

#endif
