#include "plot.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

FILE *plot_open(struct plot_list *list, enum plot_section section, enum plot_shape shape, size_t node_class,
                size_t classes, const char *name, const char *title)
{
    struct plot *items = list->rc < 0 ? NULL : realloc(list->items, (list->count + 1) * sizeof *items);
    if (!items) {
        list->rc = -ENOMEM;
        return NULL;
    }
    list->items = items;
    struct plot *plot = &items[list->count];
    *plot = (struct plot){.section = section, .shape = shape, .node_class = node_class, .title = strdup(title)};
    int length = classes > 1 && node_class != PLOT_NETWORK ? asprintf(&plot->name, "class%zu-%s", node_class, name)
                                                           : asprintf(&plot->name, "%s", name);
    if (length < 0) {
        plot->name = NULL;
    }
    list->count++;
    list->stream = open_memstream(&list->script, &list->script_size);
    list->rc = plot->name && plot->title && list->stream ? 0 : -ENOMEM;
    return list->stream;
}

void plot_close(struct plot_list *list, const char *caption, ...)
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

void plot_free(struct plot_list *list)
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

void plot_quote(FILE *stream, const char *text)
{
    fputc('\'', stream);
    for (; *text; text++) {
        /* A line end would end the command, whatever the quotes. */
        fputs(*text == '\'' ? "''" : (const char[]){iscntrl((unsigned char)*text) ? ' ' : *text, '\0'}, stream);
    }
    fputc('\'', stream);
}

void plot_byte_ticks(FILE *stream, const char *axis, double low, double high)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int first = (int)floor(log2(fmax(low, 1))), last = (int)ceil(log2(fmax(high, 2)));
    int step = last - first > 12 ? 4 : last - first > 6 ? 2 : 1; /* at most about seven labels */
    fprintf(stream, "set %stics (", axis);
    for (int power = first - first % step; power <= last && power < 50; power += step) {
        fprintf(stream, "%s'%d %s' %.0f", power == first - first % step ? "" : ", ", 1 << power % 10, units[power / 10],
                exp2(power));
    }
    fputs(") nomirror\n", stream);
}
