/* Text as the C locale has it, in whatever locale main has chosen: what is stored, traced, or read
 * by another process has the same numbers and letters everywhere.
 *
 *     setlocale(LC_ALL, "de_DE.UTF-8")    printf("%g", 0.5)             0,5
 *                                         c_locale_print(stdout, "%g", 0.5)   0.5
 *
 * Whatever formats or reads a number with a fraction, or asks for the kind of a character, does it
 * by these functions, or between c_locale_enter and c_locale_leave. Functions of the user are
 * called in the user's own locale, but for a model's, which hetucc evaluates in the C locale, too.
 */
#ifndef BASE_C_LOCALE_H
#define BASE_C_LOCALE_H

#include <locale.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Gives this thread the C locale; returns the one that it had, for c_locale_leave. */
locale_t c_locale_enter(void);
void c_locale_leave(locale_t own);

/* fprintf, snprintf, vsnprintf, sscanf and strtod. */
__attribute__((format(printf, 2, 3))) int c_locale_print(FILE *out, const char *format, ...);
__attribute__((format(printf, 3, 4))) int plain_format(char *text, size_t size, const char *format,
                                                       ...);
__attribute__((format(printf, 3, 0))) int plain_vformat(char *text, size_t size, const char *format,
                                                        va_list arguments);
__attribute__((format(scanf, 2, 3))) int plain_scan(const char *text, const char *format, ...);
double plain_number(const char *text);

/* strerror and strsignal, in English. */
const char *plain_error(int code);
const char *plain_signal(int number);

#ifdef __cplusplus
}
#endif

#endif
