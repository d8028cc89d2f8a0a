/* Is the machine divided among the ranks of a hybrid program as well as it can be? (Machines and
 * requests by name: golden/ranks.golden.) */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/base/runner.h"
#include "tests/mapper/random_profile.h"
#include "tests/profile/fixture.h"

#define MOST 256

TEST(pus_of_others_are_left_to_them_while_there_are_free_ones)
{
    struct servet_profile *cluster = loaded(FIXTURES "/nehalem-2-nodes.json");
    struct map_node_view view;
    const struct servet_profile *node = map_one_node(&cluster->classes[0], &view);
    const struct profile_set taken = set_of("0,2,4,6"); /* a package */
    struct profile_set used;
    struct map_request request = {.workers = 2, .threads_each = 2, .taken = &taken};
    uint32_t out[MOST];
    ck_assert_int_eq(map_domains(node, &request, out, NULL), 0);
    ck_assert_int_eq(profile_set_from_array(out, 4, &used), 0);
    ck_assert_str_eq(list_of(&used), "1,3,5,7");
    profile_set_free(&used);
}

static uint32_t node_of(const struct servet_profile *profile, uint32_t pu)
{
    uint32_t node = 0;
    while (node + 1 < profile_node_count(profile) &&
           profile_node_first_pu(profile, node + 1) <= pu) {
        node++;
    }
    return node;
}

/* So many ranks of as many threads each get the PUs of as many workers, in their order. */
static void assert_as_workers(const struct servet_profile *profile, enum map_priority priority,
                              uint32_t ranks, uint32_t threads, uint64_t seed)
{
    const struct map_request workers = map_request_of(priority, (size_t)ranks * threads);
    const struct map_request request = {
        .priority = priority, .workers = ranks, .threads_each = threads};
    uint32_t a[MOST], b[MOST];
    ck_assert_int_eq(map_workers(profile, &workers, a, NULL, NULL), 0);
    ck_assert_int_eq(map_domains(profile, &request, b, NULL), 0);
    ck_assert_msg(memcmp(a, b, workers.workers * sizeof *a) == 0, "seed %" PRIu64, seed);
}

static void assert_inside_nodes(const struct servet_profile *profile,
                                const struct map_request *request, uint64_t seed)
{
    struct servet_error error;
    uint32_t out[MOST];
    ck_assert_msg(map_domains(profile, request, out, &error) == 0, "seed %" PRIu64 ": %s", seed,
                  error.text);
    for (size_t r = 0, at = 0; r < request->workers; at += request->threads[r++]) {
        const uint32_t node = node_of(profile, out[at]);
        for (size_t t = 0; t < request->threads[r]; t++) {
            ck_assert_msg(node_of(profile, out[at + t]) == node,
                          "seed %" PRIu64 ": rank %zu spans nodes", seed, r);
            ck_assert(profile_set_has(&profile_node_class(profile, node)->pus,
                                      out[at + t] - profile_node_first_pu(profile, node)));
        }
    }
}

/* Ranks of one thread are workers, and so are the threads of one rank; but another class would have
 * a say in what the highest latency is. */
TEST(any_machine_is_divided_into_ranks_inside_a_node)
{
    size_t compared = 0;
    for (uint64_t seed = 1; seed < 10000; seed++) {
        struct random random = {seed * 0x9e3779b97f4a7c15ull};
        struct servet_profile *profile = random_profile(&random, seed % 2);
        const uint32_t ranks = 1 + random_number(&random, 8),
                       count = 1 + random_number(&random, 20);
        uint32_t threads[8];
        for (size_t r = 0; r < ranks; r++) {
            threads[r] = 1 + random_number(&random, 6);
        }
        struct profile_set taken = random_pus(&random, profile, 0);
        const struct map_request request = {.priority = seed % 3 ? MAP_MEMORY : MAP_COMMUNICATION,
                                            .workers = ranks,
                                            .threads = threads,
                                            .taken = seed % 5 ? NULL : &taken};
        assert_inside_nodes(profile, &request, seed);
        assert_as_workers(profile, request.priority, count, 1, seed);
        if (profile_node_count(profile) == 1 && profile->class_count == 1 &&
            count <= profile->classes[0].pus.count) {
            assert_as_workers(profile, request.priority, 1, count, seed);
            compared++;
        }
        profile_set_free(&taken);
        profile_free(profile);
    }
    ck_assert_uint_gt(compared, 100);
}

/* -- straddling: against all ways to put ranks into domains -- */

#define MOST_DOMAINS 4
#define MOST_SIZE 8

/* Made once each: hwloc needs longer for one than a mapping takes. Freed with the test's
 * process. */
static struct servet_profile *packages(uint32_t domains, uint32_t size)
{
    static struct servet_profile *made[MOST_DOMAINS + 1][MOST_SIZE + 1];
    if (!made[domains][size]) {
        char text[64];
        snprintf(text, sizeof text, "package:%u [numa] core:%u pu:1", domains, size);
        made[domains][size] = described(text);
    }
    return made[domains][size];
}

/* Twice the pairs that share a domain, of the best way to put whole ranks into domains, UINT32_MAX:
 * there is none; `load` is what the domains have so far. */
static uint32_t least_sharing(const uint32_t *threads, size_t ranks, uint32_t *load, size_t domains,
                              uint32_t size)
{
    uint32_t least = ranks ? UINT32_MAX : 0;
    for (size_t d = 0; !ranks && d < domains; d++) {
        least += load[d] * load[d];
    }
    for (size_t d = 0; ranks && d < domains; d++) {
        bool seen = false; /* domains with one load are alike */
        for (size_t other = 0; other < d; other++) {
            seen = seen || load[other] == load[d];
        }
        if (!seen && load[d] + threads[0] <= size) {
            load[d] += threads[0];
            uint32_t of_rest = least_sharing(threads + 1, ranks - 1, load, domains, size);
            least = of_rest < least ? of_rest : least;
            load[d] -= threads[0];
        }
    }
    return least;
}

static uint32_t sharing_of(const uint32_t *out, size_t workers, uint32_t size)
{
    uint32_t load[MOST_DOMAINS] = {0}, sum = 0;
    for (size_t i = 0; i < workers; i++) {
        load[out[i] / size]++;
    }
    for (size_t d = 0; d < MOST_DOMAINS; d++) {
        sum += load[d] * load[d];
    }
    return sum;
}

/* Communication priority keeps ranks whole while there is a way. Memory priority lets them straddle
 * where all threads then share less than any way to keep ranks whole, and never shares more. */
TEST(no_rank_straddles_while_another_way_is_as_good)
{
    size_t packed = 0, straddled = 0;
    for (uint64_t seed = 1; seed < 4000; seed++) {
        struct random random = {seed * 0x9e3779b97f4a7c15ull};
        uint32_t domains = 2 + random_number(&random, MOST_DOMAINS - 1),
                 size = 2 + random_number(&random, 7);
        struct servet_profile *profile = packages(domains, size);
        uint32_t threads[32], load[MOST_DOMAINS] = {0}, left = domains * size, out[MOST];
        size_t ranks = 0;
        uint32_t even =
            random_number(&random, 2) ? 1 + random_number(&random, size) : 0; /* 0: uneven */
        while (left && left >= even && ranks < 10) {
            uint32_t most = left < size ? left : size;
            left -= threads[ranks++] = even ? even : 1 + random_number(&random, most);
        }
        const uint32_t whole = least_sharing(threads, ranks, load, domains, size);
        if (whole == UINT32_MAX) {
            continue;
        }
        const struct map_request request = {.priority = seed % 2 ? MAP_MEMORY : MAP_COMMUNICATION,
                                            .workers = ranks,
                                            .threads = threads};
        ck_assert_int_eq(map_domains(profile, &request, out, NULL), 0);
        bool straddles = false;
        size_t at = 0;
        for (size_t r = 0; r < ranks; at += threads[r++]) {
            for (size_t t = 1; t < threads[r]; t++) {
                straddles = straddles || out[at + t] / size != out[at] / size;
            }
        }
        packed++;
        straddled += straddles;
        ck_assert_msg(
            !straddles || (request.priority == MAP_MEMORY && sharing_of(out, at, size) < whole),
            "seed %" PRIu64 ", %u x %u: one of %zu ranks straddles", seed, domains, size, ranks);
    }
    ck_assert_uint_gt(straddled, 10);
    ck_assert_uint_gt(packed, 1000);
}

/* Caches that part the threads of ranks, of the best way to leave cores out between them. */
static uint32_t least_parted(uint32_t ranks, uint32_t threads, uint32_t size, uint32_t cores)
{
    uint32_t least[MOST + 1] = {0}; /* of the ranks looked at, from this core on */
    for (uint32_t r = ranks; r-- > 0;) {
        uint32_t last = cores - (ranks - r) * threads; /* where rank r may begin at the latest */
        for (uint32_t at = 0; at <= last; at++) {
            least[at] = least[at + threads] + (at + threads - 1) / size - at / size;
        }
        for (uint32_t at = last; at-- > 0;) {
            least[at] = least[at + 1] < least[at] ? least[at + 1] : least[at];
        }
    }
    return least[0];
}

TEST(cores_left_over_lie_where_a_rank_would_straddle)
{
    static const uint32_t shapes[][2] = {{6, 5}, {6, 8}, {5, 7}, {4, 16}}; /* caches of cores */
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        char text[64];
        uint32_t out[MOST], size = shapes[s][1], cores = shapes[s][0] * size;
        snprintf(text, sizeof text, "package:1 [numa] l3:%u core:%u pu:1", shapes[s][0], size);
        const struct servet_profile *node = described(text);
        for (uint32_t threads = 2; threads <= cores / 2; threads++) {
            for (uint32_t ranks = 2; ranks * threads <= cores; ranks++) {
                struct map_request request = {
                    .priority = MAP_COMMUNICATION, .workers = ranks, .threads_each = threads};
                ck_assert_int_eq(map_domains(node, &request, out, NULL), 0);
                uint32_t parted = 0;
                for (uint32_t i = 1; i < ranks * threads; i++) {
                    ck_assert_uint_gt(out[i], out[i - 1]);
                    parted += i % threads ? out[i] / size - out[i - 1] / size : 0;
                }
                ck_assert_uint_eq(parted, least_parted(ranks, threads, size, cores));
            }
        }
    }
}

TEST(bad_requests_are_refused)
{
    struct servet_profile *profile = loaded(FIXTURES "/nehalem-2-nodes.json");
    struct servet_error error;
    uint32_t out[MOST], none[] = {2, 0}, outside[] = {99};
    struct profile_set set = {outside, 1};
    struct map_request request = {.workers = 0, .threads_each = 2};
    ck_assert_int_lt(map_domains(profile, &request, out, &error), 0);
    ck_assert_ptr_nonnull(strstr(error.text, "ranks"));
    request = (struct map_request){.workers = 2, .threads = none};
    ck_assert_int_lt(map_domains(profile, &request, out, &error), 0);
    ck_assert_ptr_nonnull(strstr(error.text, "rank 1"));
    request = (struct map_request){.workers = 2, .threads_each = 2, .allowed = &set};
    ck_assert_int_lt(map_domains(profile, &request, out, &error), 0);
    ck_assert_ptr_nonnull(strstr(error.text, "allowed PUs"));
}

/* Messages are fast between other PUs than those that share memory, four and four: ranks of 4 have
 * the first to themselves by communication priority, the second by memory priority. */
TEST(ranks_follow_the_layers_where_other_groups_as_wide_cross_them)
{
    struct servet_profile *profile = described("package:2 [numa] core:4 pu:1");
    struct profile_relation *layer = &profile->classes[0].communication.layers[0].members;
    ck_assert_uint_eq(layer->group_count, 2);
    kept(layer->groups);
    *layer = relation_of("0-1,4-5 2-3,6-7");
    for (int priority = MAP_MEMORY; priority <= MAP_COMMUNICATION; priority++) {
        uint32_t out[8];
        struct map_request request = {
            .priority = (enum map_priority)priority, .workers = 2, .threads_each = 4};
        ck_assert_int_eq(map_domains(profile, &request, out, NULL), 0);
        for (uint32_t t = 0; t < 8; t++) {
            uint32_t in_layer = out[t] / 2 % 2, in_memory = out[t] / 4;
            ck_assert_uint_eq(priority == MAP_MEMORY ? in_memory : in_layer, t / 4);
        }
    }
}

/* Pairs of PUs share memory, four pairs are a package, found by messages: three ranks of 8 on four
 * packages would leave one rank two packages and the others one, whose threads then get half. The
 * pairs that share are as many, so only the rank with most tells. */
TEST(no_rank_shares_more_memory_than_where_groups_are_cut)
{
    enum { RANKS = 3, THREADS = 8 };
    uint32_t out[RANKS * THREADS], most = 0;
    struct profile_layer layers[] = {
        {.seconds = 5e-7, .members = relation_of("0-7 8-15 16-23 24-31")},
        {.seconds = 9e-7, .members = relation_of("0-31")}};
    struct profile_memory_level level = {
        .collisions = relation_of("0-1 2-3 4-5 6-7 8-9 10-11 12-13 14-15 16-17 18-19 20-21 22-23 "
                                  "24-25 26-27 28-29 30-31")};
    const struct profile_class node = {.pus = set_of("0-31"),
                                       .memory = {.levels = &level, .level_count = 1},
                                       .communication = {.layers = layers, .layer_count = 2}};
    struct map_node_view view;
    struct servet_error error;
    struct map_request request = {.workers = RANKS, .threads_each = THREADS};
    ck_assert_int_eq(map_domains(map_one_node(&node, &view), &request, out, &error), 0);
    for (size_t r = 0; r < RANKS; r++) {
        uint32_t crowd = 0;
        for (size_t t = 0; t < THREADS; t++) {
            for (size_t i = 0; i < RANKS * THREADS; i++) {
                crowd += out[i] / 2 == out[r * THREADS + t] / 2;
            }
        }
        most = crowd > most ? crowd : most;
    }
    ck_assert_uint_le(most, 14); /* 8 of 16 pairs have two: 32 + 8 in all, 13.3 each */
}

TESTS(.seconds = 600)
