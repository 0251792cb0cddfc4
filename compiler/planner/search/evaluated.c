/* Keeps the evaluated strategies, corrects closed forms by them, and picks the best. */
#include "planner/search/evaluated.h"

#include "support/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_tried(const Search *search, const char *text) {
    for (int i = 0; i < search->tried.count; i++)
        if (!strcmp(search->tried.at[i]->text, text)) return true;
    return false;
}

const TriedStrategy *least_need(const Search *search) {
    const TriedStrategy *least = NULL;
    for (int i = 0; i < search->tried.count; i++) {
        const TriedStrategy *tried = search->tried.at[i];
        if (tried->good && (!least || tried->verdict.lack < least->verdict.lack)) least = tried;
    }
    return least;
}

/* Compiles and simulates strategies and stores their verdicts. */
static void judge(Search *search, TriedStrategy *const *list, int count, bool rough) {
    const char **texts = arena_array(search->arena, const char *, count + 1);
    for (int i = 0; i < count; i++) texts[i] = list[i]->text;
    const Verdict *verdicts = verdicts_find(search->arena, &search->context, texts, count, rough);
    for (int i = 0; i < count; i++) {
        list[i]->verdict = verdicts[i];
        list[i]->good = verdicts[i].good && !isnan(verdicts[i].seconds);
        list[i]->exact = !rough;
    }
}

/* Returns whether a roughly evaluated strategy, packed well, may fit or need the least memory. */
static bool is_close(const Search *search, const TriedStrategy *tried) {
    const double most_gained = 0.15;
    double lack = (double)tried->verdict.lack - most_gained * (double)tried->verdict.peak;
    const TriedStrategy *least = least_need(search);
    return tried->good && !tried->exact && tried->verdict.lack > 0 &&
           (lack <= 0 || (least && lack <= (double)least->verdict.lack));
}

/* Evaluates with exact bytes the strategies that are close to fitting. */
static void judge_close(Search *search, TriedStrategy *const *list, int count) {
    TriedList close = {0};
    for (int i = 0; i < count; i++)
        if (is_close(search, list[i])) array_push(search->arena, &close, list[i]);
    judge(search, close.at, close.count, false);
}

int try_candidates(Search *search, const CandidateList *list, int most) {
    int first = search->tried.count;
    for (int i = 0; i < list->count && search->tried.count - first < most; i++) {
        Text text = {.arena = search->arena};
        candidate_print(&text, &list->at[i], &search->context, search->devices.count, search->name);
        if (is_tried(search, text_bytes(&text))) continue;
        TriedStrategy *tried = arena_new(search->arena, TriedStrategy);
        *tried = (TriedStrategy){.candidate = candidate_copy(search->arena, &list->at[i]),
                                 .text = text_bytes(&text)};
        array_push(search->arena, &search->tried, tried);
    }
    int count = search->tried.count - first;
    judge(search, search->tried.at + first, count, true);
    judge_close(search, search->tried.at + first, count);
    return count;
}

static bool fits(const TriedStrategy *tried) { return tried->good && tried->verdict.lack <= 0; }

static int compare_tried(const void *a, const void *b) {
    const TriedStrategy *first = *(TriedStrategy *const *)a, *second = *(TriedStrategy *const *)b;
    double x = first->verdict.seconds, y = second->verdict.seconds;
    return x < y ? -1 : x > y ? 1 : strcmp(first->text, second->text);
}

TriedList best_of(const Search *search, int most) {
    TriedList best = {0};
    for (int i = 0; i < search->tried.count; i++)
        if (fits(search->tried.at[i])) array_push(search->arena, &best, search->tried.at[i]);
    qsort(best.at, (size_t)best.count, sizeof *best.at, compare_tried);
    best.count = best.count < most ? best.count : most;
    return best;
}

typedef Array(const char *) KindList;

/* Returns whether a strategy is printed beside the `better` strategies: its kind (candidate_kind)
 * is new, or it differs from one of them only in ZeRO. Adds up to `most` kinds to `kinds`. */
static bool is_listed(const Search *search, const TriedList *better, const TriedStrategy *tried,
                      KindList *kinds, int most) {
    const char *kind = candidate_kind(search->arena, &tried->candidate, &search->devices);
    int at = 0;
    while (at < kinds->count && strcmp(kinds->at[at], kind)) at++;
    for (int i = 0; i < better->count && at < kinds->count; i++)
        if (explain_folds(search->arena, better->at[i], tried, &search->devices)) return true;
    if (at < kinds->count || kinds->count == most) return false;
    array_push(search->arena, kinds, kind);
    return true;
}

TriedList best_kinds(const Search *search, int most) {
    TriedList all = best_of(search, search->tried.count), listed = {0};
    KindList kinds = {0};
    for (int i = 0; i < all.count; i++)
        if (is_listed(search, &listed, all.at[i], &kinds, most))
            array_push(search->arena, &listed, all.at[i]);
    return listed;
}

bool anything_fits(const Search *search) {
    for (int i = 0; i < search->tried.count; i++)
        if (fits(search->tried.at[i])) return true;
    return false;
}

void tries_settle(Search *search, const TriedList *list) {
    judge(search, list->at, list->count, false);
}

/* ---- corrections of the closed forms ---- */

static double median(double *numbers, int count) {
    qsort(numbers, (size_t)count, sizeof *numbers, compare_doubles);
    return count ? numbers[count / 2] : 1;
}

double real_need(const Search *search, const TriedStrategy *tried) {
    int64_t most = devices_memory(&search->devices, tried->verdict.worst);
    return most ? (double)tried->verdict.peak / (double)most : 0;
}

/* Corrects the predictions of a variant, by its strategies in tried.at[first] and later. Multiplies
 * each correction by the median ratio of evaluated to predicted bytes or seconds. */
static void correct(Search *search, int variant, int first) {
    int count = search->tried.count - first, used = 0;
    double *memory = arena_array(search->arena, double, count + 1),
           *seconds = arena_array(search->arena, double, count + 1);
    for (int i = first; i < search->tried.count; i++) {
        const TriedStrategy *tried = search->tried.at[i];
        if (!tried->good || tried->candidate.seconds <= 0 ||
            tried->candidate.splits != &search->splits[variant])
            continue;
        memory[used] = tried->candidate.need > 0 && real_need(search, tried) > 0
                           ? real_need(search, tried) / tried->candidate.need
                           : 1;
        seconds[used++] = tried->verdict.seconds / tried->candidate.seconds;
    }
    search->corrections[variant].memory *= median(memory, used);
    search->corrections[variant].seconds *= median(seconds, used);
}

void correct_all(Search *search, int first) {
    for (int v = 0; v < search->variant_count; v++) correct(search, v, first);
}

int variant_of(const Search *search, const SplitList *splits) {
    for (int v = 0; v < search->variant_count; v++)
        if (splits == &search->splits[v]) return v;
    return -1;
}

int round_size(const Search *search) {
    int size = 24000 / (search->model.op_count + 1);
    return size < 6 ? 6 : size > 16 ? 16 : size;
}
