/* The IR's text form, which print.c writes and the files of parse.h read back.
 *
 *     module "gpt_loss" train source "gpt.c" next 120 @12:1
 *     op ht_linear(tensor x, tensor w, tensor bias) @"ops.h":18:1
 *         y[b.., o..] = x[b.., i] * w[o.., i] + ?bias[o..]
 *     param %0 "h0.up.w" init normal 0.02 : f32[1024, 256] dims(ffn, embed) @14:19
 *     input %1 "tokens" : i32[16, 128]
 *     plan 0 f32[16, 128, 1024] from<[0-3]{2:4}> to<[0-3]{dup:4}>
 *     section forward
 *       %12 = ht_linear(%3, %0, -) layer 0 scope "h0" from 2 @42:10 : f32[16, 128, 1024] "h"
 *           dims(batch, seq, ffn) layout<[0-3]{2:4}>
 *       %13 = reshard(%12) plan 0 @43:1 : f32[16, 128, 1024] "h" dims(batch, seq, ffn)
 *           layout<[0-3]{dup:4}>
 *     loss %40
 *
 * A position without a file is in the module's source. Objects that operators share are printed
 * once, with a number: call stacks, factored bindings, gradients, conversion plans. */
#pragma once

#include "ir/module.h"

/* A module that was read, and the position of its line `module`. */
typedef struct ReadModule {
    Module *module;
    Position at;
} ReadModule;
typedef Array(ReadModule) ReadModules;

/* Appends a module as text. After any pass, text that is parsed and printed again is the same. */
void ir_print(Text *out, const Module *module);

/* Reads all modules of a text. Returns false after errors, or if there is no module. */
bool ir_parse(Arena *arena, Diag *diag, const char *file, const char *text, ReadModules *modules);

/* ---- parts of the text, for messages and emitted comments ---- */

/* The state of printing: the objects that have numbers. */
typedef struct Printer {
    Text *out;
    Arena *scratch;
    const Module *module;
    struct NumberEntry *frames, *bindings, *gradients; // numbers by pointer
    struct TextEntry *texts;                           // numbers of frames and bindings by text
    int frame_count, binding_count;
} Printer;

/* Prints the shared objects that an operator refers to and that have no number yet. */
void print_references(Printer *printer, const Op *op);

void print_op(Printer *printer, const Op *op);

/* Appends the shortest text that parses as the same number. */
void print_number(Text *out, double number);

/* Appends `f32[4, 6] from<LAYOUT> to<LAYOUT>`. */
void print_conversion(Text *out, Type type, const Layout *from, const Layout *to);
