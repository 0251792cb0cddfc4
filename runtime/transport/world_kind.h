/* Interface of a transport (MPI or fabric); world.c chooses one. */
#pragma once

#include "transport/post.h"

#include <stdbool.h>

/* This rank and the number of ranks, in the program and (node_*) on this rank's host. */
typedef struct WorldPlace {
    int rank, size, node_rank, node_size;
} WorldPlace;

typedef struct WorldKind {
    /* Returns whether, by the environment, a launcher started this process for this transport. */
    bool (*launched)(void);
    WorldPlace (*open)(int *argc, char ***argv, bool threads);
    void (*close)(void);
    /* Ends all ranks; may return if no other rank is left. NULL: not needed. */
    void (*abort)(int status);
    void (*abandon)(void); // removes the files of an unfinished open; NULL: not needed
    void (*forget)(void);  // closes a forked child process's connections; NULL: not needed
    void (*check)(void);   // carries out world_check; NULL: not needed
    bool ended_together;   // the launcher ends all ranks when one is gone
    void (*broadcast)(void *data, size_t bytes); // up to `least`: see world_... of world.h
    void (*gather)(const void *mine, size_t bytes, void *all);
    void (*exchange)(const HostTransfer *sends, int send_count, const HostTransfer *receives,
                     int receive_count);
    int (*least)(int mine);
    void (*open_lanes)(void); // up to `done`: see post.h
    void (*close_lanes)(void);
    int (*tags)(void);
    void (*begin)(int lane, Post *post);
    bool (*done)(int lane, Post *post);
} WorldKind;

extern const WorldKind world_fabric; // transport/fabric/fabric.c
#ifdef HETU_MPI
extern const WorldKind world_mpi; // transport/mpi.c
#endif
