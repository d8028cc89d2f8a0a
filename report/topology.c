/* Which pictures of the topology there are, and the part of the page that shows them: one of each
 * node class, and one of each class and priority with the workers that are asked for. */
#include <stdlib.h>

#include "profile/base/cli.h"
#include "profile/query.h"
#include "profile/scope.h"
#include "report/report.h"

/* With more PUs than this, a picture shows only caches that cores share: it has to fit a screen and
 * a slide. */
#define PUS_IN_FULL 32

/* A node class with more PUs is not drawn: no screen shows it. */
#define PICTURE_PUS 1024

/* The workers of the first node of the class that has any, on the PUs that were `chosen`: their
 * numbers by the position of the PU, and how many they are. */
static size_t workers_of_class(const struct report *report, size_t index, const uint32_t *chosen,
                               uint32_t *workers, uint32_t *node)
{
    const struct profile_set *pus = &report->profile->classes[index].pus;
    size_t found = 0;
    memset(workers, 0xff, pus->count * sizeof *workers);
    for (size_t i = 0; i < report->workers; i++) {
        struct profile_place place;
        if (profile_locate(report->profile, chosen[i], &place) && &place.node_class->pus == pus &&
            (!found || place.node == *node)) {
            uint32_t *worker = &workers[profile_set_position(pus, place.os_index)];
            *worker = *worker == MAP_NONE ? (uint32_t)i : *worker;
            *node = place.node;
            found++;
        }
    }
    return found;
}

#define SHOWN_WORKERS 64 /* of a mapping in words */

/* `workers` NULL: none. */
static void put_picture(FILE *out, const struct profile_class *node_class, const uint32_t *workers,
                        const char *id, const char *title)
{
    const size_t pus = node_class->pus.count;
    const struct picture picture = {node_class, workers, pus > PUS_IN_FULL};
    fprintf(out, "<figure id=\"%s\"%s>\n<h3>%s</h3>\n", id,
            picture.compact ? " class=\"wide\"" : "", title);
    if (pus > PICTURE_PUS) {
        fprintf(out,
                "<p class=\"note\">No picture: %zu PUs are more than the %d that are "
                "drawn.</p>\n</figure>\n",
                pus, PICTURE_PUS);
        return;
    }
    fprintf(out, "<div class=\"scroll picture%s\">", picture.compact ? " large" : "");
    const size_t left_out = report_picture_svg(out, &picture, title);
    fputs("</div>\n", out);
    if (picture.compact) {
        fputs("<figcaption>Caches and overhead levels that no two cores share are left out; ", out);
        fputs(workers ? "3:w7 is worker 7 on PU 3.</figcaption>\n"
                      : "numbers are PUs.</figcaption>\n",
              out);
    }
    if (left_out) {
        fprintf(out,
                "<figcaption>%zu measured groups cross others and cannot be drawn as "
                "boxes.</figcaption>\n",
                left_out);
    }
    fputs("</figure>\n", out);
}

static void put_topologies(FILE *out, const struct servet_profile *profile)
{
    for (size_t i = 0; i < profile->class_count; i++) {
        char id[32], title[64] = "The node";
        snprintf(id, sizeof id, "topology-%zu", i);
        if (profile->class_count > 1) {
            snprintf(title, sizeof title, "One node of class %zu", i);
        }
        put_picture(out, &profile->classes[i], NULL, id, title);
    }
}

static void put_chosen(FILE *out, const uint32_t *chosen, size_t count, const char *priority)
{
    fprintf(out, "<p>%s priority: workers 0, 1, … on PUs <strong>", priority);
    for (size_t i = 0; i < count && i < SHOWN_WORKERS; i++) {
        fprintf(out, "%s%u", i ? ", " : "", chosen[i]);
    }
    fprintf(out, "%s</strong></p>\n", count > SHOWN_WORKERS ? " …" : "");
}

static void put_mapping(FILE *out, const struct report *report, enum map_priority priority)
{
    struct servet_error error;
    const struct servet_profile *profile = report->profile;
    const struct map_request request = map_request_of(priority, report->workers);
    const bool memory = priority == MAP_MEMORY;
    const char *name = memory ? "Memory" : "Communication";
    FREED uint32_t *chosen = cli_needed(calloc(report->workers, sizeof *chosen));
    cli_check(map_workers(profile, &request, chosen, NULL, &error), &error);
    put_chosen(out, chosen, report->workers, name);
    for (size_t i = 0; i < profile->class_count; i++) {
        char id[64], title[160];
        uint32_t node = 0;
        FREED uint32_t *workers =
            cli_needed(calloc(profile->classes[i].pus.count, sizeof *workers));
        const size_t count = workers_of_class(report, i, chosen, workers, &node);
        snprintf(id, sizeof id, "map-%s-%zu", memory ? "memory" : "communication", i);
        snprintf(title, sizeof title, "%s priority: %zu of %zu workers on node %u", name, count,
                 report->workers, node);
        if (count) {
            put_picture(out, &profile->classes[i], workers, id, title);
        }
    }
}

void report_html_topology(const struct report *report, FILE *out)
{
    fputs("<section id=\"topology\">\n<h2>Topology</h2>\n<p class=\"note\">Boxes are what the "
          "profile holds: caches with "
          "their effective sizes and groups, memory overhead levels, NUMA domains, "
          "packages.</p>\n<div class=\"grid\">\n",
          out);
    put_topologies(out, report->profile);
    fputs("</div>\n", out);
    if (report->workers) {
        fprintf(out, "<h2 id=\"mapping\">Where %zu worker%s would go</h2>\n", report->workers,
                report->workers == 1 ? "" : "s");
        put_mapping(out, report, MAP_MEMORY);
        put_mapping(out, report, MAP_COMMUNICATION);
    }
    fputs("</section>\n", out);
}
