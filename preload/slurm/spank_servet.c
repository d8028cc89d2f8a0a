/* The Slurm plugin: `srun --servet=mem|comm|off[,gpus][,nics]` loads the shim into the tasks of a
 * step.
 *
 * plugstack.conf:  optional /path/spank_servet.so [shim=/path/libservet_pin.so]
 * [pin=/path/servet-pin] [default=mem|comm|off]
 *
 * It writes the tasks' environment; which PU a thread gets is the shim's business. A binding that
 * the user asked for (--cpu-bind) stays. One that Slurm made by itself may be replaced inside the
 * step's PUs (SERVET_REBIND). Which devices a task gets, and which PUs beside them, servet-pin is
 * asked: it is started in the task's place, and what it would have handed on is taken over. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdint.h> /* slurm/spank.h needs its types */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What Slurm looks for in the object. */
#pragma GCC visibility push(default)
SPANK_PLUGIN(servet, 1)
spank_f slurm_spank_init, slurm_spank_user_init, slurm_spank_task_init;
#pragma GCC visibility pop

/* The largest NR_CPUS of any architecture. */
#define MOST_PUS 8192

enum choice { NOTHING_SAID, MEMORY, COMMUNICATION, OFF };

static enum choice asked_for, by_default;
static const char *shim = SERVET_SHIM_INSTALLED, *servet_pin = SERVET_PIN_INSTALLED;
static bool user_bound, gpus, nics;

static bool parse_choice(const char *text, enum choice *out)
{
    static const char *const words[] = {[MEMORY] = "mem", [COMMUNICATION] = "comm", [OFF] = "off"};
    for (int i = MEMORY; i <= OFF; i++) {
        if (text && strcmp(text, words[i]) == 0) {
            *out = (enum choice)i;
            return true;
        }
    }
    return false;
}

/* Devices alone are by memory. */
static bool parse_option(const char *text)
{
    char *copy = text ? strdup(text) : NULL, *rest = copy;
    bool good = copy && *copy;
    for (char *word; good && (word = strsep(&rest, ","));) {
        bool gpu = strcmp(word, "gpus") == 0, nic = strcmp(word, "nics") == 0;
        gpus |= gpu;
        nics |= nic;
        good = gpu || nic || parse_choice(word, &asked_for);
    }
    if (good && !asked_for) {
        asked_for = MEMORY;
    }
    free(copy);
    return good && !(asked_for == OFF && (gpus || nics));
}

#define EXPECTED "expected mem, comm or off, or also gpus and nics (mem,gpus)"

/* Called where the job is submitted and again on the node. A command that submits ends here, as it
 * would anyway, but not without a second line of Slurm's own, which does not say what is expected.
 * Slurm's log would not be flushed. */
static int take_option(int value, const char *text, int remote)
{
    (void)value;
    if (parse_option(text)) {
        return 0;
    }
    if (!remote) {
        fprintf(stderr, "%s: error: --servet=%s: " EXPECTED "\n", program_invocation_short_name,
                text ? text : "");
        exit(EXIT_FAILURE);
    }
    slurm_error("--servet=%s: " EXPECTED, text ? text : "");
    return -1;
}

static char
    option_name[] = "servet",
    option_argument[] = "mem|comm|off[,gpus][,nics]",
    option_usage[] =
        "place threads and ranks by the profile of the node: collide least in memory (mem), "
        "exchange messages fastest (comm), or not at all (off); tasks beside their GPUs, and "
        "told which network cards are nearest (gpus, nics)";
static struct spank_option option = {option_name, option_argument, option_usage, 1, 0, take_option};

static int take_configuration(const char *word)
{
    if (strncmp(word, "shim=/", 6) == 0) {
        shim = word + 5;
        return 0;
    }
    if (strncmp(word, "pin=/", 5) == 0) {
        servet_pin = word + 4;
        return 0;
    }
    if (strncmp(word, "default=", 8) == 0 && parse_choice(word + 8, &by_default)) {
        return 0;
    }
    slurm_error("spank_servet: '%s' in plugstack.conf: expected shim=/path, pin=/path or "
                "default=mem|comm|off",
                word);
    return -1;
}

int slurm_spank_init(spank_t spank, int ac, char **av)
{
    for (int i = 0; i < ac; i++) {
        if (take_configuration(av[i]) < 0) {
            return -1;
        }
    }
    /* In slurmd itself, and around prolog and epilog, there is no task. */
    spank_context_t context = spank_context();
    if (context != S_CTX_LOCAL && context != S_CTX_REMOTE && context != S_CTX_ALLOCATOR) {
        return 0;
    }
    return spank_option_register(spank, &option) == ESPANK_SUCCESS ? 0 : -1;
}

/* On the node, before the tasks are made: what srun sent. Later the variable holds what slurmd made
 * of it, and exists even without a request. */
int slurm_spank_user_init(spank_t spank, int ac, char **av)
{
    char value[8];
    (void)ac;
    (void)av;
    user_bound = spank_getenv(spank, "SLURM_CPU_BIND", value, sizeof value) != ESPANK_ENV_NOEXIST;
    return 0;
}

static bool has_variable(spank_t spank, const char *name)
{
    char value[8];
    spank_err_t found = spank_getenv(spank, name, value, sizeof value);
    return found == ESPANK_NOSPACE ||
           (found == ESPANK_SUCCESS && *value && strcmp(value, "0") != 0);
}

static void set_job_variable(spank_t spank, const char *name, const char *value)
{
    if (spank_setenv(spank, name, value, 1) != ESPANK_SUCCESS) {
        slurm_error("spank_servet: cannot set %s", name);
    }
}

/* The shim comes first, and once: a batch script hands its own LD_PRELOAD down to the steps it
 * starts. */
static void preload_shim(spank_t spank)
{
    enum { MOST_BYTES = 64 * 1024 };
    char *before = calloc(1, MOST_BYTES), *both = NULL;
    if (!before) {
        return;
    }
    if (spank_getenv(spank, "LD_PRELOAD", before, MOST_BYTES) != ESPANK_SUCCESS || !*before) {
        set_job_variable(spank, "LD_PRELOAD", shim);
    } else if (!strstr(before, shim) && asprintf(&both, "%s:%s", shim, before) > 0) {
        set_job_variable(spank, "LD_PRELOAD", both);
    }
    free(both);
    free(before);
}

/* -- devices -- */

/* The environment that servet-pin hands on, each variable ended by 0, then the status of the
 * process in /proc. NULL: servet-pin said why on stderr. */
static char *ask_servet_pin(char **environment, size_t *size)
{
    char *const arguments[] = {
        "servet-pin",   gpus ? "--gpus" : "--nics", nics ? "--nics" : "--gpus", "--",
        "/usr/bin/env", "--unset=LD_PRELOAD", /* it is silent */
        "/bin/cat",     "/proc/self/environ",       "/proc/self/status",        NULL};
    char *answer = NULL;
    int ends[2], status = -1;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return NULL;
    }
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execve(servet_pin, arguments, environment);
        fprintf(stderr, "spank_servet: cannot run %s: %s\n", servet_pin, strerror(errno));
        _exit(EXIT_FAILURE);
    }
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    FILE *to = open_memstream(&answer, size);
    for (int c; from && to && (c = getc(from)) != EOF;) {
        putc(c, to);
    }
    bool good = from && to && child > 0 && waitpid(child, &status, 0) == child && status == 0;
    good = (to && fclose(to) == 0) && good;
    if (from) {
        fclose(from);
    }
    if (!good) {
        free(answer);
        answer = NULL;
    }
    return answer;
}

/* The task on the PUs of "Cpus_allowed_list:\t0,8-11". */
static void take_pus(const char *status)
{
    static const char name[] = "Cpus_allowed_list:";
    const char *at = strstr(status, name);
    cpu_set_t set[MOST_PUS / CPU_SETSIZE] = {0};
    if (!at) {
        return;
    }
    at += strlen(name);
    do {
        char *end;
        unsigned long first = strtoul(at, &end, 10);
        unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
        for (unsigned long pu = first; pu <= last && pu < MOST_PUS; pu++) {
            CPU_SET_S(pu, sizeof set, set);
        }
        at = end + 1;
    } while (at[-1] == ',');
    sched_setaffinity(0, sizeof set, set);
}

static void take_devices(spank_t spank)
{
    char **environment;
    size_t size;
    if (spank_get_item(spank, S_JOB_ENV, &environment) != ESPANK_SUCCESS) {
        return;
    }
    char *answer = ask_servet_pin(environment, &size), *at = answer;
    for (char *end; answer && (end = memchr(at, 0, size - (size_t)(at - answer))); at = end + 1) {
        char *value = strchr(at, '=');
        if (value) {
            *value = '\0';
            set_job_variable(spank, at, value + 1);
        }
    }
    if (answer) {
        take_pus(at);
    }
    free(answer);
}

/* In the task, as its user, before the program. */
int slurm_spank_task_init(spank_t spank, int ac, char **av)
{
    enum choice choice = asked_for ? asked_for : by_default;
    (void)ac;
    (void)av;
    if (choice == NOTHING_SAID) {
        return 0;
    }
    if (choice == OFF) {
        if (asked_for) {
            set_job_variable(spank, "SERVET_DISABLE", "1");
        }
        return 0;
    }
    /* The administrator's default leaves a user's own variables alone. */
    if (asked_for ||
        (!has_variable(spank, "SERVET_MEM_PRIOR") && !has_variable(spank, "SERVET_COMM_PRIOR"))) {
        set_job_variable(spank, "SERVET_MEM_PRIOR", choice == MEMORY ? "1" : "0");
        set_job_variable(spank, "SERVET_COMM_PRIOR", choice == COMMUNICATION ? "1" : "0");
    }
    if (asked_for) {
        set_job_variable(spank, "SERVET_DISABLE", "0");
    }
    set_job_variable(spank, "SERVET_REBIND", user_bound ? "0" : "1");
    preload_shim(spank);
    if (gpus || nics) {
        take_devices(spank);
    }
    return 0;
}
