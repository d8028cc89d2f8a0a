/* The machine as lstopo draws it: packages, measured caches, measured memory overhead levels, cores and PUs of one node
 * class, and on request the PUs that a mapping chose. */
#ifndef SERVET_REPORT_PICTURE_H
#define SERVET_REPORT_PICTURE_H

#include "model.h"

#include <stdio.h>

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
    bool compact; /* for many PUs: without caches and overhead levels that no two cores share, numbers only on PUs */
};

/* hwloc XML (version 2.0) of the picture. Groups that cross others cannot be drawn as boxes: *left_out counts them.
 * 0 and a new string, or -ENOMEM. */
int picture_xml(const struct picture *picture, char **out, size_t *left_out);

/* What lstopo makes of it, its own SVG as a new string. 0; -ENOENT: no lstopo; -EIO; -ENOMEM. */
int picture_raw(const struct picture *picture, char **out, size_t *left_out, struct servet_error *error);

/* The same, to be put into a page; ids begin with `name`. */
int picture_svg(const struct picture *picture, const char *name, char **out, size_t *left_out,
                struct servet_error *error);

#endif
