/* Does a stored profile still describe this machine? A sample of its figures is measured again,
 * within seconds, so that a prolog can ask. */
#include "probes/run/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/times.h>

#include "probes/cache/probe.h"
#include "probes/memory/rates.h"
#include "probes/pairs/messages.h"
#include "profile/base/mask.h"
#include "profile/base/statistics.h"
#include "profile/base/ticks.h"
#include "profile/query.h"
#include "profile/text/text.h"

/* Disturbance passes: a figure counts as changed when it differs so often, one after the other. */
enum { ATTEMPTS = 4 };
/* Beyond the caches, but small enough to be measured in a fraction of a second. */
static const uint64_t largest_sample = 128u << 20;

struct sample {
    struct probe probe;
    const struct profile_class *node_class;
    uint32_t pu;
    FILE *out;
    size_t measured, changed;
    double others_s; /* of other programs, when it began */
};

/* PUs that other programs had on average: from so many on, a figure that differs is no news. A
 * machine at rest has some hundredths. */
static const double others_least = 0.25;

/* Time of the PUs that other programs have had since the machine started: not the guard's, for
 * those on other PUs take bandwidth, too. */
static double others_s(void)
{
    FREED struct profile_ticks *ticks = calloc(PROFILE_MASK_PUS, sizeof *ticks);
    struct tms own = {0};
    double busy = 0;
    if (ticks && profile_ticks_get(ticks, PROFILE_MASK_PUS) == 0) {
        for (size_t i = 0; i < PROFILE_MASK_PUS; i++) {
            busy += (double)(ticks[i].all - ticks[i].idle);
        }
    }
    times(&own);
    busy -= (double)(own.tms_utime + own.tms_stime + own.tms_cutime + own.tms_cstime);
    return busy * 1e-9 * PROFILE_TICK_NS;
}

typedef int measure_function(struct sample *sample, uint64_t bytes, double *value);

static int latency(struct sample *sample, uint64_t bytes, double *value)
{
    return probe_cache_point(&sample->probe, sample->pu, (size_t)bytes, 0, value);
}

static int bandwidth(struct sample *sample, uint64_t bytes, double *value)
{
    struct probe *probe = &sample->probe;
    return probe_memory_copy(probe, probe_memory_bytes(probe, (size_t)bytes), sample->pu, value);
}

static int message(struct sample *sample, uint64_t bytes, double *value)
{
    const struct profile_relation *members = &sample->node_class->communication.layers[0].members;
    struct profile_pair pair =
        members->group_count
            ? (struct profile_pair){members->groups[0].ids[0], members->groups[0].ids[1]}
            : members->pairs[0];
    return probe_message_pair(&sample->probe, (size_t)bytes, &pair, value);
}

/* A figure of the profile that is measured again. */
struct claim {
    bool is_rate;     /* bytes/s; otherwise seconds */
    uint64_t bytes;   /* of what is measured */
    double expected;  /* by the profile */
    double tolerance; /* of profile_same() */
};

static struct figure claim_text(const struct claim *claim, double value)
{
    return claim->is_rate ? profile_figure_bandwidth(value) : profile_figure_seconds(value);
}

static int ask_again(struct sample *sample, const char *name, measure_function *measure,
                     const struct claim *claim)
{
    const double expected = claim->expected, tolerance = claim->tolerance;
    double nearest = 0;
    if (probe_machine_elapsed(sample->probe.machine) > RECHECK_SECONDS) {
        fprintf(sample->out, "left out  %s: no time left\n", name);
        return 0;
    }
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        double value;
        TRY(measure(sample, claim->bytes, &value));
        if (!attempt || fabs(log(value / expected)) < fabs(log(nearest / expected))) {
            nearest = value;
        }
        if (profile_same(nearest, expected, tolerance)) {
            break;
        }
    }
    bool changed = !profile_same(nearest, expected, tolerance);
    fprintf(sample->out, "%s  %s: %s, the profile says %s (%+.0f %%, the same up to %.0f %%)\n",
            changed ? "CHANGED " : "same    ", name, claim_text(claim, nearest).text,
            claim_text(claim, expected).text, (nearest / expected - 1) * 100, tolerance * 100);
    sample->measured++;
    sample->changed += changed;
    return 0;
}

/* From the stored curve, between its points linear in the logarithm of the size. */
static double curve_at(const struct profile_class *node_class, uint64_t bytes)
{
    const struct profile_cache_point *p = node_class->cache_curve;
    size_t count = node_class->cache_curve_count, i = 1;
    if (count < 2 || bytes < p[0].bytes || bytes > p[count - 1].bytes) {
        return 0;
    }
    while (i + 1 < count && p[i].bytes < bytes) {
        i++;
    }
    double share = log((double)bytes / (double)p[i - 1].bytes) /
                   log((double)p[i].bytes / (double)p[i - 1].bytes);
    return p[i - 1].seconds_per_access +
           share * (p[i].seconds_per_access - p[i - 1].seconds_per_access);
}

static int ask_latency(struct sample *sample, const char *name, uint64_t bytes)
{
    double expected = curve_at(sample->node_class, bytes);
    char text_of[96];
    snprintf(text_of, sizeof text_of, "%s (%.32s)", name, profile_figure_bytes(bytes).text);
    const struct claim claim = {.bytes = bytes, .expected = expected, .tolerance = RECHECK_SAME};
    return expected > 0 ? ask_again(sample, text_of, latency, &claim) : 0;
}

/* Well inside the cache: of one whose size is not settled, what it holds in any case. Half of 24
 * MiB of which neighbours leave 10 to 25 was another machine in one look of four. */
static int ask_inside(struct sample *sample, const struct profile_cache *cache)
{
    char name[32];
    const bool settled = profile_size_settled(cache) || cache->size_low_bytes == 0;
    const uint64_t bytes = settled ? cache->size_bytes : cache->size_low_bytes;
    snprintf(name, sizeof name, settled ? "in half of L%u" : "inside L%u", cache->level);
    return ask_latency(sample, name, bytes / 2);
}

static int ask_caches(struct sample *sample)
{
    const struct profile_class *node_class = sample->node_class;
    for (size_t i = 0; i < node_class->cache_count; i++) {
        const struct profile_cache *cache = &node_class->caches[i];
        bool here = !cache->pus.count || profile_set_has(&cache->pus, sample->pu);
        TRY(here && cache->quality.origin != PROFILE_DECLARED ? ask_inside(sample, cache) : 0);
    }
    size_t count = node_class->cache_curve_count;
    uint64_t last = count ? node_class->cache_curve[count - 1].bytes : 0;
    return last ? ask_latency(sample, "beyond", last < largest_sample ? last : largest_sample) : 0;
}

static uint64_t largest_known_cache(const struct profile_class *node_class)
{
    uint64_t largest = 0;
    for (size_t i = 0; i < node_class->cache_count; i++) {
        const struct profile_cache *cache = &node_class->caches[i];
        largest = cache->size_bytes > largest ? cache->size_bytes : largest;
        largest = cache->declared_size_bytes > largest ? cache->declared_size_bytes : largest;
    }
    return largest;
}

/* Through what the layer was measured: threads when it says so, else MPI. */
static int ask_messages(struct sample *sample, bool mpi)
{
    const struct profile_communication *communication = &sample->node_class->communication;
    const struct profile_layer *layer = communication->layers;
    if (!communication->layer_count || layer->quality.origin == PROFILE_DECLARED ||
        !communication->message_bytes) {
        return 0;
    }
    struct machine *machine = sample->probe.machine, messenger;
    bool threads = !machine_is_native(machine) || layer->quality.through_threads;
    if (!threads && !mpi) {
        fputs("left out  message: it was measured through MPI\n", sample->out);
        return 0;
    }
    struct servet_error why;
    if (!threads && probe_machine_open_mpi(&machine->pus, machine->cancel, &messenger, &why) < 0) {
        fprintf(sample->out, "left out  message: %s\n", why.text);
        return 0;
    }
    sample->probe.machine = threads ? machine : &messenger;
    char name[64];
    snprintf(name, sizeof name, "message of %.32s",
             profile_figure_bytes(communication->message_bytes).text);
    double begun = probe_machine_elapsed(machine);
    /* nor is it another machine that is in another of the states that the profile knows of */
    const struct claim claim = {.bytes = communication->message_bytes,
                                .expected = layer->seconds,
                                .tolerance = fmax(RECHECK_SAME_MESSAGE, layer->quality.spread)};
    int rc = begun > RECHECK_SECONDS ? 0 : ask_again(sample, name, message, &claim);
    sample->probe.machine = machine;
    if (!threads) {
        probe_machine_close(&messenger);
    }
    return rc;
}

static int verdict(struct sample *sample)
{
    if (!sample->measured) {
        fputs("no: there is nothing in the profile that can be measured again\n", sample->out);
        return 0;
    }
    const double others =
        (others_s() - sample->others_s) / fmax(probe_machine_elapsed(sample->probe.machine), 1e-3);
    if (sample->changed && machine_is_native(sample->probe.machine) && others > others_least) {
        fprintf(sample->out,
                "too busy to say: %zu of %zu figures differ, and other programs had %.1f PUs "
                "meanwhile\n",
                sample->changed, sample->measured, others);
        return 1;
    }
    if (sample->changed) {
        fprintf(sample->out,
                "no: %zu of %zu figures changed; servet-probe measures the machine anew\n",
                sample->changed, sample->measured);
        return 0;
    }
    fprintf(sample->out, "yes: the profile still describes this machine (%zu %s measured again)\n",
            sample->measured, sample->measured == 1 ? "figure" : "figures");
    return 1;
}

static int ask_figures(struct sample *sample, bool mpi)
{
    const double reference = sample->node_class->memory.reference_bytes_per_s;
    TRY(ask_caches(sample));
    if (reference > 0) {
        const struct claim claim = {true, largest_known_cache(sample->node_class), reference,
                                    RECHECK_SAME};
        TRY(ask_again(sample, "memory, one worker alone", bandwidth, &claim));
    }
    return ask_messages(sample, mpi);
}

int probe_verify_pairs(struct machine *machine, const struct servet_profile *profile, bool mpi,
                       FILE *out, struct servet_error *error)
{
    struct servet_error why;
    const bool native = machine_is_native(machine);
    if (native && profile_matches(profile, "", &machine->pus, &why) < 0) {
        fprintf(out, "no: %s\n", why.text);
        return 0;
    }
    const struct profile_class *node_class =
        native ? profile_class_of_host(profile, profile->host_name) : &profile->classes[0];
    struct sample sample = {.probe = {.machine = machine, .seed = 1},
                            .node_class = node_class ? node_class : &profile->classes[0],
                            .pu = machine->pus.ids[0],
                            .out = out,
                            .others_s = others_s()};
    const char *data = sample.node_class->communication.message_data;
    sample.probe.unwritten = data && strcmp(data, "unwritten") == 0;
    int rc = profile->measured ? ask_figures(&sample, mpi) : 0;
    return rc < 0 ? profile_error(error, rc, "checking the profile: %s", probe_machine_strerror(rc))
                  : verdict(&sample);
}
