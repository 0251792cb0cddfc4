/* Large messages between ranks of one machine without MPI: read in the sender's memory, or copied
 * through queues where the kernel forbids that. Two ranks in processes of their own. */
#include "transport/fabric/peer_memory.h"
#include "transport/fabric/shared_memory_queues.h"
#include "transport/post.h"
#include "transport/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = (5 << 20) + 13, RANKS = 2, STATUS_BAD = 9 };

static const size_t sizes[] = {1,
                               4097,
                               SINGLE_COPY_LEAST - 1,
                               SINGLE_COPY_LEAST,
                               SINGLE_COPY_LEAST + 1,
                               (1 << 18) + 7,
                               (1 << 20) - 1,
                               MOST};
enum { SIZES = sizeof sizes / sizeof *sizes };

static char folder[64], *sent, *received;

static void nap(int milliseconds) {
    nanosleep(&(struct timespec){.tv_sec = milliseconds / 1000,
                                 .tv_nsec = milliseconds % 1000 * 1000000L},
              NULL);
}

/* Lets the kernel answer every process_vm_readv of this process with `action`. */
static void filter(uint32_t action) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        _exit(STATUS_BAD);
}

static const uint32_t FORBID = SECCOMP_RET_ERRNO | EPERM, KILL = SECCOMP_RET_KILL_PROCESS;

static char byte_of(int rank, size_t size, size_t at) {
    return (char)(at * 7 + at / 251 + size + (size_t)rank * 101);
}

static void fill(size_t size) {
    for (size_t i = 0; i < size; i++) sent[i] = byte_of(world_rank(), size, i);
    memset(received, 0, MOST);
}

/* Ends this rank if a byte of the other rank's message differs, or one behind it was written. */
static void check(size_t size) {
    for (size_t i = 0; i < MOST; i++)
        if (received[i] != (i < size ? byte_of(!world_rank(), size, i) : 0)) {
            fprintf(stderr, "byte %zu of %zu differs\n", i, size);
            _exit(STATUS_BAD);
        }
}

static void exchange(size_t size) {
    HostTransfer send = {sent, size, !world_rank()}, receive = {received, size, !world_rank()};
    world_exchange(&send, 1, &receive, 1);
}

static void await(int lane, Post *posts, int count) {
    for (int i = 0, passes = 0; i < count; i += posts[i].state == NULL)
        if (post_done(lane, &posts[i])) posts[i].state = NULL;
        else if (++passes % 1000 == 0) world_check();
}

/* Exchanges messages on a lane: a large and a small one of one tag, one of another tag. */
static void exchange_on_lane(size_t size) {
    size_t part[] = {0, size / 2, size / 2 + size / 3, size};
    Post posts[6];
    for (int i = 0; i < 6; i++) {
        int p = i % 3;
        bool sends = i >= 3;
        posts[i] = (Post){
            .transfer = {(sends ? sent : received) + part[p], part[p + 1] - part[p], !world_rank()},
            .tag = p == 2 ? 4 : 3,
            .sends = sends};
        post_begin(0, &posts[i]);
    }
    await(0, posts, 6);
}

static void all_sizes(void) {
    for (int i = 0; i < SIZES; i++) {
        fill(sizes[i]);
        exchange(sizes[i]);
        check(sizes[i]);
        fill(sizes[i]);
        exchange_on_lane(sizes[i]);
        check(sizes[i]);
    }
}

/* ---- two ranks ---- */

/* Results of the ranks: wait statuses and what they printed on stderr. */
static struct {
    int status[RANKS];
    char text[RANKS][4096];
} ended;

static void be_rank(int rank, uint32_t from_start, void (*act)(void), const char *path) {
    char number[8];
    snprintf(number, sizeof number, "%d", rank);
    setenv("HETU_RANK", number, 1);
    setenv("HETU_SIZE", "2", 1);
    setenv("HETU_TIMEOUT", "30", 1);
    setenv("HETU_RENDEZVOUS", path, 1);
    if (from_start) filter(from_start);
    world_open(NULL, NULL, WORLD_CHANNELS);
    channels_open();
    act();
    channels_close();
    world_close();
    _exit(0);
}

/* Runs two ranks; from the start, the kernel answers process_vm_readv by the actions given. */
static void run(void (*act)(void), uint32_t first, uint32_t second) {
    static int number;
    pid_t child[RANKS];
    int pipes[RANKS][2];
    char path[96];
    snprintf(path, sizeof path, "%s/ranks%d", folder, number++);
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_equal(pipe(pipes[rank]), 0);
        child[rank] = fork();
        if (!child[rank]) {
            dup2(pipes[rank][1], STDERR_FILENO);
            for (int i = 0; i <= rank; i++) close(pipes[i][0]), close(pipes[i][1]);
            be_rank(rank, rank ? second : first, act, path);
        }
        close(pipes[rank][1]);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        size_t length = 0;
        for (ssize_t more; length < sizeof ended.text[rank] - 1; length += (size_t)more)
            if ((more = read(pipes[rank][0], ended.text[rank] + length,
                             sizeof ended.text[rank] - 1 - length)) <= 0)
                break;
        ended.text[rank][length] = 0;
        close(pipes[rank][0]);
        assert_int_equal(waitpid(child[rank], &ended.status[rank], 0), child[rank]);
    }
}

static void assert_whole(void) {
    for (int rank = 0; rank < RANKS; rank++)
        if (ended.status[rank])
            fail_msg("rank %d: wait status %d: %s", rank, ended.status[rank], ended.text[rank]);
}

static void read_in_memory(void **unused) {
    (void)unused;
    run(all_sizes, 0, 0);
    assert_whole();
}

static void copied_where_forbidden(void **unused) {
    (void)unused;
    run(all_sizes, FORBID, FORBID);
    assert_whole();
    run(all_sizes, 0, FORBID);
    assert_whole();
}

/* Forbids reads after the probe has succeeded. */
static void forbid_and_exchange(void) {
    if (world_rank()) filter(FORBID);
    all_sizes();
}

static void refused_later(void **unused) {
    (void)unused;
    run(forbid_and_exchange, 0, 0);
    assert_whole();
}

static void small_then_large_by_exchange(void) {
    if (world_rank()) filter(KILL);
    exchange(SINGLE_COPY_LEAST - 1);
    fputs("small ones arrived\n", stderr);
    exchange(SINGLE_COPY_LEAST);
}

static void small_then_large_on_lane(void) {
    if (world_rank()) filter(KILL);
    exchange_on_lane(SINGLE_COPY_LEAST - 1);
    fputs("small ones arrived\n", stderr);
    exchange_on_lane(2 * SINGLE_COPY_LEAST);
}

/* Large messages are read in memory, small ones are not: a rank that may not is killed by them. */
static void large_ones_alone(void **unused) {
    void (*const act[])(void) = {small_then_large_by_exchange, small_then_large_on_lane};
    (void)unused;
    for (int i = 0; i < 2; i++) {
        run(act[i], 0, 0);
        assert_true(WIFSIGNALED(ended.status[1]) && WTERMSIG(ended.status[1]) == SIGSYS);
        assert_non_null(strstr(ended.text[1], "small ones arrived"));
        assert_non_null(strstr(ended.text[0], "rank 1 has ended"));
    }
}

/* ---- a rank is killed between an offer and its answer ---- */

/* Rank 0 offers a message and is killed; rank 1 then looks for the message. */
static void sender_dies_on_lane(void) {
    Post post = {.transfer = {world_rank() ? received : sent, MOST, !world_rank()},
                 .sends = !world_rank()};
    post_begin(0, &post);
    for (int i = 0; i < 100; i++) {
        if (world_rank() == 0 && post_done(0, &post)) _exit(STATUS_BAD);
        if (world_rank() == 1 && i == 0 && post_done(0, &post)) _exit(STATUS_BAD);
        nap(5);
    }
    if (!world_rank()) raise(SIGKILL);
    nap(300);
    await(0, &post, 1);
}

/* Rank 1 asks for a message and is killed; rank 0 awaits the answer to its offer. */
static void receiver_dies_on_lane(void) {
    Post post = {.transfer = {world_rank() ? received : sent, MOST, !world_rank()},
                 .sends = !world_rank()};
    post_begin(0, &post);
    if (world_rank()) {
        if (post_done(0, &post)) _exit(STATUS_BAD);
        nap(500);
        raise(SIGKILL);
    }
    await(0, &post, 1);
}

static void sender_dies_in_exchange(void) {
    if (!world_rank()) alarm(1);
    else nap(1500);
    exchange(MOST);
}

static void receiver_dies_in_exchange(void) {
    if (world_rank()) {
        nap(500);
        raise(SIGKILL);
    }
    exchange(MOST);
}

/* The other rank reports the end as ever, and does not wait for the message. */
static void killed_in_between(void **unused) {
    (void)unused;
    void (*const act[])(void) = {sender_dies_on_lane, sender_dies_in_exchange,
                                 receiver_dies_on_lane, receiver_dies_in_exchange};
    for (int i = 0; i < 4; i++) {
        int killed = i / 2;
        char wanted[32];
        time_t begin = time(NULL);
        run(act[i], 0, 0);
        snprintf(wanted, sizeof wanted, "rank %d has ended", killed);
        assert_true(WIFSIGNALED(ended.status[killed]));
        assert_true(WIFEXITED(ended.status[!killed]));
        assert_int_not_equal(WEXITSTATUS(ended.status[!killed]), 0);
        assert_int_not_equal(WEXITSTATUS(ended.status[!killed]), STATUS_BAD);
        assert_non_null(strstr(ended.text[!killed], wanted));
        assert_in_range(time(NULL) - begin, 0, 20);
    }
}

/* ---- offers and permissions ---- */

static void offers_after_a_refused_one(void **unused) {
    (void)unused;
    Queues *queues[2];
    QueueFile files[2];
    char to[100] = "", from[100] = "odd";
    for (int r = 0; r < 2; r++) files[r] = queues_file(queues[r] = queues_create(r, 2));
    files[0].head += 64; // rank 1 finds no key there
    for (int r = 0; r < 2; r++) assert_true(queues_connect(queues[r], files));
    assert_false(queue_takes_offers(queues[0], 1));
    assert_true(queue_takes_offers(queues[1], 0));
    uint64_t offer[4];
    for (int i = 0; i < 4; i++) {
        offer[i] = queue_offer(queues[1], 0);
        assert_int_equal(queue_offer_state(queues[1], 0, offer[i]),
                         i > 1 ? OFFER_REFUSED : OFFER_OPEN);
        bool takes = queue_take(queues[0], 1, i == 1 ? 8 : (uintptr_t)from, to, sizeof to);
        assert_int_equal(takes, i < 1);
        assert_int_equal(queue_offer_state(queues[1], 0, offer[i]),
                         i < 1 ? OFFER_TAKEN : OFFER_REFUSED);
    }
    assert_string_equal(to, "odd");
    assert_int_equal(queue_offer_state(queues[1], 0, offer[0]), OFFER_TAKEN);
    assert_false(queue_takes_offers(queues[1], 0));
    for (int r = 0; r < 2; r++) queues_close(queues[r]);
}

static void permissions(void **unused) {
    (void)unused;
    const pid_t processes[] = {70, 71, 72}, of_shell[] = {60, 60, 60}, of_first[] = {60, 70, 70};
    assert_int_equal(peer_memory_reader(processes, of_shell, 1, 0), 0);
    assert_int_equal(peer_memory_reader(processes, of_shell, 2, 0), 71);
    assert_int_equal(peer_memory_reader(processes, of_shell, 2, 1), 70);
    for (int rank = 0; rank < 3; rank++) {
        assert_int_equal(peer_memory_reader(processes, of_first, 3, rank), 70);
        assert_int_equal(peer_memory_reader(processes, of_shell, 3, rank), 0);
    }
}

static int enter(void **unused) {
    (void)unused;
    strcpy(folder, "/tmp/unit-single-copy.XXXXXX");
    sent = malloc(MOST);
    received = malloc(MOST);
    return !mkdtemp(folder) || !sent || !received;
}

static int leave(void **unused) {
    (void)unused;
    free(sent);
    free(received);
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_in_memory),    cmocka_unit_test(copied_where_forbidden),
        cmocka_unit_test(refused_later),     cmocka_unit_test(large_ones_alone),
        cmocka_unit_test(killed_in_between), cmocka_unit_test(offers_after_a_refused_one),
        cmocka_unit_test(permissions)};
    return cmocka_run_group_tests(tests, enter, leave);
}
