/* IS, integer sort (RNR-94-007, Section 2.6): ranks keys of a bell-shaped distribution ten times,
 * changing two keys each time; checks five published ranks each time, and at the end that the ranks
 * sort the keys.
 * Ranks of one process send each key to the rank that has its part of the value range (whole
 * buckets), and count there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "benchmarks/kernels/kernel.h"
#include "benchmarks/kernels/nas_random.h"
#include "benchmarks/kernels/par.h"

const char kernel_name[] = "IS";

#define SEED UINT64_C(314159265)
#define ITERATIONS 10
#define TESTS 5
#define BUCKETS 1024

/* Test key i is expected at rank[i] + (iteration + up) where sign[i] is 1, and at rank[i] -
 * (iteration + down) where it is -1, iterations from 1: each changes one key into a low value and
 * one into a high value. */
static const struct problem {
    size_t keys, values;
    size_t index[TESTS];
    int64_t rank[TESTS];
    int sign[TESTS], up, down;
} problems[] = {
    {1 << 16,
     1 << 11,
     {48427, 17148, 23627, 62548, 4431},
     {0, 18, 346, 64917, 65463},
     {1, 1, 1, -1, -1},
     0,
     0},
    {1 << 20,
     1 << 16,
     {357773, 934767, 875723, 898999, 404505},
     {1249, 11698, 1039987, 1043896, 1048018},
     {1, 1, -1, -1, -1},
     -2,
     0},
    {1 << 23,
     1 << 19,
     {2112377, 662041, 5336171, 3642833, 4250760},
     {104, 17523, 123928, 8288932, 8388264},
     {1, 1, 1, -1, -1},
     -1,
     -1},
    {1 << 25,
     1 << 21,
     {41869, 812306, 5102857, 18232239, 26860214},
     {33422937, 10244, 59149, 33135281, 99},
     {-1, 1, 1, -1, 1},
     0,
     0},
};

struct sorter {
    const struct problem *what;
    size_t first, count; /* keys of this rank, as generated */
    uint32_t *keys;
    size_t per_bucket; /* values in a bucket */
    size_t low, high;  /* values that this rank counts */
    int64_t below;     /* keys of all ranks below `low` */
    size_t received;
    uint32_t *send,
        *mine; /* keys by destination; keys of this rank's values (one rank: the keys themselves) */
    size_t *send_first, *receive_first, *bucket_owner;
    uint32_t *counts; /* threads x values of this rank */
    uint32_t *ranks;  /* keys of this rank's range that are below value `low + i` */
};

static void generate(struct sorter *s)
{
    double scale = (double)s->what->values / 4.0;
#pragma omp parallel
    {
        size_t thread = 0, threads = 1;
#ifdef _OPENMP
        thread = (size_t)omp_get_thread_num();
        threads = (size_t)omp_get_num_threads();
#endif
        size_t from = s->count * thread / threads, to = s->count * (thread + 1) / threads;
        uint64_t state = nas_jump(SEED, 4 * (s->first + from));
        for (size_t i = from; i < to; i++) {
            double sum = nas_next(&state);
            for (int draw = 1; draw < 4; draw++) {
                sum += nas_next(&state);
            }
            s->keys[i] = (uint32_t)(scale * sum);
        }
    }
}

static void put(struct sorter *s, size_t index, uint32_t value)
{
    if (index >= s->first && index - s->first < s->count) {
        s->keys[index - s->first] = value;
    }
}

/* Whole buckets to ranks so that each gets about keys / ranks. */
static void share_buckets(struct sorter *s, const int64_t *sizes)
{
    int64_t total = (int64_t)s->what->keys, seen = 0;
    s->low = s->high = 0;
    s->below = 0;
    bool found = false;
    for (size_t b = 0; b < BUCKETS; b++) {
        size_t owner = (size_t)((seen + sizes[b] / 2) * (int64_t)par_size() / (total + 1));
        s->bucket_owner[b] = owner;
        if (owner == par_rank()) {
            if (!found) {
                s->low = b * s->per_bucket;
                s->below = seen;
                found = true;
            }
            s->high = (b + 1) * s->per_bucket;
        }
        seen += sizes[b];
    }
}

static void distribute(struct sorter *s)
{
    int64_t sizes[BUCKETS] = {0};
    int64_t mine[BUCKETS] = {0};
    for (size_t i = 0; i < s->count; i++) {
        mine[s->keys[i] / s->per_bucket]++;
    }
    memcpy(sizes, mine, sizeof sizes);
    par_sum_integers(sizes, BUCKETS);
    share_buckets(s, sizes);
    size_t ranks = par_size();
    int64_t *lengths = kernel_memory(2 * ranks, sizeof *lengths), *incoming = lengths + ranks;
    for (size_t b = 0; b < BUCKETS; b++) {
        lengths[s->bucket_owner[b]] += mine[b];
    }
    par_exchange(lengths, incoming, sizeof *lengths);
    size_t *next = kernel_memory(ranks, sizeof *next);
    s->send_first[0] = s->receive_first[0] = 0;
    for (size_t r = 0; r < ranks; r++) {
        next[r] = s->send_first[r] / sizeof(uint32_t);
        s->send_first[r + 1] = s->send_first[r] + (size_t)lengths[r] * sizeof(uint32_t);
        s->receive_first[r + 1] = s->receive_first[r] + (size_t)incoming[r] * sizeof(uint32_t);
    }
    for (size_t i = 0; i < s->count; i++) {
        s->send[next[s->bucket_owner[s->keys[i] / s->per_bucket]]++] = s->keys[i];
    }
    s->received = s->receive_first[ranks] / sizeof(uint32_t);
    par_exchange_parts(s->send, s->send_first, s->mine, s->receive_first);
    free(next);
    free(lengths);
}

static void count_keys(struct sorter *s)
{
    size_t values = s->high - s->low, low = s->low, received = s->received;
#pragma omp parallel
    {
        size_t thread = 0, threads = 1;
#ifdef _OPENMP
        thread = (size_t)omp_get_thread_num();
        threads = (size_t)omp_get_num_threads();
#endif
        uint32_t *counts = s->counts + thread * values;
        memset(counts, 0, values * sizeof *counts);
        size_t from = received * thread / threads, to = received * (thread + 1) / threads;
        for (size_t i = from; i < to; i++) {
            counts[s->mine[i] - low]++;
        }
#pragma omp barrier
#pragma omp for schedule(static)
        for (size_t value = 0; value < values; value++) {
            uint32_t sum = 0;
            for (size_t t = 0; t < threads; t++) {
                sum += s->counts[t * values + value];
            }
            s->ranks[value] = sum;
        }
    }
    uint32_t below = 0;
    for (size_t value = 0; value < values; value++) {
        uint32_t here = s->ranks[value];
        s->ranks[value] = below;
        below += here;
    }
}

/* The ranks of the five test keys, compared with the published ones. */
static int partial_check(struct sorter *s, int iteration)
{
    int64_t keys[TESTS] = {0}, ranks[TESTS] = {0};
    for (size_t i = 0; i < TESTS; i++) {
        size_t index = s->what->index[i];
        if (index >= s->first && index - s->first < s->count) {
            keys[i] = (int64_t)s->keys[index - s->first];
        }
    }
    par_sum_integers(keys, TESTS);
    for (size_t i = 0; i < TESTS; i++) {
        size_t key = (size_t)keys[i];
        if (key >= s->low && key < s->high) {
            ranks[i] = s->below + (int64_t)s->ranks[key - s->low];
        }
    }
    par_sum_integers(ranks, TESTS);
    int right = 0;
    for (size_t i = 0; i < TESTS; i++) {
        int sign = s->what->sign[i], shift = sign > 0 ? s->what->up : s->what->down;
        right += ranks[i] == s->what->rank[i] + sign * (iteration + shift);
    }
    return right;
}

static void rank_keys(struct sorter *s, int iteration)
{
    put(s, (size_t)iteration, (uint32_t)iteration);
    put(s, (size_t)iteration + ITERATIONS, (uint32_t)(s->what->values - (size_t)iteration));
    if (par_size() > 1) {
        distribute(s);
    }
    count_keys(s);
}

/* Puts every key at its rank and looks whether they ascend, and follow those of the rank before. */
static bool full_check(struct sorter *s)
{
    uint32_t *sorted = kernel_memory(s->received + 1, sizeof *sorted);
    for (size_t i = 0; i < s->received; i++) {
        sorted[s->ranks[s->mine[i] - s->low]++] = s->mine[i];
    }
    int64_t wrong = 0;
    for (size_t i = 1; i < s->received; i++) {
        wrong += sorted[i - 1] > sorted[i];
    }
    int64_t total = (int64_t)s->received;
    par_sum_integers(&wrong, 1);
    par_sum_integers(&total, 1);
    free(sorted);
    return wrong == 0 && total == (int64_t)s->what->keys;
}

static void make(struct sorter *s, const struct problem *what)
{
    *s = (struct sorter){.what = what, .high = what->values};
    par_share(what->keys, par_rank(), &s->first, &s->count);
    s->per_bucket = what->values / BUCKETS;
    s->keys = kernel_memory(s->count, sizeof *s->keys);
    s->mine = s->keys;
    s->received = s->count;
    if (par_size() > 1) {
        /* No rank gets more than its share and one bucket too many; a bucket may hold a large part
         * of few ranks' keys.
         */
        s->mine = kernel_memory(what->keys, sizeof *s->mine);
        s->send = kernel_memory(s->count, sizeof *s->send);
    }
    s->send_first = kernel_memory(par_size() + 1, sizeof *s->send_first);
    s->receive_first = kernel_memory(par_size() + 1, sizeof *s->receive_first);
    s->bucket_owner = kernel_memory(BUCKETS, sizeof *s->bucket_owner);
    s->counts = kernel_memory(par_threads() * what->values, sizeof *s->counts);
    s->ranks = kernel_memory(what->values, sizeof *s->ranks);
}

static void drop(struct sorter *s)
{
    if (s->mine != s->keys) {
        free(s->mine);
    }
    void *owned[] = {s->keys,         s->send,   s->send_first, s->receive_first,
                     s->bucket_owner, s->counts, s->ranks};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) {
        free(owned[i]);
    }
}

bool kernel_run(char problem, struct kernel_result *result, const char **reason)
{
    (void)reason;
    const struct problem *what = &problems[kernel_class_index(problem)];
    struct sorter sorter;
    make(&sorter, what);
    generate(&sorter);
    rank_keys(&sorter, 1); /* untimed: touches everything once */
    par_barrier();
    double start = par_seconds();
    int right = 0;
    for (int iteration = 1; iteration <= ITERATIONS; iteration++) {
        rank_keys(&sorter, iteration);
        right += partial_check(&sorter, iteration);
    }
    result->seconds = par_seconds() - start;
    result->rate = ITERATIONS * (double)what->keys / result->seconds * 1e-6;
    result->unit = "Mop/s";
    bool sorted = full_check(&sorter);
    if (par_rank() == 0) {
        printf("%-14s %d of %d as published; keys %s\n", "test ranks", right, ITERATIONS * TESTS,
               sorted ? "sorted" : "NOT sorted");
    }
    result->verified = right == ITERATIONS * TESTS && sorted;
    drop(&sorter);
    return true;
}
