/* Do ranks lie beside their GPUs and cards, as evenly as the machine lets them? */
#include "profile/scope.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/devices/devices.h"
#include "mapper/formats/formats.h"
#include "tests/base/runner.h"
#include "tests/base/scratch.h"
#include "tests/profile/fixture.h"

struct question {
    const char *machine;
    uint32_t ranks, threads, gpus;
    bool nics;
    const char *cpuset; /* NULL: all */
    /* by rank: "PUs: devices", as `servet-map --format devices` writes them; "*": it is far */
    const char *expected;
};

#define ALL MAP_ALL_GPUS

static const struct question questions[] = {
    /* one rank has everything */
    {"pascal", 1, 1, ALL, true, NULL, "0: cuda0,cuda1,mlx5_0"},
    /* both cards are on one socket: all ranks are, while it has cores */
    {"pascal", 3, 2, ALL, false, NULL, "0,1: cuda0; 6,7: cuda0; 12,13: cuda1"},
    {"one-socket", 4, 4, ALL, false, NULL,
     "16,17,18,19: cuda0; 20,21,22,23: cuda1; 24,25,26,27: cuda2; 28,29,30,31: cuda3"},
    {"one-socket", 5, 4, ALL, true, NULL,
     "16,17,18,19: cuda0,mlx5_0*; 20,21,22,23: cuda1,mlx5_0*; 24,25,26,27: cuda2,mlx5_0*; "
     "28,29,30,31: cuda3,mlx5_0*; 0,1,2,3: cuda0*,mlx5_0"},
    /* more GPUs than ranks: each has its share, by socket */
    {"lassen", 2, 2, ALL, true, NULL,
     "8,16: cuda0,cuda1,mlx5_0,mlx5_1; 96,104: cuda2,cuda3,mlx5_2,mlx5_3"},
    {"lassen", 4, 1, ALL, true, NULL,
     "8: cuda0,mlx5_0; 16: cuda1,mlx5_1; 96: cuda2,mlx5_2; 104: cuda3,mlx5_3"},
    {"lassen", 2, 1, 2, false, NULL, "8: cuda0; 96: cuda2"},
    {"lassen", 2, 1, 3, false, NULL, "8: cuda0,cuda1; 96: cuda2"},
    /* dies of one card stay together while there are nodes enough, then each has its own ranks */
    {"tioga", 4, 2, ALL, true, NULL,
     "0,8: rsmi4,rsmi5,hsi2; 16,24: rsmi2,rsmi3,hsi1; 32,40: rsmi6,rsmi7,hsi3; 48,56: "
     "rsmi0,rsmi1,hsi0"},
    {"tioga", 8, 1, ALL, false, NULL,
     "0: rsmi4; 8: rsmi5; 16: rsmi2; 24: rsmi3; 32: rsmi6; 40: rsmi7; 48: rsmi0; 56: rsmi1"},
    {"tioga", 3, 1, ALL, false, NULL,
     "0: rsmi4,rsmi5*,rsmi2*; 32: rsmi3*,rsmi6,rsmi7*; 48: rsmi0,rsmi1*"},
    {"tioga", 4, 1, 4, false, NULL, "0: rsmi4; 16: rsmi2; 32: rsmi6; 48: rsmi0"},
    {"aurora", 2, 1, ALL, false, NULL,
     "0: ze0.0,ze0.1,ze1.0,ze1.1,ze2.0,ze2.1; 104: ze3.0,ze3.1,ze4.0,ze4.1,ze5.0,ze5.1"},
    {"aurora", 8, 1, ALL, false, NULL,
     "0: ze0.0,ze0.1; 2: ze1.0,ze1.1; 4: ze2.0; 6: ze2.1; 104: ze3.0,ze3.1; 106: ze4.0,ze4.1; "
     "108: ze5.0; 110: ze5.1"},
    /* a GPU that the system puts nowhere moves nobody */
    {"no-node", 2, 4, ALL, false, NULL, "0,1,2,3: cuda0; 8,9,10,11: cuda1"},
    /* no rank straddles packages to share memory with fewer */
    {"no-node", 3, 2, ALL, false, NULL, "0,2: cuda0; 4,6: cuda0; 8,9: cuda1"},
    /* only one socket may be used: its GPUs first, then the others */
    {"lassen", 2, 2, ALL, false, "8-87", "8,16: cuda0; 48,56: cuda1"},
    {"lassen", 3, 2, ALL, false, "8-87", "8,16: cuda0; 48,56: cuda1; 24,32: cuda2*"},
    {"lassen", 2, 2, ALL, true, "96-99", "96,97: cuda2,mlx5_2; 98,99: cuda3,mlx5_3"},
    {"workstation", 2, 4, ALL, true, NULL, "0,2,4,6: cuda0,eno1; 16,18,20,22: cuda0,eno1"},
    /* nodes as they are bought: a GPU and a card for each rank */
    {"dgx-h100", 8, 1, ALL, true, NULL,
     "0: cuda0,mlx5_0; 2: cuda1,mlx5_1; 4: cuda2,mlx5_2; 6: cuda3,mlx5_3; 112: cuda4,mlx5_4; "
     "114: cuda5,mlx5_5; 116: cuda6,mlx5_6; 118: cuda7,mlx5_7"},
    {"dgx-b200", 3, 2, ALL, true, NULL,
     "0,1: cuda0,cuda1,mlx5_0,mlx5_2; 28,29: cuda2,cuda3,mlx5_1,mlx5_3; "
     "56,57: cuda4,cuda5,cuda6,cuda7,mlx5_4,mlx5_5,mlx5_6,mlx5_7"},
    {"dgx-b200", 9, 2, ALL, false, NULL,
     "0,1: cuda0; 11,12: cuda0; 22,23: cuda1; 33,34: cuda2; 44,45: cuda3; 56,57: cuda4; "
     "70,71: cuda5; 84,85: cuda6; 98,99: cuda7"},
    {"mi300x", 8, 3, ALL, true, NULL,
     "0,8,16: rsmi3,mlx5_3; 24,32,40: rsmi2,mlx5_2; 48,56,64: rsmi1,mlx5_1; "
     "72,80,88: rsmi0,mlx5_0; 96,104,112: rsmi7,mlx5_7; 120,128,136: rsmi6,mlx5_6; "
     "144,152,160: rsmi5,mlx5_5; 168,176,184: rsmi4,mlx5_4"},
    {"grace-hopper", 5, 1, ALL, false, NULL,
     "0: cuda0; 1: cuda0; 72: cuda1; 144: cuda2; 216: cuda3"},
    {"tuolumne", 4, 2, ALL, true, NULL,
     "0,8: rsmi0,hsi0; 24,32: rsmi1,hsi1; 48,56: rsmi2,hsi2; 72,80: rsmi3,hsi3"},
    {"tuolumne", 3, 2, ALL, false, NULL, "0,24: rsmi0,rsmi1; 48,56: rsmi2; 72,80: rsmi3"},
    {"corona", 8, 1, ALL, true, NULL,
     "0: rsmi0,mlx5_0*; 3: rsmi1,mlx5_0*; 6: rsmi2,mlx5_0*; 9: rsmi3,mlx5_0*; "
     "24: rsmi4,mlx5_0; 27: rsmi5,mlx5_0; 30: rsmi6,mlx5_0; 33: rsmi7,mlx5_0"},
    {"g4dnmetal", 9, 1, ALL, false, NULL,
     "0: cuda0; 1: cuda0; 2: cuda1; 3: cuda2; 4: cuda3; 24: cuda4; 25: cuda5; 26: cuda6; "
     "27: cuda7"},
    /* ranks that fill a node lie as without GPUs: no second hardware thread */
    {"pascal", 3, 12, ALL, false, NULL,
     "0,1,2,3,4,5,6,7,8,9,10,11: cuda0; 12,13,14,15,16,17,18,19,20,21,22,23: cuda1; "
     "24,25,26,27,28,29,30,31,32,33,34,35: cuda0*"},
    /* partitions of a card are GPUs: none is left without a rank */
    {"mi300a-cpx", 8, 2, ALL, false, NULL,
     "0,6: rsmi0,rsmi1,rsmi2; 12,18: rsmi3,rsmi4,rsmi5; 24,30: rsmi6,rsmi7,rsmi8; "
     "36,42: rsmi9,rsmi10,rsmi11; 48,54: rsmi12,rsmi13,rsmi14; 60,66: rsmi15,rsmi16,rsmi17; "
     "72,78: rsmi18,rsmi19,rsmi20; 84,90: rsmi21,rsmi22,rsmi23"},
    /* without GPUs in the question ranks are where they always are */
    {"one-socket", 2, 2, 0, true, NULL, "0,1: mlx5_0; 16,17: mlx5_0*"},
};

static struct servet_profile *machine(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, FIXTURES "/devices/%s.json", name);
    return loaded(path);
}

static void print_gpus(FILE *out, const struct map_devices *devices, uint32_t rank)
{
    for (size_t i = devices->first[rank]; i < devices->first[rank + 1]; i++) {
        fprintf(out, "%s%s%s", i > devices->first[rank] ? "," : ": ", devices->held[i].device->name,
                devices->held[i].far ? "*" : "");
    }
}

static void print_rank(FILE *out, const uint32_t *pus, const struct map_devices *devices,
                       uint32_t rank, uint32_t threads)
{
    fputs(rank ? "; " : "", out);
    for (uint32_t t = 0; t < threads; t++) {
        fprintf(out, "%s%u", t ? "," : "", pus[rank * threads + t]);
    }
    print_gpus(out, devices, rank);
}

static int ask(const struct question *question, const struct servet_profile *profile,
               bool exclusive, uint32_t *pus, struct map_devices *devices,
               struct servet_error *error)
{
    FREED_BY(profile_set_free) struct profile_set allowed = {0};
    struct map_device_request request = {
        .ranks = {.ranks = question->ranks, .threads_each = question->threads},
        .gpus = question->gpus,
        .exclusive = exclusive,
        .nics = question->nics};
    if (question->cpuset) {
        ck_assert_int_eq(profile_set_parse(question->cpuset, &allowed), 0);
        request.ranks.allowed = &allowed;
    }
    int rc = map_devices(profile, &request, pus, devices, error);
    return rc;
}

TEST(ranks_lie_beside_their_devices, .loops = sizeof questions / sizeof *questions)
{
    const struct question *question = &questions[_i];
    uint32_t pus[64];
    FREED_BY(map_devices_free) struct map_devices devices;
    struct servet_error error;
    FREED char *text = NULL;
    size_t size;
    struct servet_profile *profile = machine(question->machine);
    ck_assert_msg(ask(question, profile, false, pus, &devices, &error) == 0, "%s", error.text);
    FILE *out = open_memstream(&text, &size);
    for (uint32_t r = 0; r < question->ranks; r++) {
        print_rank(out, pus, &devices, r, question->threads);
    }
    fclose(out);
    ck_assert_str_eq(text, question->expected);
}

/* Two packages of 56 cores, four NUMA nodes each; GPUs in nodes 1, 3, 5 and 7. */
static const struct {
    uint32_t ranks, threads;
    const char *cpuset, *expected;
} crossings[] = {
    {2, 56, NULL, "0-55: cuda1,cuda0; 56-111: cuda3,cuda2"},
    {4, 28, NULL, "0-27: cuda1; 28-55: cuda0; 56-83: cuda3; 84-111: cuda2"},
    {4, 8, NULL, "14-21: cuda1; 42-49: cuda0; 70-77: cuda3; 98-105: cuda2"},
    /* two of the GPUs make it cross nodes, threads make the others */
    {3, 28, NULL, "14-27,42-55: cuda1,cuda0; 56-83: cuda3; 84-111: cuda2"},
    /* no room beside the GPU: a node of its own, not the rest of one and a bit of the next */
    {5, 8, NULL, "14-21: cuda1; 0-7: cuda1*; 42-49: cuda0; 70-77: cuda3; 98-105: cuda2"},
    /* half of the machine: GPUs that are far from it wait for more ranks */
    {2, 28, "0-55", "0-27: cuda1; 28-55: cuda0"},
    {2, 14, "28-83", "42-55: cuda0; 70-83: cuda3"},
    /* half of each node */
    {4, 7, "0-6,14-20,28-34,42-48,56-62,70-76,84-90,98-104",
     "14-20: cuda1; 42-48: cuda0; 70-76: cuda3; 98-104: cuda2"},
};

TEST(ranks_cross_packages_and_nodes_only_where_they_must,
     .loops = sizeof crossings / sizeof *crossings)
{
    const struct question question = {.ranks = crossings[_i].ranks,
                                      .threads = crossings[_i].threads,
                                      .gpus = ALL,
                                      .cpuset = crossings[_i].cpuset};
    uint32_t pus[112];
    FREED_BY(map_devices_free) struct map_devices devices;
    struct servet_error error;
    FREED char *text = NULL;
    size_t size;
    ck_assert_int_eq(ask(&question, machine("matrix"), false, pus, &devices, &error), 0);
    FILE *out = open_memstream(&text, &size);
    for (uint32_t r = 0; r < question.ranks; r++) {
        struct profile_set own;
        ck_assert_int_eq(profile_set_from_array(pus + r * question.threads, question.threads, &own),
                         0);
        char *list = profile_set_text(&own);
        fprintf(out, "%s%s", r ? "; " : "", list);
        print_gpus(out, &devices, r);
        profile_set_free(&own);
        free(list);
    }
    fclose(out);
    ck_assert_str_eq(text, crossings[_i].expected);
}

/* Ranks wider than the NUMA node of their GPU leave out what is near the GPU of the other one, on
 * whichever side of the machine the GPUs are. */
TEST(a_rank_takes_the_pus_near_the_gpu_of_another_last)
{
    static char names[][6] = {"cuda0", "cuda1"};
    const struct question question = {.ranks = 2, .threads = 16, .gpus = ALL};
    for (uint32_t first = 0; first < 3; first++) {
        struct servet_profile *profile = described("package:1 group:4 [numa] core:8 pu:1");
        struct profile_class *of = &profile->classes[0];
        struct profile_device gpus[2];
        struct map_devices devices;
        struct servet_error error;
        uint32_t pus[32], near[2] = {0};
        for (uint32_t g = 0; g < 2; g++) {
            const struct profile_numa *numa = &of->numa[first + g];
            gpus[g] = (struct profile_device){.kind = PROFILE_GPU,
                                              .name = names[g],
                                              .card = g,
                                              .numa_node = numa->os_index,
                                              .pus = numa->pus};
        }
        of->devices = gpus;
        of->device_count = 2;
        ck_assert_int_eq(ask(&question, profile, false, pus, &devices, &error), 0);
        for (uint32_t t = 0; t < 32; t++) {
            near[t / 16] += profile_set_has(&devices.held[t / 16].device->pus, pus[t]);
        }
        ck_assert_uint_eq(near[0], 8);
        ck_assert_uint_eq(near[1], 8);
        map_devices_free(&devices);
        of->devices = NULL;
        of->device_count = 0;
    }
}

/* However many ranks: no PU twice while there are PUs, no GPU with two ranks more than another, no
 * GPU without a rank, none that is far while its own PUs have room. */
static void check_even(const struct servet_profile *profile, uint32_t ranks)
{
    const struct profile_class *of = &profile->classes[0];
    uint32_t *pus = calloc(ranks, sizeof *pus), least = UINT32_MAX, most = 0;
    FREED uint32_t *on = calloc(profile_class_span(of), sizeof *on);
    FREED_BY(map_devices_free) struct map_devices devices;
    struct servet_error error;
    const struct question question = {.ranks = ranks, .threads = 1, .gpus = ALL};
    ck_assert_int_eq(ask(&question, profile, false, pus, &devices, &error), 0);
    for (size_t d = 0; d < of->device_count; d++) {
        uint32_t held = 0;
        for (size_t i = 0; i < devices.count; i++) {
            held += devices.held[i].device == &of->devices[d];
        }
        if (of->devices[d].kind == PROFILE_GPU) {
            least = held < least ? held : least;
            most = held > most ? held : most;
        }
    }
    ck_assert_uint_ge(least, 1);
    ck_assert_uint_le(most, least + 1);
    for (uint32_t r = 0; r < ranks; r++) {
        ck_assert_uint_eq(on[pus[r]]++, 0);
        ck_assert_uint_ge(devices.first[r + 1], devices.first[r] + 1);
    }
    free(pus);
}

TEST(any_number_of_ranks_shares_the_gpus_evenly)
{
    static const char *const machines[] = {"lassen",     "tioga",       "pascal",  "corona",
                                           "g4dnmetal",  "tuolumne",    "aurora",  "dgx-h100",
                                           "one-socket", "workstation", "no-node", "grace-hopper"};
    for (size_t m = 0; m < sizeof machines / sizeof *machines; m++) {
        struct servet_profile *profile = machine(machines[m]);
        uint32_t pus = (uint32_t)profile->classes[0].pus.count;
        for (uint32_t ranks = 1; ranks <= 20 && ranks <= pus; ranks++) {
            check_even(profile, ranks);
        }
        check_even(profile, pus / 4);
        check_even(profile, pus);
    }
}

TEST(devices_that_are_not_there_are_refused_in_words)
{
    static const struct {
        struct question question;
        bool exclusive;
        const char *words;
    } refused[] = {
        {{"lassen", 5, 1, ALL, false, NULL, NULL},
         true,
         "--gpus=exclusive: expected at most 4 ranks, one for each GPU, got 5"},
        {{"lassen", 1, 1, 5, false, NULL, NULL},
         false,
         "--gpus: expected at most 4, the GPUs of a node, got 5"},
    };
    uint32_t pus[8];
    struct map_devices devices;
    struct servet_error error;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct servet_profile *profile = machine(refused[i].question.machine);
        ck_assert_int_eq(
            ask(&refused[i].question, profile, refused[i].exclusive, pus, &devices, &error),
            -EINVAL);
        ck_assert_str_eq(error.text, refused[i].words);
    }
    const struct question gpus = {NULL, 1, 1, ALL, false, NULL, NULL};
    const struct question nics = {NULL, 1, 1, 0, true, NULL, NULL};
    struct servet_profile *without = loaded(NEHALEM);
    ck_assert_int_eq(ask(&gpus, without, false, pus, &devices, &error), -EINVAL);
    ck_assert_str_eq(error.text, "--gpus: expected a machine with GPUs, none is known");
    ck_assert_int_eq(ask(&nics, without, false, pus, &devices, &error), -EINVAL);
    ck_assert_str_eq(error.text, "--nics: expected a machine with network cards, none is known");
}

/* Nodes that are alike are filled alike, in blocks of ranks. */
TEST(a_cluster_shares_ranks_out_over_the_gpus_of_all_nodes)
{
    struct servet_profile *profile = machine("lassen");
    struct profile_node_range *range = &profile->nodes[0];
    uint32_t pus[8], span = profile_class_span(&profile->classes[0]);
    FREED_BY(map_devices_free) struct map_devices devices;
    struct servet_error error;
    free(range->names);
    range->names = strdup("lassen[1-2]");
    range->count = 2;
    const struct question question = {NULL, 8, 1, ALL, false, NULL, NULL};
    ck_assert_int_eq(ask(&question, profile, true, pus, &devices, &error), 0);
    for (uint32_t r = 0; r < 4; r++) {
        ck_assert_uint_lt(pus[r], span);
        ck_assert_uint_eq(pus[r] + span, pus[r + 4]);
        ck_assert_ptr_eq(devices.held[r].device, devices.held[r + 4].device);
    }
}

TESTS(.seconds = 120)
