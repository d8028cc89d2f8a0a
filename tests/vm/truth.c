/* The truth that a test in the guest checks the shim against. */
#include "tests/vm/truth.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/base/scratch.h"

#define CPU_FOLDER "/sys/devices/system/cpu/cpu%u/"

/* The first number in a file. */
static uint32_t read_number(const char *format, uint32_t cpu)
{
    unsigned number;
    const char *path = formatted(format, cpu); /* NOLINT: the formats are those below */
    FILE *file = fopen(path, "r");
    ck_assert_msg(file && fscanf(file, "%u", &number) == 1, "cannot read %s", path);
    fclose(file);
    return number;
}

static uint32_t read_node(uint32_t cpu)
{
    unsigned node = 0;
    bool found = false;
    const char *path = formatted(CPU_FOLDER, cpu);
    DIR *folder = opendir(path);
    ck_assert_msg(folder, "cannot read %s", path);
    for (struct dirent *entry; !found && (entry = readdir(folder));) {
        found = sscanf(entry->d_name, "node%u", &node) == 1;
    }
    closedir(folder);
    ck_assert_msg(found, "CPU %u is in no NUMA node", cpu);
    return node;
}

struct truth_place truth_place_of(uint32_t cpu)
{
    return (struct truth_place){
        .core = read_number(CPU_FOLDER "topology/core_cpus_list", cpu),
        .package = read_number(CPU_FOLDER "topology/physical_package_id", cpu),
        .node = read_node(cpu),
    };
}

void truth_ask_map(struct truth_map *out, const char *const *arguments)
{
    static struct run asked; /* not the one whose answer is compared with the map */
    const char *argv[16] = {SERVET_MAP};
    for (size_t i = 0; arguments[i]; i++) {
        argv[i + 1] = arguments[i];
    }
    child_run(&asked, NULL, argv);
    ck_assert_msg(asked.status == 0, "%s", asked.err);
    out->count = 0;
    for (char *text = asked.out, *end; *text; text = *end ? end + 1 : end) {
        ck_assert_uint_lt(out->count, TRUTH_WORKERS);
        out->pus[out->count++] = (uint32_t)strtoul(text, &end, 10);
        ck_assert_msg(end > text && (*end == ',' || *end == '\n' || !*end), "servet-map says %s",
                      asked.out);
    }
}

void truth_expect(const struct run *of, const struct truth_map *map, size_t ranks, size_t threads)
{
    ck_assert_msg(of->status == 0, "exit status %d: %s%s", of->status, of->out, of->err);
    ck_assert_uint_eq(map->count, ranks * threads);
    ck_assert_uint_eq(child_lines(of->out, "worker "), map->count);
    for (size_t i = 0; i < map->count; i++) {
        child_expect(of, (int)(i / threads), (int)(i % threads), map->pus[i]);
    }
}

static size_t different(const uint32_t *pus, size_t count, bool cores)
{
    uint32_t seen[TRUTH_WORKERS];
    size_t found = 0;
    ck_assert_uint_le(count, TRUTH_WORKERS);
    for (size_t i = 0, k; i < count; i++) {
        struct truth_place place = truth_place_of(pus[i]);
        uint32_t one = cores ? place.core : place.node;
        for (k = 0; k < found && seen[k] != one; k++) {
            continue;
        }
        if (k == found) {
            seen[found++] = one;
        }
    }
    return found;
}

size_t truth_cores(const uint32_t *pus, size_t count)
{
    return different(pus, count, true);
}

size_t truth_nodes(const uint32_t *pus, size_t count)
{
    return different(pus, count, false);
}

void truth_write(const char *path, const char *word)
{
    FILE *file = fopen(path, "w");
    ck_assert_msg(file && fputs(word, file) >= 0 && fclose(file) == 0, "cannot write %s to %s",
                  word, path);
}
