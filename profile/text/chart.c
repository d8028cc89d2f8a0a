/* A plot with two axes as SVG. From the top: the quantity of the y axis, the legend, texts of
 * marks, the plot itself, ticks and the quantity of the x axis. Nothing is laid on the plot, so
 * that no text hides a point; the picture is as high as the text above needs. */
#include "profile/text/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/cli.h"
#include "profile/base/file.h"
#include "profile/text/text.h"

/* Pixels. The font is as large as reads well on a phone, where the picture is half as wide. */
#define WIDTH 600.0
#define PLOT_HEIGHT 290.0
#define FONT 16
#define LETTER 9.4 /* width of one, a little more than the font's */
#define ROW 21.0   /* of text */
#define EDGE 10.0
#define SWATCH 26.0 /* piece of line in the legend */
#define TICKS_MOST 8
#define HEADROOM 1.06 /* of a linear axis, above the highest point */

/* -- collecting -- */

/* The array with room for one more item, doubled at powers of two. */
static void *grown(void *items, size_t count, size_t size)
{
    return count & (count - 1) ? items : cli_needed(realloc(items, (count ? 2 * count : 1) * size));
}

void profile_chart_series(struct chart *chart, unsigned colour, enum chart_style style,
                          const char *name)
{
    chart->series = grown(chart->series, chart->series_count, sizeof *chart->series);
    chart->series[chart->series_count++] =
        (struct chart_series){.name = cli_needed(strdup(name)), .colour = colour, .style = style};
}

static bool shows(const struct chart_axis *axis, double value)
{
    return isfinite(value) && (axis->scale < CHART_BINARY || value > 0);
}

void profile_chart_interval(struct chart *chart, double x, double y, double low, double high)
{
    if (!chart->series_count || !shows(&chart->x, x) || !shows(&chart->y, y)) {
        return;
    }
    struct chart_series *series = &chart->series[chart->series_count - 1];
    series->points = grown(series->points, series->count, sizeof *series->points);
    series->points[series->count++] = (struct chart_point){x, y, low, high};
}

void profile_chart_point(struct chart *chart, double x, double y)
{
    profile_chart_interval(chart, x, y, y, y);
}

void profile_chart_mark(struct chart *chart, double x, unsigned colour, bool dashed,
                        const char *text)
{
    chart->marks = grown(chart->marks, chart->mark_count, sizeof *chart->marks);
    chart->marks[chart->mark_count++] = (struct chart_mark){
        .x = x, .colour = colour, .dashed = dashed, .text = cli_needed(strdup(text))};
}

size_t profile_chart_points(const struct chart *chart)
{
    size_t most = 0;
    for (size_t i = 0; i < chart->series_count; i++) {
        most = chart->series[i].count > most ? chart->series[i].count : most;
    }
    return most;
}

void profile_chart_free(struct chart *chart)
{
    for (size_t i = 0; i < chart->series_count; i++) {
        free(chart->series[i].name);
        free(chart->series[i].points);
    }
    for (size_t i = 0; i < chart->mark_count; i++) {
        free(chart->marks[i].text);
    }
    free(chart->series);
    free(chart->marks);
    *chart = (struct chart){0};
}

/* -- axes -- */

/* An axis with the range that it shows. */
struct span {
    const struct chart_axis *axis;
    double low, high;
    double from, to; /* pixels of both */
};

static double span_at(const struct span *span, double value)
{
    double part = span->axis->scale < CHART_BINARY
                      ? (value - span->low) / (span->high - span->low)
                      : log(value / span->low) / log(span->high / span->low);
    return span->from + (span->to - span->from) * fmin(fmax(part, 0), 1);
}

static struct span range_of_axis(const struct chart *chart, bool of_y)
{
    struct span span = {.axis = of_y ? &chart->y : &chart->x, .low = INFINITY, .high = -INFINITY};
    for (size_t i = 0; i < chart->series_count; i++) {
        for (size_t k = 0; k < chart->series[i].count; k++) {
            const struct chart_point *point = &chart->series[i].points[k];
            span.low = fmin(span.low, of_y ? point->low : point->x);
            span.high = fmax(span.high, of_y ? point->high : point->x);
        }
    }
    if (!(span.low <= span.high)) {
        span.low = span.high = 1;
    }
    switch (span.axis->scale) {
    case CHART_LINEAR:
        span.low = 0;
        span.high = span.axis->high > 0 ? span.axis->high : HEADROOM * span.high;
        span.high = span.high > 0 ? span.high : 1;
        break;
    case CHART_WHOLE:
        span.low = floor(span.low + 0.5) - 0.5;
        span.high = ceil(span.high - 0.5) + 0.5;
        break;
    default: /* a little more than the points take */
        span.low /= of_y ? 1.15 : 1.02;
        span.high *= of_y ? 1.15 : 1.02;
    }
    return span;
}

void profile_chart_value(const struct chart_axis *axis, double value, char *out, size_t size)
{
    static const char *const prefixes[] = {"p", "n", "µ", "m", "", "k", "M", "G", "T"};
    int prefix = 4; /* none */
    if (strcmp(axis->unit, "B") == 0) {
        snprintf(out, size, "%s", profile_figure_bytes((uint64_t)value).text);
        return;
    }
    for (; *axis->unit && fabs(value) >= 999.5 && prefix < 8; prefix++) {
        value /= 1000;
    }
    for (; *axis->unit && value != 0 && fabs(value) < 0.9995 && prefix > 0; prefix--) {
        value *= 1000;
    }
    snprintf(out, size, "%.3g%s%s%s", value, value != 0 && *axis->unit ? " " : "",
             value != 0 ? prefixes[prefix] : "", value != 0 ? axis->unit : "");
}

/* A step of 1, 2 or 5 times a power of ten that gives few ticks. */
static double step_of_ticks(double length, size_t most)
{
    double step = pow(10, floor(log10(length / (double)most)));
    static const double steps[] = {1, 2, 5, 10};
    size_t i = 0;
    while (i < 3 && length / (step * steps[i]) > (double)most) {
        i++;
    }
    return step * steps[i];
}

struct ticks {
    double at[64];
    size_t count;
};

static void add_tick(struct ticks *ticks, const struct span *span, double value)
{
    const double nearly = 1e-9 * fabs(span->high - span->low); /* sums of steps are not exact */
    if (value >= span->low - nearly && value <= span->high + nearly &&
        ticks->count < sizeof ticks->at / sizeof *ticks->at) {
        ticks->at[ticks->count++] = value;
    }
}

static struct ticks ticks_of(const struct span *span)
{
    struct ticks ticks = {0};
    double length = span->high - span->low, decades = log10(span->high / span->low);
    double step = span->axis->scale < CHART_BINARY ? step_of_ticks(length, TICKS_MOST - 2) : 0;
    switch (span->axis->scale) {
    case CHART_WHOLE:
        step = span->axis->names || length <= 2.0 * TICKS_MOST ? 1 : fmax(step, 1);
        /* fall through */
    case CHART_LINEAR:
        for (double v = ceil(span->low / step) * step; v <= span->high; v += step) {
            add_tick(&ticks, span, v);
        }
        break;
    case CHART_BINARY:
        step = ceil(log2(span->high / span->low) / TICKS_MOST);
        for (double p = ceil(log2(span->low) / step) * step; p <= log2(span->high); p += step) {
            add_tick(&ticks, span, exp2(p));
        }
        break;
    case CHART_DECIMAL:
        for (double p = floor(log10(span->low)); p <= log10(span->high); p++) {
            add_tick(&ticks, span, pow(10, p));
            for (int i = 2; i <= 5 && decades < 3; i += 3) {
                add_tick(&ticks, span, i * pow(10, p));
            }
        }
        break;
    }
    return ticks;
}

static void tick_text(const struct span *span, double value, char *out, size_t size)
{
    if (span->axis->names) {
        snprintf(out, size, "%s", span->axis->names[(size_t)value]);
    } else {
        profile_chart_value(span->axis, value, out, size);
    }
}

/* -- writing -- */

void profile_xml_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
        }
    }
}

void profile_svg_text(FILE *out, double x, double y, const char *anchor, const char *text)
{
    fprintf(out, "<text class=\"ink\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    profile_xml_text(out, text);
    fputs("</text>\n", out);
}

/* Opens a path, whose data follow. */
static void open_path(FILE *out, unsigned colour, double width, bool dashed)
{
    char name[16];
    snprintf(name, sizeof name, colour == CHART_MUTED ? "muted" : "c%u", colour);
    fprintf(out,
            "<path class=\"%s\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"%g\" "
            "stroke-linecap=\"round\"%s d=\"",
            name, width, dashed ? " stroke-dasharray=\"2 6\"" : "");
}

static double text_width(const char *text)
{
    size_t letters = 0;
    for (; *text; text++) {
        letters += (*text & 0xc0) != 0x80; /* not the rest of a letter in UTF-8 */
    }
    return LETTER * (double)letters;
}

/* Curves with their names, as many in a row as fit. Returns the height taken. */
static double put_legend(FILE *out, const struct chart *chart, double top)
{
    double x = EDGE, y = top;
    bool any = false;
    for (size_t i = 0; i < chart->series_count; i++) {
        const struct chart_series *series = &chart->series[i];
        double width = SWATCH + 8 + text_width(series->name) + 18;
        if (!*series->name) {
            continue;
        }
        if (any && x + width > WIDTH) {
            x = EDGE;
            y += ROW;
        }
        any = true;
        bool points = series->style == CHART_POINTS;
        open_path(out, series->colour, points ? 8 : 3,
                  series->style == CHART_DASHED || series->style == CHART_RULE);
        fprintf(out, "M%.1f %.1fh%g\"/>\n", points ? x + SWATCH / 2 : x, y + 11,
                points ? 0 : SWATCH);
        profile_svg_text(out, x + SWATCH + 8, y + FONT, "start", series->name);
        x += width;
    }
    return any ? y + ROW - top : 0;
}

/* Rows that the texts of marks need, and in which one each stands; those that do not fit beside the
 * one before go one block higher. */
#define MARK_BLOCKS 3

static size_t lines_of(const char *text)
{
    size_t lines = *text ? 1 : 0;
    for (; *text; text++) {
        lines += *text == '\n';
    }
    return lines;
}

struct mark_layout {
    double taken[MARK_BLOCKS]; /* right end of the last text of each block */
    size_t blocks, lines;      /* in use; of the highest text */
};

/* The block of a text and its middle, which stays inside the plot. */
static size_t place_mark(struct mark_layout *layout, const struct span *x, const char *text,
                         double where, double *middle)
{
    double half = 0;
    for (const char *from = text; *from;) {
        size_t length = strcspn(from, "\n");
        half = fmax(half, LETTER * (double)length / 2);
        from += length + (from[length] == '\n');
    }
    size_t block = 0;
    *middle = fmin(fmax(where, x->from - EDGE + half), WIDTH - half);
    while (block + 1 < MARK_BLOCKS && *middle - half < layout->taken[block]) {
        block++;
    }
    layout->taken[block] = *middle + half;
    layout->blocks = block + 1 > layout->blocks ? block + 1 : layout->blocks;
    layout->lines = lines_of(text) > layout->lines ? lines_of(text) : layout->lines;
    return block;
}

static struct mark_layout layout_marks(const struct chart *chart, const struct span *x)
{
    struct mark_layout layout = {0};
    double middle;
    for (size_t i = 0; i < chart->mark_count; i++) {
        if (*chart->marks[i].text) {
            place_mark(&layout, x, chart->marks[i].text, span_at(x, chart->marks[i].x), &middle);
        }
    }
    return layout;
}

/* A block is as high as the highest text. */
static void put_marks(FILE *out, const struct chart *chart, const struct span *x,
                      const struct span *y, size_t lines)
{
    struct mark_layout layout = {0};
    for (size_t i = 0; i < chart->mark_count; i++) {
        const struct chart_mark *mark = &chart->marks[i];
        double where = span_at(x, mark->x), middle;
        open_path(out, mark->colour, 2, mark->dashed);
        fprintf(out, "M%.1f %.1fV%.1f\"/>\n", where, y->to, y->from);
        if (!*mark->text) {
            continue;
        }
        size_t block = place_mark(&layout, x, mark->text, where, &middle);
        double line = y->to - 6 - ROW * (double)(block * lines + lines_of(mark->text) - 1);
        for (const char *from = mark->text; *from; line += ROW) {
            char piece[96];
            size_t length = strcspn(from, "\n");
            snprintf(piece, sizeof piece, "%.*s", (int)length, from);
            profile_svg_text(out, middle, line, "middle", piece);
            from += length + (from[length] == '\n');
        }
    }
}

static void put_axes(FILE *out, const struct span *x, const struct span *y)
{
    char text[64];
    struct ticks across = ticks_of(x), up = ticks_of(y);
    double last = -INFINITY;
    fputs("<path class=\"muted grid\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"0.5\" "
          "d=\"",
          out);
    for (size_t i = 0; i < up.count; i++) {
        fprintf(out, "M%.1f %.1fH%.1f", x->from, span_at(y, up.at[i]), x->to);
    }
    for (size_t i = 0; i < across.count && !x->axis->names; i++) {
        fprintf(out, "M%.1f %.1fV%.1f", span_at(x, across.at[i]), y->from, y->to);
    }
    fputs("\"/>\n", out);
    open_path(out, CHART_MUTED, 1.5, false);
    fprintf(out, "M%.1f %.1fV%.1fH%.1f\"/>\n", x->from, y->to, y->from, x->to);
    for (size_t i = 0; i < up.count; i++) {
        tick_text(y, up.at[i], text, sizeof text);
        profile_svg_text(out, x->from - 6, span_at(y, up.at[i]) + FONT / 3.0, "end", text);
    }
    for (size_t i = 0; i < across.count; i++) {
        tick_text(x, across.at[i], text, sizeof text);
        double half = text_width(text) / 2, middle = fmin(span_at(x, across.at[i]), WIDTH - half);
        if (middle - half > last) { /* a tick whose text would lie on the one before has none */
            profile_svg_text(out, middle, y->from + ROW, "middle", text);
            last = middle + half;
        }
    }
    profile_svg_text(out, (x->from + x->to) / 2, y->from + 2 * ROW + 2, "middle", x->axis->label);
}

static void put_series(FILE *out, const struct chart_series *series, const struct span *x,
                       const struct span *y)
{
    bool line = series->style != CHART_POINTS, dots = series->style < CHART_RULE || !line;
    if (line && series->count) {
        open_path(out, series->colour, 2,
                  series->style == CHART_DASHED || series->style == CHART_RULE);
        for (size_t i = 0; i < series->count; i++) {
            fprintf(out, "%c%.1f %.1f", i ? 'L' : 'M', span_at(x, series->points[i].x),
                    span_at(y, series->points[i].y));
        }
        fputs("\"/>\n", out);
    }
    if (dots && series->count) {
        open_path(out, series->colour, series->count > 40 ? 4.5 : 7, false);
        for (size_t i = 0; i < series->count; i++) {
            fprintf(out, "M%.1f %.1fh0", span_at(x, series->points[i].x),
                    span_at(y, series->points[i].y));
        }
        fputs("\"/>\n", out);
    }
    for (size_t i = 0; i < series->count && series->style == CHART_POINTS; i++) {
        const struct chart_point *point = &series->points[i];
        if (point->low < point->high) {
            open_path(out, series->colour, 2, false);
            fprintf(out, "M%.1f %.1fV%.1f\"/>\n", span_at(x, point->x), span_at(y, point->low),
                    span_at(y, point->high));
        }
    }
}

/* After Okabe and Ito: colour-blind people tell them apart, too. */
static const char alone_style[] =
    "<style>.ink{color:#1a1a1a}.muted{color:#8a8a8a}.c1{color:#0072b2}.c2{color:#d55e00}"
    ".c3{color:#009e73}.c4{color:#b1589b}.c5{color:#3a9bd9}.c6{color:#b87c00}"
    ".ground{fill:#fff}text{fill:currentColor}</style>\n"
    "<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n";

void profile_chart_svg(const struct chart *chart, FILE *out, bool alone)
{
    char text[64];
    struct span x = range_of_axis(chart, false), y = range_of_axis(chart, true);
    struct ticks up = ticks_of(&y);
    double widest = 0;
    for (size_t i = 0; i < up.count; i++) {
        tick_text(&y, up.at[i], text, sizeof text);
        widest = fmax(widest, text_width(text));
    }
    x.from = fmin(widest + EDGE, WIDTH / 3);
    x.to = WIDTH - EDGE;
    /* The head is written first, although its height is known last: what stands above the plot goes
     * to a stream of its own. */
    char *head = NULL;
    size_t length;
    FILE *above = cli_needed(profile_stream_open(&head, &length));
    double top = alone ? ROW : 0; /* a page writes the title itself */
    if (alone) {
        profile_svg_text(above, WIDTH / 2, FONT + 2, "middle", chart->title);
    }
    profile_svg_text(above, EDGE / 2, top + FONT + 2, "start", chart->y.label);
    top += ROW + 4;
    top += put_legend(above, chart, top);
    struct mark_layout marks = layout_marks(chart, &x);
    y.to = top + ROW * (double)(marks.blocks * marks.lines) + 8;
    y.from = y.to + PLOT_HEIGHT;
    cli_done(fclose(above));
    fprintf(out,
            "<svg%s role=\"img\" viewBox=\"0 0 %g %g\"%s font-family=\"sans-serif\" "
            "font-size=\"%d\">\n<title>",
            alone ? " xmlns=\"http://www.w3.org/2000/svg\"" : "", WIDTH, y.from + 2 * ROW + 12,
            alone ? " width=\"900\"" : "", FONT);
    profile_xml_text(out, chart->title);
    fprintf(out, "</title>\n%s%s", alone ? alone_style : "", head);
    free(head);
    put_axes(out, &x, &y);
    for (size_t i = 0; i < chart->series_count; i++) {
        put_series(out, &chart->series[i], &x, &y);
    }
    put_marks(out, chart, &x, &y, marks.lines);
    fputs("</svg>\n", out);
}

int profile_chart_save(const struct chart *chart, const char *path, struct servet_error *error)
{
    char *text = NULL;
    size_t length;
    FILE *out = cli_needed(profile_stream_open(&text, &length));
    profile_chart_svg(chart, out, true);
    cli_done(fclose(out));
    int rc = profile_save_file(path, text, length, error);
    free(text);
    return rc;
}
