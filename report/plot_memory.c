/* Bandwidth by the number of workers that copy at once, one curve per overhead level. */
#include "plot.h"

#include "figures.h"

#include <math.h>

#define TICKS_ALL 16 /* up to so many workers each one gets its tick */

static uint32_t most_workers(const struct profile_memory *memory)
{
    uint32_t most = 0;
    for (size_t i = 0; i < memory->level_count; i++) {
        const struct profile_memory_level *level = &memory->levels[i];
        uint32_t last = level->scaling_count ? level->scaling[level->scaling_count - 1].workers : 0;
        most = last > most ? last : most;
    }
    return most;
}

static void plot_class(struct plot_list *list, const struct servet_profile *profile, size_t index)
{
    const struct profile_memory *memory = &profile->classes[index].memory;
    uint32_t most = most_workers(memory);
    if (!most) {
        return;
    }
    FILE *out = plot_open(list, PLOT_MEMORY, PLOT_CURVE, index, profile->class_count, "memory-scaling",
                          "Memory bandwidth by workers");
    if (!out) {
        return;
    }
    fprintf(out, "set xrange [0.7:%g]\nset yrange [0:*]\nset format y '%%.1s %%cB/s'\nset xlabel 'workers at once'\n",
            most + 0.3);
    fprintf(out, "set ylabel 'together'\nset key top left Left reverse\nset xtics %u\n",
            most <= TICKS_ALL ? 1 : most / 8);
    for (size_t i = 0; i < memory->level_count; i++) {
        fprintf(out, "$level%zu << EOD\n", i);
        for (size_t k = 0; k < memory->levels[i].scaling_count; k++) {
            fprintf(out, "%u %.6g\n", memory->levels[i].scaling[k].workers, memory->levels[i].scaling[k].bytes_per_s);
        }
        fputs("EOD\n", out);
    }
    const char *separator = "plot ";
    if (memory->reference_bytes_per_s > 0) {
        fprintf(out, "%s%.6g*x with lines dt 3 lc rgb muted title 'if nobody disturbed anybody'", separator,
                memory->reference_bytes_per_s);
        separator = ", ";
    }
    for (size_t i = 0; i < memory->level_count; i++) {
        if (memory->levels[i].scaling_count) {
            fprintf(out, "%s$level%zu using 1:2 with linespoints lc rgb c%zu lw 1.5 pt 7 ps 0.7 ", separator, i,
                    i % PLOT_COLOURS + 1);
            fprintf(out, "title 'overhead level %zu'", i);
            separator = ", ";
        }
    }
    fputc('\n', out);
    plot_close(list, "Workers of one group of an overhead level copy memory at once. One worker alone reaches %s.",
               figure_bandwidth(memory->reference_bytes_per_s).text);
}

void plot_memory(struct plot_list *list, const struct servet_profile *profile)
{
    for (size_t i = 0; i < profile->class_count; i++) {
        plot_class(list, profile, i);
    }
}
