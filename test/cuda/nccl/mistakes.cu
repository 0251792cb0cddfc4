/* Mistakes that the stand-in for NCCL must see: on two ranks, `mistakes NAME` makes one; `mistakes none` makes none. */
#include <cuda_runtime.h>
#include <nccl.h>

#include <mpi.h>

#include <stdio.h>
#include <string>

static int rank, size;
static cudaStream_t stream, other_stream;
static ncclComm_t world;
static float *a, *b;

static const size_t COUNT = 64;

static void all_reduce(size_t count, ncclDataType_t type = ncclFloat32, ncclRedOp_t op = ncclSum)
{
    ncclAllReduce(a, b, count, type, op, world, stream);
}

static void message(bool send, size_t count, ncclDataType_t type = ncclFloat32)
{
    if (send)
        ncclSend(a, count, type, 1 - rank, world, stream);
    else
        ncclRecv(b, count, type, 1 - rank, world, stream);
}

static void pair_of_reduces(bool grouped)
{
    if (grouped)
        ncclGroupStart();
    all_reduce(8);
    all_reduce(16);
    if (grouped)
        ncclGroupEnd();
}

static void make(const std::string &what)
{
    bool first = rank == 0;
    if (what == "count")
        all_reduce(first ? 10 : 12);
    else if (what == "type")
        all_reduce(10, first ? ncclFloat32 : ncclInt32);
    else if (what == "operation")
        all_reduce(10, ncclFloat32, first ? ncclSum : ncclMax);
    else if (what == "root")
        ncclBroadcast(a, b, 10, ncclFloat32, first ? 0 : 1, world, stream);
    else if (what == "order") {
        if (first)
            all_reduce(10);
        ncclAllGather(a, b, 10, ncclFloat32, world, stream);
        if (!first)
            all_reduce(10);
    } else if (what == "missing") {
        if (first)
            all_reduce(10);
    } else if (what == "group")
        pair_of_reduces(first);
    else if (what == "message-count")
        message(first, first ? 10 : 12);
    else if (what == "message-type")
        message(first, 10, first ? ncclFloat32 : ncclInt32);
    else if (what == "message-missing") {
        if (!first)
            message(false, 10);
    } else if (what == "both-send")
        message(true, 10);
    else if (what == "stream") {
        all_reduce(10);
        ncclAllReduce(a, b, 10, ncclFloat32, ncclSum, world, other_stream);
    } else if (what == "host-memory") {
        static float host[10];
        ncclAllReduce(host, b, 10, ncclFloat32, ncclSum, world, stream);
    } else if (what == "too-long")
        all_reduce(COUNT + 1);
    else if (what == "overlap")
        ncclAllReduce(a, a + 1, 10, ncclFloat32, ncclSum, world, stream);
    else if (what == "share") {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        ncclComm_t part;
        config.splitShare = 1;
        ncclCommSplit(world, 0, rank, &part, &config);
    } else if (what == "graph") {
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
        all_reduce(10);
        cudaStreamEndCapture(stream, &graph);
        cudaGraphInstantiate(&exec, graph);
        cudaGraphDestroy(graph);
        cudaFree(b);
    } else if (what != "none")
        fprintf(stderr, "there is no mistake %s\n", what.c_str());
}

/* A program without mistakes: every verb once, and what it gives. */
static int correct()
{
    float value[COUNT], sum = 0;
    for (size_t i = 0; i < COUNT; i++)
        value[i] = (float)(rank + 1);
    cudaMemcpy(a, value, sizeof value, cudaMemcpyHostToDevice);
    all_reduce(8);
    ncclReduceScatter(a, b + 8, 4, ncclFloat32, ncclSum, world, stream);
    ncclAllGather(a, b + 16, 4, ncclFloat32, world, stream);
    ncclBroadcast(a, b + 32, 4, ncclFloat32, 1, world, stream);
    ncclReduce(a, b + 40, 4, ncclFloat32, ncclMax, 0, world, stream);
    ncclGroupStart();
    ncclSend(a, 4, ncclFloat32, 1 - rank, world, stream);
    ncclRecv(b + 48, 4, ncclFloat32, 1 - rank, world, stream);
    ncclGroupEnd();
    cudaStreamSynchronize(stream);
    cudaMemcpy(value, b, sizeof value, cudaMemcpyDeviceToHost);
    const size_t last[] = {7, 11, 19, 23, 35, 51};
    const float wanted[] = {3, 3, 1, 2, 2, (float)(2 - rank)};
    for (int i = 0; i < 6; i++)
        sum += value[last[i]] != wanted[i];
    sum += rank == 0 && value[43] != 2;
    return sum != 0;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    ncclUniqueId id = {};
    if (rank == 0)
        ncclGetUniqueId(&id);
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other_stream, cudaStreamNonBlocking);
    cudaMalloc(&a, COUNT * sizeof *a);
    cudaMalloc(&b, COUNT * sizeof *b);
    ncclCommInitRank(&world, size, id, rank);
    std::string what = argc > 1 ? argv[1] : "none";
    make(what);
    int wrong = what == "none" && correct();
    cudaDeviceSynchronize();
    puts(wrong ? "wrong" : "done");
    fflush(stdout);
    ncclCommDestroy(world);
    MPI_Finalize();
    return wrong;
}
