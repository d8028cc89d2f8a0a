/* lstopo of Debian's hwloc-nox writes SVG, but no PNG; gnuplot does. So what lstopo drew (boxes and lines of text, no
 * more) is drawn again by gnuplot, and PNG files need nothing that the plots do not need already. */
#include "picture_png.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
            "set object rectangle from %g,%g to %g,%g fillcolor rgb '#%02x%02x%02x' fillstyle solid border linecolor "
            "rgb muted\n",
            box.x, box.y, box.x + box.width, box.y + box.height, box.red, box.green, box.blue);
}

/* The text stands between the tags; entities are those of XML. */
static void put_text(FILE *script, const char *tag, const char *end)
{
    static const char *const entities[][2] = {{"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}};
    struct shape place = shape_of(tag, end);
    char text[TEXT_SIZE];
    size_t length = 0;
    for (const char *p = end + 1; *p && *p != '<' && length + 1 < sizeof text; length++) {
        size_t used = 0;
        for (size_t i = 0; !used && i < sizeof entities / sizeof *entities; i++) {
            used = strncmp(p, entities[i][0], strlen(entities[i][0])) == 0 ? strlen(entities[i][0]) : 0;
            text[length] = used ? *entities[i][1] : *p;
        }
        p += used ? used : 1;
    }
    text[length] = '\0';
    fputs("set label ", script);
    plot_quote(script, text);
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
    /* a small machine may be narrower than its title: the rest of the width is left at both sides */
    double side = fmax(0, TITLE_LETTER * (double)strlen(title) - drawing->width) / 2;
    fprintf(script,
            "unset border\nunset tics\nunset key\nset margins 0,0,0,0\nset xrange [%g:%g]\nset yrange [%g:%d]\n", -side,
            drawing->width + side, drawing->height, -TITLE_HEIGHT);
    fputs("set label ", script);
    plot_quote(script, title);
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

int picture_png(const struct pictures_item *item, char **out, size_t *length, struct servet_error *error)
{
    char *svg, *script = NULL;
    size_t left_out, script_length;
    int rc = picture_raw(&item->picture, &svg, &left_out, error);
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
        profile_error(error, rc, "%s: %s", item->id, rc == -EIO ? "lstopo wrote no SVG" : strerrordesc_np(-rc));
    } else {
        const struct plot plot = {.shape = PLOT_PICTURE,
                                  .name = (char *)item->id,
                                  .title = (char *)item->title,
                                  .script = script,
                                  .width = drawing.width,
                                  .height = drawing.height + TITLE_HEIGHT};
        rc = plot_png(&plot, out, length, error);
    }
    free(script);
    return rc;
}
