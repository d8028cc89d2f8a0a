/* How many workers are worth having (2010 paper, Sections III-C and V: limit the number of cores
 * that access memory at once, where more of them get no more together). Nothing is measured here:
 * workers are added in the order in which memory priority places them, each number is predicted as
 * --compare predicts it, and the curve is read from its beginning, so that what is told is the
 * smallest number even where the curve falls behind its peak. */
#include "mapper/worth/worth.h"

#include <errno.h>
#include <stdlib.h>

#include "profile/query.h"

/* -- is enough known? -- */

/* Do two PUs of the set share one of the groups? */
static bool concerns(const struct profile_relation *relation, const struct profile_set *pus)
{
    for (size_t g = 0; g < relation->group_count; g++) {
        size_t members = 0;
        for (size_t i = 0; i < pus->count && members < 2; i++) {
            members += profile_set_has(&relation->groups[g], pus->ids[i]);
        }
        if (members == 2) {
            return true;
        }
    }
    return false;
}

/* The last worker of a level whose bandwidth was measured: of the curve, else of the pair. */
static uint32_t measured_workers(const struct profile_memory_level *level)
{
    size_t points = level->scaling_count;
    return points ? level->scaling[points - 1].workers : level->bytes_per_s > 0 ? 2 : 0;
}

static int check_measured(const struct profile_memory *memory, const struct profile_set *allowed,
                          uint32_t *least, struct servet_error *error)
{
    *least = 0;
    if (!(memory->reference_bytes_per_s > 0)) {
        return profile_error(error, -ENODATA,
                             "memory bandwidth: expected to be measured "
                             "(servet-probe)");
    }
    for (size_t l = 0; l < memory->level_count; l++) {
        const struct profile_memory_level *level = &memory->levels[l];
        uint32_t workers = measured_workers(level);
        if (level->collisions.pair_count) {
            return profile_error(error, -ENODATA,
                                 "memory level %zu: expected groups, it is known as single pairs",
                                 l + 1);
        }
        if (!concerns(&level->collisions, allowed)) {
            continue;
        }
        if (!workers) {
            return profile_error(error, -ENODATA,
                                 "memory level %zu: expected its bandwidth to be measured", l + 1);
        }
        *least = !*least || workers < *least ? workers : *least;
    }
    return 0;
}

/* -- workers -- */

/* Bandwidth of the first 1, 2, … `count` leaves together. 0 or -ENOMEM. */
static int predict_totals(struct map_view *view, const uint32_t *leaves, size_t count,
                          double *totals)
{
    for (size_t n = 1; n <= count; n++) {
        struct map_figures figures;
        int rc = map_figures_of(view, leaves, n, &figures);
        if (rc < 0) {
            return rc;
        }
        totals[n - 1] = figures.memory_mean_bytes_per_s * (double)n;
    }
    return 0;
}

static void choose_number(const double *totals, size_t count, struct map_worth *out)
{
    for (size_t n = 0; n < count; n++) {
        out->most_bytes_per_s =
            totals[n] > out->most_bytes_per_s ? totals[n] : out->most_bytes_per_s;
    }
    while (totals[out->workers] < MAP_WORTH_SHARE * out->most_bytes_per_s) {
        out->workers++;
    }
    out->bytes_per_s = totals[out->workers];
    out->workers++;
}

/* `pus` in order of choice; they become the leaves of a view. */
static int count_worth(const struct servet_profile *node, uint32_t *pus, size_t count,
                       struct map_worth *out, struct servet_error *error)
{
    struct map_view view;
    int rc = map_view_make(node, MAP_MEMORY, count, &view, error);
    if (rc < 0) {
        return rc;
    }
    double *totals = map_arena_get(&view.arena, count, sizeof *totals);
    for (size_t i = 0; i < count; i++) {
        pus[i] = map_view_leaf(&view, pus[i]);
    }
    if (!totals || predict_totals(&view, pus, count, totals) < 0) {
        rc = profile_error(error, -ENOMEM, "out of memory");
    } else {
        choose_number(totals, count, out);
    }
    map_view_free(&view);
    return rc;
}

int map_worth(const struct profile_class *node_class, const struct profile_set *allowed,
              uint32_t *out_pus, struct map_worth *out, struct servet_error *error)
{
    struct map_worth found = {0};
    int rc = check_measured(&node_class->memory, allowed, &found.measured_workers, error);
    if (rc < 0) {
        return rc;
    }
    uint32_t *pus = calloc(allowed->count + 1, sizeof *pus);
    if (!pus) {
        return profile_error(error, -ENOMEM, "out of memory");
    }
    struct map_node_view view;
    const struct servet_profile *node = map_one_node(node_class, &view);
    struct map_request request = {.workers = allowed->count, .allowed = allowed};
    rc = map_workers(node, &request, pus, NULL, error);
    if (rc == 0) {
        rc = count_worth(node, pus, allowed->count, &found, error);
    }
    if (rc == 0) {
        request.workers = found.workers;
        request.known = true;
        rc = map_workers(node, &request, out_pus, NULL, error);
    }
    free(pus);
    if (rc == 0) {
        *out = found;
    }
    return rc;
}

/* -- messages -- */

uint32_t map_messages_worth(const struct profile_layer *layer, uint32_t *most)
{
    uint32_t last = layer->concurrency_count > 1
                        ? layer->concurrency[layer->concurrency_count - 1].messages
                        : 0;
    double peak = 0;
    for (uint32_t m = 1; m <= last; m++) {
        double rate = m / profile_messages_slower(layer, m);
        peak = rate > peak ? rate : peak;
    }
    uint32_t worth = last ? 1 : 0;
    while (worth < last && worth / profile_messages_slower(layer, worth) < MAP_WORTH_SHARE * peak) {
        worth++;
    }
    if (most) {
        *most = last;
    }
    return worth;
}
