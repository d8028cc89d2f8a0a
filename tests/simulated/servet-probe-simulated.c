/* servet-probe on a machine that is described: servet-probe-simulated FILE [OPTION...]. FILE:
 * tests/fixtures/machines/README.md. */
#include "probes/run/run.h"
#include "profile/base/cli.h"
#include "profile/base/error.h"
#include "tests/simulated/simulated.h"

#include <errno.h>

static const char *description;

static int open_described(const struct profile_set *pus, uint64_t seed,
                          const volatile sig_atomic_t *cancel, struct machine *out,
                          struct servet_error *error)
{
    if (pus->count > 0) {
        return profile_error(error, -EINVAL,
                             "--cpuset: expected none, the machine is measured as it is described");
    }
    const int rc = probe_machine_open_simulated(description, seed, out, error);
    if (rc == 0) {
        out->cancel = cancel;
    }
    return rc;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argv[1][0] == '-') {
        cli_usage("expected the description of a machine before the options");
    }
    description = argv[1];
    argv[1] = argv[0];
    return probe_command(argc - 1, argv + 1, open_described);
}
