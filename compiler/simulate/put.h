/* JSON as text. */
#ifndef SIMULATE_PUT_H
#define SIMULATE_PUT_H

#include "support/text.h"

#include <jansson.h>

/* Writes a value and a new line, with jansson's flags; the value is gone then. */
void put_json(Text *out, json_t *top, size_t flags);

#endif
