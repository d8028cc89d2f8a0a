/* How near a process is to a device, in one word: for servet-pin's report, and for `servet-show
 * --live`. */
#pragma once

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "profile/base/file.h"
#include "profile/base/mask.h"

/* servet-pin says which GPUs a rank has, in the variable SERVET_BESIDE behind the rank's own words:
 * "NAME=PUS" of each, behind a blank, where PUS are those near it. */
#define PROFILE_BESIDE "SERVET_BESIDE"

static inline const char *profile_nearness(const struct profile_mask *pus,
                                           const struct profile_mask *near)
{
    struct profile_mask both = *pus;
    profile_mask_intersect(&both, near);
    if (profile_mask_empty(&both)) {
        return "far";
    }
    return profile_mask_within(pus, near) ? "near" : "partly near";
}

/* The PUs that the kernel calls near a PCI device. The address may have capital letters; `root`: of
 * /sys. */
static inline bool profile_near_bus(const char *root, const char *bus_id, struct profile_mask *out)
{
    char path[PATH_MAX], bus[32] = "", list[4096];
    for (size_t i = 0; bus_id[i] && i < sizeof bus - 1; i++) {
        bus[i] = (char)(bus_id[i] >= 'A' && bus_id[i] <= 'F' ? bus_id[i] - 'A' + 'a' : bus_id[i]);
    }
    snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/local_cpulist", root, bus);
    return profile_first_line(path, list, sizeof list) && profile_mask_parse(list, out);
}

/* The first of them in the variable's text ("JOB RANK/SIZE NAME=PUS …"), which may be NULL. */
static inline const char *profile_first_beside(const char *text)
{
    const char *rank = text ? strchr(text, '/') : NULL, *blank = rank ? strchr(rank, ' ') : NULL;
    return blank ? blank : "";
}

/* The next "NAME=PUS" of `*at`, which goes on behind it. False: there is none. */
static inline bool profile_next_beside(const char **at, char *name, size_t size,
                                       struct profile_mask *near)
{
    *at += strspn(*at, " ");
    const size_t length = strcspn(*at, "="), end = strcspn(*at, " ");
    if (length >= end || length >= size) {
        return false;
    }
    snprintf(name, size, "%.*s", (int)length, *at);
    const char *list = *at + length + 1;
    *at += end;
    return profile_mask_parse(list, near);
}
