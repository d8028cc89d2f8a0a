/* A program that asks how many threads memory can feed, and where they should run.
 *
 *   team [PROFILE]     without a profile this machine's
 *
 * Where bandwidth was not measured, it wants one thread on every PU. Build it with
 *   cc team.c $(pkg-config --cflags --libs servet)
 */
#include <servet.h>
#include <stdio.h>

#define PUS_MOST 4096

/* The number of threads; pus[] gets their places. */
static uint32_t choose_team(const servet_profile *profile, uint32_t *pus, uint32_t most)
{
    struct servet_worth worth;
    struct servet_error error;
    servet_pus(profile, pus, most);
    if (servet_workers_worth(profile, pus[0], SERVET_NODE, pus, &worth, &error) == 0) {
        return worth.workers;
    }
    fprintf(stderr, "team: %s: a thread on every PU\n", error.text);
    struct servet_map_request request = {.ranks = most};
    return servet_map(profile, &request, pus, &error) == 0 ? most : 1;
}

int main(int argc, char **argv)
{
    servet_profile *profile;
    struct servet_error error;
    static uint32_t pus[PUS_MOST];
    if (servet_profile_open(argc > 1 ? argv[1] : NULL, &profile, &error) < 0) {
        fprintf(stderr, "team: %s\n", error.text);
        return 2;
    }
    uint32_t most = servet_pu_count(profile);
    uint32_t threads = choose_team(profile, pus, most < PUS_MOST ? most : PUS_MOST);
    printf("%u threads on PUs", threads);
    for (uint32_t i = 0; i < threads; i++) {
        printf(" %u", pus[i]);
    }
    puts("");
    servet_profile_close(profile);
    return 0;
}
