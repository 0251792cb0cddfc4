/* The hash table behind interning and maps. */
#include "support/intern.h"
#include "support/arena.h"

#include <stdint.h>
#include <string.h>

typedef struct Slot {
    const void *bytes; // NULL: the slot is free
    size_t size;
    uint64_t hash;
    void *value; // what intern_slot points to
} Slot;

struct Intern {
    Arena *arena;
    Slot *slots; // `capacity` slots, a power of two; open addressing
    size_t capacity, count;
};

Intern *intern_create(Arena *arena) {
    Intern *table = arena_new(arena, Intern);
    table->arena = arena;
    return table;
}

/* Returns a hash like FNV-1a of the size and of the bytes in words of 8, padded with zeros. */
static uint64_t hash_of(const unsigned char *bytes, size_t size) {
    uint64_t hash = 14695981039346656037u ^ size;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, size - i < 8 ? size - i : 8);
        hash = (hash ^ word) * 1099511628211u;
        hash ^= hash >> 29;
    }
    return hash ^ hash >> 32;
}

/* Returns the slot that holds the bytes, or the free slot for them. */
static Slot *find(Intern *table, const void *bytes, size_t size, uint64_t hash) {
    for (size_t i = hash & (table->capacity - 1);; i = (i + 1) & (table->capacity - 1)) {
        Slot *slot = &table->slots[i];
        if (!slot->bytes ||
            (slot->hash == hash && slot->size == size && !memcmp(slot->bytes, bytes, size)))
            return slot;
    }
}

static void grow(Intern *table) {
    Slot *old = table->slots;
    size_t count = table->capacity;
    table->capacity = count ? 2 * count : 64;
    table->slots = arena_array(table->arena, Slot, table->capacity);
    for (size_t i = 0; i < count; i++)
        if (old[i].bytes) *find(table, old[i].bytes, old[i].size, old[i].hash) = old[i];
}

/* Returns the slot of the bytes. Makes the slot when the bytes are new. */
static Slot *slot_of(Intern *table, const void *bytes, size_t size) {
    if (2 * table->count >= table->capacity) grow(table);
    uint64_t hash = hash_of(bytes, size);
    Slot *slot = find(table, bytes, size, hash);
    if (!slot->bytes) {
        *slot = (Slot){arena_copy(table->arena, bytes, size), size, hash, NULL};
        table->count++;
    }
    return slot;
}

const void *intern(Intern *table, const void *bytes, size_t size) {
    return slot_of(table, bytes, size)->bytes;
}

void *intern_slot(Intern *table, const void *bytes, size_t size) {
    return &slot_of(table, bytes, size)->value;
}
