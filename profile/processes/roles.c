/* The roles of a process's threads.
 *
 * glibc keeps a control block at the upper end of each thread's stack. A list links all blocks, and
 * the thread's number follows the links:
 *
 *     next prev number … start-routine argument …
 *
 * So a block is recognised by two words that are linked both ways in front of the number of one of
 * the process's threads, and the first address of code behind it is the start routine. Nothing is
 * stopped and no symbol is needed. Under the shim that routine is the shim's, and its argument is a
 * record that begins with the program's own. */
#include "profile/processes/roles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/base/file.h"
#include "profile/processes/process.h"

/* -- owners -- */

/* Beginnings of file names, each list ended by NULL. A wheel's runtime is called
 * libgomp-a34b3233.so.1.0.0, so the beginning must do. */
// clang-format off
static const char *const known[][40] = {
    [PROFILE_OWNER_RUNTIME] = {
        "libgomp", "libomp.", "libomp-", "libomp5", "libiomp",
        "libnvomp",  /* NVHPC */
        "libcraymp", /* Cray */
        "libxlsmp",  /* IBM XL */
        "libfjomp",  /* Fujitsu */
    },
    [PROFILE_OWNER_POOL] = {"libopenblas", "libblis", "libtbb.", "libtbb-"},
    [PROFILE_OWNER_HELPER] = {
        /* MPI, OpenSHMEM and their launchers; mca_: Open MPI's plug-ins, libopen-pal: its event
         * loop's thread */
        "libmpi.", "libmpi_", "libmpich", "libmpifort", "libopen-pal", "libopen-rte", "liboshmem",
        "mca_", "libprrte",
        "libpmix", "libpmi", "libhydra", "libslurm", "libevent", "libuv",
        /* networks */
        "libucs", "libucp", "libuct", "libucm", "libucc", "libfabric", "libibverbs", "libmlx",
        "librdmacm", "libpsm",
        "libsharp", "libhcoll",
        /* accelerators */
        "libcuda", "libnccl", "libnvidia", "libhsa-runtime", "libamdhip", "libze_", "libOpenCL",
        /* collectors and compilers; Java's threads cannot be distinguished from them */
        "libjvm",
    },
};
// clang-format on

enum profile_owner profile_owner_of(const char *name)
{
    for (unsigned owner = PROFILE_OWNER_RUNTIME; owner <= PROFILE_OWNER_HELPER; owner++) {
        for (const char *const *at = known[owner]; *at; at++) {
            if (*name == **at && strncmp(name, *at, strlen(*at)) == 0) {
                return owner;
            }
        }
    }
    return PROFILE_OWNER_OTHER;
}

/* -- memory of a process -- */

/* The part of a stack that is read, from its upper end or from where a thread waits: the block and
 * the thread's static variables lie in it. */
#define WINDOW_BYTES 65536u
#define WORD sizeof(uintptr_t)
/* From the number to the start routine: 0x370 bytes in glibc 2.36 on x86-64. */
#define BLOCK_BYTES 2048u

struct target {
    pid_t pid;
    int memory;
    size_t regions;
    struct profile_region *region;
    uintptr_t *window;
    struct profile_roles *roles;
};

static bool read_at(const struct target *target, uintptr_t at, void *out, size_t bytes)
{
    return pread(target->memory, out, bytes, (off_t)at) == (ssize_t)bytes;
}

static const struct profile_region *region_of(const struct target *target, uintptr_t at)
{
    for (size_t i = 0; i < target->regions; i++) {
        if (at >= target->region[i].from && at < target->region[i].to) {
            return &target->region[i];
        }
    }
    return NULL;
}

static void read_regions(struct target *target)
{
    struct profile_region next;
    size_t most = 0;
    for (FILE *file = profile_open_regions(target->pid); profile_next_region(file, &next);) {
        if (target->regions == most) {
            struct profile_region *more = realloc(target->region, (2 * most + 256) * sizeof *more);
            if (!more) {
                continue;
            }
            target->region = more;
            most = 2 * most + 256;
        }
        target->region[target->regions++] = next;
    }
}

/* -- control blocks -- */

static bool is_code(const struct target *target, uintptr_t at)
{
    const struct profile_region *region = region_of(target, at);
    return region && region->rights[2] == 'x' && region->file[0];
}

static bool region_begins(const struct profile_region *region, const char *name)
{
    return region && strncmp(region->file, name, strlen(name)) == 0;
}

/* By its start routine and that one's argument: as pin_owner_of_thread(). */
static void classify_thread(const struct target *target, const uintptr_t start[2],
                            struct profile_thread_code *out)
{
    const struct profile_region *region = region_of(target, start[0]);
    struct profile_thread_record record = {.pu = -1};
    uintptr_t table;
    if (region_begins(region, "libservet_pin") &&
        read_at(target, start[1], &record, sizeof record)) {
        out->given_pu = record.pu;
        region = region_of(target, (uintptr_t)record.code);
    } else if (region_begins(region, "libstdc++") &&
               read_at(target, start[1], &table, sizeof table)) {
        region = region_of(target, table);
    }
    if (!region) {
        return;
    }
    const enum profile_owner owner = profile_owner_of(region->file);
    out->role = owner == PROFILE_OWNER_HELPER || region_begins(region, "libc.")
                    ? PROFILE_ROLE_HELPER
                : owner == PROFILE_OWNER_OTHER ? PROFILE_ROLE_THREAD
                                               : PROFILE_ROLE_WORKER;
}

static struct profile_thread_code *find_thread(const struct profile_roles *roles, pid_t tid)
{
    size_t i = 0;
    while (i < roles->count && roles->each[i].tid != tid) {
        i++;
    }
    return i < roles->count ? &roles->each[i] : NULL;
}

/* Looks for blocks in a part of a stack. */
static void search_part(struct target *target, uintptr_t from, uintptr_t to)
{
    const uintptr_t *words = target->window;
    const size_t count = (to - from) / WORD;
    if (!read_at(target, from, target->window, count * WORD)) {
        return;
    }
    for (size_t i = 0; i + 3 < count; i++) {
        int32_t tid;
        uintptr_t back;
        memcpy(&tid, &words[i + 2], sizeof tid);
        struct profile_thread_code *thread = tid > 0 ? find_thread(target->roles, tid) : NULL;
        if (!thread || thread->role != PROFILE_ROLE_UNKNOWN || words[i] % WORD != 0 ||
            !read_at(target, words[i] + WORD, &back, sizeof back) || back != from + i * WORD) {
            continue;
        }
        size_t at = i + 3;
        while (at + 1 < count && at < i + BLOCK_BYTES / WORD && !is_code(target, words[at])) {
            at++;
        }
        if (at + 1 < count && is_code(target, words[at])) {
            classify_thread(target, &words[at], thread);
        }
    }
}

/* A stack of glibc's lies above a page that nothing may touch. */
static void search_stacks(struct target *target)
{
    for (size_t i = 1; i < target->regions; i++) {
        const struct profile_region *guard = &target->region[i - 1], *stack = guard + 1;
        if (guard->to == stack->from && strcmp(guard->rights, "---p") == 0 &&
            strcmp(stack->rights, "rw-p") == 0 && !stack->file[0]) {
            const uintptr_t bytes = stack->to - stack->from;
            search_part(target, bytes > WINDOW_BYTES ? stack->to - WINDOW_BYTES : stack->from,
                        stack->to);
        }
    }
}

/* The stack of a thread that waits may be part of something larger, or the program's own. */
static void search_from_wait(struct target *target, const struct profile_thread_code *thread)
{
    char path[64], text[256];
    uintptr_t stack;
    snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", (int)target->pid, (int)thread->tid);
    if (thread->role != PROFILE_ROLE_UNKNOWN || !profile_read_small(path, text, sizeof text) ||
        sscanf(text, "%*s %*s %*s %*s %*s %*s %*s %zx", &stack) != 1) {
        return;
    }
    const struct profile_region *region = region_of(target, stack);
    if (region) {
        stack -= stack % WORD;
        search_part(target, stack,
                    region->to - stack > WINDOW_BYTES ? stack + WINDOW_BYTES : region->to);
    }
}

static void list_threads(const struct profile_thread_now *now, void *argument)
{
    struct profile_roles *roles = argument;
    struct profile_thread_code *more =
        realloc(roles->each, (roles->count + 1) * sizeof *roles->each);
    if (more) {
        roles->each = more;
        more[roles->count++] = (struct profile_thread_code){
            .tid = now->tid,
            .given_pu = -1,
            .role = now->tid == now->pid ? PROFILE_ROLE_MAIN : PROFILE_ROLE_UNKNOWN};
    }
}

void profile_roles_read(pid_t pid, struct profile_roles *out)
{
    char path[64];
    struct target target = {.pid = pid, .roles = out};
    *out = (struct profile_roles){0};
    (void)profile_affinity_of_threads(pid, list_threads, out);
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    target.memory = open(path, O_RDONLY | O_CLOEXEC);
    target.window = malloc(WINDOW_BYTES);
    if (target.memory >= 0 && target.window && out->count > 1) {
        read_regions(&target);
        search_stacks(&target);
        for (size_t i = 0; i < out->count; i++) {
            search_from_wait(&target, &out->each[i]);
        }
    }
    if (target.memory >= 0) {
        close(target.memory);
    }
    free(target.window);
    free(target.region);
}

void profile_roles_free(struct profile_roles *roles)
{
    free(roles->each);
    *roles = (struct profile_roles){0};
}

enum profile_role profile_role_of(const struct profile_roles *roles,
                                  const struct profile_thread_now *now, int32_t *given_pu)
{
    const struct profile_thread_code *thread = find_thread(roles, now->tid);
    *given_pu = thread ? thread->given_pu : -1;
    return thread ? thread->role : PROFILE_ROLE_UNKNOWN;
}
