/* Does what a node measures by itself come back as it was written, and trouble as a line that says
 * what it was? */
#include <sched.h>
#include <sys/stat.h>

#include "probes/network/network.h"
#include "tests/base/runner.h"

/* Answer of the node, with this command for servet-probe. */
static char *said(const char *command)
{
    FREED_BY(profile_set_free) struct profile_set pus;
    struct node_run run;
    cpu_set_t mask;
    uint32_t pu = 0;
    sched_getaffinity(0, sizeof mask, &mask);
    while (!CPU_ISSET(pu, &mask)) {
        pu++;
    }
    ck_assert_int_eq(profile_set_from_array(&pu, 1, &pus), 0);
    probe_node_run_start(&run, command, PROBE_CACHE, 7, &pus);
    while (probe_node_run_busy(&run)) {
        usleep(1000);
    }
    return kept(probe_node_run_text(&run));
}

/* The same with this text of the shell. */
static char *said_by_script(const char *text)
{
    const char *script = scratch_file("probe", "#!/bin/sh\n%s\n", text);
    ck_assert_int_eq(chmod(script, 0700), 0);
    return said(script);
}

static void expect(const char *text, const char *answer)
{
    ck_assert_str_eq(said_by_script(text), answer);
}

/* Ranks on every PU send the node's messages; its cache lines are its own to measure. */
TEST(a_node_measures_lines_wherever_messages_are_asked_for)
{
    struct cluster_options options = {.probes = PROBE_CACHE | PROBE_MESSAGE};
    ck_assert_uint_eq(probe_network_node_probes(&options, true), PROBE_CACHE | PROBE_MESSAGE);
    options.probes = PROBE_CACHE;
    ck_assert_uint_eq(probe_network_node_probes(&options, true), PROBE_CACHE);
    ck_assert_uint_eq(probe_network_node_probes(&options, false), PROBE_CACHE | PROBE_MESSAGE);
    options = (struct cluster_options){.per_node = true};
    ck_assert_uint_eq(probe_network_node_probes(&options, true), PROBE_MESSAGE);
}

TEST(what_is_written_is_the_answer)
{
    expect("printf '{\"a\": 1}'", "{\"a\": 1}");
    expect("echo \"$@\"", "--quiet --output - --no-mpi --probes cache --seed 7\n");
    expect("i=0; while [ $i -lt 20000 ]; do echo 0123456789; i=$((i + 1)); done | wc -c",
           "220000\n");
}

TEST(a_long_answer_is_whole)
{
    ck_assert_uint_eq(strlen(said_by_script("head -c 300000 /dev/zero | tr '\\0' x")), 300000);
}

TEST(trouble_is_one_line_that_says_what)
{
    expect("exit 3", "! servet-probe ended with status 3");
    expect("printf half; exit 1", "! servet-probe ended with status 1");
    expect("kill -9 $$", "! servet-probe was killed");
}

/* Freed memory may lie where the answer is. */
TEST(a_command_that_writes_nothing_is_told)
{
    for (size_t size = 1; size < 40000; size = size * 2 + 1) {
        char *used = malloc(size);
        memset(used, 'x', size);
        __asm__ volatile("" : : "r"(used) : "memory");
        free(used);
    }
    expect("exit 0", "! servet-probe wrote no profile");
}

TEST(a_command_that_is_not_there_is_named)
{
    ck_assert_str_eq(said("/nonexistent/servet-probe"),
                     "! /nonexistent/servet-probe: No such file or directory");
}
