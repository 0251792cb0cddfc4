/* Linear and integer programs, solved by GLPK: minimise the sum of cost times column, with each
 * column and each row between its bounds.
 *
 *     Program *program = program_create();
 *     int x = program_column(program, 0, INFINITY, 1, false);
 *     int row = program_row(program, 3, INFINITY);
 *     program_entry(program, row, x, 1);
 *     bool solved = program_relax(program) && program_integers(program, 2, 0.001);
 *     double cost = program_cost(program);
 *     program_destroy(program);
 *
 * A program can be changed and solved again: the simplex method goes on from the last basis. */
#pragma once

#include <stdbool.h>

typedef struct Program Program;

Program *program_create(void);
void program_destroy(Program *program);

/* Adds a column or a row, numbered from 0, and returns its number. INFINITY means no bound. */
int program_column(Program *program, double low, double high, double cost, bool integer);
int program_row(Program *program, double low, double high);

/* Adds the coefficient of a column in a row; to be called at most once for each pair. */
void program_entry(Program *program, int row, int column, double value);

/* Solves the relaxation to real numbers by the simplex method. False: no optimum was found. */
bool program_relax(Program *program);

/* Returns whether program_relax has proven that there is no solution, rather than just failed. */
bool program_is_impossible(const Program *program);

/* Solves with integers by branch and bound, after program_relax, within `seconds` and to a relative
 * gap. Returns false when no solution was found. In either case program_bound then returns a lower
 * bound of the least cost: the bound of the relaxation, or a better proven bound. */
bool program_integers(Program *program, double seconds, double gap);

/* Return the last solution's cost, a lower bound of the least cost, and a row's relaxation dual. */
double program_cost(const Program *program);
double program_bound(const Program *program);
double program_dual(const Program *program, int row);
