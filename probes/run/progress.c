/* Which step runs, what it measures, how much is done: a bar for people, or one JSON object a line
 * for scripts. */
#include "probes/run/progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "profile/base/clock.h"

enum { BAR = 24, LINE = 80, LINE_USUAL = 80, LINE_FOR_BAR = 60 }; /* columns */
static const double redraw_s = 0.1;

/* Columns that a line may take; the last one is left free, where some terminals wrap. */
static int room(void)
{
    struct winsize window;
    int columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0
                      ? window.ws_col
                      : LINE_USUAL;
    return columns - 1 < LINE ? columns - 1 : LINE;
}

/* Seconds since the start, of the clock that counts. */
static double progress_elapsed(const struct progress *progress)
{
    return (progress->clock ? probe_machine_elapsed(progress->clock) : profile_now_s()) -
           progress->started_s;
}

/* One event in one write, so that a reader sees whole lines; a reader that is gone stops
 * nothing. */
__attribute__((format(printf, 2, 3))) static void send(struct progress *progress,
                                                       const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (progress->events >= 0 && length > 0 && (size_t)length < sizeof line &&
        write(progress->events, line, (size_t)length) < 0) {
        progress->events = -1;
    }
}

void probe_progress_start(struct progress *progress, bool wanted, int events)
{
    *progress = (struct progress){.shown = events < 0 && wanted && isatty(STDERR_FILENO),
                                  .events = events,
                                  .probe = "",
                                  .started_s = profile_now_s()};
}

void probe_progress_plan(struct progress *progress, struct machine *clock, size_t steps)
{
    progress->steps += steps;
    if (clock && !progress->clock) {
        progress->clock = clock;
        progress->started_s = probe_machine_elapsed(clock);
    }
}

void probe_progress_next(struct progress *progress, size_t step, const char *probe)
{
    progress->step = step;
    progress->probe = probe;
    progress->drawn_s = 0; /* the first event of a step is always shown */
    send(progress,
         "{\"event\": \"probe\", \"probe\": \"%s\", \"step\": %zu, \"steps\": %zu, "
         "\"elapsed_s\": %.2f}\n",
         probe, step, progress->steps, progress_elapsed(progress));
}

void probe_progress_outcome(struct progress *progress, const char *outcome)
{
    send(progress, "{\"event\": \"end\", \"outcome\": \"%s\", \"elapsed_s\": %.2f}\n", outcome,
         progress_elapsed(progress));
}

/* `done`: of the whole run. */
static void send_step(struct progress *progress, const char *what, double done,
                      const struct probe_pairs *pairs)
{
    char pair[128] = "";
    if (pairs->planned > 0) {
        snprintf(pair, sizeof pair,
                 ", \"pair\": [%u, %u], \"pairs_done\": %zu, \"pairs_total\": %zu", pairs->pair.a,
                 pairs->pair.b, pairs->done, pairs->planned);
    }
    send(progress,
         "{\"event\": \"step\", \"probe\": \"%s\", \"what\": \"%s\", \"done\": %.4f, "
         "\"elapsed_s\": %.2f%s}\n",
         progress->probe, what, done, progress_elapsed(progress), pair);
}

/* Overwrites the last line with spaces where it is shorter; cut to the terminal, as a line that
 * wraps is not overwritten but scrolled. */
static void draw(const struct progress *progress, const char *what, double done)
{
    char bar[BAR + sizeof "[] "] = "", line[256];
    int columns = room(), filled = (int)(done * BAR);
    if (columns >= LINE_FOR_BAR) {
        memset(bar, '.', sizeof bar - 1);
        memset(bar, '#', (size_t)filled + 1);
        bar[0] = '[';
        memcpy(bar + 1 + BAR, "] ", sizeof "] ");
    }
    snprintf(line, sizeof line, "%s%3.0f %%  %zu/%zu %s  %.0f s  %s", bar, 100 * done,
             progress->step, progress->steps, progress->probe, progress_elapsed(progress), what);
    fprintf(stderr, "\r%-*.*s", columns, columns, line);
    fflush(stderr);
}

void probe_progress_step(void *argument, const char *what, double done,
                         const struct probe_pairs *pairs)
{
    struct progress *progress = argument;
    double time = profile_now_s();
    if ((!progress->shown && progress->events < 0) || time - progress->drawn_s < redraw_s) {
        return;
    }
    progress->drawn_s = time;
    const double before = progress->step > 0 ? (double)progress->step - 1 : 0,
                 whole =
                     fmin((before + fmin(fmax(done, 0), 1)) / fmax(1, (double)progress->steps), 1);
    if (progress->events >= 0) {
        send_step(progress, what, whole, pairs);
        return;
    }
    draw(progress, what, whole);
}

void probe_progress_end(struct progress *progress)
{
    if (progress->shown) {
        fprintf(stderr, "\r%*s\r", room(), "");
        fflush(stderr);
    }
    progress->shown = false;
}
