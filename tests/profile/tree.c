/* Small folders and files made for one test, and removed after it. */
#include "tests/profile/tree.h"

#include <check.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void put_file(const char *path, const char *text)
{
    char full[PATH_MAX];
    snprintf(full, sizeof full, "%s%s", scratch_folder(), path);
    for (char *slash = full + strlen(scratch_folder()) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        ck_assert(mkdir(full, 0777) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    ck_assert_msg(file != NULL, "%s: %s", full, strerror(errno));
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static void put_cache(int pu, int index, const char *const values[6])
{
    static const char *const names[] = {
        "level", "type", "size", "shared_cpu_list", "coherency_line_size", "ways_of_associativity"};
    for (int i = 0; i < 6; i++) {
        put_file(formatted("/sys/devices/system/cpu/cpu%d/cache/index%d/%s", pu, index, names[i]),
                 values[i]);
    }
}

void put_smt_machine(void)
{
    put_file("/sys/devices/system/cpu/online", "0-7\n");
    put_file("/sys/devices/system/cpu/present", "0-7\n");
    put_file("/sys/devices/system/node/online", "0-2\n");
    put_file("/sys/devices/system/node/node0/cpulist", "0-1,4-5\n");
    put_file("/sys/devices/system/node/node0/meminfo",
             "Node 0 MemTotal:    2048 kB\nNode 0 MemFree: 1 kB\n");
    put_file("/sys/devices/system/node/node1/cpulist", "2-3,6-7\n");
    put_file("/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal:    1024 kB\n");
    put_file("/sys/devices/system/node/node2/cpulist", "\n");
    put_file("/proc/sys/kernel/hostname", "smt.example\n");
    put_file("/proc/cpuinfo",
             "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 26\n"
             "model name\t: Test CPU\n\nprocessor\t: 1\nmodel name\t: Other\n");
    for (int pu = 0; pu < 8; pu++) {
        int core = pu % 4, package = core / 2;
        const char *folder = formatted("/sys/devices/system/cpu/cpu%d/topology", pu);
        const char *siblings = formatted("%d,%d\n", core, core + 4);
        const char *neighbours = package ? "2-3,6-7\n" : "0-1,4-5\n";
        put_file(formatted("%s/thread_siblings_list", folder), siblings);
        put_file(formatted("%s/core_siblings_list", folder), neighbours);
        put_cache(pu, 0, (const char *const[]){"1\n", "Data\n", "32K\n", siblings, "64\n", "8\n"});
        put_cache(pu, 1,
                  (const char *const[]){"1\n", "Instruction\n", "32K\n", siblings, "64\n", "4\n"});
        put_cache(pu, 2,
                  (const char *const[]){"2\n", "Unified\n", "256K\n", siblings, "64\n", "8\n"});
        put_cache(pu, 3,
                  (const char *const[]){"3\n", "Unified\n", "8192K\n", neighbours, "64\n", "16\n"});
    }
}
