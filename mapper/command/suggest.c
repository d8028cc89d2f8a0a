/* The output of --suggest: ways to divide a node among ranks with threads, and the line that starts
 * the one that is proposed. */

#include "mapper/command/command.h"
#include "profile/base/cli.h"

#define GIGA 1e9
#define MIB 1048576.0
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
    fputs(bytes ? MAP_BANDWIDTHS "\n" : "", out);
    snprintf(title, sizeof title, "L%u, MiB", found->cache_level);
    fprintf(out, "  %6s   %-7s", "ranks", "threads");
    map_print_cell(out, "ordinary", ordinary);
    map_print_cell(out, "levels", bytes);
    map_print_cell(out, title, caches);
    fprintf(out, "  why\n");
    for (size_t i = 0; i < found->count; i++) {
        const struct map_suggestion *row = &found->list[i];
        fprintf(out, "%c %6u x %-7u", row->chosen ? '*' : ' ', row->ranks, row->threads);
        map_print_figure(out, row->ordinary_bytes_per_s / GIGA, ordinary);
        map_print_figure(out, row->bytes_per_s / GIGA, bytes);
        map_print_figure(out, row->cache_bytes / MIB, caches);
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

static json_t *row_json(const struct map_suggestions *found, const struct map_suggestion *row)
{
    char line[LINE_SIZE];
    map_suggest_launch(found, row, line, sizeof line);
    return json_pack("{s:I, s:I, s:o, s:o, s:o, s:b, s:s, s:s}", "ranks_per_node",
                     (json_int_t)row->ranks, "threads", (json_int_t)row->threads,
                     "ordinary_bytes_per_s", map_json_figure(row->ordinary_bytes_per_s),
                     "bytes_per_s", map_json_figure(row->bytes_per_s), "cache_bytes",
                     map_json_figure(row->cache_bytes), "chosen", row->chosen, "why", row->why,
                     "launch", line);
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
    map_suggest(profile, request, &found);
    if (json) {
        print_json(out, &found);
    } else {
        print_suggestions(out, &found, profile->measured);
    }
}
