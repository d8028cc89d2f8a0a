#include "machine.h"
#include <errno.h>
int machine_open_simulated(const char *path, uint64_t seed, struct machine *out, struct servet_error *error)
{
    (void)seed;
    (void)out;
    return profile_error(error, -ENOTSUP, "%s: not yet", path);
}
