/* How often are cache levels found? Runs both methods on simulated machines and
 * prints the confusion table.
 *
 *     accuracy [--method default|paper|both] [--list] [--least PERCENT] [--jobs N]
 *     MACHINE.json …
 *
 * Right is the size of the description; of a level that holds victims also that size plus the level
 * before it, which is what a program can use. Within is a size off by up to 3 %, of a third level
 * and beyond by up to 10 %: as near as a curve of eight points an octave can tell. An interval
 * holds the truth when one of the sizes that are right is in it. Levels are compared in order of
 * size: each found one with the nearest true one. Each kind of cores counts as a machine of its
 * own. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probes/cache/probe.h"
#include "profile/base/cli.h"
#include "tests/simulated/simulated.h"

enum { LEVELS = 5, JOBS_MAX = 64 };
static const double within_first = 1.03, within_last = 1.10;
enum { LAST_FROM = 2 };             /* levels before it, of what is judged as a last level */
static const double near = 1.15;    /* sizes that differ by less are called near */
static const double same_level = 3; /* sizes that differ by more are of different levels */

enum verdict { RIGHT, WITHIN, NEAR, WRONG, MISSED, VERDICTS };

struct table {
    unsigned count[LEVELS][VERDICTS], spurious, machines;
    unsigned held[LEVELS], found[LEVELS]; /* intervals that hold the truth, of so many */
};

enum { FIT, PAPER, METHODS };
static const char *const method_names[METHODS] = {"default", "paper"};

struct truth {
    uint64_t bytes[LEVELS];
    bool victim[LEVELS];
    size_t count;
};

struct arguments {
    bool methods[METHODS], list;
    double least; /* percent of the levels that must be right */
    uint64_t seed;
    unsigned jobs;
};

/* Sizes of the caches in front of one PU. */
static struct truth truth_of(const struct machine *machine, uint32_t pu)
{
    const struct sim *sim = machine->state;
    struct truth truth = {0};
    for (size_t i = 0; i < sim->cache_count; i++) {
        const struct sim_cache *cache = &sim->caches[i];
        if (profile_set_has(&cache->pus, pu)) {
            truth.bytes[truth.count] = cache->size_bytes;
            truth.victim[truth.count++] = cache->inclusion == SIM_VICTIM;
        }
    }
    return truth;
}

static enum verdict judge(const struct truth *truth, size_t level, uint64_t found)
{
    uint64_t size = truth->bytes[level],
             with_previous = level ? size + truth->bytes[level - 1] : size;
    double ratio = (double)found / (double)size;
    if (found == size || (truth->victim[level] && found >= size && found <= with_previous)) {
        return RIGHT;
    }
    const double within = level < LAST_FROM ? within_first : within_last;
    double nearest =
        fmin(fabs(log(ratio)),
             truth->victim[level] ? fabs(log((double)found / (double)with_previous)) : INFINITY);
    return nearest <= log(within) ? WITHIN : nearest < log(near) ? NEAR : WRONG;
}

static bool holds(const struct truth *truth, size_t level, const struct probe_cache_level *found)
{
    uint64_t size = truth->bytes[level],
             most = truth->victim[level] ? size + truth->bytes[level - 1] : size;
    return found->low_bytes <= most && found->high_bytes >= size;
}

static void compare(const struct truth *truth, const struct probe_cache_level *found, size_t count,
                    struct table *table, char *text)
{
    bool used[LEVELS] = {false};
    for (size_t level = 0; level < truth->count; level++) {
        size_t best = count;
        double least = log(same_level);
        for (size_t i = 0; i < count; i++) {
            double distance = fabs(log((double)found[i].size_bytes / (double)truth->bytes[level]));
            if (!used[i] && distance < least) {
                least = distance;
                best = i;
            }
        }
        enum verdict verdict = best < count ? judge(truth, level, found[best].size_bytes) : MISSED;
        if (best < count) {
            used[best] = true;
            table->found[level] += found[best].high_bytes > 0;
            table->held[level] += holds(truth, level, &found[best]);
        }
        table->count[level][verdict]++;
        text += sprintf(text, "%c", "=:~xo"[verdict]);
    }
    for (size_t i = 0; i < count; i++) {
        table->spurious += !used[i];
        text += sprintf(text, "%s", used[i] ? "" : "+");
    }
    table->machines++;
}

static void run_pu(const struct arguments *arguments, const char *path, struct machine *machine,
                   uint32_t pu, size_t method, struct table *table)
{
    struct servet_error error;
    struct probe_cache result;
    struct probe probe = {.machine = machine, .seed = arguments->seed};
    int rc = (method == PAPER ? probe_cache_paper : probe_cache)(&probe, pu, &result, &error);
    if (rc < 0) {
        cli_fail("%s: %s", path, error.text);
    }
    struct truth truth = truth_of(machine, pu);
    char verdicts[32];
    compare(&truth, result.levels, result.count, table, verdicts);
    if (arguments->list) {
        printf("%-8s %-5s %-45s", method_names[method], verdicts, machine->declared->host_name);
        for (size_t i = 0; i < result.count; i++) {
            printf(" %g (%g-%g)", (double)result.levels[i].size_bytes / 1024,
                   (double)result.levels[i].low_bytes / 1024,
                   (double)result.levels[i].high_bytes / 1024);
        }
        printf(" of");
        for (size_t i = 0; i < truth.count; i++) {
            printf(" %g", (double)truth.bytes[i] / 1024);
        }
        printf("\n");
        fflush(stdout);
    }
    probe_cache_free(&result);
}

static void run(const struct arguments *arguments, const char *path, size_t method,
                struct table *table)
{
    struct machine machine;
    struct servet_error error;
    if (probe_machine_open_simulated(path, arguments->seed, &machine, &error) < 0) {
        cli_fail("%s", error.text);
    }
    const struct profile_class *node_class = &machine.declared->classes[0];
    run_pu(arguments, path, &machine, 0, method, table);
    for (size_t i = 0; i < node_class->kind_count; i++) {
        uint32_t first = node_class->kinds[i].pus.ids[0];
        if (first > 0) {
            run_pu(arguments, path, &machine, first, method, table);
        }
    }
    probe_machine_close(&machine);
}

static void add(struct table *sum, const struct table *part)
{
    for (size_t i = 0; i < LEVELS; i++) {
        sum->held[i] += part->held[i];
        sum->found[i] += part->found[i];
        for (size_t v = 0; v < VERDICTS; v++) {
            sum->count[i][v] += part->count[i][v];
        }
    }
    sum->spurious += part->spurious;
    sum->machines += part->machines;
}

/* One job's share: every `jobs`-th machine. */
static void run_share(const struct arguments *arguments, char **paths, size_t count, unsigned job,
                      struct table tables[METHODS])
{
    for (size_t i = job; i < count; i += arguments->jobs) {
        for (size_t m = 0; m < METHODS; m++) {
            if (arguments->methods[m]) {
                run(arguments, paths[i], m, &tables[m]);
            }
        }
    }
}

/* Processes, not threads: the fit keeps tables from call to call. */
static void run_all(const struct arguments *arguments, char **paths, size_t count,
                    struct table tables[METHODS])
{
    struct table(*shares)[METHODS] = mmap(NULL, JOBS_MAX * sizeof *shares, PROT_READ | PROT_WRITE,
                                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (unsigned job = 0; job < arguments->jobs; job++) {
        pid_t child = shares == MAP_FAILED ? -1 : fork();
        if (child < 0) {
            cli_fail("no process for job %u", job);
        }
        if (child == 0) {
            run_share(arguments, paths, count, job, shares[job]);
            _exit(CLI_OK);
        }
    }
    for (unsigned job = 0; job < arguments->jobs; job++) {
        int status;
        if (wait(&status) < 0 || status != 0) {
            cli_fail("a job ended without a result");
        }
    }
    for (unsigned job = 0; job < arguments->jobs; job++) {
        for (size_t m = 0; m < METHODS; m++) {
            add(&tables[m], &shares[job][m]);
        }
    }
}

/* Returns the percentage of levels that are right or within what is asked of them. */
static double print(const char *method, const struct table *table)
{
    unsigned right = 0, within = 0, all = 0;
    printf("%s method, %u machines\n  level    right within   near  wrong missed  good  interval "
           "holds\n",
           method, table->machines);
    for (size_t i = 0; i < LEVELS; i++) {
        const unsigned *c = table->count[i],
                       sum = c[RIGHT] + c[WITHIN] + c[NEAR] + c[WRONG] + c[MISSED];
        if (sum > 0) {
            printf("  L%zu      %6u %6u %6u %6u %6u %5.1f  %u of %u\n", i + 1, c[RIGHT], c[WITHIN],
                   c[NEAR], c[WRONG], c[MISSED], 100.0 * (c[RIGHT] + c[WITHIN]) / sum,
                   table->held[i], table->found[i]);
        }
        right += c[RIGHT];
        within += c[WITHIN];
        all += sum;
    }
    printf("  all      %u of %u right (%.1f %%), %u within, %u spurious levels\n", right, all,
           all ? 100.0 * right / all : 0, within, table->spurious);
    return all ? 100.0 * (right + within) / all : 0;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    switch (key) {
    case 'm':
        if (strcmp(argument, "paper") != 0 && strcmp(argument, "default") != 0 &&
            strcmp(argument, "both") != 0) {
            cli_usage("--method: expected default, paper or both, got '%s'", argument);
        }
        arguments->methods[PAPER] = strcmp(argument, "default") != 0;
        arguments->methods[FIT] = strcmp(argument, "paper") != 0;
        return 0;
    case 'l':
        arguments->list = true;
        return 0;
    case 's':
        arguments->seed = (uint64_t)cli_integer("--seed", argument, 0, INT32_MAX);
        return 0;
    case 'j':
        arguments->jobs = (unsigned)cli_integer("--jobs", argument, 1, JOBS_MAX);
        return 0;
    case 'p':
        arguments->least = cli_number("--least", argument, 0, 100);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"method", 'm', "NAME", 0, "default, paper or both (default: both)", 0},
        {"list", 'l', NULL, 0,
         "One line per machine: = right, : within, ~ near, x wrong, o missed, + spurious", 0},
        {"least", 'p', "PERCENT", 0,
         "Fail if fewer levels than that are right or within with the default method", 0},
        {"jobs", 'j', "N", 0, "Processes that share the machines (default: 1)", 0},
        {"seed", 's', "N", 0, "Of the noise and the page placement (default: 1)", 0},
        {0}};
    static const struct argp argp = {
        options,
        parse,
        "MACHINE.json...",
        "Compares the cache sizes found on simulated machines with the truth.",
        NULL,
        NULL,
        NULL};
    struct arguments arguments = {.methods = {true, true}, .seed = 1, .jobs = 1};
    struct table tables[METHODS] = {0};
    int first;
    cli_parse(&argp, argc, argv, 0, &first, &arguments);
    if (first == argc) {
        cli_usage("expected machine descriptions");
    }
    run_all(&arguments, argv + first, (size_t)(argc - first), tables);
    double right[METHODS] = {100};
    for (size_t m = 0; m < METHODS; m++) {
        if (arguments.methods[m]) {
            right[m] = print(method_names[m], &tables[m]);
        }
    }
    return cli_finish(right[FIT] < arguments.least ? CLI_FAILED : CLI_OK);
}
