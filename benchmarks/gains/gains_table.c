/* The table of gains: of each program the median of its rounds by the median of the default, of
 * each situation the geometric mean of its programs. A run that was stopped counts the seconds
 * until then, which is less than it would have taken. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "benchmarks/gains/gains.h"
#include "profile/base/statistics.h"

#define MOST_PROGRAMS 16
#define MOST_ROUNDS 64
#define BAR 20 /* columns of a ratio of 1 */

enum { DEFAULT, CLOSE, SHIM };

struct cell {
    double seconds[MOST_ROUNDS];
    size_t count, stopped;
};

static struct cell cells[GAINS_SITUATIONS][MOST_PROGRAMS][GAINS_WAYS];
static char programs[MOST_PROGRAMS][64];

/* Their number where it is none of them. */
static size_t find_situation(const char *name)
{
    size_t at = 0;
    while (at < GAINS_SITUATIONS && strcmp(bench_gains_situations[at].name, name) != 0) {
        at++;
    }
    return at;
}

static size_t find_way(const char *name)
{
    size_t at = 0;
    while (at < GAINS_WAYS && strcmp(bench_gains_ways[at], name) != 0) {
        at++;
    }
    return at;
}

/* A name that is new gets the next place. */
static size_t find_program(const char *name)
{
    size_t at = 0;
    while (at < MOST_PROGRAMS && *programs[at] && strcmp(programs[at], name) != 0) {
        at++;
    }
    if (at < MOST_PROGRAMS) {
        snprintf(programs[at], sizeof programs[at], "%s", name);
    }
    return at;
}

static bool take_line(const char *line)
{
    char program[64], situation[64], way[16], end[8];
    double seconds;
    if (sscanf(line, "%*d,%63[^,],\"%63[^\"]\",%15[^,],%lf,%7[a-z]", program, situation, way,
               &seconds, end) != 5 ||
        !(seconds > 0) || (strcmp(end, "good") != 0 && strcmp(end, "bad") != 0)) {
        return false;
    }
    size_t s = find_situation(situation), w = find_way(way), p = find_program(program);
    if (s == GAINS_SITUATIONS || w == GAINS_WAYS || p == MOST_PROGRAMS) {
        return false;
    }
    struct cell *cell = &cells[s][p][w];
    if (cell->count == MOST_ROUNDS) {
        return false;
    }
    cell->seconds[cell->count++] = seconds;
    cell->stopped += strcmp(end, "bad") == 0;
    return true;
}

/* NAN: no program has both. */
static double mean_ratio(size_t situation, size_t way)
{
    double sum = 0;
    size_t count = 0;
    for (size_t p = 0; p < MOST_PROGRAMS; p++) {
        struct cell *one = &cells[situation][p][way], *before = &cells[situation][p][DEFAULT];
        if (one->count && before->count) {
            sum += log(profile_median_value(one->seconds, one->count) /
                       profile_median_value(before->seconds, before->count));
            count++;
        }
    }
    return count ? exp(sum / (double)count) : NAN;
}

static size_t stopped(size_t situation, size_t way)
{
    size_t count = 0;
    for (size_t p = 0; p < MOST_PROGRAMS; p++) {
        count += cells[situation][p][way].stopped;
    }
    return count;
}

static void print_row(size_t situation)
{
    char bar[BAR + 1];
    const double ratio = mean_ratio(situation, SHIM);
    if (isnan(ratio)) {
        return;
    }
    for (int i = 0; i < BAR; i++) {
        bar[i] = i + 0.5 < ratio * BAR ? '#' : '-';
    }
    bar[BAR] = '\0';
    printf("    %-36s %s %4.2f     %4.2f", bench_gains_situations[situation].text, bar, ratio,
           mean_ratio(situation, CLOSE));
    if (stopped(situation, DEFAULT) + stopped(situation, CLOSE) + stopped(situation, SHIM)) {
        printf("   %zu, %zu, %zu", stopped(situation, DEFAULT), stopped(situation, CLOSE),
               stopped(situation, SHIM));
    }
    putchar('\n');
}

int bench_gains_table(const char *path)
{
    char line[256];
    FILE *file = fopen(path, "re");
    if (!file) {
        fprintf(stderr, "gains: %s: %s\n", path, strerror(errno));
        return 2;
    }
    for (size_t number = 1; fgets(line, sizeof line, file); number++) {
        if (number > 1 && !take_line(line)) {
            fprintf(stderr,
                    "gains: %s:%zu: expected round,program,\"situation\",way,seconds,good|bad\n",
                    path, number);
            fclose(file);
            return 2;
        }
    }
    fclose(file);
    printf("    %-36s %-28s %-5s   %s\n", "time, where the default takes 1", "Servet", "close",
           "did not end (default, close, Servet)");
    for (size_t s = 0; s < GAINS_SITUATIONS; s++) {
        print_row(s);
    }
    return 0;
}
