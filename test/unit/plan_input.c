/* Inputs of planners: every kind of mistake is one line with file, key and reason, and the first one counts. */
#include "planner/kinds/input.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <string.h>
#include <cmocka.h>

/* Opens a text as a file named as the template says; the file's name into *name. */
static Field open_text(Arena *arena, const char *text, char *name)
{
    int file = mkstemp(strcpy(name, "/tmp/plan-input-XXXXXX"));
    assert_true(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    close(file);
    Field root = input_open(arena, name);
    unlink(name);
    return root;
}

/* Reads an object {"rates": [[positive]], "count": 1 .. 9, "name": string, "gap" (may lack): number from 0}. */
static void read_all(Field root)
{
    static const char *const keys[] = {"rates", "count", "name", "gap", NULL};
    int count;
    field_keys(root, keys);
    Field rates = field_get(root, "rates");
    for (int i = 0; i < field_count(rates, 1); i++)
        field_positives(field_at(rates, i), 1, &count);
    field_integer(field_get(root, "count"), 1, 9);
    field_string(field_get(root, "name"));
    if (field_has(root, "gap"))
        field_number(field_get(root, "gap"), 0);
}

/* What is wrong with a text, without the file's name; NULL: nothing. */
static const char *mistake(Arena *arena, const char *text)
{
    char name[32];
    Field root = open_text(arena, text, name);
    read_all(root);
    const char *error = input_error(root);
    input_close(root);
    if (!error)
        return NULL;
    assert_int_equal(strncmp(error, name, strlen(name)), 0);
    assert_null(strchr(error, '\n'));
    return error + strlen(name);
}

static void test_mistakes(void **state)
{
    static const char *const cases[][2] = {
        {"{\"rates\": [[1, -2]], \"count\": 1, \"name\": \"\"}", ": rates[0][1]: -2 is not above 0"},
        {"{\"rates\": [[1, 1e308]], \"count\": 1, \"name\": \"\"}", ": rates[0][1]: 1e308 is more than 1e+30"},
        {"{\"rates\": [[1, 1e-308]], \"count\": 1, \"name\": \"\"}", ": rates[0][1]: 1e-308 is less than 1e-30"},
        {"{\"rates\": [[1]], \"count\": 1, \"name\": \"\", \"gap\": 1e200}", ": gap: 1e200 is more than 1e+30"},
        {"{\"rates\": [[1], []], \"count\": 1, \"name\": \"\"}", ": rates[1]: the list is empty"},
        {"{\"rates\": [3], \"count\": 1, \"name\": \"\"}", ": rates[0]: 3 is not a list"},
        {"{\"rates\": [[1]], \"count\": 10, \"name\": \"\"}", ": count: 10 is not in 1 .. 9"},
        {"{\"rates\": [[1]], \"count\": 1.5, \"name\": \"\"}", ": count: 1.5 is not an integer"},
        {"{\"rates\": [[1]], \"name\": \"\"}", ": count: it is missing"},
        {"{\"rates\": [[1]], \"count\": 1, \"name\": 4}", ": name: 4 is not a string"},
        {"{\"rates\": [[1]], \"count\": 1, \"name\": \"\", \"gap\": -1}", ": gap: -1 is less than 0"},
        {"{\"rates\": [[1]], \"coumt\": 1, \"name\": \"\"}", ": coumt: there is no such key; did you mean count?"},
        {"{\"rates\": [[true]], \"count\": 12, \"name\": \"\"}", ": rates[0][0]: true is not a number"},
        {"[1]", ": [1] is not an object"},
        {"{\"rates\": [[1]], \"count\": 1,\n\"count\": 1}", ": line 2, column 7: duplicate object key"},
    };
    Arena *arena = arena_create();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_memory_equal(mistake(arena, cases[i][0]), cases[i][1], strlen(cases[i][1]));
    assert_null(mistake(arena, "{\"rates\": [[1, 2.5], [1]], \"count\": 1, \"name\": \"a\"}"));
    arena_destroy(arena);
}

static void test_no_file(void **state)
{
    Arena *arena = arena_create();
    (void)state;
    Field root = input_open(arena, "/nowhere/input.json");
    read_all(root);
    assert_non_null(strstr(input_error(root), "/nowhere/input.json"));
    input_close(root);
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mistakes), cmocka_unit_test(test_no_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
