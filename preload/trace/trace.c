/* Interposed: where a rank begins and ends, and where communicators end. */
#include "preload/trace/trace.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/node/log.h"
#include "preload/place/places.h"
#include "profile/base/clock.h"
#include "profile/base/mask.h"

#define INIT(name, parameters, arguments)                                                          \
    PIN_EXPORT int name parameters;                                                                \
    PIN_EXPORT int name parameters                                                                 \
    {                                                                                              \
        static int(*real) parameters;                                                              \
        if (!PIN_ONCE(real, pin_next(#name)))                                                      \
            return TRACE_NO_MPI;                                                                   \
        int code = real arguments;                                                                 \
        if (code == 0 && !pin_trace_inside && pin_trace_state == TRACE_UNKNOWN)                    \
            pin_trace_begin();                                                                     \
        return code;                                                                               \
    }

INIT(MPI_Init, (int *count, char ***values), (count, values))
INIT(PMPI_Init, (int *count, char ***values), (count, values))
INIT(MPI_Init_thread, (int *count, char ***values, int required, int *provided),
     (count, values, required, provided))
INIT(PMPI_Init_thread, (int *count, char ***values, int required, int *provided),
     (count, values, required, provided))

/* The tracer's beginning and end in a rank. */

int pin_trace_state = TRACE_UNKNOWN;
bool pin_trace_timing;
struct pin_options pin_trace_options;
__thread bool pin_trace_inside __attribute__((tls_model("initial-exec")));

/* The shim looks for this symbol to see that the tracer is loaded. */
extern const int servet_trace_version;
PIN_EXPORT const int servet_trace_version = 1;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct profile_mask start; /* what this process was started with: the shim pins it later */
static bool writes;               /* the file that SERVET_TRACE names */

static void set_state(enum trace_state state)
{
    __atomic_store_n(&pin_trace_state, (int)state, __ATOMIC_RELEASE);
}

__attribute__((constructor)) static void read_options(void)
{
    static bool read;
    if (read) {
        return;
    }
    read = true;
    pin_options_read(&pin_trace_options);
    if (pin_trace_options.disable ||
        (!pin_trace_options.trace && !pin_trace_options.auto_priority)) {
        set_state(TRACE_OFF);
        return;
    }
    (void)profile_mask_get(0, &start);
}

/* -- beginning -- */

static void say_failure(int code)
{
    pin_failure("SERVET_TRACE: %s: %s; no trace is written", pin_trace_options.trace,
                code == -EINVAL ? "expected the name of a file" : strerrordesc_np(-code));
}

/* Whether its folder can be written to. Where a link leads is seen at the end. */
static int check_file(const char *path)
{
    char folder[PATH_MAX];
    struct stat about;
    if (strcmp(path, "-") == 0 || (stat(path, &about) == 0 && !S_ISREG(about.st_mode))) {
        return -EINVAL;
    }
    if (lstat(path, &about) == 0 && S_ISLNK(about.st_mode)) {
        return 0;
    }
    return access(dirname(strcpy(folder, path)), W_OK | X_OK) < 0 ? -errno : 0;
}

/* Told at the start, not after hours. Only rank 0 writes. */
static void prepare_file(void)
{
    const char *path = pin_trace_options.trace;
    if (pin_trace_counts.rank != 0) {
        return;
    }
    pin_options_say_refused(&pin_trace_options);
    int code = path ? check_file(path) : 0;
    if (code < 0) {
        say_failure(code);
    }
    writes = path && code == 0;
}

static int begin_counting(void)
{
    int rank, ranks, level = TRACE_THREAD_MULTIPLE;
    if (pin_trace_mpi.comm_rank(pin_trace_mpi.comm_world, &rank) != 0 ||
        pin_trace_mpi.comm_size(pin_trace_mpi.comm_world, &ranks) != 0) {
        return -EIO;
    }
    pin_trace_mpi.query_thread(&level);
    int code = pin_trace_count_begin(rank, ranks, level >= TRACE_THREAD_MULTIPLE);
    if (code == 0 && !pin_trace_group_of(pin_trace_mpi.comm_world, false)) {
        code = -ENOMEM;
    }
    pin_trace_timing = pin_trace_options.trace_times || pin_trace_options.auto_priority;
    if (code == 0 && pin_trace_timing) {
        code = pin_trace_time_begin();
    }
    return code;
}

static void begin_locked(void)
{
    int initialized = 0;
    int (*ask)(int *) = (int (*)(int *))pin_next("PMPI_Initialized");
    read_options();
    if (pin_trace_state != TRACE_UNKNOWN || !ask || ask(&initialized) != 0 || !initialized) {
        return;
    }
    int code = pin_trace_mpi_find();
    if (code == 0) {
        code = begin_counting();
    }
    if (code < 0) {
        pin_trace_timing = false;
        set_state(TRACE_OFF);
        pin_failure("SERVET_TRACE: %s; nothing is traced",
                    code == -ENOTSUP ? "neither Open MPI nor a relative of MPICH"
                                     : strerrordesc_np(-code));
        return;
    }
    prepare_file();
    pin_trace_counts.begun_s = profile_now_s();
    set_state(TRACE_ON);
}

bool pin_trace_begin(void)
{
    int saved = errno;
    pin_trace_inside = true;
    pin_order_lock(HOLDS_TRACE, &lock);
    begin_locked();
    pin_order_unlock(HOLDS_TRACE, &lock);
    pin_trace_inside = false;
    errno = saved;
    return __atomic_load_n(&pin_trace_state, __ATOMIC_ACQUIRE) == TRACE_ON;
}

/* -- end -- */

static void conclude_trace(trace_word comm, const struct trace_sum *sum)
{
    static struct trace_verdict verdict;
    struct pin_priority_cache before;
    struct pin_launcher launcher;
    struct profile_mask first = start;
    if (!pin_trace_options.auto_priority) {
        return;
    }
    pin_launcher_read(pin_trace_options.rebind, &launcher);
    (void)pin_places_read(&launcher, true, &first);
    verdict = (struct trace_verdict){.judged = TRACE_NOT_GATHERED};
    if (sum->rank) {
        bool known = pin_priority_cache_recall(NULL, &before) == 0;
        pin_trace_verdict_judge(sum, known ? &before : NULL,
                                pin_launcher_oversubscribed(&launcher, &first), &verdict);
    }
    if (pin_trace_gather_tell(comm, &verdict, sizeof verdict) == 0) {
        pin_trace_verdict_conclude(&verdict, launcher.name ? launcher.node_rank
                                                           : (uint32_t)pin_trace_counts.rank);
    }
}

static void finish_trace(void)
{
    struct trace_sum sum = {0};
    trace_word comm;
    if (pin_trace_timing) {
        pin_trace_time_stop();
    }
    pin_trace_groups_spread();
    int met = pin_trace_gather_meet(&comm);
    int code = met < 0 ? met : pin_trace_gather(comm, &sum);
    if (met < 0 || code == -ETIMEDOUT) {
        pin_failure("SERVET_TRACE: not all ranks are traced, or some come late to MPI_Finalize; no "
                    "trace is written");
        return;
    }
    if (code == 0 && writes) {
        code = pin_trace_file_write(pin_trace_options.trace, &sum);
    }
    if (code < 0) {
        say_failure(code);
    }
    conclude_trace(comm, &sum); /* all ranks, whatever rank 0 has come to */
    pin_trace_sum_free(&sum);
    pin_trace_mpi.comm_free(&comm);
    pin_trace_report_rank();
}

/* Rank 0 gets the counts of all ranks and writes what was asked for. At MPI_Finalize, before the
 * library's. */
static void end_trace(void)
{
    int saved = errno;
    if (__atomic_load_n(&pin_trace_state, __ATOMIC_ACQUIRE) != TRACE_ON) {
        return;
    }
    pin_trace_inside = true;
    finish_trace();
    pin_trace_timing = false;
    set_state(TRACE_OFF);
    pin_trace_inside = false;
    errno = saved;
}

#define FINALIZE(name)                                                                             \
    PIN_EXPORT int name(void);                                                                     \
    PIN_EXPORT int name(void)                                                                      \
    {                                                                                              \
        static int (*real)(void);                                                                  \
        if (!PIN_ONCE(real, pin_next(#name)))                                                      \
            return TRACE_NO_MPI;                                                                   \
        if (!pin_trace_inside)                                                                     \
            end_trace();                                                                           \
        return real();                                                                             \
    }

FINALIZE(MPI_Finalize)
FINALIZE(PMPI_Finalize)
