/* servet-probe --bsp: one run of the BSP probe over backends and numbers of processors, and what it
 * found as entries of the profile, beside those that are there. */
#include "probes/bsp/bsp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/base/cli.h"
#include "profile/codec/codec.h"

static uint32_t highest_h(const struct probe_bsp_fit *fit)
{
    return fit->curve.count ? fit->curve.h[fit->curve.count - 1] : 0;
}

static void note_fit(const struct probe_bsp_fit *fit, const char *which, double flop_per_s,
                     FILE *to)
{
    if (!fit->agree) {
        fprintf(to, "%s%sthe best two of %u runs differ by %.0f %%", probe_separator(to, "; "),
                which, fit->runs, 100 * fit->difference);
    }
    if (fit->enlargements) {
        fprintf(to, "%s%sg or l was negative: interval enlarged to h = %u",
                probe_separator(to, "; "), which, highest_h(fit));
    }
    if (fit->negative) {
        fprintf(to, "%s%snegative %s: g and l are small and of the same order",
                probe_separator(to, "; "), which, fit->line.g < 0 ? "g" : "l");
    }
    if (fit->patience_ended && (!fit->agree || fit->negative)) {
        fprintf(to, "%s%sthe machine was too busy for more runs", probe_separator(to, "; "), which);
    }
    if (fit->bend.h) {
        fprintf(to, "%s%sbend at h = %u (g %.4g before, %.4g from there on)",
                probe_separator(to, "; "), which, fit->bend.h, fit->bend.before.g * flop_per_s,
                fit->bend.after.g * flop_per_s);
    }
}

/* Flags, bend, disagreement, on one line; "" for none. */
static void note_result(const struct probe_bsp *found, char *text, size_t size)
{
    FILE *to = fmemopen(text, size - 1, "w");
    text[0] = text[size - 1] = '\0';
    if (to) {
        note_fit(&found->words, "", found->flop_per_s, to);
        note_fit(&found->packets, "packets: ", found->flop_per_s, to);
        fclose(to);
    }
}

static int make_entry(const struct probe_bsp *found, const char *backend, struct profile_bsp *out)
{
    char note[1024];
    double r = found->flop_per_s;
    const struct bsp_line *words = &found->words.line, *packets = &found->packets.line;
    note_result(found, note, sizeof note);
    *out = (struct profile_bsp){
        .backend = strdup(backend),
        .processors = found->processors,
        .r_flop_per_s = r,
        .vector_length = found->length,
        .g_flops = words->g * r,
        .g_packets_flops = packets->g > 0 ? packets->g * r : 0,
        .l_flops = words->l < 0 ? -1 : words->l * r,
        .t0_flops = found->t0_s * r,
        .h_low = found->words.curve.h[0],
        .h_high = highest_h(&found->words),
        .bend_h = found->words.bend.h,
        .quality = {.origin = PROFILE_MEASURED,
                    .repetitions = found->words.runs,
                    .spread = found->words.difference,
                    .note = note[0] ? strdup(note) : NULL},
    };
    return out->backend && (!note[0] || out->quality.note) ? 0 : -ENOMEM;
}

static bool same_backend(const struct profile_bsp *bsp, const char *backend)
{
    return bsp->backend && strcmp(bsp->backend, backend) == 0;
}

/* Where an entry belongs: before the first of its backend with as many processors or more. */
static size_t place_of_entry(const struct servet_profile *profile, const struct profile_bsp *entry)
{
    size_t place = profile->bsp_count;
    for (size_t i = 0; i < profile->bsp_count; i++) {
        if (same_backend(&profile->bsp[i], entry->backend)) {
            if (profile->bsp[i].processors >= entry->processors) {
                return i;
            }
            place = i + 1;
        }
    }
    return place;
}

int probe_bsp_store(const struct probe_bsp *found, const char *backend,
                    struct servet_profile *profile)
{
    FREED_BY(profile_bsp_free) struct profile_bsp entry = {0};
    TRY(found->words.line.g < 0 ? -ERANGE : make_entry(found, backend, &entry));
    struct profile_bsp *grown = realloc(profile->bsp, (profile->bsp_count + 1) * sizeof *grown);
    TRY(grown ? 0 : -ENOMEM);
    profile->bsp = grown;
    const size_t place = place_of_entry(profile, &entry);
    if (place < profile->bsp_count && same_backend(&grown[place], backend) &&
        grown[place].processors == entry.processors) {
        profile_bsp_free(&grown[place]);
    } else {
        memmove(grown + place + 1, grown + place, (profile->bsp_count - place) * sizeof *grown);
        profile->bsp_count++;
    }
    grown[place] = TAKE(entry);
    return 0;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Do both profiles describe one machine? 0 or -ESTALE. */
static int is_alike(const struct servet_profile *a, const struct servet_profile *b,
                    struct servet_error *error)
{
    bool alike = a->host_name && same_text(a->host_name, b->host_name) &&
                 same_text(a->topology_signature, b->topology_signature) && a->class_count == 1 &&
                 b->class_count == 1 && profile_set_equal(&a->classes[0].pus, &b->classes[0].pus);
    return alike ? 0
                 : profile_error(error, -ESTALE, "the profile is of %s, not of this machine",
                                 a->host_name ? a->host_name : "another one");
}

int probe_bsp_base_profile(struct machine *machine, const char *path, struct servet_profile **out,
                           struct servet_error *error)
{
    struct servet_profile *profile;
    struct servet_error why;
    if (path[0] == '\0' || access(path, F_OK) < 0) {
        *out = TAKE(machine->declared);
        return 0;
    }
    TRY(profile_load(path, &profile, error));
    int rc = machine_is_native(machine) ? profile_matches(profile, "", NULL, &why)
                                        : is_alike(profile, machine->declared, &why);
    if (rc < 0) {
        profile_free(profile);
        return profile_error(error, rc, "%s: %s: not touched (-o FILE writes elsewhere)", path,
                             why.text);
    }
    *out = profile;
    return 0;
}

void probe_bsp_keep(const char *path, struct servet_profile *profile)
{
    struct servet_profile *earlier;
    struct servet_error ignored;
    if (path[0] == '\0' || profile->bsp_count > 0 || profile_load(path, &earlier, &ignored) < 0) {
        return;
    }
    if (is_alike(earlier, profile, &ignored) == 0) {
        profile->bsp_count = TAKE(earlier->bsp_count);
        profile->bsp = TAKE(earlier->bsp);
    }
    profile_free(earlier);
}

/* -- one backend -- */

/* The request, its machine, and its output. */
struct bsp_run {
    const struct bsp_options *options;
    struct machine *machine;
    struct profile_set counts; /* of processors. Owned */
    struct probe tell;
    size_t step; /* of the progress */
    struct servet_profile *profile;
    struct servet_error *error;
};

struct series {
    struct probe_bsp *found;
    size_t count;
};

static void free_series(struct series *series)
{
    for (size_t i = 0; i < series->count; i++) {
        probe_bsp_free(&series->found[i]);
    }
    free(series->found);
}

static int store(const struct bsp_run *run, const struct probe_bsp *found, const char *backend)
{
    const int rc = probe_bsp_store(found, backend, run->profile);
    if (rc == -ERANGE) {
        cli_note(
            "BSP parameters of %u processors (%s): g is negative up to h = %u, so they are left "
            "out; %s",
            found->processors, backend, highest_h(&found->words),
            found->words.patience_ended ? "measure again when nothing else runs"
                                        : "--h takes a larger interval");
        return 0;
    }
    return rc < 0 ? profile_error(run->error, rc, "BSP parameters: %s", strerror(-rc)) : 0;
}

static int run_backend(struct bsp_run *run, const struct bsp_backend *backend)
{
    struct probe_bsp_request request = run->options->request;
    FREED_BY(free_series)
    struct series series = {.found = calloc(run->counts.count, sizeof *series.found)};
    if (!series.found) {
        return profile_error(run->error, -ENOMEM, "BSP parameters: %s", strerror(ENOMEM));
    }
    request.seed = run->tell.seed;
    for (; series.count < run->counts.count; series.count++) {
        probe_progress_next(run->tell.progress_argument, ++run->step, "bsp");
        TRY(probe_bsp(backend, run->counts.ids[series.count], &request, &run->tell,
                      &series.found[series.count], run->error));
    }
    for (size_t i = 0; i < series.count; i++) {
        TRY(store(run, &series.found[i], backend->name));
    }
    return run->options->plot ? probe_bsp_plot(run->options->plot, backend->name, series.found,
                                               series.count, run->error)
                              : 0;
}

/* -- all of them -- */

static int run_mpi(struct bsp_run *run)
{
    FREED_BY(probe_machine_close) struct machine ranks = {0};
    struct servet_error reason;
    int rc = probe_machine_open_mpi(&run->machine->pus, run->machine->cancel, &ranks, &reason);
    bool asked_for = run->options->backends & BSP_BACKEND_MPI;
    if (rc < 0 && (asked_for || rc == -EINTR)) {
        return profile_error(run->error, rc, "%s", reason.text);
    }
    if (rc < 0) {
        probe_progress_end(run->tell.progress_argument);
        cli_note("BSP parameters through MPI skipped: %s", reason.text);
        return 0;
    }
    return run_backend(run, &(struct bsp_backend){"mpi", run->machine, &ranks});
}

/* The numbers of processors that will be measured, ascending. 0 or -ENOMEM. */
static int processor_counts(const struct bsp_options *options, uint32_t pus,
                            struct profile_set *out)
{
    if (options->processors.count) {
        return profile_set_copy(&options->processors, out);
    }
    FREED uint32_t *counts = malloc(((size_t)pus + 1) * sizeof *counts);
    size_t found = 0;
    TRY(counts ? 0 : -ENOMEM);
    for (uint32_t p = 1; p <= pus; p++) {
        if ((p & (p - 1)) == 0 || pus % p == 0) {
            counts[found++] = p;
        }
    }
    return profile_set_from_array(counts, found, out);
}

int probe_bsp_run(const struct bsp_options *options, struct machine *machine, uint64_t seed,
                  struct progress *progress, struct servet_profile *profile,
                  struct servet_error *error)
{
    const bool own = !machine_is_native(machine);
    const unsigned all = BSP_BACKEND_THREADS | (options->no_mpi ? 0u : BSP_BACKEND_MPI),
                   backends = options->backends ? options->backends : all;
    struct bsp_run run = {.options = options,
                          .machine = machine,
                          .tell = {.machine = machine,
                                   .progress = probe_progress_step,
                                   .progress_argument = progress,
                                   .seed = seed},
                          .step = progress->steps,
                          .profile = profile,
                          .error = error};
    int rc = processor_counts(options, (uint32_t)machine->pus.count, &run.counts);
    if (rc < 0) {
        return profile_error(error, rc, "BSP parameters: %s", strerror(-rc));
    }
    const bool both = backends == (BSP_BACKEND_THREADS | BSP_BACKEND_MPI) && !own;
    probe_progress_plan(progress, own ? machine : NULL, (both ? 2 : 1) * run.counts.count);
    if (own || (backends & BSP_BACKEND_THREADS)) {
        rc = run_backend(&run,
                         &(struct bsp_backend){own ? machine->name : "threads", machine, machine});
    }
    if (!own && rc == 0 && (backends & BSP_BACKEND_MPI)) {
        rc = run_mpi(&run);
    }
    profile_set_free(&run.counts);
    return rc;
}
