/* Does the BSP probe find the r, g and l of machines whose truth is known, and tell what the advice
 * tells to look at? */
#include "probes/bsp/bsp.h"
#include "profile/base/random.h"
#include "tests/base/runner.h"
#include "tests/base/within.h"

/* -- a machine that is a formula -- */

/* A machine that is a formula: T(h) = h g + l for h >= 1, t0 for none. */
struct bsp_simulation {
    double flop_per_s;     /* r of long vectors; half of it at length 16 */
    double g_s, l_s, t0_s; /* seconds */
    double g_packets_s;    /* with packets */
    /* relative deviation of every batch, one-sided: machines are only ever late */
    double noise;
    double stall_probability;      /* of a batch that takes ... */
    double stall_factor;           /* ... this many times as long */
    uint32_t switch_h;             /* from here on g is ... (0: never) */
    double switch_g_s, switch_l_s; /* ... this, and l this */
    double drift;                  /* every superstep takes this part longer than the one before */
    uint64_t seed;
};

/* Vectors of this length reach half the rate: the loop's overhead, as seen of DAXPY. */
static const double half_rate_length = 16;

static int simulated_daxpy(struct machine *machine, uint32_t processors, uint32_t length,
                           double *flop_per_s)
{
    const struct bsp_simulation *s = machine->state;
    (void)processors;
    *flop_per_s = s->flop_per_s * length / (length + half_rate_length);
    return 0;
}

static double exact(const struct bsp_simulation *s, const struct bsp_superstep *what)
{
    if (what->h == 0) {
        return s->t0_s;
    }
    if (what->packing == BSP_PACKETS) {
        return what->h * s->g_packets_s + s->l_s;
    }
    if (s->switch_h && what->h >= s->switch_h) {
        return what->h * s->switch_g_s + s->switch_l_s;
    }
    return what->h * s->g_s + s->l_s;
}

/* The fastest of the batches, each as late as noise makes it. */
static double fastest(struct bsp_simulation *s, const struct bsp_superstep *what)
{
    struct random random = {s->seed};
    double best = INFINITY;
    for (uint32_t i = 0; i < what->batches; i++) {
        double late = 1 + s->noise * fabs(random_normal(&random));
        double stall = random_unit(&random) < s->stall_probability ? s->stall_factor : 1;
        best = fmin(best, exact(s, what) * late * stall);
    }
    s->seed = random_next(&random);
    return best;
}

static int simulated_superstep(struct machine *machine, uint32_t processors,
                               const struct bsp_superstep *what, double *seconds)
{
    struct bsp_simulation *s = machine->state;
    (void)processors;
    *seconds = fastest(s, what);
    s->g_s *= 1 + s->drift;
    s->l_s *= 1 + s->drift;
    return 0;
}

static const struct probe_bsp_request usual = {0, BSP_H_HIGH, 0, BSP_RUNS, 1, 0};

/* 5.711 Gflop/s, and the g, l and T(0) of p = 32 on Cartesius */
static struct bsp_simulation cartesius(uint64_t seed)
{
    double r = 5.711e9;
    return (struct bsp_simulation){.flop_per_s = r,
                                   .g_s = 455 / r,
                                   .l_s = 132618 / r,
                                   .t0_s = 111267 / r,
                                   .g_packets_s = 20 / r,
                                   .seed = seed};
}

/* What is found last, and its note in the profile; "" for none. */
static struct probe_bsp found;
static const char *note;

static void find(struct bsp_simulation *simulation, const struct probe_bsp_request *request)
{
    static const struct machine_ops ops = {.daxpy = simulated_daxpy,
                                           .superstep = simulated_superstep};
    struct machine machine = {.ops = &ops, .name = "simulated", .state = simulation};
    struct servet_profile *profile = kept(calloc(1, sizeof *profile));
    struct servet_error error = {""};
    probe_bsp_free(&found);
    int rc = probe_bsp(&(struct bsp_backend){machine.name, &machine, &machine}, 32, request, NULL,
                       &found, &error);
    ck_assert_msg(rc == 0, "%s", error.text);
    ck_assert_int_eq(probe_bsp_store(&found, "threads", profile), 0);
    kept(profile->bsp);
    kept(profile->bsp->backend);
    note = profile->bsp->quality.note ? kept(profile->bsp->quality.note) : "";
}

TEST(a_silent_machine_gives_its_parameters_exactly)
{
    struct bsp_simulation simulation = cartesius(1);
    struct probe_bsp_request request = {1,        BSP_H_HIGH, 0,
                                        BSP_RUNS, 1,          0}; /* T(0) is not on the line */
    find(&simulation, &request);
    assert_within(found.words.line.g, simulation.g_s, 1e-12);
    assert_within(found.words.line.l, simulation.l_s, 1e-12);
    assert_within(found.packets.line.g, simulation.g_packets_s, 1e-10);
    assert_within(found.t0_s, simulation.t0_s, 1e-15);
    ck_assert_uint_eq(found.length, 1024);
    assert_within(found.flop_per_s, simulation.flop_per_s,
                  0.02); /* long vectors only come near to it */
    ck_assert_uint_eq(found.words.runs, BSP_RUNS);
    ck_assert_str_eq(note, "");
}

TEST(noise_leaves_g_and_l_within_five_percent)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct bsp_simulation simulation = cartesius(seed);
        simulation.noise = 0.05;
        simulation.stall_probability = 0.05;
        simulation.stall_factor = 30;
        find(&simulation, &usual);
        ck_assert_msg(found.words.agree, "seed %d: %g apart", (int)seed, found.words.difference);
        assert_within(found.words.line.g, simulation.g_s, 0.05);
        assert_within(found.words.line.l, simulation.l_s, 0.05);
        ck_assert_uint_eq(found.words.bend.h, 0);
    }
}

TEST(runs_that_disagree_are_repeated_and_told)
{
    struct bsp_simulation simulation = cartesius(4);
    simulation.drift =
        1e-3; /* the weather gets worse all the time: a quarter from one run to the next */
    find(&simulation, &usual);
    ck_assert(!found.words.agree);
    ck_assert_uint_gt(found.words.runs, BSP_RUNS);
    ck_assert_msg(strstr(note, "the best two of"), "%s", note);
}

TEST(a_bend_is_told_with_its_h)
{
    struct bsp_simulation simulation = cartesius(2);
    simulation.noise = 0.01;
    simulation.switch_h = 1024;
    simulation.switch_g_s = simulation.g_s / 2;
    simulation.switch_l_s = simulation.l_s * 2;
    find(&simulation, &usual);
    ck_assert_double_eq_tol((double)found.words.bend.h, 1024, 16);
    ck_assert_msg(strstr(note, "bend at h = 10"), "%s", note);
}

/* Up to h = 2000 the fit of such a machine is a negative l: the first words cost nothing. */
static struct bsp_simulation late_start(void)
{
    double r = 1e9;
    return (struct bsp_simulation){.flop_per_s = r,
                                   .g_s = 100 / r,
                                   .l_s = -20000 / r,
                                   .t0_s = 10 / r,
                                   .g_packets_s = 10 / r,
                                   .switch_h = 2000,
                                   .switch_g_s = 95 / r,
                                   .switch_l_s = 400000 / r,
                                   .seed = 1};
}

TEST(a_negative_l_enlarges_the_interval)
{
    struct bsp_simulation simulation = late_start();
    struct probe_bsp_request request = {300, 1200, 0, BSP_RUNS, 1, 0};
    find(&simulation, &request);
    ck_assert_uint_ge(found.words.enlargements, 1);
    ck_assert(!found.words.negative);
    ck_assert_uint_eq(found.words.curve.h[found.words.curve.count - 1],
                      1200u << found.words.enlargements);
    ck_assert_msg(strstr(note, "interval enlarged to h = "), "%s", note);
}

TEST(patience_ends_on_a_busy_machine)
{
    struct bsp_simulation simulation = cartesius(4), late = late_start();
    const struct probe_bsp_request request = {300, 1200, 0, BSP_RUNS, 1, 1e-9};
    simulation.drift = 1e-3;
    find(&simulation, &request);
    ck_assert_uint_eq(found.words.runs, BSP_RUNS);
    ck_assert_msg(strstr(note, "too busy for more runs"), "%s", note);
    find(&late, &request);
    ck_assert(found.words.negative);
    ck_assert_uint_eq(found.words.enlargements, 0);
}

TEST(an_l_that_stays_negative_is_flagged_and_not_stored)
{
    struct bsp_simulation simulation = cartesius(1);
    struct probe_bsp_request request = {300, 1200, 0, BSP_RUNS, 1, 0};
    struct servet_profile profile = {0};
    simulation.l_s = -1000 / simulation.flop_per_s;
    find(&simulation, &request);
    ck_assert(found.words.negative);
    ck_assert_uint_eq(found.words.enlargements, 3);
    ck_assert_int_eq(probe_bsp_store(&found, "threads", &profile), 0);
    ck_assert(profile.bsp[0].l_flops < 0 && profile.bsp[0].t0_flops > 0);
    ck_assert_msg(strstr(profile.bsp[0].quality.note, "negative l"), "%s",
                  profile.bsp[0].quality.note);
    found.words.line.g = -1e-9;
    ck_assert_int_eq(probe_bsp_store(&found, "mpi", &profile), -ERANGE);
    ck_assert_uint_eq(profile.bsp_count, 1);
    free(profile.bsp[0].backend);
    free(profile.bsp[0].quality.note);
    free(profile.bsp);
}

TEST(entries_are_kept_in_order_and_replaced)
{
    static const struct {
        const char *backend;
        uint32_t processors;
    } order[] = {{"threads", 4}, {"mpi", 2},     {"threads", 1}, {"mpi", 4},
                 {"threads", 2}, {"threads", 2}, {"mpi", 1}};
    struct bsp_simulation simulation = cartesius(1);
    struct servet_profile *profile = calloc(1, sizeof *profile);
    char text[64] = "";
    find(&simulation, &usual);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        found.processors = order[i].processors;
        ck_assert_int_eq(probe_bsp_store(&found, order[i].backend, profile), 0);
    }
    for (size_t i = 0; i < profile->bsp_count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%c%u ", *profile->bsp[i].backend,
                 profile->bsp[i].processors);
    }
    ck_assert_str_eq(text, "t1 t2 t4 m1 m2 m4 ");
    profile_free(profile);
}

TEST(every_processor_sends_and_receives_exactly_h_words)
{
    static const uint32_t counts[] = {1, 2, 3, 4, 7, 32}, relations[] = {0, 1, 6, 31, 2048};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (size_t k = 0; k < sizeof relations / sizeof *relations; k++) {
            uint32_t p = counts[c], h = relations[k];
            size_t words = bsp_target_words(h, p) + 1;
            unsigned char *hit = calloc(p * words, 1);
            uint32_t *received = calloc(p, sizeof *received);
            for (uint32_t s = 0; s < p; s++) {
                for (uint32_t i = 0; i < h; i++) {
                    uint32_t to = bsp_destination(s, i, p), at = bsp_destination_index(s, i, p);
                    ck_assert(to < p && (to != s || p == 1) && at < words);
                    ck_assert_msg(!hit[to * words + at], "p %u h %u: a word is overwritten", p, h);
                    hit[to * words + at] = 1;
                    received[to]++;
                }
            }
            /* Full relations are those of multiples of p - 1; in the others the last words come as
             * they come. */
            for (uint32_t s = 0; s < p; s++) {
                ck_assert_uint_eq(received[s], h);
            }
            free(received);
            free(hit);
        }
    }
}
