/* From a plot's script to a picture: gnuplot runs as a filter, and what it writes as SVG is made
 * fit to stand in a page (ids of its own, colours as variables of the style sheet).
 *
 * gnuplot's SVG has no classes, so colours that nobody uses stand for names on the way through it.
 * Its terminal of PNG takes the same script with real colours. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "profile/base/child.h"
#include "profile/base/file.h"
#include "report/report.h"

/* As small as reads well on a phone, where the picture is a little more than half as large. */
#define CURVE_SIZE "600,400"
#define MAP_SIZE "600,450"
#define SVG_FONT "sans-serif,16"
#define PNG_FONT "sans,13"
/* Slides are shown large. */
#define PNG_CURVE_SIZE "1200,800"
#define PNG_MAP_SIZE "1200,960"
#define PNG_FONT_SCALE "1.7"
#define TITLE_LINES 2

/* Colours that gnuplot writes into the SVG and that name variables of the style sheet: #0101NN is
 * number NN. */
#define SENTINEL_RED 1
#define SENTINEL_GREEN 1
static const char *const variables[] = {"--ink", "--muted", "--c1", "--c2",
                                        "--c3",  "--c4",    "--c5", "--c6"};
#define VARIABLES (sizeof variables / sizeof *variables)
static const char names[][6] = {"ink", "muted", "c1", "c2", "c3", "c4", "c5", "c6"};
/* After Okabe and Ito: told apart by colour-blind people too. */
static const char *const print_colours[] = {"#1a1a1a", "#8a8a8a", "#0072b2", "#d55e00",
                                            "#009e73", "#b1589b", "#56b4e9", "#c98a00"};

/* A picture of boxes is drawn so many pixels wide, its letters (10 of its own pixels) with it. */
#define PNG_PICTURE_WIDTH 1600.0
#define PNG_PICTURE_MOST 2.5 /* times its own size: small ones stay small */
#define PICTURE_TEXT 10
#define PICTURE_POINT 0.75 /* points to a pixel, of pngcairo */

static void png_terminal(FILE *stream, const struct plot *plot)
{
    if (plot->shape == PLOT_PICTURE) {
        double scale = fmin(PNG_PICTURE_WIDTH / plot->width, PNG_PICTURE_MOST);
        scale = fmax(scale, 1.0);
        fprintf(stream,
                "set terminal pngcairo size %.0f,%.0f noenhanced font 'monospace,%d' fontscale "
                "%.3f background rgb "
                "'white'\n",
                plot->width * scale, plot->height * scale, PICTURE_TEXT, scale * PICTURE_POINT);
        return;
    }
    fprintf(stream,
            "set terminal pngcairo size %s noenhanced font '" PNG_FONT "' fontscale " PNG_FONT_SCALE
            " linewidth 2 background rgb 'white'\nset title ",
            plot->shape == PLOT_CURVE ? PNG_CURVE_SIZE : PNG_MAP_SIZE);
    report_plot_quote(stream, plot->title);
    fputs(" textcolor rgb ink\n", stream);
}

static void common(FILE *stream)
{
    fputs("set encoding utf8\n"
          "set border 3 lc rgb muted\n"
          "set tics nomirror textcolor rgb ink\n"
          "set grid lc rgb muted lw 0.4 dt 3\n"
          "set xlabel textcolor rgb ink\nset ylabel textcolor rgb ink\n"
          "set key textcolor rgb ink noenhanced\n",
          stream);
}

static int run_gnuplot(const char *script, size_t length, char **out, size_t *out_length,
                       struct servet_error *error)
{
    /* -d: without the user's own settings */
    char *argv[] = {"gnuplot", "-d", NULL};
    int rc = profile_child_filter(argv, script, length, out, out_length, error);
    if (rc == -ENOENT) {
        return profile_error(
            error, rc,
            "gnuplot: not installed, expected it to draw the plots (Debian: gnuplot-nox)");
    }
    return rc;
}

static int render(const struct plot *plot, bool png, char **out, size_t *out_length,
                  struct servet_error *error)
{
    char *script = NULL;
    size_t length = 0;
    FILE *stream = profile_stream_open(&script, &length);
    if (!stream) {
        return profile_error(error, -ENOMEM, "%s: %s", plot->name, strerrordesc_np(ENOMEM));
    }
    for (size_t i = 0; i < VARIABLES; i++) {
        if (png) {
            fprintf(stream, "%s = '%s'\n", names[i], print_colours[i]);
        } else {
            fprintf(stream, "%s = '#%02x%02x%02zx'\n", names[i], SENTINEL_RED, SENTINEL_GREEN, i);
        }
    }
    /* scripts with a margin of their own leave room for the title, which a page has outside of the
     * plot */
    fprintf(stream, "title_lines = %d\n", png ? TITLE_LINES : 0);
    if (png) {
        png_terminal(stream, plot);
    } else {
        fprintf(stream,
                "set terminal svg size %s dynamic noenhanced font '" SVG_FONT "' linewidth 1.6\n",
                plot->shape == PLOT_CURVE ? CURVE_SIZE : MAP_SIZE);
    }
    common(stream);
    fputs(plot->script, stream);
    int rc = fclose(stream) != 0
                 ? profile_error(error, -ENOMEM, "%s: %s", plot->name, strerrordesc_np(ENOMEM))
                 : 0;
    rc = rc < 0 ? rc : run_gnuplot(script, length, out, out_length, error);
    free(script);
    return rc;
}

/* -- SVG into a page -- */

struct replacement {
    const char *from, *to;
    bool named; /* the name of the plot comes behind it */
};

/* Ids are unique in a page; the name space and xlink are HTML's business; black is what gnuplot
 * leaves uncoloured. */
static const struct replacement replacements[] = {
    {"xmlns=\"http://www.w3.org/2000/svg\"", "", false},
    {"xmlns:xlink=\"http://www.w3.org/1999/xlink\"", "", false},
    {"color=\"black\"", "color=\"inherit\"", false},
    {"xlink:href='#", "href='#", true},
    {"xlink:href=", "href=", false},
    {"id=\"", "id=\"", true},
    {"id='", "id='", true},
    {"url(#", "url(#", true},
};

/* "rgb(  1,   1,   3)" -> "var(--c2)"; returns the characters eaten, 0: it is an ordinary colour.
 */
static size_t put_variable(FILE *stream, const char *text)
{
    int red, green, blue, used = 0;
    if (sscanf(text, "rgb( %d , %d , %d )%n", &red, &green, &blue, &used) != 3 || used == 0) {
        used = 0;
        if (sscanf(text, "#%2x%2x%2x%n", (unsigned *)&red, (unsigned *)&green, (unsigned *)&blue,
                   &used) != 3) {
            return 0;
        }
    }
    if (used == 0 || red != SENTINEL_RED || green != SENTINEL_GREEN || blue < 0 ||
        (size_t)blue >= VARIABLES) {
        return 0;
    }
    fprintf(stream, "var(%s)", variables[blue]);
    return (size_t)used;
}

static size_t put_piece(FILE *stream, const char *text, const char *name)
{
    size_t used = *text == 'r' || *text == '#' ? put_variable(stream, text) : 0;
    if (used) {
        return used;
    }
    for (size_t i = 0; i < sizeof replacements / sizeof *replacements; i++) {
        const struct replacement *r = &replacements[i];
        size_t length = strlen(r->from);
        if (strncmp(text, r->from, length) == 0) {
            fprintf(stream, "%s%s%s", r->to, r->named ? name : "", r->named ? "-" : "");
            return length;
        }
    }
    fputc(*text, stream);
    return 1;
}

int report_plot_svg(const struct plot *plot, char **out, size_t *length, struct servet_error *error)
{
    char *raw, *tidy = NULL;
    size_t raw_length, tidy_length = 0;
    int rc = render(plot, false, &raw, &raw_length, error);
    if (rc < 0) {
        return rc;
    }
    const char *p = strstr(raw, "<svg");
    FILE *stream = profile_stream_open(&tidy, &tidy_length);
    if (!p || !stream) {
        rc = p ? -ENOMEM : -EIO;
        if (stream) {
            fclose(stream);
        }
        free(tidy);
        free(raw);
        return profile_error(error, rc, "gnuplot: wrote no SVG for %s", plot->name);
    }
    while (*p) {
        p += put_piece(stream, p, plot->name);
    }
    rc = fclose(stream) != 0 ? -ENOMEM : 0;
    free(raw);
    if (rc < 0) {
        free(tidy);
        return profile_error(error, rc, "%s: %s", plot->name, strerrordesc_np(-rc));
    }
    *out = tidy;
    *length = tidy_length;
    return 0;
}

FILE *report_plot_open(struct plot_list *list, enum plot_section section, enum plot_shape shape,
                       size_t node_class, size_t classes, const char *name, const char *title)
{
    struct plot *items =
        list->rc < 0 ? NULL : realloc(list->items, (list->count + 1) * sizeof *items);
    if (!items) {
        list->rc = -ENOMEM;
        return NULL;
    }
    list->items = items;
    struct plot *plot = &items[list->count];
    *plot = (struct plot){
        .section = section, .shape = shape, .node_class = node_class, .title = strdup(title)};
    int length = classes > 1 && node_class != PLOT_NETWORK
                     ? asprintf(&plot->name, "class%zu-%s", node_class, name)
                     : asprintf(&plot->name, "%s", name);
    if (length < 0) {
        plot->name = NULL;
    }
    list->count++;
    list->stream = profile_stream_open(&list->script, &list->script_size);
    list->rc = plot->name && plot->title && list->stream ? 0 : -ENOMEM;
    return list->stream;
}

void report_plot_close(struct plot_list *list, const char *caption, ...)
{
    if (!list->stream || !list->count) {
        return;
    }
    struct plot *plot = &list->items[list->count - 1];
    va_list args;
    va_start(args, caption);
    if (vasprintf(&plot->caption, caption, args) < 0) {
        plot->caption = NULL;
        list->rc = -ENOMEM;
    }
    va_end(args);
    if (fclose(list->stream) != 0) {
        list->rc = -ENOMEM;
    }
    list->stream = NULL;
    plot->script = list->script;
    list->script = NULL;
}

void report_plot_free(struct plot_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].name);
        free(list->items[i].title);
        free(list->items[i].caption);
        free(list->items[i].script);
    }
    free(list->items);
    *list = (struct plot_list){0};
}

void report_plot_quote(FILE *stream, const char *text)
{
    fputc('\'', stream);
    for (; *text; text++) {
        /* A line end would end the command, whatever the quotes. */
        fputs(*text == '\'' ? "''"
                            : (const char[]){iscntrl((unsigned char)*text) ? ' ' : *text, '\0'},
              stream);
    }
    fputc('\'', stream);
}

void report_plot_byte_ticks(FILE *stream, double low, double high)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int first = (int)floor(log2(fmax(low, 1))), last = (int)ceil(log2(fmax(high, 2)));
    int step = last - first > 12 ? 4 : last - first > 6 ? 2 : 1; /* at most about seven labels */
    fputs("set xtics (", stream);
    for (int power = first - first % step; power <= last && power < 50; power += step) {
        fprintf(stream, "%s'%d %s' %.0f", power == first - first % step ? "" : ", ",
                1 << power % 10, units[power / 10], exp2(power));
    }
    fputs(") nomirror\n", stream);
}

/* -- Plots and pictures of the topology as PNG files in a folder, for slides. Everything is drawn
 * in memory before the first file is written, so that a failure leaves nothing half-made. -- */

struct image {
    const char *name;
    char *bytes;
    size_t length;
};

static int make_folder(const char *folder, struct servet_error *error)
{
    struct stat status;
    if (mkdir(folder, 0777) < 0 && errno != EEXIST) {
        int code = errno;
        return profile_error(error, -code, "%s: %s", folder, strerrordesc_np(code));
    }
    if (stat(folder, &status) < 0 || !S_ISDIR(status.st_mode)) {
        return profile_error(error, -ENOTDIR, "%s: not a folder, expected one for the PNG files",
                             folder);
    }
    return 0;
}

static int write_images(const struct image *images, size_t count, const char *folder,
                        struct servet_error *error)
{
    int rc = make_folder(folder, error);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        char path[PATH_MAX];
        if ((size_t)snprintf(path, sizeof path, "%s/%s.png", folder, images[i].name) >=
            sizeof path) {
            return profile_error(error, -ENAMETOOLONG, "%s: %s", folder,
                                 strerrordesc_np(ENAMETOOLONG));
        }
        rc = profile_save_file(path, images[i].bytes, images[i].length, error);
    }
    return rc;
}

static int draw_picture(const struct pictures_item *item, struct image *image,
                        struct servet_error *error)
{
    struct plot plot = {.name = (char *)item->id};
    int rc = report_picture_script(&item->picture, item->title, &plot);
    if (rc < 0) {
        return profile_error(error, rc, "%s: %s", item->id, strerrordesc_np(-rc));
    }
    rc = render(&plot, true, &image->bytes, &image->length, error);
    free(plot.script);
    return rc;
}

/* Pictures of the topology; of those that are too large none, and *left_out says so. */
static int draw_pictures(const struct pictures *pictures, struct image *images, size_t *count,
                         struct servet_error *left_out, struct servet_error *error)
{
    for (size_t i = 0; i < pictures->count; i++) {
        const struct pictures_item *item = &pictures->items[i];
        struct image *image = &images[*count];
        if (item->picture.node_class->pus.count > PICTURE_PUS) {
            profile_error(left_out, 0, "%s: more than %d PUs are not drawn", item->id, PICTURE_PUS);
            continue;
        }
        int rc = draw_picture(item, image, error);
        if (rc < 0) {
            return rc;
        }
        image->name = item->id;
        ++*count;
    }
    return 0;
}

static int draw_plots(const struct plot_list *plots, struct image *images, size_t *count,
                      struct servet_error *error)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < plots->count; i++) {
        struct image *image = &images[i];
        rc = render(&plots->items[i], true, &image->bytes, &image->length, error);
        image->name = plots->items[i].name;
        *count += rc == 0;
    }
    return rc;
}

int report_png(const struct report *report, const char *folder, size_t *count,
               struct servet_error *left_out, struct servet_error *error)
{
    struct plot_list plots;
    struct pictures pictures = {0};
    size_t drawn = 0;
    int rc = report_plots_of(report->profile, &plots, error);
    if (rc < 0) {
        return rc;
    }
    left_out->text[0] = '\0';
    rc = report_pictures_of(report, &pictures, error);
    struct image *images = calloc(plots.count + pictures.count + 1, sizeof *images);
    if (rc == 0 && !images) {
        rc = profile_error(error, -ENOMEM, "report: %s", strerrordesc_np(ENOMEM));
    }
    rc = rc < 0 ? rc : draw_plots(&plots, images, &drawn, error);
    rc = rc < 0 ? rc : draw_pictures(&pictures, images, &drawn, left_out, error);
    rc = rc < 0 ? rc : write_images(images, drawn, folder, error);
    if (rc == 0) {
        *count = drawn;
    }
    for (size_t i = 0; images && i < drawn; i++) {
        free(images[i].bytes);
    }
    free(images);
    report_pictures_free(&pictures);
    report_plot_free(&plots);
    return rc;
}
