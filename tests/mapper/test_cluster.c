/* Is a job on a cluster mapped before it starts, on the nodes that it was given and no others? */
#include <stdlib.h>
#include <string.h>

#include "tests/base/command.h"
#include "tests/base/runner.h"
#include "tests/base/scratch.h"

#define CLUSTER " --cluster --profile " FIXTURES "/nehalem-2-nodes.json "

static void assert_prints(const char *nodes, const char *options, const char *expected)
{
    struct run run = run_command(SERVET_MAP CLUSTER "--nodes %s %s",
                                 scratch_file("nodes", "%s", nodes), options);
    ck_assert_msg(run.status == 0, "%s: status %d, %s", options, run.status, run.err);
    ck_assert_msg(strcmp(run.out, expected) == 0, "%s: expected\n%sgot\n%s", options, expected,
                  run.out);
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
    struct run run = run_command(SERVET_MAP CLUSTER "-n 2 --slurm");
    ck_assert_str_eq(run.out, "8,9\n");
    unsetenv("SLURM_JOB_NODELIST");
}

TEST(bad_input_is_one_line_and_status_2)
{
    static const char *const cases[][2] = {{"node1\nnode7\n", "'node7'"},
                                           {"# nothing\n", "at least one node"},
                                           {"node[3-1]\n", "node[3-1]"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_refused(cases[i][1], SERVET_MAP CLUSTER "-n 2 --nodes %s",
                       scratch_file("nodes", "%s", cases[i][0]));
    }
    expect_refused("SLURM_JOB_NODELIST", SERVET_MAP CLUSTER "-n 2 --slurm");
    expect_refused("/nonexistent/nodes", SERVET_MAP CLUSTER "-n 2 --nodes /nonexistent/nodes");
}
