/* A program that starts no more threads than memory can feed: each of them sums its part of an
 * array.
 *
 *   team [PROFILE]     without a profile this machine's
 *
 * How many threads and where comes from the profile; where bandwidth was not measured, one thread
 * on every PU. A thread that cannot be bound (the profile is of another machine) runs where it is.
 * Build it with
 *   cc -D_GNU_SOURCE team.c $(pkg-config --cflags --libs servet) -pthread
 */
#include "profile/scope.h"
#include <pthread.h>
#include <sched.h>
#include <servet.h>
#include <stdio.h>
#include <stdlib.h>

#define ELEMENTS ((size_t)1 << 20)

struct member {
    pthread_t thread;
    uint32_t pu;
    const double *part;
    size_t count;
    double sum;
};

static void *sum_part(void *argument)
{
    struct member *member = argument;
    cpu_set_t *set = CPU_ALLOC(member->pu + 1);
    size_t size = CPU_ALLOC_SIZE(member->pu + 1);
    if (set) {
        CPU_ZERO_S(size, set);
        CPU_SET_S(member->pu, size, set);
        sched_setaffinity(0, size, set);
        CPU_FREE(set);
    }
    for (size_t i = 0; i < member->count; i++) {
        member->sum += member->part[i];
    }
    return NULL;
}

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

static double sum_with(struct member *team, uint32_t threads, const double *array)
{
    double sum = 0;
    uint32_t started = 0;
    for (; started < threads; started++) {
        struct member *member = &team[started];
        size_t first = ELEMENTS * started / threads;
        member->part = array + first;
        member->count = ELEMENTS * (started + 1) / threads - first;
        if (pthread_create(&member->thread, NULL, sum_part, member) != 0) {
            break;
        }
    }
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(team[i].thread, NULL);
        sum += team[i].sum;
    }
    return started == threads ? sum : -1;
}

int main(int argc, char **argv)
{
    servet_profile *profile;
    struct servet_error error;
    if (servet_profile_open(argc > 1 ? argv[1] : NULL, &profile, &error) < 0) {
        fprintf(stderr, "team: %s\n", error.text);
        return 2;
    }
    uint32_t most = servet_pu_count(profile);
    FREED uint32_t *pus = calloc(most, sizeof *pus);
    FREED struct member *team = calloc(most, sizeof *team);
    FREED double *array = calloc(ELEMENTS, sizeof *array);
    if (!pus || !team || !array) {
        fputs("team: out of memory\n", stderr);
        return 1;
    }
    for (size_t i = 0; i < ELEMENTS; i++) {
        array[i] = 1;
    }
    uint32_t threads = choose_team(profile, pus, most);
    printf("%u threads on PUs", threads);
    for (uint32_t i = 0; i < threads; i++) {
        team[i].pu = pus[i];
        printf(" %u", pus[i]);
    }
    double sum = sum_with(team, threads, array);
    printf(": sum %.0f\n", sum);
    servet_profile_close(profile);
    return sum < ELEMENTS;
}
