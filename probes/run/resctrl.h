/* How much of a cache the kernel's resctrl lets this process allocate in (Intel CAT, AMD QoS, Arm
 * MPAM): what /sys/fs/resctrl says, in the format of the kernel's
 * Documentation/arch/x86/resctrl.rst.
 */
#ifndef SERVET_PROBES_RUN_RESCTRL_H
#define SERVET_PROBES_RUN_RESCTRL_H

#include <stdint.h>

struct resctrl_share {
    uint32_t parts, of; /* bits set in the mask of the group that holds the task, and bits that a
                           mask has: the ways, or equal parts, of the cache */
};

/* Of the cache of `level` that `pu` is behind. The group is the one that lists the task; else the
 * one that the PU is assigned to; else the root. `root` is "" or the folder of a captured tree;
 * `task` a thread's id.
 * 0; -ENOENT when resctrl is not mounted or does not partition that level or the cache's number is
 * not said; -EINVAL when its files are not as the kernel writes them; -ENOMEM. */
int probe_resctrl_share(const char *root, long task, uint32_t pu, uint32_t level,
                        struct resctrl_share *out);

#endif
