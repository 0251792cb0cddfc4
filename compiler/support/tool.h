/* The tool that runs: its name, with which its messages begin, and their colours.
 *
 *     int main(int argc, char **argv) {
 *         tool_begin("hetu-opt", argc, argv);          // answers --version
 *         tool_message(stderr, "error", "there is no pass '%s'", pass);
 *
 *     hetu-opt: error: there is no pass 'memroy'
 *
 * Messages on a terminal have colours. NO_COLOR turns them off, CLICOLOR_FORCE turns them on in
 * files, too, and an option of the C compiler is stronger than both. */
#ifndef SUPPORT_TOOL_H
#define SUPPORT_TOOL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

/* Sets the tool's name, also in argv[0], with which argp begins its messages. If the first word is
 * --version, prints name and version and ends the process; -h becomes --help. */
void tool_begin(const char *name, int argc, char **argv);

/* Returns the tool's name; "hetucc" before tool_begin. */
const char *tool_name(void);

/* Prints "NAME VERSION" and ends the process with status 0. */
_Noreturn void tool_print_version(void);

/* Returns the option of an argp table that a misspelled word such as "--stratgy=4" resembles, as in
 * "--strategy"; NULL: none. */
struct argp_option;
const char *tool_closest_option(const struct argp_option *table, const char *word);

/* Refuses a misspelled long option before the first other word: prints the option of the argp table
 * that it resembles, and ends the process with status 1. */
void tool_check_options(const struct argp_option *table, int argc, char **argv);

/* Prints "NAME: KIND: MESSAGE". `kind` is "error", "warning", "note" or "remark". */
void tool_message(FILE *out, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- colours ---- */

/* Obeys an option such as -fdiagnostics-color=always; does nothing for any other word. */
void tool_color_option(const char *word);

/* Returns the option by which the C compiler obeys NO_COLOR or CLICOLOR_FORCE, which gcc does not
 * read; NULL: the variables say nothing, or an option has been given. */
const char *tool_color_for_cc(void);

/* Return the escape sequence that begins a place, a kind of message or a caret, and the one that
 * ends it; "" without colours. */
const char *tool_color(FILE *out, const char *what);
const char *tool_color_end(FILE *out);

#endif
