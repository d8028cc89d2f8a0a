/* A plot with two axes as SVG: curves, points and intervals, marks with text, a legend. It is the
 * one way to draw for the page of servet-show, for servet-probe --plot and servet-bench --plot.
 *
 * Colours are classes: ink (text), muted (axes), c1 to c6. A page gives them their colours, so that
 * light and dark come from one picture; a file of its own brings them along. Where memory is short,
 * the command ends (cli_needed()). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "profile/base/error.h"

#define CHART_COLOURS 6
/* The class of curve number i. */
#define CHART_COLOUR(i) ((unsigned)((i) % CHART_COLOURS + 1))
#define CHART_MUTED 0U

enum chart_scale {
    CHART_LINEAR, /* from 0 */
    CHART_WHOLE,  /* whole numbers, from half before the first to half behind the last point */
    CHART_BINARY, /* logarithmic, ticks at powers of two */
    CHART_DECIMAL /* logarithmic, ticks at 1, 2, 5 */
};

struct chart_axis {
    const char *label; /* the quantity */
    const char *unit;  /* behind each tick: "B" (KiB, MiB …), "s", "B/s" …, "": none */
    enum chart_scale scale;
    double high;              /* the end of CHART_LINEAR; 0: that of the points */
    const char *const *names; /* of CHART_WHOLE: the ticks at 0, 1 …; NULL: numbers */
};

enum chart_style {
    CHART_CURVE,  /* line with points */
    CHART_DASHED, /* the same with a dashed line */
    CHART_RULE,   /* dashed line alone */
    CHART_LINE,   /* line alone */
    CHART_POINTS, /* points, with their intervals if they have any */
};

struct chart_point {
    double x, y, low, high; /* low == high: no interval */
};

struct chart_series {
    char *name; /* in the legend; "": not there */
    unsigned colour;
    enum chart_style style;
    struct chart_point *points;
    size_t count;
};

/* A vertical line. */
struct chart_mark {
    double x;
    unsigned colour;
    bool dashed;
    char *text; /* above the plot; lines end with '\n'; "": none */
};

struct chart {
    const char *title;
    struct chart_axis x, y;
    struct chart_series *series;
    struct chart_mark *marks;
    size_t series_count, mark_count;
};

/* Adds a curve; points go to the last one that was added. Values that an axis cannot show (0 on a
 * logarithmic one, NAN) are left out. */
void profile_chart_series(struct chart *chart, unsigned colour, enum chart_style style,
                          const char *name);
void profile_chart_point(struct chart *chart, double x, double y);
void profile_chart_interval(struct chart *chart, double x, double y, double low, double high);
void profile_chart_mark(struct chart *chart, double x, unsigned colour, bool dashed,
                        const char *text);

/* Most points of any curve. */
size_t profile_chart_points(const struct chart *chart);
/* `value` as the axis writes it: "2.5 GB/s", "32 KiB". */
void profile_chart_value(const struct chart_axis *axis, double value, char *out, size_t size);

/* Writes the chart, `alone` as a file of its own, else for a page. */
void profile_chart_svg(const struct chart *chart, FILE *out, bool alone);
/* Writes it as a file of its own. 0, or -errno with the path in `error`. */
int profile_chart_save(const struct chart *chart, const char *path, struct servet_error *error);
void profile_chart_free(struct chart *chart);

/* Text of an element of XML. */
void profile_xml_text(FILE *out, const char *text);
/* The same as text of a picture; `anchor`: "start", "middle" or "end" is at x. */
void profile_svg_text(FILE *out, double x, double y, const char *anchor, const char *text);
