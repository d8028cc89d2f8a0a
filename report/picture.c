#include "report/picture.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/query.h"
#include "report/plot.h"

/* Of lstopo's SVG: ids made unique, name space and xlink left to HTML, colours of boxes left to the
 * style sheet, save those of the PUs that have a worker. */
static char *tidy(const char *raw, const char *name)
{
    char *out = NULL;
    size_t length;
    const char *p = strstr(raw, "<svg");
    FILE *stream = p ? open_memstream(&out, &length) : NULL;
    if (!stream) {
        return NULL;
    }
    static const char name_space[] =
        " xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink'";
    static const char pixels[] = "px' viewBox='0 0 ";
    while (*p) {
        if (strncmp(p, name_space, sizeof name_space - 1) == 0) {
            p += sizeof name_space - 1;
        } else if (strncmp(p, " id='", 5) == 0) {
            fprintf(stream, " id='%s-", name);
            p += 5;
        } else if (strncmp(p, pixels, sizeof pixels - 1) == 0) {
            /* a view box has no units, and the one that lstopo writes is refused by browsers */
            int width, height;
            p += sizeof pixels - 1;
            fputs(pixels, stream);
            if (sscanf(p, "%dpx %dpx", &width, &height) == 2) {
                fprintf(stream, "%d %d", width, height);
                p += strcspn(p, "'");
            }
        } else {
            fputc(*p++, stream);
        }
    }
    if (fclose(stream) != 0) {
        free(out);
        return NULL;
    }
    return out;
}

int report_picture_raw(const struct picture *picture, char **out, size_t *left_out,
                       struct servet_error *error)
{
    char *xml;
    size_t length;
    int rc = report_picture_xml(picture, &xml, left_out);
    if (rc < 0) {
        return profile_error(error, rc, "lstopo: %s", strerrordesc_np(-rc));
    }
    char *argv[] = {"lstopo-no-graphics",
                    "--if",
                    "xml",
                    "-i",
                    "-",
                    "--of",
                    "nativesvg",
                    "-p",
                    "--no-legend",
                    "--no-factorize",
                    "--no-collapse",
                    picture->compact ? "--no-index=PU" : NULL,
                    "--no-text=Core",
                    "--gridsize",
                    "4",
                    NULL};
    rc = report_run_filter(argv, xml, strlen(xml), out, &length, error);
    if (rc == -ENOENT) {
        argv[0] = "lstopo";
        rc = report_run_filter(argv, xml, strlen(xml), out, &length, error);
    }
    free(xml);
    return rc;
}

int report_picture_svg(const struct picture *picture, const char *name, char **out,
                       size_t *left_out, struct servet_error *error)
{
    char *raw;
    int rc = report_picture_raw(picture, &raw, left_out, error);
    if (rc < 0) {
        return rc;
    }
    *out = tidy(raw, name);
    free(raw);
    return *out ? 0 : profile_error(error, -EIO, "lstopo: wrote no SVG");
}

/* lstopo of Debian's hwloc-nox writes SVG, but no PNG; gnuplot does. So what lstopo drew (boxes and
 * lines of text, no more) is drawn again by gnuplot, and PNG files need nothing that the plots do
 * not need already. */

/* Height of the title above the picture, in its own pixels. */
#define TITLE_HEIGHT 24
#define TITLE_LETTER 6.5 /* width of one, a little more than the font's */
#define TEXT_SIZE 64

struct drawing {
    double width, height;
    FILE *script;
};

/* What lstopo writes about a box or a line of text, as attributes of one tag. */
struct shape {
    double x, y, width, height;
    int red, green, blue;
};

/* The value of `name='…'` in the tag, or NULL. */
static const char *attribute(const char *tag, const char *end, const char *name)
{
    const char *found = strstr(tag, name);
    return found && found < end ? found + strlen(name) : NULL;
}

static double number(const char *tag, const char *end, const char *name)
{
    const char *value = attribute(tag, end, name);
    return value ? strtod(value, NULL) : 0;
}

static struct shape shape_of(const char *tag, const char *end)
{
    struct shape shape = {number(tag, end, " x='"),
                          number(tag, end, " y='"),
                          number(tag, end, " width='"),
                          number(tag, end, " height='"),
                          0,
                          0,
                          0};
    const char *fill = attribute(tag, end, " fill='rgb(");
    if (fill && sscanf(fill, "%d,%d,%d", &shape.red, &shape.green, &shape.blue) != 3) {
        shape.red = shape.green = shape.blue = 0;
    }
    return shape;
}

static void put_box(FILE *script, const char *tag, const char *end)
{
    struct shape box = shape_of(tag, end);
    fprintf(script,
            "set object rectangle from %g,%g to %g,%g fillcolor rgb '#%02x%02x%02x' fillstyle "
            "solid border linecolor "
            "rgb muted\n",
            box.x, box.y, box.x + box.width, box.y + box.height, box.red, box.green, box.blue);
}

/* The text stands between the tags; entities are those of XML. */
static void put_text(FILE *script, const char *tag, const char *end)
{
    static const char *const entities[][2] = {
        {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}};
    struct shape place = shape_of(tag, end);
    char text[TEXT_SIZE];
    size_t length = 0;
    for (const char *p = end + 1; *p && *p != '<' && length + 1 < sizeof text; length++) {
        size_t used = 0;
        for (size_t i = 0; !used && i < sizeof entities / sizeof *entities; i++) {
            used = strncmp(p, entities[i][0], strlen(entities[i][0])) == 0 ? strlen(entities[i][0])
                                                                           : 0;
            text[length] = used ? *entities[i][1] : *p;
        }
        p += used ? used : 1;
    }
    text[length] = '\0';
    fputs("set label ", script);
    report_plot_quote(script, text);
    /* lstopo gives the base line, gnuplot the middle of the line */
    fprintf(script, " at %g,%g left front textcolor rgb '#%02x%02x%02x'\n", place.x,
            place.y - number(tag, end, " font-size='") / 3, place.red, place.green, place.blue);
}

static int draw(const char *svg, const char *title, struct drawing *drawing)
{
    const char *p = strstr(svg, "<svg"), *end = p ? strchr(p, '>') : NULL;
    if (!end) {
        return -EIO;
    }
    drawing->width = number(p, end, " width='");
    drawing->height = number(p, end, " height='");
    FILE *script = drawing->script;
    /* a small machine may be narrower than its title: the rest of the width is left at both
     * sides */
    double side = fmax(0, TITLE_LETTER * (double)strlen(title) - drawing->width) / 2;
    fprintf(script,
            "unset border\nunset tics\nunset key\nset margins 0,0,0,0\nset xrange [%g:%g]\nset "
            "yrange [%g:%d]\n",
            -side, drawing->width + side, drawing->height, -TITLE_HEIGHT);
    fputs("set label ", script);
    report_plot_quote(script, title);
    fprintf(script, " at %g,%d center\n", drawing->width / 2, -TITLE_HEIGHT / 2);
    drawing->width += 2 * side;
    for (p = end; (p = strchr(p, '<')) && (end = strchr(p, '>')); p = end) {
        if (strncmp(p, "<rect ", 6) == 0) {
            put_box(script, p, end);
        } else if (strncmp(p, "<text ", 6) == 0) {
            put_text(script, p, end);
        }
    }
    fputs("plot NaN\n", script);
    return drawing->width > 0 && drawing->height > 0 ? 0 : -EIO;
}

int report_picture_png(const struct pictures_item *item, char **out, size_t *length,
                       struct servet_error *error)
{
    char *svg, *script = NULL;
    size_t left_out, script_length;
    int rc = report_picture_raw(&item->picture, &svg, &left_out, error);
    if (rc < 0) {
        return rc;
    }
    struct drawing drawing = {.script = open_memstream(&script, &script_length)};
    if (!drawing.script) {
        free(svg);
        return profile_error(error, -ENOMEM, "%s: %s", item->id, strerrordesc_np(ENOMEM));
    }
    rc = draw(svg, item->title, &drawing);
    rc = fclose(drawing.script) != 0 ? -ENOMEM : rc;
    free(svg);
    if (rc < 0) {
        profile_error(error, rc, "%s: %s", item->id,
                      rc == -EIO ? "lstopo wrote no SVG" : strerrordesc_np(-rc));
    } else {
        const struct plot plot = {.shape = PLOT_PICTURE,
                                  .name = (char *)item->id,
                                  .title = (char *)item->title,
                                  .script = script,
                                  .width = drawing.width,
                                  .height = drawing.height + TITLE_HEIGHT};
        rc = report_plot_png(&plot, out, length, error);
    }
    free(script);
    return rc;
}

/* Of more PUs than this, a picture shows only what cores share: it has to fit a screen and a
 * slide. */
#define PUS_IN_FULL 32

static const enum map_priority priorities[2] = {MAP_MEMORY, MAP_COMMUNICATION};

/* The workers of the first node of the class that has any. */
static size_t workers_of_class(const struct servet_profile *profile, size_t index,
                               const uint32_t *chosen, size_t count, uint32_t *pus,
                               uint32_t *labels, uint32_t *node)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        struct profile_place place;
        if (!profile_locate(profile, chosen[i], &place) ||
            place.node_class != &profile->classes[index] || (found && place.node != *node)) {
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
    item->picture =
        (struct picture){.node_class = node_class, .compact = node_class->pus.count > PUS_IN_FULL};
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
        size_t found =
            workers_of_class(profile, i, list->chosen[which], report->workers, pus, labels, &node);
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

static int add_mappings(const struct report *report, struct pictures *list,
                        struct servet_error *error)
{
    size_t classes = report->profile->class_count;
    list->room = calloc(2 * 2 * classes * report->workers, sizeof *list->room);
    int rc = list->room ? 0 : -ENOMEM;
    for (size_t which = 0; rc == 0 && which < 2; which++) {
        const struct map_request request = {.priority = priorities[which],
                                            .workers = report->workers};
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
    return rc < 0 ? profile_error(error, rc, "mapping %zu workers: %s", report->workers,
                                  strerrordesc_np(-rc))
                  : 0;
}

int report_pictures_of(const struct report *report, struct pictures *out,
                       struct servet_error *error)
{
    struct pictures list = {.items =
                                calloc(3 * report->profile->class_count + 1, sizeof *list.items)};
    if (!list.items) {
        return profile_error(error, -ENOMEM, "report: %s", strerrordesc_np(ENOMEM));
    }
    add_topologies(report->profile, &list);
    int rc = report->workers ? add_mappings(report, &list, error) : 0;
    if (rc < 0) {
        report_pictures_free(&list);
        return rc;
    }
    *out = list;
    return 0;
}

void report_pictures_free(struct pictures *pictures)
{
    free(pictures->items);
    free(pictures->chosen[0]);
    free(pictures->chosen[1]);
    free(pictures->room);
    *pictures = (struct pictures){0};
}
