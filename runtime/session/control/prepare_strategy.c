/* ht_prepare: compiles strategies beside the training, and loads them on all ranks or none. */
#include "session/control/prepare_strategy.h"

#include "base/files.h"
#include "base/memory.h"
#include "base/c_locale.h"
#include "session/control/recompile_command.h"
#include "transport/world.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- requests ---- */

/* States of a request: asked for, hetucc runs, compiled, loaded by all ranks, refused. */
typedef enum Progress { ASKED, MADE_NOW, THERE, TAKEN, REFUSED } Progress;

typedef struct Arrival {
    Progress progress;
    RecompileCommand *recipe;
    char *word;   // argument of ht_prepare
    char *option; // --strategy=WORD, with absolute file name
    char *object; // path of the shared object
    pid_t maker;
    const char *name; // name of the strategy; NULL: not known yet
    uint64_t stamp;   // hash of the files that the result depends on (recompile_stamp)
    bool again;       // a new request may succeed where this one failed
    char reason[REASON];
} Arrival;

static struct {
    Arrival *at;
    int count;
} arrivals;

/* Returns --strategy=WORD with an absolute path for FILE or FILE:NAME, valid in any folder. */
static char *option_of(const char *word) {
    char *option = NULL, *colon = strrchr(word, ':'), *whole = realpath(word, NULL), *before = NULL;
    if (!whole && colon && (before = strndup(word, (size_t)(colon - word))))
        whole = realpath(before, NULL);
    if (asprintf(&option, "--strategy=%s%s", whole ? whole : word, whole && before ? colon : "") <
        0)
        ht_fail("no memory for a strategy");
    free(whole);
    free(before);
    return option;
}

/* Returns the newest request with this argument or strategy name; NULL: there is none. */
static Arrival *find(const char *word) {
    for (int a = arrivals.count - 1; a >= 0; a--)
        if (!strcmp(arrivals.at[a].word, word) ||
            (arrivals.at[a].name && !strcmp(arrivals.at[a].name, word)))
            return &arrivals.at[a];
    return NULL;
}

/* Returns the oldest request whose strategy is neither loaded nor refused; NULL: there is none. */
static Arrival *first_open(void) {
    for (int a = 0; a < arrivals.count; a++)
        if (arrivals.at[a].progress < TAKEN) return &arrivals.at[a];
    return NULL;
}

/* ---- compiling ---- */

static void refuse(Arrival *arrival, const char *reason) {
    arrival->progress = REFUSED;
    snprintf(arrival->reason, sizeof arrival->reason, "%s", reason);
}

/* Starts hetucc for a request; refuses the request if hetucc cannot be started. */
static void begin(Arrival *arrival) {
    char known[32], reason[REASON];
    arrival->object = recompile_file("arrival", (int)(arrival - arrivals.at), ".so", reason);
    if (!arrival->object) {
        refuse(arrival, reason);
        return;
    }
    snprintf(known, sizeof known, "--known=%d", recompile_strategies(arrival->recipe));
    arrival->maker = recompile_start(
        arrival->recipe, NULL,
        (const char *[]){arrival->option, known, "-o", arrival->object, NULL}, NULL, reason);
    arrival->progress = MADE_NOW;
    if (!arrival->maker) refuse(arrival, reason);
}

/* Starts hetucc for the oldest open request, or marks it THERE or REFUSED if hetucc has ended. */
static void advance(void) {
    Arrival *arrival = first_open();
    if (arrival && arrival->progress == ASKED) begin(arrival);
    if (!arrival || arrival->progress != MADE_NOW) return;
    int status = recompile_ended(arrival->maker, false);
    if (status < 0) return;
    if (!status) {
        arrival->progress = THERE;
        return;
    }
    unlink(arrival->object);
    char killed[REASON];
    snprintf(killed, sizeof killed, "hetucc was ended by signal %d (%s)%s",
             status - RECOMPILE_KILLED, plain_signal(status - RECOMPILE_KILLED),
             status - RECOMPILE_KILLED == SIGKILL ? ", as the system does where memory runs out"
                                                  : "");
    arrival->again = status >= RECOMPILE_KILLED;
    refuse(arrival, status > RECOMPILE_KILLED ? killed : "hetucc could not make it");
}

/* Returns whether an equal request is open, or was answered and would get the same answer again. */
static bool is_answered(const Arrival *asked) {
    for (const Arrival *before = asked - 1; before >= arrivals.at; before--)
        if (before->recipe == asked->recipe && !strcmp(before->option, asked->option) &&
            !strcmp(before->word, asked->word))
            return before->progress < TAKEN || (!before->again && before->stamp == asked->stamp);
    return false;
}

void prepare_request(int image, const char *word) {
    Arrival *grown = realloc(arrivals.at, sizeof *grown * (size_t)(arrivals.count + 1));
    if (!grown) ht_fail("no memory for a strategy");
    arrivals.at = grown;
    Arrival *arrival = &arrivals.at[arrivals.count++];
    *arrival = (Arrival){
        .recipe = recompile_command_of(image), .word = strdup(word), .option = option_of(word)};
    if (arrival->recipe && arrival->recipe->refuses) refuse(arrival, arrival->recipe->refuses);
    else if (!arrival->recipe)
        refuse(arrival, "the program was not compiled for strategies that arrive: ht_prepare must "
                        "be called in the source file of the "
                        "model, which is compiled for CPUs");
    else if (!image_at(image)->image->strategy)
        refuse(arrival, "the program was compiled without a strategy");
    else if ((arrival->stamp = recompile_stamp(arrival->recipe, arrival->option)) &&
             is_answered(arrival)) {
        free(arrival->word);
        free(arrival->option);
        arrivals.count--;
    }
    advance();
}

bool prepare_is_pending(const char *word) {
    const Arrival *arrival = find(word);
    return arrival && arrival->progress < TAKEN;
}

bool prepare_may_retry(const char *word) {
    const Arrival *arrival = find(word);
    return arrival && arrival->again;
}

/* Reads a request's object and deletes its file. Returns the object, *size bytes; free() it. After
 * an error, returns NULL, and the request is REFUSED. */
static void *read_object(Arrival *arrival, size_t *size) {
    struct stat found;
    const char *why;
    int file = file_open_own(arrival->object, &why);
    bool good = file >= 0 && !fstat(file, &found);
    char *bytes = good ? memory_array(found.st_size + 1, 1) : NULL;
    size_t at = 0;
    for (ssize_t count; good && at < (size_t)found.st_size &&
                        (count = read(file, bytes + at, (size_t)found.st_size - at)) > 0;)
        at += (size_t)count;
    if (file >= 0) close(file);
    unlink(arrival->object);
    if (good && at == (size_t)found.st_size) {
        *size = at;
        return bytes;
    }
    free(bytes);
    arrival->again = true;
    refuse(arrival, "what hetucc made cannot be read");
    return NULL;
}

bool prepare_any_pending(void) { return first_open() != NULL; }

void *prepare_next_compiled(size_t *size) {
    void *object = NULL;
    for (Arrival *arrival; !object && (arrival = first_open());) {
        advance();
        if (arrival->progress == THERE) object = read_object(arrival, size);
        else if (arrival->progress != REFUSED) break;
    }
    return object;
}

void prepare_close(void) {
    for (int a = 0; a < arrivals.count; a++)
        if (arrivals.at[a].progress == MADE_NOW) {
            kill(arrivals.at[a].maker, SIGTERM);
            waitpid(arrivals.at[a].maker, NULL, 0);
            unlink(arrivals.at[a].object);
        }
}

/* ---- taking ---- */

/* Creates an anonymous file in memory (memfd) and returns its descriptor; -1: failed. */
static int anonymous_file(void) {
    enum { EXECUTABLE = 0x10 }; // MFD_EXEC, which kernels before 6.3 do not know
    int file = memfd_create("hetu-arrival", MFD_CLOEXEC | MFD_ALLOW_SEALING | EXECUTABLE);
    return file < 0 && errno == EINVAL
               ? memfd_create("hetu-arrival", MFD_CLOEXEC | MFD_ALLOW_SEALING)
               : file;
}

/* A rank's refusal of an object. */
typedef struct Refusal {
    char reason[REASON]; // "": the rank accepts it
    bool lasts;          // the cause is the program, so that all strategies of its source fail
} Refusal;

/* Returns the hint for an error message of the dynamic loader; "": none. */
static const char *loader_hint(const char *error) {
    return strstr(error, "undefined symbol") ? "; link the program by hetucc, or with -rdynamic, "
                                               "and do not hide its functions (-fvisibility)"
                                             : "";
}

/* Loads an object from memory and returns its handle; NULL with a reason. The file stays open: the
 * loader identifies objects by path, here /proc/self/fd/N. */
static void *load(const void *object, size_t size, Refusal *refusal) {
    char path[64];
    int file = anonymous_file();
    size_t at = 0;
    for (ssize_t count;
         file >= 0 && at < size && (count = write(file, (const char *)object + at, size - at)) > 0;)
        at += (size_t)count;
    bool whole = at == size && !fcntl(file, F_ADD_SEALS,
                                      F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    locale_t own = c_locale_enter(); // else the loader's messages would be in main's language
    void *handle = whole ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    const char *error = handle ? NULL : whole ? dlerror() : plain_error(errno);
    c_locale_leave(own);
    if (error)
        snprintf(refusal->reason, REASON, "rank %d cannot load it: %s%s", world_rank(), error,
                 loader_hint(error));
    refusal->lasts = error && whole;
    if (file >= 0 && !handle) close(file);
    return handle;
}

/* Returns the number of the program's image that equals image `known`; -1 with a reason. */
static int find_known(const ht_image *known, char *reason) {
    const ht_image *near = NULL;
    for (int i = 0; i < image_count(); i++) {
        const ht_image *own = image_at(i)->image;
        if (strcmp(own->model, known->model) || !own->strategy ||
            strcmp(own->strategy, known->strategy) || own->trains != known->trains)
            continue;
        if (own->digest == known->digest) return i;
        near = own;
    }
    if (near)
        snprintf(reason, REASON,
                 "rank %d runs another program than the one that it was made for: %s under "
                 "strategy \"%s\" is %016llx (%s) there, and "
                 "%016llx (%s) here; its source, strategy files or hetucc have changed since it "
                 "was compiled: compile it again",
                 world_rank(), known->model, known->strategy, (unsigned long long)known->digest,
                 known->fingerprint, (unsigned long long)near->digest, near->fingerprint);
    else
        snprintf(reason, REASON, "rank %d runs a program without %s under strategy \"%s\"",
                 world_rank(), known->model, known->strategy);
    return -1;
}

/* Returns the program's addresses of the variables that a new image's model read, found by name in
 * the program's image `like`; free() them. Returns NULL with a reason if one is missing. */
static const volatile void *const *find_reads(const ht_image *fresh, const RegisteredImage *like,
                                              char *reason) {
    const volatile void **now = memory_array(fresh->read_count + 1, sizeof *now);
    for (int r = 0; r < fresh->read_count; r++) {
        const ht_image_read *read = &fresh->reads[r];
        for (int k = 0; k < like->image->read_count && !now[r]; k++) {
            const ht_image_read *own = &like->image->reads[k];
            if (!strcmp(own->name, read->name) && own->size == read->size &&
                own->first == read->first)
                now[r] = like->now[k];
        }
        if (!now[r]) {
            snprintf(reason, REASON, "%s reads \"%s\" (%s) under it alone", fresh->model,
                     read->name, read->at);
            free(now);
            return NULL;
        }
    }
    return now;
}

/* A loaded object, linked to the images of the program. */
typedef struct Joined {
    const ht_arrival *arrival;
    int *known; // by known image of the object: number of the program's equal image
    const volatile void *const **now; // by new image: addresses of its variables
} Joined;

/* Returns whether there are enough ranks for the arrived strategies; else writes the reason. */
static bool check_ranks(const ht_arrival *arrival, char *reason) {
    for (int f = 0; f < arrival->fresh_count; f++)
        if (image_devices(arrival->fresh[f]) > world_size()) {
            snprintf(reason, REASON, "it is for %d devices, and %d ranks run the program",
                     image_devices(arrival->fresh[f]), world_size());
            return false;
        }
    return true;
}

/* Finds the program's images and variables for an object, or returns false with a reason. */
static bool join(const ht_arrival *arrival, Joined *joined, Refusal *refusal) {
    char *reason = refusal->reason;
    refusal->lasts = true;
    if (!arrival || arrival->version != HT_IMAGE_VERSION || !arrival->fresh_count) {
        snprintf(reason, REASON,
                 "it was made by another version of hetucc than this program's: compile the "
                 "program again");
        return false;
    }
    *joined = (Joined){arrival, memory_array(arrival->known_count, sizeof(int)),
                       memory_array(arrival->fresh_count, sizeof(void *))};
    for (int k = 0; k < arrival->known_count; k++)
        if ((joined->known[k] = find_known(arrival->known[k], reason)) < 0) return false;
    refusal->lasts = false;
    for (int f = 0; f < arrival->fresh_count; f++)
        if (!(joined->now[f] =
                  find_reads(arrival->fresh[f], image_at(joined->known[arrival->like[f]]), reason)))
            return false;
    return check_ranks(arrival, reason);
}

/* Returns the program's image that equals an object's `image`; `image` itself if it is new. */
static const ht_image *own_image(const Joined *joined, const ht_image *image) {
    for (int k = 0; k < joined->arrival->known_count; k++)
        if (joined->arrival->known[k] == image) return image_at(joined->known[k])->image;
    return image;
}

/* Registers the new images and migrations of an object, which stays loaded to the end. */
static void register_joined(const Joined *joined) {
    const ht_arrival *arrival = joined->arrival;
    int count = arrival->migrations ? arrival->migrations->count : 0;
    ht_migration *rows = memory_array(count, sizeof *rows);
    ht_migrations *migrations = memory_array(1, sizeof *migrations);
    for (int m = 0; m < count; m++) {
        rows[m] = arrival->migrations->at[m];
        rows[m].from = own_image(joined, rows[m].from);
        rows[m].to = own_image(joined, rows[m].to);
    }
    *migrations = (ht_migrations){count, rows};
    for (int f = 0; f < arrival->fresh_count; f++) {
        RegisteredImage like = *image_at(joined->known[arrival->like[f]]);
        ht_register(arrival->fresh[f], like.model, like.updates, joined->now[f]);
    }
    ht_register_migrations(migrations);
}

/* Gathers the refusals of all ranks in `all` and returns the first; NULL: no rank refuses. */
static const Refusal *gather_refusals(const Refusal *mine, Refusal *all) {
    world_gather(mine, sizeof *mine, all);
    for (int rank = 0; rank < world_size(); rank++)
        if (*all[rank].reason) return &all[rank];
    return NULL;
}

/* Notes the result of a request on rank 0. An accepted strategy is passed to later hetucc runs; a
 * lasting refusal stops further requests of the source. */
static void note_answer(Arrival *arrival, const Refusal *refusal, const ht_arrival *found) {
    const char *name = found && found->fresh_count ? found->fresh[0]->strategy : NULL;
    if (!refusal) {
        recompile_add(arrival->recipe, arrival->option);
        arrival->name = name;
        arrival->progress = TAKEN;
        return;
    }
    arrival->name = name ? strdup(name) : NULL;
    refuse(arrival, refusal->reason);
    if (refusal->lasts) arrival->recipe->refuses = strdup(refusal->reason);
}

void prepare_load(const void *object, size_t size) {
    Refusal mine = {0}, *all = memory_array(world_size(), sizeof *all);
    Joined joined = {0};
    void *handle = load(object, size, &mine);
    const ht_arrival *arrival = handle ? dlsym(handle, "ht_arriving") : NULL;
    bool good = handle && join(arrival, &joined, &mine);
    if (good && image_under(joined.known[arrival->like[0]], arrival->fresh[0]->strategy) >= 0)
        snprintf(mine.reason, REASON, "the program has a strategy \"%s\" already",
                 arrival->fresh[0]->strategy);
    const Refusal *refusal = gather_refusals(&mine, all);
    if (!refusal) register_joined(&joined);
    if (world_rank() == 0) note_answer(first_open(), refusal, arrival);
    if (refusal && handle) dlclose(handle);
    free(joined.known);
    free(all);
}

const char *prepare_strategy_name(const char *word, const char **reason) {
    const Arrival *arrival = find(word);
    for (int a = arrivals.count - 1; !arrival && a >= 0; a--)
        arrival =
            arrivals.at[a].progress == REFUSED && !arrivals.at[a].name ? &arrivals.at[a] : NULL;
    *reason = arrival && arrival->progress == REFUSED ? arrival->reason : NULL;
    return !arrival ? word : arrival->progress == TAKEN ? arrival->name : *reason ? NULL : word;
}
