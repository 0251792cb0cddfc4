/* Models in several files.
 *
 * A model is evaluated when all that it calls is there. `hetucc -c` keeps of each source that
 * includes <hetu/hetu.h> what evaluation needs, in the section `.hetu` of its object: the user's
 * files as they were, and the options. Where a model calls what its file does not define, it waits:
 * the object has no programs yet, and hetucc makes them where it links. Sources of one command line
 * are parts of one program in the same way.
 *
 *     layers.c ──hetucc -c──▶ layers.o (.hetu: layers.c, layers.h, options) ──┐
 *     model.c  ──hetucc -c──▶ model.o  (.hetu: the same, and that it waits) ──┴─hetucc──▶
 *                                      evaluation, passes, emit ──▶ model
 *
 * An object without its programs does not link by another linker's hand: the symbol that it lacks
 * says why (emit/emit.h).
 */
#ifndef DRIVER_OBJECT_SECTIONS_H
#define DRIVER_OBJECT_SECTIONS_H

#include "driver/compile.h"

typedef struct Portion Portion;
typedef struct PortionList PortionList;

/* A source of the program. */
struct Portion {
    FrontendPart front;
    const char *object, *member; // the object or archive that keeps it, and the archive's member;
                                 // NULL: a source of the command line
    bool waits;                  // its models are still to be made
    bool alone;                  // its object has no other part
    bool prepares;               // it calls ht_prepare or ht_balance
    Array(const char *) words;   // the options of hetucc -c
    const char *preprocessed;    // of one that waits: the source as the C compiler compiles it
};
struct PortionList {
    int count;
    const Portion *const *at;
};

/* All parts of the command line: sources that are hetucc's own, then what objects and archives
 * keep; NULL after errors. Found once. */
const PortionList *driver_sections(Driver *driver);

/* Those that wait in objects and archives; NULL after errors. They cost reading no source. */
const PortionList *driver_waiting(Driver *driver);

/* Whether an object or archive of the command line calls ht_prepare or ht_balance: what arrives
 * there finds the program's functions, so all of these are linked for it. */
bool sections_prepare(Driver *driver);

/* Gives the frontend what else the program has, beside a source of the command line or a part.
 * False after errors. */
bool sections_give(Driver *driver, FrontendOptions *options);

/* Writes what the section of a unit's object keeps to a temporary file; its path, or NULL. */
const char *section_keep(Driver *driver, const Unit *unit, const char *source);

/* Makes `object` from a part that waits: what its own object has, and its programs. The exit
 * status. */
int section_make(Driver *driver, const Portion *part, const char *object);

/* Reads all models of the command line: of sources, and what waits in objects and archives. False
 * after errors. */
bool sections_read(Driver *driver);

/* A driver with a part's own options, and what the link's command line says over them. */
Driver *section_driver(Driver *driver, const Portion *part);

/* ---- bytes of sections (objects.c) ---- */

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
