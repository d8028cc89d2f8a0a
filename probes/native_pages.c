#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "native.h"

/* AnonHugePages of every mapping that touches the stretch: a mapping of the same kind beside it may have been merged
 * with it, so that this is at most what the stretch has. */
ssize_t native_huge_bytes(const void *start, size_t bytes)
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

/* The setting of the system is no promise: prctl, a control group or fragmented memory may stand against it. */
bool native_grants_huge_pages(size_t page_bytes)
{
    enum { PAGES = 2 };
    const size_t reserved = (PAGES + 1) * page_bytes, bytes = PAGES * page_bytes;
    unsigned char *start = mmap(NULL, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) {
        return true; /* nothing is known */
    }
    unsigned char *aligned = start + (page_bytes - (uintptr_t)start % page_bytes) % page_bytes;
    madvise(start, reserved, MADV_HUGEPAGE);
    for (size_t i = 0; i < PAGES; i++) {
        *(volatile unsigned char *)(aligned + i * page_bytes) = 1;
    }
    ssize_t huge = native_huge_bytes(aligned, bytes);
    munmap(start, reserved);
    return huge != 0;
}

void native_note_grant(struct machine *machine, const struct native_region *region)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (region->touched > machine->grant.asked_bytes) {
        ssize_t huge = native_huge_bytes(region->start, region->touched);
        if (huge >= 0) {
            machine->grant = (struct machine_grant){region->touched, (size_t)huge};
        }
    }
    pthread_mutex_unlock(&lock);
}
