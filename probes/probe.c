/* What the probes share (probe.h). */
#include "probes/probe.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "profile/base/statistics.h"

void probe_tell(const struct probe *probe, double done, const char *format, ...)
{
    char what[128];
    va_list args;
    if (!probe->progress) {
        return;
    }
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    done = probe->told_share > 0 ? probe->told_from + probe->told_share * done : done;
    probe->progress(probe->progress_argument, what, done, &probe->pairs);
}

int probe_error(struct servet_error *error, int code, const char *what)
{
    return profile_error(error, code, "%s: %s", what, probe_machine_strerror(code));
}

double probe_spread_rounded(double spread)
{
    static const double digits = 1e4;
    return round(spread * digits) / digits;
}

double probe_spread(double *values, size_t count)
{
    if (count < 2) {
        return -1;
    }
    double middle = profile_median_value(values, count);
    double spread = middle > 0 ? (values[(3 * count - 1) / 4] - values[count / 4]) / middle : -1;
    return probe_spread_rounded(spread);
}

double probe_elapsed(const struct probe *probe)
{
    return probe_machine_elapsed(probe->clock ? probe->clock : probe->machine);
}

bool probe_late(const struct probe *probe)
{
    return probe_would_be_late(probe, probe->machine->guard.last_s);
}

bool probe_would_be_late(const struct probe *probe, double seconds)
{
    return probe->deadline > 0 && probe_elapsed(probe) + seconds > probe->deadline;
}
