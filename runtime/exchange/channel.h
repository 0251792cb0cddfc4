/* A channel carries out the steps of conversions (<hetu/reshard.h>): local moves, and what devices
 * exchange. reshard.c walks the tables and hands every step to the channel of the program.
 *
 *     channel_mpi      host memory, over MPI
 *     channel_fabric   host memory, between ranks that met through a file
 *                      (transport/fabric/fabric.h)
 *
 * A device with memory of its own brings its own channels (cuda/streams.h).
 */
#ifndef EXCHANGE_CHANNEL_H
#define EXCHANGE_CHANNEL_H

#include "transport/transfer.h"

#include <hetu/rt.h>

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One run of a device's part of a plan, and its buffers. */
typedef struct ChannelRun {
    const ht_reshard *plan;
    const ht_pipeline *pipeline;   // whose positions the plan's devices are; NULL: they are ranks
    const int *replica_group;      // whose places the plan's devices are; NULL: they are themselves
    const ht_reshard_device *part; // NULL: the device has none
    const void *const *from;       // by tensor
    void *const *to;
    char *scratch;
} ChannelRun;

/* The plans of a program, and the pipelines whose positions their devices are. */
typedef struct ChannelPlans {
    int count, pipeline_count;
    const ht_reshard *const *plan;
    const unsigned *queues; // by plan: the queues whose transfers run it beside computing
                            // (exchange/async_exchange.h), a bit 1 << HT_QUEUE_... each; 0: none
    const ht_pipeline *pipelines;
} ChannelPlans;

struct AsyncExchange;

/* Memory of a device as the threads of async exchanges see it. Each thread has a lane, on which its
 * work is done in order. */
typedef struct ChannelMemory {
    void (*prepare)(void);      // in the main thread, before any other
    void (*attach)(int lane);   // in a thread that begins
    void (*detach)(int lane);   // and in one that ends
    void *(*mark)(void);        // in the main thread: what it has issued to the device so far
    bool (*passed)(void *mark); // whether that is done; then the mark is gone
    void (*move)(int lane, const ChannelRun *run,
                 const ht_reshard_step *step); // begins a step of moves
    void (*copy)(int lane, void *to, const void *from, int64_t bytes,
                 bool up);         // begins a copy from the host, or to it
    bool (*idle)(int lane);        // whether all that was begun is done
    void *(*alloc)(int64_t bytes); // host memory for such copies
    void (*free)(void *memory);
} ChannelMemory;

typedef struct Channel {
    /* Makes what the groups of some plans need; all ranks together, before they run. NULL:
     * nothing. */
    void (*prepare)(const ChannelPlans *plans);
    /* Before the first and after the last step of a run; NULL: nothing. */
    void (*begin)(const ChannelRun *run);
    void (*end)(const ChannelRun *run);
    /* A step of moves, and one of any other verb, with this device's place in the step's group. */
    void (*move)(const ChannelRun *run, const ht_reshard_step *step);
    void (*communicate)(const ChannelRun *run, const ht_reshard_step *step);
    /* These are as those of exchange/async_exchange.h. */
    void (*begin_async_exchange)(struct AsyncExchange *async);
    void (*end_async_exchange)(struct AsyncExchange *async);
    void (*forget_async_exchange)(struct AsyncExchange *async);
    const ChannelMemory *memory; // NULL: it is the host's
    /* Ends the program when something went wrong that no call has reported; NULL: cannot be. */
    void (*check)(void);
    /* Gives back what prepare made; all ranks together. NULL: nothing. */
    void (*close)(void);
    bool records; // whether a device can record its steps and replay them
} Channel;

extern const Channel channel_mpi, channel_fabric;

/* The channel of host memory: MPI, unless the ranks met otherwise. */
const Channel *channel_of_host(void);

/* The channel of device memory: that of host memory, unless the device has said that it has
 * another. */
const Channel *channel_of_device(void);
void channel_use(const Channel *of_device);

/* What a rank does of a plan: as the device at `position` in its pipeline, or as itself. The
 * buffers are left to the caller. */
ChannelRun channel_run(const ht_reshard *plan, const ht_pipeline *pipeline, int position, int rank);

/* The same as any device of one of the plan's replica groups: of its part of the plan, only whose
 * places its devices are. */
ChannelRun channel_replica_group_run(const ht_reshard *plan, const ht_pipeline *pipeline,
                                     int replica_group);

/* Carries out a run; the ranks of the plan do it together. */
void channel_carry_out(const ChannelRun *run);

/* The pipeline of a rank, and its position there; NULL: it is in none. */
const ht_pipeline *channel_pipeline(const ChannelPlans *plans, int rank, int *position);

/* The rank of a plan's device. */
int channel_rank(const ChannelRun *run, int device);

/* What is `offset` elements of a type into a buffer. */
char *channel_address(const ChannelRun *run, ht_place place, int tensor, int64_t offset,
                      ht_dtype dtype);

/* What is `at` elements into a block of a step. */
char *channel_block(const ChannelRun *run, const ht_reshard_step *step, const ht_block *block,
                    int64_t at);

/* The messages of a step HT_EXCHANGE: those that are sent, then those that are received. */
void channel_messages(const ChannelRun *run, const ht_reshard_step *step, HostTransfer *messages);

/* A device's position in a group. */
int channel_position(const ht_group *group, int device);

/* Whether a step communicates, and a word for its verb: "all-reduce". */
bool channel_communicates(const ht_reshard_step *step);
const char *channel_verb(ht_verb verb);

/* Carries out a step of moves on host memory. */
void channel_move_on_host(const ChannelRun *run, const ht_reshard_step *step);

#ifdef __cplusplus
}
#endif

#endif
