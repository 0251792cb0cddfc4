/* The file through which ranks without MPI meet: rank 0 writes where it listens, the others read
 * it.
 *
 * Either the user chose its path (HETU_RENDEZVOUS), or it lies in a folder of a name that nobody
 * can foresee, which this user alone may enter, below /dev/shm; or beside the path, PATH+..., where
 * something of another user's is at it. What is not a file of this user's alone is not read: no
 * link, no pipe, nothing of others.
 */
#ifndef TRANSPORT_MEET_RENDEZVOUS_FILE_H
#define TRANSPORT_MEET_RENDEZVOUS_FILE_H

#include "transport/meet/rendezvous.h"
#include "transport/fabric/sockets.h"

typedef struct RendezvousFile {
    char magic[8];
    int32_t format, size, process;
    SocketKey ask, answer; // what callers present, and what rank 0 presents to them
    uint64_t node;
    SocketPlace place;
} RendezvousFile;

/* Whether only this machine sees the file, so that all ranks run here. */
bool rendezvous_file_is_local(const Launch *launch);

/* Writes it, over one that an earlier run left. Ends the program when something else is in its
 * place. */
void rendezvous_file_write(const Launch *launch, const RendezvousFile *record);

/* False when there is none yet. Ends the program when something else is in its place. */
bool rendezvous_file_read(const Launch *launch, RendezvousFile *record);

/* Writes it again where somebody has removed it: a rank of an earlier start at the same path that
 * ends late, or a tool that clears folders. */
void rendezvous_file_keep(const Launch *launch, const RendezvousFile *record);

/* Removes what rendezvous_file_write wrote, unless a later start has replaced it. */
void rendezvous_file_remove(void);

/* Whether a process of this machine made what has such a mark in its name, "NODE.PROCESS", and is
 * dead. */
bool rendezvous_file_of_dead(const char *mark);

/* For a process that ends before its time: removes what it wrote, and what dead processes have left
 * where this run meets. This one writes nothing any more: its other threads are held up where they
 * would. */
void rendezvous_file_abandon(const Launch *launch);

#endif
