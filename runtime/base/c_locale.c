/* Numbers and messages in the C locale. */
#include "base/c_locale.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t c_locale;

static void find(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

/* If there is no memory for the C locale, the thread keeps its own locale. */
locale_t c_locale_enter(void) {
    pthread_once(&once, find);
    return uselocale(c_locale);
}

void c_locale_leave(locale_t own) { uselocale(own); }

int c_locale_print(FILE *out, const char *format, ...) {
    locale_t own = c_locale_enter();
    va_list arguments;
    va_start(arguments, format);
    int count = vfprintf(out, format, arguments);
    va_end(arguments);
    c_locale_leave(own);
    return count;
}

int plain_vformat(char *text, size_t size, const char *format, va_list arguments) {
    locale_t own = c_locale_enter();
    int count = vsnprintf(text, size, format, arguments);
    c_locale_leave(own);
    return count;
}

int plain_format(char *text, size_t size, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int count = plain_vformat(text, size, format, arguments);
    va_end(arguments);
    return count;
}

int plain_scan(const char *text, const char *format, ...) {
    locale_t own = c_locale_enter();
    va_list arguments;
    va_start(arguments, format);
    int count = vsscanf(text, format, arguments);
    va_end(arguments);
    c_locale_leave(own);
    return count;
}

double plain_number(const char *text) {
    locale_t own = c_locale_enter();
    double number = strtod(text, NULL);
    c_locale_leave(own);
    return number;
}

const char *plain_error(int code) {
    locale_t own = c_locale_enter();
    const char *text = strerror(code);
    c_locale_leave(own);
    return text;
}

const char *plain_signal(int number) {
    locale_t own = c_locale_enter();
    const char *text = strsignal(number);
    c_locale_leave(own);
    return text;
}
