/* Models in several files.
 *
 *     layers.c ──hetucc -c──▶ layers.o (.hetu: layers.c, layers.h, options) ──┐
 *     model.c  ──hetucc -c──▶ model.o  (.hetu: the same, and that it waits) ──┴─hetucc──▶
 *                                      evaluation, passes, emit ──▶ model
 *
 * A model is evaluated when all functions that it calls are known. So `hetucc -c` keeps in the
 * section `.hetu` of an object what evaluation needs: the user's files at that time, and the
 * options. A model that calls functions of other files waits: its programs are made when hetucc
 * links. Sources of one command line are parts of one program in the same way.
 *
 * Another linker refuses an object with waiting models, by an undefined symbol (emit/emit.h). */
#pragma once

#include "driver/compile.h"

typedef struct Portion Portion;
typedef struct PortionList PortionList;

/* A part: a source of the program, on the command line or kept in an object. */
struct Portion {
    FrontendPart front;
    const char *object, *member; // the object, or the archive and its member; NULL: none
    bool waits;                  // the part's models are not compiled yet
    bool alone;                  // the object has no other part
    bool prepares;               // strategies may arrive at run time (struct Unit)
    Array(const char *) words;   // options that hetucc -c was given
    const char *preprocessed;    // the preprocessed source of a waiting part
};
struct PortionList {
    int count;
    const Portion *const *at;
};

/* Returns all parts of the command line: sources that hetucc compiles, then the parts in objects
 * and archives; NULL on errors. Later calls return the same list. */
const PortionList *driver_sections(Driver *driver);

/* Returns the waiting parts in objects and archives, without reading sources; NULL on errors. */
const PortionList *driver_waiting(Driver *driver);

/* Returns whether an object or archive of the command line calls ht_prepare or ht_balance. The
 * program is then linked with -rdynamic, so that strategies made later find its functions. */
bool sections_prepare(Driver *driver);

/* Sets options->parts to the program's parts other than options->part. Returns false on errors. */
bool sections_give(Driver *driver, FrontendOptions *options);

/* Writes the section of a unit's object to a file; returns the file's path, NULL on errors. */
const char *section_keep(Driver *driver, const Unit *unit, const char *source);

/* Compiles a waiting part to the object file `object`, which has the content of the part's own
 * object and the part's programs. Returns the exit status. */
int section_make(Driver *driver, const Portion *part, const char *object);

/* Adds all models of sources and of waiting parts to driver->modules. Returns false on errors. */
bool sections_read(Driver *driver);

/* Returns a driver with a part's own options, overridden by options of the link; NULL on errors. */
Driver *section_driver(Driver *driver, const Portion *part);

/* ---- bytes of sections (read_objects.c) ---- */

#define OBJECT_SECTION ".hetu"

/* The bytes of one section. */
typedef struct ObjectSection {
    const char *member; // name in the archive; NULL: the file is an object
    const char *bytes;
    size_t size;
} ObjectSection;
typedef Array(ObjectSection) ObjectSections;

/* Adds the sections of an object or archive (also a thin one); the bytes live in the arena. Adds
 * nothing when the file cannot be read or is neither; an object is 64-bit little-endian ELF. */
void object_sections(Arena *arena, const char *path, ObjectSections *sections);
