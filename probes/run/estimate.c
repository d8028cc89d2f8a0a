/* How long the probes will take, before anything is measured: what is planned, times what that
 * takes on usual machines. */
#include "probes/run/run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "probes/cache/cache.h"
#include "probes/pairs/memory.h"
#include "probes/pairs/pairs.h"

/* What a step takes on the machines at hand and on the simulated ones. */
static const double set_share = 2.0 / 3;            /* of a cache, per PU: working sets of pairs */
static const double second_per_byte = 1.0 / 256;    /* nodes of such a set, each … */
static const double node_s = 12e-9, warm_turns = 2; /* built, and visited so often as one by one */
static const double load_s = 15e-9, memory_load_s = 100e-9, timed_loads = 12288;
static const double trials = 4; /* of a pair, both PUs alone and together: */
static const double turns = 3, least_trials = 2;
/* Where nothing is declared: layers of messages, PUs of a group that shares a last level, and pairs
 * of each PU until those of its group are found, as the simulated machines of 64 to 512 PUs have
 * them */
static const double hidden_layers = 3, hidden_group = 8, hidden_asked = 3;
static const double operation_s = 1e-3; /* waking threads, until they meet */
static const double rounds = 3;         /* of copies */
/* bytes/s at which a system gives out memory that it has to ask a hypervisor for (struct
 * native_region); what it had before comes ten times as fast */
static const double touched_rate = 0.3e9;
static const double more_passes = 0.2; /* beside those that are timed */
static const double rate = 10e9;       /* bytes/s of one PU beside others */
static const double alone_rate = 20e9; /* and alone */
/* Messages of one pair, all sweeps, here and on simulated machines, whose threads are awake */
static const double pair_s = 5e-3, simulated_pair_s = 2.2e-3;
/* PUs of which one pair is measured at a time, where structure is declared: 64 to 256 PUs had one
 * for 6 to 11 */
static const double pus_per_pair = 8;
static const double layer_s = 0.05;      /* curves of one layer */
static const double mpi_s = 0.4;         /* starting the ranks */
static const double least_looks_s = 0.5; /* of the caches, at few sizes, and a quick fit: */
static const double least_fit_s = 0.45;

/* Pairs inside of the groups of the next larger declared cache; all for the last. */
static void mark_inside(const struct profile_set *pus, const struct profile_relation *outer,
                        bool *inside)
{
    for (size_t i = 0, k = 0; i < pus->count; i++) {
        for (size_t j = i + 1; j < pus->count; j++, k++) {
            inside[k] = !outer;
            for (size_t g = 0; outer && g < outer->group_count && !inside[k]; g++) {
                inside[k] = profile_set_has(&outer->groups[g], pus->ids[i]) &&
                            profile_set_has(&outer->groups[g], pus->ids[j]);
            }
        }
    }
}

static double trial_seconds(double bytes)
{
    double nodes = set_share * bytes * second_per_byte;
    return turns * (operation_s + nodes * (node_s + warm_turns * load_s) + timed_loads * load_s);
}

/* Of caches that nobody declares: who shares the last one. With messages a sample of each of their
 * layers and the pairs of one PU tell; without, each PU is asked with one of its group, and groups
 * with one another (equivalence.c). */
static double plan_hidden_sharing(struct schedule *schedule, bool messages, bool least)
{
    const double pus = (double)schedule->pus->count, groups = pus / hidden_group,
                 all = (double)probe_pair_count(schedule->pus->count),
                 sample = (double)probe_schedule_planned(schedule, NULL);
    schedule->row = true; /* as sharing has it there */
    const double row = (double)probe_schedule_planned(schedule, NULL),
                 others = messages ? (hidden_layers - 1) * sample
                                   : hidden_asked * pus + groups * groups / 2;
    schedule->row = false;
    return (least ? least_trials : trials * fmin(all, row + others)) *
           trial_seconds((double)PROBE_USUAL_LAST_LEVEL_BYTES);
}

static bool is_hidden(const struct probe *probe)
{
    return !probe->declared || probe->declared->cache_count == 0;
}

static double plan_declared_sharing(const struct probe *probe, const struct schedule *schedule,
                                    bool *inside, bool least)
{
    const struct profile_class *declared = probe->declared;
    double sum = 0;
    for (size_t i = 0; i < declared->cache_count; i++) {
        const bool last = i + 1 == declared->cache_count;
        mark_inside(schedule->pus, last ? NULL : &declared->caches[i + 1].sharing, inside);
        const size_t pairs =
            least ? schedule->class_count : probe_schedule_planned(schedule, inside);
        sum += (least ? least_trials : trials) * (double)pairs *
               trial_seconds((double)declared->caches[i].declared_size_bytes);
    }
    return sum;
}

/* `messages` come first; `least`: of one pair of each class, as few trials as decide. */
static double plan_sharing(const struct probe *probe, struct schedule *schedule, bool *inside,
                           bool messages, bool least)
{
    return is_hidden(probe) ? plan_hidden_sharing(schedule, messages, least)
                            : plan_declared_sharing(probe, schedule, inside, least);
}

/* Of an array that is copied. */
static double array_bytes(const struct probe *probe)
{
    const struct profile_class *declared = probe->declared;
    size_t last = 0;
    for (size_t i = 0; declared && i < declared->cache_count; i++) {
        size_t bytes = declared->caches[i].declared_size_bytes;
        last = bytes > last ? bytes : last;
    }
    return (double)probe_memory_bytes(probe, last ? last : PROBE_USUAL_LAST_LEVEL_BYTES);
}

/* One copy by all that take part: as much as where one PU alone copies so much, at that rate. */
static double copy_seconds_at(const struct probe *probe, double alone_bytes_per_s,
                              double bytes_per_s)
{
    struct probe then = *probe;
    then.alone_bytes_per_s = alone_bytes_per_s;
    const struct machine_copy what = probe_memory_what(&then, (size_t)array_bytes(probe), -1);
    return (what.passes + more_passes) * 2 * (double)machine_copy_pass(&what) / bytes_per_s;
}

static double copy_seconds(const struct probe *probe)
{
    return copy_seconds_at(probe, alone_rate, rate);
}

/* One look at the latency of a node's memory. */
static double look_seconds(const struct probe *probe)
{
    return array_bytes(probe) * second_per_byte * (node_s + memory_load_s / 8) +
           timed_loads * memory_load_s;
}

static double plan_memory(const struct probe *probe, struct schedule *schedule)
{
    const double copy_s = copy_seconds(probe), look_s = look_seconds(probe);
    const struct probe_numa_plan nodes = probe_numa_planned(probe);
    const double sample = (double)probe_schedule_planned(schedule, NULL);
    schedule->row = true; /* as memory has it: most of these are clear after one round */
    const double row = (double)probe_schedule_planned(schedule, NULL) - sample,
                 together = rounds * sample + row,
                 alone = fmin(together + rounds, MEMORY_ALONE_MAX);
    schedule->row = false;
    return (alone + together) * copy_s + rounds * (double)nodes.copied * (copy_s + look_s) +
           (double)nodes.looked_at * look_s;
}

/* PUs that work in sets: siblings of a core do not. */
static double one_of_each_core(const struct probe *probe)
{
    size_t workers = probe->machine->pus.count;
    for (size_t i = 0; probe->declared && i < probe->declared->cores.group_count; i++) {
        workers -= probe->declared->cores.groups[i].count - 1;
    }
    return (double)workers;
}

/* Sets that are tried: of each way to divide the PUs two groups, packed and spread, and of what is
 * merged by turns, some more; where nothing divides them all PUs are searched. */
static double plan_sets(const struct probe *probe, const struct schedule *schedule)
{
    const double divisions = (double)schedule->together.count, pus = (double)schedule->pus->count,
                 cores = one_of_each_core(probe);
    /* what each side gets is asked anew beside every other where the machine is not large */
    const double looks = probe_memory_is_large(probe) ? rounds : 2 * rounds;
    const double tried = schedule->class_count > 1 ? looks * (4 * divisions + cores)
                                                   : PROBE_MEMORY_SEARCHED_COPIES * pus;
    return pus > 2 ? tried * copy_seconds(probe) : 0;
}

/* Each alone, and by all of a node. */
static double plan_kernels(const struct probe *probe)
{
    return rounds * 2 * PROFILE_KERNELS * copy_seconds(probe);
}

/* What the first copies of so many PUs take longer; memory of simulated machines is there. */
static double touching(const struct probe *probe, bool native, double pus)
{
    return native ? pus * 2 * array_bytes(probe) / touched_rate : 0;
}

/* One round of a pair of each class, and a look at the node's memory. */
static double plan_memory_least(const struct probe *probe, const struct schedule *schedule,
                                bool native)
{
    return (2 + 2 * (double)schedule->class_count) * copy_seconds(probe) + look_seconds(probe) +
           touching(probe, native, 2);
}

/* Of that what one PU gets. */
static double plan_memory_alone(const struct probe *probe, bool native)
{
    return copy_seconds(probe) + touching(probe, native, 1);
}

/* Of all pairs that are measured, some at a time where a check may allow that. */
static double plan_messages(struct schedule *schedule, bool native)
{
    const double room = fmin((double)schedule->pus->count / pus_per_pair, TOGETHER_MOST),
                 at_once = schedule->class_count > 1 ? fmax(1, room) : 1;
    schedule->search = true; /* as messages do, and no other probe */
    const double pairs = (double)probe_schedule_planned(schedule, NULL);
    schedule->search = false;
    return pairs * (native ? pair_s : simulated_pair_s) / at_once;
}

static double lengthened(double seconds, double fixed_s, double pace)
{
    return (seconds - fixed_s) * pace + fixed_s;
}

void probe_estimate_scale(struct probe_estimate *estimate, double memory_s)
{
    const double pace = fmax(1, memory_s / memory_load_s);
    estimate->cache_s *= pace;
    estimate->sharing_s *= pace;
    estimate->sharing_least_s *= pace;
    estimate->memory_s = lengthened(estimate->memory_s, estimate->touch_s, pace);
    estimate->memory_least_s = lengthened(estimate->memory_least_s, estimate->touch_least_s, pace);
    estimate->memory_alone_s =
        lengthened(estimate->memory_alone_s, estimate->touch_least_s / 2, pace);
    estimate->unhurried_least_s = lengthened(estimate->unhurried_least_s, estimate->touch_s, pace);
    estimate->message_s *= pace;
    estimate->message_least_s *= pace;
    estimate->sets_s *= pace;
    estimate->kernels_s *= pace;
    estimate->looks_s *= pace;
}

void probe_estimate_last_level(struct probe_estimate *estimate, size_t bytes)
{
    const double longer =
        trial_seconds((double)bytes) / trial_seconds((double)PROBE_USUAL_LAST_LEVEL_BYTES);
    estimate->sharing_s *= longer;
    estimate->sharing_least_s *= longer;
}

bool probe_estimate_hurries(const struct probe_estimate *estimate, double seconds)
{
    return estimate->touch_s > 0 && seconds < estimate->unhurried_least_s;
}

void probe_estimate_copies(const struct probe *probe, double bytes_per_s,
                           struct probe_estimate *estimate)
{
    /* beside others each gets as much less as usual */
    const double longer =
        copy_seconds_at(probe, bytes_per_s, bytes_per_s * rate / alone_rate) / copy_seconds(probe);
    estimate->memory_s = lengthened(estimate->memory_s, estimate->touch_s, longer);
    estimate->sets_s *= longer;
    estimate->kernels_s *= longer;
}

/* Nothing says which of many pairs are alike. */
static bool wants_messages_first(const struct probe *probe, const struct schedule *schedule)
{
    return (is_hidden(probe) || schedule->class_count == 1) &&
           probe_schedule_planned(schedule, NULL) < probe_pair_count(schedule->pus->count);
}

int probe_estimate_make(const struct probe *probe, bool native, bool mpi, unsigned probes,
                        struct probe_estimate *out)
{
    const struct profile_set *pus = &probe->machine->pus;
    const double kinds = probe->kinds ? (double)probe->kinds->count : 1;
    struct probe hurried = *probe;
    struct schedule schedule;
    hurried.hurried = native;
    bool *inside = malloc(probe_pair_count(pus->count) + 1);
    int rc = inside ? probe_schedule_init(&schedule, pus, probe->declared) : -ENOMEM;
    if (rc == 0) {
        schedule.exhaustive = probe->exhaustive;
        const bool several = pus->count > 1;
        const bool first = (probes & PROBE_MESSAGE) && wants_messages_first(probe, &schedule);
        const double touch_s = touching(probe, native, 2), start_s = mpi * mpi_s,
                     curves_s = (double)schedule.class_count * layer_s;
        *out = (struct probe_estimate){
            .cache_s = kinds * probe_cache_seconds(probe),
            .cache_least_s = kinds * (least_looks_s + (native ? least_fit_s : 0)),
            .cache_fit_s = native ? kinds * least_fit_s : 0,
            .sharing_s = several ? plan_sharing(probe, &schedule, inside, first, false) : 0,
            .sharing_least_s = several ? plan_sharing(probe, &schedule, inside, first, true) : 0,
            .memory_s = plan_memory(probe, &schedule) + touch_s,
            .memory_least_s = plan_memory_least(&hurried, &schedule, native),
            .unhurried_least_s = plan_memory_least(probe, &schedule, native),
            .memory_alone_s = plan_memory_alone(&hurried, native),
            .touch_least_s = touching(&hurried, native, 2),
            .sets_s = plan_sets(probe, &schedule),
            .kernels_s = plan_kernels(probe),
            .mpi_s = start_s,
            .touch_s = touch_s,
            .message_s = several ? plan_messages(&schedule, native) + curves_s + start_s : 0,
            .message_least_s = several ? curves_s : 0,
            .messages_first = first,
            .looks_s = several ? (PROBE_MESSAGE_LOOKS - 1) * (curves_s + start_s) : 0,
        };
        probe_schedule_free(&schedule);
    }
    free(inside);
    return rc;
}
