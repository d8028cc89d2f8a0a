/* Do servet-map, the shim, the OMP_PLACES of servet-pin and a task under the Slurm plugin give the
 * ranks of a hybrid program the same PUs, on machines that are not here?
 *
 * The shim's own code makes the plan of each rank from the environment that a launcher leaves, for
 * a profile and a mask of all its PUs; the plugin writes its part of that environment through the
 * four functions of Slurm that it calls, which stand here in Slurm's place. */
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>

#include "preload/place/places.h"
#include "tests/base/command.h"
#include "tests/base/runner.h"
#include "tests/preload/machine.h"

#define MOST_THREADS 256

/* -- machines and programs -- */

static const char *const machines[] = {
    FIXTURES "/dunnington.json",
    FIXTURES "/measured/guest-16.json",
    FIXTURES "/superdome.json",
    FIXTURES "/two-packages-256.json",
    "package:2 [numa] l3:8 core:2 pu:2",
    "package:2 group:3 core:4 pu:1",
    "package:1 core:7 pu:1", /* a number that no other divides */
    FIXTURES "/topologies/Intel-ArrowLake-CoreUltra5-225U.xml",
    FIXTURES "/topologies/fakeheterocpunuma.xml",
};

static const uint32_t programs[][2] = {{1, 4}, {2, 2}, {2, 3}, {3, 3},  {4, 2},
                                       {3, 4}, {5, 3}, {7, 2}, {2, 14}, {9, 7}};

#define MACHINES (sizeof machines / sizeof *machines)

/* -- what each of them says -- */

/* servet-map's: the threads of all ranks, one rank to a line. */
static size_t ask_command(const struct machine *m, const char *priority, const uint32_t *program,
                          uint32_t *pus)
{
    size_t count = 0;
    struct run run = run_command(SERVET_MAP " --profile %s --%s-prior -r %u -t %u", m->path,
                                 priority, program[0], program[1]);
    ck_assert_msg(run.status == 0, "%s", run.err);
    for (char *at = run.out; *at && count < MOST_THREADS; at++) {
        pus[count++] = (uint32_t)strtoul(at, &at, 10);
    }
    ck_assert_uint_eq(count, (size_t)program[0] * program[1]);
    return count;
}

/* The plan that the shim makes from the environment. */
static void make_plan(const struct machine *m, uint32_t threads, struct pin_launcher *launcher,
                      struct pin_plan *plan)
{
    static struct pin_options options;
    static struct pin_registry registry;
    const struct pin_plan_request request = {.options = &options,
                                             .launcher = launcher,
                                             .threads = threads,
                                             .is_team = true,
                                             .allowed = &m->all,
                                             .registry = &registry};
    memset(&options, 0, sizeof options);
    setenv("SERVET_PROFILE", m->path, 1);
    setenv("SERVET_REGISTRY", "0", 1);
    setenv("SERVET_WATCH", "0", 1); /* this machine's work is not that machine's */
    pin_options_read(&options);
    pin_launcher_read(options.rebind, launcher);
    ck_assert_int_eq(pin_plan_make(&request, plan), 0);
    ck_assert_uint_ge(plan->count, threads);
}

static void expect_same(const char *who, const char *machine, const uint32_t *program,
                        uint32_t rank, const uint32_t *expected, const uint32_t *got)
{
    for (uint32_t t = 0; t < program[1]; t++) {
        ck_assert_msg(got[t] == expected[t],
                      "%s, %u ranks of %u threads, thread %u of rank %u: servet-map says PU %u, %s "
                      "%u",
                      machine, program[0], program[1], t, rank, expected[t], who, got[t]);
    }
}

/* OMP_PLACES, "{0},{4}": each PU once, in the order of the threads. */
static void expect_places(const char *machine, const uint32_t *expected, uint32_t threads)
{
    const char *text = getenv("OMP_PLACES");
    char wanted[MOST_THREADS * 8] = "";
    for (uint32_t t = 0; t < threads; t++) {
        bool again = false;
        for (uint32_t before = 0; before < t; before++) {
            again = again || expected[before] == expected[t];
        }
        size_t used = strlen(wanted);
        if (!again) {
            snprintf(wanted + used, sizeof wanted - used, "%s{%u}", used ? "," : "", expected[t]);
        }
    }
    ck_assert_msg(text && strcmp(text, wanted) == 0, "%s: OMP_PLACES=%s, expected %s", machine,
                  text ? text : "", wanted);
}

static void ask_shim(const struct machine *m, const char *name, const uint32_t *program,
                     uint32_t rank, const uint32_t *expected)
{
    struct pin_launcher launcher;
    struct pin_plan plan;
    set_number("OMPI_COMM_WORLD_LOCAL_RANK", rank);
    set_number("OMPI_COMM_WORLD_LOCAL_SIZE", program[0]);
    make_plan(m, program[1], &launcher, &plan);
    expect_same("the shim", name, program, rank, expected, plan.pus);
    if (program[0] > 1) { /* a single rank has more PUs than threads */
        ck_assert_int_eq(pin_places_export(&launcher, &m->all, &plan), 0);
        expect_places(name, expected, program[1]);
    }
    pin_plan_free(&plan);
    unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
    unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    unsetenv("OMP_PLACES");
    unsetenv("OMP_PROC_BIND");
    unsetenv("SERVET_RANK");
}

/* -- Slurm's side of the plugin -- */

#ifdef SPANK_SERVET
#include <slurm/spank.h>

typedef int callback(spank_t spank, int ac, char **av);

spank_err_t spank_getenv(spank_t spank, const char *name, char *value, int length)
{
    const char *found = getenv(name);
    (void)spank;
    if (!found) {
        return ESPANK_ENV_NOEXIST;
    }
    return snprintf(value, (size_t)length, "%s", found) < length ? ESPANK_SUCCESS : ESPANK_NOSPACE;
}

spank_err_t spank_setenv(spank_t spank, const char *name, const char *value, int overwrite)
{
    (void)spank;
    return setenv(name, value, overwrite) == 0 ? ESPANK_SUCCESS : ESPANK_ERROR;
}

/* Of devices, for which no test here asks. */
spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...)
{
    (void)spank;
    (void)item;
    return ESPANK_BAD_ARG;
}

spank_context_t spank_context(void)
{
    return S_CTX_REMOTE;
}

/* As srun does for `--servet=mem`: the option's own function is called with what was given. */
spank_err_t spank_option_register(spank_t spank, struct spank_option *option)
{
    (void)spank;
    return option->cb(option->val, getenv("TEST_SERVET_OPTION"), 1) == 0 ? ESPANK_SUCCESS
                                                                         : ESPANK_ERROR;
}

void slurm_error(const char *format, ...)
{
    ck_abort_msg("slurm_error: %s", format);
}

static void call(void *plugin, const char *name)
{
    callback *function;
    *(void **)&function = dlsym(plugin, name);
    ck_assert_msg(function && function(NULL, 0, NULL) == 0, "%s", name);
}

static void ask_plugin(const struct machine *m, const char *name, const uint32_t *program,
                       uint32_t rank, const uint32_t *expected)
{
    static const char *const made[] = {"SERVET_MEM_PRIOR", "SERVET_COMM_PRIOR",  "SERVET_REBIND",
                                       "SERVET_DISABLE",   "LD_PRELOAD",         "SLURM_LOCALID",
                                       "SLURM_NODEID",     "SLURM_CPU_BIND_TYPE"};
    void *plugin = dlopen(SPANK_SERVET, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(plugin, "%s", dlerror());
    struct pin_launcher launcher;
    struct pin_plan plan;
    set_number("SLURM_LOCALID", rank);
    set_number("SLURM_NODEID", 0);
    set_number("SLURM_STEP_TASKS_PER_NODE", program[0]);
    setenv("SLURM_CPU_BIND_TYPE", "none", 1);
    call(plugin, "slurm_spank_init");
    call(plugin, "slurm_spank_user_init");
    call(plugin, "slurm_spank_task_init");
    ck_assert_ptr_nonnull(getenv("LD_PRELOAD"));
    make_plan(m, program[1], &launcher, &plan);
    ck_assert_str_eq(launcher.name, "Slurm");
    expect_same("the Slurm plugin", name, program, rank, expected, plan.pus);
    pin_plan_free(&plan);
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        unsetenv(made[i]);
    }
    unsetenv("SLURM_STEP_TASKS_PER_NODE");
    dlclose(plugin);
}
#else
static void ask_plugin(const struct machine *m, const char *name, const uint32_t *program,
                       uint32_t rank, const uint32_t *expected)
{
    (void)m, (void)name, (void)program, (void)rank, (void)expected;
}
#endif

/* -- the comparison -- */

static void compare(const struct machine *m, const char *name, bool memory)
{
    uint32_t expected[MOST_THREADS];
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        const uint32_t *program = programs[i];
        ask_command(m, memory ? "mem" : "comm", program, expected);
        for (uint32_t rank = 0; rank < program[0]; rank++) {
            const uint32_t *of_rank = expected + (size_t)rank * program[1];
            setenv(memory ? "SERVET_MEM_PRIOR" : "SERVET_COMM_PRIOR", "1", 1);
            ask_shim(m, name, program, rank, of_rank);
            unsetenv("SERVET_MEM_PRIOR");
            unsetenv("SERVET_COMM_PRIOR");
            setenv("TEST_SERVET_OPTION", memory ? "mem" : "comm", 1);
            ask_plugin(m, name, program, rank, of_rank);
        }
    }
}

TEST(one_answer_for_a_hybrid_program, .loops = MACHINES)
{
    struct machine m;
    open_machine(machines[_i], &m);
    compare(&m, machines[_i], true);
    compare(&m, machines[_i], false);
    close_machine(&m);
}

/* -- processes that are no MPI ranks -- */

#define TWO_OF_64 "package:2 group:4 [numa] core:16 pu:1"

/* The PUs of each of four, which are all in one package and no other's. */
static void expect_part(const struct pin_plan *plan, uint32_t pus, struct profile_mask *before)
{
    ck_assert_uint_eq(profile_mask_count(&plan->own), pus);
    PROFILE_MASK_EACH(&plan->own, pu)
    {
        ck_assert_msg(pu / 64 == plan->pus[0] / 64, "PUs %u and %u", plan->pus[0], pu);
        ck_assert_msg(!profile_mask_has(before, pu), "PU %u is another worker's", pu);
        profile_mask_add(before, pu);
    }
}

/* However many threads a worker has, what it starts lives with it, on whole cores, if there is one
 * for each. */
TEST(each_worker_of_torchrun_has_its_part_of_the_node, .loops = 5)
{
    static const struct {
        const char *machine;
        uint32_t threads; /* OMP_NUM_THREADS: torchrun's default, or the user's */
        uint32_t pus;
    } asked[] = {{TWO_OF_64, 1, 32},
                 {TWO_OF_64, 4, 32},
                 {"package:2 group:4 [numa] core:8 pu:2", 1, 32},
                 {"package:2 group:4 [numa] core:8 pu:2", 4, 32},
                 {"package:1 core:2 pu:2", 1, 1}};
    struct machine m;
    struct profile_mask before = {0};
    open_machine(asked[_i].machine, &m);
    for (uint32_t rank = 0; rank < 4; rank++) {
        struct pin_launcher launcher;
        struct pin_plan plan;
        set_number("LOCAL_RANK", rank);
        set_number("LOCAL_WORLD_SIZE", 4);
        make_plan(&m, asked[_i].threads, &launcher, &plan);
        expect_part(&plan, asked[_i].pus, &before);
        for (uint32_t t = 1; t < asked[_i].threads; t++) { /* the least in common: two NUMA nodes */
            ck_assert_uint_eq(plan.pus[t] / 64, plan.pus[0] / 64);
        }
        pin_plan_free(&plan);
    }
    close_machine(&m);
}

/* On the second of two nodes PMI tells ranks 4 to 7 of 8. */
TEST(ranks_of_flux_are_those_of_this_node)
{
    uint32_t expected[MOST_THREADS];
    const uint32_t program[2] = {4, 4};
    struct machine m;
    struct profile_mask numa = {0};
    open_machine(TWO_OF_64, &m);
    ask_command(&m, "mem", program, expected);
    setenv("FLUX_JOB_SIZE", "8", 1);
    setenv("FLUX_JOB_NNODES", "2", 1);
    setenv("PMI_SIZE", "8", 1);
    for (uint32_t rank = 0; rank < 4; rank++) {
        struct pin_launcher launcher;
        struct pin_plan plan;
        set_number("FLUX_TASK_LOCAL_ID", rank);
        set_number("FLUX_TASK_RANK", rank + 4);
        set_number("PMI_RANK", rank + 4);
        make_plan(&m, 4, &launcher, &plan);
        expect_same("Flux's", TWO_OF_64, program, rank, expected + 4 * rank, plan.pus);
        for (uint32_t t = 0; t < 4; t++) {
            profile_mask_add(&numa, plan.pus[t] / 16);
        }
        pin_plan_free(&plan);
    }
    ck_assert_uint_eq(profile_mask_count(&numa), 8);
    close_machine(&m);
}

/* Another job has every PU, and its main thread the first of this rank's. */
TEST(a_rank_over_another_job_begins_beside_its_main_thread)
{
    static struct pin_options options;
    static struct pin_registry here;
    const uint32_t last = 127;
    struct pin_company company;
    const char *path = scratch_path("registry");
    struct machine m;
    struct pin_launcher launcher;
    struct pin_plan alone, plan;
    struct profile_mask mains = {0};
    const struct pin_plan_request request = {.options = &options,
                                             .launcher = &launcher,
                                             .is_team = true,
                                             .allowed = &m.all,
                                             .registry = &here};
    open_machine(TWO_OF_64, &m);
    set_number("OMPI_COMM_WORLD_LOCAL_RANK", 0);
    set_number("OMPI_COMM_WORLD_LOCAL_SIZE", 2);
    make_plan(&m, 0, &launcher, &alone);
    pin_options_read(&options);
    profile_mask_add(&mains, alone.pus[0]);
    const pid_t job = fork();
    if (job == 0) {
        (void)pin_registry_open(&here, path, 1);
        (void)pin_registry_take_all(&here, &m.all, &mains, false);
        _exit(pause());
    }
    ck_assert_int_eq(pin_registry_open(&here, path, 2), 0);
    do {
        pin_registry_count(&here, &last, 1, &company);
    } while (company.jobs == 0);
    ck_assert_int_eq(pin_plan_make(&request, &plan), 0);
    ck_assert_uint_eq(plan.count, alone.count);
    for (size_t i = 0; i < plan.count; i++) {
        ck_assert_uint_eq(plan.pus[i], alone.pus[(i + 1) % plan.count]);
    }
    kill(job, SIGKILL);
    waitpid(job, NULL, 0);
    pin_plan_free(&alone);
    pin_plan_free(&plan);
    close_machine(&m);
}

TESTS(.seconds = 60)
