/* Is every kind of machine mapped completely: SMT, P and E cores, memory-only nodes, no L3, one PU,
 * gaps? */
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/command/command.h"
#include "mapper/formats/formats.h"
#include "mapper/map.h"
#include "profile/query.h"
#include "tests/base/runner.h"
#include "tests/profile/fixture.h"

#define MOST 256

static void assert_mapping(const struct servet_profile *profile, const struct map_request *request,
                           const uint32_t *expected)
{
    uint32_t out[MOST];
    struct servet_error error;
    ck_assert_msg(map_workers(profile, request, out, NULL, &error) == 0, "%s", error.text);
    for (size_t w = 0; w < request->workers; w++) {
        ck_assert_msg(out[w] == expected[w], "worker %zu: PU %u, expected %u", w, out[w],
                      expected[w]);
    }
}

#define PUS(...)                                                                                   \
    (const uint32_t[])                                                                             \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* By both priorities, also where all workers would fit the PUs of a package. */
static void assert_cores_first(const struct servet_profile *profile, size_t workers, bool known)
{
    size_t pus = profile->classes[0].pus.count, smt = profile->classes[0].cores.groups[0].count;
    for (int priority = MAP_MEMORY; priority <= MAP_COMMUNICATION; priority++) {
        struct map_request request = {
            .priority = (enum map_priority)priority, .workers = workers, .known = known};
        uint32_t out[MOST], on_core[MOST] = {0};
        ck_assert_int_eq(map_workers(profile, &request, out, NULL, NULL), 0);
        for (size_t w = 0; w < workers;
             w++) { /* hwloc numbers the PUs of a synthetic core in a row */
            on_core[out[w] / smt]++;
        }
        for (size_t core = 0; core < pus / smt; core++) {
            ck_assert_uint_ge(on_core[core], workers / (pus / smt));
            ck_assert_uint_le(on_core[core], (workers - 1) / (pus / smt) + 1);
        }
    }
}

TEST(every_core_has_a_worker_before_any_has_two)
{
    const char *machines[] = {"package:2 l3:2 l2:2 core:2 pu:2", "package:1 core:5 pu:4",
                              "package:3 l2:1 core:3 pu:2", "package:2 core:3 pu:4"};
    for (size_t m = 0; m < sizeof machines / sizeof *machines; m++) {
        struct servet_profile *profile = described(machines[m]);
        for (size_t workers = 1; workers <= profile->classes[0].pus.count; workers++) {
            assert_cores_first(profile, workers, false);
            assert_cores_first(profile, workers, true);
        }
    }
}

/* Eight cores of two threads, which share their first cache as measured. */
static struct servet_profile *measured_cores(void)
{
    struct servet_profile *profile = described("package:2 l1:4 core:1 pu:2");
    struct profile_cache *first = &profile->classes[0].caches[0];
    ck_assert_uint_eq(first->level, 1);
    ck_assert_uint_eq(first->sharing.group_count, 8);
    first->sharing_quality.origin = PROFILE_MEASURED;
    return profile;
}

/* A guest is often told of no core, or of cores that its PUs are not on. */
TEST(who_shares_a_measured_first_cache_is_on_a_core_whatever_is_declared)
{
    struct servet_profile *profile = measured_cores();
    struct profile_relation *cores = &profile->classes[0].cores;
    const size_t declared = cores->group_count;
    cores->group_count = 0;
    assert_cores_first(profile, 8, true);
    cores->group_count = declared;
    for (uint32_t core = 0; core < declared; core++) {
        cores->groups[core].ids[0] = core;
        cores->groups[core].ids[1] = core + 8;
    }
    assert_cores_first(profile, 8, true);
    /* also where the two are of different kinds, of which one has this cache */
    ck_assert_int_eq(profile_set_parse("0-7", &profile->classes[0].caches[0].pus), 0);
    assert_cores_first(profile, 8, true);
    profile_free(profile);
}

/* PUs that share no outer cache are not asked about the inner ones: no core is there, whatever is
 * declared. */
TEST(who_shares_no_measured_outer_cache_is_on_no_core, .loops = 3)
{
    struct servet_profile *profile = described(_i == 1 ? "package:2 l3:4 l2:1 l1:1 core:1 pu:2"
                                                       : "package:2 l2:4 l1:1 core:1 pu:2");
    struct profile_class *node = &profile->classes[0];
    struct profile_pair_figure apart = {.a = 4, .b = 5, .value = 1.01}; /* all that is known */
    const bool one_pair = _i == 2;
    const uint32_t outer = _i == 1 ? 3 : 2;
    const struct map_request request = {.priority = MAP_COMMUNICATION, .workers = 8};
    uint32_t out[MOST];
    ck_assert_uint_eq(node->cores.group_count, 8);
    for (size_t i = 0; i < node->cache_count; i++) {
        struct profile_cache *cache = &node->caches[i];
        while (cache->sharing.group_count > 0) {
            profile_set_free(&cache->sharing.groups[--cache->sharing.group_count]);
        }
        const bool measured = cache->level == outer;
        cache->sharing_quality.origin = measured && !one_pair ? PROFILE_MEASURED : PROFILE_INFERRED;
        cache->pair_ratios = measured && one_pair ? &apart : NULL;
        cache->pair_ratio_count = measured && one_pair;
    }
    ck_assert_int_eq(map_workers(profile, &request, out, NULL, NULL), 0);
    for (size_t w = 0; w < request.workers; w++) { /* a package of eight PUs, not each second one */
        ck_assert_uint_eq(out[w], w);
    }
    for (size_t i = 0; i < node->cache_count; i++) {
        node->caches[i].pair_ratios = NULL;
        node->caches[i].pair_ratio_count = 0;
    }
    profile_free(profile);
}

/* Load makes caches look shared: declared cores that are within what was measured stay. */
TEST(cores_stay_as_declared_where_no_measurement_speaks_against_them)
{
    struct servet_profile *profile = measured_cores();
    struct profile_relation *sharing = &profile->classes[0].caches[0].sharing;
    profile_set_free(&sharing->groups[0]);
    profile_set_free(&sharing->groups[1]);
    ck_assert_int_eq(profile_set_parse("0-3", &sharing->groups[0]), 0);
    sharing->groups[1] = sharing->groups[--sharing->group_count];
    assert_cores_first(profile, 8, true);
    profile_free(profile);
}

/* Workers on each core, and whether the core is of the most capable kind. */
static void assert_fast_cores_first(const struct servet_profile *profile, size_t workers)
{
    const struct profile_class *node = &profile->classes[0];
    const struct profile_kind *best = &node->kinds[0];
    for (size_t k = 1; k < node->kind_count; k++) {
        best = node->kinds[k].efficiency > best->efficiency ? &node->kinds[k] : best;
    }
    struct map_request request = {.workers = workers};
    uint32_t out[MOST], idle = 0, slow = 0, on_core[MOST] = {0};
    ck_assert_int_eq(map_workers(profile, &request, out, NULL, NULL), 0);
    for (size_t w = 0; w < workers; w++) {
        const struct profile_set *core = profile_group_of(&node->cores, out[w]);
        on_core[core ? core->ids[0] : out[w]]++;
        slow += !profile_set_has(&best->pus, out[w]);
    }
    for (size_t i = 0; i < best->pus.count; i++) {
        const struct profile_set *core = profile_group_of(&node->cores, best->pus.ids[i]);
        idle += (!core || core->ids[0] == best->pus.ids[i]) && !on_core[best->pus.ids[i]];
    }
    ck_assert_msg(!slow || !idle, "%zu workers: %u on slow cores, %u fast cores idle", workers,
                  slow, idle);
}

TEST(fast_cores_are_never_idle_while_slow_ones_work)
{
    struct servet_profile *profile =
        described(FIXTURES "/topologies/Intel-ArrowLake-CoreUltra5-225U.xml");
    ck_assert_uint_ge(profile->classes[0].kind_count, 2);
    for (size_t workers = 1; workers <= profile->classes[0].pus.count; workers++) {
        assert_fast_cores_first(profile, workers);
    }
}

/* A cluster of alike nodes with `domains` memory domains of two PUs each. */
static struct servet_profile *cluster_of(uint32_t nodes, uint32_t domains)
{
    struct servet_profile *profile = kept(calloc(1, sizeof *profile));
    struct profile_class *node = calloc(1, sizeof *node);
    profile->classes = node;
    profile->class_count = profile->node_range_count = 1;
    profile->nodes = calloc(1, sizeof *profile->nodes);
    profile->nodes[0].count = nodes;
    char text[32];
    snprintf(text, sizeof text, "0-%u", 2 * domains - 1);
    ck_assert_int_eq(profile_set_parse(text, &node->pus), 0);
    node->memory.reference_bytes_per_s = 10e9;
    node->memory.levels = calloc(1, sizeof *node->memory.levels);
    node->memory.level_count = 1;
    node->memory.levels[0].bytes_per_s = 5e9;
    struct profile_relation *pairs = &node->memory.levels[0].collisions;
    pairs->groups = calloc(domains, sizeof *pairs->groups);
    for (; pairs->group_count < domains; pairs->group_count++) {
        uint32_t first = 2 * (uint32_t)pairs->group_count;
        ck_assert_int_eq(profile_set_from_array((uint32_t[]){first, first + 1}, 2,
                                                &pairs->groups[pairs->group_count]),
                         0);
    }
    struct profile_communication *levels[] = {&node->communication, &profile->network};
    for (size_t i = 0; i < 2; i++) {
        levels[i]->layers = calloc(1, sizeof *levels[i]->layers);
        levels[i]->layer_count = 1;
        levels[i]->layers[0].seconds = i ? 2e-6 : 0.5e-6;
        levels[i]->layers[0].members.groups = calloc(1, sizeof(struct profile_set));
        levels[i]->layers[0].members.group_count = 1;
        snprintf(text, sizeof text, "0-%u", i ? nodes - 1 : 2 * domains - 1);
        ck_assert_int_eq(profile_set_parse(text, &levels[i]->layers[0].members.groups[0]), 0);
    }
    return profile;
}

TEST(two_workers_share_no_domain_while_a_node_has_free_ones)
{
    for (uint32_t domains = 2; domains <= 32; domains++) {
        struct servet_profile *profile = cluster_of(2, domains);
        for (int paper = 0; paper < 2; paper++) {
            struct map_request request = {.workers = 2 * (size_t)domains, .paper = paper};
            uint32_t out[MOST], on_domain[MOST] = {0}, most = 0;
            ck_assert_int_eq(map_workers(profile, &request, out, NULL, NULL), 0);
            for (size_t w = 0; w < request.workers; w++) {
                uint32_t workers = ++on_domain[out[w] / 2];
                most = workers > most ? workers : most;
            }
            /* The paper's sum lets ten workers' nearness outweigh one collision. */
            ck_assert_msg(most == 1 || paper, "%u domains a node: %u workers in one", domains,
                          most);
            ck_assert_msg(most == 2 || !paper || domains < 12, "%u domains: the sum?", domains);
        }
    }
}

TEST(a_node_is_filled_until_the_next_worker_loses_bandwidth)
{
    struct servet_profile *profile = cluster_of(2, 2);
    assert_mapping(profile, &(struct map_request){.workers = 4}, PUS(0, 2, 4, 6));
    struct profile_memory_level *level = &profile->classes[0].memory.levels[0];
    level->scaling = calloc(1, sizeof *level->scaling);
    level->scaling_count = 1;
    /* Two in a domain get 91 % each: all PUs of the node come before the next node. */
    level->scaling[0] = (struct profile_scaling_point){.workers = 2, .bytes_per_s = 18.2e9};
    assert_mapping(profile, &(struct map_request){.workers = 6}, PUS(0, 2, 1, 3, 4, 6));
    level->scaling[0].bytes_per_s = 17.8e9; /* 89 % */
    assert_mapping(profile, &(struct map_request){.workers = 6}, PUS(0, 2, 4, 6, 1, 3));
}

TEST(pus_without_memory_of_their_own_come_last)
{
    struct servet_profile *profile = described("package:1 [numa] group:4 [numa] core:2 pu:1");
    struct profile_class *node = &profile->classes[0];
    for (size_t n = 0; n < node->numa_count; n++) {
        bool without = profile_set_has(&node->numa[n].pus, 0) || node->numa[n].pus.count > 2;
        node->numa[n].memory_bytes = without ? 0 : 1 << 30; /* of PUs 0 and 1 */
    }
    for (int priority = MAP_MEMORY; priority <= MAP_COMMUNICATION; priority++) {
        struct map_request request = {.priority = (enum map_priority)priority, .workers = 6};
        uint32_t out[MOST];
        ck_assert_int_eq(map_workers(profile, &request, out, NULL, NULL), 0);
        for (size_t w = 0; w < 6; w++) {
            ck_assert_uint_gt(out[w], 1);
        }
    }
}

TEST(the_larger_last_level_cache_comes_first_among_equals)
{
    struct servet_profile *profile = described("package:1 l3:2(size=32MB) core:4 pu:1");
    struct profile_class *node = &profile->classes[0];
    /* As on a Ryzen 9 7950X3D, whose second half has 32 MB where the first has 96: here the other
     * way round. */
    struct profile_cache *caches = calloc(node->cache_count + 1, sizeof *caches);
    memcpy(caches, node->caches, node->cache_count * sizeof *caches);
    free(node->caches);
    node->caches = caches;
    struct profile_cache *l3 = &caches[node->cache_count - 1], *large = l3 + 1;
    ck_assert_uint_eq(l3->level, 3);
    *large = (struct profile_cache){.level = 3, .size_bytes = 96 << 20};
    profile_set_free(&l3->pus);
    ck_assert_int_eq(profile_set_parse("0-3", &l3->pus), 0);
    ck_assert_int_eq(profile_set_parse("4-7", &large->pus), 0);
    large->sharing.groups = calloc(1, sizeof *large->sharing.groups);
    large->sharing.groups[0] = l3->sharing.groups[1];
    large->sharing.group_count = l3->sharing.group_count = 1;
    node->cache_count++;
    assert_mapping(profile, &(struct map_request){.workers = 3}, PUS(4, 0, 5));
}

TEST(limits_leave_what_was_asked_for)
{
    struct servet_profile *profile = described("package:2 core:2 pu:4");
    struct profile_set list, left;
    struct servet_error error;
    ck_assert_int_eq(profile_set_parse("1-7,12", &list), 0);
    const struct {
        struct map_limits limits;
        const char *expected;
    } cases[] = {
        {{NULL, 0, MAP_KIND_ANY}, "0-15"},
        {{NULL, 1, MAP_KIND_ANY}, "0,4,8,12"},
        {{NULL, 2, MAP_KIND_ANY}, "0-1,4-5,8-9,12-13"},
        {{&list, 1, MAP_KIND_ANY}, "1,4,12"},
        {{&list, 0, 0}, "1-7,12"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(map_allowed_pus(profile, &cases[i].limits, &left, &error), 0);
        char *text = profile_set_text(&left);
        ck_assert_str_eq(text, cases[i].expected);
        free(text);
        profile_set_free(&left);
    }
    struct map_limits none = {NULL, 0, 1};
    ck_assert_int_lt(map_allowed_pus(profile, &none, &left, &error), 0);
    profile_set_free(&list);
}

TEST(memory_only_nodes_and_odd_machines_are_mapped_completely)
{
    const char *files[] = {"fakeheteromemtiers.xml", "nvidiagpunumanodes.xml",
                           "fakeheterocpunuma.xml",  "2ps3-2t.xml",
                           "4fake-4gr1nu1pu.xml",    "16amd64-4n4c-cgroup-distance-merge.xml"};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        char path[512];
        snprintf(path, sizeof path, "%s/topologies/%s", FIXTURES, files[f]);
        struct servet_profile *profile = described(path);
        const struct profile_set *pus = &profile->classes[0].pus;
        struct map_request request = {.workers = pus->count};
        uint32_t *out = calloc(pus->count, sizeof *out);
        ck_assert_int_eq(map_workers(profile, &request, out, NULL, NULL), 0);
        struct profile_set used;
        ck_assert_int_eq(profile_set_from_array(out, pus->count, &used), 0);
        ck_assert_msg(profile_set_equal(&used, pus), "%s: some PU has two workers and another none",
                      files[f]);
        profile_set_free(&used);
        free(out);
    }
}

TEST(one_pu_takes_all)
{
    struct servet_profile *profile = described("pu:1");
    assert_mapping(profile, &(struct map_request){.workers = 3}, PUS(0, 0, 0));
}

TEST(taken_pus_count_as_chosen)
{
    struct servet_profile *profile = loaded(NEHALEM);
    struct profile_set taken, allowed;
    ck_assert_int_eq(profile_set_parse("0-1", &taken), 0);
    ck_assert_int_eq(profile_set_parse("0-3", &allowed), 0);
    /* Goes on where Table 1 of the paper is after two choices. */
    assert_mapping(profile, &(struct map_request){.workers = 2, .taken = &taken}, PUS(8, 9));
    assert_mapping(profile,
                   &(struct map_request){.workers = 5, .taken = &taken, .allowed = &allowed},
                   PUS(2, 3, 0, 1, 2));
    profile_set_free(&taken);
    profile_set_free(&allowed);
}

/* What Open MPI's --cpu-list and pe-list count by, against hwloc's own tree. */
TEST(logical_numbers_are_those_of_hwloc)
{
    static const char *const sources[] = {
        FIXTURES "/topologies/two-l3-sizes.xml",
        FIXTURES "/topologies/Intel-ArrowLake-CoreUltra5-225U.xml",
        FIXTURES "/topologies/fakeheterocpunuma.xml",
        FIXTURES "/topologies/4fake-4gr1nu1pu.xml",
        ("package:2 [numa] l3:3 core:3 pu:2(indexes=0,18,1,19,2,20,3,21,4,22,5,23,6,24,7,25,8,26,9,"
         "27,10,28,11,29,12,30,13,31,14,32,15,33,16,34,17,35)"),
    };
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        struct servet_profile *profile = described(sources[i]);
        const struct profile_class *class = &profile->classes[0];
        bool file = strstr(sources[i], ".xml");
        hwloc_topology_t topology;
        uint32_t *logical;
        ck_assert(hwloc_topology_init(&topology) == 0 &&
                  (file ? hwloc_topology_set_xml(topology, sources[i])
                        : hwloc_topology_set_synthetic(topology, sources[i])) == 0 &&
                  hwloc_topology_load(topology) == 0);
        ck_assert_int_eq(map_logical_indices(class, &logical), 0);
        for (size_t at = 0; at < class->pus.count; at++) {
            hwloc_obj_t pu = hwloc_get_pu_obj_by_os_index(topology, class->pus.ids[at]);
            ck_assert_msg(pu && pu->logical_index == logical[at], "%s: PU %u is %u, hwloc: %u",
                          sources[i], class->pus.ids[at], logical[at], pu->logical_index);
        }
        free(logical);
        hwloc_topology_destroy(topology);
    }
}
/* EPYC 7402: caches of 3 cores, and two of them share memory. Six ranks of 2 would fill two pairs
 * of caches, one rank of each in both; four pairs hold eight ranks without that, and nine with one
 * rank in two caches. */
TEST(packed_ranks_keep_one_cache_inside_of_wider_groups)
{
    struct servet_profile *profile = described("package:1 group:4 [numa] l3:2 core:3 pu:1");
    for (uint32_t ranks = 4; ranks <= 12; ranks++) {
        uint32_t out[MOST], parted = 0;
        struct map_domain_request request = {
            .priority = MAP_COMMUNICATION, .ranks = ranks, .threads_each = 2};
        ck_assert_int_eq(map_domains(profile, &request, out, NULL), 0);
        for (size_t r = 0; r < ranks; r++) {
            parted += out[2 * r] / 3 != out[2 * r + 1] / 3;
        }
        ck_assert_uint_eq(parted, ranks > 8 ? ranks - 8 : 0);
    }
}

/* Messages are fast between other PUs than those that share memory, four and four: ranks of 4 have
 * the first to themselves by communication priority, the second by memory priority. */
TEST(ranks_follow_the_layers_where_other_groups_as_wide_cross_them)
{
    static const char *const fast[] = {"0-1,4-5", "2-3,6-7"};
    struct servet_profile *profile = described("package:2 [numa] core:4 pu:1");
    struct profile_relation *layer = &profile->classes[0].communication.layers[0].members;
    ck_assert_uint_eq(layer->group_count, 2);
    for (size_t g = 0; g < 2; g++) {
        profile_set_free(&layer->groups[g]);
        ck_assert_int_eq(profile_set_parse(fast[g], &layer->groups[g]), 0);
    }
    for (int priority = MAP_MEMORY; priority <= MAP_COMMUNICATION; priority++) {
        uint32_t out[8];
        struct map_domain_request request = {
            .priority = (enum map_priority)priority, .ranks = 2, .threads_each = 4};
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
    enum { PUS_OF_NODE = 32, RANKS = 3, THREADS = 8 };
    uint32_t ids[PUS_OF_NODE], out[RANKS * THREADS], most = 0;
    struct profile_set pairs[PUS_OF_NODE / 2], packages[4], all = {ids, PUS_OF_NODE};
    for (uint32_t i = 0; i < PUS_OF_NODE; i++) {
        ids[i] = i;
        pairs[i / 2] = (struct profile_set){ids + i / 2 * 2, 2};
        packages[i / 8] = (struct profile_set){ids + i / 8 * 8, 8};
    }
    struct profile_layer layers[] = {{.seconds = 5e-7, .members = {packages, 4, NULL, 0}},
                                     {.seconds = 9e-7, .members = {&all, 1, NULL, 0}}};
    struct profile_memory_level level = {.collisions = {pairs, PUS_OF_NODE / 2, NULL, 0}};
    const struct profile_class node = {.pus = all,
                                       .memory = {.levels = &level, .level_count = 1},
                                       .communication = {.layers = layers, .layer_count = 2}};
    struct map_node_view view;
    struct servet_error error;
    struct map_domain_request request = {.ranks = RANKS, .threads_each = THREADS};
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
