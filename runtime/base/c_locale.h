/* Formats and reads text in the C locale, whichever locale main has chosen. So files, traces and
 * text for other processes have the same numbers and letters everywhere.
 *
 *     setlocale(LC_ALL, "de_DE.UTF-8")    printf("%g", 0.5)             0,5
 *                                         c_locale_print(stdout, "%g", 0.5)   0.5
 *
 * Code that formats or reads a number with a fraction, or classifies a character, uses these
 * functions, or runs between c_locale_enter and c_locale_leave. The user's functions are called in
 * the user's own locale, except models, which hetucc evaluates in the C locale. */
#pragma once

#include <locale.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the C locale for this thread; returns the previous locale, for c_locale_leave. */
locale_t c_locale_enter(void);
void c_locale_leave(locale_t own);

/* Do the same as fprintf, snprintf, vsnprintf, sscanf and strtod, in the C locale. */
__attribute__((format(printf, 2, 3))) int c_locale_print(FILE *out, const char *format, ...);
__attribute__((format(printf, 3, 4))) int plain_format(char *text, size_t size, const char *format,
                                                       ...);
__attribute__((format(printf, 3, 0))) int plain_vformat(char *text, size_t size, const char *format,
                                                        va_list arguments);
__attribute__((format(scanf, 2, 3))) int plain_scan(const char *text, const char *format, ...);
double plain_number(const char *text);

/* Do the same as strerror and strsignal, in English. */
const char *plain_error(int code);
const char *plain_signal(int number);

#ifdef __cplusplus
}
#endif
