/* The output of --suggest: ways to divide a node among ranks with threads, and the line that starts
 * the one that is proposed. */

#include "mapper/command/command.h"
#include "profile/base/cli.h"

#define GIGA 1e9
#define MIB 1048576.0
#define LINE_SIZE 256

/* "-" for what is not known. */
static void print_figure(FILE *out, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.2f", value);
    fprintf(out, " %9s", value > 0 ? text : "-");
}

static void print_suggestions(FILE *out, const struct map_suggestions *found, bool measured)
{
    char line[LINE_SIZE], cache[24];
    fprintf(out, "%u node%s of %u cores, %s priority; predicted from the %s, nothing is run\n",
            found->nodes, found->nodes == 1 ? "" : "s", found->cores,
            found->priority == MAP_MEMORY ? "memory" : "communication",
            measured ? "profile" : "topology alone (servet-probe measures a profile)");
    snprintf(cache, sizeof cache, "L%u, MiB", found->cache_level);
    fprintf(out, "  %6s   %-7s %9s %9s  why\n", "ranks", "threads", "GB/s",
            found->cache_level ? cache : "");
    for (size_t i = 0; i < found->count; i++) {
        const struct map_suggestion *row = &found->list[i];
        fprintf(out, "%c %6u x %-7u", row->chosen ? '*' : ' ', row->ranks, row->threads);
        print_figure(out, row->bytes_per_s / GIGA);
        print_figure(out, row->cache_bytes / MIB);
        fprintf(out, "  %s\n", row->why);
        if (row->chosen) {
            map_suggest_launch(found, row, line, sizeof line);
        }
    }
    fprintf(out, "ranks and GB/s of a node, cache of a thread; start the one with a *:\n  %s\n",
            line);
}

static json_t *row_json(const struct map_suggestions *found, const struct map_suggestion *row)
{
    char line[LINE_SIZE];
    map_suggest_launch(found, row, line, sizeof line);
    return json_pack("{s:I, s:I, s:o, s:o, s:b, s:s, s:s}", "ranks_per_node",
                     (json_int_t)row->ranks, "threads", (json_int_t)row->threads, "bytes_per_s",
                     row->bytes_per_s > 0 ? json_real(row->bytes_per_s) : json_null(),
                     "cache_bytes",
                     row->cache_bytes > 0 ? json_real(row->cache_bytes) : json_null(), "chosen",
                     row->chosen, "why", row->why, "launch", line);
}

static void print_json(FILE *out, const struct map_suggestions *found)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < found->count; i++) {
        json_array_append_new(rows, row_json(found, &found->list[i]));
    }
    map_print_object(out,
                     json_pack("{s:s, s:I, s:I, s:I, s:o}", "priority",
                               found->priority == MAP_MEMORY ? "memory" : "communication", "nodes",
                               (json_int_t)found->nodes, "cores", (json_int_t)found->cores,
                               "cache_level", (json_int_t)found->cache_level, "suggestions", rows));
}

void map_suggest_table(FILE *out, const struct servet_profile *profile,
                       const struct map_suggest_request *request, bool json)
{
    struct map_suggestions found;
    struct servet_error error;
    cli_check(map_suggest(profile, request, &found, &error), &error);
    if (json) {
        print_json(out, &found);
    } else {
        print_suggestions(out, &found, profile->measured);
    }
}
