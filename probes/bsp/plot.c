/* "Always plot the benchmark results" (Bisseling): T(h) with its fit for each number of
 * processors, and g and l against p. */
#include "probes/bsp/bsp.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/base/child.h"
#include "profile/base/cli.h"
#include "profile/base/file.h"

/* One picture: a file of data and the script that draws it. */
struct plot {
    char name[128]; /* of both files and of the picture, without what comes behind the dot */
    const char *backend;
    const struct probe_bsp *found; /* what is drawn: one result, or several */
    size_t count;
    void (*write_data)(FILE *file, const struct plot *plot);
    void (*write_script)(FILE *file, const struct plot *plot);
};

/* -- files -- */

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

static void write_curve_script(FILE *file, const struct plot *plot)
{
    const struct probe_bsp *found = plot->found;
    const char *name = plot->name;
    const struct probe_bsp_fit *fits[] = {&found->words, &found->packets};
    double r = found->flop_per_s;
    fprintf(file,
            "set terminal svg size 900,600\nset output '%s.svg'\nset key top left\nset xlabel 'h'\n"
            "set ylabel 'T(h) in flops (1 / r = %.4g s)'\nset title 'Time of an h-relation, %s, p "
            "= %u, r = %.4g "
            "Gflop/s'\n",
            name, 1 / r, plot->backend, found->processors, r * 1e-9);
    if (found->words.bend.h) {
        fprintf(file, "set arrow from %u, graph 0 to %u, graph 1 nohead dashtype 2\n",
                found->words.bend.h, found->words.bend.h);
    }
    fprintf(file, "plot ");
    for (int k = 0; k < 2; k++) {
        const struct bsp_line *line = &fits[k]->choice.line;
        fprintf(file,
                "%s'%s.dat' index %d using 1:2 with points pointtype %d title '%s', %.17g * x + "
                "%.17g with lines "
                "title 'g = %.4g, l = %.4g'",
                k ? ", " : "", name, k, k ? 6 : 7, k ? "packets" : "single words", line->g * r,
                line->l * r, line->g * r, line->l * r);
    }
    fputc('\n', file);
}

static void write_parameters(FILE *file, const struct plot *plot)
{
    const struct probe_bsp *found = plot->found;
    fprintf(file, "# p   g   l   T(0)   g of packets   (flops)   r (flop/s)\n");
    for (size_t i = 0; i < plot->count; i++) {
        double r = found[i].flop_per_s;
        fprintf(file, "%u %.6g %.6g %.6g %.6g %.6g\n", found[i].processors,
                found[i].words.choice.line.g * r, found[i].words.choice.line.l * r,
                found[i].t0_s * r, found[i].packets.choice.line.g * r, r);
    }
}

static void write_parameters_script(FILE *file, const struct plot *plot)
{
    fprintf(
        file,
        "set terminal svg size 900,900\nset output '%s.svg'\nset key top left\nset xlabel 'p'\n"
        "set xrange [0:*]\nset yrange [0:*]\nset multiplot layout 2,1 title 'BSP parameters (%s)'\n"
        "set ylabel 'g in flops'\n"
        "plot '%s.dat' using 1:2 with linespoints title 'g', '' using 1:5 with linespoints title "
        "'g of packets'\n"
        "set ylabel 'l in flops'\n"
        "plot '%s.dat' using 1:3 with linespoints title 'l', '' using 1:4 with linespoints title "
        "'T(0)'\n",
        plot->name, plot->backend, plot->name, plot->name);
}

static void write_rates(FILE *file, const struct plot *plot)
{
    const struct probe_bsp *found = plot->found;
    for (size_t i = 0; i < plot->count; i++) {
        fprintf(file, "%s# words   r (flop/s)   (p = %u)\n", i ? "\n\n" : "", found[i].processors);
        for (size_t k = 0; k < BSP_LENGTHS; k++) {
            fprintf(file, "%u %.6g\n", probe_bsp_lengths[k], found[i].rate[k]);
        }
    }
}

static void write_rates_script(FILE *file, const struct plot *plot)
{
    fprintf(file,
            "set terminal svg size 900,600\nset output '%s.svg'\nset key bottom right\nset xlabel "
            "'words of a vector'\n"
            "set logscale x 2\nset yrange [0:*]\nset ylabel 'r in Gflop/s'\nset title 'Rate of "
            "DAXPY (%s)'\nplot ",
            plot->name, plot->backend);
    for (size_t i = 0; i < plot->count; i++) {
        fprintf(file, "%s'%s.dat' index %zu using 1:($2 * 1e-9) with linespoints title 'p = %u'",
                i ? ", " : "", plot->name, i, plot->found[i].processors);
    }
    fputc('\n', file);
}

static int write_file(const char *folder, const struct plot *plot, const char *suffix,
                      void (*write)(FILE *file, const struct plot *plot),
                      struct servet_error *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s%s", folder, plot->name, suffix);
    char *text;
    size_t length;
    FILE *file = profile_stream_open(&text, &length);
    if (!file) {
        return profile_error(error, -ENOMEM, "%s: %s", path, strerror(ENOMEM));
    }
    write(file, plot);
    if (fclose(file) != 0) {
        return profile_error(error, -ENOMEM, "%s: %s", path, strerror(ENOMEM));
    }
    int rc = profile_save_file(path, text, length, error);
    free(text);
    return rc;
}

/* 0; -ENOENT: gnuplot is not installed; -EIO: it failed. */
static int draw(const char *folder, const struct plot *plot)
{
    char script[sizeof plot->name + sizeof ".gp"], picture[PATH_MAX];
    /* gnuplot would write into a file that another user has put there. */
    snprintf(picture, sizeof picture, "%s/%s.svg", folder, plot->name);
    unlink(picture);
    snprintf(script, sizeof script, "%s.gp", plot->name);
    char *argv[] = {"gnuplot", script, NULL};
    const struct profile_child gnuplot = {.argv = argv,
                                          .folder = folder,
                                          .in = PROFILE_CHILD_NOTHING,
                                          .out = PROFILE_CHILD_NOTHING,
                                          .errors = PROFILE_CHILD_NOTHING,
                                          .dies_with_us = SIGKILL};
    int rc = profile_child_run(&gnuplot);
    return rc == 0 || rc == -ENOENT ? rc : -EIO;
}

/* *drawn: what draw() said first; after the first time that it fails nothing more is drawn. */
static int make(const char *folder, const struct plot *plot, int *drawn, struct servet_error *error)
{
    int rc = write_file(folder, plot, ".dat", plot->write_data, error);
    rc = rc < 0 ? rc : write_file(folder, plot, ".gp", plot->write_script, error);
    if (rc == 0 && *drawn == 0) {
        *drawn = draw(folder, plot);
    }
    return rc;
}

int probe_bsp_plot(const char *folder, const char *backend, const struct probe_bsp *found,
                   size_t count, struct servet_error *error)
{
    int drawn = 0, rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct plot curve = {.backend = backend,
                             .found = &found[i],
                             .count = 1,
                             .write_data = write_curves,
                             .write_script = write_curve_script};
        snprintf(curve.name, sizeof curve.name, "bsp-%s-p%u", backend, found[i].processors);
        rc = make(folder, &curve, &drawn, error);
    }
    struct plot all = {.backend = backend,
                       .found = found,
                       .count = count,
                       .write_data = write_parameters,
                       .write_script = write_parameters_script};
    snprintf(all.name, sizeof all.name, "bsp-%s", backend);
    rc = rc < 0 ? rc : make(folder, &all, &drawn, error);
    snprintf(all.name, sizeof all.name, "bsp-%s-r", backend);
    all.write_data = write_rates;
    all.write_script = write_rates_script;
    rc = rc < 0 ? rc : make(folder, &all, &drawn, error);
    if (rc == 0 && drawn == -ENOENT) {
        cli_note("gnuplot is not installed: %s holds the data and the scripts, but no pictures",
                 folder);
    } else if (rc == 0 && drawn < 0) {
        cli_note("gnuplot failed: %s holds the data and the scripts", folder);
    }
    return rc;
}
