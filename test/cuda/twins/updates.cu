/* The optimizers: several parameters in a row, which are updated by one launch; and the sums of squares of their gradients. */
#include "twin.h"

#include "host.h"

#include <string.h>

/* A parameter's update: p, g, states, norm. */
static Twin update(Twin twin, int states, const float (&hyper)[8], int64_t count, int shift, bool norm, bool decay)
{
    memcpy(twin.hyper, hyper, sizeof twin.hyper);
    twin.label += " of " + std::to_string(count) + " elements" + (shift ? ", shifted" : "");
    twin.step = 3;
    twin.operands = {shifted(reals(HT_F32, {count}), shift), shifted(reals(HT_F32, {count}), shift)};
    for (int s = 0; s < states; s++)
        twin.operands.push_back(shifted(reals_between(HT_F32, {count}, s ? 0 : -1, 1), shift));
    twin.operands.push_back(norm ? reals_between(HT_F32, {}, 9, 16) : absent());
    twin.results = {in_place(result(HT_F32, {count}, 1), 0)};
    for (int s = 0; s < states; s++)
        twin.results.push_back(in_place(result(HT_F32, {count}, 1), 2 + s));
    twin.attrs = {integer_attr(decay), integer_attr(0)};
    return twin;
}

static void check_optimizer(const Twin &twin, int states, const float (&hyper)[8])
{
    std::vector<Twin> one = {update(twin, states, hyper, 1, 0, false, true)};
    check_together(one);
    std::vector<Twin> twins;
    for (int64_t count : {7, 4096, 0, 4097, 16, 10000, 1, 1023})
        twins.push_back(update(twin, states, hyper, count, draw(3) == 0, draw(2), draw(2)));
    check_together(twins);
}

/* The squares of a tensor, and a number that is there before, in whose place the sum may come. */
static Twin squares(int64_t count, int shift, bool more, bool within)
{
    Twin twin(TWIN(ht_square_sum_kernel), "square_sum of " + std::to_string(count) + " elements" + (shift ? ", shifted" : ""));
    twin.operands = {shifted(reals(HT_F32, {count}), shift), more ? reals_between(HT_F32, {}, 9, 16) : absent()};
    twin.results = {result(HT_F32, {}, (double)count + 16)};
    if (more && within)
        twin.results[0] = in_place(twin.results[0], 1);
    return twin;
}

static void check_squares(void)
{
    std::vector<Twin> twins;
    for (int64_t count : {1, 7, 4096, 4097, 10000, 3 * 1000 * 1000})
        twins.push_back(squares(count, draw(3) == 0, draw(2), draw(2)));
    for (Twin &twin : twins)
        check(twin);
    check_together(twins);
}

void check_updates(void)
{
    check_squares();
    check_optimizer(Twin(TWIN(ht_adamw_kernel), "adamw"), 2, {0.01f, 0.9f, 0.999f, 1e-8f, 0.1f, 2.0f});
    check_optimizer(Twin(TWIN(ht_adamw_kernel), "adam"), 2, {0.01f, 0.9f, 0.999f, 1e-8f, 0.1f, 2.0f, 1});
    check_optimizer(Twin(TWIN(ht_lion_kernel), "lion"), 1, {0.01f, 0.9f, 0.99f, 0.1f, 2.0f});
    check_optimizer(Twin(TWIN(ht_sgd_kernel), "sgd"), 1, {0.1f, 0.9f, 0.3f, 1.5f});
    check_optimizer(Twin(TWIN(ht_sgd_kernel), "nesterov"), 1, {0.1f, 0.9f, 0.3f, 1.5f, 1});
}
