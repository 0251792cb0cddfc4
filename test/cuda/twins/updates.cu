/* The optimizers: several parameters in a row, which are updated by one launch. */
#include "twin.h"

#include "host.h"

#include <string.h>

/* A parameter's update: p, g, states, norm. */
static Twin update(bool adamw, int64_t count, int shift, bool norm, bool decay)
{
    Twin twin = adamw ? Twin(TWIN(ht_adamw_kernel), "adamw") : Twin(TWIN(ht_sgd_kernel), "sgd");
    const int states = adamw ? 2 : 1;
    const float numbers[2][8] = {{0.1f, 0.9f, 0.3f, 1.5f}, {0.01f, 0.9f, 0.999f, 1e-8f, 0.1f, 2.0f}};
    memcpy(twin.hyper, numbers[adamw], sizeof twin.hyper);
    twin.label += " of " + std::to_string(count) + " elements" + (shift ? ", shifted" : "");
    twin.step = 3;
    twin.operands = {shifted(reals(HT_F32, {count}), shift), shifted(reals(HT_F32, {count}), shift)};
    for (int s = 0; s < states; s++)
        twin.operands.push_back(shifted(reals_between(HT_F32, {count}, s ? 0 : -1, 1), shift));
    twin.operands.push_back(norm ? reals_between(HT_F32, {}, 9, 16) : absent());
    twin.results = {in_place(result(HT_F32, {count}, 1), 0)};
    for (int s = 0; s < states; s++)
        twin.results.push_back(in_place(result(HT_F32, {count}, 1), 2 + s));
    twin.attrs = {integer_attr(decay)};
    return twin;
}

void check_updates(void)
{
    for (bool adamw : {true, false}) {
        std::vector<Twin> one = {update(adamw, 1, 0, false, true)};
        check_together(one);
        std::vector<Twin> twins;
        for (int64_t count : {7, 4096, 0, 4097, 16, 10000, 1, 1023})
            twins.push_back(update(adamw, count, draw(3) == 0, draw(2), draw(2)));
        check_together(twins);
    }
}
