/* Does servet-map print the papers' mappings and tables, every format, and one clear line for bad
 * input? */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/formats/formats.h"
#include "profile/base/mask.h"
#include "tests/base/command.h"
#include "tests/base/runner.h"
#include "tests/base/scratch.h"

#define NEHALEM " --profile " FIXTURES "/nehalem-2-nodes.json "

static struct run map_with(const char *options)
{
    return run_command(SERVET_MAP " %s", options);
}

static void assert_prints(const char *options, const char *expected)
{
    struct run run = map_with(options);
    ck_assert_msg(run.status == 0, "servet-map %s: status %d, %s", options, run.status, run.err);
    ck_assert_msg(strcmp(run.out, expected) == 0, "servet-map %s: expected\n%sgot\n%s", options,
                  expected, run.out);
}

TEST(list_is_one_line)
{
    assert_prints("-n 4" NEHALEM, "0,1,8,9\n");
    assert_prints("-n 4 --mem-prior" NEHALEM, "0,1,8,9\n");
    assert_prints("-n 4 --comm-prior" NEHALEM, "0,1,4,5\n");
    assert_prints("-n 3 --cpuset 2-4,9 --format list" NEHALEM, "2,3,9\n");
    assert_prints("-n 2 --topology 'package:2 core:2 pu:1'", "0,2\n");
    assert_prints("-n 3 --paper" NEHALEM, "0,1,8\n");
}

TEST(a_known_number_of_workers_is_numbered_by_the_tree)
{
    assert_prints("-n 8 --profile " FIXTURES "/finis-terrae-2-nodes.json",
                  "0,4,8,12,16,20,24,28\n");
    assert_prints("-n 8 --one-by-one --profile " FIXTURES "/finis-terrae-2-nodes.json",
                  "0,8,16,24,4,12,20,28\n"); /* the order of choice */
    assert_prints("-n 4 --no-smt --topology 'package:2 core:2 pu:2'", "0,2,4,6\n");
    assert_prints("-n 8 --topology 'package:2 core:2 pu:2'", "0,1,2,3,4,5,6,7\n");
    assert_prints("-n 8 --comm-prior --cpuset 6-15 --topology 'package:2 core:8 pu:1'",
                  "8,9,10,11,12,13,14,15\n"); /* the smallest group that holds all */
}

/* PUs that taskset, a cpuset or a batch job leaves, as under the shim; not where hwloc reads
 * another machine. */
TEST(this_machine_is_the_pus_that_may_be_used)
{
    static const char here[] = "env XDG_CONFIG_HOME=/nonexistent SERVET_PROFILE=";
    struct profile_mask mask;
    char expected[32];
    ck_assert_int_eq(profile_mask_get(0, &mask), 0);
    for (uint32_t pu = profile_mask_next(&mask, 0), seen = 0; pu < PROFILE_MASK_PUS && seen < 3;
         pu = profile_mask_next(&mask, pu + 1), seen++) {
        struct run run = run_command("%s taskset -c %u " SERVET_MAP " -n 2", here, pu);
        snprintf(expected, sizeof expected, "%u,%u\n", pu, pu);
        ck_assert_str_eq(run.out, expected);
        run = run_command("%s taskset -c %u " SERVET_MAP " -n 1 --cpuset %u", here,
                          profile_mask_next(&mask, 0), pu);
        snprintf(expected, sizeof expected, "%u\n", pu);
        ck_assert_str_eq(run.out, expected);
        run = run_command("%s 'HWLOC_SYNTHETIC=core:3 pu:1' taskset -c %u " SERVET_MAP " -n 3",
                          here, pu);
        ck_assert_str_eq(run.out, "0,1,2\n");
    }
}

#define TIOGA " --profile " FIXTURES "/devices/tioga.json "

TEST(devices_are_printed_with_the_ranks_that_have_them)
{
    assert_prints("-r 2 -t 2 --gpus --nics --profile " FIXTURES "/devices/pascal.json",
                  "rank\tnode\tPUs\tGPUs\tcards\tNICs\tdistance\n"
                  "0\tpascal\t0,1\tcuda0\t0\tmlx5_0\tnear\n"
                  "1\tpascal\t9,10\tcuda1\t1\tmlx5_0\tnear\n");
    assert_prints("-n 2 --gpus=2 --format list" TIOGA, "0,32\n");
    assert_prints("-r 4 -t 1 --gpus --format slurm-mask" TIOGA,
                  "--cpu-bind=mask_cpu:0x1,0x10000,0x100000000,0x1000000000000 "
                  "--gpu-bind=mask_gpu:0x30,0xc,0xc0,0x3\n");
    assert_prints("-r 4 -t 2 --gpus --format flux" TIOGA,
                  "-o cpu-affinity=map:0,8;16,24;32,40;48,56 "
                  "-o gpu-affinity=map:4,5;2,3;6,7;0,1\n"); /* flux-shell(1) */
    struct run run = map_with("-n 8 --gpus --nics --json" TIOGA);
    json_t *root = json_loads(run.out, 0, NULL);
    json_t *rank = json_array_get(json_object_get(root, "workers"), 1);
    json_t *gpu = json_array_get(json_object_get(rank, "gpus"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(gpu, "name")), "rsmi5");
    ck_assert_int_eq(json_integer_value(json_object_get(gpu, "card")), 2);
    ck_assert(json_is_true(json_object_get(gpu, "near")));
    ck_assert_uint_eq(json_array_size(json_object_get(rank, "gpus")), 1);
    ck_assert_uint_eq(json_array_size(json_object_get(rank, "nics")), 1);
    json_decref(root);
    run = map_with("-r 5 -t 4 --gpus --explain --profile " FIXTURES "/devices/one-socket.json");
    ck_assert_ptr_nonnull(strstr(run.out, "GPUs                              5 given to 5 ranks, 1 "
                                          "of them to ranks elsewhere\n"));
}

TEST(a_gpu_that_is_far_is_said_to_be)
{
    assert_prints("-n 3 --gpus --cpuset 8-87 --profile " FIXTURES "/devices/lassen.json",
                  "rank\tnode\tPUs\tGPUs\tcards\tNICs\tdistance\n"
                  "0\tlassen\t8\tcuda0\t0\t-\tnear\n"
                  "1\tlassen\t16\tcuda1\t1\t-\tnear\n"
                  "2\tlassen\t24\tcuda2*\t2\t-\tfar\n");
}

TEST(devices_of_a_described_machine_are_used)
{
    assert_prints("-n 2 --gpus=2 --nics --topology " FIXTURES "/topologies/devices.xml",
                  "rank\tnode\tPUs\tGPUs\tcards\tNICs\tdistance\n"
                  "0\tlocalhost\t0\tcuda0\t0\tmlx5_0\tnear\n"
                  "1\tlocalhost\t4\trsmi0\t1\thsi0\tnear\n");
}

/* 32 clusters of four cores: no two share one while another is empty. */
TEST(workers_spread_over_clusters_of_cores)
{
    assert_prints("-n 16 --topology 'package:2 group:16 core:4 pu:1'",
                  "0,4,8,12,16,20,24,28,64,68,72,76,80,84,88,92\n");
    assert_prints("-n 8 --comm-prior --topology 'package:2 group:16 core:4 pu:1'",
                  "0,1,2,3,4,5,6,7\n");
    assert_prints("-r 2 -t 4 --topology 'package:1 die:4 core:4 pu:1'", "0,1,4,5\n8,9,12,13\n");
}

/* Blanks squeezed, so that the test says what the paper says and not how wide a column is. */
static char *squeezed(const char *text)
{
    char *out = kept(calloc(strlen(text) + 1, 1)), *at = out;
    for (const char *from = text; *from; from++) {
        if (*from == ' ' && (at == out || at[-1] == ' ' || at[-1] == '\n')) {
            continue;
        }
        if (*from == '\n' && at > out && at[-1] == ' ') {
            at--;
        }
        *at++ = *from;
    }
    return out;
}

static void assert_explains(const char *options, const char *expected)
{
    struct run run = map_with(options);
    ck_assert_int_eq(run.status, 0);
    ck_assert_str_eq(squeezed(run.out), expected);
}

TEST(explain_prints_table_1_of_the_paper)
{
    assert_explains("-n 4 --mem-prior --explain" NEHALEM,
                    "Iter. Core 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n"
                    "1 Total 0* 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
                    "2 Rule 1 - 0 10 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
                    "Rule 2 - 0 10 0 10 0 10 0 0 0 0 0 0 0 0 0\n"
                    "Rule 3 - -1 -1 -1 -1 -1 -1 -1 0 0 0 0 0 0 0 0\n"
                    "Total - -1* 19 -1 9 -1 9 -1 0 0 0 0 0 0 0 0\n"
                    "3 Rule 1 - - 0 10 0 0 0 0 0 0 0 0 0 0 0 0\n"
                    "Rule 2 - - 0 10 0 10 0 10 0 0 0 0 0 0 0 0\n"
                    "Rule 3 - - -1 -1 -1 -1 -1 -1 0 0 0 0 0 0 0 0\n"
                    "Total - - 18 18 8 8 8 8 0* 0 0 0 0 0 0 0\n"
                    "4 Rule 1 - - 0 0 0 0 0 0 - 0 10 0 0 0 0 0\n"
                    "Rule 2 - - 0 0 0 0 0 0 - 0 10 0 10 0 10 0\n"
                    "Rule 3 - - 0 0 0 0 0 0 - -1 -1 -1 -1 -1 -1 -1\n"
                    "Total - - 18 18 8 8 8 8 - -1* 19 -1 9 -1 9 -1\n"
                    "0,1,8,9\n");
}

TEST(explain_prints_table_2_of_the_paper)
{
    assert_explains("-n 4 --comm-prior --explain" NEHALEM,
                    "Iter. Core 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n"
                    "1 Total 0* 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
                    "2 Rule 1 - 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
                    "Rule 2 - 0 1 0 1 0 1 0 0 0 0 0 0 0 0 0\n"
                    "Rule 3 - -10 -10 -10 -10 -10 -10 -10 0 0 0 0 0 0 0 0\n"
                    "Total - -10* -8 -10 -9 -10 -9 -10 0 0 0 0 0 0 0 0\n"
                    "3 Rule 1 - - 0 1 0 0 0 0 0 0 0 0 0 0 0 0\n"
                    "Rule 2 - - 0 1 0 1 0 1 0 0 0 0 0 0 0 0\n"
                    "Rule 3 - - -10 -10 -10 -10 -10 -10 0 0 0 0 0 0 0 0\n"
                    "Total - - -18 -18 -19* -19 -19 -19 0 0 0 0 0 0 0 0\n"
                    "4 Rule 1 - - 0 0 - 0 1 0 0 0 0 0 0 0 0 0\n"
                    "Rule 2 - - 1 0 - 0 1 0 0 0 0 0 0 0 0 0\n"
                    "Rule 3 - - -10 -10 - -10 -10 -10 0 0 0 0 0 0 0 0\n"
                    "Total - - -27 -28 - -29* -27 -29 0 0 0 0 0 0 0 0\n"
                    "0,1,4,5\n");
}

TEST(formats_speak_their_launcher)
{
    const char *cases[][2] = {
        {"-n 2 --format omp-places", "OMP_PLACES={0},{1} OMP_PROC_BIND=true OMP_NUM_THREADS=2\n"},
        {"-n 2 --format gomp", "GOMP_CPU_AFFINITY=0,1 OMP_NUM_THREADS=2\n"},
        {"-n 2 --format kmp",
         "KMP_AFFINITY=granularity=fine,explicit,proclist=[0,1] OMP_NUM_THREADS=2\n"},
        {"-n 2 --format taskset", "taskset -c 0,1\n"},
        {"-n 2 --format numactl", "numactl -C 0,1\n"},
        {"-n 2 --format hwloc-bind", "hwloc-bind --physical pu:0 pu:1 --\n"},
        {"-n 2 --format likwid-pin", "likwid-pin -c 0,1\n"},
        {"-n 4 --format rankfile",
         "rank 0=node1 slot=0\nrank 1=node1 slot=1\nrank 2=node2 slot=0\nrank 3=node2 slot=1\n"},
        {"-n 4 --format host", "--map-by seq -host node1,node1,node2,node2\n"},
        {"-n 4 --format hostfile", "node1\nnode1\nnode2\nnode2\n"},
        {"-n 4 --format hydra", "-bind-to user:0,1\n"},
        {"-n 4 --format slurm-map", "--cpu-bind=map_cpu:0,1\n"},
        {"-n 2 --cpuset 0,1,4,5 --format pals", "--cpu-bind list:0:1\n"},
        {"-n 2 --cpuset 1,4 --format flux", "-o cpu-affinity=map:1;4\n"},
        {"-n 2 --cpuset 1,4 --format pe-list",
         "--bind-to hwthread --map-by pe-list=4,2:ordered:hwtcpus\n"},
        {"-r 4 -t 2 --format list", "0,4\n1,5\n8,12\n9,13\n"},
        {"-r 4 -t 2 --format omp-places",
         "OMP_PLACES={0},{4} OMP_PROC_BIND=true OMP_NUM_THREADS=2\n"
         "OMP_PLACES={1},{5} OMP_PROC_BIND=true OMP_NUM_THREADS=2\n"
         "OMP_PLACES={0},{4} OMP_PROC_BIND=true OMP_NUM_THREADS=2\n"
         "OMP_PLACES={1},{5} OMP_PROC_BIND=true OMP_NUM_THREADS=2\n"},
        {"-r 4 -t 2 --format rankfile", "rank 0=node1 slot=0,4\nrank 1=node1 slot=1,5\nrank "
                                        "2=node2 slot=0,4\nrank 3=node2 slot=1,5\n"},
        {"-r 4 -t 2 --format hydra", "-bind-to user:0+4,1+5\n"},
        {"-r 4 -t 2 --format slurm-mask", "--cpu-bind=mask_cpu:0x11,0x22\n"},
        {"-r 2 -t 8 --format impi-domain", "I_MPI_PIN=1 I_MPI_PIN_DOMAIN=[ff]\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char options[512];
        snprintf(options, sizeof options, "%s" NEHALEM, cases[i][0]);
        assert_prints(options, cases[i][1]);
    }
}

TEST(json_says_who_is_where)
{
    struct run run = map_with("-n 3 --format json" NEHALEM);
    ck_assert_int_eq(run.status, 0);
    char *text = squeezed(run.out);
    ck_assert_msg(
        strstr(text, "\"worker\": 2,\n\"node\": \"node2\",\n\"pu\": 8,\n\"os_index\": 0\n"), "%s",
        text);
    ck_assert_msg(strstr(text, "\"priority\": \"memory\""), "%s", text);
}

static void assert_says(const char *options, const char *line)
{
    struct run run = map_with(options);
    ck_assert_msg(run.status == 0, "servet-map %s: status %d, %s", options, run.status, run.err);
    char *text = squeezed(run.out);
    ck_assert_msg(strstr(text, line) != NULL, "servet-map %s: '%s' is not in\n%s", options, line,
                  text);
}

TEST(compare_predicts_from_the_profile)
{
    /* Finis Terrae: 8 workers, one per bus and two per cell: 1700 MB/s each; compact has all on one
     * cell. */
    const char *ft = "-n 8 --compare --profile " FIXTURES "/finis-terrae-2-nodes.json";
    assert_says(ft, "memory bandwidth of the worst worker, GB/s 1.70 0.42 1.70\n");
    assert_says(ft, "most workers in a group of overhead level 0 1 4 1\n");
    assert_says("-n 12 --compare --profile " FIXTURES "/dunnington.json",
                "least L2 cache of a worker, KiB 3072 1536 3072\n");
    assert_says("-n 2 --compare --comm-prior --profile " FIXTURES "/dunnington.json",
                "latency between neighbours, mean, us 9.000 9.000 24.000\n");
    assert_says("-n 4 --compare --topology 'package:2 l3:2 core:2 pu:2'",
                "predicted, nothing was measured");
}

TEST(explain_sums_up_large_machines)
{
    const char *superdome = "-n 40 --explain --profile " FIXTURES "/superdome.json";
    assert_says(superdome, "memory domains, level 2 16: 8 with 3, 8 with 2\n");
    assert_says(superdome, "memory domains, level 1 32: 8 with 2, 24 with 1\n");
    assert_says("-r 4 -t 2 --explain" NEHALEM, "L3 caches 8: 8 with 1\n");
}

/* The fixture with one change, by sed. */
static const char *nehalem_with(const char *change)
{
    return scratch_file("p.json", "%s",
                        run_command("sed '%s' " FIXTURES "/nehalem-2-nodes.json", change).out);
}

/* As a noisy measurement leaves them: neither inside the other nor apart. */
TEST(groups_that_cross_are_mapped_rule_by_rule)
{
    struct run run = run_command(SERVET_MAP " -n 3 --cluster --profile %s",
                                 nehalem_with("s/\\[\"0,2\", \"1,3\"/[\"0-1\", \"2-3\"/"));
    ck_assert_int_eq(run.status, 0);
    ck_assert_str_eq(run.out, "0,3,8\n"); /* 1 shares the L3 with 0 now, 2 its memory */
}

TEST(limits_are_obeyed)
{
    assert_prints("-n 2 --kind p --topology " FIXTURES
                  "/topologies/Intel-ArrowLake-CoreUltra5-225U.xml",
                  "0,2\n");
}

/* hwloc would take minutes and gigabytes for it: it is not asked. */
TEST(a_file_of_too_many_pus_is_refused)
{
    const char *path = scratch_path("many.xml");
    FILE *file = fopen(path, "w");
    fputs("<topology version=\"2.0\">\n<object type=\"Machine\" os_index=\"0\">\n", file);
    for (int pu = 0; pu <= 16384; pu++) {
        fprintf(file, "<object type=\"PU\" os_index=\"%d\"/>", pu);
    }
    fputs("</object>\n</topology>\n", file);
    fclose(file);
    expect_refused("expected at most 16384 PUs", SERVET_MAP " -n 4 --topology %s", path);
}

/* Seen red: nothing was said. */
TEST(a_profile_of_a_cluster_without_cluster_says_where_workers_go)
{
    struct run run = map_with("-n 4" NEHALEM);
    ck_assert_msg(strstr(run.err, "the profile is of 2 nodes, and workers are placed on all of "
                                  "them; expected --cluster, or --cpuset 0-7 for"),
                  "%s", run.err);
    ck_assert_uint_eq(count_lines(run.err), 1);
    ck_assert_str_eq(map_with("-n 4 --cluster" NEHALEM).err, "");
    ck_assert_str_eq(map_with("-n 4 --cpuset 0-7" NEHALEM).err, "");
}

TEST(format_help_lists_the_whole_table)
{
    struct run run = map_with("--format help");
    ck_assert_int_eq(run.status, 0);
    size_t formats = 0;
    for (const struct map_format *format = map_formats; format->name; format++, formats++) {
        ck_assert_msg(strstr(run.out, format->name) != NULL, "%s is not listed", format->name);
    }
    ck_assert_uint_eq(count_lines(run.out), formats);
}

TEST(unmeasured_machines_are_named_as_such)
{
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    unsetenv("SERVET_PROFILE");
    struct run run = map_with("-n 1");
    ck_assert_int_eq(run.status, 0);
    ck_assert_uint_eq(count_lines(run.out), 1);
    ck_assert_msg(strstr(run.err, "nothing was measured"), "%s", run.err);
}

TEST(more_workers_than_pus_is_said_and_done)
{
    struct run run = map_with("-n 17 --cpuset 0-3" NEHALEM);
    ck_assert_int_eq(run.status, 0);
    ck_assert_msg(strstr(run.err, "17 workers on 4 PUs"), "%s", run.err);
    ck_assert_str_eq(run.out, "0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3,0\n");
}

/* The names of nodes go into command lines: what a shell would interpret must not. */
TEST(node_names_that_a_shell_interprets_are_refused)
{
    static const char *const formats[] = {"rankfile", "host", "hostfile", "hydra-hosts",
                                          "slurm-hosts"};
    const char *path = nehalem_with("s/node\\[1-2\\]/a;id[1-2]/");
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        expect_refused("node name of rank 0", SERVET_MAP " -n 4 --profile %s --format %s", path,
                       formats[i]);
    }
    ck_assert_str_eq(run_command(SERVET_MAP " -n 4 --profile %s", path).out, "0,1,8,9\n");
}

TEST(memory_is_bound_where_only_some_nodes_are_used)
{
    const char *four = " --topology 'numa:4(memory=1GB) core:4 pu:1'";
    const char *cases[][2] = {
        {"-n 3 --format numactl", "numactl -C 0,4,8 -m 0,1,2\n"},
        {"-n 4 --format numactl", "numactl -C 0,4,8,12\n"},
        {"-n 2 --format hwloc-bind",
         "hwloc-bind --physical pu:0 pu:4 --membind node:0 node:1 --\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char options[256];
        snprintf(options, sizeof options, "%s%s", cases[i][0], four);
        assert_prints(options, cases[i][1]);
    }
}

/* lstopo --of xml | servet-map --topology /dev/stdin: what a pipe holds can be read only once. */
TEST(xml_may_come_through_a_pipe)
{
    struct run run = run_command("sh -c 'cat " FIXTURES
                                 "/topologies/Intel-ArrowLake-CoreUltra5-225U.xml | " SERVET_MAP
                                 " -n 2 --topology /dev/stdin'");
    ck_assert_msg(run.status == 0, "%s", run.err);
    ck_assert_uint_eq(count_lines(run.out), 1);
}

TEST(xml_of_a_newer_hwloc_says_how_to_get_the_older)
{
    expect_refused(
        "expected version 2: export it with", SERVET_MAP " -n 4 --topology %s",
        scratch_file("newer.xml",
                     "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
                     "<topology version=\"3.0\">\n</topology>\n"));
}

static void assert_suggests(const char *options, const char *expected)
{
    struct run run = map_with(options);
    ck_assert_msg(run.status == 0, "servet-map %s: status %d, %s", options, run.status, run.err);
    ck_assert_msg(strstr(squeezed(run.out), expected), "servet-map %s: expected\n%s\ngot\n%s",
                  options, expected, run.out);
}

/* A node is divided along its memory domains and no more threads than they feed, or along its last
 * caches; and the line that starts it has these numbers. */
TEST(ranks_and_threads_follow_what_is_shared)
{
    assert_suggests("--suggest" NEHALEM, "\n* 2 x 2 24.00 8.00 for programs that memory limits");
    assert_suggests("--suggest" NEHALEM, "\n2 x 4 24.00 4.00 a rank for each package, NUMA node\n");
    assert_suggests("--suggest" NEHALEM, "\nmpirun -n 4 --map-by ppr:2:node env OMP_NUM_THREADS=2 "
                                         "servet-pin --mem-prior -- ./app\n");
    assert_suggests("--suggest -N 8 --comm-prior" NEHALEM,
                    "\n* 4 x 2 24.00 4.00 a rank for each L3");
    assert_suggests("--suggest -N 8 --comm-prior" NEHALEM, "\nmpirun -n 32 --map-by ppr:4:node env "
                                                           "OMP_NUM_THREADS=2 servet-pin --comm");
    /* 30 of 128 processors fill the memory: one of each domain of four. */
    assert_suggests("--suggest --profile " FIXTURES "/superdome.json", "\n* 32 x 1 54.40 ");
    assert_suggests("--suggest --cpuset 0-3" NEHALEM, "of 4 cores, memory priority");
}

/* Without bandwidth all cores are used, one PU of each; of two kinds only the more capable. */
TEST(suggestions_need_no_measurement)
{
    assert_suggests("--suggest --topology 'package:2 core:4 pu:2'",
                    "\n* 2 x 4 - - a rank for each package, memory domain\n");
    assert_suggests("--suggest --topology 'core:6 pu:1'", "\n* 1 x 6 - - one rank, no messages");
    assert_suggests("--suggest --topology " FIXTURES
                    "/topologies/Intel-ArrowLake-CoreUltra5-225U.xml",
                    "\n1 x 2 - 6.00 the most capable kind of core alone");
    struct run run = map_with("--suggest --json --topology 'package:2 core:4 pu:2'");
    ck_assert_int_eq(run.status, 0);
    json_t *found = json_loads(run.out, 0, NULL);
    const json_t *first = json_array_get(json_object_get(found, "suggestions"), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(found, "cores")), 8);
    ck_assert_int_eq(json_integer_value(json_object_get(first, "threads")), 8);
    ck_assert(json_is_null(json_object_get(first, "bytes_per_s")));
    json_decref(found);
}

TEST(json_is_said_of_mappings_and_of_worth)
{
    ck_assert_str_eq(map_with("-n 2 --json" NEHALEM).out,
                     map_with("-n 2 --format json" NEHALEM).out);
    json_t *found = json_loads(map_with("--worth --json" NEHALEM).out, 0, NULL);
    const json_t *node = json_array_get(json_object_get(found, "workers"), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(node, "worth")), 4);
    ck_assert_str_eq(json_string_value(json_object_get(node, "places")), "0-1,4-5");
    json_decref(found);
}

/* A layer of which no queue was seen has no number of messages, but at least the measured ones. */
TEST(worth_says_or_more_where_nothing_queued)
{
    struct run run =
        run_command("sed -E 's/(\"messages\": [0-9]+, \"seconds\": )[0-9.e-]+/\\11e-5/g' " FIXTURES
                    "/two-packages-256.json");
    run = run_command(SERVET_MAP " --worth --profile %s", scratch_file("flat.json", "%s", run.out));
    ck_assert_msg(strstr(run.out, " 128 or more"), "%s%s", run.out, run.err);
}

TEST(worth_is_a_table_or_a_mapping)
{
    struct run run = map_with("--worth --profile " FIXTURES "/finis-terrae-2-nodes.json");
    ck_assert_int_eq(run.status, 0);
    /* 1.7 GB/s each for one worker a bus, nothing more for the second. */
    ck_assert_ptr_nonnull(strstr(run.out, "\nnode  "));
    ck_assert_ptr_nonnull(strstr(run.out, " 16      4      6.80      6.80         2  0,4,8,12\n"));
    ck_assert_ptr_nonnull(strstr(run.out, "\noverhead level 0, 4 of them "));
    run = map_with("--worth --profile " FIXTURES "/two-packages-256.json");
    ck_assert_ptr_nonnull(
        strstr(run.out, "\nnode                                     105       128\n"));
    assert_prints("--worth --format list --profile " FIXTURES "/finis-terrae-2-nodes.json",
                  "0,4,8,12,16,20,24,28\n");
    assert_prints("--worth --format list --cpuset 0-7,20 --profile " FIXTURES
                  "/finis-terrae-2-nodes.json",
                  "0,4,20\n");
}

TEST(bad_input_is_one_line_and_status_2)
{
    /* options, and what the line must name */
    const char *cases[][2] = {
        {"-n 5 --gpus=exclusive --profile " FIXTURES "/devices/lassen.json",
         "--gpus=exclusive: expected at most 4 ranks, one for each GPU, got 5"},
        {"-n 5 --gpus=5 --profile " FIXTURES "/devices/lassen.json",
         "--gpus: expected at most 4, the GPUs of a node, got 5"},
        {"-n 5 --gpus" NEHALEM, "--gpus: expected a machine with GPUs, none is known"},
        {"-n 5 --nics" NEHALEM, "--nics: expected a machine with network cards, none is known"},
        {"--worth --gpus" NEHALEM, "--gpus, --nics: expected none of --matrix"},
        {"-n 5 --gpus=0" NEHALEM, "--gpus"},
        {"", "-n WORKERS"},
        {"-n 0" NEHALEM, "-n: expected an integer from 1"},
        {"-n 4 --format rankfil" NEHALEM, "got 'rankfil', did you mean 'rankfile'?"},
        {"-n -3" NEHALEM, "'-3'"},
        {"-n 4x" NEHALEM, "'4x'"},
        {"-n ''" NEHALEM, "-n"},
        {"-n 99999999999999999999" NEHALEM, "-n: expected an integer"},
        {"-n", "requires an argument"},
        {"-n 4 --format postscript" NEHALEM, "expected one of list, json"},
        {"-n 4 --mem-prior --comm-prior" NEHALEM, "--mem-prior, --comm-prior"},
        {"-n 4 --topology pu:4" NEHALEM, "--profile, --topology"},
        {"-n 4 --profile /nonexistent/p.json", "/nonexistent/p.json"},
        {"-n 4 --profile " FIXTURES, FIXTURES},
        {"-n 4 --profile " SERVET_MAP, SERVET_MAP},
        {"-n 4 --topology /nonexistent/t.xml", "/nonexistent/t.xml"},
        {"-n 4 --topology " SERVET_MAP, SERVET_MAP},
        {"-n 4 --topology pu:0", "pu:0"},
        {"-n 4 --topology 'package:100 core:500 pu:2'", "expected at most 16384 PUs"},
        {"-n 4 --topology 'node:1000 core:128'", "expected at most 16384 PUs"},
        {"-n 4 --topology 20261123.xml", "expected a file"},
        {"-n 4 --topology 'package:100(memory=1GB) [numa] core:500 2'", "at most 16384 PUs"},
        {"-n 4 --cpuset 3-1" NEHALEM, "'3-1'"},
        {"-n 4 --cpuset 77" NEHALEM, "--cpuset: expected PUs of the profile (0 to 15), got 77"},
        {"-n 4 --cpuset 0-99" NEHALEM, "got 16"},
        {"-n 4 --format taskset" NEHALEM, "--format taskset"},
        {"-n 4 --format cpu-list" NEHALEM, "rankfile can say this mapping"},
        {"-r 2 -t 2 --format cpu-list --topology pu:4", "expected one PU per rank"},
        {"-r 2 -t 2 --format pe-list" NEHALEM, "expected one PU per rank"},
        {"-r 2 -t 2 --format slurm-map" NEHALEM, "slurm-mask can say it"},
        {"-r 2 -t 2 --format impi-list" NEHALEM, "impi-domain can say it"},
        {"-n 4 -r 2" NEHALEM, "-n"},
        {"-r 2 -t 0" NEHALEM, "-t"},
        {"-r 2 -t 1,2,3" NEHALEM, "-t: expected one number or 2"},
        {"-r 2 -t 3," NEHALEM, "-t"},
        {"-t 3" NEHALEM, "-r RANKS"},
        {"-n 2 --smt 0" NEHALEM, "--smt"},
        {"-n 2 --kind best" NEHALEM, "'best'"},
        {"-n 2 --kind 3" NEHALEM, "a number below 1, the kinds of cores here, got 3"},
        {"-n 4 --worth" NEHALEM, "--worth: expected it alone"},
        {"--worth --comm-prior" NEHALEM, "--comm-prior"},
        {"--suggest -n 4" NEHALEM, "--suggest: expected it alone"},
        {"--suggest --format list" NEHALEM, "--suggest: expected no --format"},
        {"-n 4 -N 2" NEHALEM, "-N: expected --suggest"},
        {"-n 4 --json --format list" NEHALEM, "--json, --format: expected one"},
        {"--worth --topology 'package:2 core:2 pu:1'", "memory bandwidth: expected to be measured"},
        {"-n 4 --nonsense" NEHALEM, "--nonsense"},
        {"-n 4 nonsense" NEHALEM, "nonsense"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_refused(cases[i][1], SERVET_MAP " %s", cases[i][0]);
    }
}
