/* Does the engine map as the algorithm says, on random machines? */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tests/base/runner.h"
#include "tests/mapper/random_profile.h"
#include "tests/mapper/reference.h"

/* Nested, and not: 120,000 in all. A build with sanitizers is many times slower and looks for other
 * things. */
#ifdef __SANITIZE_ADDRESS__
#define PROFILES_EACH 10000
#else
#define PROFILES_EACH 60000
#endif
#define MOST_WORKERS (2 * REFERENCE_MOST_PUS)

struct explained {
    size_t rows;
    bool paper;
};

static void count_row(void *context, const struct map_row *row)
{
    struct explained *explained = context;
    ck_assert_uint_eq(row->worker, explained->rows);
    explained->rows++;
    /* The paper adds up, so its sums explain its choice, taken PUs' among them. */
    ck_assert(!explained->paper || row->chosen == row->by_sum);
}

static void fail_with(const struct servet_profile *profile, uint64_t seed,
                      const struct map_request *request, const uint32_t *expected,
                      const uint32_t *got, const char *engine)
{
    for (size_t w = 0; w < request->workers; w++) {
        if (expected[w] != got[w]) {
            ck_abort_msg("seed %" PRIu64
                         ", %u nodes, priority %d, %s: worker %zu of %zu is on PU %u, expected %u",
                         seed, profile_node_count(profile), request->priority, engine, w,
                         request->workers, got[w], expected[w]);
        }
    }
}

static void compare_once(uint64_t seed, bool nested)
{
    struct random random = {seed * 0x9e3779b97f4a7c15ull + 1};
    struct servet_profile *profile = random_profile(&random, nested);
    struct profile_set allowed = random_pus(&random, profile, 1),
                       taken = random_pus(&random, profile, 0);
    struct map_request request = {
        .priority = random_number(&random, 2) ? MAP_MEMORY : MAP_COMMUNICATION,
        .workers = 1 + random_number(&random, 30),
        .allowed = random_number(&random, 2) ? &allowed : NULL,
        .taken = random_number(&random, 2) ? &taken : NULL,
        .paper = random_number(&random, 4) == 0,
    };
    uint32_t expected[MOST_WORKERS], fast[MOST_WORKERS], slow[MOST_WORKERS];
    struct servet_error error = {""};
    struct explained explained = {.paper = request.paper};
    struct map_explainer explainer = {count_row, &explained};
    int rc = map_workers(profile, &request, fast, NULL, &error);
    if (rc == -EINVAL && request.allowed && strstr(error.text, "allowed PUs")) {
        rc = 1; /* only the PU that the profile does not have */
    } else {
        ck_assert_msg(rc == 0, "seed %" PRIu64 ": %s", seed, error.text);
        ck_assert_int_eq(map_workers(profile, &request, slow, &explainer, &error), 0);
        ck_assert_uint_eq(explained.rows, request.workers);
        reference_map(profile, &request, expected);
        fail_with(profile, seed, &request, expected, fast, nested ? "nested" : "any");
        fail_with(profile, seed, &request, expected, slow, "explained");
    }
    profile_set_free(&allowed);
    profile_set_free(&taken);
    profile_free(profile);
}

/* Nested ones, and any. */
TEST(machines_map_as_the_reference, .loops = 2)
{
    for (uint64_t seed = 0; seed < PROFILES_EACH; seed++) {
        compare_once((uint64_t)_i * PROFILES_EACH + seed, _i == 0);
    }
}

TESTS(.seconds = 600)
