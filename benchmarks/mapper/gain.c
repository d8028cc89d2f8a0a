/* What is a measurement worth to the mapper?
 *
 *     mapper-gain MACHINE.json=PROFILE.json ...
 *
 * For each simulated machine and the profile that servet-probe made of it: workers (1, 2, 3, 4, 7,
 * 8, 13, 16, half, all but one and all cores) and ranks with threads are placed by what the machine
 * declares of itself, and by what was measured of it; both mappings are held against the machine
 * file's own arithmetic, without noise. By memory priority: bandwidth of all workers together, of
 * ranks with threads that of the slowest rank. By communication priority: a message of 64 bytes
 * between neighbours in worker order (of ranks with threads: inside ranks), mean of all, one at a
 * time. So much better is measured (unmeasured = 1): the mean of the cases, the most and the least.
 * A line for each case in which measured is worse; status 1 when one is by more than the tenth
 * below which no overhead counts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/map.h"
#include "probes/machine.h"
#include "probes/pairs/memory.h"
#include "probes/simulated/simulated.h"

/* Sums of the same figures in another order. */
static const double rounding = 1e-9;

struct program {
    uint32_t ranks, threads;
};

struct machine_at_hand {
    const char *name;
    struct machine machine;
    struct servet_profile *measured;
    enum map_priority priority;
    uint32_t *pus;
    double *rates;
};

struct tally {
    size_t cases, better, worse, much_worse;
    double sum, most, least;
    struct program most_of, least_of;
};

static void *needed(void *memory)
{
    if (!memory) {
        fprintf(stderr, "mapper-gain: out of memory\n");
        exit(1);
    }
    return memory;
}

static void expect(int rc, const char *what)
{
    if (rc < 0) {
        fprintf(stderr, "mapper-gain: %s\n", what);
        exit(1);
    }
}

static void place(struct machine_at_hand *m, const struct servet_profile *profile,
                  struct program program)
{
    const struct map_domain_request request = {
        .priority = m->priority, .ranks = program.ranks, .threads_each = program.threads};
    struct servet_error error = {0};
    expect(map_domains(profile, &request, m->pus, &error), error.text);
}

/* Bytes a second of all workers, or of the slowest rank. */
static double bandwidth(struct machine_at_hand *m, struct program program)
{
    const struct machine_copy what = {.bytes = 1u << 20, .passes = 1, .numa = -1};
    double all = 0, slowest = 0;
    size_t workers = (size_t)program.ranks * program.threads;
    expect(probe_machine_copy(&m->machine, &what, m->pus, workers, m->rates), "no bandwidth");
    for (uint32_t r = 0; r < program.ranks; r++) {
        double rank = 0;
        for (uint32_t t = 0; t < program.threads; t++) {
            rank += m->rates[r * program.threads + t];
        }
        all += rank;
        slowest = r == 0 || rank < slowest ? rank : slowest;
    }
    return program.threads > 1 ? slowest : all;
}

/* Messages a second between neighbours, of ranks with threads inside ranks, by their mean time. */
static double messages(struct machine_at_hand *m, struct program program)
{
    const struct machine_exchange what = {.bytes = 64, .round_trips = 1, .batches = 1};
    double sum = 0;
    size_t workers = (size_t)program.ranks * program.threads, count = 0;
    for (size_t i = 1; i < workers; i++) {
        double seconds = 0;
        struct profile_pair pair = {m->pus[i - 1], m->pus[i]};
        if (program.threads == 1 || i % program.threads) {
            expect(probe_machine_exchange(&m->machine, &what, &pair, 1, &seconds), "no message");
            sum += seconds;
            count++;
        }
    }
    return sum > 0 ? (double)count / sum : 1;
}

static void compare(struct machine_at_hand *m, struct program program, struct tally *tally)
{
    double figures[2];
    const struct servet_profile *profiles[2] = {m->machine.declared, m->measured};
    for (size_t i = 0; i < 2; i++) {
        place(m, profiles[i], program);
        figures[i] = m->priority == MAP_MEMORY ? bandwidth(m, program) : messages(m, program);
    }
    double gain = figures[1] / figures[0];
    bool worse = gain<1 - rounding, better = gain> 1 + rounding;
    tally->better += better;
    tally->worse += worse;
    tally->much_worse += gain < PROBE_MEMORY_COLLISION;
    tally->sum += gain;
    if (!tally->cases || gain > tally->most) {
        tally->most = gain;
        tally->most_of = program;
    }
    if (!tally->cases || gain < tally->least) {
        tally->least = gain;
        tally->least_of = program;
    }
    tally->cases++;
    if (worse) {
        printf("    worse: %s, %u x %u, %s: %.4f\n", m->name, program.ranks, program.threads,
               m->priority == MAP_MEMORY ? "memory" : "communication", gain);
    }
}

static uint32_t count_cores(const struct machine *machine)
{
    const struct profile_relation *cores = &machine->declared->classes[0].cores;
    uint32_t pus = (uint32_t)machine->pus.count, cored = 0;
    for (size_t g = 0; g < cores->group_count; g++) {
        cored += (uint32_t)cores->groups[g].count;
    }
    return pus - cored + (uint32_t)cores->group_count;
}

static void compare_all(struct machine_at_hand *m, uint32_t cores, struct tally *tally)
{
    static const uint32_t ranks[] = {2, 3, 4, 6, 8};
    const uint32_t numbers[] = {1, 2, 3, 4, 7, 8, 13, 16, cores / 2, cores - 1, cores};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        bool repeated = false;
        for (size_t j = 0; j < i; j++) {
            repeated = repeated || numbers[j] == numbers[i];
        }
        if (!repeated && numbers[i] >= 1 && numbers[i] <= cores) {
            compare(m, (struct program){numbers[i], 1}, tally);
        }
    }
    for (size_t i = 0; i < 2 * sizeof ranks / sizeof *ranks; i++) {
        uint32_t threads = cores / ranks[i / 2] / (uint32_t)(1 + i % 2);
        if (threads >= 2) {
            compare(m, (struct program){ranks[i / 2], threads}, tally);
        }
    }
}

static void print(const struct machine_at_hand *m, const struct tally *t)
{
    printf("%-22s %-13s %5zu %6zu %5zu  %6.3f  %7.3f (%u x %u)  %7.3f (%u x %u)\n", m->name,
           m->priority == MAP_MEMORY ? "memory" : "communication", t->cases, t->better, t->worse,
           t->sum / (double)t->cases, t->most, t->most_of.ranks, t->most_of.threads, t->least,
           t->least_of.ranks, t->least_of.threads);
}

/* `argument`: MACHINE.json=PROFILE.json. */
static void do_machine(const char *argument, struct tally *total)
{
    char path[4096], name[64];
    const char *split = strstr(argument, ".json="), *slash;
    struct machine_at_hand m = {.name = name};
    struct servet_error error = {.text = "expected MACHINE.json=PROFILE.json"};
    expect(split ? 0 : -1, error.text);
    snprintf(path, sizeof path, "%.*s", (int)(split - argument) + 5, argument);
    slash = strrchr(path, '/');
    snprintf(name, sizeof name, "%.*s", (int)strcspn(slash ? slash + 1 : path, "."),
             slash ? slash + 1 : path);
    expect(probe_machine_open_simulated(path, 1, &m.machine, &error), error.text);
    expect(profile_load(split + 6, &m.measured, &error), error.text);
    ((struct sim *)m.machine.state)->noise = (struct sim_noise){0};
    m.pus = needed(calloc(m.machine.pus.count, sizeof *m.pus));
    m.rates = needed(calloc(m.machine.pus.count, sizeof *m.rates));
    for (m.priority = MAP_MEMORY; m.priority <= MAP_COMMUNICATION; m.priority++) {
        struct tally tally = {0};
        compare_all(&m, count_cores(&m.machine), &tally);
        print(&m, &tally);
        total->cases += tally.cases;
        total->better += tally.better;
        total->worse += tally.worse;
        total->much_worse += tally.much_worse;
    }
    free(m.pus);
    free(m.rates);
    profile_free(m.measured);
    probe_machine_close(&m.machine);
}

int main(int argc, char **argv)
{
    struct tally total = {0};
    puts("machine                priority      cases better worse    mean  most               "
         "least");
    for (int i = 1; i < argc; i++) {
        do_machine(argv[i], &total);
    }
    printf("%zu cases: measured better in %zu, worse in %zu, by more than a tenth in %zu\n",
           total.cases, total.better, total.worse, total.much_worse);
    return total.much_worse || argc < 2;
}
