/* Ratios as bars, by gnuplot. */
#include "benchmarks/bench/report.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/bench/compare.h"
#include "benchmarks/bench/tools.h"
#include "profile/base/cli.h"

static const char *terminal(const char *path)
{
    const char *dot = strrchr(path, '.');
    if (dot && strcmp(dot, ".svg") == 0) {
        return "svg size %u,%u dynamic noenhanced background 'white'";
    }
    if (dot && strcmp(dot, ".png") == 0) {
        return "png size %u,%u noenhanced";
    }
    return NULL;
}

static void plot_text(FILE *gnuplot, const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\' || *text == '`') {
            fputc('\\', gnuplot);
        }
        fputc(*text == '\n' ? ' ' : *text, gnuplot);
    }
}

static FILE *plot_open(const char *path, unsigned width, unsigned height)
{
    const char *format = terminal(path);
    if (!format) {
        cli_usage("%s: expected a name that ends in .svg or .png", path);
    }
    char *program = bench_tools_find("gnuplot");
    if (!program) {
        cli_fail("plots need gnuplot, which is not installed");
    }
    FILE *gnuplot = popen(program, "we");
    free(program);
    if (!gnuplot) {
        cli_fail("cannot start gnuplot: %s", strerror(errno));
    }
    fprintf(gnuplot, "set terminal ");
    /* one of two formats of the table above, both with two numbers */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    fprintf(gnuplot, format, width, height);
#pragma GCC diagnostic pop
    fprintf(gnuplot, "\nset output \"");
    plot_text(gnuplot, path);
    fprintf(gnuplot, "\"\n");
    return gnuplot;
}

static void plot_close(FILE *gnuplot, const char *path)
{
    int status = pclose(gnuplot);
    if (status != 0) {
        cli_fail("gnuplot could not draw %s", path);
    }
}

/* gnuplot's data blocks take names of letters only. */
static void block_name(const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s", name);
    for (char *c = out; *c; c++) {
        *c = *c == '-' ? '_' : *c;
    }
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The axis ends that far above the highest bar: an interval that one wild round blew up must not
 * flatten all bars. */
#define HEADROOM 1.5

/* Returns how many of them there are: gnuplot refuses to draw a histogram of none. */
static size_t bars(FILE *gnuplot, const struct comparison *comparisons, size_t count,
                   const char *name, double *highest)
{
    char block[64];
    size_t drawn = 0;
    block_name(name, block, sizeof block);
    fprintf(gnuplot, "$%s << EOD\n", block);
    for (size_t i = 0; i < count; i++) {
        const struct series *found = NULL;
        for (size_t s = 0; s < comparisons[i].count; s++) {
            if (strcmp(comparisons[i].series[s].comparator->name, name) == 0) {
                found = &comparisons[i].series[s];
            }
        }
        fprintf(gnuplot, "\"");
        plot_text(gnuplot, base_name(comparisons[i].program->label));
        if (!found || found->left_out) {
            fprintf(gnuplot, "\" NaN NaN NaN\n");
        } else {
            *highest = found->ratio > *highest ? found->ratio : *highest;
            const struct interval *interval = &found->ratio_interval;
            bool known = isfinite(interval->low) && isfinite(interval->high);
            fprintf(gnuplot, "\" %g %g %g\n", found->ratio, known ? interval->low : found->ratio,
                    known ? interval->high : found->ratio);
            drawn++;
        }
    }
    fprintf(gnuplot, "EOD\n");
    return drawn;
}

void bench_plot_ratios(const char *path, const struct comparison *comparisons, size_t count)
{
    enum { WIDTH_EACH = 130, LEAST_WIDTH = 700, HEIGHT = 480 };
    unsigned width = (unsigned)count * WIDTH_EACH;
    FILE *gnuplot = plot_open(path, width > LEAST_WIDTH ? width : LEAST_WIDTH, HEIGHT);
    const struct comparison *first = &comparisons[0];
    double highest = 0.0;
    bool drawn[MOST_COMPARATORS] = {false};
    for (size_t s = 0; s < first->count; s++) {
        const char *name = first->series[s].comparator->name;
        drawn[s] = bars(gnuplot, comparisons, count, name, &highest) > 0;
    }
    fprintf(gnuplot,
            "set style data histograms\nset style histogram errorbars gap 2 lw 1\nset style fill "
            "solid 0.6\n"
            "set ylabel 'ratio to the first, 95 %% interval'\nset yrange [0:%g]\nset xtics rotate "
            "by -25\n"
            "set grid ytics\nset key outside right\nset bars 0.5\nplot 1 with lines lc rgb "
            "'#444444' dt 2 notitle",
            highest > 0.0 ? highest * HEADROOM : 1.0);
    for (size_t s = 0; s < first->count; s++) {
        if (!drawn[s]) {
            continue;
        }
        const char *name = first->series[s].comparator->name;
        char block[64];
        block_name(name, block, sizeof block);
        fprintf(gnuplot, ", $%s using 2:3:4:xtic(1) title '%s'", block, name);
    }
    fprintf(gnuplot, "\n");
    plot_close(gnuplot, path);
}
