/* Signals that ask a program to end (base/signals.h): what rank 0 and others make of them, in processes of their own. */
#include "base/signals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t called;
static void (*replaced)(int);

static void on_signal(int number)
{
    (void)number;
    called++;
}

static void on_signal_with_more(int number, siginfo_t *info, void *context) { called += info && context && info->si_signo == number; }

static void on_signal_chained(int number)
{
    called++;
    replaced(number);
}

/* The wait status of a process that does it. */
static int status_of(int (*act)(void))
{
    int status;
    pid_t child = fork();
    if (!child) {
        close(STDERR_FILENO);
        _exit(act());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void assert_passes(int (*act)(void))
{
    int status = status_of(act);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int unheeded(void)
{
    told_open(true);
    raise(SIGUSR1);
    return 1;
}

static int heeded(void)
{
    told_open(true);
    signals_heed();
    raise(SIGTERM);
    raise(SIGTERM); // at the same time: no second one
    return told_signal() == SIGTERM && told_unhandled() == SIGTERM ? 0 : 1;
}

static int second(void)
{
    told_open(true);
    signals_heed();
    raise(SIGTERM);
    sleep(2);
    raise(SIGTERM);
    return 1;
}

/* Each does: main's handler is called; SIGTERM counts, but the session does not act on it; SIGUSR1 is main's alone. */
static int handled(void)
{
    signal(SIGTERM, on_signal);
    signal(SIGUSR1, on_signal);
    told_open(true);
    raise(SIGUSR1);
    if (called != 1 || told_signal())
        return 1;
    raise(SIGTERM);
    return called == 2 && told_signal() == SIGTERM && !told_unhandled() ? 0 : 2;
}

static int handled_later(void)
{
    struct sigaction action = {.sa_sigaction = on_signal_with_more, .sa_flags = SA_SIGINFO};
    told_open(true);
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    told_look();
    told_look();
    raise(SIGTERM);
    return called == 1 && told_signal() == SIGTERM && !told_unhandled() ? 0 : 1;
}

/* A handler that calls the one that it has replaced, which is ours, which calls it. */
static int chained(void)
{
    told_open(true);
    replaced = signal(SIGUSR2, on_signal_chained);
    told_look();
    raise(SIGUSR2);
    return called == 1 ? 0 : 1;
}

static int once_only(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    told_open(true);
    raise(SIGTERM);
    if (called != 1)
        _exit(1);
    raise(SIGTERM); // as main wanted it
    return 1;
}

static int ignored(void)
{
    struct sigaction has;
    signal(SIGTERM, SIG_IGN);
    told_open(true);
    told_look();
    raise(SIGTERM);
    sigaction(SIGTERM, NULL, &has);
    return !told_signal() && has.sa_handler == SIG_IGN ? 0 : 1;
}

static int given_back(void)
{
    struct sigaction term, user;
    signal(SIGTERM, on_signal);
    told_open(true);
    told_close();
    sigaction(SIGTERM, NULL, &term);
    sigaction(SIGUSR1, NULL, &user);
    return term.sa_handler == on_signal && user.sa_handler == SIG_DFL ? 0 : 1;
}

/* Another rank, which has main's handler from before ht_open, does not call it, and says so with its heartbeat. */
static int elsewhere(void)
{
    uint32_t heartbeat;
    signal(SIGTERM, on_signal);
    told_open(false);
    raise(SIGTERM);
    heartbeat = told_heartbeat();
    if (called || !heartbeat)
        return 1;
    return 0;
}

/* Rank 0 has not got what another rank was sent: main's handler is called a little later, and once. */
static int missed(void)
{
    signal(SIGTERM, on_signal);
    told_open(true);
    told_hear(1);
    if (told_signal() != SIGTERM || called)
        return 1;
    for (int tick = 0; tick < 20; tick++) {
        told_tick();
        told_hear(1);
    }
    return called == 1 ? 0 : 2;
}

/* Rank 0 has got it, too. */
static int not_missed(void)
{
    signal(SIGTERM, on_signal);
    told_open(true);
    told_hear(1);
    told_tick();
    raise(SIGTERM);
    for (int tick = 0; tick < 20; tick++)
        told_tick();
    return called == 1 ? 0 : 1;
}

/* Rank 0's heartbeat: no rank ends at what main handles, or once something may be saved. */
static int follows(void)
{
    told_open(true);
    signal(SIGUSR1, on_signal);
    uint32_t heartbeat = told_heartbeat();
    told_close();
    told_open(false);
    told_hear(heartbeat);
    raise(SIGUSR1);
    told_hear(0); // rank 0 that has not opened, or has closed, says nothing
    raise(SIGUSR1);
    return called ? 1 : 0;
}

static void test_ends_at_once(void **state)
{
    (void)state;
    int status = status_of(unheeded);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
    status = status_of(second);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    assert_passes(heeded);
}

static void test_handlers(void **state)
{
    (void)state;
    assert_passes(handled);
    assert_passes(handled_later);
    assert_passes(chained);
    assert_passes(ignored);
    assert_passes(given_back);
    int status = status_of(once_only);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static void test_other_ranks(void **state)
{
    (void)state;
    assert_passes(elsewhere);
    assert_passes(missed);
    assert_passes(not_missed);
    assert_passes(follows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ends_at_once), cmocka_unit_test(test_handlers),
                                       cmocka_unit_test(test_other_ranks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
