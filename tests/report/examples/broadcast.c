/* A program that asks what messages cost before it chooses an algorithm: how to broadcast from the
 * first PU to all.
 *
 *   broadcast [PROFILE]     without a profile this machine's
 *
 * One after the other costs the sum of the messages, a binomial tree the slowest of each round; to
 * deal out parts and pass them round a ring sends more messages, but small ones. Build it with
 *   cc broadcast.c $(pkg-config --cflags --libs servet)
 */
#include <servet.h>
#include <stdio.h>

#define PUS_MOST 4096

/* The root sends to everybody in turn. */
static double flat(const servet_profile *p, const uint32_t *pus, size_t count, uint64_t bytes)
{
    double seconds = 0;
    for (size_t i = 1; i < count; i++) {
        seconds += servet_message_seconds(p, pus[0], pus[i], bytes);
    }
    return seconds;
}

/* Binomial tree: everybody who has it sends it on, 1, 2, 4 … places further; a round takes as long
 * as its slowest. */
static double tree(const servet_profile *p, const uint32_t *pus, size_t count, uint64_t bytes)
{
    double seconds = 0;
    for (size_t step = 1; step < count; step *= 2) {
        double slowest = 0;
        for (size_t i = 0; i < step && i + step < count; i++) {
            double message = servet_message_seconds(p, pus[i], pus[i + step], bytes);
            slowest = message > slowest ? message : slowest;
        }
        seconds += slowest;
    }
    return seconds;
}

/* The root deals out one part each, then the parts go round a ring. */
static double ring(const servet_profile *p, const uint32_t *pus, size_t count, uint64_t bytes)
{
    uint64_t part = (bytes + count - 1) / count;
    double slowest = 0;
    for (size_t i = 0; i < count; i++) {
        double message = servet_message_seconds(p, pus[i], pus[(i + 1) % count], part);
        slowest = message > slowest ? message : slowest;
    }
    return flat(p, pus, count, part) + (double)(count - 1) * slowest;
}

static void choose(const servet_profile *p, const uint32_t *pus, size_t count, uint64_t bytes)
{
    const char *const names[] = {"one after the other", "tree", "scatter and ring"};
    const double costs[] = {flat(p, pus, count, bytes), tree(p, pus, count, bytes),
                            ring(p, pus, count, bytes)};
    size_t best = 0;
    for (size_t i = 1; i < 3; i++) {
        best = costs[i] < costs[best] ? i : best;
    }
    printf("%10llu bytes: %9.3g s, %9.3g s, %9.3g s: %s\n", (unsigned long long)bytes, costs[0],
           costs[1], costs[2], names[best]);
}

int main(int argc, char **argv)
{
    servet_profile *profile;
    struct servet_error error;
    static uint32_t pus[PUS_MOST];
    if (servet_profile_open(argc > 1 ? argv[1] : NULL, &profile, &error) < 0) {
        fprintf(stderr, "broadcast: %s\n", error.text);
        return 2;
    }
    size_t count = servet_pus(profile, pus, PUS_MOST);
    count = count < PUS_MOST ? count : PUS_MOST;
    if (!servet_measured(profile)) {
        puts("no messages were measured: run servet-probe first");
    } else if (count < 2) {
        puts("one PU: nobody to send to");
    } else {
        printf("from PU %u to %zu others: one after the other, tree, scatter and ring\n", pus[0],
               count - 1);
        for (uint64_t bytes = 8; bytes <= 1 << 27; bytes *= 64) {
            choose(profile, pus, count, bytes);
        }
    }
    servet_profile_close(profile);
    return 0;
}
