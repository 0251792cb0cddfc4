/* Growing text buffers, and templates with $name. */
#include "support/text.h"

#include "support/arena.h"
#include "support/diag.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void text_append(Text *text, const char *bytes, size_t length) {
    if (!length) return;
    if (text->length + length + 1 > text->capacity) {
        size_t capacity = 2 * (text->length + length) + 64;
        char *grown = arena_alloc(text->arena, capacity);
        if (text->length) memcpy(grown, text->bytes, text->length);
        text->bytes = grown;
        text->capacity = capacity;
    }
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = 0;
}

void text_string(Text *text, const char *string) { text_append(text, string, strlen(string)); }

void text_print(Text *text, const char *format, ...) {
    char small[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(small, sizeof small, format, arguments);
    va_end(arguments);
    if (length < (int)sizeof small) {
        text_append(text, small, (size_t)length);
        return;
    }
    va_start(arguments, format);
    char *large = arena_vformat(text->arena, format, arguments);
    va_end(arguments);
    text_append(text, large, (size_t)length);
}

void text_item(Text *text, bool first, int64_t number) {
    char digits[24], *at = digits + sizeof digits;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    do *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0) *--at = '-';
    text_append(text, ", ", first ? 0 : 2);
    text_append(text, at, (size_t)(digits + sizeof digits - at));
}

void text_shell(Text *text, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=:,./@%^";
    if (*word && !word[strspn(word, plain)]) {
        text_string(text, word);
        return;
    }
    text_string(text, "'");
    for (; *word; word++) text_print(text, *word == '\'' ? "'\\%c'" : "%c", *word);
    text_string(text, "'");
}

/* Returns the value after a name of `length` bytes in name, value pairs; a missing one is a bug. */
static const char *lookup(const char *name, size_t length, va_list pairs) {
    va_list rest;
    va_copy(rest, pairs);
    const char *value = NULL;
    for (const char *key; !value && (key = va_arg(rest, const char *));) {
        const char *candidate = va_arg(rest, const char *);
        if (strlen(key) == length && !memcmp(key, name, length)) value = candidate;
    }
    va_end(rest);
    if (!value) BUG("a template has no value for $%.*s", (int)length, name);
    return value;
}

/* Returns the length of the identifier at `at`; 0 when there is none. */
static size_t identifier(const char *at) {
    size_t length = 0;
    while (isalnum((unsigned char)at[length]) || at[length] == '_') length++;
    return length;
}

void text_fill(Text *text, const char *template, ...) {
    va_list pairs;
    va_start(pairs, template);
    while (*template) {
        size_t plain = strcspn(template, "$");
        text_append(text, template, plain);
        template += plain;
        if (!*template) break;
        size_t length = identifier(++template);
        if (length) text_string(text, lookup(template, length, pairs));
        else if (*template == '$') text_append(text, template, length = 1);
        template += length;
    }
    va_end(pairs);
}

const char *text_bytes(const Text *text) { return text->bytes ? text->bytes : ""; }

bool text_same(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

int text_find(const char *const *list, int count, const char *string) {
    for (int i = 0; i < count; i++)
        if (list[i] && !strcmp(list[i], string)) return i;
    return -1;
}
