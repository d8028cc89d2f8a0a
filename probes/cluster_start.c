#include "cluster_ranks.h"

#include <errno.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster_guard.h"
#include "cluster_nodes.h"
#include "mpi_rank.h"

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
            return profile_error(error, -EINVAL, "%s runs servet %s and %s runs servet %s: expected one version",
                                 info->host, info->version, first->host, first->version);
        }
        for (int j = 0; j < i; j++) {
            if (info->leader == i && ranks->info[j].leader == j && strcmp(info->host, ranks->info[j].host) == 0) {
                return profile_error(error, -EINVAL, "two nodes are called %s: expected a name for each", info->host);
            }
        }
        int local = 0;
        for (int j = 0; j < ranks->size && info->leader == i; j++) {
            local += ranks->info[j].leader == i;
        }
        if (per_node && local > 1) {
            return profile_error(error, -EINVAL, "--per-node: expected one rank on each node, %s has %d", info->host,
                                 local);
        }
        if (!per_node && local > (int)info->allowed) {
            return profile_error(error, -EINVAL, "%s: %d ranks on %u PUs: expected one rank for each PU, or --per-node",
                                 info->host, local, info->allowed);
        }
    }
    return 0;
}

static const struct ranks *sorted;

static int by_node_name(const void *a, const void *b)
{
    return cluster_compare_names(sorted->info[*(const int *)a].host, sorted->info[*(const int *)b].host);
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

/* Ranks are on one node when they see the same shared memory: the device of /dev/shm on the same booted kernel. */
static uint64_t shared_memory(void)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    struct stat shm = {0};
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    for (int c; file && (c = getc(file)) != EOF;) {
        hash = (hash ^ (uint64_t)c) * 1099511628211u;
    }
    if (file) {
        fclose(file);
    }
    stat("/dev/shm", &shm);
    return (hash ^ shm.st_dev) * 1099511628211u;
}

static void introduce(const struct ranks *ranks, struct rank_info *mine)
{
    *mine = (struct rank_info){
        .memory = shared_memory(), .leader = ranks->rank, .allowed = (uint32_t)ranks->allowed.count, .pu = -1};
    snprintf(mine->version, sizeof mine->version, "%s", SERVET_VERSION);
    gethostname(mine->host, sizeof mine->host - 1);
    mine->host[strcspn(mine->host, ".")] = '\0';
}

/* Messages of the start go up and down one binomial tree under rank 0, and not through collectives: in those two ranks
 * often begin to talk to each other at the same moment. When both then open the connection, Open MPI 4.1.4 over TCP
 * and MPICH 4.0.2 over UCX were seen to deliver nothing any more between the two. */
static void gather(struct ranks *ranks)
{
    const int word = (int)sizeof *ranks->info;
    for (int step = 1; step < ranks->size; step *= 2) {
        if (ranks->rank & step) {
            int held = ranks->size - ranks->rank < step ? ranks->size - ranks->rank : step;
            MPI_Send(&ranks->info[ranks->rank], held * word, MPI_BYTE, ranks->rank - step, TAG_CONNECT, MPI_COMM_WORLD);
            return;
        }
        int from = ranks->rank + step;
        if (from < ranks->size) {
            int held = ranks->size - from < step ? ranks->size - from : step;
            MPI_Recv(&ranks->info[from], held * word, MPI_BYTE, from, TAG_CONNECT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
}

static void spread(struct ranks *ranks)
{
    const int bytes = ranks->size * (int)sizeof *ranks->info;
    int step = 1;
    while (step < ranks->size && !(ranks->rank & step)) {
        step *= 2;
    }
    if (ranks->rank > 0) {
        MPI_Recv(ranks->info, bytes, MPI_BYTE, ranks->rank - step, TAG_CONNECT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (step /= 2; step > 0; step /= 2) {
        if (ranks->rank + step < ranks->size) {
            MPI_Send(ranks->info, bytes, MPI_BYTE, ranks->rank + step, TAG_CONNECT, MPI_COMM_WORLD);
        }
    }
}

/* The lowest rank of a node leads it. */
static void name_leaders(struct ranks *ranks)
{
    for (int i = 0; i < ranks->size; i++) {
        struct rank_info *info = &ranks->info[i];
        for (int j = 0; j < i && info->leader == i; j++) {
            const struct rank_info *other = &ranks->info[j];
            if (other->memory == info->memory && strcmp(other->host, info->host) == 0) {
                info->leader = other->leader;
            }
        }
    }
}

/* The i-th rank of a node goes to the i-th PU that the node allows. */
static void pin(struct ranks *ranks)
{
    struct rank_info *mine = &ranks->info[ranks->rank];
    uint32_t before = 0;
    for (int i = 0; i < ranks->rank; i++) {
        before += ranks->info[i].leader == mine->leader;
    }
    if (before < ranks->allowed.count) {
        uint32_t pu = ranks->allowed.ids[before];
        mine->pu = rank_pin(pu) == 0 ? (int32_t)pu : -1;
    }
}

/* Connections between rank 0 and all others are made here, one after the other, for the same reason. */
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

int ranks_open(struct ranks *ranks, bool per_node, struct servet_error *error)
{
    *ranks = (struct ranks){0};
    guard(start_limit_s, "MPI did not start within %.0f s", start_limit_s);
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks->size);
    int rc = allow_all(&ranks->allowed);
    ranks->info = calloc((size_t)ranks->size, sizeof *ranks->info);
    if (rc < 0 || !ranks->info) {
        return profile_error(error, rc < 0 ? rc : -ENOMEM, "starting: %s", strerror(rc < 0 ? -rc : ENOMEM));
    }
    introduce(ranks, &ranks->info[ranks->rank]);
    gather(ranks);
    spread(ranks);
    name_leaders(ranks);
    if (!per_node) {
        pin(ranks);
        gather(ranks);
        spread(ranks);
    }
    connect_ranks(ranks);
    guard_off();
    rc = check_table(ranks, per_node, error);
    rc = rc < 0 ? rc : list_nodes(ranks);
    return rc;
}

bool ranks_cover_node(const struct ranks *ranks, int leader)
{
    uint32_t count = 0;
    for (int i = 0; i < ranks->size; i++) {
        count += ranks->info[i].leader == leader && ranks->info[i].pu >= 0;
    }
    return count == ranks->info[leader].allowed;
}

const char *ranks_library(void)
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
