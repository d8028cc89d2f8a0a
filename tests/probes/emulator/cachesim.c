/* A plugin of QEMU's user mode emulation: every memory access of the program goes through a cache
 * hierarchy that is configured, and moves a virtual clock on by the latency of the level that hits.
 *
 *   qemu-x86_64 -plugin
 *   ./libcachesim.so,clock=FILE,level=32K:8:1.2,level=256K:8:4,memory=90,line=64 \
 *               -E LD_PRELOAD=./libvirtual_clock.so -E VIRTUAL_CLOCK=FILE PROGRAM …
 *
 * Levels: size, ways, ns of a hit; least recently used, filled on every miss, indexed by virtual
 * address, one set of caches for each thread. FILE is shared memory: picoseconds since the start.
 * The functions of the plugin interface are declared here (qemu-plugin.h, version 1), for not every
 * distribution installs that header. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint64_t plugin_id;
typedef void access_function(unsigned cpu, uint32_t info, uint64_t address, void *argument);
enum { NO_REGISTERS = 0, READ_AND_WRITE = 3 };
extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id,
                                                  void (*call)(plugin_id, struct qemu_plugin_tb *));
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block,
                                                        size_t index);
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *instruction,
                                             access_function *call, int flags, int kinds,
                                             void *argument);
EXPORT extern int qemu_plugin_version;
int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(plugin_id id, const void *info, int count, char **arguments);

enum { LEVELS = 4, CPUS = 64, CLOCK_BYTES = 4096, PS_PER_NS = 1000, START_PS = 1000000 };

struct level {
    uint64_t bytes, sets, ways, ps;
};
static struct level levels[LEVELS];
static size_t level_count;
static uint64_t line_bytes = 64, memory_ps = 90 * PS_PER_NS;
static uint64_t *clock_ps;
static uint64_t *rows[CPUS][LEVELS]; /* lines + 1, most recent first in each set */

/* Brings the line to the front of its set; whether it was there. */
static int visit(uint64_t *set, uint64_t ways, uint64_t line)
{
    uint64_t way = 0;
    if (set[0] == line) {
        return 1;
    }
    while (way < ways && set[way] != line) {
        way++;
    }
    int hit = way < ways;
    memmove(set + 1, set, (hit ? way : ways - 1) * sizeof *set);
    set[0] = line;
    return hit;
}

static void access_memory(unsigned cpu, uint32_t info, uint64_t address, void *argument)
{
    (void)info;
    (void)argument;
    uint64_t line = address / line_bytes, cost = memory_ps;
    cpu %= CPUS;
    for (size_t i = 0; i < level_count; i++) {
        if (!rows[cpu][i] &&
            !(rows[cpu][i] = calloc(levels[i].sets * levels[i].ways, sizeof(uint64_t)))) {
            abort();
        }
        if (visit(rows[cpu][i] + line % levels[i].sets * levels[i].ways, levels[i].ways,
                  line + 1)) {
            cost = levels[i].ps;
            break;
        }
    }
    __atomic_fetch_add(clock_ps, cost, __ATOMIC_RELAXED);
}

static void translated(plugin_id id, struct qemu_plugin_tb *block)
{
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(block, i), access_memory,
                                         NO_REGISTERS, READ_AND_WRITE, NULL);
    }
}

static int parse_level(const char *text)
{
    char *end;
    if (level_count == LEVELS) {
        return -1;
    }
    struct level *level = &levels[level_count++];
    level->bytes = strtoull(text, &end, 10) << (*end == 'M' ? 20 : 10);
    if ((*end != 'K' && *end != 'M') || end[1] != ':') {
        return -1;
    }
    level->ways = strtoull(end + 2, &end, 10);
    if (*end != ':' || level->ways == 0) {
        return -1;
    }
    level->ps = (uint64_t)(strtod(end + 1, &end) * PS_PER_NS);
    return *end == '\0' ? 0 : -1;
}

static int open_clock(const char *path)
{
    int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, CLOCK_BYTES) < 0) {
        return -1;
    }
    clock_ps = mmap(NULL, CLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (clock_ps == MAP_FAILED) {
        return -1;
    }
    *clock_ps = START_PS;
    return 0;
}

int qemu_plugin_install(plugin_id id, const void *info, int count, char **arguments)
{
    (void)info;
    int rc = 0;
    for (int i = 0; i < count && rc == 0; i++) {
        char *value = strchr(arguments[i], '=');
        if (!value++) {
            return -1;
        }
        if (strncmp(arguments[i], "level=", 6) == 0) {
            rc = parse_level(value);
        } else if (strncmp(arguments[i], "memory=", 7) == 0) {
            memory_ps = (uint64_t)(strtod(value, NULL) * PS_PER_NS);
        } else if (strncmp(arguments[i], "line=", 5) == 0) {
            line_bytes = strtoull(value, NULL, 10);
        } else {
            rc = strncmp(arguments[i], "clock=", 6) == 0 ? open_clock(value) : -1;
        }
    }
    if (rc < 0 || !clock_ps || line_bytes == 0) {
        return -1;
    }
    for (size_t i = 0; i < level_count; i++) {
        levels[i].sets = levels[i].bytes / levels[i].ways / line_bytes;
        if (levels[i].sets == 0) {
            return -1;
        }
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
