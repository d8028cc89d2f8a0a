/* "Always plot the benchmark results" (Bisseling): T(h) with its fit for each number of
 * processors, and g and l against p. */
#include "probes/bsp/bsp.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profile/base/cli.h"

static FILE *create(const char *folder, const char *name, const char *suffix,
                    struct servet_error *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s%s", folder, name, suffix);
    FILE *file = fopen(path, "we");
    if (!file) {
        profile_error(error, -errno, "%s: %s", path, strerror(errno));
    }
    return file;
}

static int finish(FILE *file, const char *folder, const char *name, struct servet_error *error)
{
    bool bad = ferror(file);
    if (fclose(file) != 0 || bad) {
        return profile_error(error, -EIO, "%s/%s: cannot be written: %s", folder, name,
                             strerror(errno));
    }
    return 0;
}

/* -- files -- */

static void write_curves(FILE *file, const struct probe_bsp *found)
{
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

static void write_curve_script(FILE *file, const struct probe_bsp *found, const char *backend,
                               const char *name)
{
    const struct probe_bsp_fit *fits[] = {&found->words, &found->packets};
    double r = found->flop_per_s;
    fprintf(file,
            "set terminal svg size 900,600\nset output '%s.svg'\nset key top left\nset xlabel 'h'\n"
            "set ylabel 'T(h) in flops (1 / r = %.4g s)'\nset title 'Time of an h-relation, %s, p "
            "= %u, r = %.4g "
            "Gflop/s'\n",
            name, 1 / r, backend, found->processors, r * 1e-9);
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

static void write_parameters(FILE *file, const struct probe_bsp *found, size_t count)
{
    fprintf(file, "# p   g   l   T(0)   g of packets   (flops)   r (flop/s)\n");
    for (size_t i = 0; i < count; i++) {
        double r = found[i].flop_per_s;
        fprintf(file, "%u %.6g %.6g %.6g %.6g %.6g\n", found[i].processors,
                found[i].words.choice.line.g * r, found[i].words.choice.line.l * r,
                found[i].t0_s * r, found[i].packets.choice.line.g * r, r);
    }
}

static void write_parameters_script(FILE *file, const char *backend, const char *name)
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
        name, backend, name, name);
}

static void write_rates(FILE *file, const struct probe_bsp *found, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fprintf(file, "%s# words   r (flop/s)   (p = %u)\n", i ? "\n\n" : "", found[i].processors);
        for (size_t k = 0; k < BSP_LENGTHS; k++) {
            fprintf(file, "%u %.6g\n", probe_bsp_lengths[k], found[i].rate[k]);
        }
    }
}

static void write_rates_script(FILE *file, const struct probe_bsp *found, size_t count,
                               const char *backend, const char *name)
{
    fprintf(file,
            "set terminal svg size 900,600\nset output '%s.svg'\nset key bottom right\nset xlabel "
            "'words of a vector'\n"
            "set logscale x 2\nset yrange [0:*]\nset ylabel 'r in Gflop/s'\nset title 'Rate of "
            "DAXPY (%s)'\nplot ",
            name, backend);
    for (size_t i = 0; i < count; i++) {
        fprintf(file, "%s'%s.dat' index %zu using 1:($2 * 1e-9) with linespoints title 'p = %u'",
                i ? ", " : "", name, i, found[i].processors);
    }
    fputc('\n', file);
}

/* -- gnuplot -- */

/* 0; -ENOENT: it is not installed; -EIO: it failed. */
static int draw(const char *folder, const char *name)
{
    char script[PATH_MAX];
    snprintf(script, sizeof script, "%s.gp", name);
    pid_t child = fork();
    if (child < 0) {
        return -errno;
    }
    if (child == 0) {
        int nothing = open("/dev/null", O_WRONLY);
        dup2(nothing, STDERR_FILENO);
        if (chdir(folder) == 0) {
            execlp("gnuplot", "gnuplot", script, (char *)NULL);
        }
        _exit(127);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
        return -ENOENT;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

static int plot_curve(const char *folder, const char *name, const char *backend,
                      const struct probe_bsp *found, struct servet_error *error)
{
    FILE *data = create(folder, name, ".dat", error);
    if (!data) {
        return -EIO;
    }
    write_curves(data, found);
    int rc = finish(data, folder, name, error);
    FILE *script = rc == 0 ? create(folder, name, ".gp", error) : NULL;
    if (!script) {
        return -EIO;
    }
    write_curve_script(script, found, backend, name);
    return finish(script, folder, name, error);
}

static int plot_parameters(const char *folder, const char *name, const char *backend,
                           const struct probe_bsp *found, size_t count, struct servet_error *error)
{
    FILE *data = create(folder, name, ".dat", error);
    if (!data) {
        return -EIO;
    }
    write_parameters(data, found, count);
    int rc = finish(data, folder, name, error);
    FILE *script = rc == 0 ? create(folder, name, ".gp", error) : NULL;
    if (!script) {
        return -EIO;
    }
    write_parameters_script(script, backend, name);
    return finish(script, folder, name, error);
}

static int plot_rates(const char *folder, const char *name, const char *backend,
                      const struct probe_bsp *found, size_t count, struct servet_error *error)
{
    FILE *data = create(folder, name, ".dat", error);
    if (!data) {
        return -EIO;
    }
    write_rates(data, found, count);
    int rc = finish(data, folder, name, error);
    FILE *script = rc == 0 ? create(folder, name, ".gp", error) : NULL;
    if (!script) {
        return -EIO;
    }
    write_rates_script(script, found, count, backend, name);
    return finish(script, folder, name, error);
}

int probe_bsp_plot(const char *folder, const char *backend, const struct probe_bsp *found,
                   size_t count, struct servet_error *error)
{
    char name[128];
    int drawn = 0;
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "bsp-%s-p%u", backend, found[i].processors);
        int rc = plot_curve(folder, name, backend, &found[i], error);
        if (rc < 0) {
            return rc;
        }
        drawn = drawn < 0 ? drawn : draw(folder, name);
    }
    snprintf(name, sizeof name, "bsp-%s", backend);
    int rc = plot_parameters(folder, name, backend, found, count, error);
    if (rc < 0) {
        return rc;
    }
    drawn = drawn < 0 ? drawn : draw(folder, name);
    snprintf(name, sizeof name, "bsp-%s-r", backend);
    rc = plot_rates(folder, name, backend, found, count, error);
    if (rc < 0) {
        return rc;
    }
    drawn = drawn < 0 ? drawn : draw(folder, name);
    if (drawn == -ENOENT) {
        cli_note("gnuplot is not installed: %s holds the data and the scripts, but no pictures",
                 folder);
    } else if (drawn < 0) {
        cli_note("gnuplot failed: %s holds the data and the scripts", folder);
    }
    return 0;
}
