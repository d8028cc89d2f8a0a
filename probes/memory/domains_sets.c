/* Sets of units at work: who works, and what they get in all. The total is compared, not the rate
 * of one worker, since a saturated link is not always shared evenly. */
#include "probes/memory/search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Constant      unit     source                                  without it
 * LOOKS, _MANY  copies   with 3 % of outliers every second copy  totals are too low, and gains too
 *                        of 30 workers has one                   high
 * MANY          workers  as LOOKS                                all sets take twice as long
 * COPIES_EACH   copies   11 to 15 a core on simulated machines   the bar stands still or jumps
 *                        of 128 to 512 PUs */
enum { LOOKS = 3, LOOKS_MANY = 6, MANY = 16, COPIES_EACH = 12 };

/* One PU of each core of each unit that works; how many. */
static size_t put_workers(const struct sets *sets, const struct partition *of, const bool *works,
                          uint32_t *ids)
{
    size_t count = 0;
    for (size_t i = 0; i < of->pus; i++) {
        bool core_works = !works[of->unit[i]];
        for (size_t k = sets->cores.first[sets->cores.unit[i]]; k < i && !core_works; k++) {
            core_works = sets->cores.unit[k] == sets->cores.unit[i] && of->unit[k] == of->unit[i];
        }
        if (!core_works) {
            ids[count++] = sets->pus->ids[i];
        }
    }
    return count;
}

static int copy_once(struct sets *sets, const uint32_t *ids, size_t count, double *bytes_per_s)
{
    const struct machine_copy what =
        probe_memory_what(sets->probe, probe_memory_room(sets->probe, sets->bytes, count), -1);
    const double made = (double)sets->copies, expected = COPIES_EACH * (double)sets->cores.count;
    probe_tell(sets->probe, made / (made + expected), "memory of %zu PUs together", count);
    double sum;
    int rc = probe_memory_total(sets->probe, &what, ids, count, &sum);
    sets->copies++;
    *bytes_per_s = fmax(*bytes_per_s, sum);
    return rc;
}

int probe_sets_total(struct sets *sets, const struct partition *of, const bool *works, bool once,
                     double *bytes_per_s)
{
    FREED uint32_t *ids = malloc((of->pus + 1) * sizeof *ids);
    TRY(ids ? 0 : -ENOMEM);
    const size_t count = put_workers(sets, of, works, ids);
    const size_t looks = once ? 1 : count > MANY ? LOOKS_MANY : LOOKS;
    *bytes_per_s = count > sets->at_once ? NAN : 0;
    if (count == 0 || count > sets->at_once) {
        return 0;
    }
    for (size_t look = 0; look < looks && (look == 0 || !probe_late(sets->probe)); look++) {
        TRY(copy_once(sets, ids, count, bytes_per_s));
    }
    return 0;
}

/* The PU of a unit that is one core is measured once in all. */
int probe_sets_alone(struct sets *sets, const struct partition *of, uint32_t unit,
                     double *bytes_per_s)
{
    const size_t pu = of->first[unit];
    const bool one_core = probe_partition_size(of, pu) <= probe_partition_size(&sets->cores, pu);
    *bytes_per_s = one_core ? sets->alone[pu] : 0;
    if (*bytes_per_s > 0) {
        return 0;
    }
    FREED bool *works = calloc(of->count, sizeof *works);
    TRY(works ? 0 : -ENOMEM);
    works[unit] = true;
    TRY(probe_sets_total(sets, of, works, false, bytes_per_s));
    sets->alone[pu] = one_core ? *bytes_per_s : sets->alone[pu];
    return 0;
}

const struct partition *probe_sets_inner_of(const struct sets *sets, const struct partition *of)
{
    const struct partition *inner = &sets->cores;
    for (size_t i = 0; i < sets->count; i++) {
        const struct partition *level = &sets->levels[i].partition;
        inner = level->count > of->count && probe_partition_refines(level, of) ? level : inner;
    }
    return inner;
}

const struct partition *probe_sets_outer_of(const struct sets *sets, const struct partition *of)
{
    for (size_t i = 0; i < sets->count; i++) {
        const struct partition *level = &sets->levels[i].partition;
        if (level->count < of->count && probe_partition_refines(of, level)) {
            return level;
        }
    }
    return NULL;
}

uint32_t probe_sets_first_group(const struct sets *sets, const struct partition *of)
{
    const struct partition *inner = probe_sets_inner_of(sets, of);
    uint32_t several = of->count;
    for (uint32_t unit = 0; unit < of->count; unit++) {
        const size_t pu = of->first[unit], size = probe_partition_size(of, pu);
        if (size > probe_partition_size(inner, pu)) {
            return unit;
        }
        several = several == of->count && size > 1 ? unit : several;
    }
    return several < of->count ? several : 0;
}
