/* The functions of a program's MPI library behind the interposed ones. */
#include "preload/base/next.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "preload/base/order.h"

#ifdef PIN_CHECK_LOCK
__thread unsigned pin_has __attribute__((tls_model("initial-exec")));
#endif

/* The shim and the tracer define the same names; they call each other only in the order of
 * LD_PRELOAD. */
static bool is_our_library(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash && strncmp(slash + 1, "libservet_", strlen("libservet_")) == 0;
}

static void *find_in(const char *path, const char *name)
{
    Dl_info info;
    void *object = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    void *found = object ? dlsym(object, name) : NULL;
    if (object) {
        dlclose(object);
    }
    return found && dladdr(found, &info) && !is_our_library(info.dli_fname) ? found : NULL;
}

/* Objects are only looked at: the list can change while another thread loads one, but not lose what
 * MPI is in. */
static void *find_anywhere(const char *name)
{
    void *found = NULL, *program = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD);
    struct link_map *map = NULL;
    if (!program || dlinfo(program, RTLD_DI_LINKMAP, &map) != 0) {
        return NULL;
    }
    for (; map && !found; map = map->l_next) {
        if (map->l_name && *map->l_name && !is_our_library(map->l_name)) {
            found = find_in(map->l_name, name);
        }
    }
    dlclose(program);
    return found;
}

void *pin_next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    return found ? found : find_anywhere(name);
}

void *pin_next_variable(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    return found ? found : find_anywhere(name);
}
