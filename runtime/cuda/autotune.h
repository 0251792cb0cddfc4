/* autotune.h: chooses the fastest of several ways to do the same work. C++ only.
 *
 *     static void run(int way, void *context);
 *     run(autotune_choose("algorithm", {m, n, k}, 3, run, &sizes), &sizes);
 *
 * The first run of a program measures each way on the compute stream. Different ways may sum in
 * different orders and give different bits. So the first way is used until all ranks agree
 * (autotune_agree) on the way that is fastest over all ranks. With HETU_TUNE=0, the first way is
 * always used, and nothing is measured. */
#pragma once

#include <map>
#include <stdint.h>
#include <string>
#include <vector>

/* Runs the work with variant `way`. */
typedef void AutotuneRun(int way, void *context);

/* Returns the variant to use, in [0, ways), for work of this kind and sizes. May call `run` any
 * number of times to time the work, so `run` must be idempotent. If `run` is nullptr, nothing is
 * timed, since the work cannot be repeated. */
int autotune_choose(const char *kind, const std::vector<int64_t> &sizes, int ways, AutotuneRun *run,
                    void *context);

/* Timings that the ranks have not yet agreed on: for each key, the milliseconds of every variant. A
 * key is a line of words: kind, number of variants, sizes. */
typedef std::map<std::string, std::vector<float>> AutotuneTimes;

const AutotuneTimes &autotune_times(void);

/* Makes autotune_choose return this variant for a key from now on. */
void autotune_settle(const std::string &key, int way);

/* autotune_agree agrees with the other ranks on a variant for all work that any rank has measured;
 * all ranks call it together. If HETU_CACHE names a file, rank 0 writes the choices to it, and
 * autotune_open settles the choices in it (cuda/autotune_cache.cu). */
void autotune_open(void);
void autotune_agree(void);
