/* What object files and archives keep for hetucc: the bytes of their sections `.hetu`
 * (driver/object_sections.h says what these are). */
#ifndef DRIVER_OBJECTS_H
#define DRIVER_OBJECTS_H

#include "support/array.h"

#include <stdbool.h>

#define OBJECT_SECTION ".hetu"

/* The bytes of one section. */
typedef struct ObjectSection {
    const char *member; // of the archive; NULL: the file is an object itself
    const char *bytes;
    size_t size;
} ObjectSection;
typedef Array(ObjectSection) ObjectSections;

/* Adds the sections of an object or archive, thin ones too; nothing where the file is neither,
 * cannot be read, or is of another kind of machine. The bytes live in the arena. */
void object_sections(Arena *arena, const char *path, ObjectSections *sections);

#endif
