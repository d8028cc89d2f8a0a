/* Are the threads of a numeric library's own pool workers with a PU each, and does nothing collapse
 * to one thread for it: numpy with OpenBLAS in a Python program, with an OpenMP runtime that is
 * loaded after it? */
#include "tests/base/runner.h"
#include "tests/preload/child.h"
#include "tests/preload/here.h"

#define PYTHON "/usr/bin/python3"

/* Prints after the import, and after a product that is big enough for the pool:
 *     WHEN MAIN LAST        what the main and the last thread may use (ThreadSanitizer has one
 *                           between)
 *     WHEN same|narrowed    os.sched_getaffinity() as it was at the start or not
 */
#define BEGINNING                                                                                  \
    "import ctypes, os, sys\n"                                                                     \
    "before = os.sched_getaffinity(0)\n"                                                           \
    "import numpy\n"                                                                               \
    "path = [l.split()[-1] for l in open('/proc/self/maps') if 'libopenblas' in l]\n"              \
    "blas = ctypes.CDLL(path[0])\n"                                                                \
    "def allowed(tid):\n"                                                                          \
    "    for line in open('/proc/self/task/%d/status' % tid):\n"                                   \
    "        if line.startswith('Cpus_allowed_list'): return line.split()[1]\n"                    \
    "def show(when):\n"                                                                            \
    "    others = sorted(set(map(int, os.listdir('/proc/self/task'))) - {os.getpid()})\n"          \
    "    print(when, allowed(os.getpid()), allowed((others or [os.getpid()])[-1]))\n"              \
    "    print(when, 'same' if os.sched_getaffinity(0) == before else 'narrowed')\n"

#define PRODUCT                                                                                    \
    "show('import')\n"                                                                             \
    "a = numpy.arange(360000.).reshape(600, 600) % 7\n"                                            \
    "print('sum', int((a @ a).sum()))\n"                                                           \
    "show('product')\n"                                                                            \
    "print('threads', blas.openblas_get_num_threads())\n"

/* The library's pool is made; a parallel region comes from an object that is loaded after that. */
#define LATE_RUNTIME                                                                               \
    "team = ctypes.CDLL(sys.argv[1])\n"                                                            \
    "print('most', ctypes.CDLL('libgomp.so.1').omp_get_max_threads())\n"                           \
    "sys.stdout.flush()\n"                                                                         \
    "team.run_team(3)\n"                                                                           \
    "show('team')\n"

static void run_python(const char *change, const char *script, const char *argument)
{
    run_preloaded(CHANGES(change ? change : "OPENBLAS_NUM_THREADS="),
                  ARGV("taskset", "-c", order_pair, PYTHON, "-c", script, argument), NULL);
}

TEST(threads_of_openblas_have_a_pu_each, .starts_programs = true)
{
    run_python("SERVET_REPORT=stderr", BEGINNING PRODUCT, NULL);
    child_says(&child, "import %s %u\n", order_pus, order[1]);
    child_says(&child, "product %s %u\n", order_pus, order[1]);
    child_err_says(" worker PU ");
}

TEST(python_and_openblas_go_on_counting_every_pu, .starts_programs = true)
{
    run_python(NULL, BEGINNING PRODUCT, NULL);
    child_says(&child, "import same\n");
    child_says(&child, "product same\n");
    child_says(&child, "threads 2\n");
    run_python("OPENBLAS_NUM_THREADS=2", BEGINNING PRODUCT, NULL);
    child_says(&child, "threads 2\n");
    child_says(&child, "product %s %u\n", order_pus, order[1]);
    run_python("OPENBLAS_NUM_THREADS=1", BEGINNING PRODUCT, NULL);
    child_says(&child, "threads 1\n");
}

/* The library asks how many PUs there are when the main thread has one already. */
TEST(openblas_after_the_first_thread_has_its_whole_pool, .starts_programs = true)
{
    run_python(NULL,
               "import threading\n"
               "t = threading.Thread(target=int); t.start(); t.join()\n" BEGINNING PRODUCT,
               NULL);
    child_says(&child, "threads 2\n");
    child_says(&child, "product %s %u\n", order_pus, order[1]);
}

TEST(the_result_is_the_same, .starts_programs = true)
{
    run_python(NULL, BEGINNING PRODUCT, NULL);
    child_run(&plain, NULL, ARGV("taskset", "-c", order_pair, PYTHON, "-c", BEGINNING PRODUCT));
    const char *with = strstr(child.out, "sum "), *without = strstr(plain.out, "sum ");
    ck_assert_msg(with && without, "%s%s", child.out, plain.out);
    ck_assert_int_eq(strncmp(with, without, strcspn(without, "\n") + 1), 0);
    ck_assert_str_eq(child.err, plain.err);
}

/* The pool's thread gives its PU to the team's worker, and the runtime counts two. */
TEST(an_openmp_runtime_after_it_has_its_whole_team, .starts_programs = true,
     .file = PROGRAMS "/libteam_gcc.so")
{
    run_python(NULL, BEGINNING LATE_RUNTIME, PROGRAMS "/libteam_gcc.so");
    child_says(&child, "most 2\n");
    child_says(&child, "count 3 2\n");
    child_expect(&child, 3, 0, order[0]);
    child_expect(&child, 3, 1, order[1]);
    child_says(&child, "team same\n");
}

static void begin(void)
{
    here_need_two_pus();
    if (system("exec " PYTHON " -c 'import numpy, sys; sys.exit(\"libopenblas\" not in "
               "open(\"/proc/self/maps\").read())' 2>/dev/null") != 0) {
        printf("skipped: no numpy with OpenBLAS (packages python3-numpy, libopenblas0-pthread)\n");
        exit(77);
    }
}

TESTS(.begin = begin)
