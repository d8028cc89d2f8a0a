/* Which ranks and PUs do the launcher's variables give, and which values are refused? */
#include <sys/wait.h>

#include "preload/place/launcher.h"
#include "preload/place/places.h"
#include "tests/base/runner.h"
#include "tests/preload/child.h"
#include "tests/preload/here.h"

/* Task 1 of two of a Slurm step on this node. */
static void be_task(const char *type, const char *list)
{
    setenv("SLURM_LOCALID", "1", 1);
    setenv("SLURM_NODEID", "0", 1);
    setenv("SLURM_STEP_TASKS_PER_NODE", "2", 1);
    setenv("SLURM_CPU_BIND_TYPE", type, 1);
    setenv("SLURM_CPU_BIND_LIST", list, 1);
}

/* -- the table -- */

/* "NAME=value NAME=value". */
static void set_all(const char *variables)
{
    char *text = kept(strdup(variables)), *rest = text;
    for (char *word; (word = strsep(&rest, " "));) {
        ck_assert_int_eq(putenv(kept(strdup(word))), 0);
    }
}

/* A launcher that says so. */
static struct pin_launcher read_launcher(const char *variables)
{
    struct pin_launcher launcher;
    set_all(variables);
    pin_launcher_read(false, &launcher);
    return launcher;
}

/* As each launcher says rank 2 of 3, or of 4, with what it sets beside it. */
static const struct {
    const char *variables, *name;
    uint32_t rank, size;
} told[] = {
    {"OMPI_COMM_WORLD_LOCAL_RANK=2 OMPI_COMM_WORLD_LOCAL_SIZE=3 PMIX_RANK=14", "Open MPI", 2, 3},
    {"MV2_COMM_WORLD_LOCAL_RANK=2 MV2_COMM_WORLD_LOCAL_SIZE=3", "MVAPICH", 2, 3},
    {"MPI_LOCALRANKID=2 MPI_LOCALNRANKS=3 PMI_RANK=14 PMI_SIZE=24", "hydra", 2, 3},
    {"SLURM_LOCALID=2 SLURM_NODEID=3 SLURM_STEP_TASKS_PER_NODE=4(x3),3 PMI_RANK=14", "Slurm", 2, 3},
    {"FLUX_TASK_LOCAL_ID=2 FLUX_TASK_RANK=6 FLUX_JOB_SIZE=8 FLUX_JOB_NNODES=2 PMI_RANK=6 "
     "PMI_SIZE=8",
     "Flux", 2, 4},
    {"FLUX_TASK_LOCAL_ID=2 FLUX_TASK_RANK=6 FLUX_JOB_SIZE=7 FLUX_JOB_NNODES=2", "Flux", 2, 3},
    {"FLUX_TASK_LOCAL_ID=2 FLUX_TASK_RANK=2 FLUX_JOB_SIZE=7 FLUX_JOB_NNODES=2", "Flux", 2, 4},
    {"PALS_LOCAL_RANKID=2 PALS_LOCAL_SIZE=3 PMI_RANK=14 PMI_SIZE=24", "PALS", 2, 3},
    {"PALS_LOCAL_RANKID=2 PMI_LOCAL_RANK=2 PMI_LOCAL_SIZE=3 PMI_RANK=14", "PALS", 2, 3},
    {"PMI_LOCAL_RANK=2 PMI_LOCAL_SIZE=3 PMI_RANK=14 PMI_SIZE=24", "PMI", 2, 3},
    {"PMIX_RANK=2", "PMIx", 2, 3},
    {"PMI_RANK=2 PMI_SIZE=3", "PMI", 2, 3},
    {"OMPI_COMM_WORLD_LOCAL_RANK= PMI_RANK=2 PMI_SIZE=3", "PMI", 2, 3},
    {"TORCHELASTIC_RUN_ID=a LOCAL_RANK=2 LOCAL_WORLD_SIZE=3 RANK=14 WORLD_SIZE=24", "torchrun", 2,
     3},
    {"LOCAL_RANK=2 LOCAL_SIZE=3 RANK=14 WORLD_SIZE=24", "DeepSpeed", 2, 3},
    {"SERVET_LOCAL_RANK=2 SERVET_LOCAL_SIZE=3", "servet-pin", 2, 3},
    {"SERVET_LOCAL_RANK=WHICH SERVET_LOCAL_SIZE=3 WHICH=2", "servet-pin", 2, 3},
    /* one inside the other: torchrun in the one task of a step, mpirun in it, and a script that
     * hands on what mpirun says */
    {"LOCAL_RANK=2 LOCAL_WORLD_SIZE=3 SLURM_LOCALID=0 SLURM_STEP_TASKS_PER_NODE=1", "torchrun", 2,
     3},
    {"OMPI_COMM_WORLD_LOCAL_RANK=2 OMPI_COMM_WORLD_LOCAL_SIZE=3 SLURM_LOCALID=0 "
     "SLURM_STEP_TASKS_PER_NODE=1",
     "Open MPI", 2, 3},
    {"LOCAL_RANK=2 LOCAL_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_RANK=2 OMPI_COMM_WORLD_LOCAL_SIZE=3",
     "Open MPI", 2, 3},
};

TEST(each_launcher_says_the_local_rank, .loops = sizeof told / sizeof *told)
{
    const struct pin_launcher launcher = read_launcher(told[_i].variables);
    ck_assert_msg(launcher.name && strcmp(launcher.name, told[_i].name) == 0, "%s: %s",
                  told[_i].variables, launcher.name ? launcher.name : "none");
    ck_assert_msg(launcher.node_rank == told[_i].rank && launcher.node_ranks == told[_i].size,
                  "%s: %u of %u", told[_i].variables, launcher.node_rank, launcher.node_ranks);
    ck_assert(!launcher.contradicts);
}

/* A resource set of jsrun is a mask of a rank's own. */
TEST(ranks_of_a_resource_set_stay_in_it)
{
    struct profile_mask start, allowed;
    here_need_two_pus();
    struct pin_launcher launcher = read_launcher(
        "JSM_NAMESPACE_LOCAL_RANK=2 JSM_NAMESPACE_LOCAL_SIZE=3 OMPI_COMM_WORLD_LOCAL_RANK=2");
    ck_assert_int_eq(profile_mask_get(0, &start), 0);
    profile_mask_remove(&start, order[0]);
    ck_assert_str_eq(launcher.name, "jsrun");
    pin_launcher_allowed(&launcher, &start, &allowed);
    ck_assert(profile_mask_equal(&allowed, &start));
    ck_assert_int_eq(launcher.mask_of, PIN_MASK_OF_RANK);
    ck_assert_uint_eq(launcher.local_size, 1);
    ck_assert_uint_eq(launcher.node_ranks, 3);
}

static const char *const wrong[] = {
    "LOCAL_RANK=4 LOCAL_WORLD_SIZE=4",
    "OMPI_COMM_WORLD_LOCAL_RANK=5 OMPI_COMM_WORLD_LOCAL_SIZE=3",
    "FLUX_TASK_LOCAL_ID=0 FLUX_JOB_SIZE=2 FLUX_JOB_NNODES=3",
    "SERVET_LOCAL_RANK=1 SERVET_LOCAL_SIZE=0",
};

TEST(numbers_that_contradict_are_seen, .loops = sizeof wrong / sizeof *wrong)
{
    const struct pin_launcher launcher = read_launcher(wrong[_i]);
    ck_assert(launcher.name && launcher.contradicts);
    ck_assert_uint_gt(launcher.local_size, launcher.local_rank);
}

TEST(words_that_anybody_uses_are_no_launcher)
{
    ck_assert_ptr_null(read_launcher("LOCAL_RANK=2 RANK=2 WORLD_SIZE=4").name);
}

/* The job of a process that the launcher has started just now. */
static uint64_t job_with(const char *variables)
{
    uint64_t job = 0;
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t rank = fork();
    if (rank == 0) {
        const struct pin_launcher launcher = read_launcher(variables);
        _exit(write(ends[1], &launcher.job, sizeof launcher.job) != sizeof launcher.job);
    }
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], &job, sizeof job), sizeof job);
    close(ends[0]);
    ck_assert_int_eq(waitpid(rank, NULL, 0), rank);
    return job;
}

/* Seen red: all ranks of launchers that give no name were of one job. */
TEST(a_lone_rank_without_a_name_is_a_job)
{
    static const char lone[] = "MV2_COMM_WORLD_LOCAL_RANK=0 MV2_COMM_WORLD_LOCAL_SIZE=1";
    ck_assert_uint_ne(job_with(lone), job_with(lone));
    ck_assert_uint_eq(job_with("MV2_COMM_WORLD_LOCAL_RANK=0 MV2_COMM_WORLD_LOCAL_SIZE=2"),
                      job_with("MV2_COMM_WORLD_LOCAL_RANK=1 MV2_COMM_WORLD_LOCAL_SIZE=2"));
}

TEST(a_name_is_the_job)
{
    static const char first[] = "OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1 "
                                "PMIX_NAMESPACE=first";
    ck_assert_uint_eq(job_with(first), job_with(first));
    ck_assert_uint_ne(job_with(first), job_with("OMPI_COMM_WORLD_LOCAL_RANK=0 "
                                                "OMPI_COMM_WORLD_LOCAL_SIZE=1 "
                                                "PMIX_NAMESPACE=second"));
}

/* -- masks -- */

/* This process, as rank 1 with that mask. */
static bool is_oversubscribed(const struct profile_mask *start)
{
    struct pin_launcher launcher;
    pin_launcher_read(false, &launcher);
    ck_assert_uint_eq(launcher.node_rank, 1);
    return pin_launcher_oversubscribed(&launcher, start);
}

TEST(tasks_of_slurm_share_pus_or_do_not)
{
    struct profile_mask one = {0};
    profile_mask_add(&one, 1);
    be_task("mask_cpu:", "0x1,0x2"); /* each has one, this one's mask */
    ck_assert(!is_oversubscribed(&one));
    be_task("mask_cpu:", "0x2,0x2");
    ck_assert(is_oversubscribed(&one));
    be_task("map_cpu:", "1,1");
    ck_assert(is_oversubscribed(&one));
}

TEST(more_ranks_than_pus_are_too_many)
{
    struct profile_mask start;
    here_need_two_pus();
    ck_assert_int_eq(profile_mask_get(0, &start), 0);
    for (size_t ranks = here_pus(); ranks <= here_pus() + 1; ranks++) {
        const char *size = formatted("%zu", ranks);
        setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
        setenv("OMPI_COMM_WORLD_LOCAL_SIZE", size, 1);
        ck_assert_int_eq(is_oversubscribed(&start), ranks > here_pus());
    }
}

/* Whose mask it is, on a machine of which these are all PUs. */
static const struct {
    const char *variables, *start;
    enum pin_mask_of whose;
    uint32_t sharers;
} masks[] = {
    /* half of the tasks have the same */
    {"SLURM_CPU_BIND_LIST=0xf,0xf,0xf0,0xf0", "0-3", PIN_MASK_OF_RANK, 2},
    {"SLURM_CPU_BIND_LIST=0xff,0xff,0xff,0xff", "0-7", PIN_MASK_OF_JOB, 1},
    {"SLURM_CPU_BIND_LIST=0xff,0xff,0xff,0xff", "0-1", PIN_MASK_OF_RANK, 1},
    {"SLURM_CPU_BIND_LIST=0xff,0xff,0xff,0xff", "0-3", PIN_MASK_OF_RANK, 2},
    {"SLURM_CPU_BIND_LIST=0xff,0xff,0xff,0xff", "4-9", PIN_MASK_OF_RANK, 1},
    {"SLURM_CPU_BIND_TYPE=map_cpu: SLURM_CPU_BIND_LIST=10,10,10,3", "10", PIN_MASK_OF_RANK, 2},
    /* the plugin says that Slurm's binding is its own, or a script has narrowed it */
    {"REBIND=1 SLURM_CPU_BIND_LIST=0x3,0xc,0x30,0xc0", "2-3", PIN_MASK_BY_LAUNCHER, 1},
    {"REBIND=1 SLURM_CPU_BIND_LIST=0x3,0xc,0x30,0xc0", "2", PIN_MASK_OF_RANK, 1},
    {"REBIND=1 SLURM_STEP_GPUS=0 SLURM_CPU_BIND_LIST=0x3,0xc,0x30,0xc0", "2-3", PIN_MASK_OF_RANK,
     1},
};

TEST(exported_places_are_read_by_the_rank_that_they_are_for)
{
    struct profile_mask mask = {0};
    char marker[128];
    const struct pin_launcher launcher =
        read_launcher("PMI_RANK=0 PMI_SIZE=1 OMP_PROC_BIND=close OMP_PLACES={9},{11}");
    const int length = pin_launcher_format(&launcher, marker, sizeof marker);
    strcpy(marker + length, "9-10 {9},{11}");
    setenv("SERVET_RANK", marker, 1);
    profile_mask_add(&mask, 9);
    struct profile_mask first = mask;
    ck_assert(!pin_places_read(&launcher, false, &mask));
    ck_assert(pin_places_read(&launcher, true, &first)); /* by a runtime that is there */
    profile_mask_add(&mask, 11);
    ck_assert(pin_places_read(&launcher, false, &mask));
    ck_assert(profile_mask_count(&mask) == 2 && profile_mask_has(&mask, 9) &&
              profile_mask_has(&mask, 10));
}

TEST(a_mask_belongs_to_the_ranks_that_have_it, .loops = sizeof masks / sizeof *masks)
{
    struct pin_launcher launcher;
    struct profile_mask start, allowed, all;
    ck_assert(profile_mask_parse(masks[_i].start, &start) && profile_mask_parse("0-7", &all));
    be_task("mask_cpu:", "");
    setenv("SLURM_STEP_TASKS_PER_NODE", "4", 1);
    set_all(masks[_i].variables);
    pin_launcher_read(getenv("REBIND"), &launcher);
    const uint64_t job = launcher.job;
    pin_launcher_allowed(&launcher, &start, &allowed);
    ck_assert_int_eq(launcher.mask_of, masks[_i].whose);
    ck_assert_uint_eq(launcher.sharers, masks[_i].sharers);
    const bool own = masks[_i].whose == PIN_MASK_OF_RANK;
    ck_assert_uint_eq(launcher.local_size, own ? 1 : 4);
    ck_assert_int_eq(launcher.job != job, own);
    ck_assert(profile_mask_equal(&allowed, own ? &start : &all));
}

TEST(one_of_slurms_two_variables_alone_says_nothing, .loops = 2)
{
    struct pin_launcher launcher;
    struct profile_mask start, allowed;
    ck_assert_int_eq(profile_mask_get(0, &start), 0);
    be_task("mask_cpu:", "0x1");
    unsetenv(_i ? "SLURM_CPU_BIND_LIST" : "SLURM_CPU_BIND_TYPE");
    pin_launcher_read(true, &launcher);
    pin_launcher_allowed(&launcher, &start, &allowed);
    ck_assert(profile_mask_equal(&allowed, &start));
}

/* -- workers: processes without MPI_Init -- */

#define WORKER "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "OMP_NUM_THREADS=1"

/* The shell and the program that it runs. */
TEST(a_worker_starts_on_its_part_and_its_processes_too)
{
    here_need_two_pus();
    run_plain(CHANGES(WORKER, "SERVET_WATCH=0"),
              ARGV(SERVET_PIN, "--", "/bin/sh", "-c",
                   "grep Cpus_allowed_list /proc/self/status; " PROGRAMS "/pthreads 1; "
                   "env | grep OMP_PLACES; true"),
              "0.0=second 0.1=second");
    child_says(&child, "Cpus_allowed_list:\t%s\n", order_text[1]);
    ck_assert_ptr_null(strstr(child.out, "OMP_PLACES"));
    run_preloaded(CHANGES(WORKER), ARGV(PROGRAMS "/pthreads", "1"), "0.0=second");
}

/* torchrun --numa-binding, taskset: a mask that the process which started all of them has not. */
TEST(a_worker_that_was_bound_stays_there)
{
    struct profile_mask start, allowed;
    here_need_two_pus();
    struct pin_launcher launcher = read_launcher("LOCAL_RANK=1 LOCAL_WORLD_SIZE=2");
    ck_assert_int_eq(profile_mask_get(0, &start), 0);
    pin_launcher_allowed(&launcher, &start, &allowed);
    ck_assert_int_eq(launcher.mask_of, PIN_MASK_OF_JOB);
    ck_assert_uint_eq(launcher.local_size, 2);
    profile_mask_remove(&start, order[0]);
    pin_launcher_allowed(&launcher, &start, &allowed);
    ck_assert_int_eq(launcher.mask_of, PIN_MASK_OF_RANK);
    ck_assert_uint_eq(launcher.local_size, 1);
    ck_assert(profile_mask_equal(&allowed, &start));
}

/* A data loader has its worker's variables and the shim. */
#define LOADS                                                                                      \
    "import subprocess, sys, threading, time\n"                                                    \
    "threading.Thread(target=lambda: time.sleep(3600), daemon=True).start()\n"                     \
    "print(subprocess.run(sys.argv[1:], capture_output=True, text=True))"

TEST(a_process_of_a_worker_is_no_worker)
{
    here_need_two_pus();
    child_run_preloaded(&child, CHANGES(WORKER, "SERVET_VERBOSE=1"),
                        ARGV("/usr/bin/python3", "-c", LOADS, PROGRAMS "/pthreads", "1"));
    if (strstr(child.err, "cannot be preloaded")) {
        return; /* a Python of another architecture than the shim's */
    }
    child_err_says("rank 1 of 2");
    ck_assert_msg(strstr(child.out, "returncode=0"), "%s", child.out);
    ck_assert_msg(!strstr(child.out, "rank 1 of 2"), "%s", child.out);
    child_says(&child, "worker 0 0 %s ", order_text[1]);
}

/* Any launcher, by the names of its variables. */
TEST(the_user_names_the_variables)
{
    here_need_two_pus();
    child_run(&child, CHANGES("JOB_SLOT=1", "JOB_SLOTS=2"),
              ARGV(SERVET_PIN, "--local-rank=JOB_SLOT", "--local-size=JOB_SLOTS", "--", "grep",
                   "Cpus_allowed_list", "/proc/self/status"));
    child_says(&child, "Cpus_allowed_list:\t%s\n", order_text[1]);
    child_run(&child, CHANGES("JOB_SLOT=0"),
              ARGV(SERVET_PIN, "--local-rank=JOB_SLOT", "--local-size=2", "--", "grep",
                   "Cpus_allowed_list", "/proc/self/status"));
    child_says(&child, "Cpus_allowed_list:\t%s\n", order_text[0]);
}

/* A mistake in the environment must not cost the program seconds. */
TEST(absurd_numbers_cost_nothing)
{
    static const char *const size[] = {"2000000000", "8191", "99999999999999999999"};
    for (size_t i = 0; i < sizeof size / sizeof size[0]; i++) {
        run_preloaded(CHANGES("OMPI_COMM_WORLD_LOCAL_RANK=0",
                              formatted("OMPI_COMM_WORLD_LOCAL_SIZE=%s", size[i]),
                              "OMP_NUM_THREADS=8000"),
                      ARGV("/bin/sh", "-c", "ulimit -t 2; exec " PROGRAMS "/pthreads 1"), NULL);
        child_expect(&child, 0, 0, 0);
    }
}
