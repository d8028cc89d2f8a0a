/* A runtime of GPUs as CUDA's or HIP's, by its functions and their versions, or CUDA's driver: two
 * devices, the second one's address in capital letters, as all print it. */
#include <stddef.h>
#include <stdio.h>

#define NAME_(a, b) a##b
#define NAME(a, b) NAME_(a, b)

int NAME(PREFIX, DeviceGetPCIBusId)(char *bus, int size, int device);

static int now;

#ifdef DRIVER
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuCtxCreate_v4(void **context, void *parameters, unsigned flags, int device);
int cuDevicePrimaryCtxRetain(void **context, int device);

static int make(void **context, int device)
{
    *context = &now;
    return device < 0 || device > 1 ? 101 : 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    return make(context, device);
}

int cuCtxCreate_v2(void **context, unsigned flags, int device)
{
    (void)flags;
    return make(context, device);
}

int cuCtxCreate_v4(void **context, void *parameters, unsigned flags, int device)
{
    (void)parameters;
    (void)flags;
    return make(context, device);
}
#else
int NAME(PREFIX, SetDevice)(int device);
int NAME(PREFIX, GetDevice)(int *device);
int NAME(PREFIX, Malloc)(void **at, size_t size);

int NAME(PREFIX, SetDevice)(int device)
{
    if (device < 0 || device > 1) {
        return 101;
    }
    now = device;
    return 0;
}

int NAME(PREFIX, GetDevice)(int *device)
{
    *device = now;
    return 0;
}

int NAME(PREFIX, Malloc)(void **at, size_t size)
{
    (void)size;
    *at = &now;
    return 0;
}

#endif

int NAME(PREFIX, DeviceGetPCIBusId)(char *bus, int size, int device)
{
    snprintf(bus, (size_t)size, "%s", device ? "0000:C1:00.0" : "0000:41:00.0");
    return 0;
}
