/* The rendezvous file: rank 0 writes the address where it listens, the other ranks read it.
 *
 * Its path is one of these:
 *
 *     the path that the user chose (HETU_RENDEZVOUS)
 *     a file in a private folder beside that path, PATH+..., if another user's file is at the path
 *     a file in a private folder of random name below /dev/shm or /tmp
 *
 * A file is read only if this user owns it and no other may access it; links and pipes never. */
#pragma once

#include "transport/meet/rendezvous.h"
#include "transport/fabric/sockets.h"

typedef struct RendezvousFile {
    char magic[8];
    int32_t format, size, process; // version of this struct; number of ranks; rank 0's process
    SocketKey ask, answer;         // keys: callers present `ask`, rank 0 presents `answer`
    uint64_t node;
    SocketPlace place;
} RendezvousFile;

/* Returns whether only this machine sees the file, so that all ranks are on this machine. */
bool rendezvous_file_is_local(const Launch *launch);

/* Writes the file, over any of an earlier run. Ends the program if the path is something else. */
void rendezvous_file_write(const Launch *launch, const RendezvousFile *record);

/* Reads the file; false: there is none yet. Ends the program if the path is something else. */
bool rendezvous_file_read(const Launch *launch, RendezvousFile *record);

/* Writes the file again if it was removed, such as by a rank of an earlier run that ends late. */
void rendezvous_file_keep(const Launch *launch, const RendezvousFile *record);

/* Removes the file, unless a later run has replaced it. */
void rendezvous_file_remove(void);

/* Returns whether `mark`, NODE.PROCESS in a file's name, names a dead process of this machine. */
bool rendezvous_file_of_dead(const char *mark);

/* Removes the file before this process ends early, and dead processes' files in the same folders.
 * Afterwards no thread of this process writes the file. */
void rendezvous_file_abandon(const Launch *launch);
