/* Does servet-pin put a rank beside its GPU, tell it which one, and leave alone what somebody else
 * has chosen? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/mask.h"
#include "profile/model.h"
#include "tests/base/command.h"
#include "tests/base/runner.h"
#include "tests/base/scratch.h"

/* The profile of this machine with a GPU and a card beside its first PU and one beside its last, or
 * both there. */
static const char *profile_with_gpus(const struct profile_mask *mask, uint32_t vendor,
                                     bool both_last)
{
    static char path[4096];
    char signature[PROFILE_SIGNATURE_SIZE];
    static const char *const names[] = {"cuda0", "cuda1", "mlx5_0", "hsi1"};
    struct servet_profile *profile;
    struct servet_error error;
    uint32_t first = profile_mask_next(mask, 0), last = first;
    PROFILE_MASK_EACH(mask, pu)
    {
        last = pu;
    }
    ck_assert_int_eq(profile_from_sysfs("", &profile, &error), 0); /* without devices */
    ck_assert_int_eq(profile_signature("", signature), 0);
    profile->topology_signature = strdup(signature);
    struct profile_device *devices = calloc(4, sizeof *devices);
    for (uint32_t i = 0; i < 4; i++) {
        bool gpu = i < 2;
        char uuid[16];
        snprintf(uuid, sizeof uuid, "GPU-%u", i);
        devices[i] = (struct profile_device){.kind = gpu ? PROFILE_GPU : PROFILE_NIC,
                                             .name = strdup(names[i]),
                                             .uuid = gpu ? strdup(uuid) : NULL,
                                             .pci_vendor = gpu ? vendor : 0,
                                             .number = gpu ? i : PROFILE_NOT_SAID,
                                             .card = i % 2,
                                             .numa_node = PROFILE_NOT_SAID,
                                             .fabric = !gpu};
        profile_set_from_array(i % 2 || both_last ? &last : &first, 1, &devices[i].pus);
    }
    profile->classes[0].devices = devices;
    profile->classes[0].device_count = 4;
    snprintf(path, sizeof path, "%s/gpus.json", scratch_folder());
    char *text = profile_to_json(profile);
    FILE *file = fopen(path, "w");
    ck_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
    free(text);
    profile_free(profile);
    return path;
}

/* The shell brings no runtime of a sanitizer, and leaks. */
#define PLAIN "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 "

/* A rank of two, as Open MPI says it; `more`: what else is in its environment. */
static struct run rank_of_two(unsigned rank, const char *more, const char *options)
{
    return run_command("env " PLAIN
                       "OMPI_COMM_WORLD_LOCAL_RANK=%u OMPI_COMM_WORLD_LOCAL_SIZE=2 %s " SERVET_PIN
                       " %s -- sh -c 'echo $CUDA_VISIBLE_DEVICES:$ROCR_VISIBLE_DEVICES:"
                       "$UCX_NET_DEVICES:$FI_CXI_DEVICE_NAME; "
                       "grep Cpus_allowed_list /proc/self/status'",
                       rank, more, options);
}

static void expect(struct run run, const char *variables, int pu)
{
    char text[256];
    if (pu >= 0) {
        snprintf(text, sizeof text, "%s\nCpus_allowed_list:\t%d\n", variables, pu);
    } else {
        snprintf(text, sizeof text, "%s\n", variables);
    }
    ck_assert_int_eq(run.status, 0);
    ck_assert_msg(strncmp(run.out, text, strlen(text)) == 0, "expected %s got %s%s", text, run.out,
                  run.err);
}

static struct profile_mask here(uint32_t *first, uint32_t *last)
{
    struct profile_mask mask;
    ck_assert_int_eq(profile_mask_get(0, &mask), 0);
    *first = *last = profile_mask_next(&mask, 0);
    PROFILE_MASK_EACH(&mask, pu)
    {
        *last = pu;
    }
    return mask;
}

TEST(a_rank_lies_beside_the_gpu_that_it_is_told)
{
    uint32_t first, last;
    struct profile_mask mask = here(&first, &last);
    char options[4200];
    snprintf(options, sizeof options, "--gpus --nics --profile %s",
             profile_with_gpus(&mask, 0x10de, false));
    expect(rank_of_two(0, "OMP_NUM_THREADS=1", options), "GPU-0::mlx5_0:1:", (int)first);
    expect(rank_of_two(1, "OMP_NUM_THREADS=1", options), "GPU-1:::cxi1", (int)last);
    snprintf(options, sizeof options, "--gpus=exclusive --profile %s",
             profile_with_gpus(&mask, 0x1002, false));
    expect(rank_of_two(1, "OMP_NUM_THREADS=1", options), ":GPU-1::", (int)last);
    if (first != last) { /* where rank 1 would be otherwise */
        snprintf(options, sizeof options, "--gpus --profile %s",
                 profile_with_gpus(&mask, 0x10de, true));
        expect(rank_of_two(0, "OMP_NUM_THREADS=1", options), "GPU-0:::", (int)last);
        expect(rank_of_two(1, "OMP_NUM_THREADS=1", options), "GPU-1:::", (int)first);
        expect(rank_of_two(0, "OMP_NUM_THREADS=1 CUDA_VISIBLE_DEVICES=1", options),
               "1:::", (int)first);
    }
}

/* Batch systems set the same variables as users do. */
TEST(what_somebody_has_chosen_stays)
{
    uint32_t first, last;
    struct profile_mask mask = here(&first, &last);
    char options[4200], bound[64];
    snprintf(options, sizeof options, "--gpus --nics --profile %s",
             profile_with_gpus(&mask, 0x10de, false));
    expect(rank_of_two(1, "CUDA_VISIBLE_DEVICES=7 UCX_NET_DEVICES=eth0", options), "7::eth0:cxi1",
           -1);
    expect(rank_of_two(1, "CUDA_VISIBLE_DEVICES=MIG-1c7d UCX_NET_DEVICES=eth0", options),
           "MIG-1c7d::eth0:cxi1", -1);
    expect(rank_of_two(1, "CUDA_VISIBLE_DEVICES= UCX_NET_DEVICES=", options), ":::cxi1", -1);
    /* bound by the user to the other GPU's PU: that one's it is */
    snprintf(bound, sizeof bound, "OMPI_MCA_hwloc_base_binding_policy=core taskset -c %u", first);
    expect(rank_of_two(0, bound, options), "GPU-0::mlx5_0:1:", (int)first);
    if (first != last) {
        expect(rank_of_two(1, bound, options), ":::", (int)first);
    }
}

TEST(gpus_that_are_not_there_are_refused)
{
    uint32_t first, last;
    struct profile_mask mask = here(&first, &last);
    const char *path = profile_with_gpus(&mask, 0x10de, false);
    expect_refused("--gpus: expected at most 2, the GPUs of a node, got 3",
                   "env OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=2 " SERVET_PIN
                   " --gpus=3 --profile %s -- true",
                   path);
    expect_refused("--gpus=exclusive: expected at most 2 ranks, one for each GPU, got 3",
                   "env OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=3 " SERVET_PIN
                   " --gpus=exclusive --profile %s -- true",
                   path);
}

TESTS(.seconds = 60)
