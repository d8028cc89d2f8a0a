#include "containers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct making {
    struct map_arena *arena;
    const struct map_class *of;
    uint32_t items;
    struct map_groups numa;
    const struct map_groups *domains;
    uint32_t *all; /* every position: the node */
};

static int make_groups(struct making *m)
{
    const struct profile_class *of = m->of->of;
    uint32_t span = of->pus.ids[of->pus.count - 1] + 1;
    uint32_t *position_of = map_arena_get(m->arena, span, sizeof *position_of);
    struct profile_set *sets = map_arena_get(m->arena, of->numa_count, sizeof *sets);
    m->all = map_arena_get(m->arena, m->items, sizeof *m->all);
    if (!position_of || !sets || !m->all) {
        return -ENOMEM;
    }
    memset(position_of, 0xff, span * sizeof *position_of);
    for (uint32_t i = 0; i < m->items; i++) {
        position_of[of->pus.ids[i]] = i;
        m->all[i] = i;
    }
    for (size_t n = 0; n < of->numa_count; n++) {
        sets[n] = of->numa[n].pus;
    }
    struct profile_relation numa = {.groups = sets, .group_count = of->numa_count};
    return map_groups_make(m->arena, &numa, position_of, span, m->items, &m->numa);
}

static bool inside_one_group(const struct map_container *container, const struct map_groups *groups)
{
    uint32_t group = groups->group_of[container->members[0]];
    if (group == MAP_NONE) {
        return container->count == 1;
    }
    for (uint32_t i = 1; i < container->count; i++) {
        if (groups->group_of[container->members[i]] != group) {
            return false;
        }
    }
    return true;
}

static uint32_t count_straddles(const struct making *m, const struct map_container *container)
{
    uint32_t straddles = 0;
    for (size_t f = 0; f < m->of->family_count; f++) {
        const struct map_family *family = &m->of->families[f];
        bool domain = family->rule == MAP_RULE_MEMORY && family->groups.group_count;
        straddles += domain && !inside_one_group(container, &family->groups);
    }
    return straddles + (m->numa.group_count && !inside_one_group(container, &m->numa));
}

static void add(const struct making *m, struct map_containers *out, const uint32_t *members, uint32_t count)
{
    struct map_container *container = &out->list[out->count++];
    *container = (struct map_container){.members = members, .count = count};
    container->straddles = count_straddles(m, container);
    bool inside = m->domains->group_count && inside_one_group(container, m->domains);
    container->domain = inside ? m->domains->group_of[members[0]] : MAP_NONE;
}

static void add_groups(const struct making *m, struct map_containers *out, const struct map_groups *groups)
{
    for (uint32_t g = 0; g < groups->group_count; g++) {
        uint32_t count = groups->start[g + 1] - groups->start[g];
        if (count > 1) {
            add(m, out, groups->members + groups->start[g], count);
        }
    }
}

/* Levels are ordered from the worst collision, so the first one has the smallest groups. */
static int find_domains(struct making *m)
{
    for (size_t f = 0; f < m->of->family_count; f++) {
        const struct map_family *family = &m->of->families[f];
        if (family->rule == MAP_RULE_MEMORY && family->groups.group_count) {
            m->domains = &family->groups;
            return 0;
        }
    }
    struct map_groups *numa = map_arena_get(m->arena, 1, sizeof *numa);
    if (numa) {
        *numa = m->numa;
    }
    m->domains = numa;
    return numa ? 0 : -ENOMEM;
}

static int compare(const void *a, const void *b)
{
    const struct map_container *x = a, *y = b;
    if (x->straddles != y->straddles) {
        return x->straddles < y->straddles ? -1 : 1;
    }
    if (x->count != y->count) {
        return x->count < y->count ? -1 : 1;
    }
    return memcmp(x->members, y->members, x->count * sizeof *x->members);
}

static void drop_repeats(struct map_containers *out)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < out->count; i++) {
        if (kept == 0 || compare(&out->list[kept - 1], &out->list[i]) != 0) {
            out->list[kept++] = out->list[i];
        }
    }
    out->count = kept;
}

static int index_members(const struct making *m, struct map_containers *out)
{
    size_t total = 0;
    for (uint32_t c = 0; c < out->count; c++) {
        total += out->list[c].count;
    }
    out->start = map_arena_get(m->arena, (size_t)m->items + 2, sizeof *out->start);
    out->of = map_arena_get(m->arena, total, sizeof *out->of);
    if (!out->start || !out->of) {
        return -ENOMEM;
    }
    for (uint32_t c = 0; c < out->count; c++) {
        for (uint32_t i = 0; i < out->list[c].count; i++) {
            out->start[out->list[c].members[i] + 2]++;
        }
    }
    for (uint32_t i = 2; i < m->items + 2; i++) {
        out->start[i] += out->start[i - 1];
    }
    for (uint32_t c = 0; c < out->count; c++) {
        for (uint32_t i = 0; i < out->list[c].count; i++) {
            out->of[out->start[out->list[c].members[i] + 1]++] = c;
        }
    }
    return 0;
}

int map_containers_make(struct map_arena *arena, const struct map_class *of, struct map_containers *out)
{
    struct making m = {.arena = arena, .of = of, .items = (uint32_t)of->of->pus.count};
    if (make_groups(&m) < 0 || find_domains(&m) < 0) {
        return -ENOMEM;
    }
    size_t most = (size_t)of->cores.group_count + of->packages.group_count + m.numa.group_count + 1 + m.items;
    for (size_t f = 0; f < of->family_count; f++) {
        most += of->families[f].groups.group_count;
    }
    struct map_containers made = {.list = map_arena_get(arena, most, sizeof *made.list), .domains = m.domains};
    if (!made.list) {
        return -ENOMEM;
    }
    for (size_t f = 0; f < of->family_count; f++) {
        add_groups(&m, &made, &of->families[f].groups);
    }
    add_groups(&m, &made, &of->cores);
    add_groups(&m, &made, &of->packages);
    add_groups(&m, &made, &m.numa);
    add(&m, &made, m.all, m.items);
    for (uint32_t i = 0; i < m.items; i++) {
        add(&m, &made, m.all + i, 1); /* a rank of one thread fits into a PU */
    }
    qsort(made.list, made.count, sizeof *made.list, compare);
    drop_repeats(&made);
    int rc = index_members(&m, &made);
    if (rc == 0) {
        *out = made;
    }
    return rc;
}
