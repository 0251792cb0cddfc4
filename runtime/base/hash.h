/* Hashes and checksums.
 *
 *     uint64_t hash = hash_text(HASH_START, "gpt.c");   // FNV-1a, 64 bits: keys and fingerprints
 *     hash = hash_bytes(hash, &size, sizeof size);
 *     uint32_t sum = checksum(0, bytes, count);         // zlib's CRC-32: contents of files
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#if __has_include(<zlib.h>)
#include <zlib.h>
#else // machines without zlib's header: programs link libz.so.1
unsigned long crc32_z(unsigned long crc, const unsigned char *bytes, size_t count);
#endif

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* Continues a hash with bytes. */
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count) {
    const unsigned char *at = (const unsigned char *)bytes;
    for (size_t i = 0; i < count; i++) hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Continues a hash with a text, without its final null byte. */
static inline uint64_t hash_text(uint64_t hash, const char *text) {
    for (; *text; text++) hash = hash_bytes(hash, text, 1);
    return hash;
}

/* Continues a checksum with bytes; a checksum begins as 0. */
static inline uint32_t checksum(uint32_t sum, const void *bytes, size_t count) {
    return (uint32_t)crc32_z(sum, (const unsigned char *)bytes, count);
}
