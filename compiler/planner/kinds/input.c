/* Reads planners' JSON, and reports what is wrong with it. */
#include "planner/kinds/input.h"

#include "support/diag.h"
#include "support/reading.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct Input {
    Arena *arena;
    const char *file;
    json_t *root;
    const char *error; // the first error; NULL: none
};

/* ---- reading files ---- */

/* Reads a file ("-": standard input) as JSON; NULL after an error, with *why or *problem set. */
static json_t *load(Arena *arena, const char *file, const char **why, json_error_t *problem) {
    enum { MOST = 1 << 28 };
    struct stat status;
    *why = NULL;
    if (!strcmp(file, "-")) return json_loadf(stdin, JSON_REJECT_DUPLICATES, problem);
    if (!stat(file, &status) && S_ISDIR(status.st_mode)) {
        *why = "this is a folder, not a file";
        return NULL;
    }
    InputText text = reading_text(arena, READ_PIPES, file, MOST);
    *why = text.why;
    return text.bytes ? json_loadb(text.bytes, text.length, JSON_REJECT_DUPLICATES, problem) : NULL;
}

Field input_open(Arena *arena, const char *file) {
    json_error_t problem;
    const char *why;
    Input *input = arena_new(arena, Input);
    *input = (Input){.arena = arena, .file = file};
    input->root = load(arena, file, &why, &problem);
    if (!input->root && why) input->error = arena_format(arena, "%s: %s", file, why);
    else if (!input->root && problem.line < 0)
        input->error = arena_format(arena, "%s: %s", file, problem.text);
    else if (!input->root)
        input->error = arena_format(arena, "%s: line %d, column %d: %s", file, problem.line,
                                    problem.column, problem.text);
    return (Field){input, input->root, ""};
}

Field input_of(Arena *arena, json_t *json, const char *name) {
    Input *input = arena_new(arena, Input);
    *input = (Input){.arena = arena, .file = name, .root = json};
    return (Field){input, json, ""};
}

void input_close(Field any) { json_decref(any.input->root); }

const char *input_error(Field any) { return any.input->error; }

/* ---- reporting errors ---- */

void field_refuse(Field field, const char *format, ...) {
    Input *input = field.input;
    if (input->error) return;
    va_list arguments;
    va_start(arguments, format);
    const char *reason = arena_vformat(input->arena, format, arguments);
    va_end(arguments);
    input->error = *field.path
                       ? arena_format(input->arena, "%s: %s: %s", input->file, field.path, reason)
                       : arena_format(input->arena, "%s: %s", input->file, reason);
}

/* Returns a value as it stands in the input, cut where it is long. */
static const char *shown(Field field) {
    enum { MOST = 40 };
    char *text = json_dumps(field.json, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(12));
    const char *copy = text && strlen(text) > MOST
                           ? arena_format(field.input->arena, "%.*s...", MOST, text)
                           : arena_string(field.input->arena, text ? text : "this");
    free(text);
    return copy;
}

/* Returns whether a field has a value of the right type; reports a value of another type. */
static bool is_kind(Field field, bool kind, const char *what) {
    if (field.json && !kind) field_refuse(field, "%s is not %s", shown(field), what);
    return field.json && kind;
}

/* ---- objects and lists ---- */

static bool is_known(const char *key, const char *const *keys) {
    for (; *keys; keys++)
        if (!strcmp(*keys, key)) return true;
    return false;
}

/* Returns a key on one line: a space stands for each control character. */
static const char *on_one_line(Arena *arena, const char *key) {
    char *copy = arena_string(arena, key);
    for (char *at = copy; *at; at++) *at = (unsigned char)*at < ' ' || *at == 0x7f ? ' ' : *at;
    return copy;
}

static const char *member_path(Field object, const char *key) {
    const char *shown = on_one_line(object.input->arena, key);
    return *object.path ? arena_format(object.input->arena, "%s.%s", object.path, shown) : shown;
}

void field_keys(Field object, const char *const *keys) {
    int count = 0;
    if (!is_kind(object, json_is_object(object.json), "an object")) return;
    while (keys[count]) count++;
    for (void *at = json_object_iter((json_t *)object.json); at;
         at = json_object_iter_next((json_t *)object.json, at)) {
        const char *key = json_object_iter_key(at);
        if (is_known(key, keys)) continue;
        const char *closest = diag_closest(key, keys, count);
        Field unknown = {object.input, json_object_iter_value(at), member_path(object, key)};
        field_refuse(unknown,
                     closest ? "there is no such key; did you mean %s?" : "there is no such key",
                     closest);
    }
}

bool field_has(Field object, const char *key) { return json_object_get(object.json, key) != NULL; }

Field field_get(Field object, const char *key) {
    Field member = {object.input, json_object_get(object.json, key), member_path(object, key)};
    if (is_kind(object, json_is_object(object.json), "an object") && !member.json)
        field_refuse(member, "it is missing");
    return member;
}

int field_count(Field list, int least) {
    if (!is_kind(list, json_is_array(list.json), "a list")) return 0;
    size_t count = json_array_size(list.json);
    if (count >= (size_t)least) return (int)count;
    field_refuse(list,
                 least == 1 ? "the list is empty" : "the list has %zu entries, and %d are needed",
                 count, least);
    return 0;
}

Field field_at(Field list, int index) {
    return (Field){list.input, json_array_get(list.json, (size_t)index),
                   arena_format(list.input->arena, "%s[%d]", list.path, index)};
}

/* ---- numbers and strings ---- */

/* Limits of numbers: no measured quantity is beyond them; their products stay finite. */
static const double LARGEST = 1e30, SMALLEST = 1e-30;

double field_number(Field field, double low) {
    if (!is_kind(field, json_is_number(field.json), "a number")) return low;
    double value = json_number_value(field.json);
    if (value >= low && value <= LARGEST) return value;
    field_refuse(field, value < low ? "%s is less than %g" : "%s is more than %g", shown(field),
                 value < low ? low : LARGEST);
    return low;
}

double field_positive(Field field) {
    if (!is_kind(field, json_is_number(field.json), "a number")) return 1;
    double value = json_number_value(field.json);
    if (value >= SMALLEST && value <= LARGEST) return value;
    if (value <= 0) field_refuse(field, "%s is not above 0", shown(field));
    else
        field_refuse(field, value < 1 ? "%s is less than %g" : "%s is more than %g", shown(field),
                     value < 1 ? SMALLEST : LARGEST);
    return 1;
}

int field_integer(Field field, int low, int high) {
    if (!is_kind(field, json_is_integer(field.json), "an integer")) return low;
    json_int_t value = json_integer_value(field.json);
    if (value >= low && value <= high) return (int)value;
    field_refuse(field, "%s is not in %d .. %d", shown(field), low, high);
    return low;
}

const char *field_string(Field field) {
    return is_kind(field, json_is_string(field.json), "a string") ? json_string_value(field.json)
                                                                  : "";
}

double *field_positives(Field list, int least, int *count) {
    *count = field_count(list, least);
    double *values = arena_array(list.input->arena, double, *count);
    for (int i = 0; i < *count; i++) values[i] = field_positive(field_at(list, i));
    return values;
}

int *field_integers(Field list, int least, int low, int high, int *count) {
    *count = field_count(list, least);
    int *values = arena_array(list.input->arena, int, *count);
    for (int i = 0; i < *count; i++) values[i] = field_integer(field_at(list, i), low, high);
    return values;
}

void degrees_read(Field table, double *by_devices, int most) {
    const char *key;
    json_t *value;
    memset(by_devices, 0, sizeof *by_devices * (size_t)(most + 1));
    if (table.json && !json_is_object(table.json))
        field_refuse(table, "it is not an object of numbers of devices");
    json_object_foreach((json_t *)table.json, key, value) {
        char *end;
        long devices = strtol(key, &end, 10);
        Field entry = field_get(table, key);
        if (*end || *key < '1' || *key > '9' || devices > most)
            field_refuse(entry, "the key is not a number of devices in 1..%d", most);
        else by_devices[devices] = field_positive(entry);
    }
}

void degrees_need(Field table, const double *by_devices, int devices) {
    if (by_devices[devices] <= 0) field_refuse(table, "there is no entry for %d", devices);
}
