/* Finds source lines of operators by return addresses and addr2line. */
#include "base/call_sites.h"

#include "base/memory.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

enum {
    DEPTH = 48,  // stack frames that are examined
    CALLERS = 8, // most callers recorded for a call, innermost first
    ASKED = 256  // most addresses for one run of addr2line
};

/* A call of the library, with its callers, which are all in one object file. */
typedef struct Noted {
    ht_called *call;
    const ht_called *like; // an earlier call with the same place; NULL: this call has its own place
    const char *file;      // path of the object; "": the program itself; NULL: no caller was found
    int count;
    uintptr_t address[CALLERS]; // addresses within the object
    bool inner, found;          // inner: as in call_sites_note; found: call->at is set
} Noted;

static struct {
    Noted *at;
    int count, room;
} noted;

/* A place in the source: its line, or at least its function. */
typedef struct Place {
    char line[256], function[264];
    bool inner; // the next function is skipped
} Place;

/* Returns whether an object is loaded at its file's addresses (not position independent). */
static bool is_fixed(const void *base) { return ((const ElfW(Ehdr) *)base)->e_type == ET_EXEC; }

/* Returns the path of an address's object ("" for the program; NULL: none); *base is its start. */
static const char *object_of(uintptr_t address, const char **base) {
    Dl_info object, program;
    if (!dladdr((void *)address, &object)) return NULL;
    *base = object.dli_fbase;
    bool own =
        dladdr((void *)getauxval(AT_ENTRY), &program) && program.dli_fbase == object.dli_fbase;
    return own ? "" : object.dli_fname;
}

/* Notes the innermost callers outside this library, up to the first caller in another object. */
static void take_callers(Noted *own) {
    void *frames[DEPTH];
    const char *library = NULL, *base = NULL;
    int count = backtrace(frames, DEPTH), first = 0;
    object_of((uintptr_t)call_sites_note, &library);
    while (first < count && object_of((uintptr_t)frames[first], &base) && base == library) first++;
    for (int i = first; i < count && own->count < CALLERS; i++) {
        const char *file = object_of((uintptr_t)frames[i], &base);
        if (!file || (own->file && strcmp(own->file, file))) return;
        own->file = file;
        own->address[own->count++] =
            (uintptr_t)frames[i] - 1 - (is_fixed(base) ? 0 : (uintptr_t)base);
    }
}

static Noted *add(ht_called *call) {
    if (noted.count == noted.room) {
        noted.room = 2 * noted.room + 256;
        Noted *grown = realloc(noted.at, (size_t)noted.room * sizeof *grown);
        if (!grown) ht_fail("no memory for the places of %d operators", noted.room);
        noted.at = grown;
    }
    noted.at[noted.count] = (Noted){.call = call};
    return &noted.at[noted.count++];
}

void call_sites_note(ht_called *call, bool inner) {
    Noted *own = add(call);
    own->inner = inner;
    take_callers(own);
}

void call_sites_like(ht_called *call, const ht_called *other) { add(call)->like = other; }

/* Prints the path of an object as one word of the shell. */
static void print_object(FILE *out, const char *file) {
    if (!*file) fprintf(out, "/proc/%ld/exe", (long)getpid());
    for (const char *c = file; *c; c++) fprintf(out, "\\%c", *c);
}

/* Runs addr2line for the callers of calls from `first` on that are in one object. Sets *end to the
 * index after the last of these calls. Returns a pipe with the output. */
static FILE *ask(int first, int *end) {
    char *command = NULL;
    size_t length;
    int asked = 0;
    FILE *text = open_memstream(&command, &length);
    if (!text) return NULL;
    fputs("exec addr2line -a -f -i -e ", text);
    print_object(text, noted.at[first].file);
    for (*end = first; *end < noted.count && asked < ASKED; ++*end) {
        const Noted *own = &noted.at[*end];
        if (own->found || !own->file || strcmp(own->file, noted.at[first].file)) break;
        for (int i = 0; i < own->count; i++, asked++)
            fprintf(text, " 0x%" PRIxPTR, own->address[i]);
    }
    fputs(" 2>/dev/null", text);
    fclose(text);
    FILE *pipe = popen(command, "r");
    free(command);
    return pipe;
}

/* Notes the line of a function, such as "/home/me/model.c:42 (discriminator 3)", in `place`.
 * Ignores unknown lines and the library's own headers. */
static void take_line(Place *place, const char *function, char *line) {
    char *colon = strrchr(line, ':'), *slash = strrchr(line, '/'),
         *end = colon ? colon + 1 + strspn(colon + 1, "0123456789") : NULL;
    bool own = strstr(line, "/hetu/") || !strncmp(function, "ht_", 3);
    if (own || !strcmp(function, "??")) return;
    if (place->inner) {
        place->inner = false;
        return;
    }
    if (!*place->function) snprintf(place->function, sizeof place->function, "%s()", function);
    if (*place->line || !colon || end == colon + 1 || !strncmp(line, "??", 2) || colon[1] == '0')
        return;
    *end = 0;
    snprintf(place->line, sizeof place->line, "%s", slash ? slash + 1 : line);
}

/* Returns a call's place, read from addr2line's output. `line` has the output's first line for this
 * call, and afterwards for the next call; "": the output has ended. */
static Place read_place(FILE *pipe, char *line, int size, const Noted *own) {
    Place place = {"", "", own->inner};
    char function[256];
    for (int seen = 0; *line;) {
        bool address = !strncmp(line, "0x", 2);
        if (address && seen++ == own->count) return place;
        if (!address) {
            snprintf(function, sizeof function, "%.*s", (int)strcspn(line, "\n"), line);
            if (!fgets(line, size, pipe)) break;
            take_line(&place, function, line);
        }
        if (!fgets(line, size, pipe)) break;
    }
    *line = 0;
    return place;
}

static void find_from(int first, int *end) {
    char line[4096] = "";
    FILE *pipe = ask(first, end);
    if (pipe && !fgets(line, sizeof line, pipe)) *line = 0;
    for (int n = first; n < *end; n++) {
        Place place =
            pipe ? read_place(pipe, line, sizeof line, &noted.at[n]) : (Place){"", "", false};
        const char *known = *place.line ? place.line : place.function;
        char *kept = memory_array((int64_t)strlen(known) + 1, 1);
        noted.at[n].call->at = strcpy(kept, known);
        noted.at[n].found = true;
    }
    if (pipe) pclose(pipe);
}

void call_sites_find(void) {
    for (int n = 0, end; n < noted.count; n = end) {
        end = n + 1;
        if (!noted.at[n].found && noted.at[n].file) find_from(n, &end);
    }
    for (int n = 0; n < noted.count; n++)
        if (noted.at[n].like) noted.at[n].call->at = noted.at[n].like->at;
}
