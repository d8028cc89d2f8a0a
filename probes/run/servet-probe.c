/* servet-probe: measures this machine, or with --cluster a cluster. */
#include "probes/network/network.h"
#include "probes/run/run.h"

static int open_native(const struct profile_set *pus, uint64_t seed,
                       const volatile sig_atomic_t *cancel, struct machine *out,
                       struct servet_error *error)
{
    (void)seed;
    return probe_machine_open_native(pus, cancel, out, error);
}

int main(int argc, char **argv)
{
    if (probe_network_wanted(argc, argv)) {
        probe_network_become(argc, argv);
    }
    return probe_command(argc, argv, open_native);
}
