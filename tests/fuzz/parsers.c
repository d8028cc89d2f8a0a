/* Parsers of files and arguments that commands are given: a text is taken or refused in one line,
 * and what is taken keeps the promises of its kind. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/command/command.h"
#include "mapper/spmd/spmd.h"
#include "mapper/traffic/traffic.h"
#include "profile/model.h"
#include "profile/scope.h"
#include "tests/fuzz/fuzz.h"

/* -- a profile (servet-profile(5)), as text and as a file: what is taken is whole, and is the same
 * again when it is written and read -- */

static void expect_the_same_again(const struct servet_profile *profile)
{
    struct servet_profile *again = NULL;
    struct servet_error error = {""};
    char *text = profile_to_json(profile);
    fuzz_expect(text && profile_parse(text, strlen(text), "again", &again, &error) == 0,
                "to read what was written");
    char *second = profile_to_json(again);
    fuzz_expect(second && strcmp(text, second) == 0, "the same text again");
    free(text);
    free(second);
    profile_free(again);
}

FUZZ(profile, "{\"servet_profile\": 1}")
{
    struct servet_profile *profile = NULL;
    struct servet_error error = {""};
    int rc = profile_parse((const char *)data, size, "input", &profile, &error);
    fuzz_expect_answer(rc, &error);
    fuzz_expect((rc == 0) == (profile != NULL), "a profile, or none");
    if (rc == 0) {
        fuzz_expect(profile_check(profile, &error) == 0, "a profile that keeps its promises");
        expect_the_same_again(profile);
        profile_free(profile);
    }
    /* Another way through the reader: without what lies between nodes. */
    rc = profile_load_node(fuzz_file(data, size), &profile, &error);
    fuzz_expect_answer(rc, &error);
    if (rc == 0) {
        profile_free(profile);
    }
}

/* -- lists of PUs, and of hosts as batch systems write them -- */

/* Names of a long list that are looked up: each costs a walk through it. */
#define MOST_LOOKED_UP 4
/* PUs that are written and read again: a short text can hold millions. */
#define MOST_WRITTEN 100000

static void read_pus(const char *text)
{
    struct profile_set set = {0}, again = {0};
    int rc = profile_set_parse(text, &set);
    fuzz_expect(rc == 0 || rc == -EINVAL || rc == -ERANGE || rc == -ENOMEM, "an answer for PUs");
    if (rc < 0) {
        return;
    }
    fuzz_expect(set.count > 0 && set.ids[set.count - 1] < PROFILE_SET_LIMIT, "PUs in their range");
    if (set.count <= MOST_WRITTEN) {
        char *written = profile_set_text(&set);
        fuzz_expect(written && profile_set_parse(written, &again) == 0, "to read what was written");
        fuzz_expect(profile_set_equal(&set, &again), "the same PUs again");
        free(written);
    }
    profile_set_free(&set);
    profile_set_free(&again);
}

static void read_hosts(const char *text)
{
    uint32_t count = 0;
    char name[64];
    int rc = profile_hostlist_count(text, &count);
    fuzz_expect(rc == 0 || rc == -EINVAL || rc == -ERANGE, "an answer for hosts");
    fuzz_expect(rc < 0 || (count > 0 && count <= PROFILE_SET_LIMIT), "names, and not too many");
    for (uint32_t i = 0; rc == 0 && i < MOST_LOOKED_UP && i < count; i++) {
        uint32_t index = i % 2 ? count - 1 - i / 2 : i / 2;
        int found = profile_hostlist_name(text, index, name, sizeof name);
        fuzz_expect(found == 0 || found == -ENAMETOOLONG, "the name that was counted");
        fuzz_expect(found < 0 || profile_hostlist_find(text, name) >= 0, "to find that name");
    }
    fuzz_expect(rc < 0 || profile_hostlist_name(text, count, name, sizeof name) == -ERANGE,
                "no name behind the last");
    profile_hostlist_find(text, "node1");
}

FUZZ(lists, "0-3,8,10-11\n", "0", "7,7,3-5", "node1", "login,node[001-128,200]-ib",
     "a[1-2],b[09-11].cluster,c", "n[999999999]")
{
    FREED char *text = fuzz_text(data, size);
    read_pus(text);
    read_hosts(text);
}

/* -- the file with the nodes of a job (servet-map --nodes), and Slurm's list of them -- */

static struct servet_profile *cluster(void)
{
    static struct servet_profile *profile;
    struct servet_error error = {""};
    if (!profile) {
        fuzz_expect(profile_load(FIXTURES "/nehalem-2-nodes.json", &profile, &error) == 0,
                    "a profile of two nodes");
    }
    return profile;
}

FUZZ(nodes, "node1\nnode2\n", "# a job\nnode2 slots=4\nnode1:4\n\n", "node[1-2]\n", "node1")
{
    struct profile_set pus = {0};
    struct servet_error error = {""};
    int rc = map_job_from_file(cluster(), fuzz_file(data, size), &pus, &error);
    fuzz_expect_answer(rc, &error);
    fuzz_expect((rc == 0) == (pus.count > 0), "PUs, or none");
    profile_set_free(&pus);
    pus = (struct profile_set){0};
    FREED char *text = fuzz_text(data, size);
    setenv("SLURM_JOB_NODELIST", text, 1);
    fuzz_expect_answer(map_job_from_slurm(cluster(), &pus, &error), &error);
    unsetenv("SLURM_JOB_NODELIST");
    profile_set_free(&pus);
}

/* -- a matrix of traffic: Matrix Market, which the tracer writes too, or plain rows -- */

static void expect_symmetric(const struct map_matrix *matrix)
{
    fuzz_expect(matrix->ranks <= MAP_MATRIX_MOST_RANKS && matrix->start[0] == 0,
                "ranks in their range");
    for (uint32_t r = 0; r < matrix->ranks; r++) {
        fuzz_expect(matrix->start[r] <= matrix->start[r + 1], "rows one after the other");
        for (size_t i = matrix->start[r]; i < matrix->start[r + 1]; i++) {
            fuzz_expect(matrix->entries[i].to < matrix->ranks && matrix->entries[i].to != r,
                        "another rank of the matrix");
            fuzz_expect(matrix->entries[i].bytes > 0, "bytes");
        }
    }
}

FUZZ(
    traffic,
    "%%MatrixMarket matrix coordinate real general\n% of 4 ranks\n4 4 3\n1 2 1e6\n2 1 5\n4 3 0.5\n",
    "%%MatrixMarket matrix coordinate integer symmetric\n3 3 2\n2 1 8\n3 3 1\n",
    "0 8 0 1\n8 0 2 0\n# comment\n0 2 0 8 # of rank 2\n1,0,8,0\n", "0\n")
{
    struct map_matrix matrix = {0};
    struct servet_error error = {""};
    int rc = map_matrix_read(fuzz_file(data, size), &matrix, &error);
    fuzz_expect_answer(rc, &error);
    if (rc == 0) {
        expect_symmetric(&matrix);
        map_matrix_free(&matrix);
    }
}

/* -- a stencil as servet-spmd takes it: a name, or offsets -- */

FUZZ(stencil, "1d3", "2d5", "2d9", "1:0,-1:0,0:1,0:-1", "-2:0,3:1")
{
    struct spmd_stencil stencil;
    struct spmd_direction directions[SPMD_DIRECTIONS];
    struct servet_error error = {""};
    FREED char *text = fuzz_text(data, size);
    int rc = spmd_stencil_parse(text, &stencil, &error);
    fuzz_expect_answer(rc, &error);
    if (rc == 0) {
        size_t count = spmd_directions(&stencil, directions);
        fuzz_expect(count > 0 && count <= SPMD_DIRECTIONS, "one to eight neighbours");
    }
}
