/* Checks calls of ht_feed and ht_fetch against the model's inputs and names, at compile time.
 * session/data/feed.c and named_values.c check at run time. */
#include "frontend/models.h"

#include "ir/unit.h"

#include <string.h>

typedef struct Search {
    CUnit *cunit;
    const Unit *made;
    const CVar *var;    // the variable whose assignments are counted
    const CExpr *value; // the last value assigned; NULL: unknown
    int values;         // number of assignments
} Search;

static const CExpr *without_casts(const CExpr *expr) {
    while (expr && expr->kind == C_CAST) expr = expr->a;
    return expr;
}

/* Returns whether an expression is a call of the function `name`. */
static bool is_call(const CExpr *expr, const char *name) {
    const CFunction *function = expr && expr->kind == C_CALL ? cexpr_function(expr->a) : NULL;
    return function && !strcmp(function->name, name);
}

static void walk_functions(CUnit *cunit, CVisit *visit, void *data) {
    for (int i = 0; i < cunit->functions.count; i++)
        if (!cunit->functions.at[i]->library && !cunit->functions.at[i]->part &&
            cunit->functions.at[i]->body)
            cstmt_walk(cunit->functions.at[i]->body, visit, data);
}

/* ---- programs ---- */

static void count_values(const CExpr *expr, void *data) {
    Search *search = data;
    const CExpr *to = expr->kind == C_ASSIGN || (expr->kind == C_UNARY && expr->op == OP_ADDRESS)
                          ? without_casts(expr->a)
                          : NULL;
    if (!to || to->kind != C_VAR || to->var != search->var) return;
    search->values++;
    search->value = expr->kind == C_ASSIGN ? without_casts(expr->b) : NULL;
}

/* Returns the call of ht_train or ht_infer that is the only value of a variable; NULL: unknown. */
static const CExpr *maker_of(const Search *search, const CExpr *program) {
    program = without_casts(program);
    if (!program || program->kind != C_VAR || program->var->part) return NULL;
    Search values = {.var = program->var};
    walk_functions(search->cunit, count_values, &values);
    if (program->var->init && without_casts(program->var->init)->kind == C_CALL) {
        values.values++;
        values.value = without_casts(program->var->init);
    }
    bool made = values.values == 1 &&
                (is_call(values.value, "ht_train_with") || is_call(values.value, "ht_infer_with"));
    return made && values.value->args.count >= 3 ? values.value : NULL;
}

/* ---- feeds ---- */

/* Returns the element type of an array of any rank. */
static const CType *element_of(const CType *type) {
    while (type->kind == CT_ARRAY) type = type->base;
    return type;
}

/* Returns whether the runtime knows an array's element type: numbers in one or two dimensions. */
static bool has_known_element(const CType *array) {
    return (array->base->kind != CT_ARRAY || array->base->base->kind != CT_ARRAY) &&
           ctype_is_arithmetic(element_of(array));
}

/* Returns the C type that an input needs; NULL if the array's elements have it, or are unknown. */
static const char *unfit_element(const CType *array, DType dtype) {
    const CType *element = element_of(array);
    static const char *const wanted[] = {[DTYPE_F32] = "float",
                                         [DTYPE_BF16] = "unsigned short",
                                         [DTYPE_F64] = "double",
                                         [DTYPE_I32] = "int",
                                         [DTYPE_I64] = "long"};
    bool integer = element->kind == CT_INT && !element->is_enum;
    bool fits = dtype == DTYPE_F32    ? element->kind == CT_FLOAT
                : dtype == DTYPE_F64  ? element->kind == CT_DOUBLE
                : dtype == DTYPE_BF16 ? integer && element->size == 2 && !element->is_signed
                : dtype == DTYPE_I32  ? integer && element->size == 4 && element->is_signed
                                      : integer && element->size == 8 && element->is_signed;
    return fits || !has_known_element(array) ? NULL : wanted[dtype];
}

/* A feed in the source. */
typedef struct Fed {
    const char *name;
    const CType *type; // type of the array; NULL: unknown, or only a part of the array is fed
    Position at;       // position of the input's name
} Fed;

/* Returns the initializer list of a struct literal or its address; NULL: `expr` is neither. */
static const CExpr *fields_of(const CExpr *expr) {
    expr = without_casts(expr);
    expr = expr && expr->kind == C_UNARY && expr->op == OP_ADDRESS ? without_casts(expr->a) : expr;
    expr = expr && expr->kind == C_LITERAL ? expr->a : expr;
    return expr && expr->kind == C_INIT ? expr : NULL;
}

/* Returns the value of the field `name` in a list; NULL when the list does not name it. */
static const CExpr *field_of(const CExpr *fields, const char *name) {
    const CExpr *found = NULL;
    for (int i = 0; i < fields->args.count && !found; i++) {
        const CExpr *field = fields->args.at[i];
        bool named = field && field->kind == C_DESIGNATED && field->designators.count == 1 &&
                     field->designators.at[0].field;
        found =
            named && !strcmp(field->designators.at[0].field, name) ? without_casts(field->a) : NULL;
    }
    return found;
}

/* Returns the type of the array that ht_feed feeds as a whole; NULL: unknown. */
static const CType *array_of(const CExpr *fields) {
    const CExpr *data = without_casts(fields->args.at[1]);
    if (!data || data->kind != C_VAR || data->var->type->kind != CT_ARRAY) return NULL;
    const CExpr *known = without_casts(fields->args.at[3]);
    bool counted = !known || (known->kind == C_INT && known->integer == 2); // counted: ht_feed_n
    return counted || data->var->type->variable || data->var->type->size <= 0 ? NULL
                                                                              : data->var->type;
}

/* Returns the input that ht_dataset feeds: its field `input`, else its `name`. NULL: unknown. */
static const CExpr *dataset_input(const CExpr *call) {
    const CExpr *fields = call->args.count == 1 ? fields_of(call->args.at[0]) : NULL,
                *said = fields ? field_of(fields, "input") : NULL;
    return said || !fields ? said : field_of(fields, "name");
}

/* Reads ht_feed, ht_feed_n or ht_dataset into *fed; false for other calls and unknown names. */
static bool is_fed(const CExpr *expr, Fed *fed) {
    const CExpr *call = without_casts(expr), *fields = fields_of(expr), *name = NULL;
    if (is_call(call, "ht_dataset_with")) name = dataset_input(call);
    else if (fields && fields->args.count >= 5) name = without_casts(fields->args.at[0]);
    if (!name || name->kind != C_STRING) return false;
    *fed = (Fed){name->text.bytes, fields ? array_of(fields) : NULL, name->at};
    return true;
}

/* Reports a feed whose array does not fit an input. */
static void report(const Search *search, const Fed *fed, const Value *input) {
    Diag *diag = search->cunit->diag;
    const CType *own = element_of(fed->type);
    const char *element = unfit_element(fed->type, input->type.dtype);
    int64_t count = type_elements(input->type), bytes = count * dtype_size(input->type.dtype);
    if (element)
        diag_error(diag, fed->at,
                   "the input \"%s\" has elements of %s, and is fed an array of %s; give it an "
                   "array of %s",
                   fed->name, dtype_name(input->type.dtype), own->name, element);
    else if (fed->type->size < bytes)
        diag_error(diag, fed->at,
                   "the input \"%s\" has %lld bytes, and is fed an array of %lld bytes; give it "
                   "all of them",
                   fed->name, (long long)bytes, (long long)fed->type->size);
    else
        diag_error(diag, fed->at,
                   "the input \"%s\" has %lld bytes, and is fed an array of %lld bytes; "
                   "ht_feed_n(\"%s\", pointer, %lld) feeds a part of one",
                   fed->name, (long long)bytes, (long long)fed->type->size, fed->name,
                   (long long)count);
    diag_note(diag, input->at, "the input is here");
}

/* Reports a feed of an input that the program lacks. */
static void report_unknown(const Search *search, const Fed *fed, const Module *module) {
    Diag *diag = search->cunit->diag;
    diag_error(diag, fed->at, "the model %s has no input \"%s\"", module->name, fed->name);
    for (int i = 0; i < module->inputs.count; i++)
        if (diag_suggest(diag, module->inputs.at[i]->at, fed->name, &module->inputs.at[i]->name, 1))
            return;
    for (int i = 0; i < module->inputs.count; i++)
        diag_note(diag, module->inputs.at[i]->at, "it has the input \"%s\"",
                  module->inputs.at[i]->name);
}

static void check_feed(const Search *search, const CExpr *maker, const Fed *fed) {
    const CFunction *model = cexpr_function(maker->args.at[1]);
    ModuleKind kind = is_call(maker, "ht_train_with") ? MODULE_TRAIN : MODULE_INFER;
    const Value *found = NULL;
    const Module *own = NULL;
    for (int m = 0; model && m < search->made->modules.count; m++) {
        const Module *module = search->made->modules.at[m];
        if (strcmp(module->name, model->name) || module->kind != kind) continue;
        own = module;
        const Value *input = module_input(module, fed->name);
        int64_t bytes = input ? type_elements(input->type) * dtype_size(input->type.dtype) : 0;
        if (input && (!fed->type || (!unfit_element(fed->type, input->type.dtype) &&
                                     (!bytes || bytes == fed->type->size))))
            return;
        found = input ? input : found;
    }
    if (found) report(search, fed, found);
    else if (own) report_unknown(search, fed, own);
}

static void check_run(const CExpr *expr, void *data) {
    const Search *search = data;
    bool runs =
        (is_call(expr, "ht_step_with") || is_call(expr, "ht_run_with")) && expr->args.count == 2;
    const CExpr *list = runs ? without_casts(expr->args.at[1]) : NULL,
                *maker = list ? maker_of(search, expr->args.at[0]) : NULL;
    if (list && list->kind == C_LITERAL) list = list->a;
    for (int i = 0; maker && list && list->kind == C_INIT && i < list->args.count; i++) {
        Fed fed;
        if (is_fed(list->args.at[i], &fed)) check_feed(search, maker, &fed);
    }
}

/* ---- fetches ---- */

typedef Array(const char *) Names;

/* A call of ht_fetch with known program and name. */
typedef struct Fetch {
    const char *name;
    Position at;        // position of the name
    const CType *to;    // type of the array that it copies to; NULL: unknown
    Names names;        // all names of the program
    const Value *lacks; // a value of that name with more bytes than the array; NULL: none
    bool found, fits;   // a value has the name; the array can hold such a value
} Fetch;

/* Returns whether `name` is the full name of a value, or the part of that name after a dot. */
static bool is_name_of(const char *full, const char *name) {
    size_t length = strlen(full), end = strlen(name);
    return !strcmp(full, name) || (end && length > end && full[length - end - 1] == '.' &&
                                   !strcmp(full + length - end, name));
}

static void look_at(const Search *search, Fetch *fetch, const char *name, const Value *value) {
    array_push(search->cunit->arena, &fetch->names, name);
    if (!is_name_of(name, fetch->name)) return;
    bool fits = !fetch->to || !value ||
                type_elements(value->type) * dtype_size(value->type.dtype) <= fetch->to->size;
    fetch->found = true;
    fetch->fits |= fits;
    fetch->lacks = fits ? fetch->lacks : value;
}

/* Compares all named values of a program with fetch->name, as session/data/named_values.h does. */
static void look_through(const Search *search, Fetch *fetch, const Module *module) {
    for (int i = 0; i < module->outputs.count; i++)
        look_at(search, fetch, module->outputs.at[i].name, module->outputs.at[i].value);
    for (int i = 0; i < module->params.count; i++)
        look_at(search, fetch, module->params.at[i]->name, module->params.at[i]->value);
    for (int i = 0; i < module->inputs.count; i++)
        look_at(search, fetch, module->inputs.at[i]->name, module->inputs.at[i]);
    if (module->loss) look_at(search, fetch, "", module->loss);
}

static void report_fetch(const Search *search, const Fetch *fetch, const char *model) {
    Diag *diag = search->cunit->diag;
    if (!fetch->found) {
        diag_error(diag, fetch->at, "the model %s has no value \"%s\"", model, fetch->name);
        if (!diag_suggest(diag, fetch->at, fetch->name, fetch->names.at, fetch->names.count))
            diag_note(diag, fetch->at,
                      "ht_output names values; parameters, states and inputs have names, too, with "
                      "their scopes in front");
    } else if (!fetch->fits) {
        diag_error(
            diag, fetch->at, "\"%s\" has %lld bytes, and is fetched to an array of %lld",
            fetch->name,
            (long long)(type_elements(fetch->lacks->type) * dtype_size(fetch->lacks->type.dtype)),
            (long long)fetch->to->size);
        diag_note(diag, fetch->lacks->at, "it is made here, %s of shape %s",
                  dtype_name(fetch->lacks->type.dtype),
                  type_shape_text(search->cunit->arena, fetch->lacks->type));
    }
}

static void check_fetch(const CExpr *expr, void *data) {
    const Search *search = data;
    bool fetches = is_call(expr, "ht_fetch_with") && expr->args.count == 4;
    const CExpr *name = fetches ? without_casts(expr->args.at[1]) : NULL,
                *to = fetches ? without_casts(expr->args.at[2]) : NULL;
    const CExpr *maker = name && name->kind == C_STRING ? maker_of(search, expr->args.at[0]) : NULL;
    const CFunction *model = maker ? cexpr_function(maker->args.at[1]) : NULL;
    if (!model) return;
    ModuleKind kind = is_call(maker, "ht_train_with") ? MODULE_TRAIN : MODULE_INFER;
    bool array = to->kind == C_VAR && to->var->type->kind == CT_ARRAY && !to->var->type->variable &&
                 to->var->type->size > 0;
    Fetch fetch = {.name = name->text.bytes, .at = name->at, .to = array ? to->var->type : NULL};
    int modules = 0;
    for (int m = 0; m < search->made->modules.count; m++) {
        const Module *module = search->made->modules.at[m];
        if (!strcmp(module->name, model->name) && module->kind == kind && ++modules)
            look_through(search, &fetch, module);
    }
    if (modules && strcmp(fetch.name, "ht_grad_norm") != 0)
        report_fetch(search, &fetch, model->name);
}

void feeds_check(CUnit *cunit, const Unit *made) {
    Search search = {.cunit = cunit, .made = made};
    walk_functions(cunit, check_run, &search);
    walk_functions(cunit, check_fetch, &search);
}
