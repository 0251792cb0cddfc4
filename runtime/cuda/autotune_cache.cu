/* Makes all ranks agree on the fastest algorithm for each kind of work; keeps choices in a file.
 *
 * The file of HETU_CACHE is text. After a first line that identifies the format, the file has a
 * line "GPU, version of cuBLASLt<tab>key<tab>algorithm" for each kind of work. GPUs of several
 * models may share a file; a run uses the entries of rank 0's GPU. */
#include "cuda/autotune.h"

#include "base/files.h"
#include "base/c_locale.h"
#include "transport/world.h"
#include "cuda/cuda.h"

#include <algorithm>
#include <cublasLt.h>
#include <errno.h>
#include <fstream>
#include <numeric>
#include <sstream>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <hetu/rt.h>
#include <string.h>

static const char heading[] = "hetu: the fastest ways of products, 1";

/* The lines of the file: the text before the last tab, and the algorithm. */
typedef std::map<std::string, int> Known;

static Known known;

static std::string broadcast(std::string text) {
    int64_t bytes = (int64_t)text.size();
    world_broadcast(&bytes, sizeof bytes);
    text.resize((size_t)bytes);
    if (bytes) world_broadcast(text.data(), (size_t)bytes);
    return text;
}

/* Returns the texts of all ranks, joined in rank order. */
static std::string gather(const std::string &mine) {
    const size_t ranks = (size_t)world_size();
    std::vector<int64_t> bytes(ranks);
    int64_t length = (int64_t)mine.size();
    world_gather(&length, sizeof length, bytes.data());
    const size_t most = (size_t)*std::max_element(bytes.begin(), bytes.end());
    std::string padded = mine, all(most * ranks, '\0'), joined;
    padded.resize(most);
    if (most) world_gather(padded.data(), most, all.data());
    for (size_t rank = 0; rank < ranks; rank++)
        joined += all.substr(rank * most, (size_t)bytes[rank]);
    return joined;
}

static const char *cache_path(void) { return getenv("HETU_CACHE"); }

/* Returns the prefix of this GPU's entries: GPU and cuBLASLt version. */
static std::string here(void) {
    int device;
    cudaDeviceProp properties;
    HT_CUDA(cudaGetDevice(&device));
    HT_CUDA(cudaGetDeviceProperties(&properties, device));
    return std::string(properties.name) + ", cuBLASLt " + std::to_string(cublasLtGetVersion());
}

/* Adds a line to `known`; returns false if the line is not an entry. */
static bool take_line(const std::string &line) {
    const size_t tab = line.rfind('\t');
    if (tab == std::string::npos || line.find('\t') == tab) return false;
    char *end = nullptr;
    const long way = strtol(line.c_str() + tab + 1, &end, 10);
    if (end == line.c_str() + tab + 1 || *end || way < 0) return false;
    known[line.substr(0, tab)] = (int)way;
    return true;
}

/* Reads the file into `known` on rank 0. A missing file counts as empty. */
static void read_cache(const char *path) {
    const char *why = nullptr;
    if (access(path, F_OK) && errno == ENOENT) return;
    const int plain = file_open_input(path, &why);
    if (plain < 0) ht_fail("HETU_CACHE: %s cannot be read: %s", path, why);
    close(plain);
    std::ifstream file(path);
    std::string line;
    bool good = std::getline(file, line) && line == heading;
    while (good && std::getline(file, line)) good = take_line(line);
    if (!good)
        ht_fail("HETU_CACHE: %s is no file of a program's choices; remove it, or name another",
                path);
}

/* Replaces the file. If that fails, the program goes on, and the next run measures again. */
static void write_cache(const char *path) {
    char *fresh = nullptr;
    FILE *file = file_create_beside(path, &fresh);
    bool good = file && fprintf(file, "%s\n", heading) > 0;
    for (const auto &[line, way] : known)
        good = good && fprintf(file, "%s\t%d\n", line.c_str(), way) > 0;
    good = file && !fclose(file) && good;
    if (good && !rename(fresh, path)) {
        free(fresh);
        return;
    }
    fprintf(stderr, "hetu: HETU_CACHE: %s was not written: %s\n", path, folder_error(errno));
    if (fresh) unlink(fresh);
    free(fresh);
}

/* Settles the choices that rank 0's file has for its GPU, on all ranks. */
static void settle_known(void) {
    const std::string place = here() + "\t";
    std::string text, key;
    for (const auto &[line, way] : known)
        if (line.compare(0, place.size(), place) == 0)
            text += line.substr(place.size()) + "\t" + std::to_string(way) + "\n";
    std::istringstream lines(broadcast(text));
    for (std::string line; std::getline(lines, line);)
        autotune_settle(line.substr(0, line.find('\t')), atoi(line.c_str() + line.find('\t') + 1));
}

void autotune_open(void) {
    known.clear();
    if (world_rank() == 0 && cache_path()) read_cache(cache_path());
    settle_known();
}

/* Returns the times as lines "key<tab>milliseconds of each algorithm". */
static std::string text_of(const AutotuneTimes &times) {
    std::ostringstream text;
    for (const auto &[key, each] : times) {
        text << key << "\t";
        for (float time : each) text << time << " ";
        text << "\n";
    }
    return text.str();
}

/* Returns, for each key, each algorithm's time, summed over all ranks. */
static std::map<std::string, std::vector<double>> sums_of(const std::string &text) {
    std::map<std::string, std::vector<double>> sums;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream numbers(line.substr(line.find('\t') + 1));
        std::vector<double> &sum = sums[line.substr(0, line.find('\t'))];
        double time;
        for (size_t way = 0; numbers >> time; way++) {
            sum.resize(std::max(sum.size(), way + 1));
            sum[way] += time;
        }
    }
    return sums;
}

void autotune_agree(void) {
    const auto sums = sums_of(gather(text_of(autotune_times())));
    const std::string place = here() + "\t";
    for (const auto &[key, sum] : sums) {
        const int way = (int)(std::min_element(sum.begin(), sum.end()) - sum.begin());
        autotune_settle(key, way);
        known[place + key] = way;
    }
    if (!sums.empty() && world_rank() == 0 && cache_path()) write_cache(cache_path());
}
