/* --resume: models go on from their intermediate representation.
 *
 * --emit=ir --stop-after=PASS writes a text; whoever has looked at it, or changed it (a layout
 * after pass seed_layouts, say), gives it back with the sources that it was made of. What it says
 * takes the place of what the sources say of the models.
 */
#ifndef DRIVER_RESUME_H
#define DRIVER_RESUME_H

#include "driver/compile.h"

/* Puts the modules of the file into the place of those of the unit of the same names. False after
 * errors: a module that is not of the sources, or of a model that has changed since. */
bool unit_resume(Driver *driver, Unit *unit);

#endif
