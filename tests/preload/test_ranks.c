/* Do the ranks of an MPI program, in C, Fortran and hybrid with OpenMP, end on the PUs the mapper
 * gives them, whatever the launcher's own binding was, with the library's helper threads off the
 * workers' slots?
 *
 * Masks of launchers and of what is between them and a program are asked by `compositions`.
 *
 *     test_ranks LAUNCHER PREFIX      LAUNCHER: path of mpirun; programs PREFIXranks,
 *                                     PREFIXranks_f90 and so on
 */
#include "tests/base/command.h"
#include "tests/base/runner.h"
#include "tests/preload/child.h"
#include "tests/preload/here.h"

static const char *launcher, *prefix;
static bool open_mpi, with_shim = true;

static const char *path_of(const char *name)
{
    return formatted("%s%s", prefix, name);
}

static void need(const char *path)
{
    ck_assert_msg(access(path, X_OK) == 0 || strstr(path, "_f"), "%s was not built", path);
    if (access(path, X_OK) == 0) {
        return;
    }
    fprintf(stderr, "not checked, no Fortran compiler: %s\n", path);
    exit(0);
}

#define IN_ORDER "0.0=first 1.0=second"

/* Two ranks of a command, with these options of the launcher (NULL: none). */
static void launch(const char *const *changes, const char *const *options,
                   const char *const *command, const char *told)
{
    const char *argv[24] = {launcher, "-n", "2"};
    size_t count = 3;
    for (; options && *options; options++) {
        argv[count++] = *options;
    }
    while (*command) {
        argv[count++] = *command++;
    }
    run_plain(changes, argv, told);
}

/* Each behind servet-pin, as quickstart runs them. */
static void run_two(const char *name, const char *const *changes, const char *const *options,
                    const char *told)
{
    const char *program = path_of(name);
    need(program);
    launch(changes, options,
           with_shim ? ARGV(SERVET_PIN, "--mem-prior", "--", program)
                     : ARGV(SERVET_PIN, "--mem-prior", "--", "env", "-u", "LD_PRELOAD", program),
           told);
}

TEST(ranks_in_c_follow_the_mapper)
{
    run_two("ranks", NULL, NULL, IN_ORDER);
    child_says(&child, "count 0 3\n");
    child_says(&child, "count 1 3\n");
}

TEST(ranks_in_fortran_follow_the_mapper, .loops = 2)
{
    run_two(_i ? "ranks_f08" : "ranks_f90", NULL, NULL, IN_ORDER);
}

TEST(a_preload_set_before_the_launcher_reaches_the_ranks)
{
    need(path_of("ranks"));
    run_preloaded(NULL, ARGV(launcher, "-n", "2", path_of("ranks")), IN_ORDER);
}

TEST(a_session_makes_a_rank)
{
    if (open_mpi) {
        return; /* Open MPI 4 has no sessions */
    }
    run_two("sessions", NULL, NULL, IN_ORDER);
}

TEST(processing_elements_of_openshmem_are_ranks)
{
#if defined(ADDRESS_SANITIZER) || defined(THREAD_SANITIZER)
    return; /* its symmetric heap lies where their shadow is */
#endif
    if (!open_mpi || access(path_of("shmem"), X_OK) < 0) {
        return; /* another library, or no oshcc */
    }
    child_run(&child, NULL, ARGV("oshrun", "-n", "2", SERVET_PIN, path_of("shmem")));
    child_expect(&child, 0, 0, order[0]);
    child_expect(&child, 1, 0, order[1]);
}

/* Nothing in such a program calls MPI: the coarray library does, before main. */
TEST(images_of_a_coarray_program_are_ranks)
{
    if (access(path_of("images"), X_OK) < 0) {
        fprintf(stderr,
                "not checked: %s was not built (packages libcoarrays-openmpi-dev, "
                "libcoarrays-mpich-dev)\n",
                path_of("images"));
        return;
    }
    run_two("images", NULL, NULL, IN_ORDER);
}

/* PUs of the region of each of two ranks: its own half, as far as two threads need one. */
static int region_pus(void)
{
    return here_pus() >= 4 ? 2 : 1;
}

/* Each of two ranks with two threads has a region of its own: its two threads have a PU each as far
 * as there are some, OpenMP counts those, and the other rank's are others. */
TEST(hybrid_ranks_have_regions)
{
    char pus[2][2][256];
    run_two("hybrid", CHANGES("OMP_NUM_THREADS=2"), NULL, NULL);
    for (int rank = 0; rank < 2; rank++) {
        for (int thread = 0; thread < 2; thread++) {
            child_worker(&child, rank, thread, pus[rank][thread], sizeof pus[rank][thread]);
            ck_assert_msg(!strpbrk(pus[rank][thread], ",-"), "%s", child.out);
        }
        ck_assert_int_eq(strcmp(pus[rank][0], pus[rank][1]) != 0, region_pus() == 2);
        child_says(&child, "count %d %d\n", rank, region_pus());
    }
    ck_assert_str_ne(pus[0][0], pus[1][0]);
    ck_assert_str_ne(pus[0][1], pus[1][1]);
}

static bool is_single(const char *line)
{
    const char *pus = strrchr(line, ' ');
    return !memchr(pus, '-', strcspn(pus, "\n")) && !memchr(pus, ',', strcspn(pus, "\n"));
}

/* No helper of the library is confined to one PU of a region that has more. */
TEST(helpers_have_the_region)
{
    size_t single = 0, threads = 0;
    if (region_pus() < 2) {
        fprintf(stderr, "not checked: needs four PUs\n");
        return;
    }
    run_two("hybrid", CHANGES("OMP_NUM_THREADS=2"), NULL, NULL);
    for (char *line = strtok(child.out, "\n"); line; line = strtok(NULL, "\n")) {
        if (strncmp(line, "mask ", 5) != 0) {
            continue;
        }
        threads++;
        single += is_single(line);
    }
    ck_assert_uint_eq(single, 4);
    ck_assert_uint_gt(threads, 4);
}

/* A command below servet-pin, unbound by the launcher. */
static void run_unbound(const char *const *changes, const char *const *command, const char *told)
{
    launch(changes, open_mpi ? ARGV("--bind-to", "none") : NULL, command, told);
}

/* servet-pin has narrowed the rank to its one PU; what the rank starts gets the mask from
 * before. */
TEST(children_of_a_rank_have_the_mask_from_before_servet_pin)
{
    static const char *const ways[] = {"fork", "execve", "posix_spawn", "popen", "system"};
    char all[256];
    child_run(&child, NULL, ARGV(PROGRAMS "/pthreads", "1"));
    child_worker(&child, 0, 0, all, sizeof all);
    run_unbound(CHANGES("OMP_NUM_THREADS=1"), ARGV(SERVET_PIN, PROGRAMS "/children"), NULL);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const char *line = formatted("child main %s %s\n", ways[i], all);
        const char *first = strstr(child.out, line);
        ck_assert_msg(first && strstr(first + 1, line), "not twice \"%s\" in\n%s", line, child.out);
    }
}

/* The user has swapped the places of every rank; --force puts them where the mapper says. */
TEST(force_overrules_the_users_places)
{
    const char *program = path_of("hybrid");
    const char *const *swapped = CHANGES("OMP_NUM_THREADS=1", "OMP_PROC_BIND=close",
                                         formatted("OMP_PLACES={%u},{%u}", order[1], order[0]));
    need(program);
    run_unbound(swapped, ARGV(SERVET_PIN, "--force", "--", program), IN_ORDER);
    run_unbound(swapped, ARGV(SERVET_PIN, program), "0.0=second 1.0=second");
}

/* With gcc's runtime, and with clang's where it was built. */
static const char *hybrid(int which)
{
    const char *name = which ? "hybrid_libomp" : "hybrid";
    return which == 0 || access(path_of(name), X_OK) == 0 ? name : NULL;
}

/* Without a number of threads each rank has its share of the PUs, and what OpenMP sees is that
 * share. */
TEST(runtimes_are_told_their_share, .loops = 2)
{
    if (!hybrid(_i) || here_pus() != 2) {
        return;
    }
    run_two(hybrid(_i), NULL, NULL, IN_ORDER);
    for (int rank = 0; rank < 2; rank++) {
        child_says(&child, "place %d 0 0\n", rank);
        child_says(&child, "count %d 1\n", rank);
    }
}

/* The PUs of the two threads of each of two ranks, which must be on the places of their region. */
static void read_team(const char *name, const char *const *changes, char pus[2][2][256])
{
    run_two(name, changes, NULL, NULL);
    for (int worker = 0; worker < 4; worker++) {
        int rank = worker / 2, thread = worker % 2;
        child_worker(&child, rank, thread, pus[rank][thread], sizeof pus[0][0]);
        child_says(&child, "place %d %d %d\n", rank, thread, thread % region_pus());
        child_says(&child, "count %d %d\n", rank, region_pus());
    }
}

/* With the shim switched off in the rank the runtime alone places the threads, by what servet-pin
 * exported. */
TEST(runtimes_and_the_shim_agree_on_the_places, .loops = 2)
{
    char together[2][2][256], alone[2][2][256];
    if (!hybrid(_i)) {
        return;
    }
    read_team(hybrid(_i), CHANGES("OMP_NUM_THREADS=2", "SERVET_VERBOSE=1"), together);
    ck_assert_msg(!strstr(child.err, "stays where"), "%s", child.err);
    ck_assert_msg(!strstr(child.err, "creator chose"), "%s", child.err);
    with_shim = false;
    read_team(hybrid(_i), CHANGES("OMP_NUM_THREADS=2"), alone);
    for (int worker = 0; worker < 4; worker++) {
        const char *pus = together[worker / 2][worker % 2];
        ck_assert_msg(!strpbrk(pus, ",-"), "%s", pus);
        ck_assert_str_eq(pus, alone[worker / 2][worker % 2]);
    }
}

/* MPICH leaves the ranks on all PUs; Open MPI needs an option. */
TEST(the_users_own_places_stay, .loops = 2)
{
    const char *places = formatted("OMP_PLACES={%u},{%u}", order[1], order[0]);
    if (hybrid(_i)) {
        run_two(hybrid(_i), CHANGES("OMP_NUM_THREADS=2", "OMP_PROC_BIND=close", places),
                open_mpi ? ARGV("--bind-to", "none") : NULL,
                "0.0=second 0.1=first 1.0=second 1.1=first");
    }
}

TESTS(.seconds = 120, .begin = here_need_two_pus)

int main(int argc, char **argv)
{
    if (argc != 3) {
        return 2;
    }
    if (!has_loopback()) {
        return 77;
    }
    launcher = argv[1];
    prefix = argv[2];
    open_mpi = strstr(prefix, "openmpi") != NULL;
#ifdef THREAD_SANITIZER
    if (!open_mpi) {
        fprintf(stderr,
                "skipped: ranks of MPICH crash under ThreadSanitizer, without the shim too\n");
        return 77;
    }
#endif
    return run_registered();
}
