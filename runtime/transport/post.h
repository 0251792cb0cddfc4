/* Nonblocking messages between ranks, on lanes (independent channels of messages).
 *
 *     Post post = {.transfer = {data, bytes, 3}, .tag = 7, .sends = true};
 *     post_begin(0, &post);
 *     while (!post_done(0, &post)) compute a little;
 *
 * Lanes do not wait for each other, nor for other communication. On a lane, messages between two
 * ranks match in order if their tags are equal, and independently otherwise. A message without a
 * receiver blocks no other message. Only one thread uses a lane. */
#pragma once

#include "transport/transfer.h"

#include <stdbool.h>

enum { LANES = 2 };

/* A nonblocking message to or from another rank. Keep it and its data until post_done is true. */
typedef struct Post {
    HostTransfer transfer;
    int tag;
    bool sends;
    void *state; // private to the transport
} Post;

/* Open and close the lanes. All ranks call them together. */
void channels_open(void);
void channels_close(void);

/* Returns the number of tags; valid tags are 0 to this number minus 1. */
int channels_tags(void);

/* post_begin starts a nonblocking message. post_done advances it; true: it is complete. */
void post_begin(int lane, Post *post);
bool post_done(int lane, Post *post);
