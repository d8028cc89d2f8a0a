/* BSP parameters by the number of processors, one curve per backend. */
#include "plot.h"

#include <string.h>

static const char *backend(const struct profile_bsp *bsp)
{
    return bsp->backend ? bsp->backend : "BSP";
}

enum quantity { BSP_G, BSP_L };

static double value(const struct profile_bsp *bsp, enum quantity quantity)
{
    double flops = quantity == BSP_G ? bsp->g_flops : bsp->l_flops;
    return bsp->r_flop_per_s > 0 && flops >= 0 ? flops / bsp->r_flop_per_s : -1;
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
        if (value(bsp, quantity) > 0) {
            fprintf(out, "%u %.6g\n", bsp->processors, value(bsp, quantity));
        } else {
            fprintf(out, "%u NaN\n", bsp->processors);
        }
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
    fprintf(out,
            "set xrange [0.7:%g]\nset yrange [0:*]\nset format y '%%.1s %%cs'\nset xlabel 'processors'\nset xtics %u\n",
            most + 0.3, most <= 16 ? 1 : most / 8);
    fprintf(out, "set key top left Left reverse\n");
    draw(out, profile, quantity);
    plot_close(list, "%s", caption);
}

void plot_bsp(struct plot_list *list, const struct servet_profile *profile)
{
    plot_one(list, profile, BSP_G, "bsp-g", "BSP: g, time of one word of an h-relation",
             "A superstep of an h-relation takes g h + l. Single words of 8 bytes: the pessimistic g.");
    plot_one(list, profile, BSP_L, "bsp-l", "BSP: l, time of a synchronisation",
             "What every superstep costs before a word has been sent.");
}
