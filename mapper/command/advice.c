/* The output of --worth: how many workers get nearly all of a memory's bandwidth, and where they
 * sit; how many messages at a time a layer takes. And of --suggest: ways to divide a node among
 * ranks with threads, and the line that starts the one that is proposed. */
#include <jansson.h>
#include <stdlib.h>

#include "mapper/command/command.h"
#include "profile/base/cli.h"
#include "profile/scope.h"

#define GIGA 1e9
#define MIB 1048576.0

/* The two bandwidths of a placement, in the heads of tables. */
#define BANDWIDTHS                                                                                 \
    "GB/s: ordinary, of copies by ordinary stores on the system's pages; levels, of the copy of "  \
    "the levels"

/* Digits of a figure that was measured or predicted. */
#define JSON_DIGITS 6

/* -- in words -- */

/* A cell of nine characters; without `column` none. */
static void print_cell(FILE *out, const char *text, bool column)
{
    if (column) {
        fprintf(out, " %9s", text);
    }
}

/* With two digits, "-" for what is not known. */
static void print_figure(FILE *out, double value, bool column)
{
    char text[32];
    snprintf(text, sizeof text, "%.2f", value);
    print_cell(out, value > 0 ? text : "-", column);
}

static void print_row(FILE *out, const struct map_worth_row *row)
{
    char name[96], most[16];
    snprintf(name, sizeof name, row->groups > 1 ? "%s, %zu of them" : "%s", row->scope,
             row->groups);
    if (!row->measured) {
        fprintf(out, "%-32s %6zu %7s\n", name, row->pus, "-");
        return;
    }
    snprintf(most, sizeof most, row->worth.measured_workers ? "%u" : "-",
             row->worth.measured_workers);
    fprintf(out, "%-32s %6zu %7zu", name, row->pus, row->worth.workers);
    print_figure(out, row->worth.ordinary_bytes_per_s / GIGA, true);
    fprintf(out, " %9.2f %9.2f %9s  %s\n", row->worth.bytes_per_s / GIGA,
            row->worth.most_bytes_per_s / GIGA, most, row->places);
}

static void print_rows(FILE *out, const struct map_worth_rows *rows)
{
    fprintf(out,
            "the fewest workers that get %.0f %% of what any number gets, predicted from what was "
            "measured\n" BANDWIDTHS "; most, levels of any number\n"
            "%-32s %6s %7s %9s %9s %9s %9s  %s\n",
            MAP_WORTH_SHARE * 100, "", "PUs", "workers", "ordinary", "levels", "most", "curve to",
            "places");
    for (size_t i = 0; i < rows->count; i++) {
        print_row(out, &rows->rows[i]);
    }
    if (rows->queue_count) {
        fprintf(out, "\nmessages at a time beyond which a layer only queues\n%-32s %11s %9s\n",
                "layer", "messages", "curve to");
    }
    for (size_t i = 0; i < rows->queue_count; i++) {
        const struct map_queue_row *row = &rows->queues[i];
        char number[32];
        snprintf(number, sizeof number, "%u%s", row->worth,
                 row->worth == row->most ? " or more" : "");
        fprintf(out, "%-32s %11s %9u\n", row->layer, number, row->most);
    }
}

/* -- as JSON -- */

/* Takes the object (NULL: memory was short) and writes it on lines of its own. */
static void print_json(FILE *out, json_t *object)
{
    cli_done(
        json_dumpf(cli_needed(object), out, JSON_INDENT(2) | JSON_REAL_PRECISION(JSON_DIGITS)));
    json_decref(object);
    fputc('\n', out);
}

static json_t *json_figure(double value)
{
    return value > 0 ? json_real(value) : json_null();
}

static json_t *worth_json(const struct map_worth_row *row)
{
    json_t *object = json_pack("{s:s, s:I, s:I}", "scope", row->scope, "groups",
                               (json_int_t)row->groups, "pus", (json_int_t)row->pus);
    if (object && row->measured) {
        json_t *worth = json_pack(
            "{s:I, s:o, s:f, s:f, s:I, s:s}", "worth", (json_int_t)row->worth.workers,
            "ordinary_bytes_per_s", json_figure(row->worth.ordinary_bytes_per_s), "bytes_per_s",
            row->worth.bytes_per_s, "most_bytes_per_s", row->worth.most_bytes_per_s, "curve_to",
            (json_int_t)row->worth.measured_workers, "places", row->places);
        json_object_update(object, worth);
        json_decref(worth);
    }
    return object;
}

static void print_rows_json(FILE *out, const struct map_worth_rows *rows)
{
    json_t *workers = json_array(), *messages = json_array();
    for (size_t i = 0; i < rows->count; i++) {
        json_array_append_new(workers, worth_json(&rows->rows[i]));
    }
    for (size_t i = 0; i < rows->queue_count; i++) {
        const struct map_queue_row *row = &rows->queues[i];
        json_array_append_new(messages,
                              json_pack("{s:s, s:I, s:b, s:I}", "layer", row->layer, "worth",
                                        (json_int_t)row->worth, "or_more", row->worth == row->most,
                                        "curve_to", (json_int_t)row->most));
    }
    print_json(out, json_pack("{s:f, s:o, s:o}", "share", MAP_WORTH_SHARE, "workers", workers,
                              "messages", messages));
}

void map_worth_table(FILE *out, const struct servet_profile *profile,
                     const struct profile_set *allowed, bool json)
{
    FREED_BY(map_worth_rows_free) struct map_worth_rows rows;
    struct servet_error error;
    cli_check(map_worth_rows_make(profile, allowed, &rows, &error), &error);
    (json ? print_rows_json : print_rows)(out, &rows);
}

uint32_t *map_worth_places(const struct servet_profile *profile, const struct profile_set *allowed,
                           size_t *count)
{
    FREED_BY(map_part_free) struct map_part before = {0};
    struct map_worth worth = {0};
    struct servet_error error;
    uint32_t *found = cli_needed(calloc(allowed->count + 1, sizeof *found));
    FREED uint32_t *places = cli_needed(calloc(allowed->count + 1, sizeof *places));
    *count = 0;
    for (uint32_t n = 0; n < profile_node_count(profile); n++) {
        struct map_part node;
        cli_done(map_part_of_node(profile, n, allowed, &node));
        /* A node that is like the one before it has the same places. */
        bool alike = before.of == node.of && profile_set_equal(&before.allowed, &node.allowed);
        if (!alike && node.allowed.count) {
            cli_check(map_worth(node.of, &node.allowed, places, &worth, &error), &error);
        }
        for (size_t i = 0; node.allowed.count && i < worth.workers; i++) {
            found[(*count)++] = node.first_pu + places[i];
        }
        map_part_free(&before);
        before = node;
    }
    return found;
}

/* -- suggestions -- */

#define LINE_SIZE 256

static void print_suggestions(FILE *out, const struct map_suggestions *found, bool measured)
{
    char line[LINE_SIZE], title[24];
    bool bytes = false, ordinary = false, caches = false;
    for (size_t i = 0; i < found->count; i++) {
        bytes |= found->list[i].bytes_per_s > 0;
        ordinary |= found->list[i].ordinary_bytes_per_s > 0;
        caches |= found->list[i].cache_bytes > 0;
    }
    fprintf(out, "%u node%s of %u cores, %s priority; predicted from the %s, nothing is run\n",
            found->nodes, found->nodes == 1 ? "" : "s", found->cores,
            found->priority == MAP_MEMORY ? "memory" : "communication",
            measured ? "profile" : "topology alone (servet-probe measures a profile)");
    fputs(bytes ? BANDWIDTHS "\n" : "", out);
    snprintf(title, sizeof title, "L%u, MiB", found->cache_level);
    fprintf(out, "  %6s   %-7s", "ranks", "threads");
    print_cell(out, "ordinary", ordinary);
    print_cell(out, "levels", bytes);
    print_cell(out, title, caches);
    fprintf(out, "  why\n");
    for (size_t i = 0; i < found->count; i++) {
        const struct map_suggestion *row = &found->list[i];
        fprintf(out, "%c %6u x %-7u", row->chosen ? '*' : ' ', row->ranks, row->threads);
        print_figure(out, row->ordinary_bytes_per_s / GIGA, ordinary);
        print_figure(out, row->bytes_per_s / GIGA, bytes);
        print_figure(out, row->cache_bytes / MIB, caches);
        fprintf(out, "  %s\n", row->why);
        if (row->chosen) {
            map_suggest_launch(found, row, line, sizeof line);
        }
    }
    fprintf(out, "ranks%s of a node%s; start the one with a *:\n  %s\n", bytes ? " and GB/s" : "",
            caches ? ", cache of a thread" : "", line);
    fprintf(out,
            "%s, on any number of nodes; the program itself is measured by\n"
            "  servet-bench --tune -- mpirun -n {ranks} ./app\n",
            found->fed ? "it has what the measured bandwidth feeds"
                       : "a rule that got 0.90 of the best published chose it");
}

static json_t *suggestion_json(const struct map_suggestions *found,
                               const struct map_suggestion *row)
{
    char line[LINE_SIZE];
    map_suggest_launch(found, row, line, sizeof line);
    return json_pack("{s:I, s:I, s:o, s:o, s:o, s:b, s:s, s:s}", "ranks_per_node",
                     (json_int_t)row->ranks, "threads", (json_int_t)row->threads,
                     "ordinary_bytes_per_s", json_figure(row->ordinary_bytes_per_s), "bytes_per_s",
                     json_figure(row->bytes_per_s), "cache_bytes", json_figure(row->cache_bytes),
                     "chosen", row->chosen, "why", row->why, "launch", line);
}

static void print_suggestions_json(FILE *out, const struct map_suggestions *found)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < found->count; i++) {
        json_array_append_new(rows, suggestion_json(found, &found->list[i]));
    }
    print_json(out, json_pack("{s:s, s:I, s:I, s:I, s:o}", "priority",
                              found->priority == MAP_MEMORY ? "memory" : "communication", "nodes",
                              (json_int_t)found->nodes, "cores", (json_int_t)found->cores,
                              "cache_level", (json_int_t)found->cache_level, "suggestions", rows));
}

void map_suggest_table(FILE *out, const struct servet_profile *profile,
                       const struct map_suggest_request *request, bool json)
{
    struct map_suggestions found;
    map_suggest(profile, request, &found);
    if (json) {
        print_suggestions_json(out, &found);
    } else {
        print_suggestions(out, &found, profile->measured);
    }
}
