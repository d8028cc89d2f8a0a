/* Stands for the library of a GPU's maker, CUDA's or (HIP defined) AMD's: one device whose memory
 * is the host's. Copies to it take at least what 5 GB/s and 20 us take, from it 0.3 GB/s. It
 * refuses what the real one would not do well: memory that is not pinned, an address that it did
 * not give, a thread that chose no device.
 *
 * FAKE_GPU: "refuses" to start, "crashes" at the first copy, "hangs" there, "unpinned": pins
 * nothing. FAKE_GPU_SEEN: a file for the nodes of each memory's first and last page, and of the
 * thread. CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES: "" hides the device. */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef HIP
#define NAME(cuda, hip) hip
#define VISIBLE "ROCR_VISIBLE_DEVICES"
#define ADDRESS "0000:c1:00.0"
#else
#define NAME(cuda, hip) cuda
#define VISIBLE "CUDA_VISIBLE_DEVICES"
#define ADDRESS "00000000:C1:00.0"
#endif

/* The head of a call of the library. */
#define CALL(name, ...)                                                                            \
    int name(__VA_ARGS__);                                                                         \
    int name(__VA_ARGS__)

enum { DONE, INVALID = 1, NO_DEVICE = 100 };
enum { STARTED = 1, CHOSEN = 2, PINNED = 4 };
static unsigned state;
static uintptr_t memory, pinned;
static size_t memory_bytes, pinned_bytes;

static int is(const char *what)
{
    const char *asked = getenv("FAKE_GPU");
    return asked && strcmp(asked, what) == 0;
}

static void wait_at_least(double seconds)
{
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

CALL(NAME(cuInit, hipInit), unsigned flags)
{
    state = STARTED;
    return flags || is("refuses") ? NO_DEVICE : DONE;
}

CALL(NAME(cuDeviceGetCount, hipGetDeviceCount), int *count)
{
    const char *visible = getenv(VISIBLE);
    *count = visible && !*visible ? 0 : 1;
    return state & STARTED ? DONE : INVALID;
}

CALL(NAME(cuDeviceGet, hipDeviceGet), int *device, int ordinal)
{
    *device = 7;
    return ordinal == 0 ? DONE : INVALID;
}

CALL(NAME(cuDeviceGetPCIBusId, hipDeviceGetPCIBusId), char *text, int size, int device)
{
    snprintf(text, (size_t)size, ADDRESS);
    return device == 7 ? DONE : INVALID;
}

#ifdef HIP
CALL(hipSetDevice, int device)
{
    state |= CHOSEN;
    return device == 7 ? DONE : INVALID;
}
#else
CALL(cuDevicePrimaryCtxRetain, void **context, int device)
{
    *context = &state;
    return device == 7 ? DONE : INVALID;
}

CALL(cuCtxSetCurrent, void *context)
{
    state |= CHOSEN;
    return context == &state ? DONE : INVALID;
}
#endif

CALL(NAME(cuMemAlloc_v2, hipMalloc), uintptr_t *address, size_t bytes)
{
    memory = *address = (uintptr_t)malloc(bytes);
    memory_bytes = bytes;
    return state & CHOSEN && memory ? DONE : INVALID;
}

static int node_of(const char *at)
{
    enum { MPOL_F_NODE = 1, MPOL_F_ADDR = 2 };
    int node = -1;
    return syscall(SYS_get_mempolicy, &node, NULL, 0, at, MPOL_F_NODE | MPOL_F_ADDR) < 0 ? -1
                                                                                         : node;
}

static void tell(const char *host, size_t bytes)
{
    unsigned node = 0;
    const char *path = getenv("FAKE_GPU_SEEN");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        getcpu(NULL, &node);
        fprintf(file, "%d %d by %u\n", node_of(host), node_of(host + bytes - 1), node);
        fclose(file);
    }
}

CALL(NAME(cuMemHostRegister_v2, hipHostRegister), void *host, size_t bytes, unsigned flags)
{
    pinned = is("unpinned") ? 0 : (uintptr_t)host;
    pinned_bytes = bytes;
    tell(host, bytes);
    return flags ? INVALID : DONE;
}

CALL(NAME(cuMemHostUnregister, hipHostUnregister), void *host)
{
    pinned_bytes = 0;
    return (uintptr_t)host == pinned ? DONE : INVALID;
}

static int copy(void *to, const void *from, uintptr_t device, size_t bytes)
{
    const uintptr_t host = device == (uintptr_t)to ? (uintptr_t)from : (uintptr_t)to;
    if (is("crashes")) {
        abort();
    }
    if (is("hangs")) {
        pause();
    }
    if (host != pinned || bytes > pinned_bytes || device != memory || bytes > memory_bytes) {
        return INVALID;
    }
    memcpy(to, from, bytes);
    return DONE;
}

CALL(NAME(cuMemcpyHtoD_v2, hipMemcpyHtoD), uintptr_t device, const void *host, size_t bytes)
{
    wait_at_least(20e-6 + (double)bytes / 5e9);
    return copy((void *)device, host, device, bytes);
}

CALL(NAME(cuMemcpyDtoH_v2, hipMemcpyDtoH), void *host, uintptr_t device, size_t bytes)
{
    wait_at_least(20e-6 + (double)bytes / 3e8);
    return copy(host, (void *)device, device, bytes);
}

CALL(NAME(cuCtxSynchronize, hipDeviceSynchronize), void)
{
    return state & CHOSEN ? DONE : INVALID;
}
