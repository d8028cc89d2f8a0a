/* Is every byte that MPI ranks send counted once, for the right pair, whatever call and language
 * sends it? Does servet-map read what comes out, and is a trace that cannot be written no trouble
 * for the program?
 *
 *     test_trace LAUNCHER PREFIX      LAUNCHER: path of mpirun; programs PREFIXtraffic,
 *                                     PREFIXtraffic_f08 and so on
 */
#include <sched.h>
#include <sys/stat.h>

#include "tests/base/command.h"
#include "tests/base/runner.h"
#include "tests/preload/child.h"

enum { RANKS = 3 };

static const char *launcher, *prefix;
static const char *folder, *file;
static char trace_variable[300], cache[300];

/* Bytes and messages from row to column. */
struct matrix {
    unsigned long bytes[RANKS][RANKS], messages[RANKS][RANKS];
};

static const char *path_of(const char *name)
{
    return formatted("%s%s", prefix, name);
}

static void setup(void)
{
    folder = scratch_folder();
    file = scratch_path("matrix.mtx");
    snprintf(trace_variable, sizeof trace_variable, "SERVET_TRACE=%s", file);
    snprintf(cache, sizeof cache, "XDG_CACHE_HOME=%s/cache", folder);
}

static void run_ranks(const char *ranks, const char *const *changes, const char *program,
                      const char *pattern)
{
    run_plain(changes, ARGV(launcher, "-n", ranks, SERVET_PIN, program, pattern), NULL);
}

static void run_three(const char *const *changes, const char *program, const char *pattern)
{
    run_ranks("3", changes, program, pattern);
}

static void read_matrix(struct matrix *out)
{
    char line[256];
    int from, to, ranks = 0, columns;
    unsigned long number, entries = 0, seen = 0;
    FILE *in = fopen(file, "r");
    ck_assert_msg(in, "%s was not written:\n%s", file, child.err);
    *out = (struct matrix){0};
    ck_assert_ptr_nonnull(fgets(line, sizeof line, in));
    ck_assert_str_eq(line, "%%MatrixMarket matrix coordinate integer general\n");
    while (fgets(line, sizeof line, in)) {
        if (sscanf(line, "%% messages %d %d %lu", &from, &to, &number) == 3) {
            out->messages[from - 1][to - 1] += number;
        } else if (line[0] == '%') {
            continue;
        } else if (ranks == 0) {
            ck_assert_int_eq(sscanf(line, "%d %d %lu", &ranks, &columns, &entries), 3);
        } else {
            ck_assert_int_eq(sscanf(line, "%d %d %lu", &from, &to, &number), 3);
            out->bytes[from - 1][to - 1] += number;
            seen++;
        }
    }
    fclose(in);
    ck_assert_int_eq(ranks, RANKS);
    ck_assert_int_eq(columns, RANKS);
    ck_assert_uint_eq(seen, entries);
}

static void compare(const struct matrix *expected)
{
    struct matrix found;
    read_matrix(&found);
    for (int from = 0; from < RANKS; from++) {
        for (int to = 0; to < RANKS; to++) {
            ck_assert_msg(found.bytes[from][to] == expected->bytes[from][to],
                          "%lu bytes from %d to %d, expected %lu", found.bytes[from][to], from, to,
                          expected->bytes[from][to]);
            ck_assert_msg(found.messages[from][to] == expected->messages[from][to],
                          "%lu messages from %d to %d, expected %lu", found.messages[from][to],
                          from, to, expected->messages[from][to]);
        }
    }
}

static void expect(const char *pattern, const struct matrix *expected)
{
    run_three(CHANGES(trace_variable), path_of("traffic"), pattern);
    ck_assert_msg(child_lines(child.err, "servet") == 0, "%s", child.err);
    compare(expected);
}

/* Eight kinds of sending 10 ints to the next, 3 doubles with MPI_Sendrecv, 1 double to the one
 * before, and 7 bytes. */
static const struct matrix sends = {
    .bytes = {{0, 8 * 40 + 24 + 7, 8}, {8, 0, 8 * 40 + 24}, {8 * 40 + 24, 8, 0}},
    .messages = {{0, 10, 1}, {1, 0, 9}, {9, 1, 0}},
};

TEST(every_way_to_send_counts_once)
{
    expect("send", &sends);
}

TEST(persistent_requests_count_when_they_start)
{
    expect("persistent", &(struct matrix){.bytes = {{0, 301, 0}, {0, 0, 301}, {301, 0, 0}},
                                          .messages = {{0, 4, 0}, {0, 0, 4}, {4, 0, 0}}});
}

/* 2 columns of 5 x 1, 2, 3 doubles. */
TEST(derived_types_count_what_they_send)
{
    expect("types", &(struct matrix){.bytes = {{0, 80 + 160 + 240, 0}}, .messages = {{0, 3, 0}}});
}

TEST(ranks_of_other_communicators_are_translated)
{
    expect("communicators",
           &(struct matrix){.bytes = {{0, 0, 10 + 12}, {0}, {1000 + 11 + 13, 1000, 0}},
                            .messages = {{0, 0, 2}, {0}, {3, 1, 0}}});
    expect("intercommunicator", &(struct matrix){.bytes = {{0, 0, 6}, {0, 0, 30}, {500, 500, 0}},
                                                 .messages = {{0, 0, 1}, {0, 0, 1}, {1, 1, 0}}});
}

/* To the next: 2 x 5 ints, 2 x (1 + 2 + 3 + 4) ints, 4 x 10 x 2 ints; in the turned order 2 x 5
 * ints. */
TEST(messages_like_the_one_before_count_as_well)
{
    enum { NEXT = 40 + 80 + 320, NEXT_MESSAGES = 10 + 8 + 40, BEFORE = 40, BEFORE_MESSAGES = 10 };
    expect("repeated",
           &(struct matrix){.bytes = {{0, NEXT, BEFORE}, {BEFORE, 0, NEXT}, {NEXT, BEFORE, 0}},
                            .messages = {{0, NEXT_MESSAGES, BEFORE_MESSAGES},
                                         {BEFORE_MESSAGES, 0, NEXT_MESSAGES},
                                         {NEXT_MESSAGES, BEFORE_MESSAGES, 0}}});
}

/* The model of trace.h, operation by operation as the program calls them. */
TEST(collectives_count_as_documented)
{
    expect("rooted", &(struct matrix){.bytes = {{0, 20, 24 + 30},
                                                {2 * 1000 + 7 + 20, 0, 2 * 1000 + 24},
                                                {7 + 30 + 5, 5, 0}},
                                      .messages = {{0, 1, 2}, {4, 0, 3}, {3, 1, 0}}});
    expect("alltoall", &(struct matrix){.bytes = {{0, 2 * 1 + 16 + 8, 2 * 2 + 16 + 8},
                                                  {2 * 100 + 16 + 8, 0, 2 * 102 + 16 + 8},
                                                  {2 * 200 + 16 + 8, 2 * 201 + 16 + 8, 0}},
                                        .messages = {{0, 4, 4}, {4, 0, 4}, {4, 4, 0}}});
    expect("allgather", &(struct matrix){.bytes = {{0, 71, 71}, {91, 0, 91}, {111, 111, 0}},
                                         .messages = {{0, 4, 4}, {4, 0, 4}, {4, 4, 0}}});
    /* Allreduce 2 * 3009 / 3, then Reduce_scatter 8 | 16 | 24 to 0 | 1 | 2, its block 8, Scan 10
     * and Exscan 1. */
    expect("reduce", &(struct matrix){.bytes = {{0, 2006 + 16 + 8 + 11, 2006 + 24 + 8},
                                                {2006 + 8 + 8, 0, 2006 + 24 + 8 + 11},
                                                {2006 + 8 + 8, 2006 + 16 + 8, 0}},
                                      .messages = {{0, 14, 12}, {12, 0, 14}, {12, 12, 0}}});
}

TEST(neighbours_are_those_of_the_topology)
{
    expect("neighbours", &(struct matrix){.bytes = {{0, 11 + 20, 0}, {11, 0, 11 + 21}, {22, 11, 0}},
                                          .messages = {{0, 3, 0}, {2, 0, 3}, {1, 2, 0}}});
}

/* Data that rank 2 gets, rank 0 sends; a fetch-and-op goes both ways. */
TEST(one_sided_communication_counts)
{
    expect("rma", &(struct matrix){.bytes = {{0, 100, 4 + 200}, {0, 0, 4}, {0, 4, 0}},
                                   .messages = {{0, 1, 2}, {0, 0, 1}, {0, 1, 0}}});
}

TEST(threads_lose_no_message)
{
    expect("threads", &(struct matrix){.bytes = {{0, 400, 0}, {0, 0, 400}, {400, 0, 0}},
                                       .messages = {{0, 400, 0}, {0, 0, 400}, {400, 0, 0}}});
}

/* mpif.h, use mpi, use mpi_f08: 40 bytes and 2 x 100 to the next, 1,000 from rank 1, 8 to all
 * others, 24 to rank 2. */
TEST(fortran_counts_like_c, .loops = 3)
{
    static const char *const names[] = {"traffic_f77", "traffic_f90", "traffic_f08"};
    static const struct matrix expected = {
        .bytes = {{0, 40 + 200 + 8, 8 + 24},
                  {1000 + 8, 0, 40 + 200 + 1000 + 8 + 24},
                  {40 + 200 + 8, 8, 0}},
        .messages = {{0, 4, 2}, {2, 0, 6}, {4, 1, 0}},
    };
    const char *path = path_of(names[_i]);
    if (access(path, X_OK) < 0) {
        fprintf(stderr, "not checked, not built: %s\n", path);
        return;
    }
    run_three(CHANGES(trace_variable), path, NULL);
    compare(&expected);
}

TEST(servet_map_reads_the_trace)
{
    run_three(CHANGES(trace_variable), path_of("traffic"), "types");
    run_plain(NULL,
              ARGV(SERVET_MAP, "-n", "3", "--profile", FIXTURES "/nehalem-2-nodes.json",
                   "--comm-prior", "--matrix", file),
              NULL);
}

TEST(the_file_is_found_from_where_the_program_began)
{
    ck_assert_int_eq(chdir(folder), 0);
    run_three(CHANGES("SERVET_TRACE=matrix.mtx"), path_of("traffic"), "away");
    compare(&sends);
}

/* `timeout` alone judges the time: minutes are too long, whatever the machine is busy with. */
TEST(a_rank_without_the_tracer_does_not_keep_the_others)
{
    const char *program = path_of("traffic");
    run_plain(CHANGES(trace_variable),
              ARGV("timeout", "-k", "5", "150", launcher, "-n", "1", SERVET_PIN, program, "nothing",
                   ":", "-n", "1", "env", "-u", "LD_PRELOAD", program, "nothing"),
              NULL);
    ck_assert_msg(child_lines(child.err, "servet: SERVET_TRACE: not all ranks are traced") == 1,
                  "%s", child.err);
    ck_assert_int_lt(access(file, F_OK), 0);
}

static void expect_no_trace(const char *variable)
{
    run_three(CHANGES(variable), path_of("traffic"), "types");
    ck_assert_uint_eq(child_lines(child.err, "servet"), 1);
    ck_assert_uint_eq(child_lines(child.err, "servet: SERVET_TRACE: "), 1);
}

TEST(a_trace_that_cannot_be_written_is_one_line)
{
    expect_no_trace("SERVET_TRACE=-");
    expect_no_trace("SERVET_TRACE=/nonexistent/matrix.mtx");
    expect_no_trace("SERVET_TRACE=/dev/null");
    struct stat info;
    ck_assert_int_eq(stat("/dev/null", &info), 0);
    ck_assert(S_ISCHR(info.st_mode));
}

TEST(nothing_is_left_beside_the_file)
{
    run_three(CHANGES(trace_variable), path_of("traffic"), "types");
    ck_assert_int_eq(system(formatted("test \"$(ls %s)\" = matrix.mtx", folder)), 0);
}

TEST(times_are_added_on_request)
{
    char line[1024];
    int number, found = 0;
    run_three(CHANGES(trace_variable, "SERVET_TRACE_TIMES=1"), path_of("traffic"), "talk");
    FILE *in = fopen(file, "r");
    ck_assert_ptr_nonnull(in);
    while (fgets(line, sizeof line, in)) {
        double seconds, inside, iteration, compute;
        unsigned long iterations;
        if (sscanf(line,
                   "%% rank %d messages %*u bytes %*u largest %*u seconds %lf mpi %lf iterations "
                   "%lu iteration %lf "
                   "compute %lf",
                   &number, &seconds, &inside, &iterations, &iteration, &compute) != 6) {
            continue;
        }
        found++;
        ck_assert(seconds >= 0.35 && inside > 0 && inside <= seconds);
        ck_assert_uint_gt(iterations, 1);
        ck_assert(iteration > 0 && compute >= 0 && compute <= iteration);
    }
    fclose(in);
    ck_assert_int_eq(found, RANKS);
}

TEST(the_shim_says_when_the_tracer_is_missing)
{
    run_preloaded(CHANGES(trace_variable), ARGV(launcher, "-n", "2", path_of("traffic"), "nothing"),
                  NULL);
    ck_assert_msg(
        child_lines(child.err, "servet: SERVET_TRACE: libservet_trace.so is not preloaded") == 1,
        "%s", child.err);
}

/* A library that only the plugin's own users can look into. */
TEST(a_program_that_loads_mpi_privately_is_traced)
{
    run_three(CHANGES(trace_variable), path_of("plugged"), path_of("plugin.so"));
    compare(&(struct matrix){.bytes = {{0, 5, 0}, {0, 0, 5}, {5, 0, 0}},
                             .messages = {{0, 1, 0}, {0, 0, 1}, {1, 0, 0}}});
}

/* -- SERVET_AUTO -- */

/* Two ranks, and what the shim says of them: how many lines begin with `beginning`. */
static size_t run_auto(const char *pattern, const char *more, const char *beginning)
{
    run_ranks("2", CHANGES("SERVET_AUTO=1", "SERVET_REPORT=stderr", cache, more),
              path_of("traffic"), pattern);
    return count_of(child.err, beginning);
}

/* The second run of a program that talks all the time is placed to talk; of one that computes,
 * not. */
TEST(the_last_run_decides_the_next_ones_priority)
{
    ck_assert_uint_eq(run_auto("talk", "OMP_DYNAMIC=0", "auto: communication intensive"), 1);
    ck_assert_msg(!strstr(child.err, "priority, for the run before"), "%s", child.err);
    ck_assert_uint_eq(
        run_auto("compute", "OMP_DYNAMIC=0", "auto: communication priority, for the run before"),
        2);
    child_err_says("auto: memory bound or computing");
    ck_assert_uint_eq(
        run_auto("nothing", "OMP_DYNAMIC=0", "auto: memory priority, for the run before"), 2);
    child_err_says("auto: undecided: too short a run");
    /* A priority that is set wins, and is no reason to forget. */
    ck_assert_uint_eq(run_auto("talk", "SERVET_MEM_PRIOR=1", "priority, for the run before"), 0);
    child_err_says("auto: communication intensive");
    ck_assert_uint_eq(
        run_auto("nothing", "OMP_DYNAMIC=0", "auto: communication priority, for the run before"),
        2);
}

/* The ranks have one of the node's PUs, as below taskset, in a container or a small batch job: they
 * wait for it, not for messages, and that is no verdict on the program. */
TEST(ranks_that_share_a_pu_are_not_judged)
{
    /* Open MPI gives each rank a core of its own, whatever mpirun has, unless it is not to bind. */
    const char *unbound = "OMPI_MCA_hwloc_base_binding_policy=none";
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    ck_assert_uint_eq(run_auto("talk", unbound, "auto: communication intensive"), 0);
    child_err_says("auto: undecided: more ranks than PUs");
    ck_assert_uint_eq(run_auto("nothing", unbound, "priority, for the run before"), 0);
}

/* A link, a file that others can write to, and one of another build are not read. */
TEST(a_memory_that_is_not_ours_is_not_read)
{
    static const char *const harms[] = {
        "chmod o+w *",
        "f=$(ls) && chmod o-w $f && mv $f ../x && ln -s ../x $f",
        "f=$(ls) && sed 's/^file ./&0/' ../x >y && mv y $f",
    };
    ck_assert_uint_eq(run_auto("talk", "OMP_DYNAMIC=0", "auto: communication intensive"), 1);
    ck_assert_uint_eq(run_auto("nothing", "OMP_DYNAMIC=0", "auto: communication priority"), 2);
    ck_assert_int_eq(chdir(scratch_path("cache/servet/auto")), 0);
    for (size_t i = 0; i < sizeof harms / sizeof *harms; i++) {
        ck_assert_int_eq(system(harms[i]), 0);
        ck_assert_uint_eq(run_auto("nothing", "OMP_DYNAMIC=0", "auto: communication priority"), 0);
    }
    /* And as it was, it counts. */
    ck_assert_int_eq(system("mv ../x $(ls)"), 0);
    ck_assert_uint_eq(run_auto("nothing", "OMP_DYNAMIC=0", "auto: communication priority"), 2);
}

/* ranks that wait busily, more of them than PUs, on a machine with other work */
TESTS(.seconds = 300, .setup = setup)

int main(int argc, char **argv)
{
    if (argc < 3) {
        return 99;
    }
    if (!has_loopback()) {
        return 77;
    }
    launcher = argv[1];
    prefix = argv[2];
    return run_registered();
}
