/* A lower bound of the time: a linear program that cuts operators at will among allotments. */
#include "planner/kinds/spindle/spindle.h"

#include "planner/kinds/linear_program.h"

#include <math.h>

/* The numbers of the program's rows and columns. */
typedef struct Rows {
    int end;   // column: the end of the last slice
    int area;  // row: devices * ms of all layers, at most all devices * column `end`
    int *last; // (operators): row: the operator ends before column `end`
} Rows;

/* Adds the columns of an operator: the start (*start) and, for each allotment, how many layers run
 * on this allotment. Returns the first allotment's column. */
static int operator_columns(Program *program, const Operator *operator, int * start) {
    *start = program_column(program, 0, INFINITY, 0, false);
    int first = 0, row = program_row(program, operator->layers, operator->layers);
    for (int k = 0; k < operator->allotment_count; k++) {
        int column = program_column(program, 0, INFINITY, 0, false);
        program_entry(program, row, column, 1);
        first = k ? first : column;
    }
    return first;
}

/* Adds a row: the operator's start plus its time is at most column `column`. Returns the row. */
static int ends_before(Program *program, const Operator *operator, int start, int first,
                       int column) {
    int row = program_row(program, 0, INFINITY);
    program_entry(program, row, column, 1);
    program_entry(program, row, start, -1);
    for (int k = 0; k < operator->allotment_count; k++)
        program_entry(program, row, first + k, -operator->allotment[k].ms);
    return row;
}

/* Returns the least end of the last slice, if layers may be divided, and its proof. Every operator
 * starts when the operators before it have ended, and ends by the least end. The sum of devices
 * times time over all layers is at most the number of devices times the least end. */
SpindleBound spindle_bound(Arena *arena, const Spindle *q) {
    Program *program = program_create();
    int *start = arena_array(arena, int, q->operator_count),
        *first = arena_array(arena, int, q->operator_count);
    Rows rows = {.end = program_column(program, 0, INFINITY, 1, false),
                 .last = arena_array(arena, int, q->operator_count)};
    rows.area = program_row(program, 0, INFINITY);
    program_entry(program, rows.area, rows.end, q->gpus);
    for (int o = 0; o < q->operator_count; o++) {
        const Operator *operator= & q->operator[o];
        first[o] = operator_columns(program, operator, & start[o]);
        rows.last[o] = ends_before(program, operator, start[o], first[o], rows.end);
        for (int k = 0; k < operator->after_count; k++)
            ends_before(
                program,
                &q->operator[operator->after[k]],
                             start[operator->after[k]], first[operator->after[k]], start[o]);
        for (int k = 0; k < operator->allotment_count; k++)
            program_entry(program, rows.area, first[o] + k,
                          -operator->allotment[k].devices * operator->allotment[k].ms);
    }
    double *price = arena_array(arena, double, q->operator_count);
    SpindleBound bound = {.value = program_relax(program) ? program_cost(program) : 0,
                          .end = price};
    bound.area = program_dual(program, rows.area);
    for (int o = 0; o < q->operator_count; o++) price[o] = program_dual(program, rows.last[o]);
    program_destroy(program);
    return bound;
}
