#include "show_bsp.h"

#include <math.h>
#include <string.h>

#define INDENT 2
#define WIDTH 10
/* From here on a figure is whole flops, with a blank at every thousand; below, three digits. */
#define WHOLE_FLOPS 100.0

struct columns {
    bool packets, rate, difference;
};

struct cell {
    char text[32];
};

/* 132 618, 0.731 */
static struct cell flops(double value)
{
    struct cell cell;
    if (value < WHOLE_FLOPS) {
        snprintf(cell.text, sizeof cell.text, "%.3g", value);
        return cell;
    }
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%.0f", fmin(value, 1e15));
    size_t used = 0;
    for (int i = 0; i < length && used + 2 < sizeof cell.text; i++) {
        if (i && (length - i) % 3 == 0) {
            cell.text[used++] = ' ';
        }
        cell.text[used++] = digits[i];
    }
    cell.text[used] = '\0';
    return cell;
}

static const char *name_of(const struct profile_bsp *bsp)
{
    return bsp->backend ? bsp->backend : "";
}

/* One past the last entry of the backend that entry `begin` has. */
static size_t end_of(const struct servet_profile *profile, size_t begin)
{
    size_t end = begin + 1;
    while (end < profile->bsp_count && strcmp(name_of(&profile->bsp[end]), name_of(&profile->bsp[begin])) == 0) {
        end++;
    }
    return end;
}

static struct columns columns_of(const struct profile_bsp *entries, size_t count)
{
    struct columns columns = {0};
    for (size_t i = 0; i < count; i++) {
        columns.packets |= entries[i].g_packets_flops > 0;
        columns.rate |= fabs(entries[i].r_flop_per_s / entries[0].r_flop_per_s - 1) > 5e-5; /* four digits */
        columns.difference |= entries[i].quality.spread >= 0;
    }
    return columns;
}

static void head(const struct profile_bsp *entry, const struct columns *columns, FILE *stream)
{
    fprintf(stream, "BSP parameters%s%s%s: T(h) = h g + l flops", entry->backend ? " (" : "", name_of(entry),
            entry->backend ? ")" : "");
    if (!columns->rate) {
        fprintf(stream, ", r = %.4g Gflop/s", entry->r_flop_per_s * 1e-9);
    }
    fprintf(stream, "\n%*s%*s%*s%*s%*s", INDENT, "", 4, "p", WIDTH, "g", WIDTH, "l", WIDTH, "T(0)");
    if (columns->packets) {
        fprintf(stream, "%*s", WIDTH, "g packets");
    }
    if (columns->rate) {
        fprintf(stream, "%*s", WIDTH, "Gflop/s");
    }
    fprintf(stream, "%s\n", columns->difference ? "  best two runs" : "");
}

static void row(const struct profile_bsp *entry, const struct columns *columns, FILE *stream)
{
    fprintf(stream, "%*s%4u%*s%*s%*s", INDENT, "", entry->processors, WIDTH, flops(entry->g_flops).text, WIDTH,
            entry->l_flops < 0 ? "-" : flops(entry->l_flops).text, WIDTH,
            entry->t0_flops > 0 ? flops(entry->t0_flops).text : "-");
    if (columns->packets) {
        fprintf(stream, "%*s", WIDTH, entry->g_packets_flops > 0 ? flops(entry->g_packets_flops).text : "-");
    }
    if (columns->rate) {
        fprintf(stream, "%*.4g", WIDTH, entry->r_flop_per_s * 1e-9);
    }
    if (columns->difference && entry->quality.spread >= 0) {
        fprintf(stream, "  %.1f %% apart", 100 * entry->quality.spread);
    }
    fputc('\n', stream);
}

void show_bsp(const struct servet_profile *profile, FILE *stream)
{
    for (size_t begin = 0, end; begin < profile->bsp_count; begin = end) {
        const struct profile_bsp *entries = profile->bsp + begin;
        end = end_of(profile, begin);
        struct columns columns = columns_of(entries, end - begin);
        if (begin) {
            fputc('\n', stream);
        }
        head(entries, &columns, stream);
        for (size_t i = 0; i < end - begin; i++) {
            row(&entries[i], &columns, stream);
        }
        for (size_t i = 0; i < end - begin; i++) {
            if (entries[i].quality.note) {
                fprintf(stream, "%*snote on p = %u: %s\n", INDENT, "", entries[i].processors, entries[i].quality.note);
            }
        }
    }
}
