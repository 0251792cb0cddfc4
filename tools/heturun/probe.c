/* Says what a host has for a run: answers `heturun --check` from another machine. */
#include "check_hosts.h"
#include "ranks.h"

#include "support/hash.h"
#include "support/tool.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATH_ROOM = 4096, LINE_ROOM = 4096, MOST_ADDRESSES = 8, GREETING = 256, BACKLOG = 64 };

/* ---- program, libraries, folder ---- */

/* Returns a hash of a file's bytes; 0, with errno set: it cannot be read. */
static uint64_t hash_file(const char *path) {
    static char piece[1 << 16];
    uint64_t hash = HASH_START;
    ssize_t got = -1;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    while (file >= 0 && (got = read(file, piece, sizeof piece)) > 0)
        hash = hash_bytes(hash, piece, (size_t)got);
    int error = errno;
    if (file >= 0) close(file);
    errno = error;
    return got < 0 ? 0 : hash;
}

/* Returns how many libraries of a program are missing. If `says`, prints these libraries, a hash of
 * libhetu, and whether there is no ldd to list them. */
static int list_libraries(const char *program, bool says) {
    enum { NO_COMMAND = 127 }; // status of the shell
    char line[LINE_ROOM], path[PATH_ROOM], *arrow;
    FILE *out = NULL;
    int missing = 0, status;
    setenv("HETURUN_PROBED", program, 1); // a variable needs no quotes of the shell
    out = popen("ldd \"$HETURUN_PROBED\" 2>/dev/null", "re");
    while (out && fgets(line, sizeof line, out)) {
        char *name = line + strspn(line, " \t");
        if (!(arrow = strstr(name, " => "))) continue;
        *arrow = 0;
        if (says && !strncmp(arrow + 4, "not found", 9)) printf("library %s\n", name);
        missing += !strncmp(arrow + 4, "not found", 9);
        if (says && !strncmp(name, "libhetu", 7) && sscanf(arrow + 4, "%4095[^ ]", path) == 1)
            printf("libhetu %016" PRIx64 "\n", hash_file(path));
    }
    status = out ? pclose(out) : -1;
    if (says && (status < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == NO_COMMAND)))
        puts("unlisted there is no ldd");
    return missing;
}

bool probe_lacks_library(const char *program) {
    char *path = program_path(program);
    bool lacks = path && list_libraries(path, false) > 0;
    free(path);
    return lacks;
}

static void say_program(const char *program) {
    char *path = program_path(program);
    uint64_t hash = path && !access(path, X_OK) ? hash_file(path) : 0;
    if (hash) {
        printf("program %016" PRIx64 "\n", hash);
        list_libraries(path, true);
    } else printf("unready %s\n", path ? strerror(errno) : "it is not along PATH");
    free(path);
}

/* Enters `folder` and prints the key in its file `marker`, which shows that heturun sees it. */
static void say_folder(const char *folder, const char *marker) {
    char key[GREETING] = "";
    if (chdir(folder)) {
        printf("folderless %s\n", strerror(errno));
        return;
    }
    FILE *file = fopen(marker, "re");
    if (file && fgets(key, sizeof key, file)) printf("folder %s\n", key);
    else puts("folderless it is not the one that heturun sees");
    if (file) fclose(file);
}

/* ---- connections ---- */

/* Listens on a free port, and prints port and addresses. Returns the socket; -1 on failure. */
static int listen_anywhere(void) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    struct ifaddrs *all = NULL;
    socklen_t size = sizeof address;
    char text[INET_ADDRSTRLEN];
    int count = 0, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) ||
        listen(listener, BACKLOG) || getsockname(listener, (struct sockaddr *)&address, &size))
        return -1;
    printf("listens %d", ntohs(address.sin_port));
    if (getifaddrs(&all)) all = NULL;
    for (const struct ifaddrs *at = all; at && count < MOST_ADDRESSES; at = at->ifa_next) {
        if (!at->ifa_addr || at->ifa_addr->sa_family != AF_INET || !(at->ifa_flags & IFF_UP) ||
            at->ifa_flags & IFF_LOOPBACK)
            continue;
        const struct sockaddr_in *own = (struct sockaddr_in *)(void *)at->ifa_addr;
        printf(" %s", inet_ntop(AF_INET, &own->sin_addr, text, sizeof text));
        count++;
    }
    if (all) freeifaddrs(all);
    puts(count ? "" : " 127.0.0.1");
    return listener;
}

/* Waits up to `seconds` (-1: no limit) for an event of a socket; returns whether it came. */
static bool await(int file, short events, int seconds) {
    struct pollfd entry = {.fd = file, .events = events};
    return poll(&entry, 1, seconds < 0 ? -1 : seconds * 1000) > 0;
}

/* Returns whether a probe with this greeting, its host's name, listens at an address. */
static bool reaches(const char *text, int port, const char *greeting) {
    char said[GREETING + 1] = "";
    size_t length = 0;
    ssize_t got = 1;
    int error = 0, made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t size = sizeof error;
    bool good = made >= 0 && inet_pton(AF_INET, text, &address.sin_addr) == 1;
    if (good && connect(made, (struct sockaddr *)&address, sizeof address))
        good = errno == EINPROGRESS && await(made, POLLOUT, REACH_SECONDS) &&
               !getsockopt(made, SOL_SOCKET, SO_ERROR, &error, &size) && !error;
    while (good && length < GREETING && got > 0 && await(made, POLLIN, REACH_SECONDS)) {
        got = read(made, said + length, GREETING - length);
        length += got > 0 ? (size_t)got : 0;
    }
    if (made >= 0) close(made);
    return good && !strcmp(said, greeting);
}

/* Answers "reach HOST PORT ADDRESSES". */
static void answer_reach(char *line) {
    char *rest = line, *host = strtok_r(rest, " ", &rest), *port = strtok_r(NULL, " ", &rest);
    bool reached = false;
    for (char *address; port && !reached && (address = strtok_r(NULL, " ", &rest));)
        reached = reaches(address, atoi(port), host);
    printf("%s %s\n", reached ? "reached" : "unreached", host ? host : "");
}

static void say_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    printf("clock %lld.%09ld\n", (long long)now.tv_sec, now.tv_nsec);
}

/* Starts a process that sends `host`, this host's name in the file of hosts, to each caller of
 * `listener`. The process ends when its parent ends. Does nothing if `listener` is -1. */
static void greet(int listener, const char *host) {
    pid_t parent = getpid(), process = listener < 0 ? -1 : fork();
    if (process) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    while (getppid() == parent && await(listener, POLLIN, -1)) {
        int caller = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (caller < 0) continue;
        if (write(caller, host, strlen(host)) < 0) {
            // The caller is gone.
        }
        close(caller);
    }
    _exit(0);
}

/* Answers one line of heturun. */
static void answer(char *line) {
    line[strcspn(line, "\n")] = 0;
    if (!strcmp(line, "time")) say_clock();
    else if (!strncmp(line, "reach ", 6)) answer_reach(line + 6);
}

int probe_answer(char **words) {
    enum { FOLDER, MARKER, KEY, HOST, PROGRAM };
    char line[LINE_ROOM];
    int count = 0;
    while (words && words[count]) count++;
    if (count <= HOST) {
        tool_message(stderr, "error", "--probe is for heturun --check, which starts it");
        return CANNOT_START;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("\n%s\n", words[KEY]); // a login script may have left a line without its end
    say_folder(words[FOLDER], words[MARKER]);
    if (words[PROGRAM]) say_program(words[PROGRAM]);
    greet(listen_anywhere(), words[HOST]);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) answer(line);
    return 0;
}
