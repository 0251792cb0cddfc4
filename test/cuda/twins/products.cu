/* ht_product: contractions written as letters, of all types, sizes that cuBLASLt likes and dislikes, and random ones. */
#include "twin.h"

#include "cuda/autotune.h"

#include "host.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* y, x, w and the bias by the letters of their axes, in the order of storage: "bo", "bi", "oi", "o" is a linear layer. */
struct Formula {
    const char *y, *x, *w, *bias; // bias NULL: absent
    const char *extents;          // "b32 o64 i16"
};

struct Types {
    ht_dtype y, operands, bias;
};

struct Epilogue {
    ht_epilogue activation;
    bool aux;
};

static int64_t extent_of(const char *extents, char letter) {
    const char *at = strchr(extents, letter);
    return at ? atol(at + 1) : 1;
}

/* The stride along `letter` of a tensor with these axes; 0 where it lacks it. */
static int64_t stride_of(const char *axes, const char *extents, char letter) {
    const char *at = axes ? strchr(axes, letter) : nullptr;
    int64_t stride = at ? 1 : 0;
    for (const char *behind = at ? at + 1 : ""; *behind; behind++)
        stride *= extent_of(extents, *behind);
    return stride;
}

static int64_t count_of(const char *axes, const char *extents) {
    int64_t count = 1;
    for (const char *letter = axes; letter && *letter; letter++)
        count *= extent_of(extents, *letter);
    return count;
}

static std::vector<ht_axis> axes_of(const Formula &f) {
    std::vector<ht_axis> axes;
    for (char letter = 'a'; letter <= 'z'; letter++)
        if (strchr(f.extents, letter))
            axes.push_back({extent_of(f.extents, letter), stride_of(f.y, f.extents, letter),
                            stride_of(f.x, f.extents, letter), stride_of(f.w, f.extents, letter),
                            stride_of(f.bias, f.extents, letter)});
    return axes;
}

/* The tensors of a product on the host. */
struct Product {
    std::vector<ht_axis> axes;
    Tensor x, w, bias, y, aux;
    ht_product_call call; // without addresses
    bool sums = false;    // the sums of an operand go where the bias would be
};

/* What is added up for an element of the result: products of numbers in [-1, 1], and the bias. */
static double magnitude_of(const std::vector<ht_axis> &axes) {
    double terms = 1;
    for (const ht_axis &axis : axes) terms *= axis.y ? 1 : (double)axis.extent;
    return terms + 1;
}

static void point(ht_product_call &call, const void *x, const void *w, const void *bias, void *y,
                  void *aux) {
    call.x = x;
    call.w = w;
    call.bias = bias;
    call.y = y;
    call.aux = aux;
}

typedef void ProductFunction(const ht_product_call *call);

static Product on_cpu(Product p, bool biased, bool aux) {
    point(p.call, p.x.bytes.data(), p.w.bytes.data(), biased ? p.bias.bytes.data() : nullptr,
          p.y.bytes.data(), aux ? p.aux.bytes.data() : nullptr);
    p.call.axes = p.axes.data();
    p.call.sums = p.sums ? reinterpret_cast<float *>(p.bias.bytes.data()) : nullptr;
    ((ProductFunction *)cpu_function("ht_product"))(&p.call);
    return p;
}

static Product on_gpu(Product p, bool biased, bool aux) {
    Tensor *const tensors[] = {&p.x, &p.w, &p.bias, &p.y, &p.aux};
    void *memory[5];
    for (int i = 0; i < 5; i++) {
        memory[i] = host_alloc((int64_t)tensors[i]->bytes.size(), tensors[i]->shift);
        host_upload(memory[i], tensors[i]->bytes.data(), (int64_t)tensors[i]->bytes.size());
    }
    point(p.call, memory[0], memory[1], biased ? memory[2] : nullptr, memory[3],
          aux ? memory[4] : nullptr);
    p.call.axes = p.axes.data();
    p.call.sums = p.sums ? static_cast<float *>(memory[2]) : nullptr;
    ht_product(&p.call);
    for (int i = 0; i < 5; i++) {
        host_download(tensors[i]->bytes.data(), memory[i], (int64_t)tensors[i]->bytes.size());
        host_free(memory[i], tensors[i]->shift);
    }
    return p;
}

/* By how much cuBLASLt's gelu may be wrong beside roundings: its tanh has 11 bits. The emulation's is exact. */
static double activation_error(const Product &p) {
    double largest = 1;
    for (int64_t i = 0; i < size_of(p.y); i++) largest = fmax(largest, fabs(element(p.y, i)));
#ifdef HT_EMULATED
    return 0;
#else
    return p.call.epilogue == HT_GELU ? largest * 0x1p-11 : 0;
#endif
}

/* Chooses the way that is not the first wherever there was a choice; whether there was one. */
static bool take_other_ways(void) {
    const AutotuneTimes times = autotune_times();
    for (const auto &[key, each] : times) autotune_settle(key, (int)each.size() - 1);
    return !times.empty();
}

static bool is_right(const std::string &label, const Product &gpu, const Product &cpu, bool aux) {
    return compare(label, gpu.y, cpu.y, activation_error(cpu)) &&
           (!cpu.sums || compare(label + ", sums", gpu.bias, cpu.bias, 0)) &&
           (!aux || compare(label + ", aux", gpu.aux, cpu.aux, 0));
}

/* Twice as it is computed first, and once as it might be. */
static void check_product(const std::string &label, const Product &p, bool biased, bool aux) {
    const Product cpu = on_cpu(p, biased, aux), first = on_gpu(p, biased, aux),
                  second = on_gpu(p, biased, aux);
    const bool right =
        is_right(label, first, cpu, aux) &&
        (!take_other_ways() || is_right(label + ", another way", on_gpu(p, biased, aux), cpu, aux));
    if (right && (first.y.bytes != second.y.bytes || first.aux.bytes != second.aux.bytes))
        fail(label, "two runs give different bits");
    else if (right) passed();
}

static Product product_of(std::vector<ht_axis> axes, const int64_t (&counts)[4], Types types,
                          Epilogue epilogue, int shift) {
    Product p = {};
    p.call.y_dtype = types.y;
    p.call.dtype = types.operands;
    p.call.bias_dtype = types.bias;
    p.call.scale = draw(2) ? 1.0f : -0.5f;
    p.call.epilogue = epilogue.activation;
    p.call.rank = (int)axes.size();
    p.x = shifted(reals(types.operands, {counts[1]}), shift);
    p.w = shifted(reals(types.operands, {counts[2]}), shift);
    p.bias = shifted(reals(types.bias, {counts[3]}), shift);
    p.y = p.aux = shifted(result(types.y, {counts[0]}, magnitude_of(axes)), shift);
    p.axes = std::move(axes);
    return p;
}

static const char *activation_name(ht_epilogue epilogue) {
    return epilogue == HT_RELU ? " relu" : epilogue == HT_GELU ? " gelu" : "";
}

static void check_formula(const Formula &f, Types types, Epilogue epilogue, int shift) {
    const int64_t counts[4] = {count_of(f.y, f.extents), count_of(f.x, f.extents),
                               count_of(f.w, f.extents), count_of(f.bias, f.extents)};
    const Product p = product_of(axes_of(f), counts, types, epilogue, shift);
    std::string label = std::string(f.y) + " = " + f.x + " * " + f.w +
                        (f.bias ? std::string(" + ") + f.bias : "") + ", " + f.extents + ", " +
                        name_of(types.operands) + " to " + name_of(types.y) +
                        activation_name(epilogue.activation) + (epilogue.aux ? " with aux" : "") +
                        (shift ? " shifted" : "");
    check_product(label, p, f.bias, epilogue.aux);
}

static const Formula FORMULAS[] = {
    {"bo", "bi", "oi", "o", "b40 o64 i32"},             // a linear layer of whole vectors
    {"bo", "bi", "oi", "o", "b5 o7 i3"},                // an odd one
    {"bo", "bi", "oi", NULL, "b5 o520 i33"},            // x with a pitch to pad
    {"bo", "bi", "oi", "o", "b520 o8 i33"},             // w
    {"bo", "bi", "oi", "o", "b6 o13 i520"},             // y
    {"bo", "bi", "oi", NULL, "b6 o13 i520"},            // y, without an epilogue of its own
    {"bi", "bo", "oi", NULL, "b6 o33 i520"},            // gradients of a linear layer
    {"oi", "bo", "bi", NULL, "b530 o13 i24"},           //
    {"bo", "bi", "oi", "b", "b9 o8 i16"},               // a bias along rows
    {"bo", "bi", "oi", "bo", "b9 o8 i16"},              // and along both
    {"bo", "bi", "oi", "", "b9 o8 i16"},                // and of one number
    {"bhst", "bshd", "bthd", NULL, "b2 h3 s5 t7 d8"},   // heads: a batch in a loop
    {"bhst", "bshd", "bthd", NULL, "b37 h38 s3 t2 d5"}, // too many calls
    {"bhst", "bshd", "bthd", "t", "b37 h38 s3 t2 d5"},  //
    {"mn", "kmj", "jnk", "n", "m6 n8 k3 j4"},           // two sums that are not one
    {"mnb", "mkb", "knb", "m", "m5 n6 k7 b3"},          // no tensor has neighbours in the matrix
    {"m", "mk", "k", "m", "m33 k40"},                   // vectors
    {"n", "k", "nk", NULL, "n33 k40"},                  //
    {"mn", "m", "n", "n", "m33 n17"},                   //
    {"mb", "bmk", "bk", NULL, "m9 b4 k16"},             // a vector with gaps
    {"b", "bk", "bk", "b", "b9 k100"},                  // no matrix: dot products
    {"", "k", "k", NULL, "k300"},                       //
    {"mn", "mks", "nk", NULL, "m5 n6 k7 s3"},           // an axis that x alone has
    {"mns", "mk", "nk", "s", "m5 n6 k7 s3"},            // and one that y alone has
    {"", "", "", "", "z1"},                             // one number
    {"bo", "bi", "oi", "o", "b3 o4 i0"},                // an empty sum
    {"bo", "bi", "oi", "o", "b0 o4 i3"},                // an empty result
};

static const Types TYPES[] = {{HT_F32, HT_F32, HT_F32},
                              {HT_BF16, HT_BF16, HT_BF16},
                              {HT_BF16, HT_BF16, HT_F32},
                              {HT_F32, HT_BF16, HT_F32},
                              {HT_BF16, HT_F32, HT_BF16}};

static const Epilogue EPILOGUES[] = {{HT_NO_EPILOGUE, false}, {HT_RELU, false},
                                     {HT_RELU, true},         {HT_GELU, false},
                                     {HT_GELU, true},         {HT_NO_EPILOGUE, true}};

/* ---- sums of an operand ---- */

/* The gradient of a linear layer's weight in f32, and that of its bias beside it; `of_w`: with the operands the other way around. */
static void check_sums(int64_t b, int64_t o, int64_t i, ht_dtype dtype, bool of_w, int shift) {
    const int64_t w = of_w, x = !of_w;
    const std::vector<ht_axis> axes = {
        {b, 0, of_w ? i : o, of_w ? o : i, 0}, {o, i, x, w, 1}, {i, 1, w, x, 0}};
    Product p = product_of(axes, {o * i, of_w ? b * i : b * o, of_w ? b * o : b * i, o},
                           {HT_F32, dtype, HT_F32}, {HT_NO_EPILOGUE, false}, shift);
    p.bias = shifted(result(HT_F32, {o}, (double)b), shift);
    p.sums = true;
    p.call.sums_of_w = of_w;
    check_product("sums of " + std::to_string(b) + " x " + std::to_string(o) + ", product with " +
                      std::to_string(i) + ", " + name_of(dtype) +
                      (of_w ? ", the second operand" : "") + (shift ? ", shifted" : ""),
                  p, false, false);
}

static void check_all_sums(void) {
    for (ht_dtype dtype : {HT_F32, HT_BF16})
        for (int of_w = 0; of_w < 2; of_w++)
            for (int shift = 0; shift < 2; shift++) {
                check_sums(70, 64, 32, dtype, of_w, shift);
                check_sums(2100, 37, 5, dtype, of_w, shift);
                check_sums(1, 3, 520, dtype, of_w, shift);
            }
}

/* ---- random axes ---- */

enum { IN_Y = 1, IN_X = 2, IN_W = 4, IN_B = 8, MOST_AXES = 5 };

/* Gives the axes of one tensor strides in a random order of storage; returns the number of elements. */
static int64_t store(std::vector<ht_axis> &axes, const std::vector<int> &kinds, int bit,
                     int64_t ht_axis::*stride) {
    std::vector<size_t> order(axes.size());
    int64_t next = 1;
    for (size_t i = 0; i < axes.size(); i++) {
        const size_t j = (size_t)draw((int64_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (size_t i : order) {
        axes[i].*stride = kinds[i] & bit ? next : 0;
        next *= kinds[i] & bit ? axes[i].extent : 1;
    }
    return next;
}

static void check_random(int round) {
    static const int choice[] = {IN_Y | IN_X,        IN_Y | IN_W, IN_X | IN_W,
                                 IN_Y | IN_X | IN_W, IN_Y | IN_X, IN_Y | IN_W,
                                 IN_X | IN_W,        IN_X,        IN_W};
    std::vector<ht_axis> axes((size_t)draw(MOST_AXES + 1));
    std::vector<int> kinds;
    for (ht_axis &axis : axes) {
        int kind = choice[draw((int64_t)(sizeof choice / sizeof choice[0]))];
        kinds.push_back(kind | (kind & IN_Y && draw(2) ? IN_B : 0));
        axis.extent = 1 + draw(draw(4) ? 5 : 20);
    }
    int64_t counts[4] = {
        store(axes, kinds, IN_Y, &ht_axis::y), store(axes, kinds, IN_X, &ht_axis::x),
        store(axes, kinds, IN_W, &ht_axis::w), store(axes, kinds, IN_B, &ht_axis::b)};
    const Types types = {draw(2) ? HT_F32 : HT_BF16, draw(2) ? HT_F32 : HT_BF16,
                         draw(2) ? HT_F32 : HT_BF16};
    const Epilogue epilogue = EPILOGUES[draw(6)];
    check_product("random axes, round " + std::to_string(round),
                  product_of(axes, counts, types, epilogue, (int)draw(2)), draw(2), epilogue.aux);
}

void check_products(void) {
    check_all_sums();
    enum { ROUNDS = 600 };
    for (const Formula &f : FORMULAS)
        for (const Types &types : TYPES)
            for (const Epilogue &epilogue : EPILOGUES)
                check_formula(f, types, epilogue, draw(4) == 0);
    check_formula({"bo", "bi", "oi", "o", "b520 o523 i521"}, TYPES[1], {HT_GELU, true},
                  0); // all three with a pitch to pad
    check_formula({"bmn", "bmk", "bnk", NULL, "b65540 m2 n3 k2"}, TYPES[0], EPILOGUES[0],
                  0); // a batch beyond what a grid has
    for (int round = 0; round < ROUNDS; round++) check_random(round);
}
