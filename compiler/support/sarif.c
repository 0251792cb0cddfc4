/* Writes diagnostics for editors and CI as SARIF (--diagnostics). */
#include "support/sarif.h"

#include "support/diag.h"
#include "support/secure.h"
#include "support/tool.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <errno.h>

#define SCHEMA "https://json.schemastore.org/sarif-2.1.0.json"

static struct {
    json_t *results; // NULL: there is no log
    const char *tool, *version;
    char *path;
    pid_t process; // the process that opened the log; its child processes write no log
} log_;

/* Returns a text as JSON; question marks replace bytes that are not UTF-8. */
static json_t *text_json(const char *text, size_t length) {
    json_t *json = json_stringn(text, length);
    char *copy = json ? NULL : malloc(length + 1);
    if (!copy) return json;
    for (size_t i = 0; i < length; i++) copy[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
    json = json_stringn(copy, length);
    free(copy);
    return json;
}

static json_t *message_json(const char *text) {
    json_t *message = json_object();
    json_object_set_new(message, "text", text_json(text, strlen(text)));
    return message;
}

/* Returns a path as a URI reference, with special bytes as %XX; file:// precedes absolute paths. */
static json_t *uri_json(const char *path) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    char *uri = malloc(3 * strlen(path) + sizeof "file://"), *end = uri;
    if (!uri) return NULL;
    end += sprintf(end, "%s", *path == '/' ? "file://" : "");
    for (; *path; path++)
        end += sprintf(end, strchr(plain, *path) ? "%c" : "%%%02X", (unsigned char)*path);
    json_t *json = json_string(uri);
    free(uri);
    return json;
}

/* Returns the column of a place counted in code points; place->column counts bytes of UTF-8. */
static int column_of(const SarifPlace *place) {
    int column = place->column;
    for (int i = 0; place->text && i < place->column - 1 && i < (int)place->length; i++)
        column -= ((unsigned char)place->text[i] & 0xc0) == 0x80;
    return column;
}

/* Returns a SARIF region: the whole line of a place, with the line's text. */
static json_t *line_json(const SarifPlace *place) {
    json_t *region = json_object(), *snippet = json_object();
    json_object_set_new(region, "startLine", json_integer(place->line));
    json_object_set_new(snippet, "text", text_json(place->text, place->length));
    json_object_set_new(region, "snippet", snippet);
    return region;
}

static json_t *location_json(const SarifPlace *place) {
    json_t *location = json_object(), *physical = json_object(), *artifact = json_object(),
           *region = json_object();
    json_object_set_new(artifact, "uri", uri_json(place->file));
    json_object_set_new(physical, "artifactLocation", artifact);
    json_object_set_new(region, "startLine", json_integer(place->line));
    if (place->column > 0)
        json_object_set_new(region, "startColumn", json_integer(column_of(place)));
    if (place->line > 0) json_object_set(physical, "region", region);
    json_decref(region);
    if (place->line > 0 && place->text)
        json_object_set_new(physical, "contextRegion", line_json(place));
    json_object_set_new(location, "physicalLocation", physical);
    return location;
}

static void close_at_end(int status, void *argument) {
    (void)argument;
    if (!sarif_close(status) && !status) exit(1);
}

void sarif_open(const char *tool, const char *version, const char *path) {
    log_.results = json_array();
    log_.tool = tool;
    log_.version = version;
    // Copy the path, since the arena may be gone when the log is written.
    log_.path = path ? strdup(path) : NULL;
    log_.process = getpid();
    on_exit(close_at_end, NULL);
}

bool sarif_is_open(void) { return log_.results && log_.process == getpid(); }

bool sarif_has_stderr(void) { return sarif_is_open() && !log_.path; }

void sarif_add(SarifLevel level, const SarifPlace *place, const char *message) {
    static const char *const levels[] = {[SARIF_ERROR] = "error",
                                         [SARIF_WARNING] = "warning",
                                         [SARIF_REMARK] = "note",
                                         [SARIF_TEXT] = "none"};
    if (!sarif_is_open()) return;
    json_t *result = json_object(), *locations = json_array();
    if (level == SARIF_TEXT) json_object_set_new(result, "kind", json_string("informational"));
    json_object_set_new(result, "level", json_string(levels[level]));
    json_object_set_new(result, "message", message_json(message));
    if (place && place->file) json_array_append_new(locations, location_json(place));
    json_object_set_new(result, "locations", locations);
    json_array_append_new(log_.results, result);
}

void sarif_add_note(const SarifPlace *place, const char *message) {
    size_t count = sarif_is_open() ? json_array_size(log_.results) : 0;
    if (!count) return;
    json_t *result = json_array_get(log_.results, count - 1),
           *related = json_object_get(result, "relatedLocations");
    json_t *location = place && place->file ? location_json(place) : json_object();
    if (!related) {
        related = json_array();
        json_object_set_new(result, "relatedLocations", related);
    }
    json_object_set_new(location, "message", message_json(message));
    json_array_append_new(related, location);
}

/* Returns the whole log, which then owns log_.results. */
static json_t *log_json(int status) {
    json_t *driver = json_pack("{s:s, s:s}", "name", log_.tool, "version", log_.version);
    json_t *invocation =
        json_pack("{s:b, s:i}", "executionSuccessful", !status, "exitCode", status);
    json_t *run = json_pack("{s:{s:o}, s:[o], s:s, s:o}", "tool", "driver", driver, "invocations",
                            invocation, "columnKind", "unicodeCodePoints", "results", log_.results);
    return json_pack("{s:s, s:s, s:[o]}", "$schema", SCHEMA, "version", "2.1.0", "runs", run);
}

bool sarif_close(int status) {
    if (!sarif_is_open()) return true;
    json_t *log = log_json(status);
    char *text = json_dumps(log, JSON_INDENT(1)), *lines = NULL;
    const char *why = strerror(ENOMEM);
    int length = text ? asprintf(&lines, "%s\n", text) : -1;
    bool good = length >= 0 && (log_.path ? secure_write(log_.path, lines, (size_t)length, &why)
                                          : fputs(lines, stderr) >= 0);
    if (!good)
        fprintf(stderr, "%s: error: cannot write %s: %s\n", log_.tool,
                log_.path ? log_.path : "the log", why);
    free(length < 0 ? NULL : lines);
    free(text);
    json_decref(log);
    free(log_.path);
    log_.path = NULL;
    log_.results = NULL;
    return good;
}

void report_bug(const char *file, int line, const char *format, ...) {
    enum { MOST = 1024 };
    char message[MOST], whole[2 * MOST];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    snprintf(whole, sizeof whole,
             "internal error at %s:%d: %s\nThis is a bug of hetucc, not of your program; please "
             "report it with the source that shows it.",
             file, line, message);
    sarif_add(SARIF_ERROR, NULL, whole);
    if (!sarif_has_stderr()) fprintf(stderr, "%s: %s\n", tool_name(), whole);
    exit(2);
}
