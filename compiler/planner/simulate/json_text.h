/* JSON as text. */
#ifndef PLANNER_SIMULATE_JSON_TEXT_H
#define PLANNER_SIMULATE_JSON_TEXT_H

#include "support/text.h"

#include <jansson.h>

/* Writes a value and a new line, with jansson's flags; the value is gone then. */
void put_json(Text *out, json_t *top, size_t flags);

#endif
