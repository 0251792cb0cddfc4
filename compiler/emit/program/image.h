/* The tables of a module: pieces, parameters, inputs, outputs, conversions, roles. */
#ifndef EMIT_PROGRAM_IMAGE_H
#define EMIT_PROGRAM_IMAGE_H

#include "emit/program/role.h"

/* Appends what stands for an image that a program which runs has already. */
void emit_known_image(Text *out, Emitter *emitter, const Module *module, const char *name);

/* Appends them. `writers` and `roles` have one entry a role. */
void emit_image(Text *out, Emitter *emitter, Module *module, const char *name, RoleWriter *writers,
                const RoleText *roles);

#endif
