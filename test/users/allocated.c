/* Preloaded: the most bytes of tensors that a rank has at a time, as the runtime asks its device for them, into the file ALLOCATED.RANK. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 4096 };

static struct {
    void *at;
    int64_t bytes;
} blocks[MOST];
static int64_t live, most;

void *device_alloc(int64_t bytes);
void device_free(void *memory);

void *device_alloc(int64_t bytes)
{
    void *(*real)(int64_t bytes) = (void *(*)(int64_t))dlsym(RTLD_NEXT, "device_alloc");
    void *memory = real(bytes);
    int i = 0;
    while (i < MOST - 1 && blocks[i].at)
        i++;
    blocks[i].at = memory;
    blocks[i].bytes = bytes;
    live += bytes;
    most = live > most ? live : most;
    return memory;
}

void device_free(void *memory)
{
    void (*real)(void *memory) = (void (*)(void *))dlsym(RTLD_NEXT, "device_free");
    for (int i = 0; memory && i < MOST; i++)
        if (blocks[i].at == memory) {
            live -= blocks[i].bytes;
            blocks[i].at = NULL;
        }
    real(memory);
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("ALLOCATED"), *rank = getenv(getenv("HETU_RANK") ? "HETU_RANK" : "OMPI_COMM_WORLD_RANK");
    char name[4096];
    if (!path || !most)
        return;
    snprintf(name, sizeof name, "%s.%s", path, rank ? rank : "0");
    FILE *file = fopen(name, "w");
    if (!file)
        return;
    fprintf(file, "%lld\n", (long long)most);
    fclose(file);
}
