/* Who owns a thread. */
#include "owner.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

/* Beginnings of file names. A wheel's runtime is called libgomp-a34b3233.so.1.0.0, so the beginning must do. */
static const struct {
    const char *beginning;
    enum pin_owner owner;
} known[] =
    {
        {"libgomp", PIN_RUNTIME},    {"libomp.", PIN_RUNTIME},    {"libomp-", PIN_RUNTIME},
        {"libomp5", PIN_RUNTIME},    {"libiomp", PIN_RUNTIME},    {"libnvomp", PIN_RUNTIME}, /* NVHPC */
        {"libcraymp", PIN_RUNTIME},  {"libxlsmp", PIN_RUNTIME},                              /* IBM XL */
        {"libfjomp", PIN_RUNTIME},                                                           /* Fujitsu */
        {"libopenblas", PIN_POOL},   {"libblis", PIN_POOL},       {"libtbb.", PIN_POOL},
        {"libtbb-", PIN_POOL},       {"libopen-pal", PIN_HELPER}, /* Open MPI: progress thread of its event library */
        {"libopen-rte", PIN_HELPER}, {"libmpi.", PIN_HELPER},     {"libmpi_", PIN_HELPER},
        {"liboshmem", PIN_HELPER},   {"mca_", PIN_HELPER}, /* Open MPI's plug-ins */
        {"libprrte", PIN_HELPER},    {"libpmix", PIN_HELPER},     {"libpmi", PIN_HELPER},
        {"libevent", PIN_HELPER},    {"libuv", PIN_HELPER},       {"libmpich", PIN_HELPER},
        {"libmpifort", PIN_HELPER},  {"libhydra", PIN_HELPER},    {"libucs", PIN_HELPER},
        {"libucp", PIN_HELPER},      {"libuct", PIN_HELPER},      {"libucm", PIN_HELPER},
        {"libucc", PIN_HELPER},      {"libfabric", PIN_HELPER},   {"libibverbs", PIN_HELPER},
        {"libmlx", PIN_HELPER},      {"librdmacm", PIN_HELPER},   {"libpsm", PIN_HELPER},
        {"libsharp", PIN_HELPER},    {"libhcoll", PIN_HELPER},    {"libslurm", PIN_HELPER},
        {"libcuda", PIN_HELPER}, /* driver and runtime */
        {"libnccl", PIN_HELPER},     {"libnvidia", PIN_HELPER},   {"libhsa-runtime", PIN_HELPER},
        {"libamdhip", PIN_HELPER},   {"libze_", PIN_HELPER},      {"libOpenCL", PIN_HELPER},
        {"libjvm", PIN_HELPER}, /* collectors and compilers; Java threads cannot be told from them */
};

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

enum pin_owner pin_owner_of_name(const char *path)
{
    const char *name = file_name(path);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strncmp(name, known[i].beginning, strlen(known[i].beginning)) == 0)
            return known[i].owner;
    return PIN_APPLICATION;
}

/* Path of the DSO that `address` lies in, "" for the main program or for code that lies in none.
 * dladdr() takes the loader's lock: a thread that holds it (a constructor inside dlopen) and waits for another one that
 * creates a thread would wait for ever. _dl_find_object() takes none. */
static const char *dso_path(const void *address)
{
#ifdef HAVE_DL_FIND_OBJECT
    struct dl_find_object found;
    if (_dl_find_object((void *)(uintptr_t)address, &found) != 0 || !found.dlfo_link_map)
        return "";
    return found.dlfo_link_map->l_name;
#else
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return "";
    return map->l_name;
#endif
}

enum pin_owner pin_owner_of_code(const void *address, const char **dso)
{
    const char *path = dso_path(address);
    if (dso)
        *dso = file_name(path);
    return pin_owner_of_name(path);
}

enum pin_owner pin_owner_of_thread(const void *start, const void *argument, const char **dso)
{
    const char *name;
    enum pin_owner owner = pin_owner_of_code(start, &name);
    if (argument && strncmp(name, "libstdc++", strlen("libstdc++")) == 0) {
        const void *virtual_table;
        memcpy(&virtual_table, argument, sizeof virtual_table);
        owner = pin_owner_of_code(virtual_table, &name);
    }
    if (dso)
        *dso = name;
    return owner;
}

static int stop_at_runtime(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    return pin_owner_of_name(info->dlpi_name) == PIN_RUNTIME;
}

bool pin_owner_runtime_loaded(void)
{
    return dl_iterate_phdr(stop_at_runtime, NULL) != 0;
}
