#include "spmd_report.h"

#include <math.h>

typedef unsigned long long ull;

void spmd_report_choice(FILE *out, const struct spmd_problem *problem, const struct spmd_choice *choice,
                        const struct spmd_grid *grid)
{
    const struct spmd_tile *tile = &choice->tile;
    const struct spmd_times *t = &choice->times;
    fprintf(out, "problem        %llu x %llu tasks of %.4g s, %.4g bytes each\n", (ull)problem->x, (ull)problem->y,
            problem->comp_s, problem->bytes);
    fprintf(out, "tile           %llu x %llu tasks\n", (ull)tile->x, (ull)tile->y);
    fprintf(out, "cores          %llu (%llu x %llu)\n", (ull)t->cores, (ull)tile->n, (ull)tile->m);
    fprintf(out, "edge tasks     %.6g s\ninternal tasks %.6g s\n", t->edge_s, t->internal_s);
    fprintf(out, "communication  %.6g s%s\n", t->comm_s,
            t->comm_s > t->internal_s ? " (longer than the internal tasks)" : "");
    fprintf(out, "iteration      %.6g s (predicted)\n", t->iteration_s);
    fprintf(out, "speed-up       %.4g\nefficiency     %.4g (wanted: %.4g%s)\n", t->speedup, t->efficiency,
            problem->efficiency, t->kept ? "" : "; the communication is not hidden enough for it");
    fprintf(out, "messages      ");
    bool any = false;
    for (size_t layer = 0; layer < SPMD_LAYERS; layer++) {
        if (grid->messages[layer]) {
            fprintf(out, "%s %llu over layer %zu", any ? "," : "", (ull)grid->messages[layer], layer);
            any = true;
        }
    }
    fprintf(out, "%s\n", any ? " in each iteration" : " none");
}

void spmd_report_curve(FILE *out, const struct spmd_problem *problem, const struct spmd_choice *curve, size_t count,
                       uint64_t chosen)
{
    uint64_t falls = 0, fastest = 0;
    double best = 0;
    fprintf(out, "# cores     tile        iteration_s  speed-up  efficiency\n");
    for (size_t i = 0; i < count; i++) {
        const struct spmd_times *t = &curve[i].times;
        char tile[48];
        snprintf(tile, sizeof tile, "%llux%llu", (ull)curve[i].tile.x, (ull)curve[i].tile.y);
        fprintf(out, "%7llu %11s  %14.6g %9.4g %11.4g%s\n", (ull)t->cores, tile, t->iteration_s, t->speedup,
                t->efficiency, t->cores == chosen ? "  *" : "");
        falls = !falls && t->efficiency < problem->efficiency ? t->cores : falls;
        if (t->speedup > best) {
            best = t->speedup;
            fastest = t->cores;
        }
    }
    if (falls) {
        fprintf(out, "# efficiency falls below %.4g from %llu cores on\n", problem->efficiency, (ull)falls);
    }
    fprintf(out, "# highest speed-up %.4g at %llu cores\n", best, (ull)fastest);
}

void spmd_report_simulation_head(FILE *out)
{
    fprintf(out, "#             without the plan                      with the plan\n"
                 "# cores  iteration_s  speed-up  efficiency  iteration_s  speed-up  efficiency\n");
}

void spmd_report_simulation(FILE *out, const struct spmd_choice *choice, double plain_s, double planned_s)
{
    double serial = choice->times.serial_s, cores = (double)choice->times.cores;
    fprintf(out, "%7llu %12.6g %9.4g %11.4g %12.6g %9.4g %11.4g\n", (ull)choice->times.cores, plain_s, serial / plain_s,
            serial / plain_s / cores, planned_s, serial / planned_s, serial / planned_s / cores);
}

static void measured_line(FILE *out, const char *name, const struct profile_median *iteration_s, double serial_s,
                          uint64_t cores)
{
    fprintf(out, "%-18s %12.6g %9.4g %11.4g  [%.4g, %.4g]\n", name, iteration_s->median, serial_s / iteration_s->median,
            serial_s / iteration_s->median / (double)cores, iteration_s->low, iteration_s->high);
}

/* A speed-up this far above the number of cores is another program's doing: caches alone were seen to give 1.05. */
#define IMPOSSIBLE_EFFICIENCY 1.2

void spmd_report_evaluation(FILE *out, const struct spmd_problem *problem, const struct spmd_choice *choice,
                            const struct spmd_evaluation *e)
{
    const struct spmd_times *t = &choice->times;
    uint64_t cores = t->cores;
    fprintf(out, "\n                    iteration_s  speed-up  efficiency  %s of %zu rounds\n",
            e->rounds < 6 ? "[least, most]" : "[95 % interval]", e->rounds);
    fprintf(out, "%-18s %12.6g %9.4g %11.4g\n", "predicted", t->iteration_s, t->speedup, t->efficiency);
    measured_line(out, "with the plan", &e->planned_s, e->serial_s, cores);
    if (e->against) {
        measured_line(out, "without the plan", &e->plain_s, e->serial_s, cores);
    }
    fprintf(out, "one core           %12.6g (predicted %.6g)\n", e->serial_s, t->serial_s);
    if (e->against) {
        fprintf(out, "with to without    %12.4g  [%.4g, %.4g], round by round\n", e->ratio.median, e->ratio.low,
                e->ratio.high);
    }
    if (e->serial_s > IMPOSSIBLE_EFFICIENCY * e->planned_s.median * (double)cores) {
        fprintf(out, "speed-up and efficiency mean nothing here: one core was slower than the others together, so the "
                     "machine was busy\n");
    }
    const char *when = e->before ? "right before each run" : "in these runs";
    fprintf(out, "the model is off by %+.1f %% [%+.1f, %+.1f]\n", 100 * (t->iteration_s / e->planned_s.median - 1),
            100 * e->planned_off.low, 100 * e->planned_off.high);
    fprintf(out, "a task took %.4g s %s [%.4g, %.4g], %.4g s when it was planned\n", e->task_s.median, when,
            e->task_s.low, e->task_s.high, problem->comp_s);
    fprintf(out, "with the time of a task %s the model is off by %+.1f %% [%+.1f, %+.1f]\n", when, 100 * e->off.median,
            100 * e->off.low, 100 * e->off.high);
}
