/* A look at the PUs that other programs keep busy. */
#include "preload/place/look.h"

#include <stdatomic.h>

#include "preload/base/pages.h"
#include "profile/base/clock.h"
#include "profile/base/file.h"
#include "profile/base/ticks.h"

/* A thread that runs for a moment is not runnable at each of so many readings. */
#define READINGS 3

/* A thread that is at the look's figures has exclusive use of them; no other one waits for it. */
enum { NO_LOOK, LOOK_PENDING, LOOK_IN_USE };

static struct {
    atomic_int state;
    _Atomic(uint64_t) begun_ns;
    _Atomic(void *) ticks; /* two for each PU: before and now; never given back */
    size_t pus;
} look;

static bool take_look(int from)
{
    return atomic_compare_exchange_strong(&look.state, &from, LOOK_IN_USE);
}

static size_t count_others(size_t ours)
{
    size_t least = SIZE_MAX;
    for (int i = 0; i < READINGS && least > 0; i++) {
        const size_t running = profile_running_tasks(),
                     others = running > ours ? running - ours : 0;
        least = others < least ? others : least;
    }
    return least;
}

size_t pin_look_begin(const struct profile_mask *pus, size_t ours)
{
    const size_t others = count_others(ours);
    if (!take_look(NO_LOOK) && !take_look(LOOK_PENDING)) {
        return others;
    }
    PROFILE_MASK_EACH(pus, pu)
    {
        look.pus = pu + 1;
    }
    struct profile_ticks *before =
        pin_pages_map_once(&look.ticks, 2 * PROFILE_MASK_PUS * sizeof *before);
    const bool known = others > 0 && before && profile_ticks_get(before, look.pus) == 0;
    atomic_store(&look.begun_ns, profile_now_ns());
    atomic_store(&look.state, known ? LOOK_PENDING : NO_LOOK);
    return others;
}

bool pin_look_is_pending(void)
{
    return atomic_load_explicit(&look.state, memory_order_relaxed) == LOOK_PENDING;
}

uint64_t pin_look_left_ns(void)
{
    const uint64_t passed = profile_now_ns() - atomic_load(&look.begun_ns);
    return pin_look_is_pending() && passed < PROFILE_TICKS_APART_NS
               ? PROFILE_TICKS_APART_NS - passed
               : 0;
}

bool pin_look_end(struct profile_mask *busy)
{
    if (!pin_look_is_pending() || pin_look_left_ns() > 0 || !take_look(LOOK_PENDING)) {
        return false;
    }
    const struct profile_ticks *before = atomic_load(&look.ticks);
    struct profile_ticks *now = (struct profile_ticks *)atomic_load(&look.ticks) + look.pus;
    *busy = (struct profile_mask){0};
    if (profile_ticks_get(now, look.pus) == 0) {
        for (uint32_t pu = 0; pu < look.pus; pu++) {
            if (profile_ticks_idled(&before[pu], &now[pu]) == 0) {
                profile_mask_add(busy, pu);
            }
        }
    }
    return true;
}

void pin_look_forget(void)
{
    atomic_store(&look.state, NO_LOOK);
}
