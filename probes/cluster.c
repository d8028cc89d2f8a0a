#include "cluster.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "probe.h"

static const double bandwidth = 0.04;     /* of the kernel, in units of log(value) */
static const double valley_depth = 0.5;   /* of the lower peak beside it */
static const double least_share = 0.015;  /* of all values, to be a cluster */
static const size_t no_minimum_up_to = 8; /* values: with so few, every one counts */
enum { STEPS_PER_BANDWIDTH = 4, GRID_MAX = 4096 };

struct density {
    double low, step;
    double *value;
    size_t count;
};

static int estimate(const double *logs, size_t count, struct density *density)
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

/* Walks up and down the density; a valley counts when it lies deep enough below the peaks on both sides. */
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
            if (count < CLUSTERS_MAX - 1) {
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

static int summarise(const double *values, size_t count, const uint32_t *cluster_of, struct clusters *out)
{
    double *members = malloc(count * sizeof *members);
    if (!members) {
        return -ENOMEM;
    }
    for (size_t c = 0; c < out->count; c++) {
        out->size[c] = 0;
        for (size_t i = 0; i < count; i++) {
            if (cluster_of[i] == c) {
                members[out->size[c]++] = values[i];
            }
        }
        out->centre[c] = probe_median(members, out->size[c]);
    }
    free(members);
    return 0;
}

/* Takes the cut beside the smallest too small cluster away; false when none is too small. */
static bool drop_outliers(const struct clusters *clusters, size_t values, double *cuts, size_t *count)
{
    if (values <= no_minimum_up_to || *count == 0) {
        return false;
    }
    double least = fmax(2, least_share * (double)values);
    size_t small = 0;
    for (size_t c = 1; c <= *count; c++) {
        small = clusters->size[c] < clusters->size[small] ? c : small;
    }
    if ((double)clusters->size[small] >= least) {
        return false;
    }
    size_t cut = small; /* the one above; the one below when that neighbour is nearer */
    if (small == *count) {
        cut = small - 1;
    } else if (small > 0 && clusters->centre[small] / clusters->centre[small - 1] <
                                clusters->centre[small + 1] / clusters->centre[small]) {
        cut = small - 1;
    }
    for (size_t i = cut; i + 1 < *count; i++) {
        cuts[i] = cuts[i + 1];
    }
    --*count;
    return true;
}

int cluster_values(const double *values, size_t count, uint32_t *cluster_of, struct clusters *out)
{
    double cuts[CLUSTERS_MAX];
    struct density density;
    for (size_t i = 0; i < count; i++) {
        if (!(values[i] > 0) || !isfinite(values[i])) {
            return -EINVAL;
        }
    }
    double *logs = count ? malloc(count * sizeof *logs) : NULL;
    if (!logs) {
        return count ? -ENOMEM : -EINVAL;
    }
    for (size_t i = 0; i < count; i++) {
        logs[i] = log(values[i]);
    }
    int rc = estimate(logs, count, &density);
    if (rc < 0) {
        free(logs);
        return rc;
    }
    size_t cut_count = find_cuts(&density, cuts);
    free(density.value);
    do {
        out->count = cut_count + 1;
        for (size_t i = 0; i < count; i++) {
            cluster_of[i] = (uint32_t)cluster_at(logs[i], cuts, cut_count);
        }
        rc = summarise(values, count, cluster_of, out);
    } while (rc == 0 && drop_outliers(out, count, cuts, &cut_count));
    free(logs);
    return rc;
}
