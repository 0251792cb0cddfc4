/* Prints what the hosts of a run have and lack: `heturun --check --hosts FILE`.
 *
 *     host  slots  ssh     program   libraries  folder  clock     ports
 *     n1    2      here    3f2a9c1d  ok         ok      +0.000 s  ok
 *     n2    2      0.21 s  missing   -          ok      +0.001 s  ok
 *     n2: ./gpt cannot be started: No such file or directory; copy it there, or ...
 */
#include "check_hosts.h"
#include "ranks.h"

#include "support/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LINE_ROOM = 4096, NAME_ROOM = 256, TIMINGS = 5, KEY_DIGITS = 16 };

static const double MOST_OFFSET = 1; // seconds between the clocks of two hosts

/* What a probe says, by the first word of a line. */
typedef enum Said {
    SAID_PROGRAM,    // hash of the program's file
    SAID_UNREADY,    // why the program cannot be started
    SAID_LIBHETU,    // hash of its libhetu
    SAID_LIBRARY,    // libraries that are not found
    SAID_FOLDER,     // what stands in the marker
    SAID_FOLDERLESS, // why it cannot be read
    SAID_LISTENS,    // port and addresses
    SAID_UNREACHED,  // hosts that it does not reach
    SAIDS
} Said;

static const char *const said_words[SAIDS] = {"program", "unready",    "libhetu", "library",
                                              "folder",  "folderless", "listens", "unreached"};

/* A host of the file and what its probe has said. */
typedef struct Probed {
    const char *host;
    int slots;
    bool here, ready;
    pid_t process;
    int to, from, errors; // standard input, output and error of the probe
    double seconds;       // from its start until it was ready
    char buffer[LINE_ROOM];
    size_t held;                 // bytes in `buffer`
    char said[SAIDS][NAME_ROOM]; // "": nothing
    double offset, error;        // of the clock, in seconds
    bool timed;
} Probed;

typedef struct Check {
    const char *shell;
    char **words; // the program; NULL: none
    char marker[NAME_ROOM], key[KEY_DIGITS + 1];
    int count, lacks;
    Probed *at;
} Check;

static double now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- the probes ---- */

/* Runs in the child process: becomes the probe of a host. */
static _Noreturn void become(const Check *check, const Probed *probed, const int *in,
                             const int *out, pid_t parent) {
    char folder[LINE_ROOM] = "", own[] = "/proc/self/exe";
    const char *program = check->words ? check->words[0] : NULL;
    char *words[] = {(char *)check->marker, (char *)probed->host, (char *)program, NULL};
    char *here[] = {"heturun", "--probe", "--", folder, words[0], words[1], words[2], NULL};
    signal(SIGPIPE, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || !getcwd(folder, sizeof folder)) _exit(CANNOT_START);
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(probed->errors, STDERR_FILENO);
    char **far = remote_words(check->shell, probed->host, "--probe", words);
    if (probed->here) execv(own, here);
    else execvp(far[0], far);
    fprintf(stderr, "%s: %s\n", far[0], strerror(errno));
    _exit(CANNOT_START);
}

static void start(const Check *check, Probed *probed) {
    int in[2], out[2];
    probed->errors = memfd_create("errors", MFD_CLOEXEC);
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || probed->errors < 0) abort();
    pid_t parent = getpid();
    probed->seconds = now(CLOCK_MONOTONIC);
    probed->process = fork();
    if (!probed->process) become(check, probed, in, out, parent);
    close(in[0]);
    close(out[1]);
    probed->to = in[1];
    probed->from = out[0];
}

/* Writes the next line of a probe to `line`. Returns false: it said none until `deadline`. */
static bool next_line(Probed *probed, char *line, double deadline) {
    for (;;) {
        char *end = memchr(probed->buffer, '\n', probed->held);
        if (end) {
            size_t length = (size_t)(end - probed->buffer);
            memcpy(line, probed->buffer, length);
            line[length] = 0;
            probed->held -= length + 1;
            memmove(probed->buffer, end + 1, probed->held);
            return true;
        }
        double left = deadline - now(CLOCK_MONOTONIC);
        struct pollfd entry = {probed->from, POLLIN, 0};
        if (left <= 0 || probed->held == sizeof probed->buffer ||
            poll(&entry, 1, (int)(left * 1000) + 1) <= 0)
            return false;
        ssize_t got =
            read(probed->from, probed->buffer + probed->held, sizeof probed->buffer - probed->held);
        if (got <= 0) return false;
        probed->held += (size_t)got;
    }
}

/* Adds a word to a list of words. */
static void add_word(char *list, size_t room, const char *word) {
    size_t length = strlen(list);
    snprintf(list + length, room - length, "%s%s", length ? ", " : "", word);
}

/* Notes what a line of a probe says. */
static void note(Probed *probed, const char *line) {
    size_t head = strcspn(line, " ");
    for (int i = 0; i < SAIDS && line[head]; i++)
        if (strlen(said_words[i]) == head && !strncmp(line, said_words[i], head))
            add_word(probed->said[i], NAME_ROOM, line + head + 1);
}

/* Reads what a probe says until it is ready. */
static void hear(Probed *probed, double deadline) {
    char line[LINE_ROOM];
    while (!probed->ready && next_line(probed, line, deadline)) {
        probed->ready = !strcmp(line, "ready");
        note(probed, line);
    }
    probed->seconds = now(CLOCK_MONOTONIC) - probed->seconds;
}

/* Asks a probe; returns false when no answer comes. */
static bool ask(Probed *probed, const char *question, char *line, double seconds) {
    ssize_t length = (ssize_t)strlen(question);
    return write(probed->to, question, (size_t)length) == length &&
           next_line(probed, line, now(CLOCK_MONOTONIC) + seconds);
}

/* Finds the offset of a host's clock, by the quickest of some answers. */
static void time_clock(Probed *probed) {
    char line[LINE_ROOM];
    for (int i = 0; i < TIMINGS; i++) {
        double asked = now(CLOCK_REALTIME), there;
        if (!ask(probed, "time\n", line, REACH_SECONDS) || sscanf(line, "clock %lf", &there) != 1)
            return;
        double heard = now(CLOCK_REALTIME), error = (heard - asked) / 2;
        if (probed->timed && error >= probed->error) continue;
        probed->timed = true;
        probed->error = error;
        probed->offset = there - (asked + heard) / 2;
    }
}

/* Lets a host reach those above it in the file. */
static void reach(Check *check, int number) {
    Probed *probed = &check->at[number];
    char line[LINE_ROOM], question[LINE_ROOM + NAME_ROOM + 16];
    for (int i = 0; i < number; i++) {
        const Probed *other = &check->at[i];
        if (!other->ready || !*other->said[SAID_LISTENS]) continue;
        snprintf(question, sizeof question, "reach %s %s\n", other->host,
                 other->said[SAID_LISTENS]);
        if (!ask(probed, question, line, REACH_SECONDS * 20) || strncmp(line, "reached", 7) != 0)
            add_word(probed->said[SAID_UNREACHED], NAME_ROOM, other->host);
    }
}

static void stop(Probed *probed) {
    struct timespec pause = {.tv_nsec = 20000000};
    close(probed->to);
    close(probed->from);
    for (int i = 0; i < 50 && waitpid(probed->process, NULL, WNOHANG) == 0; i++)
        nanosleep(&pause, NULL);
    if (!kill(probed->process, 0)) {
        kill(probed->process, SIGKILL);
        waitpid(probed->process, NULL, 0);
    }
}

/* ---- the page ---- */

/* Prints that a host lacks something, and what to do. */
__attribute__((format(printf, 3, 4))) static void lack(Check *check, const Probed *probed,
                                                       const char *format, ...) {
    va_list words;
    va_start(words, format);
    printf("%s: ", probed->host);
    vprintf(format, words);
    putchar('\n');
    va_end(words);
    check->lacks++;
}

/* Returns the last line that a probe, or ssh, wrote to its standard error. The next call overwrites
 * the text. */
static const char *last_words(const Probed *probed) {
    static char text[LINE_ROOM];
    off_t size = lseek(probed->errors, 0, SEEK_END);
    off_t from = size >= LINE_ROOM ? size - LINE_ROOM + 1 : 0;
    ssize_t got = pread(probed->errors, text, LINE_ROOM - 1, from);
    text[got > 0 ? got : 0] = 0;
    while (got > 0 && strchr("\r\n", text[got - 1])) text[--got] = 0;
    const char *line = strrchr(text, '\n');
    line = line ? line + 1 : text;
    return *line ? line : "it said nothing";
}

/* Returns the first host whose probe has said this; NULL: none. */
static const Probed *first_with(const Check *check, Said what) {
    for (int i = 0; i < check->count; i++)
        if (*check->at[i].said[what]) return &check->at[i];
    return NULL;
}

/* Returns whether a host has another hash than the first host that has one. */
static bool differs(const Check *check, const Probed *probed, Said what) {
    const Probed *first = first_with(check, what);
    return *probed->said[what] && strcmp(probed->said[what], first->said[what]) != 0;
}

/* Prints the line of a host. */
static void print_host(const Check *check, const Probed *probed, int width) {
    char ssh[32] = "here", clock[32] = "-";
    bool folder = !strcmp(probed->said[SAID_FOLDER], check->key);
    if (!probed->ready) snprintf(ssh, sizeof ssh, "fails");
    else if (!probed->here) snprintf(ssh, sizeof ssh, "%.2f s", probed->seconds);
    if (probed->timed) snprintf(clock, sizeof clock, "%+.3f s", probed->offset);
    printf("%-*s  %5d  %-7s  ", width, probed->host, probed->slots, ssh);
    if (check->words)
        printf("%-8.8s  %-9s  ",
               !probed->ready                ? "-"
               : *probed->said[SAID_PROGRAM] ? probed->said[SAID_PROGRAM]
                                             : "missing",
               !probed->ready || !*probed->said[SAID_PROGRAM] ? "-"
               : *probed->said[SAID_LIBRARY]                  ? "missing"
               : differs(check, probed, SAID_LIBHETU)         ? "differ"
                                                              : "ok");
    printf("%-7s  %-10s  %s\n",
           !probed->ready ? "-"
           : folder       ? "ok"
                          : "missing",
           clock,
           !probed->ready                                                  ? "-"
           : *probed->said[SAID_UNREACHED] || !*probed->said[SAID_LISTENS] ? "closed"
                                                                           : "ok");
}

/* Says what a host lacks of program and libraries. */
static void explain_program(Check *check, const Probed *probed) {
    const char *program = check->words[0];
    if (!*probed->said[SAID_PROGRAM]) {
        lack(check, probed,
             "%s cannot be started: %s; copy it to the same path, or run it from a "
             "folder that all hosts see",
             program, probed->said[SAID_UNREADY]);
        return;
    }
    const Probed *first = first_with(check, SAID_PROGRAM);
    if (differs(check, probed, SAID_PROGRAM))
        lack(check, probed, "%s is another build than on %s (%.8s, not %.8s); copy that one",
             program, first->host, probed->said[SAID_PROGRAM], first->said[SAID_PROGRAM]);
    if (*probed->said[SAID_LIBRARY])
        lack(check, probed,
             "libraries of %s are not found: %s; install them there, or give their "
             "folder: export LD_LIBRARY_PATH=FOLDER",
             program, probed->said[SAID_LIBRARY]);
    first = first_with(check, SAID_LIBHETU);
    if (differs(check, probed, SAID_LIBHETU))
        lack(check, probed, "libhetu is another build than on %s; install the same one",
             first->host);
}

/* Says what a host lacks, and what to do. */
static void explain(Check *check, const Probed *probed) {
    char folder[LINE_ROOM] = "";
    if (!getcwd(folder, sizeof folder)) *folder = 0;
    if (!probed->ready) {
        lack(check, probed,
             "no heturun answers there: %s; \"%s %s true\" must work without a "
             "password, and heturun have the same path",
             last_words(probed), check->shell, probed->host);
        return;
    }
    if (strcmp(probed->said[SAID_FOLDER], check->key) != 0)
        lack(check, probed,
             "the folder %s: %s; mount it there, since ranks meet and save in a "
             "folder that all hosts see",
             folder,
             *probed->said[SAID_FOLDERLESS] ? probed->said[SAID_FOLDERLESS]
                                            : "another one is at its path");
    if (check->words) explain_program(check, probed);
    if (probed->timed && fabs(probed->offset) > MOST_OFFSET + probed->error)
        lack(check, probed, "its clock is %.1f s %s; set it: timedatectl set-ntp true",
             fabs(probed->offset), probed->offset > 0 ? "ahead" : "behind");
    if (!*probed->said[SAID_LISTENS]) lack(check, probed, "it cannot listen on a port");
    if (*probed->said[SAID_UNREACHED])
        lack(check, probed,
             "it does not reach %s; open all ports between the hosts (firewall), "
             "since ranks choose free ones",
             probed->said[SAID_UNREACHED]);
}

/* ---- the hosts ---- */

/* Lists the hosts of the slots, each once. */
static void list_hosts(Check *check, const Slots *slots) {
    check->at = calloc((size_t)slots->count, sizeof *check->at);
    for (int i = 0; i < slots->count; i++) {
        int k = 0;
        while (k < check->count && strcmp(check->at[k].host, slots->at[i].host) != 0) k++;
        check->at[k].host = slots->at[i].host;
        check->at[k].here = slots->at[i].here;
        check->at[k].slots++;
        check->count += k == check->count;
    }
}

/* Writes a file with a random key to this folder. Returns false after a message. */
static bool make_marker(Check *check) {
    snprintf(check->marker, sizeof check->marker, ".heturun-check.XXXXXX");
    int file = mkostemp(check->marker, O_CLOEXEC);
    uint64_t key = (uint64_t)getpid() << 32 ^ (uint64_t)(now(CLOCK_REALTIME) * 1e6);
    snprintf(check->key, sizeof check->key, "%016" PRIx64, key);
    bool good = file >= 0 && write(file, check->key, KEY_DIGITS) == KEY_DIGITS;
    if (!good)
        tool_message(stderr, "error", "no file can be written in this folder: %s", strerror(errno));
    if (file >= 0) close(file);
    return good;
}

int check_print(const Slots *slots, const char *shell, char **words) {
    Check check = {.shell = shell, .words = words};
    int width = (int)strlen("host");
    if (!make_marker(&check)) return 1;
    signal(SIGPIPE, SIG_IGN);
    list_hosts(&check, slots);
    for (int i = 0; i < check.count; i++) start(&check, &check.at[i]);
    double deadline = now(CLOCK_MONOTONIC) + PROBE_SECONDS;
    for (int i = 0; i < check.count; i++) hear(&check.at[i], deadline);
    for (int i = 0; i < check.count; i++)
        if (check.at[i].ready) {
            time_clock(&check.at[i]);
            reach(&check, i);
        }
    for (int i = 0; i < check.count; i++) stop(&check.at[i]);
    unlink(check.marker);
    for (int i = 0; i < check.count; i++)
        width = (int)strlen(check.at[i].host) > width ? (int)strlen(check.at[i].host) : width;
    printf("%-*s  slots  ssh      %sfolder   clock       ports\n", width, "host",
           words ? "program   libraries  " : "");
    for (int i = 0; i < check.count; i++) print_host(&check, &check.at[i], width);
    for (int i = 0; i < check.count; i++) explain(&check, &check.at[i]);
    printf("%d host%s, %d slot%s: %s\n", check.count, check.count == 1 ? "" : "s", slots->count,
           slots->count == 1 ? "" : "s", check.lacks ? "not ready" : "nothing lacks");
    free(check.at);
    return check.lacks > 0;
}
