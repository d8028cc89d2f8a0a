#include "kinds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void kinds_free(struct kinds *kinds)
{
    for (size_t i = 0; i < kinds->count; i++) {
        profile_set_free(&kinds->pus[i]);
    }
    memset(kinds, 0, sizeof *kinds);
}

size_t kinds_find(const struct kinds *kinds, uint32_t pu)
{
    size_t kind = 0;
    while (kind + 1 < kinds->count && !profile_set_has(&kinds->pus[kind], pu)) {
        kind++;
    }
    return kind;
}

/* Which declared kind; their number: none. */
static size_t declared_kind(const struct profile_class *declared, uint32_t pu)
{
    size_t kind = 0;
    while (kind < declared->kind_count && !profile_set_has(&declared->kinds[kind].pus, pu)) {
        kind++;
    }
    return kind;
}

/* All PUs of the kind that the i-th PU is of. */
static int add(const struct profile_class *declared, const struct profile_set *pus, size_t i, struct kinds *kinds)
{
    size_t kind = declared_kind(declared, pus->ids[i]), count = 0;
    uint32_t *ids = malloc(pus->count * sizeof *ids);
    int rc = ids ? 0 : -ENOMEM;
    for (size_t other = 0; rc == 0 && other < pus->count; other++) {
        if (declared_kind(declared, pus->ids[other]) == kind) {
            ids[count++] = pus->ids[other];
        }
    }
    rc = rc < 0 ? rc : profile_set_from_array(ids, count, &kinds->pus[kinds->count]);
    kinds->count += rc == 0;
    free(ids);
    return rc;
}

static bool is_known(const struct kinds *kinds, uint32_t pu)
{
    for (size_t kind = 0; kind < kinds->count; kind++) {
        if (profile_set_has(&kinds->pus[kind], pu)) {
            return true;
        }
    }
    return false;
}

int kinds_of(const struct profile_class *declared, const struct profile_set *pus, struct kinds *out)
{
    struct kinds kinds = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < pus->count && declared && declared->kind_count < KINDS_MAX; i++) {
        rc = is_known(&kinds, pus->ids[i]) ? 0 : add(declared, pus, i, &kinds);
    }
    if (rc == 0 && kinds.count == 0) {
        rc = profile_set_copy(pus, &kinds.pus[0]);
        kinds.count = rc == 0;
    }
    if (rc < 0) {
        kinds_free(&kinds);
        return rc;
    }
    *out = kinds;
    return 0;
}
