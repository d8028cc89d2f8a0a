/* Memory of the workers: kept from one operation to the next, because first touch costs 3.5 ms per
 * MB in a virtual machine, and never more together than the system or a control group can spare,
 * because what is taken beyond that ends the process. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <numaif.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "probes/native/native.h"
#include "profile/base/file.h"

/* AnonHugePages of every mapping that touches the stretch: a mapping of the same kind beside it may
 * have been merged with it, so that this is at most what the stretch has. */
static ssize_t huge_bytes(const void *start, size_t bytes)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    const uintptr_t from = (uintptr_t)start, to = from + bytes;
    char line[512];
    bool inside = false;
    size_t sum = 0;
    if (!file) {
        return -errno;
    }
    while (fgets(line, sizeof line, file)) {
        uintptr_t low, high;
        size_t kilobytes;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &low, &high) == 2) {
            inside = low < to && high > from;
        } else if (inside && sscanf(line, "AnonHugePages: %zu kB", &kilobytes) == 1) {
            sum += kilobytes << 10;
        }
    }
    fclose(file);
    return (ssize_t)(sum < bytes ? sum : bytes);
}

/* The setting of the system is no promise: prctl, a control group or fragmented memory may stand
 * against it. */
static bool grants_huge_pages(size_t page_bytes)
{
    enum { PAGES = 2 };
    const size_t reserved = (PAGES + 1) * page_bytes, bytes = PAGES * page_bytes;
    unsigned char *start =
        mmap(NULL, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) {
        return true; /* nothing is known */
    }
    unsigned char *aligned = start + (page_bytes - (uintptr_t)start % page_bytes) % page_bytes;
    madvise(start, reserved, MADV_HUGEPAGE);
    for (size_t i = 0; i < PAGES; i++) {
        *(volatile unsigned char *)(aligned + i * page_bytes) = 1;
    }
    ssize_t huge = huge_bytes(aligned, bytes);
    munmap(start, reserved);
    return huge != 0;
}

/* Keeps in machine->grant what the largest region of huge pages really is. */
static void note_grant(struct machine *machine, const struct native_region *region)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (region->touched > machine->grant.asked_bytes) {
        ssize_t huge = huge_bytes(region->start, region->touched);
        if (huge >= 0) {
            machine->grant = (struct machine_grant){region->touched, (size_t)huge};
        }
    }
    pthread_mutex_unlock(&lock);
}

/* -- regions -- */

/* Claims of all workers; several workers of one job may ask for memory at once, and each must count
 * what the others are about to touch. */
static pthread_mutex_t claims = PTHREAD_MUTEX_INITIALIZER;

static void unmap(struct native_region *region)
{
    if (region->start) {
        munmap(region->start, region->reserved);
    }
    region->start = NULL;
    region->reserved = region->touched = 0;
}

/* For a worker without a job, or with the claims locked. */
static void free_region(struct native_region *region)
{
    unmap(region);
    region->claimed = 0;
}

static size_t claimed_bytes(const struct native_worker *worker)
{
    size_t sum = 0;
    for (size_t kind = 0; worker && kind < NATIVE_REGIONS; kind++) {
        sum += worker->regions[kind].claimed;
    }
    return sum;
}

size_t probe_native_regions_free(struct native_worker *worker, enum native_kind_of_region but)
{
    const size_t before = claimed_bytes(worker);
    for (size_t kind = 0; worker && kind < NATIVE_REGIONS; kind++) {
        if (kind != but) {
            free_region(&worker->regions[kind]);
        }
    }
    return before - claimed_bytes(worker);
}

/* Claims the bytes of the region. Called by a worker of the running job for the region that the job
 * uses, the same in each of its workers. Memory is taken of workers that are not in this job, then
 * of the regions that it does not use. */
static int make_room(struct native_worker *self, struct native_region *region, size_t bytes)
{
    struct native *native = self->native;
    const size_t count = native->machine->pus.count, most = native->machine->memory_limit_bytes;
    const enum native_kind_of_region used = (enum native_kind_of_region)(region - self->regions);
    pthread_mutex_lock(&claims);
    size_t total = bytes > region->claimed ? bytes - region->claimed : 0;
    for (size_t i = 0; i < count; i++) {
        total += claimed_bytes(native->workers[i]);
    }
    for (size_t i = 0; i < 2 * count && total > most; i++) {
        struct native_worker *worker = native->workers[i % count];
        const bool works = worker && worker->last_used == self->last_used;
        if (!works || i >= count) {
            total -= probe_native_regions_free(worker, works ? used : NATIVE_REGIONS);
        }
    }
    const bool room = total <= most;
    if (room && bytes > region->claimed) {
        region->claimed = bytes;
    }
    pthread_mutex_unlock(&claims);
    return room ? 0 : -ENOMEM;
}

static void give_back(struct native_region *region)
{
    pthread_mutex_lock(&claims);
    free_region(region);
    pthread_mutex_unlock(&claims);
}

int probe_native_bind(void *start, size_t bytes, int32_t numa)
{
    enum { BITS = 8 * sizeof(unsigned long), NODES = 1024 };
    unsigned long mask[NODES / BITS] = {0};
    if (numa < 0) {
        return 0;
    }
    TRY(numa < NODES ? 0 : -EINVAL);
    mask[(size_t)numa / BITS] |= 1ul << ((size_t)numa % BITS);
    if (mbind(start, bytes, MPOL_BIND, mask, NODES, 0) == 0) {
        return 0;
    }
    /* A node outside of the control group's, or without memory; or a sandbox that forbids the
     * call. */
    return errno == EINVAL || errno == EPERM || errno == ENOSYS ? -EACCES : -errno;
}

/* A node's memory that is available without swapping: free pages, and pages of files. */
static int node_free(int32_t numa, long long *bytes)
{
    static const char *const keys[] = {" MemFree:", " Active(file):", " Inactive(file):"};
    char path[64], text[4096];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%" PRId32 "/meminfo", numa);
    if (!profile_read_small(path, text, sizeof text)) {
        return -EACCES;
    }
    *bytes = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *at = strstr(text, keys[i]);
        *bytes += at ? strtoll(at + strlen(keys[i]), NULL, 10) * 1024 : 0;
    }
    return 0;
}

int probe_native_node_room(int32_t numa, size_t more)
{
    long long free_bytes = LLONG_MAX;
    TRY(numa < 0 ? 0 : node_free(numa, &free_bytes));
    return (long long)(2 * more) <= free_bytes ? 0 : -ENOMEM;
}

int probe_native_region_place(struct native_worker *worker, struct native_region *region,
                              int32_t numa, enum machine_pages pages, size_t bytes)
{
    if (region->numa != numa || region->pages != pages) {
        unmap(region);
        region->numa = numa;
        region->pages = pages;
    }
    TRY(bytes > region->touched ? probe_native_node_room(numa, bytes - region->touched) : 0);
    return probe_native_region_grow(worker, region, bytes);
}

static int reserve(struct native_region *region, size_t bytes)
{
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) {
        return -ENOMEM;
    }
    region->start = start;
    region->reserved = bytes;
    region->touched = 0;
    /* Told apart on purpose: with huge pages the knees of physically indexed caches are sharp, with
     * ordinary ones the pages fall where the kernel puts them. Both are advice, a kernel without
     * THP ignores it. */
    if (region->pages != MACHINE_PAGES_GIVEN) {
        madvise(start, bytes,
                region->pages == MACHINE_PAGES_HUGE ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    }
    int rc = probe_native_bind(start, bytes, region->numa);
    if (rc < 0) {
        unmap(region);
    }
    return rc;
}

int probe_native_region_grow(struct native_worker *worker, struct native_region *region,
                             size_t bytes)
{
    const size_t grain = 2u << 20; /* whole huge pages */
    bytes = (bytes + grain - 1) & ~(grain - 1);
    if (bytes <= region->touched) {
        return 0;
    }
    TRY(make_room(worker, region, bytes));
    if (bytes > region->reserved) {
        /* Address space is free: reserve all that will ever be allowed, so that touched pages are
         * kept. */
        size_t all = worker->native->machine->memory_limit_bytes;
        unmap(region);
        int rc = reserve(region, all > bytes ? all : bytes);
        if (rc == -ENOMEM) { /* a limit on address space (ulimit -v) */
            rc = reserve(region, bytes);
        }
        if (rc < 0) {
            give_back(region);
            return rc;
        }
    }
    size_t page = worker->native->machine->page_bytes;
    for (size_t at = region->touched; at < bytes; at += page) {
        region->start[at] = 1;
        if (at % grain == 0 && probe_native_cancelled(worker)) {
            region->touched = at;
            return -EINTR;
        }
    }
    region->touched = bytes;
    if (region->pages == MACHINE_PAGES_HUGE) {
        note_grant(worker->native->machine, region);
    }
    return 0;
}

size_t probe_native_huge_page_bytes(void)
{
    char line[128];
    profile_first_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line);
    if (line[0] == '\0' || strstr(line, "[never]")) {
        return 0;
    }
    profile_first_line("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", line, sizeof line);
    size_t bytes = strtoul(line, NULL, 10);
    return bytes == 0 || !grants_huge_pages(bytes) ? 0 : bytes;
}
