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

/* Kinds of a probe's lines, by their first words, and what follows the word. */
typedef enum Said {
    SAID_PROGRAM,    // hash of the program's file
    SAID_UNREADY,    // why the program cannot be started
    SAID_LIBHETU,    // hash of the program's libhetu
    SAID_LIBRARY,    // a library of the program that is not found
    SAID_UNLISTED,   // why libraries cannot be listed
    SAID_FOLDER,     // key that the probe reads in the marker, a file in the run's folder
    SAID_FOLDERLESS, // why the probe cannot read the marker
    SAID_LISTENS,    // port and addresses on which the probe listens
    SAID_UNREACHED,  // a host that the probe does not reach
    SAIDS
} Said;

static const char *const said_words[SAIDS] = {"program",    "unready",  "libhetu",
                                              "library",    "unlisted", "folder",
                                              "folderless", "listens",  "unreached"};

/* A host of the file and what its probe has said. */
typedef struct Probed {
    const char *host;
    int slots;
    bool here, begun, ready;    // begun: the probe has said the key
    bool awaited;               // heturun waits for an answer of the probe
    const struct Probed *asked; // host that the probe shall reach; NULL: none, or reached
    double since;               // time at which heturun asked for the clock, in seconds
    pid_t process;              // 0: it was not started, for the reason `error_number`
    int error_number;
    int to, from, errors; // standard input, output and error of the probe
    double seconds;       // from the probe's start until it was ready (until then: its start)
    char buffer[LINE_ROOM];
    size_t held;                 // bytes in `buffer`
    char said[SAIDS][NAME_ROOM]; // by kind: what the probe has said, "a, b"; "": nothing
    double offset, error;        // seconds: host's clock minus this clock; uncertainty
    bool timed;                  // `offset` is known
} Probed;

typedef struct Check {
    const char *shell;
    char **words; // the program; NULL: none
    char marker[NAME_ROOM], key[KEY_DIGITS + 1];
    int count, lacks;
    Probed *at;
} Check;

/* ---- the probes ---- */

/* Runs in the child process: becomes the probe of a host. */
static _Noreturn void become(const Check *check, const Probed *probed, const int *in,
                             const int *out, pid_t parent) {
    char folder[LINE_ROOM] = "", own[] = "/proc/self/exe";
    const char *program = check->words ? check->words[0] : NULL;
    char *words[] = {(char *)check->marker, (char *)check->key, (char *)probed->host,
                     (char *)program, NULL};
    char *here[] = {"heturun", "--probe", "--",     folder, words[0],
                    words[1],  words[2],  words[3], NULL};
    signal(SIGPIPE, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || !getcwd(folder, sizeof folder)) _exit(CANNOT_START);
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(probed->errors, STDERR_FILENO);
    remote_restore_files();
    char **far = remote_words(check->shell, probed->host, "--probe", words);
    if (probed->here) execv(own, here);
    else execvp(far[0], far);
    fprintf(stderr, "%s: %s\n", far[0], strerror(errno));
    _exit(CANNOT_START);
}

/* Starts the probe of a host, or sets its error number, as when no file or process is left. */
static void start(const Check *check, Probed *probed) {
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    pid_t parent = getpid(), process = -1;
    probed->errors = memfd_create("errors", MFD_CLOEXEC);
    probed->seconds = clock_seconds(CLOCK_MONOTONIC);
    if (probed->errors >= 0 && !pipe2(in, O_CLOEXEC) && !pipe2(out, O_CLOEXEC)) process = fork();
    if (!process) become(check, probed, in, out, parent);
    if (process < 0) probed->error_number = errno;
    if (in[0] >= 0) close(in[0]);
    if (out[1] >= 0) close(out[1]);
    probed->to = in[1];
    probed->from = out[0];
    if (process < 0) return;
    fcntl(probed->to, F_SETFL, O_NONBLOCK);
    probed->process = process;
    probed->awaited = true;
}

/* Appends a word to a text of words: "a, b". */
static void add_word(char *list, size_t room, const char *word) {
    size_t length = strlen(list);
    snprintf(list + length, room - length, "%s%s", length ? ", " : "", word);
}

/* Notes what a line of a probe says. Lines before the key are those of login scripts. */
static void note(const Check *check, Probed *probed, const char *line) {
    size_t head = strcspn(line, " ");
    if (!probed->begun) {
        probed->begun = !strcmp(line, check->key);
        return;
    }
    for (int i = 0; i < SAIDS && line[head]; i++)
        if (strlen(said_words[i]) == head && !strncmp(line, said_words[i], head))
            add_word(probed->said[i], NAME_ROOM, line + head + 1);
    probed->ready = !strcmp(line, "ready");
    probed->awaited = !probed->ready;
    if (probed->ready) probed->seconds = clock_seconds(CLOCK_MONOTONIC) - probed->seconds;
}

/* Notes a host's clock from a line "clock SECONDS"; the answer with the shortest wait counts. */
static void note_clock(const Check *check, Probed *probed, const char *line) {
    double there, heard = clock_seconds(CLOCK_REALTIME), error = (heard - probed->since) / 2;
    (void)check;
    if (sscanf(line, "clock %lf", &there) != 1) return;
    probed->awaited = false;
    if (probed->timed && error >= probed->error) return;
    probed->timed = true;
    probed->error = error;
    probed->offset = there - (probed->since + heard) / 2;
}

/* Notes whether a host reaches probed->asked; ignores a late answer about another host. */
static void note_reached(const Check *check, Probed *probed, const char *line) {
    const char *host = strchr(line, ' ');
    (void)check;
    if (!host || strcmp(host + 1, probed->asked->host) != 0) return;
    probed->awaited = strncmp(line, "reached ", 8) && strncmp(line, "unreached ", 10);
    if (!strncmp(line, "reached ", 8)) probed->asked = NULL;
}

typedef void Note(const Check *check, Probed *probed, const char *line);

/* Reads what a probe has written, and calls note_line for each whole line. */
static void take(const Check *check, Probed *probed, Note *note_line) {
    ssize_t got =
        read(probed->from, probed->buffer + probed->held, sizeof probed->buffer - 1 - probed->held);
    if (got <= 0) probed->awaited = false;
    if (got <= 0) return;
    probed->held += (size_t)got;
    probed->buffer[probed->held] = 0;
    char *line = probed->buffer;
    for (char *end; (end = memchr(line, '\n', probed->held)); line = end + 1) {
        *end = 0;
        probed->held -= (size_t)(end + 1 - line);
        if (probed->awaited) note_line(check, probed, line);
    }
    if (probed->held == sizeof probed->buffer - 1) probed->held = 0; // no line of a probe
    memmove(probed->buffer, line, probed->held);
}

/* Reads the answers of all awaited probes at the same time, for at most `seconds` seconds. */
static void hear(const Check *check, double seconds, Note *note_line) {
    struct pollfd *entries = calloc((size_t)check->count, sizeof *entries);
    double deadline = clock_seconds(CLOCK_MONOTONIC) + seconds, left = seconds;
    for (bool any = true; any && left > 0; left = deadline - clock_seconds(CLOCK_MONOTONIC)) {
        nfds_t number = 0;
        for (int i = 0; i < check->count; i++)
            if (check->at[i].awaited)
                entries[number++] = (struct pollfd){check->at[i].from, POLLIN, 0};
        any = number > 0;
        if (!any || poll(entries, number, (int)(left * 1000) + 1) <= 0) continue;
        number = 0;
        for (int i = 0; i < check->count; i++)
            if (check->at[i].awaited && entries[number++].revents)
                take(check, &check->at[i], note_line);
    }
    free(entries);
}

static void ask(Probed *probed, const char *question) {
    ssize_t length = (ssize_t)strlen(question);
    probed->awaited = write(probed->to, question, (size_t)length) == length;
}

/* Finds the offsets of the hosts' clocks. */
static void time_clocks(const Check *check) {
    for (int turn = 0; turn < TIMINGS; turn++) {
        for (int i = 0; i < check->count; i++) {
            check->at[i].since = clock_seconds(CLOCK_REALTIME);
            if (check->at[i].ready) ask(&check->at[i], "time\n");
        }
        hear(check, REACH_SECONDS, note_clock);
    }
}

/* Asks each host to connect to those above it in the file: in round k, host i connects to host
 * i - k, so that a host has one caller at a time. */
static void reach(const Check *check) {
    char question[LINE_ROOM];
    for (int round = 1; round < check->count; round++) {
        for (int i = round; i < check->count; i++) {
            Probed *probed = &check->at[i];
            const Probed *other = &check->at[i - round];
            bool both = probed->ready && other->ready && *other->said[SAID_LISTENS];
            probed->asked = both ? other : NULL;
            if (!both) continue;
            snprintf(question, sizeof question, "reach %s %s\n", other->host,
                     other->said[SAID_LISTENS]);
            ask(probed, question);
        }
        hear(check, REACH_SECONDS * 20, note_reached);
        for (int i = round; i < check->count; i++) {
            Probed *probed = &check->at[i];
            if (probed->asked)
                add_word(probed->said[SAID_UNREACHED], NAME_ROOM, probed->asked->host);
            probed->awaited = false;
        }
    }
}

/* Waits for the end of the probes, whose standard inputs are closed, and kills those that stay. */
static void stop(const Check *check) {
    enum { LOOKS = 50, LOOK = 20000000 }; // LOOK: nanoseconds
    for (int i = 0; i < check->count; i++) {
        if (check->at[i].to >= 0) close(check->at[i].to);
        if (check->at[i].from >= 0) close(check->at[i].from);
    }
    for (int look = 0, left = 1; left && look <= LOOKS; look++) {
        left = 0;
        for (int i = 0; i < check->count; i++) {
            pid_t *process = &check->at[i].process;
            if (*process > 0 && look == LOOKS) kill(*process, SIGKILL);
            if (*process > 0 && waitpid(*process, NULL, look == LOOKS ? 0 : WNOHANG)) *process = 0;
            left += *process > 0;
        }
        if (left) nanosleep(&(struct timespec){.tv_nsec = LOOK}, NULL);
    }
}

/* ---- the page ---- */

/* Prints that a host lacks something, and what to do; counts it in check->lacks. */
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

/* Returns the first host whose probe has said a line of this kind; NULL: none. */
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

/* Prints the line of a host in the table. */
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
               : *probed->said[SAID_UNLISTED]                 ? "-"
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

/* Prints whether a host lacks the program, or libraries of it, and what to do. */
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
    if (*probed->said[SAID_UNLISTED])
        printf("%s: the libraries of %s are not looked at: %s\n", probed->host, program,
               probed->said[SAID_UNLISTED]);
    first = first_with(check, SAID_LIBHETU);
    if (differs(check, probed, SAID_LIBHETU))
        lack(check, probed, "libhetu is another build than on %s; install the same one",
             first->host);
}

/* Prints all that a host lacks, and what to do. */
static void explain(Check *check, const Probed *probed) {
    char folder[LINE_ROOM] = "";
    if (!getcwd(folder, sizeof folder)) *folder = 0;
    if (probed->error_number) {
        lack(check, probed,
             "no process can be started here that asks it: %s; raise the limits of open files and "
             "of processes: ulimit -n, ulimit -u",
             strerror(probed->error_number));
        return;
    }
    if (!probed->ready) {
        bool slurm = remote_is_srun(check->shell);
        lack(check, probed,
             "no heturun answers there: %s; \"%s %s%s true\" must work %s, and heturun have the "
             "same path",
             last_words(probed), check->shell, slurm ? "--nodelist=" : "", probed->host,
             slurm ? "inside the allocation" : "without a password");
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

/* Writes the marker, a new file with this check's key, to this folder. False after a message. */
static bool make_marker(Check *check) {
    snprintf(check->marker, sizeof check->marker, ".heturun-check.XXXXXX");
    int file = mkostemp(check->marker, O_CLOEXEC);
    uint64_t key = (uint64_t)getpid() << 32 ^ (uint64_t)(clock_seconds(CLOCK_REALTIME) * 1e6);
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
    remote_raise_files();
    list_hosts(&check, slots);
    for (int i = 0; i < check.count; i++) start(&check, &check.at[i]);
    hear(&check, PROBE_SECONDS, note);
    time_clocks(&check);
    reach(&check);
    stop(&check);
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
