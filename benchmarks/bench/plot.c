/* Ratios with their intervals as SVG: programs from left to right, one colour a comparator. */
#include "benchmarks/bench/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/bench/tools.h"
#include "profile/base/cli.h"
#include "profile/text/chart.h"

/* Comparators of one program stand beside one another, within so much of its column. */
#define COLUMN_WIDTH 0.6
/* The axis ends that far above the highest ratio: an interval that one wild round blew up must not
 * flatten all of them. */
#define HEADROOM 1.5

/* The ratios of comparator number `which` of the first program, where they are known. */
static void add_comparator(struct chart *chart, const struct comparison *comparisons, size_t count,
                           size_t which)
{
    const struct comparison *first = &comparisons[0];
    const char *name = first->series[which].comparator->name;
    const double place = ((double)which + 0.5) / (double)first->count - 0.5;
    profile_chart_series(chart, CHART_COLOUR(which), CHART_POINTS, name);
    for (size_t i = 0; i < count; i++) {
        for (size_t s = 0; s < comparisons[i].count; s++) {
            const struct series *found = &comparisons[i].series[s];
            const struct interval *interval = &found->ratio_interval;
            const double x = (double)i + COLUMN_WIDTH * place;
            if (found->left_out || strcmp(found->comparator->name, name) != 0) {
                continue;
            }
            bool known = isfinite(interval->low) && isfinite(interval->high);
            profile_chart_interval(chart, x, found->ratio, known ? interval->low : found->ratio,
                                   known ? interval->high : found->ratio);
            chart->y.high = fmax(chart->y.high, HEADROOM * found->ratio);
        }
    }
}

void bench_plot_ratios(const char *path, const struct comparison *comparisons, size_t count)
{
    const char **names = bench_memory(count, sizeof *names);
    struct servet_error error;
    for (size_t i = 0; i < count; i++) {
        names[i] = basename(comparisons[i].program->label);
    }
    struct chart chart = {.title = "Ratios to the first comparator",
                          .x = {"program", "", CHART_WHOLE, 0, names},
                          .y = {"ratio to the first, 95 % interval", "", CHART_LINEAR, 0, NULL}};
    profile_chart_series(&chart, CHART_MUTED, CHART_RULE, "");
    profile_chart_point(&chart, -COLUMN_WIDTH / 2, 1);
    profile_chart_point(&chart, (double)count - 1 + COLUMN_WIDTH / 2, 1);
    for (size_t s = 0; s < comparisons[0].count; s++) {
        add_comparator(&chart, comparisons, count, s);
    }
    if (profile_chart_save(&chart, path, &error) < 0) {
        cli_fail("%s", error.text);
    }
    profile_chart_free(&chart);
    free(names);
}
