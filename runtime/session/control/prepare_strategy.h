/* ht_prepare: compiles further strategies while the program runs (arrivals).
 *
 * Rank 0 runs hetucc in another process, which compiles one requested strategy at a time to a
 * shared object. Rank 0 then broadcasts the object, and all ranks load it. The object's images are
 * registered if every rank could load it, in the order of the requests. */
#pragma once

#include "session/core/image.h"

#include <stddef.h>

/* On rank 0: requests the strategy --strategy=`word` for the program of `image`. Does not wait. */
void prepare_request(int image, const char *word);

/* On rank 0: returns the next compiled object, of *size bytes; free() it. NULL: none is ready. */
void *prepare_next_compiled(size_t *size);

/* On rank 0: returns whether any requested strategy has neither arrived nor failed. */
bool prepare_any_pending(void);

/* On all ranks together: loads an object, and registers its images if every rank accepts it. Rank 0
 * notes the result for prepare_strategy_name. */
void prepare_load(const void *object, size_t size);

/* On rank 0: returns the name of the strategy requested as `word`, or `word` itself if there was no
 * such request or it has not arrived. Returns NULL with *reason if the request failed, or if a
 * failed request of unknown name may have been meant. */
const char *prepare_strategy_name(const char *word, const char **reason);

/* On rank 0: returns whether a failed request may succeed if it is made again. */
bool prepare_may_retry(const char *word);

/* On rank 0: returns whether a requested strategy has neither arrived nor failed. */
bool prepare_is_pending(const char *word);

/* On rank 0: ends running hetucc processes and deletes their objects. */
void prepare_close(void);
