/* A look at the PUs that other programs keep busy. */
#include "preload/place/look.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "profile/base/clock.h"
#include "profile/base/file.h"
#include "profile/base/ticks.h"

/* A thread that runs for a moment is not runnable at each of so many readings. */
#define READINGS 3

static struct {
    atomic_bool pending;
    uint64_t begun_ns;
    struct profile_ticks *ticks;
    size_t pus;
} look;

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
    pin_look_forget();
    const size_t others = count_others(ours);
    if (others == 0) {
        return 0;
    }
    PROFILE_MASK_EACH(pus, pu)
    {
        look.pus = pu + 1;
    }
    look.ticks = calloc(look.pus, sizeof *look.ticks);
    const bool known = look.ticks && profile_ticks_get(look.ticks, look.pus) == 0;
    look.begun_ns = profile_now_ns();
    atomic_store(&look.pending, known);
    return others;
}

bool pin_look_is_pending(void)
{
    return atomic_load_explicit(&look.pending, memory_order_relaxed);
}

uint64_t pin_look_left_ns(void)
{
    const uint64_t passed = profile_now_ns() - look.begun_ns;
    return pin_look_is_pending() && passed < PROFILE_TICKS_APART_NS
               ? PROFILE_TICKS_APART_NS - passed
               : 0;
}

void pin_look_end(struct profile_mask *busy)
{
    struct profile_ticks *now = calloc(look.pus, sizeof *now);
    *busy = (struct profile_mask){0};
    if (now && profile_ticks_get(now, look.pus) == 0) {
        for (uint32_t pu = 0; pu < look.pus; pu++) {
            if (profile_ticks_idled(&look.ticks[pu], &now[pu]) == 0) {
                profile_mask_add(busy, pu);
            }
        }
    }
    free(now);
    pin_look_forget();
}

void pin_look_forget(void)
{
    free(look.ticks);
    look.ticks = NULL;
    look.pus = 0;
    atomic_store(&look.pending, false);
}
