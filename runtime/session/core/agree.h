/* Whether all ranks run the same program. */
#ifndef SESSION_CORE_AGREE_H
#define SESSION_CORE_AGREE_H

#include <stdbool.h>

/* Compares what all ranks run: the fingerprints of their images, which hetucc made of the models,
 * the strategy and its options, and the version of this library; with `check`, on the ranks that
 * were given it, every byte of the executable. All ranks together. When they differ, every rank
 * says so, with its own fingerprint and another one. Returns whether they agree. */
bool session_agree(bool check);

#endif
