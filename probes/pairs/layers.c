#include "probes/pairs/layers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "probes/probe.h"

static const double least_spread =
    0.02; /* pairs of one layer differ by 1 to 5 %, however quiet the machine */
static const double kernel_spreads = 1.5; /* bandwidth of the kernel */
static const double least_distance = 4;   /* of two clusters, in their deviations */
static const double valley_depth = 0.5;   /* of the lower peak beside it */
static const double least_share = 0.015;  /* of all values, to be a cluster */
static const size_t no_minimum_up_to = 8; /* values: with so few, every one counts */
/* Of a Gaussian: median of its absolute deviation, and of the difference of two figures, over its
 * deviation. */
static const double mad_of_deviation = 0.6745;
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
    if (!density->value) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t g = 0; g < density->count; g++) {
            double z = (low + (double)g * density->step - logs[i]) / bandwidth;
            if (fabs(z) < 6) {
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

/* What lies between two cuts: values in ascending order from `first` on. */
struct piece {
    size_t first, count;
    double centre, deviation; /* of the logarithms */
};

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* `logs` in ascending order; `scratch` has room for as many. */
static void describe(const double *logs, double spread, struct piece *piece, double *scratch)
{
    const double *mine = logs + piece->first;
    size_t n = piece->count;
    piece->centre = n % 2 ? mine[n / 2] : (mine[n / 2 - 1] + mine[n / 2]) / 2;
    for (size_t i = 0; i < n; i++) {
        scratch[i] = fabs(mine[i] - piece->centre);
    }
    piece->deviation = fmax(probe_median(scratch, n) / mad_of_deviation, spread);
}

static size_t cut_to_pieces(const double *logs, size_t count, double spread, const double *cuts,
                            size_t cut_count, struct piece *pieces, double *scratch)
{
    size_t made = 0, first = 0;
    for (size_t i = 0; i < count; i++) {
        bool last = i + 1 == count;
        if (last ||
            cluster_at(logs[i], cuts, cut_count) != cluster_at(logs[i + 1], cuts, cut_count)) {
            pieces[made] = (struct piece){.first = first, .count = i + 1 - first};
            describe(logs, spread, &pieces[made++], scratch);
            first = i + 1;
        }
    }
    return made;
}

static double distance(const struct piece *a, const struct piece *b)
{
    return fabs(a->centre - b->centre) /
           sqrt((a->deviation * a->deviation + b->deviation * b->deviation) / 2);
}

/* Piece `i` and the one after it become one. */
static void join(const double *logs, double spread, struct piece *pieces, size_t *count, size_t i,
                 double *scratch)
{
    pieces[i].count += pieces[i + 1].count;
    describe(logs, spread, &pieces[i], scratch);
    for (size_t k = i + 1; k + 1 < *count; k++) {
        pieces[k] = pieces[k + 1];
    }
    --*count;
}

/* The two neighbours that are nearest to each other in their deviations, first. */
static void join_similar(const double *logs, double spread, struct piece *pieces, size_t *count,
                         double *scratch)
{
    for (;;) {
        size_t nearest = 0;
        for (size_t i = 1; i + 1 < *count; i++) {
            nearest = distance(&pieces[i], &pieces[i + 1]) <
                              distance(&pieces[nearest], &pieces[nearest + 1])
                          ? i
                          : nearest;
        }
        bool room = *count <= CLUSTERS_MAX;
        if (*count < 2 ||
            (room && distance(&pieces[nearest], &pieces[nearest + 1]) >= least_distance)) {
            return;
        }
        join(logs, spread, pieces, count, nearest, scratch);
    }
}

/* Too few to be a layer: to the neighbour whose median is nearer. */
static void join_outliers(const double *logs, size_t values, double spread, struct piece *pieces,
                          size_t *count, double *scratch)
{
    double least = fmax(2, least_share * (double)values);
    while (values > no_minimum_up_to && *count > 1) {
        size_t small = 0;
        for (size_t i = 1; i < *count; i++) {
            small = pieces[i].count < pieces[small].count ? i : small;
        }
        if ((double)pieces[small].count >= least) {
            return;
        }
        bool below = small + 1 == *count ||
                     (small > 0 && pieces[small].centre - pieces[small - 1].centre <
                                       pieces[small + 1].centre - pieces[small].centre);
        join(logs, spread, pieces, count, below ? small - 1 : small, scratch);
    }
}

static void report(const double *logs, const struct piece *pieces, size_t piece_count,
                   const double *values, size_t count, uint32_t *cluster_of, struct clusters *out)
{
    out->count = piece_count;
    for (size_t i = 0; i < piece_count; i++) {
        out->centre[i] = exp(pieces[i].centre);
        out->size[i] = pieces[i].count;
    }
    for (size_t i = 0; i < count; i++) {
        double at = log(values[i]);
        uint32_t cluster = 0;
        while (cluster + 1 < piece_count &&
               at > logs[pieces[cluster].first + pieces[cluster].count - 1]) {
            cluster++;
        }
        cluster_of[i] = cluster;
    }
}

int probe_layers_cluster(const double *values, size_t count, double spread, uint32_t *cluster_of,
                         struct clusters *out)
{
    double cuts[CUTS_MAX];
    struct piece pieces[CUTS_MAX + 1];
    struct density density;
    for (size_t i = 0; i < count; i++) {
        if (!(values[i] > 0) || !isfinite(values[i])) {
            return -EINVAL;
        }
    }
    double *logs = count ? malloc(2 * count * sizeof *logs) : NULL;
    if (!logs) {
        return count ? -ENOMEM : -EINVAL;
    }
    for (size_t i = 0; i < count; i++) {
        logs[i] = log(values[i]);
    }
    qsort(logs, count, sizeof *logs, ascending);
    spread = fmax(spread, least_spread);
    int rc = estimate(logs, count, kernel_spreads * spread, &density);
    if (rc == 0) {
        size_t cut_count = find_cuts(&density, cuts);
        free(density.value);
        size_t pieces_made =
            cut_to_pieces(logs, count, spread, cuts, cut_count, pieces, logs + count);
        join_similar(logs, spread, pieces, &pieces_made, logs + count);
        join_outliers(logs, count, spread, pieces, &pieces_made, logs + count);
        report(logs, pieces, pieces_made, values, count, cluster_of, out);
    }
    free(logs);
    return rc;
}

double probe_layers_spread(double *logs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        logs[i] = fabs(logs[i]);
    }
    return count ? probe_median(logs, count) / (mad_of_deviation * sqrt(2)) : 0;
}
