#include <errno.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/mpi/rank.h"
#include "probes/network/inside.h"
#include "probes/network/nodes.h"
#include "probes/network/ranks.h"

/* Until every rank knows of every other one. */
static const double start_limit_s = 60;
enum { PUS_MAX = 1 << 16 };
enum tag { TAG_CONNECT = 1 };

/* Undoes the launcher's binding: the kernel leaves what the node's cpuset allows. */
static int allow_all(struct profile_set *allowed)
{
    cpu_set_t *mask = CPU_ALLOC(PUS_MAX);
    uint32_t *ids = malloc(PUS_MAX * sizeof *ids);
    size_t size = CPU_ALLOC_SIZE(PUS_MAX), count = 0;
    int rc = mask && ids ? 0 : -ENOMEM;
    if (rc == 0) {
        memset(mask, 0xff, size);
        sched_setaffinity(0, size, mask);
        CPU_ZERO_S(size, mask);
        rc = sched_getaffinity(0, size, mask) < 0 ? -errno : 0;
    }
    for (uint32_t i = 0; rc == 0 && i < PUS_MAX; i++) {
        if (CPU_ISSET_S(i, size, mask)) {
            ids[count++] = i;
        }
    }
    rc = rc < 0 ? rc : profile_set_from_array(ids, count, allowed);
    CPU_FREE(mask);
    free(ids);
    return rc;
}

/* On rank 0 and everywhere alike: they all see the same table. */
static int check_table(const struct ranks *ranks, bool per_node, struct servet_error *error)
{
    const struct rank_info *first = &ranks->info[0];
    for (int i = 0; i < ranks->size; i++) {
        const struct rank_info *info = &ranks->info[i];
        if (strncmp(info->version, first->version, sizeof info->version) != 0) {
            return profile_error(error, -EINVAL,
                                 "%s runs servet %s and %s runs servet %s: expected one version",
                                 info->host, info->version, first->host, first->version);
        }
        for (int j = 0; j < i; j++) {
            if (info->leader == i && ranks->info[j].leader == j &&
                strcmp(info->host, ranks->info[j].host) == 0) {
                return profile_error(error, -EINVAL,
                                     "two nodes are called %s: expected a name for each",
                                     info->host);
            }
        }
        int local = 0;
        for (int j = 0; j < ranks->size && info->leader == i; j++) {
            local += ranks->info[j].leader == i;
        }
        if (per_node && local > 1) {
            return profile_error(error, -EINVAL,
                                 "--per-node: expected one rank on each node, %s has %d",
                                 info->host, local);
        }
        if (!per_node && local > (int)info->allowed) {
            return profile_error(
                error, -EINVAL,
                "%s: %d ranks on %u PUs: expected one rank for each PU, or --per-node", info->host,
                local, info->allowed);
        }
    }
    return 0;
}

static const struct ranks *sorted;

static int by_node_name(const void *a, const void *b)
{
    return probe_network_compare_names(sorted->info[*(const int *)a].host,
                                       sorted->info[*(const int *)b].host);
}

static int list_nodes(struct ranks *ranks)
{
    unsigned most = (unsigned)ranks->size;
    ranks->leaders = calloc(most, sizeof *ranks->leaders);
    if (!ranks->leaders) {
        return -ENOMEM;
    }
    for (int i = 0; i < ranks->size; i++) {
        if (ranks->info[i].leader == i) {
            ranks->leaders[ranks->node_count++] = i;
        }
    }
    sorted = ranks;
    qsort(ranks->leaders, (size_t)ranks->node_count, sizeof *ranks->leaders, by_node_name);
    return 0;
}

static void introduce(const struct ranks *ranks, bool per_node, struct rank_info *mine)
{
    MPI_Comm node;
    int local_rank, leader = ranks->rank;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local_rank);
    MPI_Bcast(&leader, 1, MPI_INT, 0, node);
    MPI_Comm_free(&node);
    *mine =
        (struct rank_info){.leader = leader, .allowed = (uint32_t)ranks->allowed.count, .pu = -1};
    snprintf(mine->version, sizeof mine->version, "%s", SERVET_VERSION);
    gethostname(mine->host, sizeof mine->host - 1);
    mine->host[strcspn(mine->host, ".")] = '\0';
    if (!per_node && local_rank < (int)ranks->allowed.count) {
        uint32_t pu = ranks->allowed.ids[local_rank];
        mine->pu = probe_rank_pin(pu) == 0 ? (int32_t)pu : -1;
    }
}

/* Connections between rank 0 and the others are made here, one after the other: when both ends
 * begin to talk at the same time while they poll seldom, MPICH 4.0.2 over UCX was seen to deliver
 * nothing for half a minute. */
static void connect_ranks(const struct ranks *ranks)
{
    int nothing = 0;
    for (int i = 1; ranks->rank == 0 && i < ranks->size; i++) {
        MPI_Send(&nothing, 1, MPI_INT, i, TAG_CONNECT, MPI_COMM_WORLD);
        MPI_Recv(&nothing, 1, MPI_INT, i, TAG_CONNECT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (ranks->rank > 0) {
        MPI_Recv(&nothing, 1, MPI_INT, 0, TAG_CONNECT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&nothing, 1, MPI_INT, 0, TAG_CONNECT, MPI_COMM_WORLD);
    }
}

int probe_ranks_open(struct ranks *ranks, bool per_node, struct servet_error *error)
{
    struct rank_info mine;
    *ranks = (struct ranks){0};
    probe_network_guard(start_limit_s, "MPI did not start within %.0f s", start_limit_s);
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks->size);
    int rc = allow_all(&ranks->allowed);
    ranks->info = calloc((size_t)ranks->size, sizeof *ranks->info);
    if (rc < 0 || !ranks->info) {
        return profile_error(error, rc < 0 ? rc : -ENOMEM, "starting: %s",
                             strerror(rc < 0 ? -rc : ENOMEM));
    }
    introduce(ranks, per_node, &mine);
    MPI_Allgather(&mine, (int)sizeof mine, MPI_BYTE, ranks->info, (int)sizeof mine, MPI_BYTE,
                  MPI_COMM_WORLD);
    connect_ranks(ranks);
    probe_network_guard_off();
    rc = check_table(ranks, per_node, error);
    rc = rc < 0 ? rc : list_nodes(ranks);
    return rc;
}

bool probe_ranks_cover_node(const struct ranks *ranks, int leader)
{
    uint32_t count = 0;
    for (int i = 0; i < ranks->size; i++) {
        count += ranks->info[i].leader == leader && ranks->info[i].pu >= 0;
    }
    return count == ranks->info[leader].allowed;
}

const char *probe_ranks_library(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING + 1];
    int length;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = '\0';
    for (char *at = text; *at; at++) {
        *at = *at == '\t' ? ' ' : *at;
    }
    return text;
}
