/* servet-map: which PUs for how many workers, and why. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mapper/command/command.h"
#include "mapper/formats/formats.h"
#include "mapper/map.h"
#include "mapper/traffic/traffic.h"
#include "profile/base/cli.h"
#include "profile/base/file.h"
#include "profile/scope.h"

/* -- mapping -- */

static enum map_priority priority_of(const struct map_options *options)
{
    return options->communication ? MAP_COMMUNICATION : MAP_MEMORY;
}

/* The paper's table, where anybody could read it. */
static bool wants_table(const struct map_options *options, const struct profile_set *allowed)
{
    return options->explain && !options->threads && !options->gpus &&
           allowed->count <= MAP_EXPLAIN_MOST_PUS && options->workers <= MAP_EXPLAIN_MOST_WORKERS;
}

static bool wants_devices(const struct map_options *options)
{
    return options->gpus || options->nics;
}

/* `devices` is set where they were asked for. */
static struct map_mapping choose_places(const struct map_options *options,
                                        const struct servet_profile *profile,
                                        const struct profile_set *allowed, FILE *out,
                                        struct map_devices *devices)
{
    struct servet_error error;
    struct map_device_request request = {
        .ranks = {.priority = priority_of(options),
                  .workers = options->threads ? options->ranks : options->workers,
                  .threads = options->threads,
                  .threads_each = 1,
                  .allowed = allowed,
                  .paper = options->paper,
                  .known = !options->one_by_one},
        .gpus = options->gpus,
        .exclusive = options->exclusive,
        .nics = options->nics};
    const struct map_explainer table = {map_explain_row, out};
    const struct map_explainer *explainer = wants_table(options, allowed) ? &table : NULL;
    size_t places = options->threads ? 0 : options->workers;
    for (size_t r = 0; options->threads && r < options->ranks; r++) {
        places += options->threads[r];
    }
    FREED uint32_t *pus = cli_needed(calloc(places, sizeof *pus));
    cli_check(wants_devices(options) ? map_devices(profile, &request, pus, devices, &error)
              : options->threads     ? map_domains(profile, &request.ranks, pus, &error)
                                     : map_workers(profile, &request.ranks, pus, explainer, &error),
              &error);
    struct map_mapping plan =
        map_mapping_make(profile, pus, request.ranks.workers, options->threads);
    plan.priority = priority_of(options);
    plan.devices = wants_devices(options) ? devices : NULL;
    return plan;
}

/* -- by traffic -- */

static void read_matrix(struct map_options *options, struct map_matrix *matrix)
{
    struct servet_error error;
    int rc = map_matrix_read(options->matrix, matrix, &error);
    if (rc == -ENOMEM) {
        cli_fail("%s", error.text);
    }
    if (rc < 0) {
        cli_usage("--matrix: %s", error.text);
    }
    size_t ranks = options->threads ? options->ranks : options->workers;
    if (ranks && ranks != matrix->ranks) {
        cli_usage("%s: expected %u, the ranks of %s, got %zu", options->ranks ? "-r" : "-n",
                  matrix->ranks, options->matrix, ranks);
    }
    if (!options->threads) {
        options->workers = matrix->ranks;
    }
    for (size_t r = 1; options->threads && r < ranks && !matrix->threads; r++) {
        matrix->threads = options->threads[r] != options->threads[0] ? options->threads : NULL;
    }
}

static void explain_traffic(FILE *out, const struct map_traffic_seconds *seconds,
                            const struct map_view *view)
{
    const bool greedy = seconds->greedy < seconds->in_order;
    fprintf(out, "predicted time of all messages%s: rank order %.6g%s greedy %.6g%s\n",
            view->latencies_known     ? ", s"
            : view->profile->measured ? " (layers x bytes, latencies were not measured)"
                                      : " (layers x bytes, nothing was measured)",
            seconds->in_order, greedy ? "" : " (taken)", seconds->greedy, greedy ? " (taken)" : "");
}

/* Ranks with threads change regions: rank r gets all of the one that was rank placed[r]'s. */
static void give_regions(const uint32_t *placed, struct map_mapping *plan)
{
    FREED struct map_place *old = cli_needed(calloc(plan->place_count, sizeof *old));
    memcpy(old, plan->places, plan->place_count * sizeof *old);
    for (size_t r = 0; r < plan->rank_count; r++) {
        memcpy(plan->places + plan->first[r], old + plan->first[placed[r]],
               (plan->first[r + 1] - plan->first[r]) * sizeof *old);
    }
}

static void plan_by_traffic(const struct map_options *options, const struct map_matrix *matrix,
                            FILE *out, struct map_mapping *plan)
{
    FREED_BY(map_view_free) struct map_view view;
    struct servet_error error;
    cli_check(map_view_make(plan->profile, plan->priority, matrix->ranks, &view, &error), &error);
    uint32_t *given = cli_needed(map_arena_get(&view.arena, matrix->ranks, sizeof *given));
    uint32_t *placed = cli_needed(map_arena_get(&view.arena, matrix->ranks, sizeof *placed));
    for (size_t r = 0; r < matrix->ranks; r++) {
        given[r] = map_view_leaf(&view, plan->places[plan->first[r]].pu);
    }
    struct map_traffic_seconds seconds;
    cli_done(map_place_ranks(&view, matrix, given, placed, &seconds));
    give_regions(placed, plan);
    if (options->explain || options->compare) {
        explain_traffic(out, &seconds, &view);
    }
}

/* Without a format the table; else the places of the nodes as workers. */
static void answer_worth(const struct map_options *options, const struct servet_profile *profile,
                         const struct profile_set *allowed, FILE *out)
{
    struct servet_error error;
    size_t count;
    if (!options->format) {
        map_worth_table(out, profile, allowed, options->json);
        return;
    }
    FREED uint32_t *pus = map_worth_places(profile, allowed, &count);
    FREED_BY(map_mapping_free)
    struct map_mapping plan = map_mapping_make(profile, pus, count, NULL);
    cli_check(map_format_print(out, options->format, &plan, &error), &error);
}

static struct map_figures predict_places(const struct map_mapping *plan)
{
    FREED_BY(map_view_free) struct map_view view;
    struct map_figures figures;
    struct servet_error error;
    cli_check(map_view_make(plan->profile, plan->priority, plan->place_count, &view, &error),
              &error);
    uint32_t *leaves = cli_needed(map_arena_get(&view.arena, plan->place_count, sizeof *leaves));
    for (size_t i = 0; i < plan->place_count; i++) {
        leaves[i] = map_view_leaf(&view, plan->places[i].pu);
    }
    cli_done(map_figures_of(&view, leaves, plan->place_count, &figures));
    return figures;
}

/* Where no priority was given, and the other one lets more or fewer share a cache. */
static void note_priority(const struct map_options *options, const struct profile_set *allowed,
                          const struct map_mapping *plan)
{
    struct map_options other = *options;
    FREED_BY(map_devices_free) struct map_devices devices = {0};
    size_t level = MAP_FIGURE_LEVELS;
    if (!options->undecided) {
        return;
    }
    other.communication = true;
    other.explain = false;
    FREED_BY(map_mapping_free)
    struct map_mapping placed = choose_places(&other, plan->profile, allowed, NULL, &devices);
    const struct map_figures here = predict_places(plan), there = predict_places(&placed);
    while (level && here.cache_most[level - 1] == there.cache_most[level - 1]) {
        level--;
    }
    if (level) {
        cli_note(
            "the default, --mem-prior, puts at most %u worker%s on an L%zu cache, --comm-prior "
            "%u: for programs of many messages try both",
            here.cache_most[level - 1], here.cache_most[level - 1] == 1 ? "" : "s", level,
            there.cache_most[level - 1]);
    }
}

/* Where there are more workers than that, it is said. */
static void note_quota(const struct map_options *options, size_t workers)
{
    const size_t most = map_common_most(&options->machine);
    if (workers > most) {
        cli_note("%zu workers in a quota of %.3g CPUs: more than %zu at a time wait", workers,
                 options->machine.quota, most);
    }
}

/* The PUs that answer how many workers: in a quota those of so many. */
static void keep_to_quota(const struct map_options *options, const struct servet_profile *profile,
                          struct profile_set *allowed)
{
    struct servet_error error;
    const size_t most = map_common_most(&options->machine);
    if (!(options->worth || options->suggest) || allowed->count <= most) {
        return;
    }
    cli_note("a quota of %.3g CPUs: no more than %zu of %zu workers run at a time",
             options->machine.quota, most, allowed->count);
    cli_check(map_worth_keep(profile, priority_of(options), most, allowed, &error), &error);
}

static void answer_suggest(const struct map_options *options, const struct servet_profile *profile,
                           const struct profile_set *allowed, FILE *out)
{
    const char *described = options->machine.topology;
    const struct map_suggest_request request = {
        .priority = priority_of(options),
        .nodes = options->node_count,
        .allowed = allowed,
        .unsized = described && access(described, F_OK) < 0 && !strstr(described, "size=")};
    if (options->smt > 1) {
        cli_note("--suggest: one thread on each core; no topology says who gains by a second "
                 "one, servet-bench --tune tries it");
    }
    map_suggest_table(out, profile, &request, options->json);
}

/* Writes all that was asked for and closes `out`, then says its notes; ends the program when some
 * of it cannot be said. */
static void answer_all(const struct map_options *options, const struct servet_profile *profile,
                       const struct profile_set *allowed, const struct map_matrix *matrix,
                       FILE *out)
{
    if (options->worth || options->suggest) {
        (options->worth ? answer_worth : answer_suggest)(options, profile, allowed, out);
        cli_done(fclose(out));
        return;
    }
    FREED_BY(map_devices_free) struct map_devices devices = {0};
    struct servet_error error;
    FREED_BY(map_mapping_free)
    struct map_mapping plan = choose_places(options, profile, allowed, out, &devices);
    if (options->matrix) {
        plan_by_traffic(options, matrix, out, &plan);
    }
    if (options->explain && !wants_table(options, allowed)) {
        map_explain_summary(out, &plan);
    }
    if (options->compare) {
        map_compare(out, &plan, allowed);
    }
    cli_check(map_format_print(out, options->format, &plan, &error), &error);
    cli_done(fclose(out));
    note_priority(options, allowed, &plan);
    note_quota(options, plan.place_count);
    if (plan.place_count > allowed->count) {
        cli_note("%zu workers on %zu PUs: some PUs get more than one", plan.place_count,
                 allowed->count);
    }
}

/* --cluster: the PUs of the job's nodes take the place of --cpuset, or what that leaves of them. */
static void choose_nodes(struct map_options *options, const struct servet_profile *profile)
{
    struct servet_error error;
    struct profile_set nodes = {0}, both;
    map_refuse_if(options->cluster && profile_node_count(profile) < 2,
                  "--cluster: expected the profile of a cluster (mpirun servet-probe --cluster "
                  "makes one), this is one of "
                  "a single node");
    if (!options->nodes && !options->slurm) {
        return;
    }
    cli_check(options->slurm ? map_job_from_slurm(profile, &nodes, &error)
                             : map_job_from_file(profile, options->nodes, &nodes, &error),
              &error);
    if (options->machine.cpuset.count) {
        cli_done(profile_set_intersect(&options->machine.cpuset, &nodes, &both));
        if (!both.count) {
            cli_usage("--cpuset: expected PUs of the job's nodes");
        }
        profile_set_free(&nodes);
        nodes = both;
    }
    profile_set_free(&options->machine.cpuset);
    options->machine.cpuset = nodes;
}

/* Where it was not asked for, it is said. */
static void note_nodes(const struct map_options *options, const struct servet_profile *profile)
{
    bool is_asked =
        options->cluster || options->machine.cpuset.count || options->worth || options->suggest;
    if (!is_asked && profile_node_count(profile) > 1) {
        cli_note("the profile is of %u nodes, and workers are placed on all of them; expected "
                 "--cluster, or --cpuset 0-%u for the first node alone",
                 profile_node_count(profile),
                 profile_class_span(profile_node_class(profile, 0)) - 1);
    }
}

int main(int argc, char **argv)
{
    struct map_options options;
    map_options_read(argc, argv, &options);
    struct map_matrix matrix = {0};
    if (options.matrix) {
        read_matrix(&options, &matrix);
    }
    struct servet_profile *profile = map_common_machine_open(&options.machine);
    choose_nodes(&options, profile);
    struct map_limits limits = {options.machine.cpuset.count ? &options.machine.cpuset : NULL,
                                options.smt, options.kind};
    struct profile_set allowed = map_allowed_pus(profile, &limits);
    keep_to_quota(&options, profile, &allowed);
    char *text = NULL;
    size_t size = 0;
    FILE *out = cli_needed(profile_stream_open(&text, &size));
    answer_all(&options, profile, &allowed, &matrix, out);
    note_nodes(&options, profile);
    fwrite(text, 1, size, stdout);
    free(text);
    profile_set_free(&allowed);
    map_matrix_free(&matrix);
    map_options_free(&options);
    profile_free(profile);
    return cli_finish(CLI_OK);
}
