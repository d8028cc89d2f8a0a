/* Which probe runs, what it measures, how long it will still take: a bar for people, or one JSON
 * object a line for scripts. */
#include "probes/run/progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 24, LINE = 80, LINE_USUAL = 80, LINE_FOR_BAR = 60 }; /* columns */
static const double redraw_s = 0.1,
                    guess_after_s = 1; /* a guess from less than a second is noise */
/* What a plan weighs against what was seen, as a share of what it planned. */
static const double plan_weight = 0.2;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Columns that a line may take; the last one is left free, where some terminals wrap. */
static int room(void)
{
    struct winsize window;
    int columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0
                      ? window.ws_col
                      : LINE_USUAL;
    return columns - 1 < LINE ? columns - 1 : LINE;
}

/* Seconds of the clock that counts. */
static double counted(const struct progress *progress)
{
    return progress->clock ? probe_machine_elapsed(progress->clock) : now();
}

/* What is planned of this probe, at its pace so far, and of the others. */
static double planned_left(const struct progress *progress, double done, double spent)
{
    const double here_s = spent - progress->begun_s;
    const double left_s =
        (1 - done) * (plan_weight * progress->planned_s + here_s) / (plan_weight + done);
    return progress->later_s + left_s;
}

/* As planned; without a plan at the pace so far, once it can be told. < 0: cannot be. Never more
 * than the budget leaves. */
static double seconds_left(const struct progress *progress, double done, double whole, double spent)
{
    double left_s = progress->planned_s >= 0             ? planned_left(progress, done, spent)
                    : spent > guess_after_s && whole > 0 ? spent / whole * (1 - whole)
                                                         : -1;
    return progress->budget_s > 0 ? fmin(left_s, fmax(0, progress->budget_s - spent)) : left_s;
}

/* One event in one write, so that a reader sees whole lines; a reader that is gone stops
 * nothing. */
static void send(struct progress *progress, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void send(struct progress *progress, const char *format, ...)
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
                                  .planned_s = -1,
                                  .started_s = now()};
}

void probe_progress_clock(struct progress *progress, struct machine *clock, double budget_s)
{
    progress->budget_s = budget_s;
    if (clock) {
        progress->clock = clock;
        progress->started_s = probe_machine_elapsed(clock);
    }
}

void probe_progress_next(struct progress *progress, const char *probe, double share)
{
    progress->before += progress->share;
    progress->share = share;
    progress->probe = probe;
    progress->planned_s = -1;
    progress->drawn_s = 0; /* the first step of a probe is always shown */
    send(progress, "{\"event\": \"probe\", \"probe\": \"%s\", \"elapsed_s\": %.2f}\n", probe,
         counted(progress) - progress->started_s);
}

void probe_progress_expect(struct progress *progress, double planned_s, double later_s)
{
    progress->planned_s = planned_s;
    progress->later_s = later_s;
    progress->begun_s = counted(progress) - progress->started_s;
    progress->drawn_s = 0; /* what is planned is shown */
}

void probe_progress_outcome(struct progress *progress, const char *outcome)
{
    send(progress, "{\"event\": \"end\", \"outcome\": \"%s\", \"elapsed_s\": %.2f}\n", outcome,
         counted(progress) - progress->started_s);
}

/* How far a run is. */
struct stand {
    double whole, spent_s, left_s; /* left < 0: not known */
};

static void send_step(struct progress *progress, const char *what, const struct stand *stand,
                      const struct probe_pairs *pairs)
{
    char pair[128] = "", left[48] = "";
    if (pairs->planned > 0) {
        snprintf(pair, sizeof pair,
                 ", \"pair\": [%u, %u], \"pairs_done\": %zu, \"pairs_total\": %zu", pairs->pair.a,
                 pairs->pair.b, pairs->done, pairs->planned);
    }
    if (stand->left_s >= 0) {
        snprintf(left, sizeof left, ", \"seconds_left\": %.1f", stand->left_s);
    }
    send(progress,
         "{\"event\": \"step\", \"probe\": \"%s\", \"what\": \"%s\", \"done\": %.4f, "
         "\"elapsed_s\": %.2f%s%s}\n",
         progress->probe, what, stand->whole, stand->spent_s, pair, left);
}

/* Overwrites the last line with spaces where it is shorter; cut to the terminal, as a line that
 * wraps is not overwritten but scrolled. */
static void draw(const char *what, double whole, double rest)
{
    char bar[BAR + sizeof "[] "] = "", left[32] = "", line[256];
    int columns = room(), filled = (int)(whole * BAR);
    if (columns >= LINE_FOR_BAR) {
        memset(bar, '.', sizeof bar - 1);
        memset(bar, '#', (size_t)filled + 1);
        bar[0] = '[';
        memcpy(bar + 1 + BAR, "] ", sizeof "] ");
    }
    if (rest >= 0) {
        snprintf(left, sizeof left, "%.0f s left", rest);
    }
    snprintf(line, sizeof line, "%s%3.0f %%  %-12s %s", bar, 100 * whole, left, what);
    fprintf(stderr, "\r%-*.*s", columns, columns, line);
    fflush(stderr);
}

/* `done`: of the probe at hand. What was said to be done stays done. */
static struct stand stand_of(struct progress *progress, double done)
{
    const double spent = counted(progress) - progress->started_s,
                 shares = fmin(progress->before + progress->share * done, 1),
                 left = seconds_left(progress, done, shares, spent);
    const bool planned = progress->planned_s >= 0 && spent + left > 0;
    progress->most = fmax(progress->most, planned ? spent / (spent + left) : shares);
    return (struct stand){progress->most, spent, left};
}

void probe_progress_step(void *argument, const char *what, double done,
                         const struct probe_pairs *pairs)
{
    struct progress *progress = argument;
    double time = now();
    if ((!progress->shown && progress->events < 0) || time - progress->drawn_s < redraw_s) {
        return;
    }
    progress->drawn_s = time;
    const struct stand stand = stand_of(progress, fmin(fmax(done, 0), 1));
    if (progress->events >= 0) {
        send_step(progress, what, &stand, pairs);
        return;
    }
    draw(what, stand.whole, stand.left_s);
}

void probe_progress_end(struct progress *progress)
{
    if (progress->shown) {
        fprintf(stderr, "\r%*s\r", room(), "");
        fflush(stderr);
    }
    progress->shown = false;
}
