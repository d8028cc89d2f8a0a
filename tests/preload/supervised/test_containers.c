/* Do programs of the node and of containers, each with a copy of the shim of its own, keep apart
 * while there are free PUs, at one moment and one after the other? On pretended machines, where a
 * supervisor knows each thread's mask. Only the namespaces of processes are the node's: the
 * supervisor goes by their numbers. All have a namespace of time that is no other program's. */
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "tests/base/runner.h"
#include "tests/preload/machine.h"
#include "tests/preload/supervised/supervisor.h"

#define MOST_CONTAINERS 4
#define MOST_THREADS 40
#define STARTS 3
/* Starts of 100. */
#define MAY_SHARE 5

struct container {
    int begin[2], in[2], out[2];
};

static struct start {
    const struct machine *machine;
    unsigned containers, team;
    struct container container[MOST_CONTAINERS];
} here;

/* -- in a container -- */

static void need_0(int rc)
{
    if (rc != 0) {
        _exit(77);
    }
}

/* A copy of the shim, on a file system that no other container has. */
static void enter_container(void)
{
    need_0(unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET));
    need_0(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
    need_0(mount("none", "/dev/shm", "tmpfs", 0, NULL));
    need_0(system("cp " SERVET_SHIM " /dev/shm/shim.so"));
}

/* A team, or of one thread a rank by itself. */
static void set_environment(unsigned number)
{
    char text[16];
    snprintf(text, sizeof text, "%u", here.team);
    setenv("OMP_NUM_THREADS", text, 1);
    setenv("SERVET_PROFILE", here.machine->path, 1);
    setenv("SERVET_WATCH", "0", 1);
    setenv("SERVET_FORCE", "1", 1); /* alone in that namespace */
    setenv("LD_PRELOAD", number > 0 ? "/dev/shm/shim.so" : SERVET_SHIM, 1);
    if (here.team == 1) {
        snprintf(text, sizeof text, "job-%u", number);
        setenv("PMIX_NAMESPACE", text, 1);
        setenv("OMPI_COMM_WORLD_LOCAL_RANK", "0", 1);
        setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "1", 1);
    }
}

static void be_container(unsigned number)
{
    const struct container *own = &here.container[number];
    char byte;
    dup2(own->in[0], STDIN_FILENO);
    dup2(own->out[1], STDOUT_FILENO);
    if (number > 0) {
        enter_container();
    }
    const char *threads = formatted("%u", here.team - 1);
    need_0(write(STDOUT_FILENO, "here\n", 5) != 5 || read(own->begin[0], &byte, 1) != 1);
    for (int file = 3; file < 256; file++) {
        close(file);
    }
    set_environment(number);
    execl(PROGRAMS "/stays", "stays", here.team == 1 ? "rank" : "alone", threads, "0", "0", "0",
          (char *)NULL);
    _exit(127);
}

static void be_machine(void *unused)
{
    (void)unused;
    need_0(unshare(CLONE_NEWTIME));
    for (unsigned i = 0; i < here.containers; i++) {
        if (fork() == 0) {
            be_container(i);
        }
        close(here.container[i].out[1]);
    }
    for (;;) {
        pause();
    }
}

/* -- what is there -- */

static void read_until(const struct container *from, const char *word, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    while (!strstr(text, word) || text[used - 1] != '\n') {
        const ssize_t got = read(from->out[0], text + used, size - 1 - used);
        if (got <= 0) {
            printf("no container here: %s\n", text);
            exit(77);
        }
        used += (size_t)got;
        text[used] = '\0';
    }
}

/* Marks its PUs; how many of them another container has. Its threads that work are bound. */
static unsigned mark_pus(const struct container *container, uint64_t *used)
{
    char text[4096];
    struct supervised all[MOST_THREADS];
    unsigned shared = 0, workers = 0;
    read_until(container, "ready ", text, sizeof text);
    const uint32_t count = supervisor_threads(atoi(strstr(text, "ready ") + 6), all, MOST_THREADS);
    for (uint32_t i = 0; i < count; i++) {
        if ((all[i].mask & (all[i].mask - 1)) == 0) {
            shared += (*used & all[i].mask) != 0;
            *used |= all[i].mask;
            workers++;
        }
    }
    ck_assert_uint_eq(workers, here.team);
    return shared;
}

static void begin(unsigned number)
{
    ck_assert_int_eq(write(here.container[number].begin[1], ".", 1), 1);
}

/* `here` says which; all begin `at_once`, or each where the one before is at work. How many PUs are
 * shared? */
static unsigned shared_pus(unsigned seed, bool at_once)
{
    char text[64];
    uint64_t used = 0;
    unsigned shared = 0;
    for (unsigned i = 0; i < here.containers; i++) {
        struct container *container = &here.container[i];
        ck_assert(pipe(container->begin) == 0 && pipe(container->in) == 0 &&
                  pipe(container->out) == 0);
    }
    supervisor_begin((uint32_t)here.machine->profile->classes[0].pus.count, seed, be_machine, NULL);
    for (unsigned i = 0; i < here.containers; i++) {
        close(here.container[i].out[1]);
        read_until(&here.container[i], "here", text, sizeof text);
    }
    for (unsigned i = 0; at_once && i < here.containers; i++) {
        begin(i);
    }
    for (unsigned i = 0; i < here.containers; i++) {
        if (!at_once) {
            begin(i);
        }
        shared += mark_pus(&here.container[i], &used);
    }
    supervisor_end();
    for (unsigned i = 0; i < here.containers; i++) {
        const struct container *container = &here.container[i];
        const int open[] = {container->begin[0], container->begin[1], container->in[0],
                            container->in[1], container->out[0]};
        for (size_t k = 0; k < sizeof open / sizeof *open; k++) {
            close(open[k]);
        }
    }
    return shared;
}

/* Seen red: with locks on their own copies. */
TEST(containers_keep_apart_whenever_they_start, .loops = 3)
{
    static const char *const sources[] = {"package:1 core:16 pu:1", "package:2 core:8 pu:2",
                                          "package:2 core:16 pu:2"};
    unsigned starts = 0, with_shared = 0;
    struct machine machine;
    open_machine(sources[_i], &machine);
    const unsigned pus = (unsigned)machine.profile->classes[0].pus.count;
    const unsigned teams[] = {1, 2, pus / 4, pus / 2};
    for (unsigned k = 0; k < 8 * STARTS; k++) {
        here = (struct start){
            .machine = &machine, .containers = k % 2 ? 4 : 2, .team = teams[k / 2 % 4]};
        if (here.containers * here.team <= pus) {
            starts++;
            with_shared += shared_pus(k, k / 8 != 1) > 0;
        }
    }
    close_machine(&machine);
    printf("%u of %u starts with a shared PU\n", with_shared, starts);
    ck_assert_uint_le(with_shared * 100, starts * MAY_SHARE);
}

/* Once, before the first test: one that finds out by itself cannot be skipped. */
static void need_containers(void)
{
    int status = 0;
    const pid_t inside = fork();
    if (inside == 0) {
        need_0(unshare(CLONE_NEWTIME));
        enter_container();
        _exit(0);
    }
    if (inside < 0 || waitpid(inside, &status, 0) != inside || status != 0) {
        fprintf(stderr, "skipped: no namespaces for containers\n");
        exit(77);
    }
}

TESTS(.begin = need_containers)
