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

/* A message to another rank, or from one. Its memory stays until it is done. */
typedef struct Post {
    HostTransfer transfer;
    int tag;
    bool sends;
    void *state; // of what carries it
} Post;

/* Makes the lanes, and closes them; all ranks together. */
void channels_open(void);
void channels_close(void);

/* The number of tags, which begin at 0. */
int channels_tags(void);

/* Begins a message; moves what can be moved now, and says whether all of it was. */
void post_begin(int lane, Post *post);
bool post_done(int lane, Post *post);

#endif
