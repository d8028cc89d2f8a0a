#include "benchmarks/servet_bench/reason.h"

#include <string.h>

#include "benchmarks/servet_bench/tools.h"

/* Whether a comparator leaves the choice of PUs to the system's scheduler. mpirun binds ranks by
 * itself up to two. */
static bool leaves_threads_free(const struct comparator *comparator, const struct program *program)
{
    return strcmp(comparator->name, "bind-none") == 0 ||
           (strcmp(comparator->name, "default") == 0 && program->ranks == 0);
}

static size_t workers(const struct comparison *comparison)
{
    const struct program *program = comparison->program;
    size_t ranks = program->ranks ? program->ranks : 1,
           threads = program->threads ? program->threads : 1;
    return ranks * threads * comparison->conditions.jobs;
}

/* Whether another of servet's priorities is not slower than the best of the others. */
static bool other_priority_is_not(const struct comparison *comparison,
                                  const struct verdict *verdict)
{
    const struct series *best = measure_best(comparison, true);
    if (!best || best == verdict->ours) {
        return false;
    }
    const struct verdict other = report_verdict_between(comparison, best, verdict->best);
    return !other.slower;
}

const char *reason_of(const struct comparison *comparison, const struct verdict *verdict)
{
    size_t pus = tools_pus(), count = workers(comparison);
    bool free_threads = leaves_threads_free(verdict->best->comparator, comparison->program);
    if (comparison->conditions.load_pus && free_threads) {
        return "a pinned thread stays beside the background job, from which the system moves its "
               "own";
    }
    if (count > pus && free_threads) {
        return "more threads than PUs: the system moves threads to PUs that fall idle, pinned ones "
               "stay";
    }
    if (count > pus) {
        return "more threads than PUs: who shares a PU with whom decides, not the cores";
    }
    if (other_priority_is_not(comparison, verdict)) {
        return "the other priority is not slower: the program wants that one";
    }
    if (count == pus) {
        return "every PU has one thread under both: which one is on which is all that differs";
    }
    if (free_threads) {
        return "threads that the system may move do better than on the PUs that were chosen";
    }
    return "other PUs were chosen: SERVET_VERBOSE=1 and servet-map --explain say which and why";
}
