/* One simulated machine, what is probed on it, and what its profile says of memory: for the tests
 * of sets of workers. */
#ifndef SERVET_TESTS_PROBES_SETS_MACHINE_H
#define SERVET_TESTS_PROBES_SETS_MACHINE_H

#include "mapper/map.h"
#include "probes/memory/pairs.h"

#include "probes/run/progress.h"
#include "probes/run/run.h"
#include "tests/probes/open_fixture.h"
#include "tests/simulated/simulated.h"

static struct machine machine;
static struct servet_profile *profile;
static uint64_t run_seed = 1;

/* As a virtual machine shows it: PUs, and nothing that they have in common. */
static inline void hide(struct profile_class *declared)
{
    profile_relation_free(&declared->packages);
    profile_relation_free(&declared->cores);
    for (size_t i = 0; i < declared->cache_count; i++) {
        profile_relation_free(&declared->caches[i].sharing);
    }
    for (size_t i = 0; i < declared->numa_count; i++) {
        profile_set_free(&declared->numa[i].pus);
    }
    declared->numa_count = 0;
}

/* A level that was found was measured: two of its PUs at least, at once. */
static inline void check_figures(const struct profile_memory *memory)
{
    for (size_t i = 0; i < memory->level_count; i++) {
        ck_assert_double_gt(memory->levels[i].bytes_per_s, 0);
        ck_assert(memory->levels[i].scaling_count != 1);
    }
}

static inline void probe_opened(unsigned probes)
{
    struct progress progress = {.events = -1};
    struct servet_error error;
    struct probe_run run = {
        .probes = probes, .seed = run_seed, .machine = &machine, .progress = &progress};
    ck_assert_msg(probe_run_run(&run, &profile, &error) == 0, "%s", error.text);
    ck_assert_msg(profile_check(profile, &error) == 0, "%s", error.text);
    check_figures(&profile->classes[0].memory);
}

static inline void probe_it(const char *name, void (*change)(struct profile_class *declared),
                            unsigned probes)
{
    open_machine_of(name, &machine);
    if (change) {
        change(&machine.declared->classes[0]);
    }
    probe_opened(probes);
}

static inline void close_it(void)
{
    probe_machine_close(&machine);
    profile_free(profile);
    profile = NULL;
}

/* Rate of so many workers of memory priority together, without noise. */
static inline double mapped(size_t workers)
{
    const struct machine_copy what = {.bytes = 1u << 20, .passes = 1, .numa = -1};
    const struct map_request request = {.priority = MAP_MEMORY, .workers = workers};
    struct servet_error error;
    uint32_t pus[1024];
    double rates[1024], sum = 0;
    ((struct sim *)machine.state)->noise = (struct sim_noise){0};
    ck_assert_int_eq(map_workers(profile, &request, pus, NULL, &error), 0);
    ck_assert_int_eq(probe_machine_copy(&machine, &what, pus, workers, rates), 0);
    for (size_t i = 0; i < workers; i++) {
        sum += rates[i];
    }
    return sum;
}

/* The level that has this group, or NULL. */
static inline const struct profile_memory_level *level_of(const char *group)
{
    const struct profile_memory *memory = &profile->classes[0].memory;
    struct profile_set wanted;
    const struct profile_memory_level *found = NULL;
    ck_assert_int_eq(profile_set_parse(group, &wanted), 0);
    for (size_t i = 0; i < memory->level_count; i++) {
        for (size_t g = 0; g < memory->levels[i].collisions.group_count; g++) {
            bool same = profile_set_equal(&memory->levels[i].collisions.groups[g], &wanted);
            found = same ? &memory->levels[i] : found;
        }
    }
    profile_set_free(&wanted);
    return found;
}

#endif
