/* The machine as lstopo draws it: packages, measured caches, measured memory overhead levels, cores
 * and PUs of one node class, and on request the PUs that a mapping chose. */
#ifndef SERVET_REPORT_PICTURE_H
#define SERVET_REPORT_PICTURE_H

#include <stdio.h>

#include "mapper/map.h"
#include "profile/model.h"
#include "report/html.h"
#include "report/plot.h"

/* Workers on PUs: pus[i] (OS indices of this class) runs worker labels[i]. */
struct picture_workers {
    const uint32_t *pus;
    const uint32_t *labels;
    size_t count;
};

/* What is drawn. */
struct picture {
    const struct profile_class *node_class;
    const struct picture_workers *workers; /* NULL: none */
    bool compact; /* for many PUs: without caches and overhead levels that no two cores share,
                     numbers only on PUs */
};

/* hwloc XML (version 2.0) of the picture. Groups that cross others cannot be drawn as boxes:
 * *left_out counts them. 0 and a new string, or -ENOMEM. */
int report_picture_xml(const struct picture *picture, char **out, size_t *left_out);

/* What lstopo makes of it, its own SVG as a new string. 0; -ENOENT: no lstopo; -EIO; -ENOMEM. */
int report_picture_raw(const struct picture *picture, char **out, size_t *left_out,
                       struct servet_error *error);

/* The same, to be put into a page; ids begin with `name`. */
int report_picture_svg(const struct picture *picture, const char *name, char **out,
                       size_t *left_out, struct servet_error *error);

/* The topology pictures of a report: one of each node class, and one for each priority with the
 * workers that are asked for. */

/* Of a node class with more PUs none is drawn: lstopo takes seconds and no screen shows it. */
#define PICTURE_PUS 1024

struct pictures_item {
    char id[64], title[160]; /* file name of the PNG without its ending, id in the page */
    struct picture picture;
    struct picture_workers workers;
    enum map_priority priority; /* of the mapping that is coloured, where picture.workers is set */
};

struct pictures {
    struct pictures_item
        *items; /* topologies first, then memory priority, then communication priority */
    size_t count;
    uint32_t *chosen[2]; /* by priority as above: the PU of each worker; NULL without workers */
    uint32_t *room;      /* what the items' workers point into */
};

/* 0; what map_workers() returns; -ENOMEM. report_pictures_free() it. */
int report_pictures_of(const struct report *report, struct pictures *out,
                       struct servet_error *error);
void report_pictures_free(struct pictures *pictures);

/* A topology picture as PNG. */

/* 0 and the bytes, free() them; -ENOENT: no lstopo, or no gnuplot; -EIO; -ENOMEM. */
int report_picture_png(const struct pictures_item *item, char **out, size_t *length,
                       struct servet_error *error);

#endif
