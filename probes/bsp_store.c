/* From what the BSP probe found to an entry of the profile. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe_bsp.h"

static void append(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void append(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    if (used && used + 2 < size) {
        memcpy(text + used, "; ", 3);
        used += 2;
    }
    va_start(args, format);
    vsnprintf(text + used, size - used, format, args);
    va_end(args);
}

static uint32_t highest_h(const struct probe_bsp_fit *fit)
{
    return fit->curve.count ? fit->curve.h[fit->curve.count - 1] : 0;
}

static void note_fit(const struct probe_bsp_fit *fit, const char *which, double flop_per_s, char *text, size_t size)
{
    if (!fit->agree) {
        append(text, size, "%sthe best two of %u runs differ by %.0f %%", which, fit->runs, 100 * fit->difference);
    }
    if (fit->enlargements) {
        append(text, size, "%sg or l was negative: interval enlarged to h = %u", which, highest_h(fit));
    }
    if (fit->choice.negative) {
        append(text, size, "%snegative %s: g and l are small and of the same order", which,
               fit->choice.line.g < 0 ? "g" : "l");
    }
    if (fit->choice.differ) {
        append(text, size, "%sleast squares g %.4g, Theil-Sen g %.4g; kept %s", which,
               fit->choice.least_squares.g * flop_per_s, fit->choice.theil_sen.g * flop_per_s,
               fit->choice.robust ? "Theil-Sen" : "least squares");
    }
    if (fit->bend.h) {
        append(text, size, "%sbend at h = %u (g %.4g before, %.4g from there on)", which, fit->bend.h,
               fit->bend.before.g * flop_per_s, fit->bend.after.g * flop_per_s);
    }
}

void probe_bsp_note(const struct probe_bsp *found, char *text, size_t size)
{
    text[0] = '\0';
    note_fit(&found->words, "", found->flop_per_s, text, size);
    note_fit(&found->packets, "packets: ", found->flop_per_s, text, size);
}

static int make_entry(const struct probe_bsp *found, const char *backend, struct profile_bsp *out)
{
    char note[1024];
    double r = found->flop_per_s;
    const struct bsp_line *words = &found->words.choice.line, *packets = &found->packets.choice.line;
    probe_bsp_note(found, note, sizeof note);
    *out = (struct profile_bsp){
        .backend = strdup(backend),
        .processors = found->processors,
        .r_flop_per_s = r,
        .vector_length = found->length,
        .g_flops = words->g * r,
        .g_packets_flops = packets->g > 0 ? packets->g * r : 0,
        .l_flops = words->l < 0 ? -1 : words->l * r,
        .t0_flops = found->t0_s * r,
        .h_low = found->words.curve.h[0],
        .h_high = highest_h(&found->words),
        .bend_h = found->words.bend.h,
        .quality = {.origin = PROFILE_MEASURED,
                    .repetitions = found->words.runs,
                    .spread = found->words.difference,
                    .note = note[0] ? strdup(note) : NULL},
    };
    if (!out->backend || (note[0] && !out->quality.note)) {
        free(out->backend);
        free(out->quality.note);
        return -ENOMEM;
    }
    return 0;
}

static bool same_backend(const struct profile_bsp *bsp, const char *backend)
{
    return bsp->backend && strcmp(bsp->backend, backend) == 0;
}

/* Where an entry belongs; *replace: one of the same backend and processors is there. */
static size_t place_of(const struct servet_profile *profile, const char *backend, uint32_t processors, bool *replace)
{
    size_t after = profile->bsp_count;
    bool met = false;
    *replace = false;
    for (size_t i = 0; i < profile->bsp_count; i++) {
        const struct profile_bsp *bsp = &profile->bsp[i];
        if (!same_backend(bsp, backend)) {
            if (met) {
                return i;
            }
            continue;
        }
        met = true;
        *replace = bsp->processors == processors;
        if (bsp->processors >= processors) {
            return i;
        }
    }
    return after;
}

int probe_bsp_store(const struct probe_bsp *found, const char *backend, struct servet_profile *profile)
{
    struct profile_bsp entry;
    bool replace;
    if (found->words.choice.line.g < 0) {
        return -ERANGE;
    }
    size_t place = place_of(profile, backend, found->processors, &replace);
    int rc = make_entry(found, backend, &entry);
    if (rc < 0) {
        return rc;
    }
    if (replace) {
        free(profile->bsp[place].backend);
        free(profile->bsp[place].quality.note);
        profile->bsp[place] = entry;
        return 0;
    }
    struct profile_bsp *grown = realloc(profile->bsp, (profile->bsp_count + 1) * sizeof *grown);
    if (!grown) {
        free(entry.backend);
        free(entry.quality.note);
        return -ENOMEM;
    }
    memmove(grown + place + 1, grown + place, (profile->bsp_count - place) * sizeof *grown);
    grown[place] = entry;
    profile->bsp = grown;
    profile->bsp_count++;
    return 0;
}
