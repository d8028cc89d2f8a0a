/* Is a job on a cluster mapped before it starts, on the nodes that it was given and no others? */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/base/command.h"
#include "tests/base/runner.h"

#define CLUSTER " --cluster --profile " FIXTURES "/nehalem-2-nodes.json "

static char nodes_file[] = "/tmp/servet-nodes.XXXXXX";

static void write_nodes(const char *text)
{
    FILE *file = fopen(nodes_file, "w");
    ck_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static struct run map_with(const char *options)
{
    char line[1024];
    snprintf(line, sizeof line, SERVET_MAP CLUSTER "%s", options);
    return run_command(line);
}

static void assert_prints(const char *nodes, const char *options, const char *expected)
{
    char line[512];
    write_nodes(nodes);
    snprintf(line, sizeof line, "--nodes %s %s", nodes_file, options);
    struct run run = map_with(line);
    ck_assert_msg(run.status == 0, "%s: status %d, %s", options, run.status, run.err);
    ck_assert_msg(strcmp(run.out, expected) == 0, "%s: expected\n%sgot\n%s", options, expected,
                  run.out);
    run_free(&run);
}

TEST(tables_1_and_2_hold_on_the_nodes_of_a_job)
{
    const char *both = "node1 slots=8\nnode2 slots=8 # the other\n\n";
    assert_prints(both, "-n 4 --mem-prior", "0,1,8,9\n");
    assert_prints(both, "-n 4 --comm-prior", "0,1,4,5\n");
}

TEST(nodes_of_other_jobs_are_left_alone)
{
    assert_prints("node2:8\n", "-n 4 --mem-prior", "8,9,12,13\n");
    assert_prints("node[2-2]\nnode2\n", "-n 4 --comm-prior", "8,9,12,13\n");
}

TEST(launchers_are_told_in_their_own_language)
{
    const char *both = "node1\nnode2\n";
    assert_prints(
        both, "-n 4 --format rankfile",
        "rank 0=node1 slot=0\nrank 1=node1 slot=1\nrank 2=node2 slot=0\nrank 3=node2 slot=1\n");
    assert_prints(both, "-n 4 --format hostfile", "node1\nnode1\nnode2\nnode2\n");
    assert_prints(both, "-n 4 --format hydra-hosts", "-hosts node1,node2 -ppn 2\n");
    assert_prints(both, "-n 3 --cpuset 0,8-9 --format hydra-hosts", "-hosts node1:1,node2:2\n");
    assert_prints(both, "-n 4 --format slurm-hosts",
                  "--distribution=arbitrary --ntasks=4 --nodelist=node1,node1,node2,node2\n");
}

TEST(slurm_says_which_nodes)
{
    setenv("SLURM_JOB_NODELIST", "node[2]", 1);
    struct run run = map_with("-n 2 --slurm");
    ck_assert_str_eq(run.out, "8,9\n");
    run_free(&run);
    unsetenv("SLURM_JOB_NODELIST");
}

TEST(bad_input_is_one_line_and_status_2)
{
    char where[256];
    const char *cases[][3] = {
        {"node1\nnode7\n", "--nodes", "'node7'"},
        {"# nothing\n", "--nodes", "at least one node"},
        {"node[3-1]\n", "--nodes", "node[3-1]"},
        {"node1\n", "--slurm", "SLURM_JOB_NODELIST"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_nodes(cases[i][0]);
        bool file = strcmp(cases[i][1], "--nodes") == 0;
        snprintf(where, sizeof where, "-n 2 %s %s", cases[i][1], file ? nodes_file : "");
        struct run run = map_with(where);
        ck_assert_msg(run.status == 2 && count_lines(run.err) == 1 && strstr(run.err, cases[i][2]),
                      "case %zu: %d, %s", i, run.status, run.err);
        run_free(&run);
    }
    struct run run = map_with("-n 2 --nodes /nonexistent/nodes");
    ck_assert_msg(run.status == 2 && strstr(run.err, "/nonexistent/nodes"), "%d, %s", run.status,
                  run.err);
    run_free(&run);
}

int main(void)
{
    int fd = mkstemp(nodes_file);
    if (fd < 0) {
        return 1;
    }
    close(fd);
    int failed = run_registered();
    unlink(nodes_file);
    return failed;
}
