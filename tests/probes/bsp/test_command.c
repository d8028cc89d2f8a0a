/* Does servet-probe --bsp measure real supersteps, add them to the profile that is there, and
 * refuse what makes no sense in one line without touching it? */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profile/model.h"
#include "tests/base/runner.h"

static char folder[] = "/tmp/servet-bsp-XXXXXX";
static char profile_path[PATH_MAX], error_path[PATH_MAX];

static int run(const char *options)
{
    char *command;
    ck_assert(asprintf(&command, "%s -q -o %s %s 2>%s", SERVET_PROBE, profile_path, options,
                       error_path) > 0);
    int status = system(command);
    free(command);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static char *slurp(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s", path);
    if (getdelim(&text, &size, '\0', file) < 0) {
        text[0] = '\0';
    }
    fclose(file);
    return text;
}

static struct servet_profile *load(void)
{
    struct servet_profile *profile;
    struct servet_error error;
    ck_assert_msg(profile_load(profile_path, &profile, &error) == 0, "%s", error.text);
    return profile;
}

static void assert_within(const char *what, uint32_t p, double found, double expected, double part)
{
    ck_assert_msg(found > (1 - part) * expected && found < (1 + part) * expected,
                  "%s of %u: %g, expected %g within %g %%", what, p, found, expected, 100 * part);
}

/* Every fourth h: beside much other work each visit waits until both processors run. */
#define FEW_H "--h 0-96:4 "
#define QUICK "--bsp " FEW_H "--backend threads "

TEST(threads_are_measured_and_stored_beside_what_is_there)
{
    unlink(profile_path);
    ck_assert_int_eq(run(QUICK "--p 1"), 0);
    struct servet_profile *first = load();
    ck_assert_uint_eq(first->bsp_count, 1);
    ck_assert(first->bsp[0].r_flop_per_s > 1e6 && first->bsp[0].g_flops > 0 &&
              first->bsp[0].t0_flops > 0);
    ck_assert(!first->measured); /* nothing else was */
    profile_free(first);
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
        return;
    }
    ck_assert_int_eq(run(QUICK "--p 2"), 0);
    struct servet_profile *second = load();
    if (second->bsp_count == 1) { /* beside much other work words may seem to cost nothing */
        char *said = slurp(error_path);
        ck_assert_msg(strstr(said, "2 processors (threads): g is negative"), "%s", said);
        free(said);
        profile_free(second);
        return;
    }
    ck_assert_uint_eq(second->bsp_count, 2);
    ck_assert_uint_eq(second->bsp[1].processors, 2);
    ck_assert_str_eq(second->bsp[1].backend, "threads");
    profile_free(second);
}

TEST(what_it_took_is_told)
{
    char *command, *line = NULL;
    size_t size = 0;
    double seconds = 0;
    unlink(profile_path);
    ck_assert(asprintf(&command, "%s -o %s " QUICK "--p 1 2>&1", SERVET_PROBE, profile_path) > 0);
    FILE *said = popen(command, "r");
    while (getline(&line, &size, said) > 0 &&
           sscanf(line, "servet-probe: measured %*u PUs in %lf s", &seconds) != 1) {
    }
    ck_assert_int_eq(pclose(said), 0);
    ck_assert_msg(seconds > 0, "%s", line);
    free(line);
    free(command);
}

TEST(ranks_are_measured)
{
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2 || !*SERVET_RANKS_PROGRAM) {
        return;
    }
    unlink(profile_path);
    ck_assert_int_eq(run("--bsp " FEW_H "--backend mpi --p 2"), 0);
    struct servet_profile *profile = load();
    ck_assert_uint_eq(profile->bsp_count, 1);
    ck_assert_str_eq(profile->bsp[0].backend, "mpi");
    ck_assert(profile->bsp[0].t0_flops > 0);
    profile_free(profile);
}

TEST(curves_are_written_for_plotting)
{
    char *command, *path;
    ck_assert(asprintf(&command, QUICK "--p 1 --plot %s", folder) > 0);
    unlink(profile_path);
    ck_assert_int_eq(run(command), 0);
    ck_assert(asprintf(&path, "%s/bsp-threads-p1.dat", folder) > 0);
    char *data = slurp(path);
    ck_assert_ptr_nonnull(strstr(data, "\n96 ")); /* the last h, one line each */
    ck_assert_ptr_nonnull(strstr(data, "(packets)"));
    free(data);
    free(path);
    ck_assert(asprintf(&path, "%s/bsp-threads.svg", folder) > 0);
    if (system("command -v gnuplot >/dev/null") == 0) {
        struct stat status;
        ck_assert_msg(stat(path, &status) == 0 && status.st_size > 0, "%s was not drawn", path);
    }
    free(path);
    free(command);
}

/* How far the published table is from any such machine: it scatters itself (l falls from p = 4
 * to 5, g from 6 to 7; T(0) of 3 is not half as much again as that of 2). The probe's own share
 * is below 2 %. */
static const double r_near = 0.05, g_near = 0.08, t0_near = 0.08, t0_of_3_near = 0.18,
                    l_near = 0.25;

/* What is described are links and costs; the slides' table is what has to come out. */
TEST(links_and_costs_of_cartesius_give_the_published_table)
{
    struct servet_profile *truth;
    struct servet_error error;
    size_t compared = 0;
    unlink(profile_path);
    ck_assert_int_eq(
        run("--bsp --machine simulated:" MACHINES "/cartesius.json --p 1-8,12,16,20,24,28,32"), 0);
    struct servet_profile *found = load();
    ck_assert_int_eq(profile_load(MACHINES "/../cartesius-bsp.json", &truth, &error), 0);
    ck_assert_uint_eq(found->bsp_count, truth->bsp_count);
    for (size_t i = 0; i < truth->bsp_count; i++) {
        const struct profile_bsp *is = &found->bsp[i], *was = &truth->bsp[i];
        const uint32_t p = is->processors;
        ck_assert_uint_eq(p, was->processors);
        assert_within("r", p, is->r_flop_per_s, was->r_flop_per_s, r_near);
        assert_within("g", p, is->g_flops, was->g_flops, g_near);
        assert_within("T(0)", p, is->t0_flops, was->t0_flops, p == 3 ? t0_of_3_near : t0_near);
        if (was->l_flops > 0) {
            assert_within("l", p, is->l_flops, was->l_flops, l_near);
            compared++;
        }
        ck_assert_uint_eq(is->bend_h, 0);
    }
    ck_assert_uint_eq(compared, 13);
    profile_free(truth);
    profile_free(found);
    /* The same machine again adds to it, another one does not. */
    ck_assert_int_eq(run("--bsp --machine simulated:" MACHINES "/cartesius.json --p 9"), 0);
    found = load();
    ck_assert_uint_eq(found->bsp_count, 15);
    profile_free(found);
    ck_assert_int_eq(run("--bsp --p 1 --h 0-96 --backend threads"), 2);
}

/* The slides' other machine: "p = 24 < pmax = 32. r = 2.3 Gflop/s, g = 309, and l = 46 224." Its
 * l comes of the costs of Cartesius alone. */
TEST(costs_of_cartesius_foretell_l_of_gemini)
{
    unlink(profile_path);
    ck_assert_int_eq(run("--bsp --machine simulated:" GEMINI " --p 24"), 0);
    struct servet_profile *found = load();
    ck_assert_uint_eq(found->bsp_count, 1);
    assert_within("r", 24, found->bsp[0].r_flop_per_s, 2.3e9, r_near);
    assert_within("g", 24, found->bsp[0].g_flops, 309, 0.05);
    assert_within("l", 24, found->bsp[0].l_flops, 46224, 0.10);
    profile_free(found);
}

TEST(a_step_of_one_measures_every_h)
{
    char *command, *path, *line = NULL;
    size_t size = 0, lines = 0;
    ck_assert(asprintf(&command,
                       "--bsp --machine simulated:%s/cartesius.json --p 2 --h 0-2048:1 --plot %s",
                       MACHINES, folder) > 0);
    unlink(profile_path);
    ck_assert_int_eq(run(command), 0);
    ck_assert(asprintf(&path, "%s/bsp-simulated-p2.dat", folder) > 0);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (getline(&line, &size, file) > 0) {
        lines += line[0] >= '0' && line[0] <= '9';
    }
    fclose(file);
    ck_assert_uint_eq(lines, 2 * 2049); /* single words, packets */
    free(line);
    free(path);
    free(command);
}

TEST(bad_input_is_one_line_and_touches_nothing)
{
    static const char *const cases[][2] = {
        {"--bsp --p 0", "--p: expected numbers from 1 to"},
        {"--bsp --p 1,100000", "got 100000"},
        {"--bsp --p 2-1", "--p: expected a list"},
        {"--bsp --h 5", "--h: expected LOW-HIGH"},
        {"--bsp --h 9-10", "--h: expected LOW-HIGH"},
        {"--bsp --h 0-99999999999", "--h: expected LOW-HIGH"},
        {"--bsp --runs 2", "--runs: expected an integer from 3"},
        {"--bsp --backend pvm", "--backend: expected names out of threads, mpi, got 'pvm'"},
        {"--bsp --plot /nonexistent", "--plot: expected a folder"},
        {"--bsp --plot /dev/null", "--plot: expected a folder"},
        {"--runs 3", "--runs: expected --bsp with it"},
        {"--bsp --h 0-96:0", "--h: expected a step from 1 to 48"},
        {"--bsp --h 0-96:49", "--h: expected a step from 1 to 48"},
        {"--bsp --h 0-96:", "--h: expected a step from 1 to 48"},
        {"--bsp --h 0-4194304:1", "--h: expected a step from 64 to"},
        {"--bsp --machine simulated:/nonexistent", "/nonexistent: No such file"},
        {"--bsp --machine simulated:" MACHINES "/dempsey.json -o none.json",
         "--bsp: expected a machine whose description has `bsp`, the one of dempsey has none"},
        {"--bsp --machine simulated:" MACHINES "/cartesius.json --backend threads -o none.json",
         "--backend: expected none with a simulated machine"},
        {"--bsp --machine simulated:" MACHINES "/cartesius.json --p 33 -o none.json",
         "--p: expected numbers from 1 to 32"},
        {"--bsp", "not a profile"},
    };
    /* Damaged, but a profile: what is none is refused before anything else. */
    static const char precious[] = "{\"servet_profile\": precious}";
    FILE *file = fopen(profile_path, "w");
    fputs(precious, file);
    fclose(file);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_msg(run(cases[i][0]) == 2, "%s: accepted", cases[i][0]);
        char *text = slurp(error_path), *kept = slurp(profile_path);
        bool json = strstr(cases[i][1], "not a profile") != NULL;
        ck_assert_msg(strstr(text, json ? "profile.json:" : cases[i][1]), "%s: %s", cases[i][0],
                      text);
        ck_assert_msg(strchr(text, '\n') == text + strlen(text) - 1, "%s: not one line: %s",
                      cases[i][0], text);
        ck_assert_str_eq(kept, precious);
        free(text);
        free(kept);
    }
}

TESTS(.seconds = 120)

int main(void)
{
    if (!mkdtemp(folder)) {
        return 1;
    }
    snprintf(profile_path, sizeof profile_path, "%s/profile.json", folder);
    snprintf(error_path, sizeof error_path, "%s/error", folder);
    int failed = run_registered();
    char *command;
    if (asprintf(&command, "rm -r %s", folder) > 0 && system(command) != 0) {
        return 1;
    }
    free(command);
    return failed;
}
