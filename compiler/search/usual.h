/* The strategies that people begin with. They are tried whatever closed forms say of them, so that no plan is slower than any. */
#ifndef SEARCH_USUAL_H
#define SEARCH_USUAL_H

#include "search/tries.h"

/* Tries one device, a host and all devices of each class and of the whole cluster: data parallelism without and with ZeRO, tensors cut
 * within hosts, layers in equal parts over stages. */
void try_usual(Search *search);

#endif
