#include "html_map.h"

#include "map.h"
#include "picture.h"
#include "query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A picture of more PUs than this keeps its own size and is scrolled; beyond the second bound none is drawn: lstopo
 * takes seconds and no screen shows it. */
#define PUS_FITTED 32
#define PUS_DRAWN 1024
#define SHOWN_WORKERS 64 /* of a mapping in words */

static void put_picture(FILE *out, const struct profile_class *node_class, const struct picture_workers *workers,
                        const char *id, const char *title)
{
    struct servet_error error;
    char *svg = NULL;
    size_t left_out = 0;
    fprintf(out, "<figure id=\"%s\">\n<h3>%s</h3>\n", id, title);
    if (node_class->pus.count > PUS_DRAWN) {
        fprintf(out, "<p class=\"note\">No picture: %zu PUs are more than the %d that are drawn.</p>\n</figure>\n",
                node_class->pus.count, PUS_DRAWN);
        return;
    }
    int rc = picture_svg(node_class, workers, id, &svg, &left_out, &error);
    if (rc < 0) {
        fputs("<p class=\"note\">No picture of the topology: ", out);
        html_text(out, error.text);
        fputs(rc == -ENOENT ? " (Debian: hwloc-nox or hwloc).</p>\n</figure>\n" : ".</p>\n</figure>\n", out);
        return;
    }
    fprintf(out, "<div class=\"scroll picture%s\">%s</div>\n", node_class->pus.count > PUS_FITTED ? " large" : "", svg);
    if (left_out) {
        fprintf(out, "<figcaption>%zu measured groups cross others and cannot be drawn as boxes.</figcaption>\n",
                left_out);
    }
    fputs("</figure>\n", out);
    free(svg);
}

/* -- a mapping -------------------------------------------------------------------------------------------------------
 */

static void put_chosen(FILE *out, const uint32_t *chosen, size_t count, const char *how)
{
    fprintf(out, "<p>%s: workers 0, 1, … on PUs <strong>", how);
    for (size_t i = 0; i < count && i < SHOWN_WORKERS; i++) {
        fprintf(out, "%s%u", i ? ", " : "", chosen[i]);
    }
    fprintf(out, "%s</strong></p>\n", count > SHOWN_WORKERS ? " …" : "");
}

/* The workers of the first node of the class that has any. */
static size_t workers_of_class(const struct servet_profile *profile, size_t index, const uint32_t *chosen, size_t count,
                               uint32_t *pus, uint32_t *labels, uint32_t *node)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        struct profile_place place;
        if (!profile_locate(profile, chosen[i], &place) || place.node_class != &profile->classes[index] ||
            (found && place.node != *node)) {
            continue;
        }
        *node = place.node;
        pus[found] = place.os_index;
        labels[found++] = (uint32_t)i;
    }
    return found;
}

static int put_mapping(const struct report *report, enum map_priority priority, FILE *out, struct servet_error *error)
{
    const struct servet_profile *profile = report->profile;
    const struct map_request request = {.priority = priority, .workers = report->workers};
    const char *how = priority == MAP_MEMORY ? "Memory priority" : "Communication priority";
    uint32_t *chosen = calloc(3 * report->workers, sizeof *chosen);
    if (!chosen) {
        return profile_error(error, -ENOMEM, "mapping %zu workers: %s", report->workers, strerrordesc_np(ENOMEM));
    }
    int rc = map_workers(profile, &request, chosen, NULL, error);
    if (rc < 0) {
        free(chosen);
        return rc;
    }
    put_chosen(out, chosen, report->workers, how);
    for (size_t i = 0; i < profile->class_count; i++) {
        uint32_t *pus = chosen + report->workers, *labels = chosen + 2 * report->workers, node = 0;
        struct picture_workers workers = {pus, labels,
                                          workers_of_class(profile, i, chosen, report->workers, pus, labels, &node)};
        char id[64], title[128];
        snprintf(id, sizeof id, "map-%s-%zu", priority == MAP_MEMORY ? "memory" : "communication", i);
        snprintf(title, sizeof title, "%s: %zu of %zu workers on node %u", how, workers.count, report->workers, node);
        if (workers.count) {
            put_picture(out, &profile->classes[i], &workers, id, title);
        }
    }
    free(chosen);
    return 0;
}

int html_topology(const struct report *report, FILE *out, struct servet_error *error)
{
    const struct servet_profile *profile = report->profile;
    fputs(
        "<section id=\"topology\">\n<h2>Topology</h2>\n<p class=\"note\">Boxes are what the profile holds: caches with "
        "their effective sizes and groups, memory overhead levels, NUMA domains, packages.</p>\n<div class=\"grid\">\n",
        out);
    for (size_t i = 0; i < profile->class_count; i++) {
        char id[40], title[96];
        snprintf(id, sizeof id, "topology-%zu", i);
        snprintf(title, sizeof title, "One node of class %zu", i);
        put_picture(out, &profile->classes[i], NULL, id, profile->class_count > 1 ? title : "The node");
    }
    fputs("</div>\n", out);
    int rc = 0;
    if (report->workers) {
        fprintf(out, "<h2 id=\"mapping\">Where %zu worker%s would go</h2>\n", report->workers,
                report->workers == 1 ? "" : "s");
        rc = put_mapping(report, MAP_MEMORY, out, error);
        rc = rc < 0 ? rc : put_mapping(report, MAP_COMMUNICATION, out, error);
    }
    fputs("</section>\n", out);
    return rc;
}
