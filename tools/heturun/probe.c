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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PATH_ROOM = 4096, LINE_ROOM = 4096, MOST_ADDRESSES = 8, GREETING = 64, BACKLOG = 64 };

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

/* Says which libraries of a program are missing, and a hash of its libhetu. */
static void say_libraries(const char *program) {
    char line[LINE_ROOM], path[PATH_ROOM], *arrow;
    FILE *out = NULL;
    int missing = 0;
    setenv("HETURUN_PROBED", program, 1); // a variable needs no quotes of the shell
    out = popen("ldd \"$HETURUN_PROBED\" 2>/dev/null", "re");
    while (out && fgets(line, sizeof line, out)) {
        char *name = line + strspn(line, " \t");
        if (!(arrow = strstr(name, " => "))) continue;
        *arrow = 0;
        if (!strncmp(arrow + 4, "not found", 9)) printf("library %s\n", name);
        missing += !strncmp(arrow + 4, "not found", 9);
        if (!strncmp(name, "libhetu", 7) && sscanf(arrow + 4, "%4095[^ ]", path) == 1)
            printf("libhetu %016" PRIx64 "\n", hash_file(path));
    }
    if (out) pclose(out);
    if (!missing) puts("libraries");
}

static void say_program(const char *program) {
    char *path = program_path(program);
    uint64_t hash = path && !access(path, X_OK) ? hash_file(path) : 0;
    if (hash) {
        printf("program %016" PRIx64 "\n", hash);
        say_libraries(path);
    } else printf("unready %s\n", path ? strerror(errno) : "it is not along PATH");
    free(path);
}

/* Says what stands in the marker, which shows that heturun's folder is this one. */
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

/* Listens on a free port of all addresses, and says where. Returns the socket. */
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

/* Waits up to `seconds` for an event of a socket. */
static bool await(int file, short events, int seconds) {
    struct pollfd entry = {.fd = file, .events = events};
    return poll(&entry, 1, seconds * 1000) > 0;
}

/* Returns whether a probe with this greeting, its host's name, listens at an address. */
static bool reaches(const char *text, int port, const char *greeting) {
    char said[GREETING] = "";
    int error = 0, made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t size = sizeof error;
    bool good = made >= 0 && inet_pton(AF_INET, text, &address.sin_addr) == 1;
    if (good && connect(made, (struct sockaddr *)&address, sizeof address))
        good = errno == EINPROGRESS && await(made, POLLOUT, REACH_SECONDS) &&
               !getsockopt(made, SOL_SOCKET, SO_ERROR, &error, &size) && !error;
    good = good && await(made, POLLIN, REACH_SECONDS) && read(made, said, sizeof said - 1) > 0 &&
           !strcmp(said, greeting);
    if (made >= 0) close(made);
    return good;
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

/* Greets a caller with the name of this host in the file of hosts. */
static void greet(int listener, const char *host) {
    int caller = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (caller < 0) return;
    if (write(caller, host, strlen(host)) < 0) host = "";
    close(caller);
}

/* Answers one line of heturun. */
static void answer(char *line) {
    line[strcspn(line, "\n")] = 0;
    if (!strcmp(line, "time")) say_clock();
    else if (!strncmp(line, "reach ", 6)) answer_reach(line + 6);
}

int probe_answer(char **words) {
    const char *host = words[1] ? words[2] : NULL, *program = host ? words[3] : NULL;
    char line[LINE_ROOM];
    size_t length = 0;
    if (!host) return CANNOT_START;
    setvbuf(stdout, NULL, _IOLBF, 0);
    say_folder(words[0], words[1]);
    if (program) say_program(program);
    int listener = listen_anywhere();
    puts("ready");
    for (;;) {
        struct pollfd entries[2] = {{STDIN_FILENO, POLLIN, 0}, {listener, POLLIN, 0}};
        if (poll(entries, 2, PROBE_SECONDS * 10000) <= 0) return 1;
        if (entries[1].revents) greet(listener, host);
        if (!entries[0].revents) continue;
        ssize_t got = read(STDIN_FILENO, line + length, 1);
        if (got <= 0) return 0;
        bool whole = line[length] == '\n' || length == sizeof line - 2;
        line[++length] = 0;
        if (!whole) continue;
        answer(line);
        length = 0;
    }
}
