#include "pictures.h"

#include "query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Of more PUs than this, a picture shows only what cores share: it has to fit a screen and a slide. */
#define PUS_IN_FULL 32

static const enum map_priority priorities[2] = {MAP_MEMORY, MAP_COMMUNICATION};

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

static struct pictures_item *add(struct pictures *list, const struct profile_class *node_class)
{
    struct pictures_item *item = &list->items[list->count++];
    item->picture = (struct picture){.node_class = node_class, .compact = node_class->pus.count > PUS_IN_FULL};
    return item;
}

static void add_topologies(const struct servet_profile *profile, struct pictures *list)
{
    for (size_t i = 0; i < profile->class_count; i++) {
        struct pictures_item *item = add(list, &profile->classes[i]);
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
        uint32_t node = 0, *pus = room + 2 * i * report->workers, *labels = pus + report->workers;
        size_t found = workers_of_class(profile, i, list->chosen[which], report->workers, pus, labels, &node);
        if (!found) {
            continue;
        }
        struct pictures_item *item = add(list, &profile->classes[i]);
        item->workers = (struct picture_workers){pus, labels, found};
        item->picture.workers = &item->workers;
        item->priority = priorities[which];
        snprintf(item->id, sizeof item->id, "map-%s-%zu", memory ? "memory" : "communication", i);
        snprintf(item->title, sizeof item->title, "%s priority: %zu of %zu workers on node %u",
                 memory ? "Memory" : "Communication", found, report->workers, node);
    }
}

static int add_mappings(const struct report *report, struct pictures *list, struct servet_error *error)
{
    size_t classes = report->profile->class_count;
    list->room = calloc(2 * 2 * classes * report->workers, sizeof *list->room);
    int rc = list->room ? 0 : -ENOMEM;
    for (size_t which = 0; rc == 0 && which < 2; which++) {
        const struct map_request request = {.priority = priorities[which], .workers = report->workers};
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
    return rc < 0 ? profile_error(error, rc, "mapping %zu workers: %s", report->workers, strerrordesc_np(-rc)) : 0;
}

int pictures_of(const struct report *report, struct pictures *out, struct servet_error *error)
{
    struct pictures list = {.items = calloc(3 * report->profile->class_count + 1, sizeof *list.items)};
    if (!list.items) {
        return profile_error(error, -ENOMEM, "report: %s", strerrordesc_np(ENOMEM));
    }
    add_topologies(report->profile, &list);
    int rc = report->workers ? add_mappings(report, &list, error) : 0;
    if (rc < 0) {
        pictures_free(&list);
        return rc;
    }
    *out = list;
    return 0;
}

void pictures_free(struct pictures *pictures)
{
    free(pictures->items);
    free(pictures->chosen[0]);
    free(pictures->chosen[1]);
    free(pictures->room);
    *pictures = (struct pictures){0};
}
