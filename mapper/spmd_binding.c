#include "spmd_binding.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "print.h"

void spmd_bind(const struct servet_profile *profile, const struct spmd_grid *grid, struct spmd_binding *out)
{
    struct map_plan plan;
    size_t size = 0;
    *out = (struct spmd_binding){.rankfile = ""};
    if (map_plan_make(profile, grid->pus, grid->n * grid->m, NULL, &plan) < 0) {
        cli_fail("out of memory");
    }
    bool one_node = map_plan_one_node(&plan, 0, plan.place_count);
    FILE *text = open_memstream(&out->list, &size);
    if (!text || (one_node ? print_list(text, &plan, 0, plan.place_count)
                           : print_rankfile(text, &plan, 0, plan.place_count)) < 0) {
        cli_fail("out of memory");
    }
    fclose(text);
    map_plan_free(&plan);
    if (one_node) {
        out->list[strcspn(out->list, "\n")] = '\0';
        memcpy(out->arguments, (const char *[]){"--bind-to", "cpu-list:ordered", "--cpu-list", out->list, NULL},
               5 * sizeof *out->arguments);
        return;
    }
    strcpy(out->rankfile, "/tmp/servet-ranks-XXXXXX");
    int fd = mkstemp(out->rankfile);
    if (fd < 0 || dprintf(fd, "%s", out->list) < 0 || close(fd) < 0) {
        cli_fail("%s: %s", out->rankfile, strerror(errno));
    }
    memcpy(out->arguments,
           (const char *[]){"--mca", "rmaps_rank_file_physical", "1", "--rankfile", out->rankfile, NULL},
           6 * sizeof *out->arguments);
}

void spmd_unbind(struct spmd_binding *binding)
{
    if (binding->rankfile[0]) {
        unlink(binding->rankfile);
    }
    free(binding->list);
    *binding = (struct spmd_binding){.rankfile = ""};
}
