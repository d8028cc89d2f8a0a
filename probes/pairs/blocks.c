/* A class of very many pairs that are not alike: which of them are, found by measuring.
 *
 * All pairs of 512 PUs are 130,816, and minutes. But PUs come in groups, declared or not, and the
 * pairs of two groups mostly are alike. So groups are looked for: a PU that is in none yet is the
 * first of one, and asks all others that are in none; those that are clearly nearer than the next
 * are its group. Pairs between two groups, and inside of one, are a block. The first PU's row is in
 * it already; with a few random others it says whether the block is alike: then the others take the
 * block's median over, else all of it is measured. Where no groups of a useful size are found,
 * nothing is presumed, and the caller measures all.
 *
 * With groups of about sqrt(n) PUs that is n sqrt(n) / 2 pairs for the rows and about 2 n / 2 for
 * the blocks, of n^2 / 2. */
#include "probes/pairs/pairs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probes/probe.h"
#include "profile/base/random.h"

/* Neighbours in a row of latencies that are so far apart are of two kinds: twice what pairs of one
 * layer differ by (layers.c), and less than what layers do. */
static const double gap_factor = 1.25;
static const uint32_t no_group = UINT32_MAX;
enum { LEAST_GROUP = 4 }; /* PUs of a group that is of use */
/* Pairs of a block that speak for it: three random ones beside the rows, and at least so many that
 * one half of it is missed in one block of 32,768. Inside of groups siblings are looked for: where
 * half of them are offline they are 1 of 2 s pairs of s PUs, and s groups miss all of them by
 * 2 %. */
enum { OTHERS = 3, OTHERS_INSIDE = 8, SAMPLE_LEAST = 16 };
/* Pairs of a block that is alike that the second sweep measures again, random ones among them:
 * their median is the block's, and of the rows nothing more is asked. */
enum { KEPT = 8 };

struct blocks {
    const struct blocks_question *question;
    size_t n, asked;
    uint32_t *group_of; /* by PU. Owned */
    uint32_t *members;  /* PUs by group. Owned */
    uint32_t *first;    /* of a group in `members`; one more at the end. Owned */
    uint32_t groups;
    double limit;                /* of the last group, seconds; 0: there is none */
    double *row, *sorted;        /* by PU, seconds; 0: not known. Owned */
    struct pair_position *pairs; /* of one block. Owned */
    double *values;              /* of one block. Owned */
};

static uint8_t class_at(const struct blocks *b, size_t i, size_t j)
{
    return b->question->schedule->class_of[probe_pair_index(b->n, i, j)];
}

static bool late(const struct blocks *b)
{
    struct probe *probe = b->question->schedule->probe;
    return probe && probe_late(probe);
}

/* Measures the pair, unless it is. */
static int ask(struct blocks *b, size_t i, size_t j, double *seconds)
{
    struct schedule_outcome *outcome = b->question->outcome;
    const struct pair_position pair = {i < j ? i : j, i < j ? j : i};
    const size_t at = probe_pair_index(b->n, i, j);
    double figure;
    int rc = 0;
    if (!outcome->measured[at]) {
        rc = b->question->measure(b->question->argument, &pair, 1, &outcome->values[at], &figure);
        outcome->measured[at] = rc == 0;
        outcome->measured_count += rc == 0;
        b->asked++;
    }
    *seconds = outcome->values[at];
    return rc;
}

/* -- groups -- */

/* What the PU is away from all that are in no group; of closer classes that is known. */
static int ask_row(struct blocks *b, size_t pu, size_t *known)
{
    int rc = 0;
    *known = 0;
    for (size_t other = 0; rc == 0 && other < b->n; other++) {
        b->row[other] = 0;
        bool open = other != pu && b->group_of[other] == no_group;
        uint8_t class = open ? class_at(b, pu, other) : UINT8_MAX;
        if (open && class < b->question->class) {
            b->row[other] = b->question->outcome->values[probe_pair_index(b->n, pu, other)];
        } else if (open && class == b->question->class) {
            rc = ask(b, pu, other, &b->row[other]);
        }
        if (b->row[other] > 0) {
            b->sorted[(*known)++] = b->row[other];
        }
    }
    return rc;
}

/* The gap of the row that makes a group nearest in size to sqrt(n), or that of the last group where
 * it is one here too; the nearest PU beyond it is farther away than what is returned. The last ones
 * of a machine have nobody left beyond, and no gap: then what was one decides. 0: there is none. */
static double find_limit(struct blocks *b, size_t known)
{
    const double wanted = sqrt((double)b->n);
    double best = INFINITY, limit = b->limit;
    profile_sort(b->sorted, known);
    for (size_t i = 0; i + 1 < known; i++) {
        const size_t size = i + 2; /* the first PU is one of the group */
        double away = fabs(log((double)size / wanted));
        bool gap = b->sorted[i + 1] > gap_factor * b->sorted[i];
        if (gap && size >= LEAST_GROUP && b->sorted[i] < b->limit && b->limit < b->sorted[i + 1]) {
            return b->limit;
        }
        if (gap && size >= LEAST_GROUP && away < best) {
            best = away;
            limit = sqrt(b->sorted[i] * b->sorted[i + 1]);
        }
    }
    return limit;
}

/* 1: groups were found; 0: there are no useful ones, or to find them would be to measure all. */
static int find_groups(struct blocks *b, size_t pairs)
{
    for (size_t pu = 0; pu < b->n; pu++) {
        size_t known = 0;
        if (b->group_of[pu] != no_group) {
            continue;
        }
        int rc = ask_row(b, pu, &known);
        if (rc < 0) {
            return rc;
        }
        double limit = find_limit(b, known);
        if ((limit <= 0 && b->groups == 0) || 2 * b->asked > pairs) {
            return 0;
        }
        for (size_t other = 0; other < b->n; other++) {
            bool mine = other == pu || (b->row[other] > 0 && b->row[other] < limit);
            b->group_of[other] = mine ? b->groups : b->group_of[other];
        }
        b->groups++;
        b->limit = limit;
    }
    for (uint32_t g = 0, count = 0; g < b->groups; g++) {
        b->first[g] = count;
        for (uint32_t pu = 0; pu < b->n; pu++) {
            if (b->group_of[pu] == g) {
                b->members[count++] = pu;
            }
        }
        b->first[g + 1] = count;
    }
    return 1;
}

/* -- blocks -- */

/* The pairs of the class between the two groups, those that are measured first; how many. */
static size_t pairs_of(struct blocks *b, uint32_t g, uint32_t h, size_t *measured)
{
    size_t count = 0;
    *measured = 0;
    for (uint32_t i = b->first[g]; i < b->first[g + 1]; i++) {
        for (uint32_t j = g == h ? i + 1 : b->first[h]; j < b->first[h + 1]; j++) {
            struct pair_position pair = {b->members[i], b->members[j]};
            if (class_at(b, pair.i, pair.j) != b->question->class) {
                continue;
            }
            size_t at = probe_pair_index(b->n, pair.i, pair.j);
            b->pairs[count] = pair;
            if (b->question->outcome->measured[at]) {
                b->pairs[count] = b->pairs[*measured];
                b->pairs[(*measured)++] = pair;
            }
            count++;
        }
    }
    return count;
}

/* Measures the block's pairs up to `to`. */
static int measure_pairs(struct blocks *b, size_t to)
{
    int rc = 0;
    for (size_t k = 0; rc == 0 && k < to; k++) {
        rc = ask(b, b->pairs[k].i, b->pairs[k].j, &b->values[k]);
    }
    return rc;
}

/* `whole`: all of it is to be measured, and is set where its pairs are not alike. */
static int measure_block(struct blocks *b, uint32_t number, uint32_t g, uint32_t h, bool *whole)
{
    const struct schedule *schedule = b->question->schedule;
    struct schedule_outcome *outcome = b->question->outcome;
    size_t measured, count = pairs_of(b, g, h, &measured);
    random_shuffle(b->question->random, b->pairs + measured, count - measured, sizeof *b->pairs);
    size_t sample = measured + (g == h ? OTHERS_INSIDE : OTHERS);
    sample = sample < SAMPLE_LEAST ? SAMPLE_LEAST : sample;
    sample = sample < count && !*whole ? sample : count;
    int rc = measure_pairs(b, sample);
    double spread = schedule->spread ? *schedule->spread : 0;
    bool alike = rc == 0 && (sample == count || schedule->agree(b->values, sample, spread));
    if (rc == 0 && !alike && !late(b)) {
        *whole = true;
        sample = count;
        rc = measure_pairs(b, count);
    }
    const double middle = rc == 0 && count > 0 ? profile_median_value(b->values, sample) : 0;
    for (size_t k = 0; rc == 0 && k < count; k++) {
        size_t at = probe_pair_index(b->n, b->pairs[k].i, b->pairs[k].j);
        outcome->part_of[at] = number;
        outcome->values[at] = k < sample ? outcome->values[at] : middle;
        outcome->measured[at] = sample == count || (k < sample && k + KEPT >= sample);
    }
    return rc;
}

/* What is inside of one group is inside of the others: siblings of which a sample may have none. So
 * where the pairs inside of one are not alike, those inside of all are measured. */
static int measure_inside(struct blocks *b)
{
    const uint32_t before = b->question->outcome->parts;
    bool whole = false;
    int rc = 0;
    for (uint32_t g = 0; rc == 0 && g < b->groups; g++) {
        rc = measure_block(b, before + g + 1, g, g, &whole);
    }
    for (uint32_t g = 0; rc == 0 && g < b->groups && whole && !late(b); g++) {
        rc = measure_block(b, before + g + 1, g, g, &whole);
    }
    b->question->outcome->parts += b->groups;
    return rc;
}

static int measure_blocks(struct blocks *b)
{
    struct schedule_outcome *outcome = b->question->outcome;
    const size_t pairs = probe_pair_count(b->n);
    if (!outcome->part_of) {
        outcome->part_of = calloc(pairs + 1, sizeof *outcome->part_of);
    }
    int rc = outcome->part_of ? measure_inside(b) : -ENOMEM;
    for (uint32_t g = 0; rc == 0 && g < b->groups; g++) {
        for (uint32_t h = g + 1; rc == 0 && h < b->groups; h++) {
            bool whole = false;
            rc = measure_block(b, ++outcome->parts, g, h, &whole);
        }
    }
    return rc;
}

int probe_blocks_measure(const struct blocks_question *question, size_t pairs)
{
    const size_t n = question->schedule->pus->count;
    struct blocks b = {.question = question,
                       .n = n,
                       .group_of = malloc((n + 1) * sizeof *b.group_of),
                       .members = malloc((n + 1) * sizeof *b.members),
                       .first = malloc((n + 2) * sizeof *b.first),
                       .row = malloc((n + 1) * sizeof *b.row),
                       .sorted = malloc((n + 1) * sizeof *b.sorted),
                       .pairs = malloc((probe_pair_count(n) + 1) * sizeof *b.pairs),
                       .values = malloc((probe_pair_count(n) + 1) * sizeof *b.values)};
    bool room = b.group_of && b.members && b.first && b.row && b.sorted && b.pairs && b.values;
    int rc = room ? 0 : -ENOMEM;
    if (rc == 0) {
        memset(b.group_of, 0xff, n * sizeof *b.group_of);
        rc = find_groups(&b, pairs);
    }
    if (rc > 0) {
        rc = measure_blocks(&b);
        rc = rc < 0 ? rc : 1;
    }
    free(b.group_of);
    free(b.members);
    free(b.first);
    free(b.row);
    free(b.sorted);
    free(b.pairs);
    free(b.values);
    return rc;
}
