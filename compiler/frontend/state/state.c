/* Refuses models that depend on mutable globals. changes.c finds changes; reads.c lists the values
 * that a program must still have. */
#include "frontend/state/state.h"

static const bool *bytes_read(Eval *ev, const Object *object) {
    bool *read = arena_array(ev->arena, bool, object->size + 1);
    for (int64_t i = 0; i < object->size; i++) read[i] = track_read(object->track, i);
    return read;
}

void state_note(Eval *ev, const CFunction *model) {
    for (int i = 0; i < ev->unit->vars.count; i++) {
        const Object *object = ev->heap.statics[i];
        const Track *track = object ? object->track : NULL;
        if (!track || (!track->read_at.file && !track->written_at.file)) continue;
        CModelUse use = {.model = model,
                         .read_at = track->read_at,
                         .written_at = track->written_at,
                         .state = object_changed(object),
                         .read = bytes_read(ev, object)};
        array_push(ev->arena, &ev->unit->vars.at[i]->access.uses, use);
    }
}

static bool takes_tensors(const CFunction *function) {
    bool takes = function->result->is_tensor;
    for (int i = 0; i < function->params.count; i++)
        takes |= function->params.at[i]->type->is_tensor;
    return takes;
}

/* Marks a function that an expression names: it may be called there, or through a pointer. */
static void mark_named(const CExpr *expr, void *data) {
    bool *more = data;
    CFunction *function = expr->kind == C_FUNCTION ? expr->function : NULL;
    if (function && function->body && !function->outside && !takes_tensors(function))
        function->outside = *more = true;
}

static bool is_read_outside(const CVar *var) {
    for (int i = 0; i < var->access.reads.count; i++)
        if (var->access.reads.at[i].function->outside) return true;
    return false;
}

/* Marks functions that no model's evaluation called and that take and return no tensors. Marks all
 * functions that marked functions name, directly or in a table that they read. */
static void mark_outside(CUnit *unit) {
    // Start with the functions that no model called.
    for (int i = 0; i < unit->functions.count; i++) {
        CFunction *function = unit->functions.at[i];
        function->outside = function->body && !function->evaluated && !function->library &&
                            !takes_tensors(function);
    }
    // Add the functions that marked functions name, until no function is added.
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < unit->functions.count; i++)
            if (unit->functions.at[i]->outside)
                cstmt_walk(unit->functions.at[i]->body, mark_named, &more);
        for (int i = 0; i < unit->vars.count; i++)
            if (is_read_outside(unit->vars.at[i]))
                cexpr_walk(unit->vars.at[i]->init, mark_named, &more);
    }
}

static void report_read(CUnit *unit, const CVar *var, const CModelUse *use) {
    diag_error(unit->diag, use->read_at,
               "the model %s reads \"%s\", which may change; a model is evaluated once, when it is "
               "compiled",
               use->model->name, var->name);
}

static void advise(CUnit *unit, const CVar *var) {
    diag_note(unit->diag, var->at,
              "\"%s\" is declared here; make it const, or a \"shape\" variable that strategies "
              "set; what changes between steps is an input",
              var->name);
}

/* Reports a variable that an evaluation reads and leaves changed for the next. True: reported. */
static bool check_own(CUnit *unit, const CVar *var, const CModelUse *use) {
    if (!use->state) return false;
    diag_error(unit->diag, use->written_at,
               "the model %s changes \"%s\", which it reads; a model is evaluated once, when it is "
               "compiled, and keeps nothing from step to step",
               use->model->name, var->name);
    diag_note(unit->diag, use->read_at,
              "its value from before is read here; what stays from step to step is a tensor of "
              "ht_state, which ht_assign gives its next value");
    return true;
}

/* Reports a variable that a model reads and another model changes. True: reported. */
static bool check_others(CUnit *unit, const CVar *var, const CModelUse *use) {
    for (int i = 0; i < var->access.uses.count; i++) {
        const CModelUse *other = &var->access.uses.at[i];
        if (other->model == use->model || !use->read_at.file || !other->written_at.file) continue;
        report_read(unit, var, use);
        diag_note(unit->diag, other->written_at, "the model %s changes it here",
                  other->model->name);
        return true;
    }
    return false;
}

static bool reads_any(const CModelUse *use, CBytes bytes) {
    for (int64_t i = bytes.from; i < bytes.to; i++)
        if (use->read[i]) return true;
    return false;
}

/* Reports a variable that a model reads and functions outside of models change. True: reported. */
static bool check_changes(CUnit *unit, const CVar *var, const CModelUse *use) {
    for (int i = 0; i < var->access.changes.count; i++) {
        const CSite *site = &var->access.changes.at[i];
        if (var->shape || !site->function->outside || !reads_any(use, site->bytes)) continue;
        report_read(unit, var, use);
        diag_note(unit->diag, site->at,
                  site->pointer ? "its address is taken here, and it is changed through a pointer"
                                : "it is changed here");
        advise(unit, var);
        return true;
    }
    return false;
}

/* Reports a variable that a model changes and functions outside of models read. True: reported. */
static bool check_reads(CUnit *unit, const CVar *var, const CModelUse *use) {
    for (int i = 0; i < var->access.reads.count; i++) {
        const CSite *site = &var->access.reads.at[i];
        if (!use->written_at.file || !site->function->outside) continue;
        diag_error(unit->diag, use->written_at,
                   "the model %s changes \"%s\", which is read when the program runs; a model is "
                   "evaluated when it is compiled",
                   use->model->name, var->name);
        diag_note(unit->diag, site->at, "it is read here");
        return true;
    }
    return false;
}

static void check_variable(CUnit *unit, const CVar *var) {
    for (int i = 0; i < var->access.uses.count; i++) {
        const CModelUse *use = &var->access.uses.at[i];
        if (check_own(unit, var, use) || check_others(unit, var, use) ||
            check_changes(unit, var, use) || check_reads(unit, var, use))
            return;
    }
}

void state_check(CUnit *unit) {
    mark_outside(unit);
    for (int i = 0; i < unit->vars.count; i++) check_variable(unit, unit->vars.at[i]);
}
