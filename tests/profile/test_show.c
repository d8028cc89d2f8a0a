/* Does servet-show say what a profile holds, and exactly one line about one that is none? */
#include "tests/profile/fixture.h"

#include <unistd.h>

#include "tests/base/command.h"
#include "tests/base/runner.h"

static void be_in_an_empty_folder(void)
{
    ck_assert_int_eq(chdir(scratch_folder()), 0);
    unsetenv("SERVET_PROFILE");
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
}

/* A line for the shell. */
static struct run shell(const char *line)
{
    return run_program((const char *const[]){"sh", "-c", line, NULL}, NULL, NULL);
}

static void assert_says(const char *text, const char *expected)
{
    ck_assert_msg(strstr(text, expected) != NULL, "'%s' is not in:\n%s", expected, text);
}

TEST(everything_in_a_profile_is_shown)
{
    static const char *const expected[] = {
        "took 0.1 s",
        "conditions   z: 1",
        "PUs       0-3,9",
        "NUMA 2    none",
        "(efficiency 1)",
        ("L1     not settled (1 B to 2 B)  2 B       3 B   4     0-1 0+9 1+9  0-1,9  inferred 5 "
         "times, "
         "spread 25 %"),
        "note on level L1: n",
        "latency rises most from one size to the next at 13 B (1.25 times)\n",
        "L1, time of two PUs together to alone: sharing 1.50 to 3.25 (2) pairs, each",
        "the slower of two PUs: 6.25e-06 MB/s to 6.75e-06 MB/s (2 pairs, level 0); each in --json",
        "Memory access\n  m\n",
        "PUs  node  latency  one worker     quality",
        "0-3  2     150 ns   3.5e-06 MB/s   measured",
        "all workers together: 1: 7e-06 MB/s, 2: 8e-06 MB/s",
        "Messages inside a node (latency of 11 B, data unwritten, one way)",
        "size  layer 0\n  0 B   1 ns\n  8 B   2 s\n",
        "messages at a time: 1: 3 s",
        "core to core, one cache line: 25 ns (l, spread 12 %); 3 pairs, each in --json",
        "copy, non-temporal stores (of the levels)  7.5e-06 MB/s  2e-05 MB/s     67 % ",
        "STREAM's triad                             5.5e-06 MB/s  1.85e-05 MB/s  84 %",
        "Messages between nodes",
        "n[08-10]",
        "BSP parameters: T(h) = h g + l flops",
        "2  0  5     6          4        1  threads  measured"};
    struct run output = shell(SHOW " " EVERY_FIELD);
    ck_assert_int_eq(output.status, 0);
    ck_assert_str_eq(output.err, "");
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_says(output.out, expected[i]);
    }
}

/* Per cent without powers of ten, however far measurements lie apart. */
TEST(a_topology_in_xml_is_shown)
{
    struct run run = run_command(SHOW " " FIXTURES "/topologies/devices.xml");
    ck_assert_int_eq(run.status, 0);
    ck_assert_ptr_nonnull(strstr(run.out, "not measured: sizes and groups are declared"));
    ck_assert_ptr_nonnull(strstr(run.out, "rsmi2"));
    run = run_command(SHOW " %s", scratch_file("broken.xml", "<topology"));
    ck_assert_int_eq(run.status, 2);
    ck_assert_ptr_nonnull(strstr(run.err, "broken.xml: expected a topology in hwloc's XML"));
}

TEST(a_wide_spread_is_a_plain_number)
{
    static const char *const spreads[][2] = {{"1.974", "inferred 5 times, spread 197 %"},
                                             {"0.9951", "inferred 5 times, spread 100 %"},
                                             {"1600", "inferred 5 times, spread over 1000 %"}};
    for (size_t i = 0; i < sizeof spreads / sizeof *spreads; i++) {
        char command[512];
        snprintf(command, sizeof command,
                 "sed 's/\"spread\": [0-9.]*/\"spread\": %s/' " EVERY_FIELD " >wide; " SHOW " wide",
                 spreads[i][0]);
        struct run output = shell(command);
        ck_assert_int_eq(output.status, 0);
        assert_says(output.out, spreads[i][1]);
    }
}

TEST(a_size_that_is_settled_is_a_number)
{
    struct run output = shell("sed 's/\"spread\": 0.25/\"spread\": 0.2/' " EVERY_FIELD
                              " >settled; " SHOW " settled");
    assert_says(output.out, "L1     1 B (1 B to 2 B)  2 B ");
    output = shell("sed 's/\"repetitions\": 5/\"repetitions\": 1/' settled >once; " SHOW " once");
    assert_says(output.out, "L1     1 B, measured once (1 B to 2 B)  2 B ");
    assert_says(output.out, "inferred once, spread 20 %");
}

TEST(a_note_on_many_numa_nodes_is_told_once)
{
    struct run output =
        shell("sed '/\"numa_access\"/,/\\]/s/\"origin\"/\"note\": \"alike\", &/' " EVERY_FIELD
              " >alike; " SHOW " alike");
    ck_assert_int_eq(output.status, 0);
    assert_says(output.out, "  note on PUs 0-3, and 1 more: alike\n");
    ck_assert_ptr_null(strstr(strstr(output.out, ": alike") + 1, ": alike"));
}

TEST(copies_to_gpus_are_shown_by_node_and_else_not_measured)
{
    struct run output = shell("sed 's/\"nic\"/\"gpu\"/' " EVERY_FIELD " >gpus; " SHOW " gpus");
    assert_says(output.out, "\n  cuda1   2     26.5 GB/s     13.2 GB/s  7.5 us   measured 5 times, "
                            "spread 12 %\n  mlx5_0  -     not measured\n\n");
}

/* As on a machine of two PUs. */
TEST(one_pair_is_no_pairs)
{
    struct run output =
        shell("sed 's/\"pair_rates\": .*/\"pair_rates\": [[0, 1, 6.25]],/' " EVERY_FIELD
              " >one; " SHOW " one");
    assert_says(output.out, "the slower of two PUs: 6.25e-06 MB/s (1 pair, level 0); each");
}

/* Bisseling's table of the parameters of Cartesius, line by line */
TEST(bsp_parameters_are_printed_in_the_form_of_the_slides)
{
    struct run output = shell(SHOW " --bsp " FIXTURES "/cartesius-bsp.json");
    ck_assert_int_eq(output.status, 0);
    static const char *const expected[] = {
        "\n   p    g        l     T(0) ", "\n   1  197        -      294 ",
        "\n   2  199   18 408    6 759 ", "\n   3  215   24 438    8 932 ",
        "\n   4  225   38 275   14 291 ", "\n   5  247   30 783   17 970 ",
        "\n   6  262   38 670   20 322 ", "\n   7  242   56 010   24 781 ",
        "\n   8  274   49 655   27 609 ", "\n  12  300   82 374   40 879 ",
        "\n  16  330   93 365   52 653 ", "\n  20  403  103 090   70 562 ",
        "\n  24  409  107 769   88 262 ", "\n  28  451  124 240  106 754 ",
        "\n  32  455  132 618  111 267 ",
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_says(output.out, expected[i]);
    }
}

TEST(without_a_profile_it_says_not_measured)
{
    if (access("/etc/servet", F_OK) == 0) {
        return; /* this system has a profile of its own */
    }
    struct run output = shell(SHOW);
    ck_assert_int_eq(output.status, 0);
    assert_says(output.out, "measured     not measured:");
    assert_says(output.out, "none found");
    ck_assert_ptr_null(strstr(output.out, "GB/s"));
}

TEST(json_output_is_a_profile)
{
    struct run output = shell(SHOW " --json " NEHALEM);
    ck_assert_str_eq(in_json(parsed(output.out)), in_json(loaded(NEHALEM)));
}

TEST(a_profile_of_another_machine_is_shown_with_a_warning)
{
    struct run output = shell("SERVET_PROFILE=" NEHALEM " " SHOW);
    ck_assert_int_eq(output.status, 0);
    assert_says(output.err, "the profile is of node[1-2], not of this host");
    assert_says(output.out, "nehalem");
}

static const struct {
    const char *command;
    int status;
    const char *says;
} wrong[] = {
    {SHOW " /nonexistent.json", 2, "servet-show: /nonexistent.json: No such file or directory"},
    {SHOW " /dev/null", 2, "/dev/null: not a regular file"},
    {SHOW " /", 2, "/: Is a directory"},
    {SHOW " ''", 2, "servet-show: expected the name of a file, got ''"},
    {"SERVET_PROFILE=/nonexistent.json " SHOW, 2, "/nonexistent.json: No such file"},
    {"head -c 900 " NEHALEM " >cut; " SHOW " cut", 2, "cut:"},
    {"sed 's/\"size_bytes\": 262144/\"size_bytes\": 0/' " NEHALEM " >bad; " SHOW " --json bad", 2,
     "servet-show: bad: $.node_classes[0].caches[1].size_bytes: found 0, expected an integer from "
     "1"},
    {"sed 's/\"servet_profile\": 1/\"servet_profile\": 7/' " NEHALEM " >new; " SHOW " new", 2,
     "new: $.servet_profile: found 7, expected version 1"},
    {SHOW " --bsp --json " NEHALEM, 2, "expected one of them"},
    {SHOW " --bsp " NEHALEM, 1, "no BSP parameters in it"},
    {SHOW " a b", 2, "expected one profile, got 'a' and 'b'"},
    {SHOW " --jsn", 2, "unrecognized option '--jsn', did you mean '--json'?"},
    {SHOW " --unheard-of", 2, "unrecognized option '--unheard-of'"},
    {SERVET_MAP " -n 4 --cpusets=0", 2, "did you mean '--cpuset'?"},
    {"cp " NEHALEM " mine; " SHOW " --html mine", 2, "mine is a profile"},
    {"cp " NEHALEM " mine; " SHOW " --hwloc mine", 2, "such as report.xml; mine is a profile"},
    {SHOW " " NEHALEM " >/dev/full", 1, "cannot write to standard output: No space left"},
    {SHOW " --help >/dev/full", 1, "cannot write to standard output: No space left"},
    {SERVET_MAP " --version >/dev/full", 1, "cannot write to standard output: No space left"},
};

TEST(wrong_input_is_one_line_and_status_2, .loops = sizeof wrong / sizeof *wrong)
{
    struct run output = shell(wrong[_i].command);
    ck_assert_msg(output.status == wrong[_i].status, "status %d: %s", output.status, output.err);
    ck_assert_str_eq(output.out, "");
    assert_says(output.err, wrong[_i].says);
    ck_assert_uint_eq(count_lines(output.err), 1);
}

TEST(help_and_version_are_there)
{
    struct run output = shell(SHOW " --version");
    ck_assert_str_eq(output.out, "servet " SERVET_VERSION "\n");
    output = shell(SHOW " --help");
    ck_assert_int_eq(output.status, 0);
    assert_says(output.out, "--json");
    assert_says(output.out, "SERVET_PROFILE");
}

TESTS(.setup = be_in_an_empty_folder)
