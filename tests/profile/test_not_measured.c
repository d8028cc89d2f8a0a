/* Is the output of the commands right on a profile whose message probe did not run? Its layers
 * inside a node are declared and carry a rank where older profiles had seconds. */
#include "tests/base/command.h"
#include "tests/base/runner.h"
#include "tests/profile/fixture.h"

static struct run run_on(const char *command, const char *options)
{
    const char *older =
        scratch_file("older.json", "%s",
                     replaced(read_text(NEHALEM),
                              "\"seconds\": 1.2e-05, \"members\": {\"groups\": [\"0-7\"]}, "
                              "\"quality\": {\"origin\": \"quoted\"}",
                              "\"seconds\": 1, \"members\": {\"groups\": [\"0-7\"]}, "
                              "\"quality\": {\"origin\": \"declared\"}"));
    return run_command("%s %s %s", command, older, options);
}

static void says(struct run run, int status, const char *expected)
{
    ck_assert_msg(run.status == status, "status %d: %s", run.status, run.err);
    const char *text = status ? run.err : run.out;
    ck_assert_msg(strstr(text, expected) != NULL, "expected '%s' in\n%s", expected, text);
}

TEST(mappings_go_by_the_order_of_the_layers)
{
    says(run_on(SERVET_MAP " --profile", "-n 4 --mem-prior"), 0, "0,1,8,9\n");
    says(run_on(SERVET_MAP " --profile", "-n 4 --comm-prior"), 0, "0,1,4,5\n");
}

TEST(comparisons_count_layers_instead_of_seconds)
{
    struct run run = run_on(SERVET_MAP " --profile", "-n 4 --compare");
    ck_assert_msg(strstr(run.out, "latency between") == NULL, "%s", run.out);
    says(run, 0, "layers between neighbours, worst");
}

TEST(traffic_is_weighed_by_layers_and_says_so)
{
    char options[128];
    snprintf(options, sizeof options, "--comm-prior --explain --matrix %s",
             scratch_file("matrix", "0 9 1 0\n9 0 0 0\n1 0 0 9\n0 0 9 0\n"));
    /* All on one node, one layer away: (9 + 1 + 9) bytes, there and back. */
    says(run_on(SERVET_MAP " --profile", options), 0,
         "(layers x bytes, latencies were not measured): rank order 38");
}

TEST(differences_are_not_taken_of_ranks)
{
    says(run_on(SERVET_SHOW " --diff " NEHALEM, ""), 0, "not measured");
    struct run run = run_on(SERVET_SHOW, "");
    ck_assert_msg(strstr(run.out, " 1 s") == NULL, "%s", run.out);
    says(run, 0, "not measured");
}

TEST(plans_ask_for_what_was_not_measured)
{
    says(run_on(SERVET_SPMD " --profile", "--problem 64x64 --bytes 8 --comp 1e-6"), 2,
         "--comm: missing");
}
