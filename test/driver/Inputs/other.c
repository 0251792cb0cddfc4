/* Includes hetu.h, and has no model: it needs no strategy. */
#include <hetu/hetu.h>

int helper(void);
int helper(void) { return 7; }
