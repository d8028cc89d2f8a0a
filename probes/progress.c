#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 24 };
static const double redraw_s = 0.1, guess_after_s = 1; /* a guess from less than a second is noise */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void progress_start(struct progress *progress, bool wanted)
{
    *progress = (struct progress){.shown = wanted && isatty(STDERR_FILENO), .started_s = now()};
}

void progress_next(struct progress *progress, double share)
{
    progress->before += progress->share;
    progress->share = share;
}

void progress_step(void *argument, const char *what, double done)
{
    struct progress *progress = argument;
    double time = now(), whole = progress->before + progress->share * done, spent = time - progress->started_s;
    if (!progress->shown || time - progress->drawn_s < redraw_s) {
        return;
    }
    progress->drawn_s = time;
    whole = whole < 0 ? 0 : whole > 1 ? 1 : whole;
    char bar[BAR + 1], left[32] = "";
    int filled = (int)(whole * BAR);
    memset(bar, '.', BAR);
    memset(bar, '#', (size_t)filled);
    bar[BAR] = '\0';
    if (spent > guess_after_s && whole > 0) {
        snprintf(left, sizeof left, "%.0f s left", spent / whole * (1 - whole));
    }
    fprintf(stderr, "\r[%s] %3.0f %%  %-12s %-40.40s", bar, 100 * whole, left, what);
    fflush(stderr);
}

void progress_end(struct progress *progress)
{
    if (progress->shown) {
        fprintf(stderr, "\r\033[K");
        fflush(stderr);
    }
    progress->shown = false;
}
