/* The plots of a report: what is drawn, in gnuplot's language, with words beside it. Colours are named (ink, muted,
 * c1 … c6); what they stand for is decided when the plot is rendered: variables of the style sheet in a page, so that
 * light and dark come from one picture, and fixed colours in a PNG. */
#ifndef SERVET_REPORT_PLOT_H
#define SERVET_REPORT_PLOT_H

#include "model.h"

#include <stdio.h>

#define PLOT_COLOURS 6

enum plot_section { PLOT_CACHES, PLOT_SHARING, PLOT_MEMORY, PLOT_MESSAGES, PLOT_BSP, PLOT_SECTIONS };

enum plot_shape { PLOT_CURVE, PLOT_MAP, PLOT_PICTURE };

struct plot {
    enum plot_section section;
    enum plot_shape shape;
    size_t node_class; /* PLOT_NETWORK: between nodes, or of the whole machine */
    char *name;        /* file name of the PNG without its ending, id in the page */
    char *title, *caption;
    char *script;         /* without `set terminal`; title_lines: text lines above the plot that a title takes */
    double width, height; /* of PLOT_PICTURE, which is PNG only: in its own pixels */
};
#define PLOT_NETWORK SIZE_MAX

struct plot_list {
    struct plot *items;
    size_t count;
    char *script; /* of the plot that is open */
    size_t script_size;
    FILE *stream;
    int rc; /* -ENOMEM: the list is of no use */
};

/* Opens a plot and returns the stream for its script, or NULL. Everything that is said about the previous one comes
 * before. The name gets "classI-" in front of it when `classes` > 1. */
FILE *plot_open(struct plot_list *list, enum plot_section section, enum plot_shape shape, size_t node_class,
                size_t classes, const char *name, const char *title);
/* Ends its script, with what is to be said below it. */
void plot_close(struct plot_list *list, const char *caption, ...) __attribute__((format(printf, 2, 3)));
void plot_free(struct plot_list *list);

/* `text` between single quotes, as gnuplot reads it literally (it runs `commands` found between double ones). */
void plot_quote(FILE *stream, const char *text);
/* "set xtics (…)" (axis "x") with sizes at powers of two, for a logarithmic axis from `low` to `high`. */
void plot_byte_ticks(FILE *stream, const char *axis, double low, double high);

/* Plots of a profile, one file each. */
void plot_caches(struct plot_list *list, const struct servet_profile *profile);
void plot_memory(struct plot_list *list, const struct servet_profile *profile);
void plot_messages(struct plot_list *list, const struct servet_profile *profile);
void plot_bsp(struct plot_list *list, const struct servet_profile *profile);
void plot_maps(struct plot_list *list, const struct servet_profile *profile);

/* As SVG to be put into a page (no prolog, no name space, ids of its own, colours as var(--…)), or as PNG.
 * 0; -ENOENT: no gnuplot; -EIO; -ENOMEM. free() the result. */
int plot_svg(const struct plot *plot, char **out, size_t *length, struct servet_error *error);
int plot_png(const struct plot *plot, char **out, size_t *length, struct servet_error *error);

#endif
