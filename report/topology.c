/* Which pictures of the topology there are, and the part of the page that shows them: one of each
 * node class, and one of each class and priority with the workers that are asked for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/query.h"
#include "report/report.h"

/* With more PUs than this, a picture shows only caches that cores share: it has to fit a screen and
 * a slide. */
#define PUS_IN_FULL 32

/* A node class with more PUs is not drawn: no screen shows it. */
#define PICTURE_PUS 1024

static const enum map_priority priorities[2] = {MAP_MEMORY, MAP_COMMUNICATION};

struct shown_picture {
    char id[64], title[160]; /* id in the page */
    struct picture picture;
    struct picture_workers workers;
    enum map_priority priority; /* of the mapping that is coloured, where picture.workers is set */
};

/* Topologies first, then memory priority, then communication priority. */
struct pictures {
    struct shown_picture *items;
    size_t count;
    uint32_t *chosen[2]; /* by priority as above: the PU of each worker; NULL without workers */
    uint32_t *room;      /* what the items' workers point into */
};

/* The workers of the first node of the class that has any, on the PUs that were `chosen`. `room`
 * takes twice as many numbers: PUs, then labels. */
static struct picture_workers workers_of_class(const struct report *report, size_t index,
                                               const uint32_t *chosen, uint32_t *room,
                                               uint32_t *node)
{
    const struct servet_profile *profile = report->profile;
    uint32_t *pus = room, *labels = room + report->workers;
    size_t found = 0;
    for (size_t i = 0; i < report->workers; i++) {
        struct profile_place place;
        if (!profile_locate(profile, chosen[i], &place) ||
            place.node_class != &profile->classes[index] || (found && place.node != *node)) {
            continue;
        }
        *node = place.node;
        pus[found] = place.os_index;
        labels[found++] = (uint32_t)i;
    }
    return (struct picture_workers){pus, labels, found};
}

static struct shown_picture *add(struct pictures *list, const struct profile_class *node_class)
{
    struct shown_picture *item = &list->items[list->count++];
    item->picture =
        (struct picture){.node_class = node_class, .compact = node_class->pus.count > PUS_IN_FULL};
    return item;
}

static void add_topologies(const struct servet_profile *profile, struct pictures *list)
{
    for (size_t i = 0; i < profile->class_count; i++) {
        struct shown_picture *item = add(list, &profile->classes[i]);
        snprintf(item->id, sizeof item->id, "topology-%zu", i);
        if (profile->class_count > 1) {
            snprintf(item->title, sizeof item->title, "One node of class %zu", i);
        } else {
            snprintf(item->title, sizeof item->title, "The node");
        }
    }
}

static void add_mapping(const struct report *report, size_t which, struct pictures *list)
{
    const struct servet_profile *profile = report->profile;
    bool memory = priorities[which] == MAP_MEMORY;
    uint32_t *room = list->room + which * 2 * profile->class_count * report->workers;
    for (size_t i = 0; i < profile->class_count; i++) {
        uint32_t node = 0;
        struct picture_workers workers =
            workers_of_class(report, i, list->chosen[which], room + 2 * i * report->workers, &node);
        if (!workers.count) {
            continue;
        }
        struct shown_picture *item = add(list, &profile->classes[i]);
        item->workers = workers;
        item->picture.workers = &item->workers;
        item->priority = priorities[which];
        snprintf(item->id, sizeof item->id, "map-%s-%zu", memory ? "memory" : "communication", i);
        snprintf(item->title, sizeof item->title, "%s priority: %zu of %zu workers on node %u",
                 memory ? "Memory" : "Communication", workers.count, report->workers, node);
    }
}

static int add_mappings(const struct report *report, struct pictures *list,
                        struct servet_error *error)
{
    size_t classes = report->profile->class_count;
    list->room = calloc(2 * 2 * classes * report->workers, sizeof *list->room);
    int rc = list->room ? 0 : -ENOMEM;
    for (size_t which = 0; rc == 0 && which < 2; which++) {
        const struct map_request request = map_request_of(priorities[which], report->workers);
        list->chosen[which] = calloc(report->workers, sizeof(uint32_t));
        if (!list->chosen[which]) {
            rc = -ENOMEM;
            break;
        }
        rc = map_workers(report->profile, &request, list->chosen[which], NULL, error);
        if (rc < 0) {
            return rc;
        }
        add_mapping(report, which, list);
    }
    return rc < 0 ? profile_error(error, rc, "mapping %zu workers: %s", report->workers,
                                  strerrordesc_np(-rc))
                  : 0;
}

static void free_pictures(struct pictures *pictures)
{
    free(pictures->items);
    free(pictures->chosen[0]);
    free(pictures->chosen[1]);
    free(pictures->room);
    *pictures = (struct pictures){0};
}

static int make_pictures(const struct report *report, struct pictures *out,
                         struct servet_error *error)
{
    struct pictures list = {.items =
                                calloc(3 * report->profile->class_count + 1, sizeof *list.items)};
    if (!list.items) {
        return profile_error(error, -ENOMEM, "report: %s", strerrordesc_np(ENOMEM));
    }
    add_topologies(report->profile, &list);
    int rc = report->workers ? add_mappings(report, &list, error) : 0;
    if (rc < 0) {
        free_pictures(&list);
        return rc;
    }
    *out = list;
    return 0;
}

/* -- in the page -- */

#define SHOWN_WORKERS 64 /* of a mapping in words */

static int put_picture(FILE *out, const struct shown_picture *item)
{
    char *svg = NULL;
    size_t left_out = 0, pus = item->picture.node_class->pus.count;
    fprintf(out, "<figure id=\"%s\"%s>\n<h3>%s</h3>\n", item->id,
            item->picture.compact ? " class=\"wide\"" : "", item->title);
    if (pus > PICTURE_PUS) {
        fprintf(out,
                "<p class=\"note\">No picture: %zu PUs are more than the %d that are "
                "drawn.</p>\n</figure>\n",
                pus, PICTURE_PUS);
        return 0;
    }
    int rc = report_picture_svg(&item->picture, item->title, &svg, &left_out);
    if (rc < 0) {
        return rc;
    }
    fprintf(out, "<div class=\"scroll picture%s\">%s</div>\n",
            item->picture.compact ? " large" : "", svg);
    if (item->picture.compact) {
        fputs("<figcaption>Caches and overhead levels that no two cores share are left out; ", out);
        fputs(item->picture.workers ? "3:w7 is worker 7 on PU 3.</figcaption>\n"
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
    free(svg);
    return 0;
}

static void put_chosen(FILE *out, const uint32_t *chosen, size_t count, const char *how)
{
    fprintf(out, "<p>%s: workers 0, 1, … on PUs <strong>", how);
    for (size_t i = 0; i < count && i < SHOWN_WORKERS; i++) {
        fprintf(out, "%s%u", i ? ", " : "", chosen[i]);
    }
    fprintf(out, "%s</strong></p>\n", count > SHOWN_WORKERS ? " …" : "");
}

static int put_mapping(FILE *out, const struct report *report, const struct pictures *pictures,
                       enum map_priority priority)
{
    bool memory = priority == MAP_MEMORY;
    put_chosen(out, pictures->chosen[memory ? 0 : 1], report->workers,
               memory ? "Memory priority" : "Communication priority");
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < pictures->count; i++) {
        if (pictures->items[i].picture.workers && pictures->items[i].priority == priority) {
            rc = put_picture(out, &pictures->items[i]);
        }
    }
    return rc;
}

int report_html_topology(const struct report *report, FILE *out, struct servet_error *error)
{
    struct pictures pictures = {0};
    int rc = make_pictures(report, &pictures, error);
    if (rc < 0) {
        return rc;
    }
    fputs("<section id=\"topology\">\n<h2>Topology</h2>\n<p class=\"note\">Boxes are what the "
          "profile holds: caches with "
          "their effective sizes and groups, memory overhead levels, NUMA domains, "
          "packages.</p>\n<div class=\"grid\">\n",
          out);
    for (size_t i = 0; rc == 0 && i < pictures.count; i++) {
        if (!pictures.items[i].picture.workers) {
            rc = put_picture(out, &pictures.items[i]);
        }
    }
    fputs("</div>\n", out);
    if (report->workers) {
        fprintf(out, "<h2 id=\"mapping\">Where %zu worker%s would go</h2>\n", report->workers,
                report->workers == 1 ? "" : "s");
        rc = rc < 0 ? rc : put_mapping(out, report, &pictures, MAP_MEMORY);
        rc = rc < 0 ? rc : put_mapping(out, report, &pictures, MAP_COMMUNICATION);
    }
    fputs("</section>\n", out);
    free_pictures(&pictures);
    return rc < 0 ? profile_error(error, rc, "report: %s", strerrordesc_np(-rc)) : 0;
}
