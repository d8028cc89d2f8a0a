/* Another program as a filter: text in, picture out. */
#ifndef SERVET_REPORT_PLOT_H
#define SERVET_REPORT_PLOT_H

#include <stddef.h>
#include <stdio.h>

#include "profile/base/error.h"
#include "profile/model.h"

/* Runs argv[0] (looked for in PATH) with `length` bytes of `input` on its standard input and
 * returns what it wrote on its standard output, terminated by a zero that *out_length does not
 * count; free() it. Nothing touches the disk. 0; -ENOENT (not installed); -EIO with the program's
 * first line on stderr (it failed, or wrote nothing); -ENOMEM. */
int report_run_filter(char *const argv[], const char *input, size_t length, char **out,
                      size_t *out_length, struct servet_error *error);

/* The plots of a report: what is drawn, in gnuplot's language, with words beside it. Colours are
 * named (ink, muted, c1 … c6); what they stand for is decided when the plot is rendered: variables
 * of the style sheet in a page, so that light and dark come from one picture, and fixed colours in
 * a PNG. */

#define PLOT_COLOURS 6

enum plot_section {
    PLOT_CACHES,
    PLOT_SHARING,
    PLOT_MEMORY,
    PLOT_MESSAGES,
    PLOT_BSP,
    PLOT_SECTIONS
};

enum plot_shape { PLOT_CURVE, PLOT_MAP, PLOT_PICTURE };

struct plot {
    enum plot_section section;
    enum plot_shape shape;
    size_t node_class; /* PLOT_NETWORK: between nodes, or of the whole machine */
    char *name;        /* file name of the PNG without its ending, id in the page */
    char *title, *caption;
    char *script; /* without `set terminal`; title_lines: text lines above the plot that a title
                     takes */
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

/* Opens a plot and returns the stream for its script, or NULL. Everything that is said about the
 * previous one comes before. The name gets "classI-" in front of it when `classes` > 1. */
FILE *report_plot_open(struct plot_list *list, enum plot_section section, enum plot_shape shape,
                       size_t node_class, size_t classes, const char *name, const char *title);
/* Ends its script, with what is to be said below it. */
void report_plot_close(struct plot_list *list, const char *caption, ...)
    __attribute__((format(printf, 2, 3)));
void report_plot_free(struct plot_list *list);

/* `text` between single quotes, as gnuplot reads it literally (it runs `commands` found between
 * double ones). */
void report_plot_quote(FILE *stream, const char *text);
/* "set xtics (…)" (axis "x") with sizes at powers of two, for a logarithmic axis from `low` to
 * `high`. */
void report_plot_byte_ticks(FILE *stream, const char *axis, double low, double high);

/* Plots of a profile, one file each. */
void report_plot_caches(struct plot_list *list, const struct servet_profile *profile);
void report_plot_memory(struct plot_list *list, const struct servet_profile *profile);
void report_plot_messages(struct plot_list *list, const struct servet_profile *profile);
void report_plot_bsp(struct plot_list *list, const struct servet_profile *profile);
void report_plot_maps(struct plot_list *list, const struct servet_profile *profile);

/* As SVG to be put into a page (no prolog, no name space, ids of its own, colours as var(--…)), or
 * as PNG.
 * 0; -ENOENT: no gnuplot; -EIO; -ENOMEM. free() the result. */
int report_plot_svg(const struct plot *plot, char **out, size_t *length,
                    struct servet_error *error);
int report_plot_png(const struct plot *plot, char **out, size_t *length,
                    struct servet_error *error);

/* The page's style sheet: light and dark, from a phone to a wide screen. Names --ink … --c6 are
 * what plots refer to. */

static const char report_style[] =
    ":root{color-scheme:light "
    "dark;--ground:#f6f7f9;--card:#fff;--ink:#1d2330;--soft:#5b6475;--muted:#8b93a3;"
    "--line:#dde1e8;--accent:#0b63b5;--warn:#8a4b00;--warn-ground:#fff4e0;--c1:#0072b2;--c2:#"
    "d55e00;--c3:#009e73;"
    "--c4:#b1589b;--c5:#3a9bd9;--c6:#b87c00;--box0:#fff;--box1:#d9ecc0;--box2:#eef7df;--box3:#"
    "f3f4f6;--box4:#cfd4dc;"
    "--box5:#f0e1e0}\n"
    "@media(prefers-color-scheme:dark){:root{--ground:#12151b;--card:#1b2029;--ink:#e7eaf0;--soft:#"
    "a6afbf;"
    "--muted:#7d8798;--line:#323a47;--accent:#6db5f5;--warn:#ffcf8a;--warn-ground:#3a2a10;--c1:#"
    "4da8e0;--c2:#ff8f4d;"
    "--c3:#3fd0a4;--c4:#e29acb;--c5:#8fd0f5;--c6:#f2bd4a;--box0:#12151b;--box1:#2b4222;--box2:#"
    "25351f;--box3:#232a35;"
    "--box4:#3a4352;--box5:#4a3634}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,sans-serif}\n"
    "main{max-width:1240px;margin:0 auto;padding:1rem}\n"
    "h1{font-size:1.6rem;margin:.6rem 0 "
    ".2rem;overflow-wrap:anywhere}h2{font-size:1.25rem;margin:2rem 0 .6rem}"
    "h3{font-size:1rem;margin:0 0 .4rem}p{margin:.4rem 0;overflow-wrap:anywhere}\n"
    ".lead,figcaption,.note{color:var(--soft)}figcaption,.note{font-size:.9rem}\n"
    "nav{display:flex;flex-wrap:wrap;gap:.3rem 1rem;margin:.8rem 0}a{color:var(--accent)}\n"
    ".grid{display:grid;gap:1rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr))"
    "}\n"
    ".card,figure{background:var(--card);border:1px solid "
    "var(--line);border-radius:.6rem;padding:.8rem;margin:0;"
    "min-width:0}.card+.grid{margin-top:1rem}\n"
    "figure.plot svg{width:100%;height:auto;display:block;max-width:600px;margin:0 auto}"
    "figure svg image{image-rendering:pixelated}\n"
    ".scroll{overflow-x:auto}\n"
    "table{border-collapse:collapse;font-size:.9rem;width:100%}th,td{text-align:left;padding:.3rem "
    ".7rem .3rem 0;"
    "border-bottom:1px solid "
    "var(--line);vertical-align:top}th{color:var(--soft);font-weight:600;white-space:nowrap}"
    ".scroll table{min-width:620px}td.n{white-space:nowrap;font-variant-numeric:tabular-nums}\n"
    "dl{display:grid;grid-template-columns:minmax(7rem,auto) 1fr;gap:.2rem "
    "1rem;margin:0}dt{color:var(--soft)}"
    "dd{margin:0;overflow-wrap:anywhere}\n"
    ".warn{background:var(--warn-ground);color:var(--warn);border-radius:.6rem;padding:.6rem "
    ".9rem;margin:.6rem 0}\n"
    ".warn ul{margin:.3rem 0;padding-left:1.2rem}\n"
    /* lstopo's boxes by their class; a PU with a worker keeps the colour it was given */
    ".picture svg{display:block;min-width:300px;max-width:100%;height:auto;margin:0 "
    "auto}.picture.large "
    "svg{max-width:none}\n"
    ".picture text{fill:var(--ink)}.picture rect{stroke:var(--muted)}.picture "
    "rect.Machine{fill:var(--box0)}"
    ".picture rect.Package{fill:var(--box1)}"
    /* lstopo counts as many kinds of groups as there are groups */
    ".picture rect[class^=\"Group\"]{fill:var(--box2)}.picture rect.Core{fill:var(--box4)}"
    ".picture rect[class^=\"L\"]{fill:var(--box3)}.picture rect.NUMANode{fill:var(--box5)}"
    ".picture rect.PU[fill=\"rgb(255,255,255)\"]{fill:var(--box0)}\n"
    ".picture text[fill=\"rgb(255,255,255)\"]{fill:#fff}\n"
    "@media print{:root{color-scheme:light}figure,.card{break-inside:avoid}}\n";

#endif
