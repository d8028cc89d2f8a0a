/* Which job holds which PUs of this node, by locks of the kernel. */
#include "preload/node/node.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profile/base/clock.h"
#include "profile/base/hash.h"

/* -- the layout of the locks -- */

/* Jobs on one PU that are counted separately. */
#define LANES 8u
#define SLOTS (PROFILE_MASK_PUS * LANES)
/* A lane of a PU is a slot of 2^43 bytes. All its locks begin with it, so each keeps all others
 * out, and none reaches the next slot, or the kernel would make one lock of two. */
#define SLOT_SHIFT 43
#define JOB_BITS 40
/* A lock's length is 1 + 4 * job + purpose. A process that locks more of what it has locked has the
 * longer lock: a purpose gives way to a higher one only. */
#define PURPOSE_BITS 2
enum { FOR_FELLOWS, FOR_THREADS, FOR_MAIN };

/* Above all slots each job has 2^14 bytes: who leads it here, and what that one counted as taken by
 * others. They are read locks, of every process that goes by them, so they last as long as one of
 * these. No two ranges touch. */
#define AREAS (UINT64_C(1) << 62)
#define AREA_SHIFT 14
enum { LEADER = 0, COMPLETE = 2, TAKEN = 4 };

static uint64_t start_of(uint32_t slot)
{
    return (uint64_t)slot << SLOT_SHIFT;
}

static uint64_t area_of(const struct pin_registry *registry, uint32_t offset)
{
    return AREAS + (registry->job << AREA_SHIFT) + offset;
}

/* The first byte behind a lock. */
static uint64_t end_of(const struct flock *lock)
{
    return lock->l_len == 0 ? (uint64_t)INT64_MAX : (uint64_t)lock->l_start + (uint64_t)lock->l_len;
}

/* fcntl(2) with a lock on these bytes. 0; -EAGAIN, -EACCES: another process has one there;
 * -errno. */
static int call(const struct pin_registry *registry, int command, short type, uint64_t start,
                uint64_t bytes, struct flock *lock)
{
    *lock = (struct flock){
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)start, .l_len = (off_t)bytes};
    return fcntl(registry->file, command, lock) < 0 ? -errno : 0;
}

static bool set_lock(const struct pin_registry *registry, short type, uint64_t start,
                     uint64_t bytes)
{
    struct flock lock;
    return call(registry, F_SETLK, type, start, bytes, &lock) == 0;
}

/* Has another process a lock on any of these bytes? Of several it may be any one. */
static bool find_lock(const struct pin_registry *registry, uint64_t start, uint64_t bytes,
                      struct flock *out)
{
    return call(registry, F_GETLK, F_WRLCK, start, bytes, out) == 0 && out->l_type != F_UNLCK;
}

/* -- what others hold -- */

/* No job has this number: of a lock that is not one of ours, in a file for all users. */
#define JOB_UNKNOWN UINT64_MAX

/* A lock of another process. */
struct holder {
    uint64_t job;
    unsigned purpose;
};

/* On these slots, any one of several. */
static bool find_holder(const struct pin_registry *registry, uint32_t first, uint32_t slots,
                        struct holder *out)
{
    struct flock lock;
    if (!find_lock(registry, start_of(first), start_of(slots), &lock)) {
        return false;
    }
    const uint64_t start = (uint64_t)lock.l_start, what = (uint64_t)lock.l_len - 1;
    const bool whole = start == start_of((uint32_t)(start >> SLOT_SHIFT)) &&
                       what >> (JOB_BITS + PURPOSE_BITS) == 0;
    out->job = whole ? what >> PURPOSE_BITS : JOB_UNKNOWN;
    out->purpose = what & ((1u << PURPOSE_BITS) - 1);
    return true;
}

/* Load of a PU: other jobs, those of them with their main threads there, and whether this job has
 * threads there. */
struct company {
    unsigned jobs, mains;
    bool fellows, at_work;
    uint64_t job[LANES];
};

static struct company company_on(const struct pin_registry *registry, uint32_t pu)
{
    const uint32_t slot = pu * LANES;
    struct company company = {0};
    struct holder holder;
    if (!find_holder(registry, slot, LANES, &holder)) {
        return company;
    }
    for (uint32_t at = slot; at < slot + LANES; at++) {
        unsigned known = 0;
        if (!find_holder(registry, at, 1, &holder)) {
            continue;
        }
        if (holder.job == registry->job) {
            company.fellows = true;
            company.at_work |= holder.purpose != FOR_FELLOWS;
            continue;
        }
        while (known < company.jobs && company.job[known] != holder.job) {
            known++;
        }
        company.job[known] = holder.job;
        company.jobs += known == company.jobs;
        company.mains += holder.purpose == FOR_MAIN;
    }
    return company;
}

/* The descriptor is still ours, as far as can be seen. If not, its locks went with the file. */
static bool is_there(struct pin_registry *registry)
{
    struct stat about;
    if (registry->on && (pin_registry_stat(registry->file, &about) < 0 ||
                         about.st_ino != registry->inode || about.st_dev != registry->device)) {
        registry->on = false;
    }
    return registry->on;
}

bool pin_registry_look(struct pin_registry *registry, const struct profile_mask *allowed,
                       struct profile_mask *held)
{
    struct holder any;
    *held = (struct profile_mask){0};
    if (!is_there(registry) || !find_holder(registry, 0, SLOTS, &any)) {
        return false;
    }
    PROFILE_MASK_EACH(allowed, pu)
    {
        if (find_holder(registry, pu * LANES, LANES, &any) &&
            (any.job != registry->job || company_on(registry, pu).jobs > 0)) {
            profile_mask_add(held, pu);
        }
    }
    return true;
}

void pin_registry_count(struct pin_registry *registry, uint32_t pu, unsigned *jobs, unsigned *mains)
{
    struct company company = {0};
    if (pu < PROFILE_MASK_PUS && is_there(registry)) {
        company = company_on(registry, pu);
    }
    *jobs = company.jobs;
    *mains = company.mains;
}

int32_t pin_registry_shared(struct pin_registry *registry, const struct profile_mask *used)
{
    bool there = is_there(registry);
    PROFILE_MASK_EACH(used, pu)
    {
        const struct company company = there ? company_on(registry, pu) : (struct company){0};
        if (company.jobs > 0 || company.at_work) {
            return (int32_t)pu;
        }
    }
    return -1;
}

/* -- what this process holds -- */

/* No other job is here, or this one has been before. */
static bool may_come(const struct pin_registry *registry, uint32_t pu)
{
    const struct company company = company_on(registry, pu);
    return registry->purpose[pu] != 0 || company.fellows || company.jobs == 0;
}

/* In the first lane that is free. A job that takes one looks for others afterwards, so at most one
 * of two that come to a free PU at once stays. */
bool pin_registry_take(struct pin_registry *registry, uint32_t pu, bool is_main, bool beside)
{
    const unsigned purpose = is_main ? FOR_MAIN : registry->leads ? FOR_FELLOWS : FOR_THREADS;
    if (pu >= PROFILE_MASK_PUS || !is_there(registry) || registry->purpose[pu] > purpose) {
        return true;
    }
    for (uint32_t lane = 0; lane < LANES; lane++) {
        const uint64_t start = start_of(pu * LANES + lane);
        const bool taken =
            set_lock(registry, F_WRLCK, start, 1 + (registry->job << PURPOSE_BITS) + purpose);
        if (!beside && !may_come(registry, pu)) {
            (void)(taken && set_lock(registry, F_UNLCK, start, start_of(1)));
            return false;
        }
        if (taken) {
            registry->purpose[pu] = (unsigned char)(purpose + 1);
            return true;
        }
    }
    return true;
}

void pin_registry_give_back(struct pin_registry *registry, uint32_t pu)
{
    if (pu < PROFILE_MASK_PUS && atomic_exchange(&registry->purpose[pu], 0) != 0 &&
        is_there(registry)) {
        set_lock(registry, F_UNLCK, start_of(pu * LANES), start_of(LANES));
    }
}

/* -- ranks -- */

/* How long to wait for what the first rank publishes: a plan takes a millisecond. */
#define LONGEST_WAIT_NS 50000000u
#define NAP_NS 200000

static bool is_complete(const struct pin_registry *registry)
{
    struct flock found;
    return find_lock(registry, area_of(registry, COMPLETE), 1, &found);
}

/* Everybody locks the same ranges from below, so the first one that anybody has is the next. */
static bool read_taken(const struct pin_registry *registry, struct profile_mask *taken)
{
    const uint64_t base = area_of(registry, TAKEN), end = base + PROFILE_MASK_PUS;
    struct flock found;
    if (!is_complete(registry)) {
        return false;
    }
    *taken = (struct profile_mask){0};
    for (uint64_t at = base; at < end && find_lock(registry, at, end - at, &found);) {
        const uint64_t behind = end_of(&found) < end ? end_of(&found) : end;
        at = (uint64_t)found.l_start > at ? (uint64_t)found.l_start : at;
        for (; at < behind; at++) {
            profile_mask_add(taken, (uint32_t)(at - base));
        }
    }
    return is_complete(registry);
}

void pin_registry_publish(struct pin_registry *registry, const struct profile_mask *taken)
{
    if (!is_there(registry)) {
        return;
    }
    for (uint32_t pu = profile_mask_next(taken, 0), end; pu < PROFILE_MASK_PUS;
         pu = profile_mask_next(taken, end)) {
        for (end = pu + 1; end < PROFILE_MASK_PUS && profile_mask_has(taken, end); end++) {
            ;
        }
        set_lock(registry, F_RDLCK, area_of(registry, TAKEN + pu), end - pu);
    }
    set_lock(registry, F_RDLCK, area_of(registry, COMPLETE), 1);
    registry->leads = false;
}

bool pin_registry_lead(struct pin_registry *registry, const struct profile_mask *allowed,
                       struct profile_mask *taken)
{
    const uint64_t until = profile_now_ns() + LONGEST_WAIT_NS;
    bool leads = false, told = false;
    *taken = (struct profile_mask){0};
    if (!is_there(registry)) {
        return true;
    }
    /* The leader looks once more: an earlier leader may have ended and left a process of this
     * job. */
    while (!(told = read_taken(registry, taken)) && !leads && profile_now_ns() < until) {
        leads = set_lock(registry, F_WRLCK, area_of(registry, LEADER), 1);
        if (!leads) {
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        }
    }
    if (told) {
        pin_registry_publish(registry, taken);
    } else {
        (void)pin_registry_look(registry, allowed, taken);
    }
    registry->leads = leads && !told;
    return registry->leads;
}

/* -- begin and end -- */

static uint64_t job_of_this_process(void)
{
    uint64_t it[] = {profile_clock_ns(CLOCK_BOOTTIME), (uint64_t)getpid(), 0};
    it[2] = (uintptr_t)it; /* each of two namespaces has its own */
    return profile_hash_bytes(PROFILE_HASH_BEGIN, it, sizeof it);
}

int pin_registry_open(struct pin_registry *out, const char *path, uint64_t job)
{
    struct stat about;
    struct flock found;
    memset(out, 0, offsetof(struct pin_registry, path));
    int rc = out->file = pin_registry_file(path, out->path);
    if (rc < 0) {
        return rc;
    }
    job = job ? profile_hash_bytes(PROFILE_HASH_BEGIN, &job, sizeof job) : job_of_this_process();
    out->job = (job ^ job >> JOB_BITS) & ((UINT64_C(1) << JOB_BITS) - 1);
    rc = pin_registry_stat(out->file, &about);
    if (rc == 0) {
        rc = call(out, F_GETLK, F_WRLCK, 0, start_of(SLOTS), &found);
    }
    if (rc < 0) {
        close(out->file);
        return rc;
    }
    out->device = about.st_dev;
    out->inode = about.st_ino;
    out->on = true;
    return 0;
}

void pin_registry_forget(struct pin_registry *registry)
{
    if (is_there(registry)) {
        close(registry->file);
    }
    registry->on = false;
}

/* The descriptor stays open in the program that this process becomes, and its locks with it. */
void pin_registry_keep(struct pin_registry *registry)
{
    if (registry->on) {
        fcntl(registry->file, F_SETFD, 0);
    }
}
