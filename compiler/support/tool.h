/* The tool that runs: its name, with which its messages begin, and their colours.
 *
 *     int main(int argc, char **argv) {
 *         tool_begin("hetu-opt", argc, argv);          // answers --version
 *         tool_parse(&parser, argc, argv, 0, NULL);    // answers --help, refuses other options
 *         tool_message(stderr, "error", "there is no pass '%s'", pass);
 *
 *     hetu-opt: error: there is no pass 'memroy'
 *
 * Messages on a terminal have colours. NO_COLOR turns them off, CLICOLOR_FORCE turns them on in
 * files, too, and an option of the C compiler is stronger than both. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

/* Sets the tool's name, also in argv[0], with which argp begins its messages. If the first word is
 * --version, prints name and version and ends the process; -h becomes --help. */
void tool_begin(const char *name, int argc, char **argv);

/* Returns the tool's name; "hetucc" before tool_begin. */
const char *tool_name(void);

/* Prints "NAME VERSION" and ends the process with status 0; 1 if the text cannot be written. */
_Noreturn void tool_print_version(void);

/* ---- the command line ---- */

struct argp;
struct argp_option;

/* Reports a mistake in the command line and ends the process with status 2. */
_Noreturn void tool_misused(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Parses the command line as argp_parse does. A word that is not an option, or an option without
 * its value, is reported by tool_misused. */
void tool_parse(const struct argp *parser, int argc, char **argv, unsigned flags, void *input);

/* Checks that a tool without options has `least` to `most` words after argv[0]; else exits with 2.
 * `words` names them, as in "[PASS] FILE". `what` describes the tool for --help. */
void tool_read_words(const char *words, const char *what, int least, int most, int argc,
                     char **argv);

/* Reads NAME=VALUE, or the two words NAME VALUE, at argv[*at], and moves *at to the last word read.
 * Returns the value; NULL: argv[*at] is another option. A missing value ends the process. */
const char *tool_value(const char *name, char **argv, int *at);

/* Sets options that tool_closest_option suggests besides those of its table; NULL ends `names`. */
void tool_own_options(const char *const *names);

/* Returns the option that a misspelled word resembles, such as "--strategy" for "--stratgy=4", from
 * an argp table or from tool_own_options; NULL: none. */
const char *tool_closest_option(const struct argp_option *table, const char *word);

/* ---- messages ---- */

/* Prints "NAME: KIND: MESSAGE". `kind` is "error", "warning", "note" or "remark". */
void tool_message(FILE *out, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- colours ---- */

/* Obeys an option such as -fdiagnostics-color=always; does nothing for any other word. */
void tool_color_option(const char *word);

/* Returns the option by which the C compiler obeys NO_COLOR or CLICOLOR_FORCE, which gcc does not
 * read; NULL: the variables say nothing, or an option has been given. */
const char *tool_color_for_cc(void);

/* Return the escape sequences before and after `what`: "place", "caret", "error"; "": no colour. */
const char *tool_color(FILE *out, const char *what);
const char *tool_color_end(FILE *out);
