#include "layers.h"

#ifdef MINE
static ht_tensor my_rule(const ht_update *u) { return ht_sub(u->p, ht_mul(u->g, ht_hyper(u->first))); }

ht_optimizer chosen(void) { return (ht_optimizer){.rule = my_rule, .hyper = {0.1f}, .rule_name = MINE}; }
#else
ht_optimizer chosen(void) { return ht_averaged(ht_muon(.lr = 0.05f), 0.9f); }
#endif
