/* The IR's text form (print.h says what it looks like). */
#ifndef IR_TEXT_TEXT_H
#define IR_TEXT_TEXT_H

#include "ir/module.h"

/* A module that was read, and where its line stands. */
typedef struct ReadModule {
    Module *module;
    Position at;
} ReadModule;
typedef Array(ReadModule) ReadModules;

/* Appends the whole module as text. Print, parse, print is the identity after every pass. */
void ir_print(Text *out, const Module *module);

/* Reads all modules of a text; false after errors, or where there is none. */
bool ir_parse(Arena *arena, Diag *diag, const char *file, const char *text, ReadModules *modules);

#endif
