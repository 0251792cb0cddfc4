/* The 64-bit FNV-1a hash, for the compiler's fingerprints and hash tables; not cryptographic.
 *
 *     uint64_t hash = hash_text(HASH_START, "gpt.c");
 *     hash = hash_bytes(hash, &size, sizeof size);
 *
 * The runtime has a copy (base/hash.h), since compiler and runtime do not include each other. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* Returns the hash after `count` more bytes. */
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count) {
    const unsigned char *at = (const unsigned char *)bytes;
    for (size_t i = 0; i < count; i++) hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Returns the hash after the characters of a text, without its null byte. */
static inline uint64_t hash_text(uint64_t hash, const char *text) {
    for (; *text; text++) hash = hash_bytes(hash, text, 1);
    return hash;
}
