/* Expands response files (@FILE) of the command line. */
#include "driver/options.h"

#include "driver/output.h"
#include "support/reading.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_DEPTH = 64 }; // most levels of nested response files

typedef Array(char *) Words;

/* Returns the word at *at, where no white space is; moves *at to the end of the word. */
static char *next_word(Arena *arena, const char **at) {
    char *word = arena_alloc(arena, strlen(*at) + 1), *end = word, quote = 0;
    for (; **at && (quote || !strchr(" \t\r\n\v\f", **at)); ++*at)
        if (**at == '\\' && (*at)[1]) *end++ = *++*at;
        else if (quote ? **at == quote : **at == '\'' || **at == '"') quote = quote ? 0 : **at;
        else *end++ = **at;
    *end = 0;
    return word;
}

/* Reads a response file. Returns false if it does not exist; exits if it cannot be read. */
static bool read_words(const char *path, Text *text) {
    enum { MOST = 1 << 28 };
    InputText words = reading_text(text->arena, READ_PIPES, path, MOST);
    if (!words.bytes && !access(path, F_OK)) {
        complain("cannot read %s, whose words were to be options: %s", path, words.why);
        exit(1);
    }
    text_string(text, words.bytes ? words.bytes : "");
    return words.bytes;
}

static void expand(Arena *arena, Words *to, char *word, int depth) {
    Text text = {.arena = arena};
    if (*word != '@' || !read_words(word + 1, &text)) {
        array_push(arena, to, word);
        return;
    }
    if (depth == MOST_DEPTH) {
        complain("%s names itself, or too many files one another", word);
        exit(1);
    }
    for (const char *at = text_bytes(&text); *(at += strspn(at, " \t\r\n\v\f"));)
        expand(arena, to, next_word(arena, &at), depth + 1);
}

char **response_expand(Arena *arena, char **words) {
    Words all = {0};
    for (; *words; words++) expand(arena, &all, *words, 0);
    array_push(arena, &all, NULL);
    return all.at;
}
