/* BSP parameters by the number of processors, one curve per backend. */
#include "plot.h"

#include <stdio.h>
#include <string.h>

static const char *backend(const struct profile_bsp *bsp)
{
    return bsp->backend ? bsp->backend : "BSP";
}

enum quantity { BSP_G, BSP_L, BSP_R };

/* Seconds of a word or a synchronisation, or flop/s; <= 0: unknown. */
static double value(const struct profile_bsp *bsp, enum quantity quantity)
{
    double flops = quantity == BSP_G ? bsp->g_flops : bsp->l_flops;
    if (quantity == BSP_R) {
        return bsp->r_flop_per_s;
    }
    return bsp->r_flop_per_s > 0 && flops >= 0 ? flops / bsp->r_flop_per_s : -1;
}

/* The optimistic g; <= 0: unknown. */
static double packets(const struct profile_bsp *bsp)
{
    return bsp->r_flop_per_s > 0 ? bsp->g_packets_flops / bsp->r_flop_per_s : -1;
}

static void write_value(FILE *out, double value)
{
    if (value > 0) {
        fprintf(out, " %.6g", value);
    } else {
        fputs(" NaN", out);
    }
}

static void write_point(FILE *out, uint32_t processors, double value, double of_packets)
{
    fprintf(out, "%u", processors);
    write_value(out, value);
    write_value(out, of_packets);
    fputc('\n', out);
}

static bool any_packets(const struct servet_profile *profile, const char *name)
{
    bool any = false;
    for (size_t i = 0; i < profile->bsp_count; i++) {
        any |= packets(&profile->bsp[i]) > 0 && strcmp(backend(&profile->bsp[i]), name) == 0;
    }
    return any;
}

static size_t draw(FILE *out, const struct servet_profile *profile, enum quantity quantity)
{
    size_t blocks = 0;
    for (size_t i = 0; i < profile->bsp_count; i++) {
        const struct profile_bsp *bsp = &profile->bsp[i];
        if (i == 0 || strcmp(backend(bsp), backend(bsp - 1)) != 0) {
            fprintf(out, "%s$b%zu << EOD\n", blocks ? "EOD\n" : "", blocks);
            blocks++;
        }
        write_point(out, bsp->processors, value(bsp, quantity), packets(bsp));
    }
    fputs("EOD\n", out);
    size_t block = 0;
    for (size_t i = 0; i < profile->bsp_count; i++) {
        const struct profile_bsp *bsp = &profile->bsp[i];
        if (i && strcmp(backend(bsp), backend(bsp - 1)) == 0) {
            continue;
        }
        fprintf(out, "%s$b%zu using 1:2 with linespoints lc rgb c%zu lw 1.5 pt 7 ps 0.7 title ", block ? ", " : "plot ",
                block, block % PLOT_COLOURS + 1);
        plot_quote(out, backend(bsp));
        if (quantity == BSP_G && any_packets(profile, backend(bsp))) {
            char name[64];
            snprintf(name, sizeof name, "%s, in packets", backend(bsp));
            fprintf(out, ", $b%zu using 1:3 with linespoints lc rgb c%zu lw 1.5 dt 2 pt 6 ps 0.7 title ", block,
                    block % PLOT_COLOURS + 1);
            plot_quote(out, name);
        }
        block++;
    }
    fputc('\n', out);
    return block;
}

static void plot_one(struct plot_list *list, const struct servet_profile *profile, enum quantity quantity,
                     const char *name, const char *title, const char *caption)
{
    bool any = false;
    uint32_t most = 1;
    for (size_t i = 0; i < profile->bsp_count; i++) {
        any = any || value(&profile->bsp[i], quantity) > 0;
        most = profile->bsp[i].processors > most ? profile->bsp[i].processors : most;
    }
    FILE *out = any ? plot_open(list, PLOT_BSP, PLOT_CURVE, PLOT_NETWORK, 0, name, title) : NULL;
    if (!out) {
        return;
    }
    fprintf(
        out,
        "set xrange [0.7:%g]\nset yrange [0:*]\nset format y '%%.1s %%c%s'\nset xlabel 'processors'\nset xtics %u\n",
        most + 0.3, quantity == BSP_R ? "flop/s" : "s", most <= 16 ? 1 : most / 8);
    fprintf(out, "set key %s left Left reverse\n", quantity == BSP_R ? "bottom" : "top");
    draw(out, profile, quantity);
    plot_close(list, "%s", caption);
}

void plot_bsp(struct plot_list *list, const struct servet_profile *profile)
{
    plot_one(list, profile, BSP_R, "bsp-r", "BSP: r, rate of each processor",
             "Of DAXPY on vectors in the first cache, all processors at once.");
    plot_one(list, profile, BSP_G, "bsp-g", "BSP: g, time of one word of an h-relation",
             "A superstep of an h-relation takes g h + l. Single words of 8 bytes: the pessimistic g; dashed, "
             "in large packets: the optimistic one.");
    plot_one(list, profile, BSP_L, "bsp-l", "BSP: l, time of a synchronisation",
             "What every superstep costs before a word has been sent.");
}
