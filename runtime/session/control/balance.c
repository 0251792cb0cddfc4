/* ht_balance, load balancing: when rates (rates.c) or links (links.c) have changed enough, rank 0
 * plans a strategy. If `horizon` steps repay a switch, the strategy is compiled and all switch. */
#include "session/control/control.h"

#include "session/control/links.h"
#include "session/control/prepare_strategy.h"
#include "session/control/rates.h"
#include "session/control/recompile_command.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/c_locale.h"
#include "transport/world.h"
#include "exchange/channel.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WINDOW = 100,   // number of steps for which a switch counts as recent
    PER_WINDOW = 2, // recent switches that a rank may cause before steps_needed grows
    NAME = 64,      // characters of a strategy's name
    STEPS_KEPT = 3  // number of step times that are kept; their median is the usual step time
};

typedef enum Phase { WATCHING, PLANNING, MAKING } Phase; // MAKING: a strategy is compiled

/* A plan of hetu-balance: the request and its answer. */
typedef struct Asked {
    double *rates;           // by rank: rates that the plan is for
    bool *cause;             // by rank, then for links: whether rate or links have changed
    char *output, *strategy; // paths: output of hetu-balance, and its strategy file
    pid_t planner;
    char name[NAME];                  // name of the planned strategy
    bool made;                        // the strategy is new and must be compiled
    double now, then, moves, seconds; // step seconds now and planned; bytes, seconds of the switch
    double *work; // 2 * ranks: work by rank under the first strategy, then under the planned one
} Asked;

typedef struct Balance Balance;

struct Balance {
    ht_program *program;
    ht_balance_options options;
    bool own; // HETU_BALANCE=1 began it; a call of ht_balance replaces it
    bool quiet;
    RecompileCommand *recipe;
    Rates *rates;
    int image, base; // numbers of the images of the current and of the first strategy
    bool rests;      // no more plans under the current strategy: they would fail again
    Phase phase;
    Asked asked;
    int plans;
    double step_began, took[STEPS_KEPT]; // when the step began, and last step times, in seconds
    int64_t steps, at;                   // steps seen; number of the current or next step
    double base_seconds;   // step time under the first strategy with healthy ranks; 0: not known
    int links;             // links_changes that the last plan was made for; -1: it was dropped
    double switch_seconds; // duration of the last switch; 0: there was none
    // by rank, then for links: steps of its last PER_WINDOW switches; < -WINDOW: none
    int64_t *switched;
};

/* ---- messages ---- */

/* Prints a message with the step number to standard error, unless `quiet` is set. */
static void say(const Balance *balance, const char *format, ...) {
    char line[512];
    va_list arguments;
    if (balance->quiet) return;
    va_start(arguments, format);
    plain_vformat(line, sizeof line, format, arguments);
    va_end(arguments);
    fprintf(stderr, "hetu: balance: step %lld: %s\n", (long long)balance->at, line);
}

static const char *strategy_of(int image) {
    const char *name = image_at(image)->image->strategy;
    return name ? name : "";
}

/* Returns whether to switch back to the first strategy: the program runs under another one, all
 * ranks and links are healthy, and the first one's step time is known. */
static bool is_healed(const Balance *balance) {
    if (links_lowered()) return false;
    for (int r = 0; r < balance->rates->count; r++)
        if (balance->asked.rates[r] != 1) return false;
    return balance->image != balance->base && balance->base_seconds > 0;
}

/* Prints "rank 5 computes 4.02 times as long as when it was healthy, rank 6 0.98 times", and
 * whether links have changed. */
static void say_moved(const Balance *balance) {
    char text[256] = "";
    int told = 0;
    for (int r = 0; r < balance->rates->count && strlen(text) < 160; r++)
        if (balance->asked.cause[r]) {
            size_t length = strlen(text);
            plain_format(text + length, sizeof text - length,
                         told++ ? ", rank %d %.2f times"
                                : "rank %d computes %.2f times as long as when it was healthy",
                         r, balance->asked.rates[r]);
        }
    if (balance->asked.cause[balance->rates->count]) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%slinks between hosts have changed",
                 told ? ", and " : "");
    }
    say(balance, "%s%s", text, is_healed(balance) ? "" : "; planning beside the training");
}

/* ---- opening and closing ---- */

/* Returns whether the environment has HETU_BALANCE=`word`. */
static bool environment_says(const char *word) {
    const char *own = getenv("HETU_BALANCE");
    return own && !strcmp(own, word);
}

bool balance_all(void) { return environment_says("1"); }

/* Returns whether a program of the session is balanced because main has called ht_balance. */
static bool is_asked(const ht_session *session) {
    return session->balance && !session->balance->own;
}

static void check_options(const ht_program *program, ht_balance_options options) {
    if (!program) ht_fail("ht_balance was called with NULL for the program");
    if (!program->trains)
        ht_fail("ht_balance is for a program of ht_train; those of ht_infer follow the one that "
                "trains");
    if (!(options.change >= 0) || options.steps < 0 || !(options.horizon >= 0))
        ht_fail("ht_balance was called with .change = %g, .steps = %d, .horizon = %g; none of them "
                "may be below 0, and 0 is the usual one",
                options.change, options.steps, options.horizon);
    if (is_asked(program->session) && program->session->balance->program != program)
        ht_fail("ht_balance was called for a second program of the session; one is balanced");
}

/* Sets the options, with defaults for those that are 0. HETU_BALANCE=quiet sets `quiet`. */
static void take_options(Balance *balance, ht_balance_options options) {
    balance->options = options;
    balance->options.change = options.change > 0 ? options.change : 0.3;
    balance->options.steps = options.steps > 0 ? options.steps : 3;
    balance->options.horizon = options.horizon > 0 ? options.horizon : 100;
    balance->quiet = options.quiet || environment_says("quiet");
}

/* Returns why a program of several ranks cannot be balanced; NULL: balancing is possible. */
static const char *reason_against(const ht_program *program) {
    if (channel_of_device()->memory) return "how long a stage computes is measured on CPUs alone";
    if (!recompile_command_of(session_image_program(program)->number))
        return "the source file of the model must train it on several devices or call ht_balance, "
               "and hetucc must compile it for CPUs";
    if (recompile_command_of(session_image_program(program)->number)->refuses)
        return recompile_command_of(session_image_program(program)->number)->refuses;
    return image_at(session_image_program(program)->number)->image->strategy
               ? NULL
               : "the program was compiled without a strategy";
}

static void open_asked(Asked *asked, int ranks) {
    asked->rates = memory_array(ranks, sizeof *asked->rates);
    asked->cause = memory_array(ranks + 1, sizeof *asked->cause);
    asked->work = memory_array(2 * ranks, sizeof *asked->work);
}

/* Begins to measure under a strategy, which becomes `base`; all ranks count as healthy. */
static void begin_under(Balance *balance, int image) {
    double healthy[world_size()];
    for (int r = 0; r < world_size(); r++) healthy[r] = 1;
    if (balance->rates) rates_destroy(balance->rates);
    balance->rates = rates_create(world_size(), balance->options.change);
    balance->image = balance->base = image;
    balance->phase = WATCHING;
    balance->rests = balance->recipe->refuses;
    balance->base_seconds = 0;
    rates_go(balance->rates, image, healthy, NULL);
}

static Balance *open_balance(ht_program *program, ht_balance_options options) {
    int ranks = world_size();
    Balance *balance = memory_array(1, sizeof *balance);
    *balance = (Balance){.program = program,
                         .recipe = recompile_command_of(session_image_program(program)->number)};
    balance->switched = memory_array(PER_WINDOW * (ranks + 1), sizeof *balance->switched);
    for (int i = 0; i < PER_WINDOW * (ranks + 1); i++) balance->switched[i] = -WINDOW - 1;
    open_asked(&balance->asked, ranks);
    take_options(balance, options);
    begin_under(balance, session_image_program(program)->number);
    return balance;
}

/* Begins to balance a program, unless that is impossible; then prints why, to whom asked for it. */
static void begin(ht_program *program, ht_balance_options options, bool own) {
    const char *reason = reason_against(program);
    if (reason) {
        fprintf(stderr, "hetu: %s leaves the program as it is: %s\n",
                own ? "HETU_BALANCE=1" : "ht_balance", reason);
        return;
    }
    balance_close(program->session);
    program->session->balance = open_balance(program, options);
    program->session->balance->own = own;
}

void ht_balance_with(ht_program *program, ht_balance_options options) {
    check_options(program, options);
    session_check_open(program->session);
    if (program->eager || world_size() == 1 || environment_says("0")) return;
    Balance *balance = program->session->balance;
    if (!balance || balance->program != program) {
        begin(program, options, false);
    } else {
        take_options(balance, options);
        balance->own = false;
    }
}

/* Begins to balance a program under HETU_BALANCE=1, unless one is balanced or was refused. */
static void open_for_all(ht_program *program) {
    static bool tried;
    if (tried || !program->trains || program->session->balance || !balance_all()) return;
    tried = true;
    if (!program->eager && world_size() > 1) begin(program, (ht_balance_options){0}, true);
}

/* Ends hetu-balance if it runs, and deletes the output file. */
static void drop_plan(Balance *balance) {
    Asked *asked = &balance->asked;
    if (balance->phase == PLANNING && asked->planner) {
        kill(asked->planner, SIGTERM);
        recompile_ended(asked->planner, true);
    }
    if (asked->output) unlink(asked->output);
    free(asked->output);
    asked->output = NULL;
    asked->planner = 0;
}

void balance_close(ht_session *session) {
    Balance *balance = session->balance;
    if (!balance) return;
    drop_plan(balance);
    rates_destroy(balance->rates);
    free(balance->asked.rates);
    free(balance->asked.cause);
    free(balance->asked.work);
    free(balance->asked.strategy);
    free(balance->switched);
    free(balance);
    session->balance = NULL;
}

/* ---- the planner ---- */

/* Returns the option --rates=1,1,4 of hetu-balance; free() it. */
static char *rates_word(const Asked *asked, int count) {
    size_t size = 16 + 24 * (size_t)count;
    char *word = memory_array((int64_t)size, 1);
    size_t at = (size_t)snprintf(word, size, "--rates=");
    for (int r = 0; r < count; r++)
        at += (size_t)plain_format(word + at, size - at, "%s%.6g", r ? "," : "", asked->rates[r]);
    return word;
}

/* Sets asked.name to the next unused name of a strategy: balanced1, balanced2, ... */
static void new_name(Balance *balance) {
    do snprintf(balance->asked.name, NAME, "balanced%d", ++balance->plans);
    while (image_under(balance->image, balance->asked.name) >= 0);
}

/* Stops planning under the current strategy, since the next plan would fail for the same reason. */
static void rest(Balance *balance) {
    say(balance, "nothing more is planned under strategy \"%s\": it would be refused again",
        strategy_of(balance->image));
    balance->rests = true;
}

/* Starts hetu-balance for asked.rates and the lowered links, in another process. On failure, prints
 * why and rests. */
static void start_planner(Balance *balance) {
    Asked *asked = &balance->asked;
    char reason[REASON], now[NAME + 128], base[NAME + 128], model[NAME + 128], name[NAME + 16],
        *rates = rates_word(asked, balance->rates->count), *links = links_word();
    new_name(balance);
    free(asked->strategy);
    asked->output = recompile_file("balance", balance->plans - 1, ".plan", reason);
    asked->strategy = recompile_file("balance", balance->plans - 1, ".strategy", reason);
    snprintf(now, sizeof now, "--now=%s", strategy_of(balance->image));
    snprintf(base, sizeof base, "--base=%s", strategy_of(balance->base));
    snprintf(model, sizeof model, "--model=%s", image_at(balance->image)->image->model);
    snprintf(name, sizeof name, "--name=%s", asked->name);
    const char *words[] = {
        rates, now, base, model, name, "-o", asked->strategy, *links ? links : NULL, NULL};
    bool placed = asked->output && asked->strategy;
    asked->planner =
        !placed ? 0
                : recompile_start(balance->recipe, "hetu-balance", words, asked->output, reason);
    balance->phase = asked->planner ? PLANNING : WATCHING;
    if (!asked->planner) {
        say(balance, "nothing is planned: %s", reason);
        rest(balance);
    }
    free(links);
    free(rates);
}

/* Reads hetu-balance's output into `asked`: lines such as "strategy balanced1 new", "now 4", "then
 * 1.3", "moves 8e6 0.1", "work 0 1 1.2". Returns false if a line is missing. */
static bool read_plan(Balance *balance) {
    Asked *asked = &balance->asked;
    char line[256], kind[16] = "";
    int rank, found = 0, ranks = balance->rates->count;
    double first, then;
    FILE *file = file_read_own(asked->output, NULL);
    while (file && fgets(line, sizeof line, file)) {
        found += sscanf(line, "strategy %63s %15s", asked->name, kind) == 2;
        found += plain_scan(line, "now %lf", &asked->now) == 1;
        found += plain_scan(line, "then %lf", &asked->then) == 1;
        found += plain_scan(line, "moves %lf %lf", &asked->moves, &asked->seconds) == 2;
        if (plain_scan(line, "work %d %lf %lf", &rank, &first, &then) == 3 && rank >= 0 &&
            rank < ranks) {
            asked->work[rank] = first;
            asked->work[ranks + rank] = then;
            found++;
        }
    }
    if (file) fclose(file);
    asked->made = !strcmp(kind, "new");
    return found == 4 + ranks;
}

/* ---- decisions ---- */

/* Returns the median of the last three step times, in seconds. */
static double usual_step(const Balance *balance) {
    double a = balance->took[0], b = balance->took[1], c = balance->took[2];
    return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

/* Returns the number of switches in the last WINDOW steps. */
static int recent_switches(const Balance *balance) {
    int64_t seen[PER_WINDOW * 64];
    int count = 0;
    for (int i = 0; i < PER_WINDOW * (balance->rates->count + 1) && count < PER_WINDOW * 64; i++) {
        bool known = balance->at - balance->switched[i] > WINDOW;
        for (int s = 0; s < count && !known; s++) known = seen[s] == balance->switched[i];
        if (!known) seen[count++] = balance->switched[i];
    }
    return count;
}

/* Returns the cost of a switch in seconds: the larger of the last switch's duration and the
 * prediction. Each switch in the last WINDOW steps doubles the cost, against oscillation. */
static double switch_cost(const Balance *balance) {
    return fmax(balance->switch_seconds, balance->asked.seconds) * pow(2, recent_switches(balance));
}

/* Returns whether a rank, or the links, caused PER_WINDOW switches in the last WINDOW steps. */
static bool caused_enough(const Balance *balance, int cause) {
    int recent = 0;
    for (int i = 0; i < PER_WINDOW; i++)
        recent += balance->at - balance->switched[PER_WINDOW * cause + i] <= WINDOW;
    return recent == PER_WINDOW;
}

/* Returns how many steps in a row a rank's rate must differ from its planned one: options.steps;
 * after PER_WINDOW recent switches, 8 times as many if it differs by 1.5 or more, else WINDOW. */
static int steps_needed(const Balance *balance, int rank) {
    const double far = 1.5;
    const Rates *rates = balance->rates;
    int needed = balance->options.steps;
    if (!caused_enough(balance, rank)) return needed;
    return fabs(rates->rate[rank] - rates->planned[rank]) >= far ? 8 * needed : WINDOW;
}

/* Returns whether a plan is for the rates and links of now. */
static bool plan_holds(const Balance *balance) {
    return rates_near(balance->rates, balance->asked.rates) && balance->links == links_changes();
}

/* Returns whether links have changed since the last plan, no other link is about to, and links
 * have not caused PER_WINDOW recent switches. Under the first strategy a plan is for lowered links
 * alone. */
static bool links_moved(const Balance *balance) {
    return balance->links != links_changes() && links_settled() &&
           (links_lowered() || balance->image != balance->base) &&
           !caused_enough(balance, balance->rates->count);
}

/* Sets asked.cause, and returns whether links have changed since the last plan, or a rank's rate
 * has differed long enough from its planned rate. If so, sets asked.rates to the rates to plan for.
 */
static bool find_moved(Balance *balance) {
    const Rates *rates = balance->rates;
    bool found = false;
    for (int r = 0; r < rates->count; r++) {
        balance->asked.cause[r] = rates->moved[r] > 0;
        found |= rates->moved[r] >= steps_needed(balance, r);
    }
    balance->asked.cause[rates->count] = links_moved(balance);
    found |= links_moved(balance);
    if (found) rates_asked(rates, balance->asked.rates);
    return found;
}

/* Returns whether the plan is another strategy, at least 0.5% faster, and saves more time in
 * `horizon` steps than the switch costs. Prints the decision. */
static bool pays_back(const Balance *balance) {
    const Asked *asked = &balance->asked;
    double gain = usual_step(balance) * (1 - asked->then / asked->now), cost = switch_cost(balance);
    bool pays = gain * balance->options.horizon > cost && !(asked->then >= asked->now * 0.995);
    if (!strcmp(asked->name, strategy_of(balance->image)))
        say(balance, "strategy \"%s\" stays: nothing that was planned is better", asked->name);
    else if (pays)
        say(balance,
            "strategy \"%s\" takes %.2f of a step's time now, and the switch about %.2f s for %.3g "
            "MB%s",
            asked->name, asked->then / asked->now, cost, asked->moves / 1e6,
            asked->made ? "; it is being made" : "");
    else
        say(balance,
            "strategy \"%s\" stays: \"%s\" would save %.4f s a step, and the switch costs %.2f s",
            strategy_of(balance->image), asked->name, gain, cost);
    return pays && strcmp(asked->name, strategy_of(balance->image));
}

/* Ends a plan without a switch. The plan's rates become `planned`, and cause no other plan. */
static void leave(Balance *balance) {
    memcpy(balance->rates->planned, balance->asked.rates,
           sizeof(double) * (size_t)balance->rates->count);
    balance->phase = WATCHING;
}

/* Ends a plan whose rates or links are no longer those of now; links that it was for cause another.
 */
static void drop_stale(Balance *balance) {
    balance->links = -1;
    balance->phase = WATCHING;
}

/* Accepts the plan, and has the strategy compiled if the plan made a new one. */
static void take_plan(Balance *balance) {
    balance->phase = MAKING;
    if (balance->asked.made) prepare_request(balance->image, balance->asked.strategy);
}

/* Returns the maximum work of a rank. */
static double busiest(const double *work, int count) {
    double most = 0;
    for (int r = 0; r < count; r++) most = fmax(most, work[r]);
    return most;
}

/* Decides whether to switch back to the first strategy. Predicts the step time under that strategy
 * from earlier steps, and from the maximum work of a rank under each strategy. */
static void go_home(Balance *balance) {
    Asked *asked = &balance->asked;
    snprintf(asked->name, NAME, "%s", strategy_of(balance->base));
    asked->made = false;
    asked->now = usual_step(balance);
    asked->then = fmin(balance->base_seconds,
                       asked->now * busiest(asked->work, balance->rates->count) /
                           busiest(asked->work + balance->rates->count, balance->rates->count));
    if (pays_back(balance)) take_plan(balance);
    else leave(balance);
}

/* Reads the plan once hetu-balance has ended. Accepts it if rates_near and pays_back agree. */
static void end_planning(Balance *balance) {
    int status = recompile_ended(balance->asked.planner, false);
    if (status < 0) return;
    balance->asked.planner = 0;
    bool good = !status && read_plan(balance);
    drop_plan(balance);
    balance->phase = WATCHING;
    if (!good) {
        say(balance, "strategy \"%s\" stays: hetu-balance %s", strategy_of(balance->image),
            status >= RECOMPILE_KILLED ? "was killed" : "has no plan; what it says stands above");
        leave(balance);
        if (status < RECOMPILE_KILLED) rest(balance);
    } else if (!plan_holds(balance)) {
        say(balance, "the plan is dropped: ranks' rates or links have changed since");
        drop_stale(balance);
    } else if (!pays_back(balance)) {
        leave(balance);
    } else {
        take_plan(balance);
    }
}

/* Records the duration of a switch and, for each rank or the links that caused the switch, the step
 * number. */
static void note_switch(Balance *balance, double seconds) {
    balance->switch_seconds = seconds;
    for (int r = 0; r <= balance->rates->count; r++) {
        int64_t *own = balance->switched + (ptrdiff_t)PER_WINDOW * r;
        if (!balance->asked.cause[r]) continue;
        memmove(own, own + 1, sizeof *own * (PER_WINDOW - 1));
        own[PER_WINDOW - 1] = balance->at;
    }
}

/* Switches to the planned strategy; fed inputs stay fed. */
static void go(Balance *balance, int image) {
    double begin = pace_now();
    Command command = {
        .kind = COMMAND_SWITCH,
        .switching = {.program = balance->program->number, .image = image, .keep_inputs = true}};
    session_issue(balance->program->session, &command, &(Payload){0});
    note_switch(balance, pace_now() - begin);
    say(balance, "under strategy \"%s\" from here on; the switch took %.3f s", strategy_of(image),
        balance->switch_seconds);
    rates_go(balance->rates, image, balance->asked.rates, balance->asked.work);
    balance->image = image;
    balance->phase = WATCHING;
    balance->rests = balance->recipe->refuses;
}

/* Switches to the planned strategy once it is compiled, unless the rates have changed meanwhile. */
static void end_making(Balance *balance) {
    const char *reason = NULL;
    int image = image_under(balance->image, balance->asked.name);
    if (image < 0 && prepare_is_pending(balance->asked.strategy)) return;
    if (image < 0) {
        prepare_strategy_name(balance->asked.strategy, &reason);
        say(balance, "strategy \"%s\" stays: \"%s\" could not be had: %s",
            strategy_of(balance->image), balance->asked.name,
            reason ? reason : "it has another name");
        leave(balance);
        if (!prepare_may_retry(balance->asked.strategy)) rest(balance);
    } else if (!plan_holds(balance)) {
        say(balance, "strategy \"%s\" is there, but ranks' rates or links have changed since",
            balance->asked.name);
        drop_stale(balance);
    } else if (image_reads_agree(image)) {
        go(balance, image);
    } else {
        leave(balance);
    }
}

/* ---- in a step ---- */

/* Returns the state of ht_balance for a program; NULL: the program is not balanced. */
static Balance *balance_of(const ht_program *program) {
    Balance *balance = program->session->balance;
    return balance && balance->program == program ? balance : NULL;
}

void balance_turn(ht_program *program) {
    open_for_all(program);
    Balance *balance = balance_of(program);
    if (!balance) return;
    balance->at = program->step;
    if (session_image_program(program)->number != balance->image) { // main has called ht_switch
        drop_plan(balance);
        begin_under(balance, session_image_program(program)->number);
    }
    if (balance->phase == PLANNING) end_planning(balance);
    if (balance->phase == MAKING) end_making(balance);
    balance->step_began = pace_now();
}

bool balance_wants(const ht_program *program) { return balance_of(program); }

void balance_note(ht_program *program, const PaceReport *reports) {
    Balance *balance = balance_of(program);
    if (!balance) return;
    balance->took[balance->steps++ % STEPS_KEPT] = pace_now() - balance->step_began;
    bool known = rates_take(balance->rates, reports);
    if (known && balance->image == balance->base && balance->base_seconds == 0)
        balance->base_seconds = usual_step(balance);
    if (!known || balance->phase != WATCHING || !find_moved(balance) ||
        (balance->rests && !is_healed(balance)))
        return;
    say_moved(balance);
    balance->links = links_changes();
    if (is_healed(balance)) go_home(balance);
    else start_planner(balance);
}
