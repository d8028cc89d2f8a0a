/* "Always plot the benchmark results" (Bisseling): T(h) with its fit for each number of
 * processors, and g, l and r for all of them, as data and as SVG. */
#include "probes/bsp/bsp.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/file.h"
#include "profile/text/chart.h"

/* One file of data and one picture. */
struct plot {
    char name[128];                /* of both, without the ending */
    const struct probe_bsp *found; /* one result, or several */
    size_t count;
    void (*write)(FILE *file, const struct plot *plot);
    void (*draw)(struct chart *chart, const struct plot *plot);
    struct chart chart; /* axes, without curves */
};

static const struct chart_axis h_axis = {"h, words", "", CHART_LINEAR, 0, NULL};
static const struct chart_axis p_axis = {"processors, p", "", CHART_WHOLE, 0, NULL};
static const struct chart_axis time_axis = {"time of an h-relation, T(h)", "s", CHART_LINEAR, 0,
                                            NULL};

/* -- T(h) of one number of processors -- */

static void write_curves(FILE *file, const struct plot *plot)
{
    const struct probe_bsp *found = plot->found;
    const struct bsp_curve *curves[] = {&found->words.curve, &found->packets.curve};
    static const char *const names[] = {"single words", "packets"};
    for (int k = 0; k < 2; k++) {
        fprintf(file, "%s# h   T(h) in flops   T(h) in seconds   (%s)\n", k ? "\n\n" : "",
                names[k]);
        for (size_t i = 0; i < curves[k]->count; i++) {
            fprintf(file, "%u %.6g %.6g\n", curves[k]->h[i], curves[k]->time[i] * found->flop_per_s,
                    curves[k]->time[i]);
        }
    }
}

static void draw_curves(struct chart *chart, const struct plot *plot)
{
    const struct probe_bsp_fit *fits[] = {&plot->found->words, &plot->found->packets};
    static const char *const names[] = {"single words", "packets"};
    char text[96];
    for (unsigned k = 0; k < 2; k++) {
        const struct bsp_curve *curve = &fits[k]->curve;
        const struct bsp_line *line = &fits[k]->line;
        const double last = curve->count ? (double)curve->h[curve->count - 1] : NAN;
        const double r = plot->found->flop_per_s;
        profile_chart_series(chart, k + 1, CHART_POINTS, names[k]);
        for (size_t i = 0; i < curve->count; i++) {
            profile_chart_point(chart, curve->h[i], curve->time[i]);
        }
        snprintf(text, sizeof text, "g = %.4g, l = %.4g flop", line->g * r, line->l * r);
        profile_chart_series(chart, k + 1, CHART_LINE, text);
        profile_chart_point(chart, 0, line->l);
        profile_chart_point(chart, last, line->g * last + line->l);
    }
    if (plot->found->words.bend.h) {
        profile_chart_mark(chart, plot->found->words.bend.h, CHART_MUTED, true, "bend");
    }
}

/* -- g and l, and r, of all -- */

static void write_parameters(FILE *file, const struct plot *plot)
{
    const struct probe_bsp *found = plot->found;
    fprintf(file, "# p   g   l   T(0)   g of packets   (flops)   r (flop/s)\n");
    for (size_t i = 0; i < plot->count; i++) {
        double r = found[i].flop_per_s;
        fprintf(file, "%u %.6g %.6g %.6g %.6g %.6g\n", found[i].processors,
                found[i].words.line.g * r, found[i].words.line.l * r, found[i].t0_s * r,
                found[i].packets.line.g * r, r);
    }
}

enum parameter { SINGLE_G, PACKETS_G, L, T0 };

static void parameter_curve(struct chart *chart, const struct plot *plot, enum parameter which,
                            unsigned colour, const char *name)
{
    profile_chart_series(chart, colour, CHART_CURVE, name);
    for (size_t i = 0; i < plot->count; i++) {
        const struct probe_bsp *found = &plot->found[i];
        const double values[] = {[SINGLE_G] = found->words.line.g,
                                 [PACKETS_G] = found->packets.line.g,
                                 [L] = found->words.line.l,
                                 [T0] = found->t0_s};
        profile_chart_point(chart, found->processors, values[which] * found->flop_per_s);
    }
}

static void draw_g(struct chart *chart, const struct plot *plot)
{
    parameter_curve(chart, plot, SINGLE_G, 1, "g");
    parameter_curve(chart, plot, PACKETS_G, 2, "g of packets");
}

static void draw_l(struct chart *chart, const struct plot *plot)
{
    parameter_curve(chart, plot, L, 1, "l");
    parameter_curve(chart, plot, T0, 2, "T(0)");
}

static void write_rates(FILE *file, const struct plot *plot)
{
    const struct probe_bsp *found = plot->found;
    for (size_t i = 0; i < plot->count; i++) {
        fprintf(file, "%s# words   r (flop/s)   (p = %u)\n", i ? "\n\n" : "", found[i].processors);
        for (size_t k = 0; k < BSP_LENGTHS; k++) {
            fprintf(file, "%u %.6g\n", bsp_length(k), found[i].rate[k]);
        }
    }
}

static void draw_rates(struct chart *chart, const struct plot *plot)
{
    char text[32];
    for (size_t i = 0; i < plot->count; i++) {
        snprintf(text, sizeof text, "p = %u", plot->found[i].processors);
        profile_chart_series(chart, CHART_COLOUR(i), CHART_CURVE, text);
        for (size_t k = 0; k < BSP_LENGTHS; k++) {
            profile_chart_point(chart, bsp_length(k), plot->found[i].rate[k]);
        }
    }
}

/* -- files -- */

static int write_data(const char *path, const struct plot *plot, struct servet_error *error)
{
    char *text;
    size_t length;
    FILE *file = profile_stream_open(&text, &length);
    if (file) {
        plot->write(file, plot);
    }
    int rc = file && fclose(file) == 0
                 ? profile_save_file(path, text, length, error)
                 : profile_error(error, -ENOMEM, "%s: %s", path, strerrordesc_np(ENOMEM));
    free(text);
    return rc;
}

static int make_plot(const char *folder, struct plot *plot, struct servet_error *error)
{
    char path[PATH_MAX];
    if (plot->write) {
        snprintf(path, sizeof path, "%s/%s.dat", folder, plot->name);
        TRY(write_data(path, plot, error));
    }
    snprintf(path, sizeof path, "%s/%s.svg", folder, plot->name);
    plot->draw(&plot->chart, plot);
    int rc = profile_chart_save(&plot->chart, path, error);
    profile_chart_free(&plot->chart);
    return rc;
}

int probe_bsp_plot(const char *folder, const char *backend, const struct probe_bsp *found,
                   size_t count, struct servet_error *error)
{
    char title[160];
    for (size_t i = 0; i < count; i++) {
        snprintf(title, sizeof title, "Time of an h-relation, %.40s, p = %u, r = %.4g Gflop/s",
                 backend, found[i].processors, found[i].flop_per_s * 1e-9);
        struct plot curve = {.found = &found[i],
                             .count = 1,
                             .write = write_curves,
                             .draw = draw_curves,
                             .chart = {.title = title, .x = h_axis, .y = time_axis}};
        snprintf(curve.name, sizeof curve.name, "bsp-%s-p%u", backend, found[i].processors);
        TRY(make_plot(folder, &curve, error));
    }
    struct plot all[] = {
        {.write = write_parameters,
         .draw = draw_g,
         .chart = {.title = "BSP: g", .x = p_axis, .y = {"g, flop", "", CHART_LINEAR, 0, NULL}}},
        {.draw = draw_l,
         .chart = {.title = "BSP: l", .x = p_axis, .y = {"l, flop", "", CHART_LINEAR, 0, NULL}}},
        {.write = write_rates,
         .draw = draw_rates,
         .chart = {.title = "Rate of DAXPY",
                   .x = {"words of a vector", "", CHART_BINARY, 0, NULL},
                   .y = {"rate, r", "flop/s", CHART_LINEAR, 0, NULL}}},
    };
    static const char *const endings[] = {"", "-l", "-r"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        all[i].found = found;
        all[i].count = count;
        snprintf(all[i].name, sizeof all[i].name, "bsp-%s%s", backend, endings[i]);
        TRY(make_plot(folder, &all[i], error));
    }
    return 0;
}
