/* Files of in-memory checkpoints (checkpoint/copies.h): a copy is valid only with its checksum and with the format's version. */
#include "checkpoint/copies.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADER = 100, BYTES = 5000 };

static char folder[] = "/tmp/hetu_copies.XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    copies_remove(folder, 0);
    return 0;
}

/* Writes a whole copy, and returns its mapped file. */
static CopyFile write_copy(void)
{
    CopyFile file;
    CopyHead head = {.key = 5, .start = 9, .number = 1, .step = 3, .ranges = 1, .bytes = BYTES, .all = BYTES, .header_bytes = HEADER};
    assert_int_equal(copy_open(folder, &head, &file), 0);
    copy_begin(&file, &head);
    memset(copy_header(&file), 'h', HEADER);
    for (int i = 0; i < BYTES; i++)
        copy_range(&file)[i] = (char)(i * 7);
    copy_end(&file);
    return file;
}

static int count_valid(void)
{
    int count;
    CopyFile *files = copies_read(folder, 0, 1, &count);
    for (int i = 0; i < count; i++)
        copy_close(&files[i]);
    free(files);
    return count;
}

/* Each single changed byte of head, header and range makes the file invalid, and the old byte makes it valid again. */
static void test_checksum(void **state)
{
    (void)state;
    CopyFile file = write_copy();
    assert_int_equal(count_valid(), 1);
    char *changed[] = {(char *)&file.head->step, copy_header(&file), copy_header(&file) + HEADER - 1, copy_range(&file), copy_range(&file) + BYTES - 1};
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        *changed[i] ^= 1;
        assert_int_equal(count_valid(), 0);
        *changed[i] ^= 1;
        assert_int_equal(count_valid(), 1);
    }
    copy_close(&file);
}

/* A copy of version 1 is refused with a message that names both versions. */
static void test_version(void **state)
{
    (void)state;
    CopyFile file = write_copy();
    char said[512] = "", log[] = "/tmp/hetu_copies_log.XXXXXX";
    int own = dup(STDERR_FILENO), out = mkstemp(log);
    file.head->magic[7] = '1';
    dup2(out, STDERR_FILENO);
    int count = count_valid();
    dup2(own, STDERR_FILENO);
    assert_true(pread(out, said, sizeof said - 1, 0) > 0);
    assert_int_equal(count, 0);
    assert_non_null(strstr(said, "its format has version 1, and this library reads version 2"));
    close(out);
    close(own);
    unlink(log);
    copy_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_checksum), cmocka_unit_test(test_version)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
