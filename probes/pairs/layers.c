/* Similar values, and layers of pairs (layers.h). The pieces between cuts of a density are kept as
 * ranges of one sorted array, so that joining two neighbours is an addition. */
#include "probes/pairs/layers.h"
#include "probes/pairs/partition.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "profile/base/statistics.h"
#include "profile/scope.h"

static const double kernel_spreads = 1.5; /* bandwidth of the kernel */
static const double least_distance = 4;   /* of two clusters, in their deviations */
static const double valley_depth = 0.5;   /* of the lower peak beside it */
static const double least_share = 0.015;  /* of all values, to be a cluster */
static const size_t no_minimum_up_to = 8; /* values: with so few, every one counts */
/* 2,000 values of one layer do not reach that: by which one pair may be faster than the middle, and
 * bandwidths of the kernel beyond which nothing is added. */
static const double most_deviations = 6;
/* For pairs: see layers.h. */
static const double least_filled = 0.97; /* of the pairs inside of groups */
enum { STEPS_PER_BANDWIDTH = 4, GRID_MAX = 4096, CUTS_MAX = 256 };

struct density {
    double low, step;
    double *value;
    size_t count;
};

static int estimate(const double *logs, size_t count, double bandwidth, struct density *density)
{
    double low = logs[0], high = logs[0];
    for (size_t i = 0; i < count; i++) {
        low = fmin(low, logs[i]);
        high = fmax(high, logs[i]);
    }
    low -= 3 * bandwidth;
    high += 3 * bandwidth;
    density->low = low;
    density->step = fmax(bandwidth / STEPS_PER_BANDWIDTH, (high - low) / (GRID_MAX - 1));
    density->count = (size_t)((high - low) / density->step) + 1;
    density->value = calloc(density->count, sizeof *density->value);
    TRY(density->value ? 0 : -ENOMEM);
    for (size_t i = 0; i < count; i++) {
        double reach = most_deviations * bandwidth + density->step;
        size_t from = (size_t)(fmax(0, logs[i] - reach - low) / density->step);
        size_t to = (size_t)((logs[i] + reach - low) / density->step) + 1;
        for (size_t g = from; g < density->count && g <= to; g++) {
            double z = (low + (double)g * density->step - logs[i]) / bandwidth;
            if (fabs(z) < most_deviations) {
                density->value[g] += exp(-z * z / 2);
            }
        }
    }
    return 0;
}

/* Walks up and down the density; a valley counts when it lies deep enough below the peaks on both
 * sides. */
static size_t find_cuts(const struct density *density, double *cuts)
{
    size_t count = 0, valley_at = 0;
    double peak = 0, valley = 0;
    bool falling = false;
    for (size_t g = 0; g < density->count; g++) {
        double value = density->value[g];
        if (!falling) {
            if (value >= peak) {
                peak = value;
            } else {
                falling = true;
                valley = value;
                valley_at = g;
            }
        } else if (value < valley) {
            valley = value;
            valley_at = g;
        } else if (value > peak && valley >= valley_depth * peak) {
            peak = value; /* the old peak was a shoulder of this one */
            falling = false;
        } else if (valley < valley_depth * peak && value > valley / valley_depth) {
            if (count < CUTS_MAX) {
                cuts[count++] = density->low + (double)valley_at * density->step;
            }
            peak = value;
            falling = false;
        }
    }
    return count;
}

static size_t cluster_at(double value, const double *cuts, size_t count)
{
    size_t cluster = 0;
    while (cluster < count && value > cuts[cluster]) {
        cluster++;
    }
    return cluster;
}

/* The values between two cuts: values in ascending order from `first` on. */
struct piece {
    size_t first, count;
    double centre, deviation; /* of the logarithms */
};

/* The groups of PUs that the pairs up to the end of a piece make. */
struct grouping {
    uint32_t *group_of; /* by PU: the lowest PU of its group */
    uint32_t *size_of;  /* by that PU: how many the group has */
    bool filled;        /* nearly all pairs inside of groups are below the cut */
    bool many;          /* more than one */
};

/* Values that are cut to pieces, and joined again. */
struct layering {
    const double *values;
    double *logs; /* in ascending order, and room for as many. Owned */
    size_t count;
    double spread;
    struct piece pieces[CUTS_MAX + 1];
    size_t piece_count;
    /* of pairs */
    size_t pus;
    struct grouping groupings[CUTS_MAX + 1];
    uint32_t *memory; /* of the groupings. Owned */
};

static void describe_piece(struct layering *l, struct piece *piece)
{
    const double *mine = l->logs + piece->first;
    double *scratch = l->logs + l->count;
    size_t n = piece->count;
    piece->centre = n % 2 ? mine[n / 2] : (mine[n / 2 - 1] + mine[n / 2]) / 2;
    for (size_t i = 0; i < n; i++) {
        scratch[i] = fabs(mine[i] - piece->centre);
    }
    piece->deviation = fmax(profile_median_value(scratch, n) / LAYERS_MAD_OF_DEVIATION, l->spread);
}

static int cut_to_pieces(struct layering *l)
{
    struct density density;
    double cuts[CUTS_MAX];
    size_t first = 0;
    TRY(estimate(l->logs, l->count, kernel_spreads * l->spread, &density));
    const size_t cut_count = find_cuts(&density, cuts);
    free(density.value);
    for (size_t i = 0; i < l->count; i++) {
        const bool last = i + 1 == l->count;
        if (last || cluster_at(l->logs[i], cuts, cut_count) !=
                        cluster_at(l->logs[i + 1], cuts, cut_count)) {
            struct piece *piece = &l->pieces[l->piece_count++];
            *piece = (struct piece){.first = first, .count = i + 1 - first};
            describe_piece(l, piece);
            first = i + 1;
        }
    }
    return 0;
}

static double distance(const struct piece *a, const struct piece *b)
{
    return fabs(a->centre - b->centre) /
           sqrt((a->deviation * a->deviation + b->deviation * b->deviation) / 2);
}

/* Piece `i` and the one after it become one, with the groups of the upper one. */
static void join_pieces(struct layering *l, size_t i)
{
    l->pieces[i].count += l->pieces[i + 1].count;
    describe_piece(l, &l->pieces[i]);
    l->groupings[i] = l->groupings[i + 1];
    l->piece_count--;
    for (size_t k = i + 1; k < l->piece_count; k++) {
        l->pieces[k] = l->pieces[k + 1];
        l->groupings[k] = l->groupings[k + 1];
    }
}

/* The two neighbours that are nearest to each other in their deviations, first. */
static void join_similar(struct layering *l)
{
    const struct piece *pieces = l->pieces;
    while (l->piece_count > 1) {
        size_t nearest = 0;
        for (size_t i = 1; i + 1 < l->piece_count; i++) {
            nearest = distance(&pieces[i], &pieces[i + 1]) <
                              distance(&pieces[nearest], &pieces[nearest + 1])
                          ? i
                          : nearest;
        }
        if (l->piece_count <= CLUSTERS_MAX &&
            distance(&pieces[nearest], &pieces[nearest + 1]) >= least_distance) {
            return;
        }
        join_pieces(l, nearest);
    }
}

/* Too few to be a layer: to the neighbour whose median is nearer. */
static void join_outliers(struct layering *l)
{
    const struct piece *pieces = l->pieces;
    const double least = fmax(2, least_share * (double)l->count);
    while (l->count > no_minimum_up_to && l->piece_count > 1) {
        size_t small = 0;
        for (size_t i = 1; i < l->piece_count; i++) {
            small = pieces[i].count < pieces[small].count ? i : small;
        }
        if ((double)pieces[small].count >= least) {
            return;
        }
        bool below = small + 1 == l->piece_count ||
                     (small > 0 && pieces[small].centre - pieces[small - 1].centre <
                                       pieces[small + 1].centre - pieces[small].centre);
        join_pieces(l, below ? small - 1 : small);
    }
}

/* The pieces as clusters, and which of them each value is in. */
static void report(const struct layering *l, uint32_t *cluster_of, struct clusters *out)
{
    out->count = l->piece_count;
    for (size_t i = 0; i < l->piece_count; i++) {
        out->centre[i] = exp(l->pieces[i].centre);
        out->size[i] = l->pieces[i].count;
    }
    for (size_t i = 0; i < l->count; i++) {
        const double at = log(l->values[i]);
        uint32_t cluster = 0;
        while (cluster + 1 < l->piece_count &&
               at > l->logs[l->pieces[cluster].first + l->pieces[cluster].count - 1]) {
            cluster++;
        }
        cluster_of[i] = cluster;
    }
}

static void layering_free(struct layering *l)
{
    free(l->memory);
    free(l->logs);
}

/* Cuts the positive values to pieces. 0, -EINVAL or -ENOMEM. */
static int layering_make(const double *values, size_t count, double spread, struct layering *l)
{
    TRY(count > 0 ? 0 : -EINVAL);
    for (size_t i = 0; i < count; i++) {
        TRY(values[i] > 0 && isfinite(values[i]) ? 0 : -EINVAL);
    }
    l->values = values;
    l->count = count;
    l->spread = fmax(spread, LAYERS_LEAST_SPREAD);
    l->logs = malloc(2 * count * sizeof *l->logs);
    TRY(l->logs ? 0 : -ENOMEM);
    for (size_t i = 0; i < count; i++) {
        l->logs[i] = log(values[i]);
    }
    profile_sort(l->logs, count);
    return cut_to_pieces(l);
}

int probe_layers_cluster(const double *values, size_t count, double spread, uint32_t *cluster_of,
                         struct clusters *out)
{
    FREED_BY(layering_free) struct layering l = {0};
    TRY(layering_make(values, count, spread, &l));
    join_similar(&l);
    join_outliers(&l);
    report(&l, cluster_of, out);
    return 0;
}

/* -- pairs -- */

static bool is_below(const struct layering *l, size_t pair, double limit)
{
    return log(l->values[pair]) <= limit;
}

static void connect(const struct layering *l, double limit, struct grouping *g)
{
    for (uint32_t i = 0; i < l->pus; i++) {
        g->group_of[i] = i;
        g->size_of[i] = 0;
    }
    PROBE_EACH_PAIR(l->pus, i, j, k)
    {
        if (is_below(l, k, limit)) {
            probe_partition_unite(g->group_of, (uint32_t)i, (uint32_t)j);
        }
    }
    for (uint32_t i = 0; i < l->pus; i++) {
        g->group_of[i] = probe_partition_root(g->group_of, i);
        g->size_of[g->group_of[i]]++;
    }
}

static void judge_groups(const struct layering *l, double limit, struct grouping *g)
{
    size_t inside = 0, below = 0, groups = 0;
    connect(l, limit, g);
    PROBE_EACH_PAIR(l->pus, i, j, k)
    {
        inside += g->group_of[i] == g->group_of[j];
        below += is_below(l, k, limit);
    }
    for (size_t i = 0; i < l->pus; i++) {
        groups += g->size_of[i] > 1;
    }
    g->filled = (double)below >= least_filled * (double)inside;
    g->many = groups >= 2;
}

/* One group, of a machine of which a part is offline, is one only where it is clearly faster than
 * all else: disturbance only lengthens. */
static bool makes_groups(const struct layering *l, size_t i)
{
    const struct piece *low = &l->pieces[i], *high = &l->pieces[i + 1];
    bool clear =
        exp(high->centre - low->centre) >= LAYERS_APART && distance(low, high) >= least_distance;
    return l->groupings[i].filled && (l->groupings[i].many || clear);
}

/* No group of the one lies within a larger one of the other, and those that the other has besides
 * are as large: steps of a clock make two pieces of one kind of groups, and so does a disturbed
 * pair. */
static bool are_of_one_kind(const struct layering *l, const struct grouping *lower,
                            const struct grouping *upper)
{
    uint32_t least[2] = {UINT32_MAX, UINT32_MAX}, most[2] = {0, 0};
    for (size_t i = 0; i < l->pus; i++) {
        uint32_t low = lower->size_of[i], high = upper->size_of[i];
        if (low > 1 && high != low) {
            return false;
        }
        if (high > 1) {
            bool is_new = low < 2;
            least[is_new] = high < least[is_new] ? high : least[is_new];
            most[is_new] = high > most[is_new] ? high : most[is_new];
        }
    }
    return most[1] == 0 || (least[1] <= most[0] && most[1] >= least[0]);
}

/* Does the cut above piece `i` stay? If not, *weakness says which of several goes first: the
 * smallest. */
static bool stays(const struct layering *l, size_t i, double *weakness)
{
    const struct piece *low = &l->pieces[i], *high = &l->pieces[i + 1];
    const bool explained = makes_groups(l, i);
    double apart = distance(low, high), factor = exp(high->centre - low->centre);
    double least = fmax(fmax(2, least_share * (double)l->count), (double)l->pus);
    least = l->count > no_minimum_up_to ? least : fmin(2, (double)l->pus - 2);
    bool few = (double)low->count < least || (double)high->count < least;
    *weakness = apart - (few && !explained ? HUGE_VAL : 0);
    if (!explained) {
        return apart >= least_distance && factor >= LAYERS_APART && !few;
    }
    return (apart >= least_distance || factor >= LAYERS_APART) &&
           !are_of_one_kind(l, &l->groupings[i], &l->groupings[i + 1]);
}

static void join_unexplained(struct layering *l)
{
    for (;;) {
        size_t weakest = l->piece_count;
        double least = HUGE_VAL, weakness;
        for (size_t i = 0; i + 1 < l->piece_count; i++) {
            if ((!stays(l, i, &weakness) || l->piece_count > CLUSTERS_MAX) && weakness < least) {
                weakest = i;
                least = weakness;
            }
        }
        if (weakest == l->piece_count) {
            return;
        }
        join_pieces(l, weakest);
    }
}

static int group_pieces(struct layering *l)
{
    l->memory = malloc(2 * l->pus * l->piece_count * sizeof *l->memory);
    TRY(l->memory ? 0 : -ENOMEM);
    for (size_t i = 0; i < l->piece_count; i++) {
        const struct piece *piece = &l->pieces[i];
        struct grouping *g = &l->groupings[i];
        g->group_of = l->memory + 2 * i * l->pus;
        g->size_of = g->group_of + l->pus;
        judge_groups(l, l->logs[piece->first + piece->count - 1], g);
    }
    return 0;
}

int probe_layers_of_pairs(size_t pus, const double *seconds, double spread, uint32_t *layer_of,
                          struct clusters *out)
{
    FREED_BY(layering_free) struct layering l = {.pus = pus};
    TRY(layering_make(seconds, probe_pair_count(pus), spread, &l));
    TRY(group_pieces(&l));
    join_unexplained(&l);
    report(&l, layer_of, out);
    return 0;
}

double probe_layers_spread(double *logs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        logs[i] = fabs(logs[i]);
    }
    return count ? profile_median_value(logs, count) / (LAYERS_MAD_OF_DEVIATION * sqrt(2)) : 0;
}

bool probe_layers_one_cluster(double *values, size_t count, double spread)
{
    struct clusters clusters;
    FREED uint32_t *cluster_of = malloc((count + 1) * sizeof *cluster_of);
    return cluster_of && probe_layers_cluster(values, count, spread, cluster_of, &clusters) == 0 &&
           clusters.count == 1;
}

bool probe_layers_agree(double *values, size_t count, double spread)
{
    FREED double *away = malloc((count + 1) * sizeof *away);
    if (!away || !probe_layers_one_cluster(values, count, spread)) {
        return false; /* then all are measured */
    }
    double middle = profile_median_value(values, count), least = INFINITY;
    for (size_t i = 0; i < count; i++) {
        least = fmin(least, values[i]);
        away[i] = fabs(log(values[i] / middle));
    }
    double deviation = fmax(fmax(spread, LAYERS_LEAST_SPREAD),
                            profile_median_value(away, count) / LAYERS_MAD_OF_DEVIATION);
    return log(middle / least) < fmin(log(LAYERS_APART), most_deviations * deviation);
}
