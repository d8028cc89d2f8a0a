/* servet-devices LIBRARY ADDRESS PLACE:NODE:PUS ...: copies between a GPU and memory of NUMA nodes.
 *
 * A program of its own, which servet-probe starts and may end: a driver can crash or hang, and one
 * that was used before fork() (hwloc may) is of no use after it. It opens the library of the GPU's
 * maker when it runs and is linked with none, so there need be none. The functions are those of the
 * CUDA driver API and of HIP that take the same arguments, of 64-bit sizes ("_v2").
 *
 * It prints "= PLACE TO FROM LATENCY" for each round of a place, in bytes per second and seconds,
 * and "! REASON" for what cannot be measured. NODE < 0: the memory falls where it will. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probes/native/native.h"
#include "profile/base/mask.h"

/* The smallest copy, and how many of them are timed together. */
enum { SMALL_BYTES = 8, SMALL_COPIES = 64 };

/* -- the libraries -- */

/* 0: done; a device is a number, and an address on it has the size of a pointer. */
struct driver {
    const char *library;
    int (*init)(unsigned flags);
    int (*count)(int *devices);
    int (*device)(int *device, int ordinal);
    int (*address)(char *text, int size, int device);
    int (*retain)(void **context, int device); /* CUDA: the device's context, */
    int (*use)(void *context);                 /* and this thread in it */
    int (*choose)(int device);                 /* HIP: both */
    int (*allocate)(uintptr_t *memory, size_t bytes);
    int (*pin)(void *memory, size_t bytes, unsigned flags);
    int (*unpin)(void *memory);
    int (*to)(uintptr_t device, const void *host, size_t bytes);
    int (*from)(void *host, uintptr_t device, size_t bytes);
    int (*wait)(void);
};

enum { CUDA, HIP, LIBRARIES };

static const struct library {
    const char *name, *files[4]; /* newest first; ends with NULL */
} libraries[LIBRARIES] = {
    [CUDA] = {"cuda", {"libcuda.so.1"}},
    [HIP] = {"hip", {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}},
};

#define SYMBOL(member, ...)                                                                        \
    {                                                                                              \
        offsetof(struct driver, member),                                                           \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
static const struct symbol {
    size_t offset;
    const char *names[LIBRARIES]; /* NULL: that library has none */
} symbols[] = {
    SYMBOL(init, "cuInit", "hipInit"),
    SYMBOL(count, "cuDeviceGetCount", "hipGetDeviceCount"),
    SYMBOL(device, "cuDeviceGet", "hipDeviceGet"),
    SYMBOL(address, "cuDeviceGetPCIBusId", "hipDeviceGetPCIBusId"),
    SYMBOL(retain, "cuDevicePrimaryCtxRetain", NULL),
    SYMBOL(use, "cuCtxSetCurrent", NULL),
    SYMBOL(choose, NULL, "hipSetDevice"),
    SYMBOL(allocate, "cuMemAlloc_v2", "hipMalloc"),
    SYMBOL(pin, "cuMemHostRegister_v2", "hipHostRegister"),
    SYMBOL(unpin, "cuMemHostUnregister", "hipHostUnregister"),
    SYMBOL(to, "cuMemcpyHtoD_v2", "hipMemcpyHtoD"),
    SYMBOL(from, "cuMemcpyDtoH_v2", "hipMemcpyDtoH"),
    SYMBOL(wait, "cuCtxSynchronize", "hipDeviceSynchronize"),
};

static bool find_symbols(void *handle, size_t library, struct driver *out)
{
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        const char *name = symbols[i].names[library];
        void *function = name ? dlsym(handle, name) : NULL;
        if (name && !function) {
            printf("! %s has no %s\n", out->library, name);
            return false;
        }
        memcpy((char *)out + symbols[i].offset, &function, sizeof function);
    }
    return true;
}

static bool open_driver(const char *name, struct driver *out)
{
    size_t library = 0;
    while (library < LIBRARIES && strcmp(libraries[library].name, name) != 0) {
        library++;
    }
    void *handle = NULL;
    for (size_t i = 0; library < LIBRARIES && !handle && libraries[library].files[i]; i++) {
        out->library = libraries[library].files[i];
        handle = dlopen(out->library, RTLD_NOW);
    }
    if (!handle) {
        printf("! %s: no such library\n", library < LIBRARIES ? libraries[library].files[0] : name);
        return false;
    }
    return find_symbols(handle, library, out);
}

/* Was the call refused? Then it is named. */
static bool refused(const struct driver *driver, const char *what, int code)
{
    if (code) {
        printf("! %s: %s: error %d\n", driver->library, what, code);
    }
    return code != 0;
}

/* -- the device -- */

struct address {
    unsigned domain, bus, device, function;
};

/* Domains have four or eight digits, of either case. */
static bool read_address(const char *text, struct address *out)
{
    *out = (struct address){0};
    return sscanf(text, "%x:%x:%x.%x", &out->domain, &out->bus, &out->device, &out->function) >= 3;
}

/* Visible devices only: CUDA_VISIBLE_DEVICES and its like hide the others from the library. */
static bool find_visible_device(const struct driver *driver, const char *address, int *out)
{
    struct address wanted, found;
    char text[32] = "";
    int count = 0;
    if (!read_address(address, &wanted) ||
        refused(driver, "counting devices", driver->count(&count))) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        if (driver->device(out, i) == 0 && driver->address(text, sizeof text, *out) == 0 &&
            read_address(text, &found) && memcmp(&wanted, &found, sizeof found) == 0) {
            return true;
        }
    }
    printf("! %s: shows no device %s\n", driver->library, address);
    return false;
}

static bool use_device(const struct driver *driver, int device)
{
    void *context = NULL;
    if (driver->choose) {
        return !refused(driver, "using the device", driver->choose(device));
    }
    return !refused(driver, "making a context", driver->retain(&context, device)) &&
           !refused(driver, "using the context", driver->use(context));
}

/* -- copies -- */

struct copies {
    const struct driver *driver;
    void *host;
    uintptr_t device;
};

/* Seconds of `count` copies that are waited for, one by one; < 0: refused. */
static double time_to(const struct copies *copies, size_t bytes, size_t count)
{
    const double begun = profile_now_s();
    int code = 0;
    for (size_t i = 0; code == 0 && i < count; i++) {
        code = copies->driver->to(copies->device, copies->host, bytes);
        code = code ? code : copies->driver->wait();
    }
    return refused(copies->driver, "copying to the device", code) ? -1 : profile_now_s() - begun;
}

static double time_from(const struct copies *copies, size_t bytes)
{
    const double begun = profile_now_s();
    int code = copies->driver->from(copies->host, copies->device, bytes);
    code = code ? code : copies->driver->wait();
    return refused(copies->driver, "copying from the device", code) ? -1 : profile_now_s() - begun;
}

/* The first round warms up. */
static void measure_transfer(const struct copies *copies, size_t place)
{
    for (int round = -1; round < MACHINE_TRANSFER_ROUNDS; round++) {
        const double to = time_to(copies, MACHINE_TRANSFER_BYTES, 1),
                     from = to < 0 ? -1 : time_from(copies, MACHINE_TRANSFER_BYTES),
                     small = from < 0 ? -1 : time_to(copies, SMALL_BYTES, SMALL_COPIES);
        if (small <= 0) {
            return;
        }
        if (round >= 0) {
            printf("= %zu %.9g %.9g %.9g\n", place, MACHINE_TRANSFER_BYTES / to,
                   MACHINE_TRANSFER_BYTES / from, small / SMALL_COPIES);
        }
    }
}

/* Memory of the node, touched; NULL: it is not to be had. */
static void *host_memory(int node)
{
    void *memory = mmap(NULL, MACHINE_TRANSFER_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    if (probe_native_bind(memory, MACHINE_TRANSFER_BYTES, node) < 0) {
        munmap(memory, MACHINE_TRANSFER_BYTES);
        return NULL;
    }
    return memset(memory, 1, MACHINE_TRANSFER_BYTES);
}

static void measure_place(struct copies *copies, const char *text)
{
    struct profile_mask mask;
    struct profile_set pus;
    size_t place;
    int node, end = 0;
    if (sscanf(text, "%zu:%d:%n", &place, &node, &end) != 2 || !end ||
        profile_set_parse(text + end, &pus) < 0) {
        printf("! %s: expected PLACE:NODE:PUS\n", text);
        return;
    }
    profile_mask_from_set(&pus, &mask);
    profile_set_free(&pus);
    copies->host = profile_mask_set(0, &mask) < 0 ? NULL : host_memory(node);
    if (!copies->host) {
        printf("! node %d: no memory to be placed there\n", node);
        return;
    }
    if (!refused(copies->driver, "pinning memory",
                 copies->driver->pin(copies->host, MACHINE_TRANSFER_BYTES, 0))) {
        measure_transfer(copies, place);
        copies->driver->unpin(copies->host);
    }
    munmap(copies->host, MACHINE_TRANSFER_BYTES);
}

int main(int argc, char **argv)
{
    struct driver driver = {0};
    struct copies copies = {.driver = &driver};
    int device;
    if (argc < 4) {
        fprintf(stderr, "%s: expected LIBRARY ADDRESS PLACE:NODE:PUS; servet-probe starts it\n",
                argv[0]);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (open_driver(argv[1], &driver) && !refused(&driver, "starting", driver.init(0)) &&
        find_visible_device(&driver, argv[2], &device) && use_device(&driver, device) &&
        !refused(&driver, "memory of the device",
                 driver.allocate(&copies.device, MACHINE_TRANSFER_BYTES))) {
        for (int i = 3; i < argc; i++) {
            measure_place(&copies, argv[i]);
        }
    }
    fflush(stdout);
    _exit(0); /* what a library has to do at the end of a program may hang */
}
