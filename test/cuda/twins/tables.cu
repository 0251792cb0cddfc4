/* Embedding, rope, slices and their kin, dropout, and what they say of wrong operands. */
#include "twin.h"

#include "host.h"

#include <math.h>
#include <string.h>

/* ---- embedding ---- */

struct Table {
    int64_t rows, n, tokens;
    int64_t offset, rest; // rows of the whole table before and behind the piece
    int64_t kinds;        // how many different rows are named; 0: any
    int shift;
};

/* One of everything; odd columns; one row that all tokens name; a large vocabulary; a piece of a table; more tokens than tiles of all
 * parts. */
static const Table TABLES[] = {{1, 1, 1, 0, 0, 0, 0},          {11, 7, 50, 0, 0, 0, 0},      {13, 16, 700, 0, 0, 1, 0},
                               {50257, 24, 300, 0, 0, 0, 0},   {40, 33, 1000, 15, 20, 0, 0}, {7, 8, 40000, 0, 0, 0, 0},
                               {300, 768, 100, 0, 0, 5, 0},    {20, 8, 90, 0, 0, 0, 1},      {5, 520, 65, 3, 0, 2, 0},
                               {1025, 4, 20000, 0, 0, 100, 0}, {9, 8, 0, 0, 0, 0, 0}};

static Tensor tokens_of(const Table &t, ht_dtype index)
{
    const int64_t all = t.offset + t.rows + t.rest, kinds = t.kinds ? t.kinds : all;
    Tensor id = integers(index, {t.tokens}, 0, kinds);
    for (int64_t i = 0; i < t.tokens; i++)
        set_element(id, i, fmod(element(id, i) * 7 + 3, (double)all));
    return id;
}

static void check_table(const Table &t, ht_dtype dtype, ht_dtype index, bool more)
{
    const int64_t all = t.offset + t.rows + t.rest;
    const std::string label =
        " (" + std::to_string(t.rows) + ", " + std::to_string(t.n) + ") of " + std::to_string(t.tokens) + " tokens " + name_of(dtype);
    const Tensor id = tokens_of(t, index);
    Twin forward(TWIN(ht_embedding_kernel), "embedding" + label);
    forward.operands = {piece(shifted(reals(dtype, {t.rows, t.n}), t.shift), 0, t.offset, all), id};
    forward.results = {result(dtype, {t.tokens, t.n}, 0)};
    check(forward);
    Twin backward(TWIN(ht_embedding_backward_kernel), "embedding_backward" + label);
    backward.operands = {shifted(reals(dtype, {t.tokens, t.n}), t.shift), id,
                         more ? piece(reals(HT_F32, {t.rows, t.n}), 0, t.offset, all) : absent()};
    backward.results = {piece(result(HT_F32, {t.rows, t.n}, (double)t.tokens + more), 0, t.offset, all)};
    backward.attrs = {integer_attr(all)};
    check(backward);
}

/* ---- rope ---- */

static void check_rope(int64_t batch, int64_t s, int64_t heads, int64_t d, ht_dtype dtype, bool given, int direction, int64_t offset)
{
    Twin twin(TWIN(ht_rope_kernel), "rope (" + std::to_string(batch) + ", " + std::to_string(s) + ", " + std::to_string(heads) + ", " +
                                        std::to_string(d) + ") " + name_of(dtype));
    twin.operands = {piece(reals(dtype, {batch, s, heads, d}), 1, offset, offset + s),
                     given ? integers(draw(2) ? HT_I32 : HT_I64, {batch, s}, 0, 100000) : absent(HT_I32)};
    twin.results = {result(dtype, {batch, s, heads, d}, 2)};
    twin.attrs = {real_attr(10000), integer_attr(direction)};
    check(twin);
}

void check_tables(void)
{
    for (ht_dtype dtype : {HT_F32, HT_BF16}) {
        for (const Table &t : TABLES)
            for (bool more : {false, true})
                check_table(t, dtype, draw(2) ? HT_I32 : HT_I64, more);
        check_rope(1, 1, 1, 2, dtype, false, 1, 0);
        check_rope(2, 5, 3, 6, dtype, true, 1, 0);
        check_rope(2, 3, 17, 128, dtype, false, -1, 4000);
        check_rope(1, 40, 8, 64, dtype, true, -1, 0);
        check_rope(0, 4, 8, 64, dtype, false, 1, 0);
    }
}

/* ---- shapes ---- */

static void check_slice(ht_dtype dtype, std::vector<int64_t> extent, int dim, int64_t start, int64_t length, int shift)
{
    std::vector<int64_t> part = extent;
    part[(size_t)dim] = length;
    const Tensor whole = shifted(reals(dtype, extent), shift), inner = reals(dtype, part);
    const std::string label = std::string(" ") + name_of(dtype) + " dim " + std::to_string(dim) + " from " + std::to_string(start);
    Twin slice(TWIN(ht_slice_kernel), "slice" + label);
    slice.operands = {whole};
    slice.results = {result(dtype, part, 0)};
    slice.attrs = {integer_attr(dim), integer_attr(start), integer_attr(length)};
    check(slice);
    Twin pad(TWIN(ht_pad_kernel), "pad" + label);
    pad.operands = {inner};
    pad.results = {shifted(result(dtype, extent, 0), shift)};
    pad.attrs = {integer_attr(dim), integer_attr(start), integer_attr(extent[(size_t)dim])};
    check(pad);
    std::vector<int64_t> both = extent;
    both[(size_t)dim] += length;
    Twin concat(TWIN(ht_concat_kernel), "concat" + label);
    concat.operands = {whole, inner};
    concat.results = {result(dtype, both, 0)};
    concat.attrs = {integer_attr(dim)};
    check(concat);
}

/* A convolution and its gradients. Images are (batch, groups, inputs, height, width), windows have sizes for both dimensions. */
struct Slid {
    int64_t batch, groups, inputs, outputs, image[2], window[2];
    int stride[2], padding[2], dilation[2];
};

/* One of everything; odd sizes; strides that leave a rest; holes; groups; more than a tile of rows, columns and terms. */
static const Slid SLID[] = {{1, 1, 1, 1, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {1, 1}}, {2, 1, 3, 5, {7, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
                            {3, 1, 2, 4, {8, 6}, {3, 2}, {2, 3}, {1, 0}, {1, 1}}, {1, 3, 2, 2, {9, 11}, {3, 3}, {1, 2}, {2, 2}, {2, 3}},
                            {2, 1, 70, 67, {5, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, {1, 6, 1, 1, {10, 4}, {5, 1}, {1, 1}, {2, 0}, {1, 1}}};

static void check_convolution(const Slid &s, ht_dtype dtype)
{
    std::vector<int64_t> images = {s.batch, s.groups, s.inputs, s.image[0], s.image[1]}, results = {s.batch, s.groups, s.outputs},
                         weights = {s.groups, s.outputs, s.inputs, s.window[0], s.window[1]};
    for (int d = 0; d < 2; d++)
        results.push_back((s.image[d] + 2 * s.padding[d] - (s.window[d] - 1) * s.dilation[d] - 1) / s.stride[d] + 1);
    const std::string label = " of " + std::to_string(s.inputs) + " to " + std::to_string(s.outputs) + " channels " + name_of(dtype);
    const int64_t area = s.window[0] * s.window[1];
    const auto twin = [&](ht_kernel *kernel, const char *name, Tensor a, Tensor b, Tensor to) {
        Twin one(kernel, name, name + label);
        const int rank = to.view.rank;
        one.attrs = {integer_attr(to.view.extent[rank - 2]), integer_attr(to.view.extent[rank - 1])};
        for (const int *pair : {s.stride, s.padding, s.dilation})
            one.attrs.insert(one.attrs.end(), {integer_attr(pair[0]), integer_attr(pair[1])});
        one.operands = {std::move(a), std::move(b)};
        one.results = {std::move(to)};
        check(one);
    };
    twin(TWIN(ht_convolution_kernel), reals(dtype, images), reals(dtype, weights), result(dtype, results, (double)(s.inputs * area)));
    twin(TWIN(ht_convolution_images_kernel), reals(dtype, results), reals(dtype, weights), result(dtype, images, (double)(s.outputs * area)));
    twin(TWIN(ht_convolution_weights_kernel), reals(dtype, images), reals(dtype, results),
         result(dtype == HT_BF16 ? HT_F32 : dtype, weights, (double)(s.batch * results[3] * results[4])));
}

static void check_dropout(Tensor x, double p, int training)
{
    const ht_dtype dtype = x.view.dtype;
    Twin twin(TWIN(ht_dropout_kernel), "dropout of " + std::to_string(size_of(x)) + " " + name_of(dtype) + " at " + std::to_string(p));
    twin.results = {x};
    twin.operands = {std::move(x)};
    twin.attrs = {real_attr(p), integer_attr(3)};
    twin.step = 7;
    twin.seed = 0x123456789abcdef;
    twin.training = training;
    check(twin);
}

/* ---- places and order ---- */

/* The numbers first, first + 1, ..., as many as there are in a piece. */
static Tensor places(int64_t count, int64_t first)
{
    Tensor tensor = integers(HT_I64, {count}, 0, 1);
    for (int64_t i = 0; i < count; i++)
        set_element(tensor, i, (double)(first + i));
    return tensor;
}

/* Elements of which many are equal, some are zero of either sign, and one a line is no number where there is such a thing. */
static Tensor tied(ht_dtype dtype, std::vector<int64_t> extent)
{
    Tensor x = dtype == HT_I32 || dtype == HT_I64 ? integers(dtype, extent, -5, 6) : reals(dtype, extent);
    const bool real = dtype != HT_I32 && dtype != HT_I64;
    for (int64_t i = 0; i < size_of(x); i++)
        if (draw(2))
            set_element(x, i, real && draw(9) == 0 ? (double)NAN : real && draw(5) == 0 ? -0.0 : (double)draw(3));
    return x;
}

/* Lines of `length`, of which the piece that is written has `own` from `first` on. */
static void check_lines(ht_dtype dtype, int64_t outer, int64_t length, int64_t inner, int64_t first, int64_t own)
{
    const std::string label = std::string(" ") + name_of(dtype) + " (" + std::to_string(outer) + ", " + std::to_string(length) + ", " + std::to_string(inner) + ")";
    const std::vector<int64_t> whole = {outer, length, inner}, part = {outer, own, inner};
    for (int flag : {0, 1}) {
        Twin rank(TWIN(ht_rank_kernel), "rank" + label);
        const Tensor x = tied(dtype, whole);
        Tensor z = own == length ? x : tied(dtype, part);
        rank.operands = {x, z, places(own, first), places(length, 0)};
        rank.results = {result(HT_I32, part, 0)};
        rank.attrs = {integer_attr(1), integer_attr(flag)};
        check(rank);
        Twin cumsum = flag ? Twin(TWIN(ht_cumsum_kernel), "cumsum" + label) : Twin(TWIN(ht_cumsum_back_kernel), "cumsum back" + label);
        cumsum.operands = {dtype == HT_I32 || dtype == HT_I64 ? integers(dtype, whole, -9, 9) : reals(dtype, whole), places(own, first), places(length, 0)};
        cumsum.results = {result(dtype, part, dtype == HT_F32 ? 1e-3 * (double)length : dtype == HT_F64 ? 1 : 0)};
        cumsum.attrs = {integer_attr(1)};
        check(cumsum);
    }
    Twin scatter(TWIN(ht_scatter_kernel), "scatter" + label);
    scatter.operands = {dtype == HT_I32 || dtype == HT_I64 ? integers(dtype, whole, -9, 9) : reals(dtype, whole), integers(draw(2) ? HT_I32 : HT_I64, whole, 0, length + 2),
                        places(own, first)};
    scatter.results = {result(dtype, part, 0)};
    scatter.attrs = {integer_attr(1)};
    check(scatter);
    Twin gather(TWIN(ht_gather_kernel), "gather" + label);
    gather.operands = {reals(HT_F32, part), integers(HT_I64, whole, 0, length + 2), places(own, first)};
    gather.results = {result(HT_F32, whole, 0)};
    gather.attrs = {integer_attr(1)};
    check(gather);
}

static void check_order(ht_dtype dtype)
{
    check_lines(dtype, 1, 1, 1, 0, 1);
    check_lines(dtype, 2, 33, 3, 0, 33);
    check_lines(dtype, 3, 64, 1, 10, 20);
    check_lines(dtype, 1, 1000, 2, 999, 1);
    check_lines(dtype, 2, 517, 1, 0, 517);
    check_lines(dtype, 1, 4099, 1, 100, 3000);
}

void check_shapes(void)
{
    for (ht_dtype dtype : {HT_F32, HT_BF16, HT_F64, HT_I32, HT_I64})
        check_order(dtype);
    for (ht_dtype dtype : {HT_F32, HT_BF16, HT_F64}) {
        check_slice(dtype, {1}, 0, 0, 1, 0);
        check_slice(dtype, {3, 9, 7}, 1, 2, 4, 0);
        check_slice(dtype, {5, 48, 16}, 1, 16, 32, 0);
        check_slice(dtype, {5, 3, 1000}, 2, 8, 600, 1);
        check_slice(dtype, {40, 6}, 1, 5, 1, 0);
        check_slice(dtype, {6, 40}, 0, 1, 5, 0);
    }
    for (ht_dtype dtype : {HT_F32, HT_BF16, HT_F64, HT_I32, HT_I64}) {
        Twin twin(TWIN(ht_iota_kernel), std::string("iota ") + name_of(dtype));
        twin.results = {piece(result(dtype, {300}, 0), 0, 100, 1000)};
        check(twin);
    }
    for (ht_dtype dtype : {HT_F32, HT_BF16}) {
        for (const Slid &s : SLID)
            check_convolution(s, dtype);
        check_dropout(reals(dtype, {}), 0.5, 1);
        check_dropout(reals(dtype, {1001}), 0.3, 1);
        check_dropout(shifted(reals(dtype, {64, 8})), 0.3, 1);
        check_dropout(reals(dtype, {16, 64}), 1, 1);
        check_dropout(reals(dtype, {16, 64}), 0, 1);
        check_dropout(reals(dtype, {16, 64}), 0.9, 0);
        check_dropout(piece(reals(dtype, {5, 9}), 1, 7, 19), 0.5, 1);
        check_dropout(piece(piece(reals(dtype, {3, 4, 8}), 0, 2, 6), 1, 3, 9), 0.5, 1);
        check_dropout(piece(reals(dtype, {6, 5, 4}), 1, 10, 20), 0.5, 1);
        check_dropout(piece(reals(dtype, {0, 4}), 0, 0, 8), 0.5, 1);
    }
}

/* ---- faults ---- */

/* Runs a kernel on the GPU alone, and compares what it says with `expected`. */
static void expect_fault(const Twin &twin, const char *expected)
{
    std::vector<ht_view> operands, results;
    std::vector<void *> memory;
    for (const std::vector<Tensor> *tensors : {&twin.operands, &twin.results})
        for (const Tensor &tensor : *tensors) {
            ht_view view = tensor.view;
            memory.push_back(view.data = host_alloc((int64_t)tensor.bytes.size(), 0));
            host_upload(view.data, tensor.bytes.data(), (int64_t)tensor.bytes.size());
            (tensors == &twin.operands ? operands : results).push_back(view);
        }
    ht_call call = {};
    call.operand = operands.data();
    call.result = results.data();
    call.attr = twin.attrs.data();
    twin.kernel(&call);
    const char *said = host_fault();
    if (!said || strcmp(said, expected))
        fail(twin.label, "said \"%s\" instead of \"%s\"", said ? said : "nothing", expected);
    else
        passed();
    for (void *data : memory)
        host_free(data, 0);
}

void check_faults(void)
{
    Tensor id = integers(HT_I32, {5}, 0, 11);
    set_element(id, 3, 11);
    Twin embedding(TWIN(ht_embedding_kernel), "a token outside the table");
    embedding.operands = {reals(HT_F32, {11, 7}), id};
    embedding.results = {result(HT_F32, {5, 7}, 0)};
    expect_fault(embedding, "token 11 at element 3 is outside the table's 11 rows");
    set_element(id, 3, -2);
    Twin backward(TWIN(ht_embedding_backward_kernel), "a negative token");
    backward.operands = {reals(HT_F32, {5, 7}), id, reals(HT_F32, {11, 7})};
    backward.results = {result(HT_F32, {11, 7}, 0)};
    expect_fault(backward, "token -2 at element 3 is outside the table's 11 rows");
    Tensor target = integers(HT_I64, {4}, 0, 9);
    set_element(target, 1, 9);
    Twin mass(TWIN(ht_mass_kernel), "a target that is no class");
    mass.operands = {reals(HT_BF16, {4, 9}), target, reals(HT_F32, {4})};
    mass.results = {result(HT_F32, {4}, 0), result(HT_F32, {4}, 0)};
    expect_fault(mass, "target 9 at element 1 is outside the 9 classes");
    Twin within(TWIN(ht_within_kernel), "an index behind the last element");
    within.operands = {target};
    within.results = {result(HT_I64, {4}, 0)};
    within.attrs = {integer_attr(9)};
    expect_fault(within, "index 9 at element 1 is outside the 9 elements that it chooses from");
    set_element(target, 1, -100);
    if (host_fault())
        fail("faults", "a fault is told twice");
    expect_fault(embedding, "token 11 at element 3 is outside the table's 11 rows");
}
