/* The owner of a thread. */
#include "preload/base/owner.h"

#include <dlfcn.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

// clang-format off
/* Runtimes that size and place their own threads: programs by the name of their file, and objects
 * that only such programs load. Go has neither: its programs have a note. */
static const char *const managed_programs[] = {"java", "node", "ruby", "dotnet", "beam",
                                              "deno", "bun",  "mono", NULL};
static const char *const managed_objects[] = {"libjli.", "libnode.", "libcoreclr.",
                                             "libhostfxr.", NULL};
// clang-format on

static bool begins(const char *name, const char *const *list)
{
    for (; *list; list++) {
        if (*name == **list && strncmp(name, *list, strlen(*list)) == 0) {
            return true;
        }
    }
    return false;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *helper_patterns, *worker_patterns;

void pin_owner_extend(const char *helpers, const char *workers)
{
    helper_patterns = helpers;
    worker_patterns = workers;
}

static bool matches_any(const char *patterns, const char *name)
{
    while (patterns && *patterns) {
        char pattern[256];
        size_t length = strcspn(patterns, ",");
        if (length > 0 && length < sizeof pattern) {
            memcpy(pattern, patterns, length);
            pattern[length] = '\0';
            bool wild = strpbrk(pattern, "*?[");
            if (wild ? fnmatch(pattern, name, 0) == 0 : strncmp(name, pattern, length) == 0) {
                return true;
            }
        }
        patterns += length + (patterns[length] == ',');
    }
    return false;
}

/* Class of the DSO at `path`, by its file name alone. "" is the main program, which patterns know
 * by its name. */
static enum profile_owner owner_of_name(const char *path)
{
    const char *name = file_name(path), *said = *name ? name : program_invocation_short_name;
    if (matches_any(helper_patterns, said)) {
        return PROFILE_OWNER_HELPER;
    }
    if (matches_any(worker_patterns, said)) {
        return PROFILE_OWNER_POOL;
    }
    return profile_owner_of(name);
}

/* Path of the DSO that `address` lies in, "" for the main program or for code that lies in none.
 * dladdr() takes the loader's lock: a thread that holds it (a constructor inside dlopen) and waits
 * for another one that creates a thread would wait for ever. _dl_find_object() takes none. */
static const char *path_of_code(const void *address)
{
#ifdef HAVE_DL_FIND_OBJECT
    struct dl_find_object found;
    if (_dl_find_object((void *)(uintptr_t)address, &found) != 0 || !found.dlfo_link_map) {
        return "";
    }
    return found.dlfo_link_map->l_name;
#elif defined RTLD_DL_LINKMAP
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map) {
        return "";
    }
    return map->l_name;
#else /* musl: the program's own code has the program's name, which is no library's */
    Dl_info info;
    return dladdr(address, &info) && info.dli_fname ? info.dli_fname : "";
#endif
}

enum profile_owner pin_owner_of_code(const void *address, const char **dso)
{
    const char *path = path_of_code(address);
    if (dso) {
        *dso = file_name(path);
    }
    return owner_of_name(path);
}

enum profile_owner pin_owner_of_thread(const void *start, const void *argument, const char **dso,
                                       const void **code)
{
    enum profile_owner owner = pin_owner_of_code(start, dso);
    *code = start;
    if (argument && strncmp(*dso, "libstdc++", strlen("libstdc++")) == 0) {
        memcpy(code, argument, sizeof *code); /* the virtual table */
        owner = pin_owner_of_code(*code, dso);
    }
    return owner;
}

static int stop_at_runtime(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    return owner_of_name(info->dlpi_name) == PROFILE_OWNER_RUNTIME;
}

bool pin_owner_looks(const char *name)
{
    static const char *const tools[] = {"libhwloc", "libnuma", "liblikwid", NULL};
    return begins(name, tools);
}

bool pin_owner_runtime_loaded(void)
{
    return dl_iterate_phdr(stop_at_runtime, NULL) != 0;
}

/* "Go" with its type 4 is the build ID that Go's linker writes; it stands beside the GNU one. */
static bool has_go_note(const struct dl_phdr_info *program)
{
    static const char name[] = "Go";
    for (size_t i = 0; i < program->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &program->dlpi_phdr[i];
        if (part->p_type != PT_NOTE) {
            continue;
        }
        const char *at = (const char *)(program->dlpi_addr + part->p_vaddr);
        const char *end = at + part->p_memsz;
        while ((size_t)(end - at) >= sizeof(ElfW(Nhdr)) + sizeof "Go\0") {
            const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)(const void *)at;
            size_t sizes = (note->n_namesz + 3) / 4 * 4 + (note->n_descsz + 3) / 4 * 4;
            if (memcmp(at + sizeof *note, name, sizeof name) == 0) {
                return true;
            }
            if (sizes > (size_t)(end - at) - sizeof *note) {
                break;
            }
            at += sizeof *note + sizes;
        }
    }
    return false;
}

static int stop_at_managed(struct dl_phdr_info *info, size_t size, void *first)
{
    (void)size;
    bool is_program = *(bool *)first;
    *(bool *)first = false;
    return is_program ? has_go_note(info) : begins(file_name(info->dlpi_name), managed_objects);
}

/* File name of the program; it may have been called by another one. */
static const char *program_name(char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    path[length > 0 ? length : 0] = '\0';
    return length > 0 ? file_name(path) : program_invocation_short_name;
}

static bool look_for_managed(void)
{
    char path[PATH_MAX];
    bool first = true;
    const char *name = program_name(path, sizeof path);
    if (matches_any(worker_patterns, name) ||
        matches_any(worker_patterns, program_invocation_short_name)) {
        return false;
    }
    return begins(name, managed_programs) || dl_iterate_phdr(stop_at_managed, &first) != 0;
}

bool pin_owner_program_is_managed(void)
{
    static atomic_int known; /* 0: not looked yet, else 1 + the answer */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (answer == 0) {
        answer = 1 + look_for_managed();
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer == 2;
}
