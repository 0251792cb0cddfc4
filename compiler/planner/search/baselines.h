/* The strategies that people begin with. They are tried whatever closed forms say of them, so that
 * no plan is slower than any. */
#ifndef PLANNER_SEARCH_BASELINES_H
#define PLANNER_SEARCH_BASELINES_H

#include "planner/search/evaluated.h"

/* Tries one device, a host and all devices of each class and of the whole cluster: data parallelism
 * without and with ZeRO, tensors cut within hosts, layers in equal parts over stages. */
void search_baselines(Search *search);

#endif
