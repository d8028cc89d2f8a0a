/* The CSV file of times between PUs that the description of a simulated machine may name. */
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "tests/simulated/simulated.h"

const char *const fuzz_seeds[] = {
    ",40,41,90\n40,,39.5,91\n41,39.5,,88\n90,91,88,\n",
    "0, 40, 41, 90\r\n40, 0, 39.5, 91\r\n\r\n41, 39.5, 0, 88\r\n90, 91, 88, 0",
    NULL,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sim sim = {.pu_count = 4};
    struct servet_error error = {""};
    sim.matrix.file = (char *)fuzz_file(data, size);
    struct sim_reader reader = {"input", &error, 0};
    probe_sim_load_matrix(&reader, &sim);
    fuzz_expect_answer(reader.failed, &error);
    free(sim.matrix.seconds);
    return 0;
}
