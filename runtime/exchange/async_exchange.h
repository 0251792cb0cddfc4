/* Async exchanges: conversions that overlap with computing.
 *
 * An async exchange is one run of a plan. The rank continues with other work until it needs the
 * result. Async exchanges with the same tag run in the order in which they begin. Exchanges with
 * different tags are independent, but `after` may name exchanges that must end before one begins,
 * because the later one uses their memory.
 *
 *     AsyncExchange async = {.run = run, .queue = HT_QUEUE_STAGES, .tag = 7, .where = "gpt.c:42"};
 *     async_exchange_begin(&async);
 *     ...
 *     async_exchange_end(&async);
 *     async_exchange_forget(&async);
 *
 * On host memory each queue has a thread, which drives the messages of the queue's async exchanges
 * on its own lane (transport/post.h), else sleeps. All functions here are for the main thread. */
#pragma once

#include "exchange/channel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct AsyncExchange {
    ChannelRun run;
    ht_queue queue;
    int tag;           // message tag of this plan, equal on all its ranks
    const char *where; // "gpt.c:42"
    int after_count;
    /* Exchanges that must end before this exchange begins; their `runs` must equal its `runs`. */
    struct AsyncExchange **after;
    int64_t runs; // number of runs that have begun
    /* Private to the channel. */
    bool ended;
    struct AsyncExchange *next; // next in the queue
    void *state;
    void *kept; // resources that the channel keeps between runs
} AsyncExchange;

/* Destroys the threads and resources of async exchanges, collectively on all ranks. */
void async_exchanges_close(void);

/* Starts an async exchange and returns. The exchange begins after earlier work on the device. */
void async_exchange_begin(AsyncExchange *async);

/* Makes the host, or on a GPU all work issued to the device from now on, wait for the exchange. */
void async_exchange_end(AsyncExchange *async);

/* Frees what an async exchange has kept between runs. The exchange must not be running. */
void async_exchange_forget(AsyncExchange *async);

/* These functions do the same on threads, for channels that exchange through host memory.
 * async_exchanges_prepare starts the threads unless they run already or no plan overlaps with
 * computing. All ranks call it together. */
void async_exchanges_prepare(const ChannelPlans *plans);
void async_exchange_begin_on_thread(AsyncExchange *async);
void async_exchange_end_on_thread(AsyncExchange *async);
void async_exchange_forget_on_thread(AsyncExchange *async);

#ifdef __cplusplus
}
#endif
