/* What the profile that is replaced said of messages and cache lines. A virtual machine whose PUs
 * its host moves is in one of two states for tens of seconds, longer than one run looks, so what a
 * run sees says nothing of what the next one will. Its looks and those of the run before are looks
 * apart in time, as those within a run (probe_repeat_look_again()): the least counts, and the
 * spread is how far they differ. So it goes on from run to run, for a week, until the machine is
 * started anew, or until the file is taken away. */
#include "probes/run/run.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "profile/base/clock.h"
#include "profile/query.h"

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

int probe_earlier_is_alike(const struct servet_profile *a, const struct servet_profile *b,
                           struct servet_error *error)
{
    bool alike = a->host_name && same_text(a->host_name, b->host_name) &&
                 same_text(a->topology_signature, b->topology_signature) && a->class_count == 1 &&
                 b->class_count == 1 && profile_set_equal(&a->classes[0].pus, &b->classes[0].pus);
    return alike ? 0
                 : profile_error(error, -ESTALE, "the profile is of %s, not of this machine",
                                 a->host_name ? a->host_name : "another one");
}

struct servet_profile *probe_earlier_load(const char *path, const struct servet_profile *profile)
{
    struct servet_profile *earlier;
    struct servet_error ignored;
    if (path[0] == '\0' || profile_load(path, &earlier, &ignored) < 0) {
        return NULL;
    }
    if (probe_earlier_is_alike(earlier, profile, &ignored) < 0) {
        profile_free(earlier);
        return NULL;
    }
    return earlier;
}

/* When the first of the runs began whose looks a profile holds: what the later ones add. */
static const char looks_since[] = "messages_since";

/* From the first look on: a machine that became slower must not keep its old times for ever, and
 * who measures every day is to have another day's looks beside their own. */
static const double looks_most_s = 7 * 24 * 3600.0;

static const char *first_look(const struct servet_profile *earlier)
{
    const char *since = profile_condition(earlier, looks_since);
    return since ? since : earlier->started;
}

bool probe_earlier_is_recent(const char *first, time_t now, double up_s)
{
    struct tm begun = {0};
    const bool told = first && strptime(first, PROBE_STARTED_FORMAT, &begun);
    return told && difftime(now, timegm(&begun)) <= fmin(up_s, looks_most_s);
}

static bool is_through_threads(const struct profile_communication *of)
{
    const char *note = of->layer_count > 0 ? of->layers[0].quality.note : NULL;
    return note && strstr(note, PROBE_NOTE_THREADS);
}

/* Messages as long, of the same data and by the same way, between the same groups of PUs. */
static bool are_comparable(const struct profile_communication *earlier,
                           const struct profile_communication *now)
{
    bool alike = earlier->layer_count == now->layer_count &&
                 earlier->message_bytes == now->message_bytes && earlier->message_data &&
                 now->message_data && strcmp(earlier->message_data, now->message_data) == 0 &&
                 is_through_threads(earlier) == is_through_threads(now);
    for (size_t i = 0; alike && i < now->layer_count; i++) {
        alike = profile_relation_equal(&earlier->layers[i].members, &now->layers[i].members);
    }
    return alike;
}

/* A figure that either run may lack. Where the spread is not known others were beside all that was
 * seen, and that helps nobody. */
static void look_back(double *seconds, double *spread, uint32_t *repetitions,
                      const struct probe_settled *earlier)
{
    if (*seconds > 0 && earlier->seconds > 0 && earlier->spread >= 0) {
        probe_repeat_look_again(seconds, spread, repetitions, earlier);
    }
}

/* Both begin with the smallest, and either may have been cut short. */
static void look_back_at_points(const struct profile_layer *earlier, struct profile_layer *now)
{
    for (size_t i = 0; i < now->curve_count && i < earlier->curve_count; i++) {
        struct profile_message_point *point = &now->curve[i];
        const struct profile_message_point *old = &earlier->curve[i];
        if (old->bytes == point->bytes) {
            look_back(&point->seconds, &point->spread, &point->repetitions,
                      &(struct probe_settled){old->seconds, old->spread, old->repetitions});
        }
    }
    for (size_t i = 0; i < now->concurrency_count && i < earlier->concurrency_count; i++) {
        struct profile_concurrency_point *point = &now->concurrency[i];
        const struct profile_concurrency_point *old = &earlier->concurrency[i];
        if (old->messages == point->messages) {
            look_back(&point->seconds, &point->spread, &point->repetitions,
                      &(struct probe_settled){old->seconds, old->spread, old->repetitions});
        }
    }
}

static void look_back_at_pairs(const struct profile_pair_figure *earlier, size_t earlier_count,
                               struct profile_pair_figure *now, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const double old = profile_pair_figure(earlier, earlier_count, now[i].a, now[i].b);
        now[i].value = old > 0 ? fmin(now[i].value, old) : now[i].value;
    }
}

void probe_earlier_keep(const struct servet_profile *earlier, struct servet_profile *profile)
{
    const struct profile_communication *before = &earlier->classes[0].communication;
    struct profile_communication *now = &profile->classes[0].communication;
    /* where nobody moves PUs a run sees what there is, and the same seed simulates the same */
    const char *guest = profile_condition(profile, "virtual_machine");
    const double up_s = profile_clock_s(CLOCK_BOOTTIME);
    if (!guest || strcmp(guest, "yes") != 0 ||
        !probe_earlier_is_recent(first_look(earlier), time(NULL), up_s) ||
        !are_comparable(before, now) ||
        probe_conditions_add(profile, looks_since, first_look(earlier)) < 0) {
        return;
    }
    for (size_t i = 0; i < now->layer_count; i++) {
        struct profile_layer *layer = &now->layers[i];
        const struct profile_layer *old = &before->layers[i];
        const struct profile_quality *quality = &old->quality, *line = &old->line_quality;
        look_back(&layer->seconds, &layer->quality.spread, &layer->quality.repetitions,
                  &(struct probe_settled){old->seconds, quality->spread, quality->repetitions});
        look_back(&layer->line_seconds, &layer->line_quality.spread,
                  &layer->line_quality.repetitions,
                  &(struct probe_settled){old->line_seconds, line->spread, line->repetitions});
        look_back_at_points(old, layer);
    }
    look_back_at_pairs(before->message_times, before->message_time_count, now->message_times,
                       now->message_time_count);
    look_back_at_pairs(before->line_times, before->line_time_count, now->line_times,
                       now->line_time_count);
}
