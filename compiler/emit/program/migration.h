/* Writes how the unit's programs go from one strategy to another, as <hetu/rt.h> describes. */
#ifndef EMIT_PROGRAM_MIGRATION_H
#define EMIT_PROGRAM_MIGRATION_H

#include "emit/emitter.h"

/* Appends the table PREFIX_migrations and what it refers to; `names` are those of the unit's
 * modules. Nothing where there are none. */
void emit_migrations(Text *out, Emitter *emitter, const char *const *names);

/* The name of the table, and how many migrations it has. */
const char *migrations_name(const Emitter *emitter);
int migrations_count(const Emitter *emitter);

/* Appends the table ht_arriving of a unit whose first strategies a program which runs has already
 * (<hetu/rt.h>, ht_arrival). */
void emit_arrival(Text *out, Emitter *emitter, const char *const *names);

#endif
