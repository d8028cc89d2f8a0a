/* The topology pictures of a report: one of each node class, and one for each priority with the workers that are asked
 * for. */
#ifndef SERVET_REPORT_PICTURES_H
#define SERVET_REPORT_PICTURES_H

#include "html.h"
#include "map.h"
#include "picture.h"

/* Of a node class with more PUs none is drawn: lstopo takes seconds and no screen shows it. */
#define PICTURE_PUS 1024

struct pictures_item {
    char id[64], title[160]; /* file name of the PNG without its ending, id in the page */
    struct picture picture;
    struct picture_workers workers;
    enum map_priority priority; /* of the mapping that is coloured, where picture.workers is set */
};

struct pictures {
    struct pictures_item *items; /* topologies first, then memory priority, then communication priority */
    size_t count;
    uint32_t *chosen[2]; /* by priority as above: the PU of each worker; NULL without workers */
    uint32_t *room;      /* what the items' workers point into */
};

/* 0; what map_workers() returns; -ENOMEM. pictures_free() it. */
int pictures_of(const struct report *report, struct pictures *out, struct servet_error *error);
void pictures_free(struct pictures *pictures);

#endif
