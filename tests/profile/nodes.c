/* Node classes of nothing but memory. */
#include "tests/profile/nodes.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/base/scratch.h"

const struct node_figures xeon_max[4] = {
    {"0-3", 256, 12, 110, 300, "DRAM"},
    {"4-7", 256, 12, 110, 300, "DRAM"},
    {"0-3", 64, 11.5, 130, 900, "HBM"},
    {"4-7", 64, 11.5, 130, 900, "HBM"},
};

const struct node_figures with_cxl[3] = {
    {"0-3", 128, 15, 95, 0, NULL},
    {"4-7", 128, 15, 98, 0, NULL},
    {"4-7", 512, 5, 260, 0, NULL},
};

const struct node_figures all_alike[4] = {
    {"0-1", 64, 14, 90, 0, NULL},
    {"2-3", 64, 11, 100, 0, NULL},
    {"4-5", 64, 14, 92, 0, NULL},
    {"6-7", 64, 14, 90, 0, NULL},
};

const struct profile_class *class_of_nodes(const struct node_figures *figures, size_t count)
{
    struct profile_class *made = kept(calloc(1, sizeof *made));
    made->numa = kept(calloc(count, sizeof *made->numa));
    made->numa_access = kept(calloc(count * count, sizeof *made->numa_access));
    made->numa_count = count;
    for (size_t i = 0; i < count; i++) {
        struct profile_numa *numa = &made->numa[i];
        numa->os_index = (uint32_t)i;
        numa->memory_bytes = figures[i].gib << 30;
        numa->declared_bytes_per_s = figures[i].declared_gb_s * 1e9;
        numa->kind = figures[i].kind ? kept(strdup(figures[i].kind)) : NULL;
        ck_assert(!*figures[i].pus || profile_set_parse(figures[i].pus, &numa->pus) == 0);
    }
    for (size_t from = 0; from < count; from++) {
        for (size_t to = 0; to < count && figures[to].worker_gb_s > 0; to++) {
            const double slower = strcmp(figures[from].pus, figures[to].pus) == 0 ? 1 : 3;
            made->numa_access[made->numa_access_count++] = (struct profile_numa_access){
                .pus = made->numa[from].pus,
                .node = (uint32_t)to,
                .bytes_per_s = figures[to].worker_gb_s * 1e9 / slower,
                .seconds_per_access = figures[to].latency_ns * 1e-9 * slower,
            };
        }
    }
    return made;
}
