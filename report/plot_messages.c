/* Time and bandwidth of a message by its size, and of many messages at once, one curve per layer. */
#include "plot.h"

#include <math.h>

struct range {
    double low, high;
};

static void layer_title(FILE *out, const struct profile_layer *layer, size_t index)
{
    char title[96];
    snprintf(title, sizeof title, "layer %zu%s%.60s", index, layer->name ? ": " : "", layer->name ? layer->name : "");
    plot_quote(out, title);
}

static struct range sizes(const struct profile_communication *communication)
{
    struct range range = {INFINITY, 0};
    for (size_t i = 0; i < communication->layer_count; i++) {
        const struct profile_layer *layer = &communication->layers[i];
        for (size_t k = 0; k < layer->curve_count; k++) {
            range.low = fmin(range.low, fmax((double)layer->curve[k].bytes, 1));
            range.high = fmax(range.high, (double)layer->curve[k].bytes);
        }
    }
    return range;
}

/* `axes`: of "using". An empty message has no place on a logarithmic axis and no bandwidth. */
static void curves(FILE *out, const struct profile_communication *communication, const char *axes)
{
    for (size_t i = 0; i < communication->layer_count; i++) {
        const struct profile_layer *layer = &communication->layers[i];
        fprintf(out, "$layer%zu << EOD\n", i);
        for (size_t k = 0; k < layer->curve_count; k++) {
            if (layer->curve[k].bytes) {
                fprintf(out, "%.0f %.6g\n", (double)layer->curve[k].bytes, layer->curve[k].seconds);
            }
        }
        fputs("EOD\n", out);
    }
    const char *separator = "plot ";
    for (size_t i = 0; i < communication->layer_count; i++) {
        const struct profile_layer *layer = &communication->layers[i];
        if (layer->curve_count > 1) {
            fprintf(out, "%s$layer%zu using %s with linespoints lc rgb c%zu lw 1.5 pt 7 ps 0.5 title ", separator, i,
                    axes, i % PLOT_COLOURS + 1);
            layer_title(out, layer, i);
            separator = ", ";
        }
    }
    fputc('\n', out);
}

static void size_axis(FILE *out, struct range range)
{
    fprintf(out, "set logscale x 2\nset xrange [%.0f:%.0f]\nset logscale y 10\nset xlabel 'size of the message'\n",
            range.low, range.high);
    plot_byte_ticks(out, "x", range.low, range.high);
}

static void plot_sizes(struct plot_list *list, const struct profile_communication *communication, size_t index,
                       size_t classes, const char *prefix)
{
    struct range range = sizes(communication);
    if (!(range.high > range.low)) {
        return;
    }
    char name[64];
    snprintf(name, sizeof name, "%smessage-time", prefix);
    FILE *out = plot_open(list, PLOT_MESSAGES, PLOT_CURVE, index, classes, name, "Time of a message by size");
    if (out) {
        size_axis(out, range);
        fputs("set format y '%.0s %cs'\nset ylabel 'one way'\nset key top left Left reverse\n", out);
        curves(out, communication, "1:2");
        plot_close(list, "One message at a time between two members of each layer, one way.");
    }
    snprintf(name, sizeof name, "%smessage-bandwidth", prefix);
    out = plot_open(list, PLOT_MESSAGES, PLOT_CURVE, index, classes, name, "Bandwidth of a message by size");
    if (out) {
        size_axis(out, range);
        fputs("set format y '%.0s %cB/s'\nset ylabel 'one way'\nset key bottom right\n", out);
        curves(out, communication, "1:($1/$2)");
        plot_close(list, "The same figures as size divided by time.");
    }
}

static void plot_concurrency(struct plot_list *list, const struct profile_communication *communication, size_t index,
                             size_t classes, const char *prefix)
{
    size_t curves_found = 0;
    uint32_t most = 0;
    for (size_t i = 0; i < communication->layer_count; i++) {
        const struct profile_layer *layer = &communication->layers[i];
        curves_found += layer->concurrency_count > 1;
        for (size_t k = 0; k < layer->concurrency_count; k++) {
            most = layer->concurrency[k].messages > most ? layer->concurrency[k].messages : most;
        }
    }
    char name[64];
    snprintf(name, sizeof name, "%smessage-concurrency", prefix);
    FILE *out = !curves_found
                    ? NULL
                    : plot_open(list, PLOT_MESSAGES, PLOT_CURVE, index, classes, name, "Many messages at once");
    if (!out) {
        return;
    }
    fprintf(out, "set xrange [0.7:%g]\nset yrange [0:*]\nset format y '%%.1s %%cs'\nset xlabel 'messages at once'\n",
            most + 0.3);
    fprintf(out, "set ylabel 'slowest of them, one way'\nset key top left Left reverse\nset xtics %u\n",
            most <= 16 ? 1 : most / 8);
    for (size_t i = 0; i < communication->layer_count; i++) {
        fprintf(out, "$layer%zu << EOD\n", i);
        for (size_t k = 0; k < communication->layers[i].concurrency_count; k++) {
            const struct profile_concurrency_point *point = &communication->layers[i].concurrency[k];
            fprintf(out, "%u %.6g\n", point->messages, point->seconds);
        }
        fputs("EOD\n", out);
    }
    const char *separator = "plot ";
    for (size_t i = 0; i < communication->layer_count; i++) {
        if (communication->layers[i].concurrency_count > 1) {
            fprintf(out, "%s$layer%zu using 1:2 with linespoints lc rgb c%zu lw 1.5 pt 7 ps 0.7 title ", separator, i,
                    i % PLOT_COLOURS + 1);
            layer_title(out, &communication->layers[i], i);
            separator = ", ";
        }
    }
    fputc('\n', out);
    plot_close(list,
               "Messages sent at the same time inside one layer; a flat line is a network that carries them all.");
}

static void plot_one(struct plot_list *list, const struct profile_communication *communication, size_t index,
                     size_t classes, const char *prefix)
{
    plot_sizes(list, communication, index, classes, prefix);
    plot_concurrency(list, communication, index, classes, prefix);
}

void plot_messages(struct plot_list *list, const struct servet_profile *profile)
{
    for (size_t i = 0; i < profile->class_count; i++) {
        plot_one(list, &profile->classes[i].communication, i, profile->class_count, "");
    }
    plot_one(list, &profile->network, PLOT_NETWORK, profile->class_count, "network-");
}
