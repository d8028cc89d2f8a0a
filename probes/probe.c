/* Common to all probes: progress, time left, how often a figure is measured, spread of values, and
 * the declared topology of their machine. */
#include "probes/probe.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profile/base/statistics.h"
#include "profile/codec/codec.h"
#include "profile/processes/process.h"

void probe_tell(const struct probe *probe, double done, const char *format, ...)
{
    char what[128];
    va_list args;
    if (!probe->progress) {
        return;
    }
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    done = probe->progress_share > 0 ? probe->progress_from + probe->progress_share * done : done;
    probe->progress(probe->progress_argument, what, done, &probe->pairs);
}

int probe_error(struct servet_error *error, int code, const char *what)
{
    return code < 0 ? profile_error(error, code, "%s: %s", what, probe_machine_strerror(code))
                    : code;
}

uint64_t probe_waited_ns(void)
{
    uint64_t ran, waited;
    const pid_t self = (pid_t)syscall(SYS_gettid);
    return profile_schedstat_read(getpid(), self, &ran, &waited) ? waited : 0;
}

double probe_spread_rounded(double spread)
{
    static const double digits = 1e4;
    return round(spread * digits) / digits;
}

double probe_spread(double *values, size_t count)
{
    if (count < 2) {
        return -1;
    }
    double middle = profile_median_value(values, count);
    double spread = middle > 0 ? (values[(3 * count - 1) / 4] - values[count / 4]) / middle : -1;
    return probe_spread_rounded(spread);
}

bool probe_repeat_median_settled(const double *values, size_t count)
{
    double sorted[REPEAT_MEDIAN_MOST];
    if (count < REPEAT_MEDIAN_LEAST || count >= REPEAT_MEDIAN_MOST) {
        return count >= REPEAT_MEDIAN_MOST;
    }
    memcpy(sorted, values, count * sizeof *sorted);
    const struct profile_median found = profile_median(sorted, count);
    return (found.high - found.low) / 2 / found.median < REPEAT_AGREE;
}

bool probe_repeat_minimum_settled(const double *values, size_t count)
{
    double least = INFINITY, second = INFINITY;
    for (size_t i = 0; i < count; i++) {
        second = values[i] < least ? least : fmin(second, values[i]);
        least = fmin(least, values[i]);
    }
    return count >= REPEAT_MINIMUM_MOST || (count > 0 && second <= (1 + REPEAT_AGREE) * least);
}

void probe_repeat_look_again(double *seconds, double *spread, uint32_t *repetitions,
                             const struct probe_settled *again)
{
    *repetitions += again->repetitions;
    if (*spread < 0 && again->seconds < *seconds) {
        *seconds = again->seconds;
        *spread = again->spread;
        return;
    }
    const double least = fmin(*seconds, again->seconds),
                 end = fmax(*seconds * (1 + fmax(*spread, 0)),
                            again->seconds * (1 + fmax(again->spread, 0)));
    *spread = probe_spread_rounded(end / least - 1);
    *seconds = least;
}

double probe_elapsed(const struct probe *probe)
{
    return probe_machine_elapsed(probe->clock ? probe->clock : probe->machine);
}

bool probe_late(const struct probe *probe)
{
    return probe->deadline > 0 &&
           probe_elapsed(probe) + probe->machine->guard.last_s > probe->deadline;
}

/* -- What the operating system declares of the machine that is measured, narrowed to the PUs of
 * this run, and its kinds of cores: each is measured on its own first PU. -- */

int probe_topology_own(struct servet_profile **out, struct servet_error *error)
{
    static const char *const others[] = {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT"};
    const char *this_system = getenv("HWLOC_THISSYSTEM");
    bool meant = this_system && strcmp(this_system, "") != 0 && strcmp(this_system, "0") != 0;
    for (size_t i = 0; !meant && i < sizeof others / sizeof *others; i++) {
        unsetenv(others[i]);
    }
    return profile_from_hwloc(NULL, out, error);
}

static void narrow_set(struct profile_set *set, const struct profile_set *pus)
{
    size_t kept = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (profile_set_has(pus, set->ids[i])) {
            set->ids[kept++] = set->ids[i];
        }
    }
    set->count = kept;
    if (kept == 0) {
        profile_set_free(set);
    }
}

bool probe_relation_narrow(struct profile_relation *relation, const struct profile_set *pus)
{
    size_t groups = 0, pairs = 0;
    for (size_t i = 0; i < relation->group_count; i++) {
        struct profile_set *group = &relation->groups[i];
        narrow_set(group, pus);
        if (group->count >= 2) {
            relation->groups[groups++] = *group;
        } else {
            profile_set_free(group);
        }
    }
    for (size_t i = 0; i < relation->pair_count; i++) {
        if (profile_set_has(pus, relation->pairs[i].a) &&
            profile_set_has(pus, relation->pairs[i].b)) {
            relation->pairs[pairs++] = relation->pairs[i];
        }
    }
    relation->group_count = groups;
    relation->pair_count = pairs;
    return groups > 0 || pairs > 0;
}

static void narrow_levels(struct profile_memory *memory, const struct profile_set *pus)
{
    size_t kept = 0;
    for (size_t i = 0; i < memory->level_count; i++) {
        struct profile_memory_level *level = &memory->levels[i];
        if (probe_relation_narrow(&level->collisions, pus)) {
            memory->levels[kept++] = *level;
        } else {
            profile_memory_level_free(level);
        }
    }
    memory->level_count = kept;
}

static void narrow_layers(struct profile_communication *messages, const struct profile_set *pus)
{
    size_t kept = 0;
    for (size_t i = 0; i < messages->layer_count; i++) {
        struct profile_layer *layer = &messages->layers[i];
        if (probe_relation_narrow(&layer->members, pus)) {
            messages->layers[kept++] = *layer;
        } else {
            profile_layer_free(layer);
        }
    }
    messages->layer_count = kept;
}

static void narrow_kinds(struct profile_class *node_class, const struct profile_set *pus)
{
    size_t kept = 0;
    for (size_t i = 0; i < node_class->kind_count; i++) {
        narrow_set(&node_class->kinds[i].pus, pus);
        if (node_class->kinds[i].pus.count > 0) {
            node_class->kinds[kept++] = node_class->kinds[i];
        }
    }
    node_class->kind_count = kept;
}

int probe_topology_restrict(struct profile_class *node_class, const struct profile_set *pus)
{
    narrow_set(&node_class->pus, pus);
    probe_relation_narrow(&node_class->cores, pus);
    probe_relation_narrow(&node_class->packages, pus);
    for (size_t i = 0; i < node_class->numa_count; i++) {
        narrow_set(&node_class->numa[i].pus, pus);
    }
    for (size_t i = 0; i < node_class->cache_count; i++) {
        probe_relation_narrow(&node_class->caches[i].sharing, pus);
    }
    narrow_kinds(node_class, pus);
    narrow_levels(&node_class->memory, pus);
    narrow_layers(&node_class->communication, pus);
    for (size_t i = 0; i < node_class->device_count; i++) {
        struct profile_set *near = &node_class->devices[i].pus;
        narrow_set(near, pus);
        /* one that is near to none of the PUs has all of them */
        TRY(near->count == 0 ? profile_set_copy(&node_class->pus, near) : 0);
    }
    return 0;
}

void probe_kinds_free(struct kinds *kinds)
{
    for (size_t i = 0; i < kinds->count; i++) {
        profile_set_free(&kinds->pus[i]);
    }
    memset(kinds, 0, sizeof *kinds);
}

size_t probe_kinds_find(const struct kinds *kinds, uint32_t pu)
{
    size_t kind = 0;
    while (kind + 1 < kinds->count && !profile_set_has(&kinds->pus[kind], pu)) {
        kind++;
    }
    return kind;
}

size_t probe_kinds_declared(const struct profile_class *declared, uint32_t pu)
{
    size_t kind = 0;
    while (kind < declared->kind_count && !profile_set_has(&declared->kinds[kind].pus, pu)) {
        kind++;
    }
    return kind;
}

/* All PUs of the kind. */
static int add_pages(const struct profile_class *declared, const struct profile_set *pus,
                     size_t kind, struct kinds *kinds)
{
    struct profile_set *set = &kinds->pus[kinds->count];
    TRY(profile_set_copy(pus, set));
    kinds->count++;
    set->count = 0;
    for (size_t i = 0; i < pus->count; i++) {
        if (probe_kinds_declared(declared, pus->ids[i]) == kind) {
            set->ids[set->count++] = pus->ids[i];
        }
    }
    return 0;
}

int probe_kinds_of(const struct profile_class *declared, const struct profile_set *pus,
                   struct kinds *out)
{
    FREED_BY(probe_kinds_free) struct kinds kinds = {0};
    bool known[KINDS_MAX] = {false};
    const bool declares = declared && declared->kind_count < KINDS_MAX;
    for (size_t i = 0; i < pus->count && declares; i++) {
        const size_t kind = probe_kinds_declared(declared, pus->ids[i]);
        TRY(known[kind] ? 0 : add_pages(declared, pus, kind, &kinds));
        known[kind] = true;
    }
    if (kinds.count == 0) {
        TRY(profile_set_copy(pus, &kinds.pus[0]));
        kinds.count = 1;
    }
    *out = TAKE(kinds);
    return 0;
}

const char *probe_separator(FILE *text, const char *separator)
{
    return ftell(text) > 0 ? separator : "";
}

int probe_note(struct profile_quality *quality, const char *note)
{
    const char *before = quality->note ? quality->note : "";
    char *both;
    if (asprintf(&both, "%s%s%s", before, *before ? "; " : "", note) < 0) {
        return -ENOMEM;
    }
    free(quality->note);
    quality->note = both;
    return 0;
}

int probe_note_beside_others(struct profile_quality *quality, const char *what)
{
    char text[160];
    quality->beside_others = true;
    snprintf(text, sizeof text, "%s: " PROBE_WORDS_BESIDE_OTHERS, what);
    return probe_note(quality, text);
}
