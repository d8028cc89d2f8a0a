#include "html_map.h"

#include "pictures.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_WORKERS 64 /* of a mapping in words */

static void put_picture(FILE *out, const struct pictures_item *item)
{
    struct servet_error error;
    char *svg = NULL;
    size_t left_out = 0, pus = item->picture.node_class->pus.count;
    fprintf(out, "<figure id=\"%s\">\n<h3>%s</h3>\n", item->id, item->title);
    if (pus > PICTURE_PUS) {
        fprintf(out, "<p class=\"note\">No picture: %zu PUs are more than the %d that are drawn.</p>\n</figure>\n", pus,
                PICTURE_PUS);
        return;
    }
    int rc = picture_svg(&item->picture, item->id, &svg, &left_out, &error);
    if (rc < 0) {
        fputs("<p class=\"note\">No picture of the topology: ", out);
        html_text(out, error.text);
        fputs(rc == -ENOENT ? " (Debian: hwloc-nox or hwloc).</p>\n</figure>\n" : ".</p>\n</figure>\n", out);
        return;
    }
    fprintf(out, "<div class=\"scroll picture%s\">%s</div>\n", item->picture.compact ? " large" : "", svg);
    if (item->picture.compact) {
        fputs("<figcaption>Caches and overhead levels that no two cores share are left out; ", out);
        fputs(item->picture.workers ? "3:w7 is worker 7 on PU 3.</figcaption>\n" : "numbers are PUs.</figcaption>\n",
              out);
    }
    if (left_out) {
        fprintf(out, "<figcaption>%zu measured groups cross others and cannot be drawn as boxes.</figcaption>\n",
                left_out);
    }
    fputs("</figure>\n", out);
    free(svg);
}

static void put_chosen(FILE *out, const uint32_t *chosen, size_t count, const char *how)
{
    fprintf(out, "<p>%s: workers 0, 1, … on PUs <strong>", how);
    for (size_t i = 0; i < count && i < SHOWN_WORKERS; i++) {
        fprintf(out, "%s%u", i ? ", " : "", chosen[i]);
    }
    fprintf(out, "%s</strong></p>\n", count > SHOWN_WORKERS ? " …" : "");
}

static void put_mapping(FILE *out, const struct report *report, const struct pictures *pictures,
                        enum map_priority priority)
{
    bool memory = priority == MAP_MEMORY;
    put_chosen(out, pictures->chosen[memory ? 0 : 1], report->workers,
               memory ? "Memory priority" : "Communication priority");
    for (size_t i = 0; i < pictures->count; i++) {
        if (pictures->items[i].picture.workers && pictures->items[i].priority == priority) {
            put_picture(out, &pictures->items[i]);
        }
    }
}

int html_topology(const struct report *report, FILE *out, struct servet_error *error)
{
    struct pictures pictures;
    int rc = pictures_of(report, &pictures, error);
    if (rc < 0) {
        return rc;
    }
    fputs(
        "<section id=\"topology\">\n<h2>Topology</h2>\n<p class=\"note\">Boxes are what the profile holds: caches with "
        "their effective sizes and groups, memory overhead levels, NUMA domains, packages.</p>\n<div class=\"grid\">\n",
        out);
    for (size_t i = 0; i < pictures.count; i++) {
        if (!pictures.items[i].picture.workers) {
            put_picture(out, &pictures.items[i]);
        }
    }
    fputs("</div>\n", out);
    if (report->workers) {
        fprintf(out, "<h2 id=\"mapping\">Where %zu worker%s would go</h2>\n", report->workers,
                report->workers == 1 ? "" : "s");
        put_mapping(out, report, &pictures, MAP_MEMORY);
        put_mapping(out, report, &pictures, MAP_COMMUNICATION);
    }
    fputs("</section>\n", out);
    pictures_free(&pictures);
    return 0;
}
