/* A topology picture as PNG. */
#ifndef SERVET_REPORT_PICTURE_PNG_H
#define SERVET_REPORT_PICTURE_PNG_H

#include "pictures.h"
#include "plot.h"

/* 0 and the bytes, free() them; -ENOENT: no lstopo, or no gnuplot; -EIO; -ENOMEM. */
int picture_png(const struct pictures_item *item, char **out, size_t *length, struct servet_error *error);

#endif
