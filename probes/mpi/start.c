/* How the ranks of a job come to know each other: who is on which node, who sits where, and does
 * that fit together. All of them see the same table, so all of them find the same fault in it. */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/mpi/mpi.h"
#include "profile/base/mask.h"

/* Undoes the launcher's binding: the kernel leaves what the node's cpuset allows. */
static int allow_all(struct profile_set *allowed)
{
    struct profile_mask mask;
    profile_mask_all(&mask);
    profile_mask_set(0, &mask);
    TRY(profile_mask_get(0, &mask));
    return profile_mask_to_set(&mask, allowed);
}

/* On rank 0 and everywhere alike: they all see the same table. */
static int check_table(const struct ranks *ranks, enum rank_places places,
                       struct servet_error *error)
{
    bool per_node = places == RANKS_ONE_A_NODE;
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

/* Numbers by value: node2 before node10. */
static int by_node_name(const void *a, const void *b)
{
    return strverscmp(sorted->info[*(const int *)a].host, sorted->info[*(const int *)b].host);
}

static int list_nodes(struct ranks *ranks)
{
    unsigned most = (unsigned)ranks->size;
    ranks->leaders = calloc(most, sizeof *ranks->leaders);
    TRY(ranks->leaders ? 0 : -ENOMEM);
    for (int i = 0; i < ranks->size; i++) {
        if (ranks->info[i].leader == i) {
            ranks->leaders[ranks->node_count++] = i;
        }
    }
    sorted = ranks;
    qsort(ranks->leaders, (size_t)ranks->node_count, sizeof *ranks->leaders, by_node_name);
    return 0;
}

/* Which PU this rank is to sit on: the i-th of `pus` for rank i, or (NULL) the i-th of its node for
 * the i-th rank there. -1: none. */
static int32_t pu_of_rank(const struct ranks *ranks, const struct profile_set *pus, int local_rank)
{
    const struct profile_set *from = pus ? pus : &ranks->allowed;
    size_t at = (size_t)(pus ? ranks->rank : local_rank);
    return at < from->count && profile_mask_set_pu(0, from->ids[at]) == 0 ? (int32_t)from->ids[at]
                                                                          : -1;
}

static void introduce(const struct ranks *ranks, enum rank_places places,
                      const struct profile_set *pus, struct rank_info *mine)
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
    if (places == RANKS_ON_EACH_PU) {
        mine->pu = pu_of_rank(ranks, pus, local_rank);
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

static int meet(struct ranks *ranks, enum rank_places places, const struct profile_set *pus,
                struct servet_error *error)
{
    struct rank_info mine;
    *ranks = (struct ranks){.patient = pus != NULL};
    probe_deadline_set(MACHINE_ANSWER_S, "MPI did not start within %.0f s", MACHINE_ANSWER_S);
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks->size);
    ranks->info = calloc((size_t)ranks->size, sizeof *ranks->info);
    int rc = ranks->info ? allow_all(&ranks->allowed) : -ENOMEM;
    if (rc < 0) {
        return profile_error(error, rc, "starting: %s", strerror(-rc));
    }
    introduce(ranks, places, pus, &mine);
    MPI_Allgather(&mine, (int)sizeof mine, MPI_BYTE, ranks->info, (int)sizeof mine, MPI_BYTE,
                  MPI_COMM_WORLD);
    connect_ranks(ranks);
    probe_deadline_clear();
    return 0;
}

int probe_ranks_open(struct ranks *ranks, enum rank_places places, struct servet_error *error)
{
    TRY(meet(ranks, places, NULL, error));
    TRY(check_table(ranks, places, error));
    return list_nodes(ranks);
}

int probe_ranks_open_on(struct ranks *ranks, const struct profile_set *pus,
                        struct servet_error *error)
{
    TRY(meet(ranks, RANKS_ON_EACH_PU, pus, error));
    if (pus->count != (size_t)ranks->size) {
        return profile_error(error, -EINVAL,
                             "expected one rank per PU and the list of PUs; this program is "
                             "started by servet-probe");
    }
    for (int i = 0; i < ranks->size; i++) {
        if (ranks->info[i].pu < 0) {
            return profile_error(error, -EIO, "a rank cannot be pinned to its PU");
        }
    }
    return 0;
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
