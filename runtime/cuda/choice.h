/* choice.h: which of several ways to do the same work is the fastest. C++ only.
 *
 *     static void run(int way, void *context);
 *     run(choice_of("algorithm", {m, n, k}, 3, run, &sizes), &sizes);
 *
 * In the first run of a program each way is timed on the stream that computes. Another way may add
 * up in another order and give other bits, so the first way counts until all ranks have agreed
 * (choice_agree), and then the one that is the fastest over all of them. Environment HETU_TUNE=0:
 * the first way always, and nothing is timed.
 */
#ifndef CUDA_CHOICE_H
#define CUDA_CHOICE_H

#include <map>
#include <stdint.h>
#include <string>
#include <vector>

/* Runs the work with variant `way`. */
typedef void ChoiceRun(int way, void *context);

/* Returns the variant to use, 0 .. ways - 1, for work of this kind and sizes. May call `run` any
 * number of times to time it, so `run` must be idempotent. nullptr: the work cannot be repeated,
 * and nothing is timed. */
int choice_of(const char *kind, const std::vector<int64_t> &sizes, int ways, ChoiceRun *run,
              void *context);

/* Timings without a decision yet: for each key, the milliseconds of every variant. A key is kind,
 * number of variants and sizes, as words of a line. */
typedef std::map<std::string, std::vector<float>> ChoiceTimes;

const ChoiceTimes &choice_times(void);

/* Makes choice_of return this variant for a key from now on. */
void choice_settle(const std::string &key, int way);

/* Agrees with the other ranks on the ways for what any of them has timed; all ranks call together.
 * Environment HETU_CACHE names a file in which rank 0 notes them, and which choice_open takes them
 * from: cuda/agreement.cu. */
void choice_open(void);
void choice_agree(void);

#endif
