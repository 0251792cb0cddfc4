/* The file through which ranks without MPI meet: rank 0 writes where it listens, the others read
 * it.
 *
 * Either the user chose its path (HETU_RENDEZVOUS), or it lies in a folder of a name that nobody
 * can foresee, which this user alone may enter, below /dev/shm; or beside the path, PATH+..., where
 * something of another user's is at it. What is not a file of this user's alone is not read: no
 * link, no pipe, nothing of others.
 */
#ifndef TRANSPORT_MEET_INVITATION_H
#define TRANSPORT_MEET_INVITATION_H

#include "transport/meet/rendezvous.h"
#include "transport/fabric/sockets.h"

typedef struct Invitation {
    char magic[8];
    int32_t format, size, process;
    SocketKey ask, answer; // what callers present, and what rank 0 presents to them
    uint64_t node;
    SocketPlace place;
} Invitation;

/* Whether only this machine sees the file, so that all ranks run here. */
bool invitation_is_local(const Launch *launch);

/* Writes it, over one that an earlier run left. Ends the program when something else is in its
 * place. */
void invitation_write(const Launch *launch, const Invitation *invitation);

/* False when there is none yet. Ends the program when something else is in its place. */
bool invitation_read(const Launch *launch, Invitation *invitation);

/* Writes it again where somebody has removed it: a rank of an earlier start at the same path that
 * ends late, or a tool that clears folders. */
void invitation_keep(const Launch *launch, const Invitation *invitation);

/* Removes what invitation_write wrote, unless a later start has replaced it. */
void invitation_remove(void);

/* Whether a process of this machine made what has such a mark in its name, "NODE.PROCESS", and is
 * dead. */
bool invitation_of_dead(const char *mark);

/* For a process that ends before its time: removes what it wrote, and what dead processes have left
 * where this run meets. This one writes nothing any more: its other threads are held up where they
 * would. */
void invitation_abandon(const Launch *launch);

#endif
