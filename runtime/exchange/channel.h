/* A channel carries out the steps of conversions (<hetu/reshard.h>): local moves, and communication
 * between devices. reshard.c passes each step to the program's channel.
 *
 *     channel_mpi      host memory, over MPI
 *     channel_fabric   host memory, between ranks without MPI (transport/fabric/fabric.h)
 *
 * A GPU has its own channels (cuda/choose_channel.cu). */
#pragma once

#include "transport/transfer.h"

#include <hetu/rt.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A run of a conversion plan by one device, with its buffers. */
typedef struct ChannelRun {
    const ht_reshard *plan;
    const ht_pipeline *pipeline;   // the plan's device numbers are positions in it; NULL: ranks
    const int *replica_group;      // the plan's device numbers are indices into it; NULL: no group
    const ht_reshard_device *part; // the device's part of the plan; NULL: it has none
    const void *const *from;       // by tensor
    void *const *to;
    char *scratch;
} ChannelRun;

/* All conversion plans of a program, and the pipelines that their device numbers refer to. */
typedef struct ChannelPlans {
    int count, pipeline_count;
    const ht_reshard *const *plan;
    /* By plan: bit mask (1 << HT_QUEUE_...) of the queues whose transfers use the plan. */
    const unsigned *queues;
    const ht_pipeline *pipelines;
} ChannelPlans;

struct AsyncExchange;

/* Operations on device memory that the threads of async exchanges call. Each thread has one lane (a
 * stream), which runs its work in order. */
typedef struct ChannelMemory {
    void (*prepare)(void);      // called first, in the main thread
    void (*attach)(int lane);   // called in a thread that begins
    void (*detach)(int lane);   // called in a thread that ends
    void *(*mark)(void);        // in the main thread: marks all work issued to the device so far
    bool (*passed)(void *mark); // returns whether that work is done; if so, frees the mark
    /* Starts a step of local moves. */
    void (*move)(int lane, const ChannelRun *run, const ht_reshard_step *step);
    /* Starts a copy from host to device (`up`), or from device to host. */
    void (*copy)(int lane, void *to, const void *from, int64_t bytes, bool up);
    bool (*idle)(int lane);        // returns whether all started work is done
    void *(*alloc)(int64_t bytes); // allocates host memory for these copies
    void (*free)(void *memory);
} ChannelMemory;

typedef struct Channel {
    /* Creates the communicators of the plans' groups, collectively, before runs. May be NULL. */
    void (*prepare)(const ChannelPlans *plans);
    /* Called before the first and after the last step of a run. NULL: nothing to do. */
    void (*begin)(const ChannelRun *run);
    void (*end)(const ChannelRun *run);
    /* `move` runs a step of local copies, `communicate` any other step, such as an all-reduce. */
    void (*move)(const ChannelRun *run, const ht_reshard_step *step);
    void (*communicate)(const ChannelRun *run, const ht_reshard_step *step);
    /* The functions of the same names in exchange/async_exchange.h call these. */
    void (*begin_async_exchange)(struct AsyncExchange *async);
    void (*end_async_exchange)(struct AsyncExchange *async);
    void (*forget_async_exchange)(struct AsyncExchange *async);
    const ChannelMemory *memory; // NULL: the channel works on host memory
    /* Ends the program if an asynchronous error has occurred. NULL: there are no such errors. */
    void (*check)(void);
    /* Destroys what `prepare` created, collectively on all ranks. NULL: nothing to do. */
    void (*close)(void);
    bool records; // devices can record its steps and replay them
} Channel;

extern const Channel channel_mpi, channel_fabric;

/* Returns the channel for host memory: channel_fabric if fabric_active(), else channel_mpi. */
const Channel *channel_of_host(void);

/* Return and set the channel for device memory; without channel_use, it is channel_of_host. */
const Channel *channel_of_device(void);
void channel_use(const Channel *of_device);

/* Returns the run of a plan by one rank: by device `position` of `pipeline`, or by device `rank` if
 * the plan is for no pipeline template (kind -1). The caller fills in the buffers. */
ChannelRun channel_run(const ht_reshard *plan, const ht_pipeline *pipeline, int position, int rank);

/* Returns the run of a plan for a replica group, with the device mapping but no device's part. */
ChannelRun channel_replica_group_run(const ht_reshard *plan, const ht_pipeline *pipeline,
                                     int replica_group);

/* Executes all steps of a run, collectively on all ranks of the plan. */
void channel_carry_out(const ChannelRun *run);

/* Returns the pipeline that contains a rank and sets *position; NULL: none contains it. */
const ht_pipeline *channel_pipeline(const ChannelPlans *plans, int rank, int *position);

/* Returns the rank that a plan's device number stands for in this run. */
int channel_rank(const ChannelRun *run, int device);

/* Returns the address `offset` elements of type dtype into a buffer of the run. */
char *channel_address(const ChannelRun *run, ht_place place, int tensor, int64_t offset,
                      ht_dtype dtype);

/* Returns the address `at` elements into a block of a step. */
char *channel_block(const ChannelRun *run, const ht_reshard_step *step, const ht_block *block,
                    int64_t at);

/* Fills `messages` with the messages of an HT_EXCHANGE step: first the sends, then the receives. */
void channel_messages(const ChannelRun *run, const ht_reshard_step *step, HostTransfer *messages);

/* Returns the index of a device in a group; 0 if it is not in the group. */
int channel_position(const ht_group *group, int device);

/* Return whether a step involves other ranks, and the name of a verb, such as "all-reduce". */
bool channel_communicates(const ht_reshard_step *step);
const char *channel_verb(ht_verb verb);

/* Carries out a step of local moves on host memory. */
void channel_move_on_host(const ChannelRun *run, const ht_reshard_step *step);

/* Independent steps (exchange/independent_steps.c), which a channel may issue together (NCCL). */

/* Returns the next collective after `step` that can be issued together with the collectives from
 * `first` to `step`: of the same verb and group, and independent of them. Only local moves, which
 * run first, may lie in between. Returns NULL if there is none, or if the devices of the plan have
 * different steps, since all members of a group must issue the same calls. */
const ht_reshard_step *steps_next_together(const ChannelRun *run, const ht_reshard_step *first,
                                           const ht_reshard_step *step);

#ifdef __cplusplus
}
#endif
