/* Headers of safetensors files that others have written: what is no header is said, and nothing is written behind a text's room. */
#include "checkpoint/safetensors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LENGTH_BYTES = 8, DATA_BYTES = 4, ROOM = 1 << 20 };

static const char GOOD[] =
    "{\"__metadata__\":{\"a\\u0041\":\"\\\"\\\\\"},\"w\\\\\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
static const char DAMAGED[] = "its header is damaged";

/* Reads a file of one element with such a header. Returns what is wrong. */
static const char *read_header(const char *text, size_t length, SafeFile *file)
{
    char name[] = "/tmp/safetensors-XXXXXX", head[LENGTH_BYTES], data[DATA_BYTES] = {0};
    int descriptor = mkstemp(name);
    for (int i = 0; i < LENGTH_BYTES; i++)
        head[i] = (char)(length >> 8 * i);
    assert_true(descriptor >= 0 && write(descriptor, head, sizeof head) == (ssize_t)sizeof head);
    assert_true(write(descriptor, text, length) == (ssize_t)length && write(descriptor, data, sizeof data) == (ssize_t)sizeof data);
    const char *wrong = safetensors_read(descriptor, file);
    close(descriptor);
    unlink(name);
    return wrong;
}

static void test_good(void **state)
{
    SafeFile file;
    (void)state;
    assert_null(read_header(GOOD, strlen(GOOD), &file));
    assert_string_equal(safetensors_note(&file, "aA"), "\"\\");
    assert_non_null(safetensors_find(&file, "w\\"));
    safetensors_free(&file);
}

/* A \u that has fewer than four digits takes no quotation mark, behind which as much comes as one likes. */
static void test_escapes(void **state)
{
    static const char *const heads[] = {"{\"\\u12\"", "{\"\\u\"", "{\"\\u1 2\"", "{\"\\u0x4\"", "{\"\\u-12\"", "{\"\\u", "{\"\\"};
    char *text = malloc(ROOM + 1);
    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        SafeFile file;
        memset(text, 'A', ROOM);
        memcpy(text, heads[i], strlen(heads[i]));
        memcpy(text + ROOM - 2, "\"}", 2);
        assert_string_equal(read_header(text, ROOM, &file), DAMAGED);
        safetensors_free(&file);
        assert_string_equal(read_header(heads[i], strlen(heads[i]), &file), DAMAGED);
        safetensors_free(&file);
    }
    free(text);
}

/* One to three bytes of a good header are others, or it ends early. */
static void test_mutations(void **state)
{
    static const char bytes[] = "\"\\{}[]:,u0129-F \x80\xff";
    unsigned random = 7;
    (void)state;
    for (int turn = 0; turn < 20000; turn++) {
        char text[sizeof GOOD];
        size_t length = strlen(GOOD);
        SafeFile file;
        memcpy(text, GOOD, sizeof GOOD);
        for (int change = turn % 3; change >= 0; change--) {
            random = random * 1103515245 + 12345;
            text[random / 65536 % length] = bytes[random / 256 % (sizeof bytes - 1)];
        }
        if (turn % 5 == 0)
            length = random / 4096 % length;
        read_header(text, length, &file);
        safetensors_free(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
