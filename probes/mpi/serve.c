/* Ranks of one node, told through rank 0's standard input what to do by servet-probe (machine.c):
 *
 *     mpirun -np N servet-ranks-LIBRARY --serve CPULIST    rank i sits on the i-th PU of CPULIST
 *     <- ready N
 *     -> exchange BYTES ROUND_TRIPS BATCHES UNWRITTEN PAIRS a b …    ranks; pairs are disjoint
 *     <- = WAITED SECONDS …                                how long the ranks of the pairs together
 *                                                          were ready and had no PU; one way, per
 *                                                          pair; %a
 *     -> superstep PROCESSORS H PACKING SUPERSTEPS BATCHES ranks below PROCESSORS; enum bsp_packing
 *     <- = SECONDS                                         of one superstep in the fastest batch
 *     -> (end of file)                                     all ranks end
 *
 * Trouble is one line "! …"; "! moved" when a rank was moved off its PU.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/mpi/mpi.h"
#include "profile/base/cli.h"

static void say(const char *line)
{
    printf("%s\n", line);
    fflush(stdout);
}

/* The next number of the line. False: there is none, or it is above `most`. */
static bool take(char **at, uint64_t most, uint64_t *out)
{
    char *end;
    *out = strtoull(*at, &end, 10);
    bool is_one = end != *at && *out <= most;
    *at = end;
    return is_one;
}

static bool serve_exchange(struct machine *machine, char *at)
{
    struct ranks *ranks = machine->state;
    uint64_t bytes, round_trips, batches, unwritten, pairs, a = 0, b = 0;
    uint64_t last = (uint64_t)ranks->size - 1;
    if (!take(&at, INT32_MAX, &bytes) || !take(&at, UINT32_MAX, &round_trips) ||
        !take(&at, UINT32_MAX, &batches) || !take(&at, 1, &unwritten) ||
        !take(&at, ((uint64_t)ranks->size) / 2, &pairs)) {
        return false;
    }
    const struct machine_exchange what = {bytes, (uint32_t)round_trips, (uint32_t)batches,
                                          unwritten == 1};
    struct profile_pair *list = calloc(pairs + 1, sizeof *list);
    double *seconds = calloc(pairs + 1, sizeof *seconds), waited_s = ranks->waited_s;
    bool sound = list && seconds && pairs > 0;
    for (uint64_t i = 0; i < pairs && sound; i++) {
        sound = take(&at, last, &a) && take(&at, last, &b) && a != b;
        list[i] = (struct profile_pair){(uint32_t)a, (uint32_t)b};
    }
    int rc = sound ? machine->ops->exchange(machine, &what, list, pairs, seconds) : 0;
    if (sound && rc < 0) {
        say(rc == -ENODEV ? "! moved" : "! not enough memory");
    } else if (sound) {
        printf("= %a", ranks->waited_s - waited_s);
        for (uint64_t i = 0; i < pairs; i++) {
            printf(" %a", seconds[i]);
        }
        say("");
    }
    free(list);
    free(seconds);
    return sound;
}

static bool serve_superstep(struct ranks *ranks, char *at)
{
    uint64_t processors, h, packing, supersteps, batches;
    double seconds;
    if (!take(&at, (uint64_t)ranks->size, &processors) || !take(&at, INT32_MAX / 8, &h) ||
        !take(&at, BSP_PACKETS, &packing) || !take(&at, UINT32_MAX, &supersteps) ||
        !take(&at, UINT32_MAX, &batches) || processors == 0) {
        return false;
    }
    const struct bsp_superstep what = {(uint32_t)h, (enum bsp_packing)packing, (uint32_t)supersteps,
                                       (uint32_t)batches};
    if (probe_ranks_superstep((uint32_t)processors, &what, &seconds) < 0) {
        say("! words were lost");
    } else {
        printf("= %a", seconds);
        say("");
    }
    return true;
}

/* Until the end of the input, or a line that is no order. */
static int lead(struct ranks *ranks)
{
    static const char exchange[] = "exchange ", superstep[] = "superstep ";
    struct machine machine;
    char *line = NULL;
    size_t size = 0;
    bool sound = true;
    probe_ranks_machine(ranks, &machine);
    printf("ready %d", ranks->size);
    say("");
    while (sound && getline(&line, &size, stdin) > 0) {
        if (strncmp(line, exchange, sizeof exchange - 1) == 0) {
            sound = serve_exchange(&machine, line + sizeof exchange - 1);
        } else if (strncmp(line, superstep, sizeof superstep - 1) == 0) {
            sound = serve_superstep(ranks, line + sizeof superstep - 1);
        } else {
            sound = false;
        }
    }
    if (!sound) {
        say("! that is no order");
    }
    free(line);
    profile_set_free(&machine.pus);
    return sound ? CLI_OK : CLI_USAGE;
}

int probe_ranks_serve(const char *pus)
{
    struct ranks ranks;
    struct servet_error error;
    struct profile_set set = {0};
    if (profile_set_parse(pus, &set) < 0) {
        cli_usage("--serve: expected a list of PUs; this program is started by servet-probe");
    }
    int rc = probe_ranks_open_on(&ranks, &set, &error), status = CLI_OK;
    if (rc < 0) {
        if (ranks.rank == 0) {
            printf("! %s", error.text);
            say("");
        }
        status = rc == -EINVAL ? CLI_USAGE : CLI_FAILED;
    } else if (ranks.rank == 0) {
        status = lead(&ranks);
        probe_ranks_dismiss(&ranks, status);
    } else {
        status = probe_ranks_obey(&ranks);
    }
    profile_set_free(&set);
    probe_ranks_end(&ranks, status);
}
