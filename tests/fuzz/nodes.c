/* The file with the nodes of a job (servet-map --nodes), and Slurm's list of them. */
#include "profile/scope.h"
#include <stdlib.h>

#include "mapper/command/command.h"
#include "tests/fuzz/fuzz.h"

const char *const fuzz_seeds[] = {
    "node1\nnode2\n", "# a job\nnode2 slots=4\nnode1:4\n\n", "node[1-2]\n", "node1", NULL,
};

static struct servet_profile *cluster(void)
{
    static struct servet_profile *profile;
    struct servet_error error = {""};
    if (!profile) {
        fuzz_expect(profile_load(FIXTURES "/nehalem-2-nodes.json", &profile, &error) == 0,
                    "a profile of two nodes");
    }
    return profile;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct profile_set pus = {0};
    struct servet_error error = {""};
    int rc = map_job_from_file(cluster(), fuzz_file(data, size), &pus, &error);
    fuzz_expect_answer(rc, &error);
    fuzz_expect((rc == 0) == (pus.count > 0), "PUs, or none");
    profile_set_free(&pus);
    pus = (struct profile_set){0};
    FREED char *text = fuzz_text(data, size);
    setenv("SLURM_JOB_NODELIST", text, 1);
    fuzz_expect_answer(map_job_from_slurm(cluster(), &pus, &error), &error);
    unsetenv("SLURM_JOB_NODELIST");
    profile_set_free(&pus);
    return 0;
}
