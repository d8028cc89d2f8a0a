/* How long a rank is in MPI, and how long it computes between its exchanges. */
#include "preload/trace/trace.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "profile/base/clock.h"

/* Iterations whose times are kept for the median (1 MiB, touched as they come); later ones are only
 * counted. */
#define SAMPLES 65536u

static __thread bool timed __attribute__((tls_model("initial-exec")));

static struct {
    double begun, entered, inside;
    double last,
        inside_at_last; /* when the first peer was sent its latest message, and `inside` then */
    uint64_t marks;
    int32_t first_peer; /* -1: none yet */
    double *iteration, *compute;
} times;

int pin_trace_time_begin(void)
{
    size_t bytes = 2 * SAMPLES * sizeof *times.iteration;
    double *samples = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (samples == MAP_FAILED) {
        return -ENOMEM;
    }
    times.iteration = samples;
    times.compute = samples + SAMPLES;
    times.first_peer = -1;
    times.begun = times.entered = profile_now_s();
    timed = true;
    return 0;
}

void pin_trace_time_enter(void)
{
    if (timed) {
        times.entered = profile_now_s();
    }
}

void pin_trace_time_leave(void)
{
    if (timed) {
        times.inside += profile_now_s() - times.entered;
    }
}

void pin_trace_time_message(int32_t peer)
{
    if (!timed) {
        return;
    }
    if (times.first_peer < 0) {
        times.first_peer = peer;
    }
    if (peer != times.first_peer) {
        return;
    }
    if (times.marks > 0 && times.marks <= SAMPLES) {
        double iteration = times.entered - times.last;
        times.iteration[times.marks - 1] = iteration;
        times.compute[times.marks - 1] = iteration - (times.inside - times.inside_at_last);
    }
    times.marks++;
    times.last = times.entered;
    times.inside_at_last = times.inside;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, uint64_t count)
{
    if (count == 0) {
        return 0;
    }
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

static struct trace_times final;

void pin_trace_time_stop(void)
{
    uint64_t samples = times.marks > 0 ? times.marks - 1 : 0;
    samples = samples < SAMPLES ? samples : SAMPLES;
    final = (struct trace_times){.seconds = profile_now_s() - times.begun,
                                 .inside = times.inside,
                                 .iteration = median(times.iteration, samples),
                                 .compute = median(times.compute, samples),
                                 .iterations = times.marks};
}

void pin_trace_time_read(struct trace_times *out)
{
    *out = final;
}
