/* As much of CUDA's driver as cuDNN calls while it makes a plan for a GPU that is not here: kernels are compiled, and loaded nowhere. */
#include <stddef.h>

enum { DONE = 0, NO_DEVICE = 100 };

static char something;

int cuInit(unsigned flags)
{
    (void)flags;
    return NO_DEVICE;
}

int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return DONE;
}

int cuDeviceGetCount(int *count)
{
    *count = 1;
    return DONE;
}

int cuGetErrorString(int error, const char **text)
{
    (void)error;
    *text = "";
    return DONE;
}

int cuLibraryLoadData(void **library, const void *code)
{
    *library = &something;
    return code ? DONE : NO_DEVICE;
}

int cuLibraryUnload(void *library)
{
    (void)library;
    return DONE;
}

int cuLibraryGetKernel(void **kernel, void *library, const char *name)
{
    *kernel = library;
    return name ? DONE : NO_DEVICE;
}

int cuKernelGetFunction(void **function, void *kernel)
{
    *function = kernel;
    return DONE;
}

/* What cuDNN looks up, and calls with nothing to answer. */
#define ANSWERED(NAME)                                                                                                                     \
    int NAME(void) { return DONE; }

ANSWERED(cuCtxGetCurrent)
ANSWERED(cuCtxGetLimit)
ANSWERED(cuCtxPopCurrent)
ANSWERED(cuCtxPushCurrent)
ANSWERED(cuDeviceGet)
ANSWERED(cuGetErrorName)
ANSWERED(cuKernelGetAttribute)
ANSWERED(cuKernelSetAttribute)
ANSWERED(cuLaunchCooperativeKernel)
ANSWERED(cuLaunchKernel)
ANSWERED(cuLaunchKernelEx)
ANSWERED(cuLibraryLoadFromFile)
ANSWERED(cuLinkAddData)
ANSWERED(cuLinkComplete)
ANSWERED(cuLinkCreate)
ANSWERED(cuLinkDestroy)
ANSWERED(cuOccupancyMaxPotentialClusterSize)
ANSWERED(cuStreamGetCtx)
