/* The description of a simulated machine (tests/fixtures/machines/README.md). */
#include "tests/fuzz/fuzz.h"
#include "tests/simulated/simulated.h"

const char *const fuzz_seeds[] = {NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FREED_BY(probe_sim_free) struct sim sim = {0};
    struct machine machine = {0};
    struct servet_error error = {""};
    int rc = probe_sim_load(fuzz_file(data, size), &sim, &machine, &error);
    fuzz_expect_answer(rc, &error);
    fuzz_expect((rc == 0) == (machine.declared != NULL), "a machine, or none");
    profile_set_free(&machine.pus);
    profile_free(machine.declared);
    return 0;
}
