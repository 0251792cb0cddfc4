/* Shares bodies between kernels of several strategies that differ only in integer constants, such
 * as numbers of rows. So the C compiler translates each body once.
 *
 *     gpt_add_3(y, x):  i0 < 2048     ->    gpt_add_3_shared(y, x, n0): i0 < n0
 *     gpt_add_7(y, x):  i0 < 512            gpt_add_3 and gpt_add_7 call it with 2048 and 512
 */
#include "emit/emitter.h"

#include "support/array.h"
#include "support/intern.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NUMBERS = 512 };

/* The text of a kernel, and the places of the numbers in it that may differ between kernels. */
typedef struct Parted {
    const KernelText *kernel;
    int count; // number of places in `at`
    const char *at[MOST_NUMBERS];
    struct Sharing *sharing;
} Parted;

/* A group of kernels that differ only in numbers. */
typedef struct Sharing {
    int count, capacity;
    const Parted **at;
    bool written;
} Sharing;

/* ---- numbers ---- */

static bool part_of_word(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.'; }

/* Returns whether the digits at `at` are the exponent of a floating-point number, as in 1e-05. */
static bool is_exponent(const char *text, const char *at) {
    return at - text >= 3 && (at[-1] == '-' || at[-1] == '+') && (at[-2] == 'e' || at[-2] == 'E') &&
           (isdigit((unsigned char)at[-3]) || at[-3] == '.');
}

/* Returns whether the number at `at` can become a parameter. Divisors and array extents cannot. */
static bool may_differ(const char *text, const char *at) {
    const char *before = at, *end = at + strspn(at, "0123456789");
    while (before > text && before[-1] == ' ') before--;
    char left = before > text ? before[-1] : ' ';
    return (at == text || !part_of_word(at[-1])) && !part_of_word(*end) && !is_exponent(text, at) &&
           left != '/' && left != '%' && left != '[';
}

/* Returns the end of text that is copied unchanged: a directive, comment, word, or character. */
static const char *copied_end(const char *text, const char *at) {
    const char *end = NULL;
    if (*at == '#' && (at == text || at[-1] == '\n')) end = strchr(at, '\n');
    else if (!strncmp(at, "/*", 2)) end = strstr(at, "*/");
    if (end) return end;
    for (end = at + 1; part_of_word(*at) && part_of_word(*end);) end++;
    return end;
}

/* Finds the numbers of a kernel. Writes all other text to the key, with a mark for each number. */
static void part_kernel(Parted *parted, const KernelText *kernel, Text *key) {
    const char *name = strstr(kernel->prototype, kernel->name);
    *parted = (Parted){.kernel = kernel};
    key->length = 0;
    text_append(key, kernel->prototype, (size_t)(name - kernel->prototype));
    text_string(key, name + strlen(kernel->name));
    for (const char *at = kernel->body; *at;) {
        bool number = isdigit((unsigned char)*at) && parted->count < MOST_NUMBERS &&
                      may_differ(kernel->body, at);
        const char *end = number ? at + strspn(at, "0123456789") : copied_end(kernel->body, at);
        if (number) parted->at[parted->count++] = at;
        text_append(key, number ? "\1" : at, number ? 1 : (size_t)(end - at));
        at = end;
    }
}

static long number_at(const Parted *parted, int index) {
    return strtol(parted->at[index], NULL, 10);
}

/* Returns whether each kernel of a group has equal numbers at two places; if both are the same
 * place, whether all kernels have the same number there. */
static bool same_numbers(const Sharing *sharing, int one, int other) {
    for (int i = 0; i < sharing->count; i++)
        if (number_at(sharing->at[i], one) != number_at(sharing->at[one == other ? 0 : i], other))
            return false;
    return true;
}

/* Lists in `places` one place for each parameter, and returns the number of parameters. Places with
 * equal numbers in every kernel share a parameter. which[place]: its parameter; -1: none. */
static int find_parameters(const Sharing *sharing, int *places, int *which) {
    int count = 0;
    for (int place = 0; place < sharing->at[0]->count; place++) {
        which[place] = -1;
        for (int t = 0; t < count && which[place] < 0; t++)
            which[place] = same_numbers(sharing, place, places[t]) ? t : -1;
        if (which[place] < 0 && !same_numbers(sharing, place, place)) {
            which[place] = count;
            places[count++] = place;
        }
    }
    return count;
}

/* ---- writing ---- */

static void write_whole(Text *out, const KernelText *kernel) {
    text_print(out, "%s%s%s%s\n{\n%s}\n", kernel->banner, kernel->before, kernel->how,
               kernel->prototype, kernel->body);
}

/* Appends a body with names of parameters in place of numbers. Drops `static` of tables. */
static void write_with_parameters(Text *out, const Parted *parted, const int *which) {
    static const char TABLE[] = "    static const ";
    const char *done = parted->kernel->body, *end;
    for (int place = 0; place <= parted->count; place++) {
        const char *until = place < parted->count ? parted->at[place] : done + strlen(done);
        for (; (end = strstr(done, TABLE)) && end < until; done = end + strlen(TABLE)) {
            text_append(out, done, (size_t)(end - done));
            text_string(out, "    const ");
        }
        text_append(out, done, (size_t)(until - done));
        done = until;
        if (place < parted->count && which[place] >= 0) {
            text_print(out, "n%d", which[place]);
            done += strspn(done, "0123456789");
        }
    }
}

/* Appends the function with the body of all kernels of a group: "gpt_add_5_shared". */
static void write_shared(Text *out, const Sharing *sharing, const int *which, int places) {
    const KernelText *first = sharing->at[0]->kernel;
    const char *parameters = strchr(first->prototype, '(');
    text_print(out,
               "%s/* The body of %d functions, which differ in numbers. */\n%s void %s_shared%.*s",
               first->banner, sharing->count, *first->how ? "HT_SHARED_CLONES" : "HT_SHARED_BODY",
               first->name, (int)strlen(parameters) - 1, parameters);
    for (int t = 0; t < places; t++) text_print(out, ", long n%d", t);
    text_string(out, ")\n{\n");
    write_with_parameters(out, sharing->at[0], which);
    text_string(out, "}\n");
}

/* Appends the arguments "y, x" for the prototype "(float *y, const float *x)". */
static void write_arguments(Text *out, const char *prototype) {
    for (const char *at = strchr(prototype, '(') + 1, *end; *at; at = *end ? end + 1 : end) {
        end = at + strcspn(at, ",)");
        const char *name = end;
        while (part_of_word(name[-1])) name--;
        text_print(out, "%.*s%s", (int)(end - name), name, *end == ',' ? ", " : "");
    }
}

static void write_call(Text *out, const Parted *parted, const KernelText *first, const int *places,
                       int count) {
    text_print(out, "%s\n{\n    %s_shared(", parted->kernel->prototype, first->name);
    write_arguments(out, parted->kernel->prototype);
    for (int t = 0; t < count; t++) text_print(out, ", %ld", number_at(parted, places[t]));
    text_string(out, ");\n}\n");
}

static void write_parted(Text *out, const Parted *parted) {
    int places[MOST_NUMBERS], which[MOST_NUMBERS + 1];
    Sharing *sharing = parted->sharing;
    int count = sharing->count > 1 ? find_parameters(sharing, places, which) : 0;
    if (!count || *parted->kernel->before) {
        write_whole(out, parted->kernel);
        return;
    }
    if (!sharing->written) write_shared(out, sharing, which, count);
    sharing->written = true;
    text_string(out, "\n");
    write_call(out, parted, sharing->at[0]->kernel, places, count);
}

static void write_sharing(Text *out, const KernelTexts *kernels) {
    Arena *scratch = arena_create();
    Intern *known = intern_create(scratch);
    Parted *parted = arena_array(scratch, Parted, kernels->count);
    Text key = {.arena = scratch};
    for (int i = 0; i < kernels->count; i++) {
        part_kernel(&parted[i], &kernels->at[i], &key);
        Sharing **slot = intern_slot(known, text_bytes(&key), key.length);
        if (!*slot) *slot = arena_new(scratch, Sharing);
        parted[i].sharing = *slot;
        const Parted *one = &parted[i];
        array_push(scratch, parted[i].sharing, one);
    }
    for (int i = 0; i < kernels->count; i++) write_parted(out, &parted[i]);
    arena_destroy(scratch);
}

void write_kernels(Text *out, const KernelTexts *kernels, bool share) {
    if (share) write_sharing(out, kernels);
    for (int i = 0; i < kernels->count && !share; i++) write_whole(out, &kernels->at[i]);
}
