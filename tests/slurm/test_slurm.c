/* Does `srun --servet=mem|comm|off` put the threads and tasks of a step where the mapper says,
 * inside the step's PUs, without losing what the user has asked for himself?
 *
 * Runs below `bed`, which gives it a Slurm of one node, with the plugin in the file that
 * $BED_PLUGSTACK names. */
#include "tests/base/command.h"
#include "tests/base/runner.h"
#include "tests/preload/child.h"
#include "tests/preload/here.h"

/* A step starts within a second or two, later when the one before it has not been cleared away
 * yet. */
#define TEST_LIMIT_SECONDS 120

static void run(const char *const *changes, const char *const *argv)
{
    run_plain(changes, argv, NULL);
}

/* Fails unless the environment that `env` printed has this line. */
static void expect_line(const char *line)
{
    ck_assert_msg(strstr(child.out, formatted("\n%s\n", line)), "no %s in:\n%s", line, child.out);
}

static void write_plugstack(const char *arguments)
{
    FILE *file = fopen(getenv("BED_PLUGSTACK"), "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "required %s shim=%s pin=%s %s\n", SPANK_SERVET, SERVET_SHIM, SERVET_PIN,
            arguments);
    ck_assert_int_eq(fclose(file), 0);
}

static void plain_plugstack(void)
{
    write_plugstack("");
}

static void expect_no_shim(void)
{
    ck_assert_msg(!strstr(child.out, SERVET_SHIM), "%s", child.out);
}

/* "TASK: worker 0 THREAD PUS …" of `srun --label`. */
static void expect_of_task(unsigned task, unsigned thread, uint32_t pu)
{
    child_says(&child, "%u: worker 0 %u %u ", task, thread, pu);
}

TEST(threads_of_one_task_follow_the_mapper, .file = PROGRAMS "/openmp_gcc")
{
    run(ARGV("OMP_NUM_THREADS=2"),
        ARGV("srun", "-n", "1", "-c", "2", "--servet=mem", PROGRAMS "/openmp_gcc"));
    child_expect(&child, 0, 0, order[0]);
    child_expect(&child, 0, 1, order[1]);
}

TEST(several_tasks_of_a_node_follow_the_mapper)
{
    uint32_t pus[2];
    run(NULL, ARGV("srun", "-l", "-n", "2", "--servet=comm", PROGRAMS "/pthreads", "1"));
    here_order(MAP_COMMUNICATION, 2, pus);
    for (unsigned task = 0; task < 2; task++) {
        for (unsigned thread = 0; thread < 2; thread++) {
            expect_of_task(task, thread, pus[task]);
        }
    }
}

TEST(ranks_follow_the_mapper, .file = PROGRAMS "/mpich_ranks")
{
    run(NULL, ARGV("srun", "--mpi=pmi2", "-n", "2", "--servet=mem", PROGRAMS "/mpich_ranks"));
    child_expect(&child, 0, 0, order[0]);
    child_expect(&child, 1, 0, order[1]);
}

/* Open MPI without mpirun, where 4.1 binds no rank in MPI_Init that has all of its PUs. */
TEST(threads_of_a_rank_without_mpirun_have_what_slurm_gave)
{
    child_run(&child, NULL, ARGV("srun", "--mpi=list"));
    if (!is_built(PROGRAMS "/openmpi_hybrid") ||
        !(strstr(child.out, "pmix") || strstr(child.err, "pmix"))) {
        return;
    }
    run(ARGV("OMP_NUM_THREADS=2", "OMPI_MCA_btl=self,vader"),
        ARGV("srun", "--mpi=pmix", "-n", "1", "-c", "2", "--servet=mem",
             PROGRAMS "/openmpi_hybrid"));
    child_expect(&child, 0, 0, order[0]);
    child_expect(&child, 0, 1, order[1]);
}

/* Slurm's own binding leaves the order of the two cores to the kernel; the profile makes the last
 * one the better, and the first worker gets it. (Of two known workers each would have one core, and
 * their numbers follow the machine: nothing to see.) */
TEST(a_binding_that_nobody_asked_for_gives_way)
{
    const char *path = scratch_path("uneven.json");
    uint32_t better = here_write_uneven_profile(path);
    const char *variable = formatted("SERVET_PROFILE=%s", path);
    run(ARGV(variable),
        ARGV("srun", "-l", "-n", "1", "-c", "2", "--servet=mem", PROGRAMS "/pthreads", "1"));
    expect_of_task(0, 0, better);
    expect_of_task(0, 1, 1 - better);
    /* A step of one core has no other, however good it is. */
    run(ARGV(variable), ARGV("srun", "-l", "-n", "1", "--servet=mem", PROGRAMS "/pthreads", "1"));
    expect_of_task(0, 0, 0);
    expect_of_task(0, 1, 0);
}

TEST(a_binding_that_the_user_asked_for_stays)
{
    run(NULL, ARGV("srun", "-l", "-n", "2", "--cpu-bind=map_cpu:1,0", "--servet=mem",
                   PROGRAMS "/pthreads", "1"));
    for (unsigned task = 0; task < 2; task++) {
        for (unsigned thread = 0; thread < 2; thread++) {
            expect_of_task(task, thread, 1 - task);
        }
    }
}

/* How often `says` stands in what two traced ranks report that send all the time. */
static size_t judged(const char *option, const char *says)
{
    run(ARGV("SERVET_AUTO=1", "SERVET_REPORT=stderr", "XDG_CACHE_HOME=/mnt/cache"),
        ARGV("srun", "--mpi=pmi2", "-n", "2", option, SERVET_PIN, PROGRAMS "/mpich_traffic",
             "talk"));
    return count_of(child.err, says);
}

/* Slurm binds every task to PUs of its own: what the ranks of a node share is the step's. Two
 * ranks on one PU wait for it and not for messages. */
TEST(a_verdict_counts_the_pus_of_the_step, .file = PROGRAMS "/mpich_traffic")
{
    size_t found = judged("--cpu-bind=map_cpu:0,1", " auto: communication intensive");
    ck_assert_msg(found == 1, "%zu verdicts:\n%s", found, child.err);
    found = judged("--cpu-bind=map_cpu:0,0", " auto: undecided: more ranks than PUs");
    ck_assert_msg(found == 1, "%zu refusals:\n%s", found, child.err);
}

/* As servet-pin does: both GPUs lie at the last PU, so that the tasks keep their order. */
TEST(tasks_lie_beside_their_gpus)
{
    const char *path = scratch_path("gpus.json");
    here_write_gpu_profile(path, 0x10de, true);
    const char *variable = formatted("SERVET_PROFILE=%s", path);
    run(ARGV(variable, "OMP_NUM_THREADS=1"),
        ARGV("srun", "-l", "-n", "2", "--servet=mem,gpus,nics", "sh", "-c",
             "echo $CUDA_VISIBLE_DEVICES $UCX_NET_DEVICES "
             "$(grep Cpus_allowed_list /proc/self/status)"));
    for (unsigned task = 0; task < 2; task++) {
        const char *expected =
            formatted("%u: GPU-%u%s Cpus_allowed_list: %u\n", task, task, task ? "" : " mlx5_0:1",
                      task ? (unsigned)here_pus() - 1 : 0);
        ck_assert_msg(strstr(child.out, expected), "no %s in:\n%s%s", expected, child.out,
                      child.err);
    }
    /* What Slurm or the user gave is kept. */
    run(ARGV(variable, "CUDA_VISIBLE_DEVICES=7"),
        ARGV("srun", "-n", "1", "--servet=gpus", "sh", "-c", "echo has $CUDA_VISIBLE_DEVICES"));
    ck_assert_msg(strstr(child.out, "has 7\n"), "%s%s", child.out, child.err);
}

TEST(without_the_option_nothing_is_loaded)
{
    run(NULL, ARGV("srun", "env"));
    expect_no_shim();
    ck_assert_ptr_null(strstr(child.out, "_PRIOR="));
}

TEST(off_is_off)
{
    char pus[256];
    run(ARGV("LD_PRELOAD=" CHILD_PRELOAD),
        ARGV("srun", "-n", "1", "-c", "2", "--servet=off", PROGRAMS "/pthreads", "1"));
    child_worker(&child, 0, 1, pus, sizeof pus);
    ck_assert_str_eq(pus, "0-1");
}

TEST(a_preload_of_the_user_is_kept)
{
    run(ARGV("LD_PRELOAD=libpthread.so.0"), ARGV("srun", "--servet=mem", "env"));
    expect_line("LD_PRELOAD=" SERVET_SHIM ":libpthread.so.0");
    expect_line("SERVET_MEM_PRIOR=1");
    expect_line("SERVET_COMM_PRIOR=0");
}

TEST(a_wrong_value_is_refused_at_submission)
{
    static const char *const commands[][2] = {
        {"srun", "/bin/true"}, {"sbatch", "--wrap=true"}, {"salloc", "true"}};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        child_run(&child, NULL, ARGV(commands[i][0], "--servet=fast", commands[i][1]));
        ck_assert_int_ne(child.status, 0);
        child_err_says("--servet=fast: expected mem, comm or off, or also gpus");
        ck_assert_msg(child_lines(child.err, "") == 1, "more than one line:\n%s", child.err);
    }
}

/* The steps of a batch script inherit its option and its LD_PRELOAD. */
TEST(a_batch_script_hands_the_option_to_its_steps)
{
    run(NULL, ARGV("sbatch", "--quiet", "--wait", "-n", "2", "--servet=comm", "-o", "/mnt/batch",
                   "--wrap", "srun -n 1 env"));
    run(NULL, ARGV("cat", "/mnt/batch"));
    expect_line("LD_PRELOAD=" CHILD_PRELOAD);
    expect_line("SERVET_COMM_PRIOR=1");
}

TEST(an_administrators_default_leaves_users_their_choice)
{
    write_plugstack("default=mem");
    run(NULL, ARGV("srun", "env"));
    expect_line("LD_PRELOAD=" CHILD_PRELOAD);
    expect_line("SERVET_MEM_PRIOR=1");
    run(ARGV("SERVET_COMM_PRIOR=1"), ARGV("srun", "env"));
    expect_line("SERVET_COMM_PRIOR=1");
    ck_assert_ptr_null(strstr(child.out, "SERVET_MEM_PRIOR"));
    run(NULL, ARGV("srun", "--servet=off", "env"));
    expect_no_shim();
    expect_line("SERVET_DISABLE=1");
}

TEST(a_wrong_line_in_plugstack_is_told)
{
    write_plugstack("default=best");
    child_run(&child, NULL, ARGV("srun", "env"));
    ck_assert_int_ne(child.status, 0);
    child_err_says("'default=best' in plugstack.conf: expected");
}

TESTS(.seconds = TEST_LIMIT_SECONDS, .begin = here_need_two_pus, .setup = plain_plugstack,
      .teardown = plain_plugstack)
