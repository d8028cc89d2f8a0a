/* libservet_follow.so: the calls by which a process takes a GPU, CUDA's, HIP's and those of CUDA's
 * driver. servet-pin --gpus=follow preloads it; everybody else is spared it.
 *
 * When a call has succeeded, the runtime itself says which device that was, as a PCI address: so
 * neither its order nor a device cgroup nor MIG can deceive. The shim does the rest.
 *
 * Programs ask dlsym() whether a runtime is there, and must not find these: as with MPI
 * (interpose/mpi.c), the names have versions that are not the default one (follow.map), the first
 * for references without a version, the others for those that libraries of NVIDIA and AMD give to
 * their functions. Statically linked runtimes, and what is looked up by dlsym() or
 * cudaGetDriverEntryPoint(), are not seen. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "preload/base/next.h"
#include "preload/base/order.h"

/* cudaErrorSharedObjectInitFailed, and the same number with HIP and with the driver. */
#define NO_RUNTIME 303

/* "0000:C1:00.0" and more digits where there are more domains. */
#define BUS_SIZE 32

/* The names of a runtime's questions. */
struct family {
    const char *which, *where; /* device at hand; its address */
};
static const struct family cuda = {"cudaGetDevice", "cudaDeviceGetPCIBusId"},
                           hip = {"hipGetDevice", "hipDeviceGetPCIBusId"},
                           driver = {NULL, "cuDeviceGetPCIBusId"};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool over; /* several devices, or no shim: nothing more is asked */
static struct {
    const struct family *family;
    int device;
    bool allocated; /* until then a device is only looked at */
    char bus[BUS_SIZE];
} taken;

static void move_to(const char *bus)
{
    int (*follow)(const char *);
    *(void **)&follow = dlsym(RTLD_DEFAULT, "servet_pin_follow");
    if (!follow || follow(bus) < 0) {
        atomic_store(&over, true);
    }
}

/* The process takes the device: for good, or until it allocates on another one. */
static void take_device(const struct family *family, int device, bool allocates)
{
    int (*where)(char *, int, int);
    char bus[BUS_SIZE] = "";
    if (family == taken.family && device == taken.device) {
        taken.allocated = taken.allocated || allocates;
        return;
    }
    if (taken.allocated && !allocates) {
        return;
    }
    *(void **)&where = pin_next(family->where);
    if (!where || where(bus, sizeof bus, device) != 0) {
        return;
    }
    const bool same = strcasecmp(bus, taken.bus) == 0;
    if (taken.allocated && !same) {
        atomic_store(&over, true);
        move_to(NULL);
        return;
    }
    taken.family = family;
    taken.device = device;
    taken.allocated = allocates;
    memcpy(taken.bus, bus, sizeof bus);
    if (!same) {
        move_to(bus);
    }
}

/* `device` < 0: the one at hand. */
static void follow(const struct family *family, int device, bool allocates)
{
    int (*which)(int *);
    int saved = errno;
    if (atomic_load_explicit(&over, memory_order_relaxed)) {
        return;
    }
    pin_order_lock(HOLDS_GPU, &lock);
    if (device < 0) {
        *(void **)&which = pin_next(family->which);
        device = which && which(&device) == 0 ? device : -1;
    }
    if (device >= 0) {
        take_device(family, device, allocates);
    }
    pin_order_unlock(HOLDS_GPU, &lock);
    errno = saved;
}

/* One entry and its versions. */
#define VERSION(name, number, version)                                                             \
    __asm__(".globl pin_entry_" #name "_" #number "\n"                                             \
            ".set pin_entry_" #name "_" #number ", pin_entry_" #name "\n"                          \
            ".symver pin_entry_" #name "_" #number ", " #name "@" version);
#define ENTRY(name, parameters, arguments, family, device, allocates)                              \
    PIN_EXPORT int pin_entry_##name parameters;                                                    \
    PIN_EXPORT int pin_entry_##name parameters                                                     \
    {                                                                                              \
        static int(*real) parameters;                                                              \
        if (!PIN_ONCE(real, pin_next(#name)))                                                      \
            return NO_RUNTIME;                                                                     \
        int rc = real arguments;                                                                   \
        if (rc == 0)                                                                               \
            follow(&(family), device, allocates);                                                  \
        return rc;                                                                                 \
    }                                                                                              \
    VERSION(name, 0, "SERVET_GPU")

#define OF_CUDA(name, parameters, arguments, device, allocates)                                    \
    ENTRY(name, parameters, arguments, cuda, device, allocates)                                    \
    VERSION(name, 11, "libcudart.so.11.0")                                                         \
    VERSION(name, 12, "libcudart.so.12")                                                           \
    VERSION(name, 13, "libcudart.so.13")
#define OF_HIP(name, parameters, arguments, device, allocates)                                     \
    ENTRY(name, parameters, arguments, hip, device, allocates)                                     \
    VERSION(name, 42, "hip_4.2")

OF_CUDA(cudaSetDevice, (int device), (device), device, false)
OF_CUDA(cudaMalloc, (void **at, size_t size), (at, size), -1, true)
OF_CUDA(cudaMallocAsync, (void **at, size_t size, void *stream), (at, size, stream), -1, true)
OF_CUDA(cudaMallocManaged, (void **at, size_t size, unsigned flags), (at, size, flags), -1, true)
OF_HIP(hipSetDevice, (int device), (device), device, false)
OF_HIP(hipMalloc, (void **at, size_t size), (at, size), -1, true)
OF_HIP(hipMallocAsync, (void **at, size_t size, void *stream), (at, size, stream), -1, true)
ENTRY(cuCtxCreate_v2, (void **context, unsigned flags, int device), (context, flags, device),
      driver, device, true)
ENTRY(cuCtxCreate_v4, (void **context, void *parameters, unsigned flags, int device),
      (context, parameters, flags, device), driver, device, true)
ENTRY(cuDevicePrimaryCtxRetain, (void **context, int device), (context, device), driver, device,
      true)
