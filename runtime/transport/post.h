/* Messages that are under way while their rank does something else.
 *
 * They go on lanes that do not wait for each other, nor for anything else that ranks exchange. On a
 * lane, messages between two ranks that have one tag meet in their order, those of different tags
 * in any; a message that nobody receives yet holds up no other. One thread uses a lane: it begins
 * messages, and asks for each again and again until it is done.
 */
#ifndef TRANSPORT_POST_H
#define TRANSPORT_POST_H

#include "transport/transfer.h"

#include <stdbool.h>

enum { LANES = 2 };

/* A nonblocking message to or from another rank. The caller keeps its memory until post_done
 * returns true. */
typedef struct Post {
    HostTransfer transfer;
    int tag;
    bool sends;
    void *state; // of what carries it
} Post;

/* Open and close the lanes, collectively on all ranks. */
void channels_open(void);
void channels_close(void);

/* Returns the number of tags; valid tags are 0 to this number minus 1. */
int channels_tags(void);

/* post_begin starts a nonblocking message. post_done makes progress on it and returns whether it is
 * complete. */
void post_begin(int lane, Post *post);
bool post_done(int lane, Post *post);

#endif
