/* The IR's text form (print.h says what it looks like). */
#ifndef IR_TEXT_TEXT_H
#define IR_TEXT_TEXT_H

#include "ir/ir.h"

/* print: the whole module as text; parse: back, NULL after errors. Print, parse, print is the identity after every pass. */
void ir_print(Text *out, const Module *module);
Module *ir_parse(Arena *arena, Diag *diag, const char *file, const char *text);

#endif
