/* What operators share and the text shows once: the calls that led to them, and bindings that a pass has refined. */
#include "ir/text/print.h"

#include <string.h>

#define uthash_malloc(size) arena_alloc(printer->scratch, (size))
#define uthash_free(pointer, size) ((void)(pointer))
#include <uthash.h>

typedef struct NumberEntry {
    const void *object;
    int number;
    UT_hash_handle hh;
} NumberEntry;

typedef struct TextEntry {
    int number;
    UT_hash_handle hh;
} TextEntry;

enum { NOT_FOUND = -2 };

static int find_number(NumberEntry *table, const void *object)
{
    NumberEntry *entry;
    HASH_FIND_PTR(table, &object, entry);
    return entry ? entry->number : NOT_FOUND;
}

static int remember(Printer *printer, NumberEntry **table, const void *object, int number)
{
    NumberEntry *entry = arena_new(printer->scratch, NumberEntry);
    *entry = (NumberEntry){.object = object, .number = number};
    HASH_ADD_PTR(*table, object, entry);
    return number;
}

/* The number of what prints as `kind NUMBER text`: printed now when it is new. */
static int number_text(Printer *printer, const char *kind, int *count, const char *text)
{
    TextEntry *entry;
    char *key = arena_format(printer->scratch, "%s %s", kind, text);
    HASH_FIND_STR(printer->texts, key, entry);
    if (entry)
        return entry->number;
    entry = arena_new(printer->scratch, TextEntry);
    entry->number = (*count)++;
    HASH_ADD_KEYPTR(hh, printer->texts, key, strlen(key), entry);
    text_print(printer->out, "%s %d %s\n", kind, entry->number, text);
    return entry->number;
}

/* The chain is walked from the outermost call inwards without recursion: recursive models make it long. */
int print_frame(Printer *printer, const Frame *frame)
{
    int known = find_number(printer->frames, frame);
    if (known != NOT_FOUND)
        return known;
    Array(const Frame *) chain = {0};
    int caller = -1;
    for (const Frame *at = frame; at; at = at->caller) {
        int number = find_number(printer->frames, at);
        if (number != NOT_FOUND) {
            caller = number;
            break;
        }
        array_push(printer->scratch, &chain, at);
    }
    for (int i = chain.count - 1; i >= 0; i--) {
        Text text = {.arena = printer->scratch};
        Printer inner = {.out = &text, .module = printer->module};
        print_quoted(&text, chain.at[i]->function ? chain.at[i]->function : "");
        if (caller >= 0)
            text_print(&text, " in %d", caller);
        print_position(&inner, chain.at[i]->at);
        caller = remember(printer, &printer->frames, chain.at[i], number_text(printer, "frame", &printer->frame_count, text_bytes(&text)));
    }
    return caller;
}

static bool dims_equal(const BoundAccess *a, const BoundAccess *b)
{
    if (a->access != b->access || a->rank != b->rank || a->written_rank != b->written_rank)
        return false;
    for (int d = 0; d < a->rank; d++)
        if (a->dims[d].count != b->dims[d].count || a->dims[d].written != b->dims[d].written ||
            memcmp(a->dims[d].factors, b->dims[d].factors, sizeof(int) * (size_t)a->dims[d].count))
            return false;
    return true;
}

static bool binding_equal(const Binding *a, const Binding *b)
{
    if (a->factor_count != b->factor_count || a->operand_count != b->operand_count || a->result_count != b->result_count)
        return false;
    for (int i = 0; i < a->factor_count; i++)
        if (a->factors[i].factor != b->factors[i].factor || a->factors[i].extent != b->factors[i].extent)
            return false;
    for (int i = 0; i < a->operand_count; i++)
        if (!dims_equal(&a->operands[i], &b->operands[i]))
            return false;
    for (int i = 0; i < a->result_count; i++)
        if (!dims_equal(&a->results[i], &b->results[i]))
            return false;
    return true;
}

/* Whether binding the rule again gives the operator's binding and its results' types. */
static bool is_plain(Printer *printer, const Op *op)
{
    Type *types = arena_array(printer->scratch, Type, op->def->rule->result_count);
    const Binding *again = ir_bind(printer->scratch, NULL, op->at, op->def, op->attrs, op->operands, op->operand_count, types);
    if (!again || !binding_equal(again, op->binding))
        return false;
    for (int i = 0; i < op->result_count; i++)
        if (!type_equal(types[i], op->results[i]->type))
            return false;
    return true;
}

static void print_access(Text *out, const BoundAccess *access)
{
    text_print(out, " %d(", access->access);
    for (int d = 0; d < access->rank; d++) {
        const BoundDim *dim = &access->dims[d];
        text_string(out, d ? ", " : "");
        for (int k = 0; k < dim->count; k++)
            text_print(out, k ? " %d" : "%d", dim->factors[k]);
        if (dim->written != d)
            text_print(out, "/%d", dim->written);
    }
    text_string(out, ")");
    if (access->written_rank != access->rank)
        text_print(out, "/%d", access->written_rank);
}

static const char *binding_text(Printer *printer, const Op *op)
{
    Text text = {.arena = printer->scratch};
    const Binding *binding = op->binding;
    text_print(&text, "%s [", op->def->name);
    for (int i = 0; i < binding->factor_count; i++)
        text_print(&text, "%s%d:%lld", i ? ", " : "", binding->factors[i].factor, (long long)binding->factors[i].extent);
    text_string(&text, "]");
    for (int i = 0; i < binding->operand_count; i++)
        print_access(&text, &binding->operands[i]);
    text_string(&text, " ->");
    for (int i = 0; i < binding->result_count; i++)
        print_access(&text, &binding->results[i]);
    return text_bytes(&text);
}

int print_binding(Printer *printer, const Op *op)
{
    int known = find_number(printer->bindings, op->binding);
    if (known != NOT_FOUND)
        return known;
    int number = is_plain(printer, op) ? -1 : number_text(printer, "binding", &printer->binding_count, binding_text(printer, op));
    return remember(printer, &printer->bindings, op->binding, number);
}

int print_gradient_number(Printer *printer, const Function *function)
{
    int known = find_number(printer->gradients, function);
    for (int i = 0; known == NOT_FOUND && i < printer->module->gradients.count; i++)
        if (printer->module->gradients.at[i] == function)
            known = remember(printer, &printer->gradients, function, i);
    if (known == NOT_FOUND)
        BUG("the gradient %s is not listed in the module", function->name);
    return known;
}

void print_references(Printer *printer, const Op *op)
{
    if (op->frames)
        print_frame(printer, op->frames);
    print_binding(printer, op);
}
