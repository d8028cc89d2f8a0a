/* Formats that place ranks. */
#include "print.h"

#include <errno.h>
#include <stdlib.h>

static void print_joined(FILE *out, const struct map_plan *plan, size_t rank, const char *separator)
{
    for (size_t i = plan->first[rank]; i < plan->first[rank + 1]; i++) {
        fprintf(out, "%s%u", i > plan->first[rank] ? separator : "", plan->places[i].os_index);
    }
}

/* The PUs of a rank as a hexadecimal mask without leading zeros. */
static int print_mask(FILE *out, const struct map_plan *plan, size_t rank)
{
    uint32_t highest = 0;
    for (size_t i = plan->first[rank]; i < plan->first[rank + 1]; i++) {
        highest = plan->places[i].os_index > highest ? plan->places[i].os_index : highest;
    }
    size_t digits = highest / 4 + 1;
    unsigned char *nibbles = calloc(digits, 1);
    if (!nibbles) {
        return -ENOMEM;
    }
    for (size_t i = plan->first[rank]; i < plan->first[rank + 1]; i++) {
        uint32_t index = plan->places[i].os_index;
        nibbles[index / 4] = (unsigned char)(nibbles[index / 4] | 1u << index % 4);
    }
    for (size_t d = digits; d-- > 0;) {
        fprintf(out, "%x", nibbles[d]);
    }
    free(nibbles);
    return 0;
}

/* Slots are OS indices: with Open MPI 4 rmaps_rank_file_physical must be set, or they are read as logical. */
int print_rankfile(FILE *out, const struct map_plan *plan, size_t begin, size_t end)
{
    (void)begin;
    (void)end;
    for (size_t r = 0; r < plan->rank_count; r++) {
        char name[256];
        map_plan_node_name(plan, plan->places[plan->first[r]].node, name, sizeof name);
        fprintf(out, "rank %zu=%s slot=", r, name);
        print_joined(out, plan, r, ",");
        fputc('\n', out);
    }
    return 0;
}

/* Without `seq`, Open MPI takes the node of mpirun first, whatever the order, and all ranks of a node together. */
int print_host(FILE *out, const struct map_plan *plan, size_t begin, size_t end)
{
    (void)begin;
    (void)end;
    fprintf(out, "--map-by seq -host ");
    for (size_t r = 0; r < plan->rank_count; r++) {
        char name[256];
        map_plan_node_name(plan, plan->places[plan->first[r]].node, name, sizeof name);
        fprintf(out, "%s%s", r ? "," : "", name);
    }
    fputc('\n', out);
    return 0;
}

int print_hostfile(FILE *out, const struct map_plan *plan, size_t begin, size_t end)
{
    (void)begin;
    (void)end;
    for (size_t r = 0; r < plan->rank_count; r++) {
        char name[256];
        map_plan_node_name(plan, plan->places[plan->first[r]].node, name, sizeof name);
        fprintf(out, "%s\n", name);
    }
    return 0;
}

static void print_ranks(FILE *out, const struct map_plan *plan, size_t begin, size_t end, const char *separator)
{
    for (size_t r = begin; r < end; r++) {
        fputs(r > begin ? "," : "", out);
        print_joined(out, plan, r, separator);
    }
}

int print_cpu_list(FILE *out, const struct map_plan *plan, size_t begin, size_t end)
{
    fprintf(out, "--bind-to cpu-list:ordered --cpu-list ");
    print_ranks(out, plan, begin, end, ",");
    return 0;
}

int print_hydra(FILE *out, const struct map_plan *plan, size_t begin, size_t end)
{
    fprintf(out, "-bind-to user:");
    print_ranks(out, plan, begin, end, "+");
    return 0;
}

int print_impi_list(FILE *out, const struct map_plan *plan, size_t begin, size_t end)
{
    fprintf(out, "I_MPI_PIN=1 I_MPI_PIN_PROCESSOR_LIST=");
    print_ranks(out, plan, begin, end, ",");
    return 0;
}

static int print_masks(FILE *out, const struct map_plan *plan, size_t begin, size_t end, const char *prefix)
{
    int rc = 0;
    for (size_t r = begin; rc == 0 && r < end; r++) {
        fprintf(out, "%s%s", r > begin ? "," : "", prefix);
        rc = print_mask(out, plan, r);
    }
    return rc;
}

int print_impi_domain(FILE *out, const struct map_plan *plan, size_t begin, size_t end)
{
    fprintf(out, "I_MPI_PIN=1 I_MPI_PIN_DOMAIN=[");
    int rc = print_masks(out, plan, begin, end, "");
    fputc(']', out);
    return rc;
}

int print_slurm_map(FILE *out, const struct map_plan *plan, size_t begin, size_t end)
{
    fprintf(out, "--cpu-bind=map_cpu:");
    print_ranks(out, plan, begin, end, ",");
    return 0;
}

int print_slurm_mask(FILE *out, const struct map_plan *plan, size_t begin, size_t end)
{
    fprintf(out, "--cpu-bind=mask_cpu:");
    return print_masks(out, plan, begin, end, "0x");
}
