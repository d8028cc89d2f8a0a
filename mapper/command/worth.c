/* The output of --worth: how many workers get nearly all of a memory's bandwidth, and where they
 * sit; how many messages at a time a layer takes. */
#include <jansson.h>
#include <stdlib.h>

#include "mapper/command/command.h"
#include "mapper/worth/worth.h"
#include "profile/base/cli.h"
#include "profile/scope.h"

#define GIGA 1e9

/* Digits of a figure that was measured or predicted. */
#define JSON_DIGITS 6

/* -- in words -- */

void map_print_cell(FILE *out, const char *text, bool column)
{
    if (column) {
        fprintf(out, " %9s", text);
    }
}

void map_print_figure(FILE *out, double value, bool column)
{
    char text[32];
    snprintf(text, sizeof text, "%.2f", value);
    map_print_cell(out, value > 0 ? text : "-", column);
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
    map_print_figure(out, row->worth.ordinary_bytes_per_s / GIGA, true);
    fprintf(out, " %9.2f %9.2f %9s  %s\n", row->worth.bytes_per_s / GIGA,
            row->worth.most_bytes_per_s / GIGA, most, row->places);
}

static void print_rows(FILE *out, const struct map_worth_rows *rows)
{
    fprintf(out,
            "the fewest workers that get %.0f %% of what any number gets, predicted from what was "
            "measured\n" MAP_BANDWIDTHS "; most, levels of any number\n"
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

json_t *map_json_figure(double value)
{
    return value > 0 ? json_real(value) : json_null();
}

static json_t *row_json(const struct map_worth_row *row)
{
    json_t *object = json_pack("{s:s, s:I, s:I}", "scope", row->scope, "groups",
                               (json_int_t)row->groups, "pus", (json_int_t)row->pus);
    if (object && row->measured) {
        json_t *worth = json_pack(
            "{s:I, s:o, s:f, s:f, s:I, s:s}", "worth", (json_int_t)row->worth.workers,
            "ordinary_bytes_per_s", map_json_figure(row->worth.ordinary_bytes_per_s), "bytes_per_s",
            row->worth.bytes_per_s, "most_bytes_per_s", row->worth.most_bytes_per_s, "curve_to",
            (json_int_t)row->worth.measured_workers, "places", row->places);
        json_object_update(object, worth);
        json_decref(worth);
    }
    return object;
}

static void print_json(FILE *out, const struct map_worth_rows *rows)
{
    json_t *workers = json_array(), *messages = json_array();
    for (size_t i = 0; i < rows->count; i++) {
        json_array_append_new(workers, row_json(&rows->rows[i]));
    }
    for (size_t i = 0; i < rows->queue_count; i++) {
        const struct map_queue_row *row = &rows->queues[i];
        json_array_append_new(messages,
                              json_pack("{s:s, s:I, s:b, s:I}", "layer", row->layer, "worth",
                                        (json_int_t)row->worth, "or_more", row->worth == row->most,
                                        "curve_to", (json_int_t)row->most));
    }
    map_print_object(out, json_pack("{s:f, s:o, s:o}", "share", MAP_WORTH_SHARE, "workers", workers,
                                    "messages", messages));
}

void map_print_object(FILE *out, json_t *object)
{
    cli_done(
        json_dumpf(cli_needed(object), out, JSON_INDENT(2) | JSON_REAL_PRECISION(JSON_DIGITS)));
    json_decref(object);
    fputc('\n', out);
}

void map_worth_table(FILE *out, const struct servet_profile *profile,
                     const struct profile_set *allowed, bool json)
{
    FREED_BY(map_worth_rows_free) struct map_worth_rows rows;
    struct servet_error error;
    cli_check(map_worth_rows_make(profile, allowed, &rows, &error), &error);
    (json ? print_json : print_rows)(out, &rows);
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
