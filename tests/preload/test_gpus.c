/* Does servet-pin put a rank beside its GPU, tell it which one, and leave alone what somebody else
 * has chosen? */
#include "profile/base/mask.h"
#include "report/report.h"
#include "tests/base/command.h"
#include "tests/base/runner.h"
#include "tests/preload/here.h"

static const char *profile_with_gpus(uint32_t vendor, bool both_last)
{
    const char *path = scratch_path("gpus.json");
    here_write_gpu_profile(path, vendor, both_last);
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

/* `pu`: that it may run on; negative: it is not asked. */
static void expect(struct run run, const char *variables, int pu)
{
    const char *text = pu < 0 ? formatted("%s\n", variables)
                              : formatted("%s\nCpus_allowed_list:\t%d\n", variables, pu);
    ck_assert_int_eq(run.status, 0);
    ck_assert_msg(strncmp(run.out, text, strlen(text)) == 0, "expected %s got %s%s", text, run.out,
                  run.err);
}

/* The first and the last PU. */
static uint32_t first, last;

static void setup(void)
{
    struct profile_mask mask;
    ck_assert_int_eq(profile_mask_get(0, &mask), 0);
    first = profile_mask_next(&mask, 0);
    PROFILE_MASK_EACH(&mask, pu)
    {
        last = pu;
    }
}

TEST(a_rank_lies_beside_the_gpu_that_it_is_told)
{
    const char *options = formatted("--gpus --nics --profile %s", profile_with_gpus(0x10de, false));
    expect(rank_of_two(0, "OMP_NUM_THREADS=1", options), "GPU-0::mlx5_0:1:", (int)first);
    expect(rank_of_two(1, "OMP_NUM_THREADS=1", options), "GPU-1:::cxi1", (int)last);
    options = formatted("--gpus=exclusive --profile %s", profile_with_gpus(0x1002, false));
    expect(rank_of_two(1, "OMP_NUM_THREADS=1", options), ":GPU-1::", (int)last);
    if (first != last) { /* both GPUs are near the last PU: the ranks keep their order */
        options = formatted("--gpus --profile %s", profile_with_gpus(0x10de, true));
        expect(rank_of_two(0, "OMP_NUM_THREADS=1", options), "GPU-0:::", (int)first);
        expect(rank_of_two(1, "OMP_NUM_THREADS=1", options), "GPU-1:::", (int)last);
        expect(rank_of_two(0, "OMP_NUM_THREADS=1 CUDA_VISIBLE_DEVICES=1", options),
               "1:::", (int)last);
    }
}

/* Batch systems set the same variables as users do. */
TEST(what_somebody_has_chosen_stays)
{
    const char *options = formatted("--gpus --nics --profile %s", profile_with_gpus(0x10de, false));
    expect(rank_of_two(1, "CUDA_VISIBLE_DEVICES=7 UCX_NET_DEVICES=eth0", options), "7::eth0:cxi1",
           -1);
    expect(rank_of_two(1, "CUDA_VISIBLE_DEVICES=MIG-1c7d UCX_NET_DEVICES=eth0", options),
           "MIG-1c7d::eth0:cxi1", -1);
    expect(rank_of_two(1, "CUDA_VISIBLE_DEVICES= UCX_NET_DEVICES=", options), ":::cxi1", -1);
    /* bound by the user to the other GPU's PU: that one's it is */
    const char *bound = formatted("OMPI_MCA_hwloc_base_binding_policy=core taskset -c %u", first);
    expect(rank_of_two(0, bound, options), "GPU-0::mlx5_0:1:", (int)first);
    if (first != last) {
        expect(rank_of_two(1, bound, options), ":::", (int)first);
    }
}

TEST(gpus_that_are_not_there_are_refused)
{
    const char *path = profile_with_gpus(0x10de, false);
    expect_refused("--gpus: expected at most 2, the GPUs of a node, got 3",
                   "env OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=2 " SERVET_PIN
                   " --gpus=3 --profile %s -- true",
                   path);
    expect_refused("--gpus=exclusive: expected at most 2 ranks, one for each GPU, got 3",
                   "env OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=3 " SERVET_PIN
                   " --gpus=exclusive --profile %s -- true",
                   path);
}

/* -- seen -- */

/* At exit, and from outside while the program runs. */
TEST(the_gpu_of_a_rank_is_named_with_its_nearness)
{
    const char *path = profile_with_gpus(0x10de, false);
    const char *const rank = "env " PLAIN "OMP_NUM_THREADS=1 OMPI_COMM_WORLD_LOCAL_RANK=1 "
                             "OMPI_COMM_WORLD_LOCAL_SIZE=2 CUDA_VISIBLE_DEVICES=1 SERVET_REPORT=";
    struct run run = run_command(
        "%sstderr " SERVET_PIN " --gpus --profile %s -- " PROGRAMS "/pthreads 1", rank, path);
    ck_assert_msg(strstr(run.err, "gpu: cuda1, near\n"), "%s", run.err);
    run = run_command("sh -c '%s0 " SERVET_PIN " --gpus --profile %s -- sleep 20 >/dev/null 2>&1 & "
                      "sleep 2; " SERVET_SHOW " --live $!; kill $!'",
                      rank, path);
    ck_assert_msg(strstr(run.out, "gpu: cuda1, near\n"), "%s%s", run.out, run.err);
}

/* Seen red: each was "rank 0 of 1", as servet-pin had given each its part. */
TEST(a_worker_has_its_own_rank_under_servet_pin)
{
    struct run run = run_command("env " PLAIN "OMP_NUM_THREADS=1 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 "
                                 "SERVET_REPORT=stderr SERVET_VERBOSE=1 " SERVET_PIN " -- " PROGRAMS
                                 "/pthreads 1");
    ck_assert_msg(strstr(run.err, "rank 1 of 2 on this node (torchrun)"), "%s", run.err);
    ck_assert_msg(strstr(run.err, " rank 1 tid "), "%s", run.err);
}

/* A runtime opens all that it may; the one with memory is meant. */
TEST(the_kernel_says_which_gpu_a_process_has)
{
    char *text = NULL;
    size_t size;
    struct report_place place = {.root = scratch_folder(), .pid = getpid()};
    scratch_file(
        formatted("proc/%d/fdinfo/5", (int)place.pid),
        "pos:\t0\ndrm-driver:\tamdgpu\ndrm-pdev:\t0000:41:00.0\ndrm-memory-vram:\t0 KiB\n");
    scratch_file(
        formatted("proc/%d/fdinfo/6", (int)place.pid),
        "pos:\t0\ndrm-driver:\tamdgpu\ndrm-pdev:\t0000:c1:00.0\ndrm-memory-vram:\t64 KiB\n");
    scratch_file("sys/bus/pci/devices/0000:c1:00.0/local_cpulist", "%u\n", last);
    place.out = open_memstream(&text, &size);
    report_live_gpus(&place, "1 0/2 cuda0=0");
    fclose(place.out);
    ck_assert_str_eq(strchr(text, ' '), formatted(" %d gpu: 0000:c1:00.0, %s\n", (int)place.pid,
                                                  first == last ? "near" : "partly near"));
    free(text);
}

/* -- a process near the GPU that it takes -- */

/* `words` for programs/gpus/takes.c; GPU 0 is near the first PU, GPU 1 near the last. */
static struct run takes(const char *runtime, const char *options, const char *words)
{
    struct run run = run_command("env NEAR0=%u NEAR1=%u SERVET_WATCH=0 " SERVET_PIN
                                 " %s -- " PROGRAMS "/takes_%s %s",
                                 first, last, options, runtime, words);
    ck_assert_msg(run.status == 0, "%s", run.err);
    return run;
}

/* Where word `number` was seen: "first", "last" or "all". */
static void expect_at(const struct run *run, int number, const char *where)
{
    struct profile_mask all;
    char pus[256];
    ck_assert_int_eq(profile_mask_get(0, &all), 0);
    profile_mask_format(&all, pus, sizeof pus);
    if (strcmp(where, "all") != 0) {
        snprintf(pus, sizeof pus, "%u", strcmp(where, "last") == 0 ? last : first);
    }
    const char *line = formatted("worker 0 %d %s ", number, pus);
    ck_assert_msg(strstr(run->out, line), "no \"%s\" in %s%s", line, run->out, run->err);
}

static const char *const likes[] = {"cuda", "hip"};

/* By its first device, before it has threads and after. */
TEST(a_process_follows_the_gpu_that_it_takes, .loops = 2)
{
    struct run run = takes(likes[_i], "--gpus=follow", "main set1 main thread malloc main thread");
    expect_at(&run, 1, "all");
    for (int word = 3; word <= 7; word++) {
        if (word != 5) {
            expect_at(&run, word, "last");
        }
    }
    run = takes(likes[_i], "--gpus=follow", "thread malloc main thread");
    expect_at(&run, 3, "first");
    expect_at(&run, 4, "first");
    run = takes(likes[_i], "", "set1 malloc main");
    expect_at(&run, 3, "all");
}

/* One that is only looked at does not count once another has memory. */
TEST(a_process_that_takes_several_gpus_is_left, .loops = 2)
{
    struct run run =
        takes(likes[_i], "--gpus=follow", "set0 set1 malloc main set0 main malloc main");
    expect_at(&run, 4, "last");
    expect_at(&run, 6, "last");
    expect_at(&run, 8, "all");
}

/* By each call that makes a context; a second device has it left, one that is not there moves
 * nothing. */
TEST(a_process_follows_the_context_that_it_makes, .loops = 3)
{
    static const char *const words[] = {"create1 main create0 main", "make1 main retain0 main",
                                        "create7 main retain1 main"};
    struct run run = takes("cu", "--gpus=follow", words[_i]);
    expect_at(&run, 2, _i == 2 ? "all" : "last");
    expect_at(&run, 4, _i == 2 ? "last" : "all");
    ck_assert_int_eq(strstr(run.out, "refused") != NULL, _i == 2);
}

TEST(a_call_that_fails_moves_nothing)
{
    struct run run = takes("cuda", "--gpus=follow", "set7 main");
    ck_assert(strstr(run.out, "refused"));
    expect_at(&run, 2, "all");
}

TEST(a_program_without_a_runtime_finds_none)
{
    struct run run = takes("none", "--gpus=follow", "ask");
    ck_assert_str_eq(run.out, "none\n");
}

/* Its part is its own; what the program has bound stays. */
TEST(ranks_and_bound_processes_do_not_follow)
{
    struct run run = run_command(
        "env NEAR0=%u NEAR1=%u LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 OMP_NUM_THREADS=1 " SERVET_PIN
        " --gpus=follow -- " PROGRAMS "/takes_cuda main set1 main",
        first, last);
    ck_assert_int_eq(run.status, 0);
    expect_at(&run, 1, "first");
    expect_at(&run, 3, "first");
}

TESTS(.seconds = 60, .setup = setup)
