/* Interface of a transport (MPI or fabric); world.c chooses one. */
#ifndef TRANSPORT_WORLD_KIND_H
#define TRANSPORT_WORLD_KIND_H

#include "transport/post.h"

#include <stdbool.h>

/* Rank and number of ranks, in the program and on this host. */
typedef struct WorldPlace {
    int rank, size, node_rank, node_size;
} WorldPlace;

typedef struct WorldKind {
    bool (*launched)(void); // whether the environment says that this process is one of several
                            // ranks connected so
    WorldPlace (*open)(int *argc, char ***argv, bool threads);
    void (*close)(void);
    void (*abort)(int status); // ends all ranks; may return when only this process is left to end;
                               // NULL: nothing
    void (*abandon)(void);     // removes what an unfinished open has left behind; NULL: nothing
    void (*forget)(void); // in a child process: gives up its copies of connections; NULL: nothing
    void (*check)(void);  // NULL: nothing
    bool ended_together;  // whether a launcher ends all ranks when one is gone
    void (*broadcast)(void *data, size_t bytes); // these are as those of world.h
    void (*gather)(const void *mine, size_t bytes, void *all);
    void (*exchange)(const HostTransfer *sends, int send_count, const HostTransfer *receives,
                     int receive_count);
    int (*least)(int mine);
    void (*open_lanes)(void); // these are as those of post.h
    void (*close_lanes)(void);
    int (*tags)(void);
    void (*begin)(int lane, Post *post);
    bool (*done)(int lane, Post *post);
} WorldKind;

extern const WorldKind world_fabric; // transport/fabric/fabric.c
#ifdef HETU_MPI
extern const WorldKind world_mpi; // transport/mpi.c
#endif

#endif
