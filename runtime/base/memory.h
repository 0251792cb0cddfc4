/* Memory of the runtime: allocation that ends the program with a message when there is none
 * left. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* `count` zeroed objects; free() them. */
void *memory_array(int64_t count, size_t size);

/* Storage of tensors, aligned to 64 bytes, not zeroed; free() it. */
void *memory_storage(int64_t bytes);

#endif
