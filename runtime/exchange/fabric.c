/* Conversions between ranks that met through a file (transport/fabric/fabric.h), on host memory. */
#include "exchange/channel.h"
#include "exchange/async_exchange.h"
#include "exchange/rounds.h"
#include "transport/fabric/fabric.h"

static void fabric_communicate(const ChannelRun *run, const ht_reshard_step *step) {
    Rounds rounds = rounds_open(run, step);
    while (rounds_next(&rounds))
        fabric_exchange(rounds.sends, rounds.send_count, rounds.receives, rounds.receive_count);
}

const Channel channel_fabric = {.prepare = async_exchanges_prepare,
                                .move = channel_move_on_host,
                                .communicate = fabric_communicate,
                                .begin_async_exchange = async_exchange_begin_on_thread,
                                .end_async_exchange = async_exchange_end_on_thread,
                                .forget_async_exchange = async_exchange_forget_on_thread};
