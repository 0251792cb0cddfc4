/* Solves linear and integer programs by GLPK. */
#include "planner/kinds/linear_program.h"

#include "support/array.h"

#include <glpk.h>
#include <math.h>

struct Program {
    Arena *arena;
    glp_prob *glpk;
    Array(int) rows, columns; // by entry: its row and column, from 1 as in GLPK
    Array(double) values;
    bool loaded;     // the entries have been handed to GLPK
    bool integers;   // the last solution is that of program_integers
    bool impossible; // the last relaxation is proven to have no solution
    double bound;
};

Program *program_create(void) {
    Arena *arena = arena_create();
    Program *program = arena_new(arena, Program);
    *program = (Program){.arena = arena, .glpk = glp_create_prob()};
    glp_term_out(GLP_OFF);
    array_push(arena, &program->rows, 0);
    array_push(arena, &program->columns, 0);
    array_push(arena, &program->values, 0);
    return program;
}

void program_destroy(Program *program) {
    glp_delete_prob(program->glpk);
    arena_destroy(program->arena);
}

/* Returns GLPK's constant that says which of both bounds are finite, and whether they are equal. */
static int bounds_kind(double low, double high) {
    if (isinf(low)) return isinf(high) ? GLP_FR : GLP_UP;
    return isinf(high) ? GLP_LO : low == high ? GLP_FX : GLP_DB;
}

int program_column(Program *program, double low, double high, double cost, bool integer) {
    int column = glp_add_cols(program->glpk, 1) - 1;
    glp_set_col_bnds(program->glpk, column + 1, bounds_kind(low, high), low, high);
    glp_set_obj_coef(program->glpk, column + 1, cost);
    glp_set_col_kind(program->glpk, column + 1, integer ? GLP_IV : GLP_CV);
    return column;
}

int program_row(Program *program, double low, double high) {
    int row = glp_add_rows(program->glpk, 1) - 1;
    glp_set_row_bnds(program->glpk, row + 1, bounds_kind(low, high), low, high);
    return row;
}

void program_entry(Program *program, int row, int column, double value) {
    array_push(program->arena, &program->rows, row + 1);
    array_push(program->arena, &program->columns, column + 1);
    array_push(program->arena, &program->values, value);
    program->loaded = false;
}

/* Runs one of GLPK's simplex methods from the current basis. Returns false when GLPK failed. */
static bool run_simplex(Program *program, int method) {
    glp_smcp options;
    glp_init_smcp(&options);
    options.msg_lev = GLP_MSG_OFF;
    options.meth = method;
    return !glp_simplex(program->glpk, &options);
}

/* Hands the entries to GLPK, scales them, and makes a first basis. */
static void load(Program *program) {
    glp_load_matrix(program->glpk, program->rows.count - 1, program->rows.at, program->columns.at,
                    program->values.at);
    glp_scale_prob(program->glpk, GLP_SF_AUTO);
    glp_adv_basis(program->glpk, 0);
    program->loaded = true;
}

bool program_relax(Program *program) {
    if (!program->loaded) load(program);
    program->integers = false;
    bool ran = run_simplex(program, GLP_DUALP);
    if (!ran) {
        glp_std_basis(program->glpk);
        ran = run_simplex(program, GLP_PRIMAL);
    }
    program->impossible = ran && glp_get_status(program->glpk) == GLP_NOFEAS;
    if (!ran || glp_get_status(program->glpk) != GLP_OPT) return false;
    program->bound = glp_get_obj_val(program->glpk);
    return true;
}

bool program_is_impossible(const Program *program) { return program->impossible; }

/* Records the best bound so far; GLPK calls this function during branch and bound. */
static void note_bound(glp_tree *tree, void *of) {
    Program *program = of;
    int best = glp_ios_best_node(tree);
    if (glp_ios_reason(tree) == GLP_ISELECT && best)
        program->bound = fmax(program->bound, glp_ios_node_bound(tree, best));
}

bool program_integers(Program *program, double seconds, double gap) {
    glp_iocp options;
    glp_init_iocp(&options);
    options.msg_lev = GLP_MSG_OFF;
    options.tm_lim = (int)fmin(fmax(seconds, 0.001) * 1000, 1e9);
    options.mip_gap = gap;
    options.gmi_cuts = options.mir_cuts = GLP_ON;
    options.cb_func = note_bound;
    options.cb_info = program;
    int status = glp_intopt(program->glpk, &options);
    program->integers =
        glp_mip_status(program->glpk) == GLP_OPT || glp_mip_status(program->glpk) == GLP_FEAS;
    if (!status && glp_mip_status(program->glpk) == GLP_OPT)
        program->bound = fmax(program->bound, glp_mip_obj_val(program->glpk));
    return program->integers;
}

double program_cost(const Program *program) {
    return program->integers ? glp_mip_obj_val(program->glpk) : glp_get_obj_val(program->glpk);
}

double program_bound(const Program *program) { return program->bound; }

double program_dual(const Program *program, int row) {
    return glp_get_row_dual(program->glpk, row + 1);
}
