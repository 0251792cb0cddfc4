/* einsum.h: products of tensors by letters of their dimensions, as PyTorch's einsum. Included by
 * hetu.h. The text becomes calls of ht_contract_at, two tensors at a time, whose rule in ops.h
 * says how an einsum is sharded.
 */
#ifndef HETU_EINSUM_H
#define HETU_EINSUM_H

#include <hetu/tensors.h>

#include <stdio.h>
#include <string.h>

/* ---- einsum ---- */

/* A tensor with a letter for each dimension. */
typedef struct ht_lettered {
    ht_tensor x;
    char letters[3 * HT_MAX_RANK + 1];
} ht_lettered;

/* Permutes dimensions into the order of `letters`; sums over dimensions that `letters` lacks. */
static inline ht_lettered ht_letters_ordered(ht_lettered of, const char *letters)
{
    ht_lettered to = {of.x, ""};
    ht_dims order = {0};
    int kept = 0;
    for (int d = (int)strlen(of.letters) - 1; d >= 0; d--)
        if (!strchr(letters, of.letters[d]))
            to.x = ht_sum_at(to.x, d, 1);
    for (int d = 0; of.letters[d]; d++)
        if (strchr(letters, of.letters[d]))
            of.letters[kept++] = of.letters[d];
    of.letters[kept] = 0;
    for (int d = 0; letters[d]; d++) {
        const char *at = strchr(of.letters, letters[d]);
        assert(at && "each letter of einsum's result stands in an operand");
        order.extent[order.rank++] = at - of.letters;
    }
    strcpy(to.letters, letters);
    to.x = ht_permute(to.x, order);
    return to;
}

/* Appends to `to` the letters of `from` that a has (in_a) or lacks, and b has (in_b) or lacks. */
static inline void ht_letters_pick(char *to, const char *from, const char *a, bool in_a, const char *b, bool in_b)
{
    int count = (int)strlen(to);
    for (int d = 0; from[d]; d++)
        if ((strchr(a, from[d]) != NULL) == in_a && (strchr(b, from[d]) != NULL) == in_b)
            to[count++] = from[d];
    to[count] = 0;
}

/* Multiplies two tensors, and sums over the letters of both that `wanted` lacks: "bij" and "bjk"
 * with wanted "bik" give "bik". */
static inline ht_lettered ht_letters_product(ht_lettered a, ht_lettered b, const char *wanted)
{
    char both[HT_MAX_RANK + 1] = "", inner[HT_MAX_RANK + 1] = "", first[HT_MAX_RANK + 1] = "", second[HT_MAX_RANK + 1] = "";
    ht_letters_pick(both, a.letters, b.letters, true, wanted, true);
    ht_letters_pick(inner, a.letters, b.letters, true, wanted, false);
    ht_letters_pick(first, a.letters, b.letters, false, wanted, true);
    ht_letters_pick(second, b.letters, a.letters, false, wanted, true);
    char of_a[3 * HT_MAX_RANK + 1], of_b[3 * HT_MAX_RANK + 1];
    ht_lettered y;
    snprintf(of_a, sizeof of_a, "%s%s%s", both, first, inner);
    snprintf(of_b, sizeof of_b, "%s%s%s", both, second, inner);
    assert(strlen(both) + strlen(first) + strlen(second) <= HT_MAX_RANK && "einsum's products have at most 12 dimensions");
    snprintf(y.letters, sizeof y.letters, "%s%s%s", both, first, second);
    y.x = ht_contract_at(ht_letters_ordered(a, of_a).x, ht_letters_ordered(b, of_b).x, (int)strlen(both), (int)strlen(inner));
    return y;
}

/* Reads the letters of an operand or of the result into `to`. Returns the position of the comma or
 * the arrow, or the end. "..." becomes one character for each of its `unnamed` dimensions, the
 * last one '0' + HT_MAX_RANK - 1, so that operands align at the last dimension of "...". */
static inline const char *ht_letters_read(char *to, const char *text, int unnamed)
{
    int count = 0;
    for (; *text && *text != ',' && *text != '-'; text++) {
        bool letter = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');
        assert((letter || *text == ' ' || (text[0] == '.' && text[1] == '.' && text[2] == '.')) &&
               "einsum's text has letters, commas, an arrow and ...");
        if (letter)
            to[count++] = *text;
        for (int k = HT_MAX_RANK - unnamed; *text == '.' && k < HT_MAX_RANK; k++)
            to[count++] = (char)('0' + k);
        text += *text == '.' ? 2 : 0;
    }
    to[count] = 0;
    return text;
}

/* Counts the letters before a comma, an arrow or the end. */
static inline int ht_letters_count(const char *text)
{
    int count = 0;
    for (; *text && *text != ',' && *text != '-'; text++)
        count += *text != ' ' && *text != '.';
    return count;
}

/* Replaces the two dimensions of a letter that occurs twice by their diagonal, which becomes the
 * last dimension: "iji" becomes "ji". */
static inline ht_lettered ht_letters_diagonal(ht_lettered x)
{
    for (int d = 0; x.letters[d]; d++) {
        const char *again = strchr(x.letters + d + 1, x.letters[d]);
        if (!again)
            continue;
        ht_dims order = {0};
        char letter = x.letters[d];
        int second = (int)(again - x.letters), kept = 0;
        for (int k = 0; x.letters[k]; k++)
            if (k != d && k != second) {
                order.extent[order.rank++] = k;
                x.letters[kept++] = x.letters[k];
            }
        order.extent[order.rank++] = d;
        order.extent[order.rank++] = second;
        x.letters[kept] = letter;
        x.letters[kept + 1] = 0;
        x.x = ht_permute(x.x, order);
        assert(ht_extent(x.x, -1) == ht_extent(x.x, -2) && "a letter of ht_einsum has one extent");
        x.x = ht_diagonal_at(x.x, ht_iota(ht_extent(x.x, -1), HT_I64), ht_iota(ht_extent(x.x, -1), HT_I64));
        d = -1;
    }
    return x;
}

/* Broadcasts dimensions of extent 1 to the extent of the same letter in another tensor of `all`. */
static inline ht_tensor ht_letters_expanded(const ht_lettered *all, int count, ht_lettered x)
{
    ht_dims dims = ht_dims_of(x.x);
    for (int d = 0; d < dims.rank; d++)
        for (int k = 0; k < count; k++) {
            const char *at = strchr(all[k].letters, x.letters[d]);
            if (at && dims.extent[d] == 1)
                dims.extent[d] = ht_extent(all[k].x, (int)(at - all[k].letters));
        }
    return ht_expand(x.x, dims);
}

/* Multiplies the operands and sums over letters that the result lacks: ht_einsum("bij,bjk->bik",
 * ht_list(x, w)). A letter that occurs twice in an operand selects the diagonal; "..." stands for
 * all dimensions without a letter; extents of 1 are broadcast. Without "->" the result has the
 * dimensions of "...", then each letter that occurs once, in ASCII order. */
static inline ht_tensor ht_einsum(const char *text, ht_tensors xs)
{
    enum { MOST = 16 };
    ht_lettered all[MOST], y = {HT_NONE, ""};
    char result[64] = "", rest[1024];
    const char *arrow = strstr(text, "->"), *at = text;
    int unnamed = 0;
    assert(xs.count > 0 && xs.count <= MOST && "ht_einsum takes 1 to 16 tensors");
    for (int k = 0; k < xs.count; k++) {
        int more = ht_rank(xs.at[k]) - ht_letters_count(at);
        assert(more >= 0 && "einsum's text has a letter for each dimension");
        all[k] = (ht_lettered){xs.at[k], ""};
        at = ht_letters_read(all[k].letters, at, more);
        assert((int)strlen(all[k].letters) == ht_rank(xs.at[k]) && "einsum's text has a letter for each dimension");
        assert((k + 1 < xs.count ? *at == ',' : !*at || at == arrow) && "einsum's text has as many operands as there are tensors");
        at += *at == ',';
        unnamed = more > unnamed ? more : unnamed;
        all[k] = ht_letters_diagonal(all[k]);
    }
    if (arrow)
        assert(!*ht_letters_read(result, arrow + 2, unnamed) && "behind the arrow of einsum's text stands the result");
    for (int k = HT_MAX_RANK - unnamed; !arrow && k < HT_MAX_RANK; k++)
        result[strlen(result)] = (char)('0' + k);
    for (char letter = 'A'; !arrow && letter <= 'z'; letter++) {
        const char *once = strchr(text, letter);
        if (once && !strchr(once + 1, letter))
            result[strlen(result)] = letter;
    }
    for (int d = 0; result[d]; d++)
        assert(!strchr(result + d + 1, result[d]) && "a letter stands once in the result of ht_einsum");
    for (int k = 0; k < xs.count; k++) {
        ht_lettered x = all[k];
        x.x = ht_letters_expanded(all, xs.count, x);
        strcpy(rest, result);
        for (int later = k + 1; later < xs.count; later++)
            strcat(rest, all[later].letters);
        y = k ? ht_letters_product(y, x, rest) : x;
    }
    return ht_letters_ordered(y, result).x;
}

#endif
