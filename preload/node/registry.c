/* Which job holds which PUs of this node, by locks of the kernel. */
#include "preload/node/registry_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profile/base/clock.h"
#include "profile/base/hash.h"
#include "profile/base/syscall.h"

/* -- the layout of the locks -- */

/* A read lock on one byte says that a process holds a PU: its place is the PU, the job, the purpose
 * and the process, from the highest bit down. No two processes have the same byte, so no lock hides
 * another. A process that needs a PU for more gets a further lock there. */
#define PROCESS_BITS 12
#define PURPOSE_BITS 2
#define JOB_BITS 34
#define JOB_SHIFT (PROCESS_BITS + PURPOSE_BITS)
#define PU_SHIFT (JOB_SHIFT + JOB_BITS)
enum { FOR_THREADS = 1, FOR_MAIN };

/* Above all PUs each job has 2^14 bytes: what its first process here counted as taken by others.
 * Every process that goes by these has them, so they last as long as one does. */
#define AREAS (UINT64_C(1) << 61)
#define AREA_SHIFT 14
enum { COMPLETE = 0, TAKEN = 2 };

/* Above these, for each PU one byte of each process: it chooses among PUs from this one on. */
#define TURNS (UINT64_C(1) << 62)
#define TURN_SHIFT (JOB_BITS + PROCESS_BITS)

static uint64_t start_of_pu(uint32_t pu)
{
    return (uint64_t)pu << PU_SHIFT;
}

static uint64_t start_of_job(uint32_t pu, uint64_t job)
{
    return start_of_pu(pu) + (job << JOB_SHIFT);
}

static uint64_t byte_of(const struct pin_registry *registry, uint32_t pu, unsigned purpose)
{
    return start_of_job(pu, registry->job) + ((uint64_t)purpose << PROCESS_BITS) +
           registry->process;
}

static uint64_t area_of(const struct pin_registry *registry, uint32_t offset)
{
    return AREAS + (registry->job << AREA_SHIFT) + offset;
}

/* The first byte behind a lock. */
static uint64_t end_of_lock(const struct flock *lock)
{
    return lock->l_len == 0 ? (uint64_t)INT64_MAX : (uint64_t)lock->l_start + (uint64_t)lock->l_len;
}

static bool set_lock(struct pin_file file, short type, uint64_t start, uint64_t bytes)
{
    struct flock lock;
    return pin_registry_lock(file.number, F_OFD_SETLK, type, start, bytes, &lock) == 0;
}

/* Is there a lock on any of the bytes up to `end` that was not taken by way of `file`? It may be
 * any one of several. */
static bool find_any(struct pin_file file, uint64_t start, uint64_t end, struct flock *out)
{
    return start < end &&
           pin_registry_lock(file.number, F_OFD_GETLK, F_WRLCK, start, end - start, out) == 0 &&
           out->l_type != F_UNLCK;
}

/* One that covers more than a PU or an area is none of ours. */
static bool is_claim(const struct flock *lock)
{
    return lock->l_len > 0 && lock->l_len <= INT64_C(1) << PU_SHIFT;
}

static bool find_lock(struct pin_file file, uint64_t start, uint64_t end, struct flock *out)
{
    return find_any(file, start, end, out) && is_claim(out);
}

/* -- what others hold -- */

/* Jobs that are counted on one PU. */
#define MOST_JOBS 8u

/* Adds the jobs but this one that have a lock on the PU's bytes from `start` to `end`. */
static void count_jobs(struct pin_file file, uint64_t start, uint64_t end,
                       struct pin_company *company)
{
    struct flock found, ignored;
    if (company->jobs >= MOST_JOBS || !find_lock(file, start, end, &found)) {
        return;
    }
    const uint64_t first = (uint64_t)found.l_start > start ? (uint64_t)found.l_start : start;
    const uint64_t job = first >> JOB_SHIFT << JOB_SHIFT, behind = job + (1 << JOB_SHIFT);
    if (job != start_of_job((uint32_t)(first >> PU_SHIFT), file.of->job)) {
        company->jobs++;
        company->mains += find_lock(file, job + (FOR_MAIN << PROCESS_BITS), behind, &ignored);
    }
    count_jobs(file, start, job, company);
    count_jobs(file, end_of_lock(&found) > behind ? end_of_lock(&found) : behind, end, company);
}

/* By another job? `any`: a lock on the PU, or on more. */
static bool is_held(struct pin_file file, uint32_t pu, struct flock any)
{
    const uint64_t start = start_of_pu(pu), end = start_of_pu(pu + 1),
                   mine = start_of_job(pu, file.of->job),
                   behind = start_of_job(pu, file.of->job + 1);
    if (!is_claim(&any) && !find_lock(file, start, end, &any)) {
        return false;
    }
    const bool is_mine = (uint64_t)any.l_start >= mine && (uint64_t)any.l_start < behind;
    return !is_mine || find_lock(file, start, mine, &any) || find_lock(file, behind, end, &any);
}

/* Adds those of `allowed` from `first` to `end` - 1: a question for each that is held, and
 * one for what is between them. The smaller part is looked at first, or the stack would not do. */
static void look_at(struct pin_file file, const struct profile_mask *allowed, uint32_t first,
                    uint32_t end, struct profile_mask *held)
{
    struct flock any;
    while ((first = profile_mask_next(allowed, first)) < end &&
           find_any(file, start_of_pu(first), start_of_pu(end), &any)) {
        const uint32_t found = (uint32_t)((uint64_t)any.l_start >> PU_SHIFT),
                       pu = found > first ? found : first;
        if (profile_mask_has(allowed, pu) && is_held(file, pu, any)) {
            profile_mask_add(held, pu);
        }
        if (pu - first < end - pu) {
            look_at(file, allowed, first, pu, held);
            first = pu + 1;
        } else {
            look_at(file, allowed, pu + 1, end, held);
            end = pu;
        }
    }
}

/* The file for a moment. Where the program has closed what was kept, all is taken anew. */
static struct pin_file begin(struct pin_registry *registry)
{
    const struct pin_file file = pin_registry_begin(registry);
    if (file.number < 0 || file.is_kept || registry->kept == 0) {
        return file;
    }
    for (uint32_t pu = 0; pu < PROFILE_MASK_PUS; pu++) {
        if (registry->purpose[pu] > 0) {
            (void)set_lock(file, F_RDLCK, byte_of(registry, pu, registry->purpose[pu]), 1);
        }
    }
    (void)pin_registry_keep(registry, file);
    return file;
}

void pin_registry_look(struct pin_registry *registry, const struct profile_mask *allowed,
                       struct profile_mask *held)
{
    const struct pin_file file = begin(registry);
    *held = (struct profile_mask){0};
    if (file.number >= 0) {
        look_at(file, allowed, 0, PROFILE_MASK_PUS, held);
    }
    pin_registry_end(file);
}

void pin_registry_count(struct pin_registry *registry, const uint32_t *pus, size_t count,
                        struct pin_company *out)
{
    const struct pin_file file = begin(registry);
    for (size_t i = 0; i < count; i++) {
        out[i] = (struct pin_company){0};
        if (file.number >= 0 && pus[i] < PROFILE_MASK_PUS) {
            count_jobs(file, start_of_pu(pus[i]), start_of_pu(pus[i] + 1), &out[i]);
        }
    }
    pin_registry_end(file);
}

/* -- what this process holds -- */

/* So often a process looks again where it is not alone: another one that came in the same moment
 * has then gone, unless it was stopped. */
#define MOST_LOOKS 16

/* Read locks do not exclude: a process that has taken the byte `mine`, of those from `start` to
 * `end`, looks then. The later one of two that come at once sees the other. It goes if
 * the other's byte is lower, and else waits for the other to go, for a moment: that one may have
 * been alone when it looked. So at most one stays, and one does. */
static bool stays_alone(struct pin_file file, uint64_t start, uint64_t mine, uint64_t end)
{
    struct flock found;
    for (int i = 0; i < MOST_LOOKS; i++) {
        if (!find_lock(file, start, end, &found)) {
            return true;
        }
        if (find_lock(file, start, mine + 1, &found)) {
            return false;
        }
        profile_syscall(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
    return false;
}

static unsigned purpose_of(const struct profile_mask *mains, uint32_t pu)
{
    return profile_mask_has(mains, pu) ? FOR_MAIN : FOR_THREADS;
}

/* Has another process of this job the PU? */
static bool has_fellow(struct pin_file file, uint32_t pu)
{
    struct flock found;
    const uint64_t mine = start_of_job(pu, file.of->job), end = mine + (1 << JOB_SHIFT);
    return find_lock(file, mine, end, &found) && (uint64_t)found.l_start >= mine &&
           end_of_lock(&found) <= end;
}

/* False: another job is there. */
static bool take_one(struct pin_file file, uint32_t pu, unsigned purpose, bool beside)
{
    const uint64_t byte = byte_of(file.of, pu, purpose);
    if (file.of->purpose[pu] >= purpose) {
        return true;
    }
    const bool may_share =
        beside || file.of->purpose[pu] != 0 || (file.of->has_fellows && has_fellow(file, pu));
    (void)set_lock(file, F_RDLCK, byte, 1);
    return may_share || stays_alone(file, start_of_pu(pu), byte, start_of_pu(pu + 1));
}

/* Notes a lock that stays, or drops it. */
static void note_or_drop(struct pin_registry *registry, struct pin_file file, uint32_t pu,
                         unsigned purpose, bool stays)
{
    if (file.number < 0 || registry->purpose[pu] >= purpose) {
        return;
    }
    if (stays) {
        registry->purpose[pu] = (unsigned char)purpose;
    } else {
        (void)set_lock(file, F_UNLCK, byte_of(registry, pu, purpose), 1);
    }
}

bool pin_registry_take(struct pin_registry *registry, uint32_t pu, bool is_main, bool beside)
{
    /* A thread's stack may be small; the process's lock is held. */
    static struct profile_mask one, none;
    if (pu >= PROFILE_MASK_PUS || (registry->purpose[pu] >= (is_main ? FOR_MAIN : FOR_THREADS) &&
                                   pin_registry_is_kept(registry))) {
        return true;
    }
    profile_mask_add(&one, pu);
    const bool is_ours = pin_registry_take_all(registry, &one, is_main ? &one : &none, beside);
    profile_mask_remove(&one, pu);
    return is_ours;
}

bool pin_registry_take_all(struct pin_registry *registry, const struct profile_mask *pus,
                           const struct profile_mask *mains, bool beside)
{
    bool all = true;
    if (profile_mask_empty(pus)) {
        return true;
    }
    const struct pin_file file = begin(registry);
    PROFILE_MASK_EACH(pus, pu)
    {
        all = all && (file.number < 0 || take_one(file, pu, purpose_of(mains, pu), beside));
    }
    all = all && pin_registry_keep(registry, file);
    PROFILE_MASK_EACH(pus, pu)
    {
        note_or_drop(registry, file, pu, purpose_of(mains, pu), all);
    }
    pin_registry_end(file);
    return all;
}

void pin_registry_release(struct pin_registry *registry)
{
    const struct pin_file file = pin_registry_begin(registry);
    if (file.is_kept) {
        (void)set_lock(file, F_UNLCK, 0, 0);
    }
    pin_registry_end(file);
    pin_registry_forget(registry);
}

/* -- in turn -- */

/* For a turn, and for what the first of the job counts; an idle node plans in a millisecond. */
#define LONGEST_WAIT_NS(together) ((together) ? 250000000u : 50000000u)
#define NAP_NS 200000

static bool is_complete(struct pin_file file)
{
    struct flock found;
    const uint64_t at = area_of(file.of, COMPLETE);
    return find_lock(file, at, at + 1, &found);
}

/* Everybody locks the same ranges from below, so the first one that anybody has is the next. */
static bool read_taken(struct pin_file file, struct profile_mask *taken)
{
    const uint64_t base = area_of(file.of, TAKEN), end = base + PROFILE_MASK_PUS;
    struct flock found;
    if (!is_complete(file)) {
        return false;
    }
    *taken = (struct profile_mask){0};
    for (uint64_t at = base; find_lock(file, at, end, &found);) {
        const uint64_t behind = end_of_lock(&found) < end ? end_of_lock(&found) : end;
        at = (uint64_t)found.l_start > at ? (uint64_t)found.l_start : at;
        for (; at < behind; at++) {
            profile_mask_add(taken, (uint32_t)(at - base));
        }
    }
    return is_complete(file);
}

void pin_registry_publish(struct pin_registry *registry, const struct profile_mask *taken)
{
    const struct pin_file file = begin(registry);
    PROFILE_MASK_EACH(taken, pu)
    {
        (void)set_lock(file, F_RDLCK, area_of(registry, TAKEN + pu), 1);
    }
    (void)set_lock(file, F_RDLCK, area_of(registry, COMPLETE), 1);
    (void)pin_registry_keep(registry, file);
    pin_registry_end(file);
}

bool pin_registry_begin_turn(struct pin_registry *registry, const struct profile_mask *allowed,
                             bool together, struct profile_mask *taken)
{
    const uint64_t until = profile_now_ns() + LONGEST_WAIT_NS(together),
                   start = TURNS + ((uint64_t)profile_mask_next(allowed, 0) << TURN_SHIFT),
                   end = start + (UINT64_C(1) << TURN_SHIFT),
                   mine = start + (registry->job << PROCESS_BITS) + registry->process;
    const struct pin_file file = begin(registry);
    bool is_first = false, told = false;
    while (file.number >= 0 && set_lock(file, F_RDLCK, mine, 1)) {
        is_first = stays_alone(file, start, mine, end);
        told = together && read_taken(file, taken);
        if (is_first || told || profile_now_ns() > until) {
            break;
        }
        (void)set_lock(file, F_UNLCK, mine, 1);
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
    pin_registry_end(file);
    if (!together || (is_first && !told)) {
        return true;
    }
    if (told) {
        pin_registry_publish(registry, taken);
    } else {
        pin_registry_look(registry, allowed, taken);
    }
    pin_registry_end_turn(registry);
    return false;
}

void pin_registry_end_turn(struct pin_registry *registry)
{
    const struct pin_file file = begin(registry);
    (void)set_lock(file, F_UNLCK, TURNS, 0);
    pin_registry_end(file);
}

/* -- the beginning -- */

static uint64_t hash_of_this_process(void)
{
    uint64_t it[] = {profile_clock_ns(CLOCK_BOOTTIME), (uint64_t)getpid(), 0};
    it[2] = (uintptr_t)it; /* each of two namespaces has its own */
    return profile_hash_bytes(PROFILE_HASH_BEGIN, it, sizeof it);
}

int pin_registry_open(struct pin_registry *out, const char *path, uint64_t job)
{
    struct flock found;
    const uint64_t here = hash_of_this_process();
    if (out->path[0]) { /* else they are zeros, on pages that were never touched */
        memset(out, 0, offsetof(struct pin_registry, path));
    }
    const struct pin_file file = {.of = out, .number = pin_registry_find(path, out)};
    int rc = file.number < 0
                 ? file.number
                 : pin_registry_lock(file.number, F_OFD_GETLK, F_WRLCK, 0, AREAS, &found);
    job = job ? profile_hash_bytes(PROFILE_HASH_BEGIN, &job, sizeof job) : here;
    out->job = (job ^ job >> JOB_BITS) & ((UINT64_C(1) << JOB_BITS) - 1);
    out->has_fellows = job != here;
    out->process = here & ((1u << PROCESS_BITS) - 1);
    out->pid = getpid();
    if (rc == 0 && out->has_fellows) {
        pin_registry_adopt(out);
    }
    if (rc == 0 && !pin_registry_is_kept(out) && !pin_registry_keep(out, file)) {
        rc = -EMFILE;
    }
    out->on = rc == 0;
    out->alone = out->alone || rc < 0;
    pin_registry_end(file);
    return rc;
}
