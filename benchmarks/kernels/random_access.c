/* RANDOM: updates of a table at random places, table[x mod size] ^= x, in the way of the HPC
 * Challenge's RandomAccess, but with threads' and ranks' own parts of one table, so that no update
 * is lost: latency of caches, TLB and memory. Exclusive or undoes itself: after a second pass of
 * the same updates the table must be as it was. */
#include <stdint.h>
#include <stdlib.h>

#include "benchmarks/kernels/kernel.h"
#include "benchmarks/kernels/par.h"
#include "profile/base/clock.h"
#include "profile/base/random.h"

const char kernel_name[] = "RANDOM";

#define UPDATES_PER_WORD 4

static const size_t words[] = {1 << 16, 1 << 21, 1 << 24, 1 << 27};

/* All updates of one part; a part belongs to one thread. */
static void update(uint64_t *table, size_t count, uint64_t seed)
{
    struct random random = {seed};
    for (size_t i = 0; i < UPDATES_PER_WORD * count; i++) {
        uint64_t value = random_next(&random);
        /* the upper half of value x count: a place without a division */
        table[(size_t)(((unsigned __int128)value * count) >> 64)] ^= value;
    }
}

static void pass(uint64_t *table, size_t first, size_t count)
{
    const size_t threads = par_threads();
#pragma omp parallel for schedule(static)
    for (size_t part = 0; part < threads; part++) {
        size_t from = count * part / threads, to = count * (part + 1) / threads;
        update(table + from, to - from, first + from + 1);
    }
}

bool kernel_run(char problem, struct kernel_result *result)
{
    size_t total = words[kernel_class_index(problem)], first, count;
    par_share(total, par_rank(), &first, &count);
    uint64_t *table = kernel_memory(count, sizeof *table);
    for (size_t i = 0; i < count; i++) {
        table[i] = first + i;
    }
    par_barrier();
    double start = profile_now_s();
    pass(table, first, count);
    result->seconds = par_maximum(profile_now_s() - start);
    double changed = 0, wrong = 0;
    for (size_t i = 0; i < count; i++) {
        changed += table[i] != first + i;
    }
    pass(table, first, count);
    for (size_t i = 0; i < count; i++) {
        wrong += table[i] != first + i;
    }
    result->rate = UPDATES_PER_WORD * (double)total / result->seconds * 1e-6;
    result->unit = "M updates/s";
    result->verified = par_sum(wrong) == 0 && par_sum(changed) > 0;
    result->checked = "a second pass of the same updates restores the table";
    free(table);
    return true;
}
