/* Is the machine divided evenly among the ranks of a hybrid program, and are their threads spread
 * or packed inside? */
#include "profile/scope.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/base/runner.h"
#include "tests/mapper/random_profile.h"
#include "tests/profile/fixture.h"

#define MOST 256

static void assert_domains(const struct servet_profile *profile, enum map_priority priority,
                           size_t ranks, const uint32_t *threads, const uint32_t *expected)
{
    struct map_domain_request request = {.priority = priority, .ranks = ranks, .threads = threads};
    struct servet_error error;
    uint32_t out[MOST];
    ck_assert_msg(map_domains(profile, &request, out, &error) == 0, "%s", error.text);
    size_t at = 0;
    for (size_t r = 0; r < ranks; r++) {
        for (uint32_t t = 0; t < threads[r]; t++, at++) {
            ck_assert_msg(out[at] == expected[at], "rank %zu, thread %u: PU %u, expected %u", r, t,
                          out[at], expected[at]);
        }
    }
}

#define THREADS(...)                                                                               \
    (const uint32_t[])                                                                             \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define PUS(...)                                                                                   \
    (const uint32_t[])                                                                             \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

TEST(one_rank_per_node_fills_it_as_in_the_paper)
{
    struct servet_profile *profile = loaded(FIXTURES "/nehalem-2-nodes.json");
    /* Figure 5 of the 2012 paper: one process on each node, its threads spread over it. */
    assert_domains(profile, MAP_MEMORY, 2, THREADS(2, 2), PUS(0, 1, 8, 9));
    assert_domains(profile, MAP_MEMORY, 2, THREADS(4, 4), PUS(0, 1, 4, 5, 8, 9, 12, 13));
    assert_domains(profile, MAP_MEMORY, 2, THREADS(8, 8),
                   PUS(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}

TEST(memory_priority_spreads_threads_and_communication_priority_packs_them)
{
    struct servet_profile *profile = loaded(FIXTURES "/nehalem-2-nodes.json");
    assert_domains(profile, MAP_MEMORY, 4, THREADS(2, 2, 2, 2), PUS(0, 4, 1, 5, 8, 12, 9, 13));
    assert_domains(profile, MAP_COMMUNICATION, 4, THREADS(2, 2, 2, 2), PUS(0, 2, 4, 6, 1, 3, 5, 7));
}

TEST(uneven_ranks_keep_their_order_and_their_memory_domain)
{
    struct servet_profile *cluster = loaded(FIXTURES "/nehalem-2-nodes.json");
    struct map_node_view view;
    const struct servet_profile *node = map_one_node(&cluster->classes[0], &view);
    assert_domains(node, MAP_MEMORY, 3, THREADS(3, 3, 2),
                   PUS(0, 2, 4, 1, 3, 6, 5, 7)); /* 4 + 4 cannot hold it: one rank straddles */
    assert_domains(node, MAP_MEMORY, 3, THREADS(2, 2, 4), PUS(1, 3, 5, 7, 0, 2, 4, 6));
    assert_domains(node, MAP_MEMORY, 3, THREADS(1, 3, 4), PUS(1, 3, 5, 7, 0, 2, 4, 6));
}

/* No PU is two ranks'. */
static void assert_apart(const uint32_t *out, size_t ranks, size_t threads)
{
    for (size_t i = 0; i < ranks * threads; i++) {
        for (size_t j = 0; j < i; j++) {
            ck_assert_msg(i / threads == j / threads || out[i] != out[j],
                          "ranks %zu and %zu share PU %u", j / threads, i / threads, out[i]);
        }
    }
}

TEST(ranks_keep_pus_of_their_own_while_there_are_enough_for_the_ranks)
{
    struct servet_profile *two = described("package:1 core:2 pu:1");
    for (int priority = MAP_MEMORY; priority <= MAP_COMMUNICATION; priority++) {
        /* The real bt-mz: spinning threads of one rank hold up the other. */
        assert_domains(two, (enum map_priority)priority, 2, THREADS(2, 2), PUS(0, 0, 1, 1));
        assert_domains(two, (enum map_priority)priority, 3, THREADS(2, 2, 2),
                       PUS(0, 0, 1, 1, 0, 0));
    }
    struct servet_profile *cluster = loaded(FIXTURES "/nehalem-2-nodes.json");
    struct map_node_view view;
    const struct servet_profile *node = map_one_node(&cluster->classes[0], &view);
    for (uint32_t ranks = 1; ranks <= 8; ranks++) {
        struct map_domain_request request = {.ranks = ranks, .threads_each = 9};
        uint32_t out[MOST], used = 0;
        ck_assert_int_eq(map_domains(node, &request, out, NULL), 0);
        assert_apart(out, ranks, 9);
        for (size_t i = 0; i < 9 * (size_t)ranks; i++) {
            used |= 1u << out[i];
        }
        ck_assert_uint_eq(used, 0xff);
    }
}

TEST(no_rank_gets_the_crumbs)
{
    /* A node of Frontier: 9 ranks of 7 threads on 64 cores do not fit into 8 caches of 8 cores. */
    struct servet_profile *node = described("package:1 group:4 [numa] l3:2 core:8 pu:1");
    struct map_domain_request request = {.ranks = 9, .threads_each = 7};
    uint32_t out[MOST];
    ck_assert_int_eq(map_domains(node, &request, out, NULL), 0);
    assert_apart(out, 9, 7);
    for (size_t r = 0; r < 9; r++) {
        uint32_t caches = 0;
        for (size_t t = 0; t < 7; t++) {
            caches |= 1u << out[7 * r + t] / 8;
        }
        ck_assert_int_le(__builtin_popcount(caches), 2);
    }
}

/* Cores are divided before threads. */
TEST(no_core_is_doubled_or_shared_while_there_are_others)
{
    static const struct {
        const char *machine;
        uint32_t ranks, threads, cores; /* used */
    } cases[] = {{"package:1 core:8 pu:2", 5, 2, 8},
                 {"package:2 core:8 pu:2", 3, 10, 16},
                 {"package:2 [numa] core:64 pu:2", 6, 42, 128},
                 {"package:2 group:4 [numa] l3:2 core:4 pu:2", 38, 3, 64}};
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        uint32_t out[MOST], user[MOST] = {0}, used = 0, shared = 0;
        const uint32_t ranks = cases[i / 2].ranks, threads = cases[i / 2].threads;
        const struct map_domain_request request = {.priority =
                                                       i % 2 ? MAP_COMMUNICATION : MAP_MEMORY,
                                                   .ranks = ranks,
                                                   .threads_each = threads};
        ck_assert_int_eq(map_domains(described(cases[i / 2].machine), &request, out, NULL), 0);
        for (uint32_t t = 0; t < ranks * threads; t++) {
            uint32_t *rank = &user[out[t] / 2]; /* of the core, and one more */
            used += !*rank;
            shared += *rank && *rank != t / threads + 1;
            *rank = t / threads + 1;
        }
        ck_assert_uint_eq(used, cases[i / 2].cores);
        ck_assert(shared == 0 || ranks * (threads / 2 + threads % 2) > cases[i / 2].cores);
    }
}

/* Packages that are not known to share bandwidth part no rank: three ranks of two threads have a
 * NUMA node for each thread either way. */
TEST(a_rank_crosses_packages_only_where_that_gains)
{
    struct servet_profile *node = described("package:2 group:4 [numa] core:4 pu:1");
    assert_domains(node, MAP_MEMORY, 3, THREADS(2, 2, 2), PUS(0, 4, 8, 12, 16, 20));
}

TEST(threads_are_spread_over_all_caches_of_the_region)
{
    struct servet_profile *milan = described("package:2 [numa] l3:8 core:8 pu:2");
    for (uint32_t ranks = 1; ranks <= 16; ranks *= 2) {
        struct map_domain_request request = {.ranks = ranks, .threads_each = 16 / ranks};
        uint32_t out[MOST], caches = 0;
        ck_assert_int_eq(map_domains(milan, &request, out, NULL), 0);
        for (size_t i = 0; i < 16; i++) {
            caches |= 1u << out[i] / 16;
        }
        ck_assert_uint_eq(caches, 0xffff);
        for (size_t i = 0; i < 16 && ranks > 1; i++) { /* ranks do not straddle packages */
            ck_assert_uint_eq(out[i] / 128, i / (16 / ranks) / ((ranks + 1) / 2));
        }
    }
}

TEST(one_rank_gets_the_pus_of_as_many_workers)
{
    size_t compared = 0;
    for (uint64_t seed = 1; seed < 6000; seed++) {
        struct random_source random = {seed * 0x9e3779b97f4a7c15ull};
        struct servet_profile *profile = random_profile(&random, seed % 2);
        uint32_t threads = 1 + random_below(&random, 20), a[MOST], b[MOST];
        struct map_request workers = {.priority = seed % 3 ? MAP_MEMORY : MAP_COMMUNICATION,
                                      .workers = threads,
                                      .known = true};
        struct map_domain_request rank = {
            .priority = workers.priority, .ranks = 1, .threads_each = threads};
        /* Another class would have a say in what the highest latency is. */
        if (profile_node_count(profile) == 1 && profile->class_count == 1 &&
            threads <= profile->classes[0].pus.count) {
            ck_assert_int_eq(map_workers(profile, &workers, a, NULL, NULL), 0);
            ck_assert_int_eq(map_domains(profile, &rank, b, NULL), 0);
            ck_assert_msg(memcmp(a, b, threads * sizeof *a) == 0, "seed %" PRIu64, seed);
            compared++;
        }
        profile_free(profile);
    }
    ck_assert_uint_gt(compared, 100);
}

TEST(pus_of_others_are_left_to_them_while_there_are_free_ones)
{
    struct servet_profile *cluster = loaded(FIXTURES "/nehalem-2-nodes.json");
    struct map_node_view view;
    const struct servet_profile *node = map_one_node(&cluster->classes[0], &view);
    struct profile_set allowed, taken, used;
    ck_assert_int_eq(profile_set_parse("0-4,6", &allowed), 0);
    ck_assert_int_eq(profile_set_parse("0,2", &taken), 0);
    struct map_domain_request request = {
        .ranks = 1, .threads_each = 4, .allowed = &allowed, .taken = &taken};
    uint32_t out[MOST];
    ck_assert_int_eq(map_domains(node, &request, out, NULL), 0);
    ck_assert_int_eq(profile_set_from_array(out, 4, &used), 0);
    FREED char *text = profile_set_text(&used);
    ck_assert_str_eq(text, "1,3-4,6");
    profile_set_free(&used);
    profile_set_free(&allowed);
    profile_set_free(&taken);
}

TEST(smt_siblings_wait_until_every_core_has_a_thread)
{
    struct servet_profile *profile = described("package:2 core:4 pu:2");
    assert_domains(profile, MAP_MEMORY, 2, THREADS(4, 4), PUS(0, 2, 4, 6, 8, 10, 12, 14));
    struct map_domain_request request = {.ranks = 4, .threads_each = 4};
    uint32_t out[MOST];
    ck_assert_int_eq(map_domains(profile, &request, out, NULL), 0);
    for (size_t r = 0; r < 4; r++) { /* whole cores: two of them each */
        uint32_t cores = 0;
        for (size_t t = 0; t < 4; t++) {
            cores |= 1u << out[4 * r + t] / 2;
        }
        ck_assert_int_eq(__builtin_popcount(cores), 2);
    }
}

TEST(ranks_of_one_thread_are_plain_workers)
{
    for (uint64_t seed = 1; seed < 2000; seed++) {
        struct random_source random = {seed};
        struct servet_profile *profile = random_profile(&random, seed % 2);
        struct map_request workers = {.priority = seed % 3 ? MAP_MEMORY : MAP_COMMUNICATION,
                                      .workers = (size_t)(1 + seed % 20),
                                      .known = true};
        struct map_domain_request ranks = {
            .priority = workers.priority, .ranks = workers.workers, .threads_each = 1};
        uint32_t a[MOST], b[MOST];
        ck_assert_int_eq(map_workers(profile, &workers, a, NULL, NULL), 0);
        ck_assert_int_eq(map_domains(profile, &ranks, b, NULL), 0);
        ck_assert_mem_eq(a, b, workers.workers * sizeof *a);
        profile_free(profile);
    }
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

TEST(any_request_keeps_every_rank_inside_a_node)
{
    for (uint64_t seed = 1; seed < 10000; seed++) {
        struct random_source random = {seed * 0x9e3779b97f4a7c15ull};
        struct servet_profile *profile = random_profile(&random, seed % 2);
        uint32_t threads[8], out[MOST];
        size_t ranks = 1 + random_below(&random, 8);
        for (size_t r = 0; r < ranks; r++) {
            threads[r] = 1 + random_below(&random, 6);
        }
        struct profile_set taken = random_pus(&random, profile, 0);
        struct map_domain_request request = {.priority = seed % 3 ? MAP_MEMORY : MAP_COMMUNICATION,
                                             .ranks = ranks,
                                             .threads = threads,
                                             .taken = seed % 5 ? NULL : &taken};
        struct servet_error error;
        ck_assert_msg(map_domains(profile, &request, out, &error) == 0, "seed %" PRIu64 ": %s",
                      seed, error.text);
        for (size_t r = 0, at = 0; r < ranks; at += threads[r++]) {
            for (size_t t = 1; t < threads[r]; t++) {
                ck_assert_msg(node_of(profile, out[at + t]) == node_of(profile, out[at]),
                              "seed %" PRIu64 ": rank %zu spans nodes", seed, r);
            }
            for (size_t t = 0; t < threads[r]; t++) {
                uint32_t node = node_of(profile, out[at + t]);
                uint32_t os = out[at + t] - profile_node_first_pu(profile, node);
                ck_assert(profile_set_has(&profile_node_class(profile, node)->pus, os));
            }
        }
        profile_set_free(&taken);
        profile_free(profile);
    }
}

/* -- straddling: against all ways to put ranks into domains -- */

#define MOST_DOMAINS 4

static bool can_pack(const uint32_t *threads, size_t ranks, uint32_t *room, size_t domains)
{
    if (!ranks) {
        return true;
    }
    for (size_t d = 0; d < domains; d++) {
        if (room[d] >= threads[0]) {
            room[d] -= threads[0];
            bool can = can_pack(threads + 1, ranks - 1, room, domains);
            room[d] += threads[0];
            if (can) {
                return true;
            }
        }
    }
    return false;
}

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

/* Twice the pairs that share a domain, of the best way to put whole ranks into domains; `load` is
 * what the domains have so far. */
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
        struct random_source random = {seed * 0x9e3779b97f4a7c15ull};
        uint32_t domains = 2 + random_below(&random, MOST_DOMAINS - 1),
                 size = 2 + random_below(&random, 7);
        struct servet_profile *profile = packages(domains, size);
        uint32_t threads[32], room[MOST_DOMAINS], left = domains * size, out[MOST];
        size_t ranks = 0;
        uint32_t even =
            random_below(&random, 2) ? 1 + random_below(&random, size) : 0; /* 0: uneven */
        while (left && left >= even && ranks < 10) {
            uint32_t most = left < size ? left : size;
            left -= threads[ranks++] = even ? even : 1 + random_below(&random, most);
        }
        for (uint32_t d = 0; d < domains; d++) {
            room[d] = size;
        }
        if (can_pack(threads, ranks, room, domains)) {
            packed++;
            struct map_domain_request request = {.priority =
                                                     seed % 2 ? MAP_MEMORY : MAP_COMMUNICATION,
                                                 .ranks = ranks,
                                                 .threads = threads};
            ck_assert_int_eq(map_domains(profile, &request, out, NULL), 0);
            bool straddles = false;
            size_t at = 0;
            for (size_t r = 0; r < ranks; at += threads[r++]) {
                for (size_t t = 1; t < threads[r]; t++) {
                    straddles = straddles || out[at + t] / size != out[at] / size;
                }
            }
            if (straddles) {
                uint32_t load[MOST_DOMAINS] = {0};
                straddled++;
                ck_assert_msg(request.priority == MAP_MEMORY &&
                                  sharing_of(out, at, size) <
                                      least_sharing(threads, ranks, load, domains, size),
                              "seed %" PRIu64 ", %u x %u: one of %zu ranks straddles", seed,
                              domains, size, ranks);
            }
        }
    }
    ck_assert_uint_gt(straddled, 10);
    ck_assert_uint_gt(packed, 1000);
}

/* Two sockets of four memory domains of 8 cores: 3 or 6 ranks do not divide them, and whole domains
 * would leave some ranks one domain and others two. */
TEST(ranks_that_do_not_divide_the_domains_get_equal_shares)
{
    struct servet_profile *node = described("package:2 group:4 [numa] l3:1 core:8 pu:1");
    const uint32_t cases[][3] = {{6, 5, 4}, {3, 10, 4}, {3, 2, 1}, {7, 4, 4}, {12, 3, 5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t ranks = cases[i][0], threads = cases[i][1], load[8] = {0}, out[MOST];
        struct map_domain_request request = {.ranks = ranks, .threads_each = threads};
        ck_assert_int_eq(map_domains(node, &request, out, NULL), 0);
        assert_apart(out, ranks, threads);
        for (size_t t = 0; t < (size_t)ranks * threads; t++) {
            load[out[t] / 8]++;
            ck_assert_msg(load[out[t] / 8] <= cases[i][2], "%u x %u: %u threads in domain %u",
                          ranks, threads, load[out[t] / 8], out[t] / 8);
            /* Ranks come one after the other in the order of the machine. */
            ck_assert(t == 0 || out[t] > out[t - 1]);
        }
    }
}

/* Caches of 7 cores that 8 ranks of 2 do not divide: 16 threads on 5 caches are 4 in one at least,
 * so that more caches of 4 cost the slowest rank nothing, and no rank needs two. */
TEST(a_rank_keeps_one_cache_while_the_worst_share_is_the_same)
{
    uint32_t out[16], load[5] = {0};
    struct servet_profile *five = described("package:1 [numa] l3:5 core:7 pu:1");
    struct map_domain_request request = {.ranks = 8, .threads_each = 2};
    ck_assert_int_eq(map_domains(five, &request, out, NULL), 0);
    for (size_t i = 0; i < 16; i++) {
        load[out[i] / 7]++;
        ck_assert_uint_eq(out[i] / 7, out[i - i % 2] / 7);
    }
    for (size_t cache = 0; cache < 5; cache++) {
        ck_assert_uint_ge(load[cache], 2);
        ck_assert_uint_le(load[cache], 4);
    }
}

/* All pairs of a Superdome's cell have one latency: packing gains nothing, and two ranks of 4 do
 * not crowd one cell while others are empty. Table 2's set of workers is that of two ranks of 2. */
TEST(communication_priority_shares_least_where_all_pus_are_equally_near)
{
    struct servet_profile *superdome = loaded(FIXTURES "/superdome.json");
    struct servet_profile *nehalem = loaded(FIXTURES "/nehalem-2-nodes.json");
    uint32_t out[8];
    struct map_domain_request request = {
        .priority = MAP_COMMUNICATION, .ranks = 2, .threads_each = 4};
    ck_assert_int_eq(map_domains(superdome, &request, out, NULL), 0);
    for (size_t t = 1; t < 8; t++) {
        ck_assert_uint_ne(out[t] / 8, out[t - 1] / 8);
    }
    assert_domains(nehalem, MAP_COMMUNICATION, 2, THREADS(2, 2), PUS(0, 4, 1, 5));
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
                struct map_domain_request request = {
                    .priority = MAP_COMMUNICATION, .ranks = ranks, .threads_each = threads};
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

/* Memory priority, 12 threads on five caches of 3 cores: two caches have 3. Where they are
 * neighbours one rank lies in both; where not, two ranks do, and no rank shares less. */
TEST(odd_threads_lie_side_by_side_where_that_shares_no_more)
{
    struct map_domain_request request = {.priority = MAP_MEMORY, .ranks = 6, .threads_each = 2};
    uint32_t out[MOST], load[5] = {0}, straddled = 0;
    struct servet_profile *node = described("package:1 [numa] l3:5 core:3 pu:1");
    ck_assert_int_eq(map_domains(node, &request, out, NULL), 0);
    for (size_t i = 0; i < 12; i++) {
        load[out[i] / 3]++;
        straddled += i % 2 && out[i] / 3 != out[i - 1] / 3;
    }
    ck_assert_uint_eq(straddled, 1);
    for (size_t cache = 0; cache < 5; cache++) {
        ck_assert_uint_ge(load[cache], 2);
    }
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Threads and workers are chosen by loops of their own. The held PUs make the choice uneven. */
TEST(one_rank_gets_the_pus_of_as_many_workers_however_many)
{
    enum { LARGE = 768 };
    static uint32_t threads[LARGE], workers[LARGE];
    static const size_t counts[] = {20, 90, 255, 256, 300, 500, 640};
    FREED_BY(profile_set_free) struct profile_set taken;
    struct servet_profile *profile = described("package:4 [numa] l3:8 core:8 pu:3");
    ck_assert_int_eq(profile_set_parse("0-30,200-210,388-392,601,640", &taken), 0);
    for (size_t i = 0; i < 2 * sizeof counts / sizeof *counts; i++) {
        size_t count = counts[i / 2];
        enum map_priority priority = i % 2 ? MAP_COMMUNICATION : MAP_MEMORY;
        struct map_domain_request rank = {
            .priority = priority, .ranks = 1, .threads_each = (uint32_t)count, .taken = &taken};
        struct map_request request = {
            .priority = priority, .workers = count, .taken = &taken, .known = true};
        ck_assert_int_eq(map_domains(profile, &rank, threads, NULL), 0);
        ck_assert_int_eq(map_workers(profile, &request, workers, NULL, NULL), 0);
        qsort(threads, count, sizeof *threads, by_number);
        qsort(workers, count, sizeof *workers, by_number);
        for (size_t t = 0; t < count; t++) {
            ck_assert_msg(threads[t] == workers[t], "%zu threads, %s priority: PU %u, workers %u",
                          count, i % 2 ? "communication" : "memory", threads[t], workers[t]);
        }
    }
}

TEST(bad_requests_are_refused)
{
    struct servet_profile *profile = loaded(FIXTURES "/nehalem-2-nodes.json");
    struct servet_error error;
    uint32_t out[MOST], none[] = {2, 0}, outside[] = {99};
    struct profile_set set = {outside, 1};
    struct map_domain_request request = {.ranks = 0, .threads_each = 2};
    ck_assert_int_lt(map_domains(profile, &request, out, &error), 0);
    ck_assert_ptr_nonnull(strstr(error.text, "ranks"));
    request = (struct map_domain_request){.ranks = 2, .threads = none};
    ck_assert_int_lt(map_domains(profile, &request, out, &error), 0);
    ck_assert_ptr_nonnull(strstr(error.text, "rank 1"));
    request = (struct map_domain_request){.ranks = 2, .threads_each = 2, .allowed = &set};
    ck_assert_int_lt(map_domains(profile, &request, out, &error), 0);
    ck_assert_ptr_nonnull(strstr(error.text, "allowed PUs"));
}

/* Two clusters whose last-level caches differ, each core with two threads whose numbers are far
 * apart (Ryzen AI 9 HX 370): the caches are two relations, and neither speaks of all cores. */
TEST(cores_stay_whole_where_caches_are_of_two_kinds)
{
    uint32_t all[12], core[6][2], small[] = {0, 1, 6, 7}, large[] = {2, 3, 4, 5, 8, 9, 10, 11};
    struct profile_set cores[6];
    for (uint32_t i = 0; i < 12; i++) {
        all[i] = i;
        core[i % 6][i / 6] = i;
    }
    for (uint32_t i = 0; i < 6; i++) {
        cores[i] = (struct profile_set){core[i], 2};
    }
    struct profile_set few = {small, 4}, many = {large, 8}, everybody = {all, 12};
    struct profile_cache caches[] = {
        {.level = 3, .size_bytes = 16 << 20, .pus = few, .sharing = {&few, 1, NULL, 0}},
        {.level = 3, .size_bytes = 8 << 20, .pus = many, .sharing = {&many, 1, NULL, 0}}};
    const struct profile_class node = {
        .pus = everybody, .cores = {cores, 6, NULL, 0}, .caches = caches, .cache_count = 2};
    struct map_node_view view;
    struct servet_error error;
    uint32_t pus[6];
    struct map_domain_request request = {.ranks = 3, .threads_each = 2};
    for (request.priority = MAP_MEMORY; request.priority <= MAP_COMMUNICATION; request.priority++) {
        ck_assert_int_eq(map_domains(map_one_node(&node, &view), &request, pus, &error), 0);
        uint32_t used = 0;
        for (size_t i = 0; i < 6; i++) {
            used |= 1u << (pus[i] % 6);
        }
        ck_assert_uint_eq(used, 0x3f);                     /* six threads on six cores */
        ck_assert_uint_eq(pus[0] % 6 < 2, pus[1] % 6 < 2); /* no rank is in both clusters */
        ck_assert_uint_eq(pus[2] % 6 < 2, pus[3] % 6 < 2);
    }
}

TESTS(.seconds = 600)
