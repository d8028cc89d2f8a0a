/* The rates of other loops than the copy of the levels: one PU alone, and all PUs of one
 * memory domain. A non-temporal copy moves more in a second than what compilers make of most loops
 * (36 GB/s where a triad gets 23.5 and an ordinary copy 20 to 22 on one core of a Zen 5), and it
 * collides more: where it is placed matters most, so the levels are made of it; what a program gets
 * is nearer to STREAM's triad. Nor does a program ask for huge pages, as the levels do, with which
 * all of these get a third more (docs/MEASUREMENTS.md, "Beside the programs that people know"): its
 * memory is as the system gives it. */
#include "probes/memory/memory.h"
#include "probes/memory/rates.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of all kernels by turns, so that a drift meets all of them. */
enum { ROUNDS = REPEAT_MEDIAN_LEAST };

/* The rounds of each kernel, and in how many of them all PUs ran together. */
struct rounds {
    double alone[ROUNDS], together[ROUNDS];
    size_t met;
};

struct loop_question {
    struct probe *probe;
    const struct profile_set *domain;
    size_t bytes;
};

/* The PUs of the first PU's NUMA node, where nodes are declared, that may run at a time. 0 or
 * -ENOMEM. */
static int choose_domain(const struct probe *probe, struct profile_set *out)
{
    const struct profile_set *pus = &probe->machine->pus, *node = pus;
    for (size_t i = 0; probe->declared && i < probe->declared->numa_count; i++) {
        const struct profile_numa *numa = &probe->declared->numa[i];
        node = node == pus && profile_set_has(&numa->pus, pus->ids[0]) ? &numa->pus : node;
    }
    const size_t most = probe_machine_at_once(probe->machine);
    TRY(profile_set_intersect(node, pus, out));
    out->count = out->count < most ? out->count : most;
    return 0;
}

static int run_kernel(const struct loop_question *question, enum profile_kernel kernel,
                      size_t workers, double *total)
{
    struct machine_copy what = probe_memory_what(
        question->probe, probe_memory_room(question->probe, question->bytes, workers), -1);
    what.pages = MACHINE_PAGES_GIVEN;
    what.kernel = kernel;
    return probe_memory_total(question->probe, &what, question->domain->ids, workers, total);
}

/* Where there are no non-temporal stores the copy of the levels is an ordinary one. */
static enum profile_kernel kernel_of_levels(const struct probe *probe)
{
    const char *method = probe->machine->copy_method;
    return method && strcmp(method, "memcpy") == 0 ? PROFILE_COPY : PROFILE_NT_COPY;
}

/* 0, -errno, or 1: it is too late to end this one. Where other tasks keep the PUs apart, what one
 * gets alone is known all the same, and the others of this round are not waited for either. */
static int one_loop_round(const struct loop_question *question, size_t round, struct rounds *rounds)
{
    bool meet = question->domain->count > 1;
    int rc = 0;
    for (size_t k = kernel_of_levels(question->probe); k < PROFILE_KERNELS && rc == 0; k++) {
        const enum profile_kernel kernel = (enum profile_kernel)k;
        rc = run_kernel(question, kernel, 1, &rounds[k].alone[round]);
        if (rc == 0 && meet) {
            rc = run_kernel(question, kernel, question->domain->count,
                            &rounds[k].together[rounds[k].met]);
            meet = rc != -EAGAIN;
            rounds[k].met += rc == 0;
            rc = meet ? rc : 0;
        }
        rc = rc == -ETIME || (rc == 0 && probe_late(question->probe)) ? 1 : rc;
    }
    return rc;
}

static struct profile_kernel_rate rate_of(struct rounds *rounds, size_t done)
{
    const size_t met = rounds->met < done ? rounds->met : done;
    struct profile_kernel_rate rate = {
        .bytes_per_s = profile_median_value(rounds->alone, done),
        .quality = {.origin = PROFILE_MEASURED,
                    .repetitions = (uint32_t)done,
                    .spread = probe_spread(rounds->alone, done)},
    };
    if (met > 0) {
        rate.together_bytes_per_s = profile_median_value(rounds->together, met);
        rate.quality.spread = fmax(rate.quality.spread, probe_spread(rounds->together, met));
    }
    return rate;
}

/* The method speaks of the levels' pages. */
static int say_which_pages(const struct machine *machine, struct profile_memory *memory)
{
    char *text;
    if (machine->huge_page_bytes == 0 || !memory->method || memory->kernel_count == 0) {
        return 0;
    }
    if (asprintf(&text, "%s; loops on pages as the system gives them", memory->method) < 0) {
        return -ENOMEM;
    }
    free(memory->method);
    memory->method = text;
    return 0;
}

/* `not_concurrent`: some loop has no figure of all PUs together. */
static int measure_loops(const struct loop_question *question, struct profile_memory *memory,
                         bool *not_concurrent)
{
    struct rounds rounds[PROFILE_KERNELS] = {0};
    const enum profile_kernel first = kernel_of_levels(question->probe);
    FREED struct profile_kernel_rate *kernels = calloc(PROFILE_KERNELS, sizeof *kernels);
    size_t done = 0, count = 0;
    int rc = kernels ? 0 : -ENOMEM;
    while (rc == 0 && done < ROUNDS && !probe_late(question->probe)) {
        probe_tell(question->probe, 0.9, "loops over memory");
        rc = one_loop_round(question, done, rounds);
        done += rc == 0;
    }
    TRY(rc);
    if (done == 0) {
        return 0;
    }
    for (size_t k = first; k < PROFILE_KERNELS; k++) {
        kernels[count] = rate_of(&rounds[k], done);
        kernels[count].kernel = (enum profile_kernel)k;
        *not_concurrent |= question->domain->count > 1 && rounds[k].met == 0;
        kernels[count++].levels = k == first;
    }
    free(memory->kernels);
    memory->kernels = TAKE(kernels);
    memory->kernel_count = count;
    return say_which_pages(question->probe->machine, memory);
}

static int measure_domain(struct probe *probe, struct probe_memory *found)
{
    FREED_BY(profile_set_free) struct profile_set domain = {0};
    struct profile_memory *memory = &found->memory;
    bool not_concurrent = false;
    TRY(choose_domain(probe, &domain));
    const struct loop_question question = {probe, &domain, found->array_bytes};
    TRY(measure_loops(&question, memory, &not_concurrent));
    TRY(not_concurrent ? probe_note_beside_others(&memory->quality, "loops not all measured") : 0);
    if (domain.count > 1 && memory->kernel_count > 0) {
        profile_set_free(&memory->kernel_pus);
        memory->kernel_pus = TAKE(domain);
    }
    return 0;
}

int probe_memory_kernels(struct probe *probe, struct probe_memory *found,
                         struct servet_error *error)
{
    int rc = measure_domain(probe, found);
    /* Less than the copies before had: what there is stays, and that is said. */
    if (rc == -ENOMEM) {
        rc = probe_note(&found->memory.quality,
                        "other loops than the copy not measured: not enough memory");
    }
    return probe_error(error, rc, "measuring loops over memory");
}
