/* Files and folders that other users of the machine could plant (base/files.h): what is read as one's own, and what is made. */
#include "base/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STRANGER = 61002 };

static char top[64];

static int enter(void **state) {
    (void)state;
    strcpy(top, "/tmp/unit-files.XXXXXX");
    return !mkdtemp(top) || chdir(top);
}

static int leave(void **state) {
    (void)state;
    private_remove(top);
    return chdir("/");
}

static void put(const char *path, const char *text, mode_t mode) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

/* Whether a path is read as this user's own file; otherwise `why` must say why not. */
static bool is_own(const char *path, const char *wanted) {
    const char *why = NULL;
    int file = file_open_own(path, &why);
    if (file >= 0) close(file);
    else assert_string_equal(why, wanted);
    return file >= 0;
}

static void test_own(void **state) {
    (void)state;
    put("good", "x", 0644);
    put("group", "x", 0660);
    put("all", "x", 0606);
    assert_int_equal(symlink("good", "link"), 0);
    assert_true(is_own("good", ""));
    assert_false(is_own("link", "it is a link, and no file"));
    assert_false(is_own("group", "other users may write it"));
    assert_false(is_own("all", "other users may write it"));
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_false(is_own("pipe", "it is a pipe, and no file"));
}

static void test_foreign(void **state) {
    (void)state;
    if (geteuid()) skip(); // root alone can give files away
    put("theirs", "x", 0644);
    assert_int_equal(mkdir("folder", 0700), 0);
    assert_true(private_is("folder"));
    assert_int_equal(chown("theirs", STRANGER, STRANGER) | chown("folder", STRANGER, STRANGER), 0);
    assert_false(is_own("theirs", "it is another user's"));
    assert_false(private_is("folder"));
    char *parent = private_parent("folder");
    assert_null(parent);
}

static void test_private(void **state) {
    (void)state;
    char first[256], second[256];
    struct stat about;
    umask(0);
    assert_int_equal(private_make(first, sizeof first, top, "head") |
                         private_make(second, sizeof second, top, "head"),
                     0);
    assert_string_not_equal(first, second);
    assert_int_equal(lstat(first, &about), 0);
    assert_int_equal(about.st_mode, S_IFDIR | 0700);
    assert_true(private_is(first));
    assert_int_equal(symlink(first, "way") | chmod(second, 0750), 0);
    assert_false(private_is("way"));
    assert_false(private_is(second));
}

/* Nothing is written through a link or into another name of a file. */
static void test_made(void **state) {
    (void)state;
    char text[16] = "";
    put("precious", "precious", 0600);
    assert_int_equal(symlink("precious", "planted"), 0);
    assert_int_equal(file_open_made("planted"), -1);
    assert_int_equal(link("precious", "hard"), 0);
    assert_int_equal(file_open_made("hard"), -1);
    for (int i = 0; i < 2; i++) {
        int file = file_create(i ? "hard" : "planted");
        assert_int_equal(write(file, "lost", 4), 4);
        close(file);
    }
    int file = open("precious", O_RDONLY);
    assert_int_equal(read(file, text, sizeof text - 1), 8);
    assert_string_equal(text, "precious");
    close(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_own, enter, leave),
                                       cmocka_unit_test_setup_teardown(test_foreign, enter, leave),
                                       cmocka_unit_test_setup_teardown(test_private, enter, leave),
                                       cmocka_unit_test_setup_teardown(test_made, enter, leave)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
