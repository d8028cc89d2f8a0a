/* A process near the GPU that it has taken by itself (SERVET_GPUS=follow). libservet_follow.so sees
 * that it takes one and calls the function here.
 *
 * Before the first thread the process is from then on one that was started near the device: its
 * threads get places there. Later the places that threads have are given up, as in a sandbox: who
 * was pinned runs near the device, and so does what comes. One of several ranks, and a main thread
 * that the program has bound, are left. */
#include <errno.h>

#include "preload/base/next.h"
#include "preload/node/log.h"
#include "preload/place/process.h"
#include "profile/base/nearness.h"

/* The process's PUs before; empty: it has not been looked at. */
static struct profile_mask before;

/* PUs of the process that the kernel calls near. False: none, or all. */
static bool find_near(const char *bus_id, struct profile_mask *out)
{
    if (!profile_near_bus("", bus_id, out)) {
        return false;
    }
    profile_mask_intersect(out, &before);
    return !profile_mask_empty(out) && !profile_mask_equal(out, &before);
}

static bool may_move(void)
{
    if (!pin_here.options.follow || (!pin_process_active() && !atomic_load(&pin_life.gave_up))) {
        return false;
    }
    if (pin_life_state() == IDLE) {
        pin_launcher_read(pin_here.options.rebind, &pin_here.launcher);
    }
    return pin_here.launcher.node_ranks <= 1 && pin_process_main_is_ours();
}

/* NULL: the process has taken several devices, and goes back. 0; -EPERM: it is left for good. */
PIN_EXPORT int servet_pin_follow(const char *bus_id);
PIN_EXPORT int servet_pin_follow(const char *bus_id)
{
    struct profile_mask near;
    if (!may_move()) {
        return -EPERM;
    }
    if (profile_mask_empty(&before)) {
        before = pin_here.start;
    }
    const bool found = bus_id && find_near(bus_id, &near);
    const struct profile_mask *target = found ? &near : &before;
    if (!profile_mask_equal(target, &pin_here.start)) {
        pin_process_start_on(target);
        pin_log(pin_here.options.verbose, "%s%s", found ? "near the GPU at " : "near no GPU",
                found ? bus_id : "");
    }
    return 0;
}
