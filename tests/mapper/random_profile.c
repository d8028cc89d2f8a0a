/* Small machines as no vendor would build them: any nesting or none, gaps in the numbers, SMT,
 * kinds, pairs. */
#include "tests/mapper/random_profile.h"

#include <check.h>
#include <stdlib.h>

#define MOST_PUS 9
#define MOST_OS_INDEX 14

void random_order(struct random *random, uint32_t *numbers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        numbers[i] = i;
    }
    random_shuffle(random, numbers, count, sizeof *numbers);
}

static void *zeroed(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    ck_assert(memory != NULL);
    return memory;
}

/* One class being made: relations cut its shuffled PUs into runs. In a nested class there are
 * LEVELS ways to cut, each of which cuts only where the one before it did. */
#define LEVELS 4
struct making {
    struct random *random;
    bool nested;
    uint32_t ids[MOST_OS_INDEX];
    size_t count;
    bool cut[LEVELS][MOST_OS_INDEX + 1];
};

static void make_levels(struct making *m)
{
    for (size_t level = 0; level < LEVELS; level++) {
        for (size_t i = 0; i < m->count; i++) {
            m->cut[level][i] = (!level || m->cut[level - 1][i]) && random_number(m->random, 3) < 2;
        }
        m->cut[level][m->count] = true;
    }
}

static void add_group(struct profile_relation *relation, const uint32_t *ids, size_t count)
{
    if (count >= 2) {
        ck_assert_int_eq(
            profile_set_from_array(ids, count, &relation->groups[relation->group_count++]), 0);
    }
}

static void add_pairs(struct making *m, struct profile_relation *relation)
{
    size_t pairs = random_number(m->random, 3);
    relation->pairs = zeroed(pairs, sizeof *relation->pairs);
    for (size_t p = 0; p < pairs && m->count > 1; p++) {
        uint32_t a = m->ids[random_number(m->random, (uint32_t)m->count)];
        uint32_t b = m->ids[random_number(m->random, (uint32_t)m->count)];
        if (a != b) {
            relation->pairs[relation->pair_count++] =
                (struct profile_pair){a < b ? a : b, a < b ? b : a};
        }
    }
}

static struct profile_relation cut_relation(struct making *m)
{
    struct profile_relation relation = {.groups = zeroed(m->count, sizeof *relation.groups)};
    if (!m->nested && random_number(m->random, 2)) {
        random_shuffle(m->random, m->ids, m->count, sizeof *m->ids);
    }
    bool leave_some_out = random_number(m->random, 4) == 0;
    size_t first = 0, level = random_number(m->random, LEVELS);
    for (size_t i = 1; i <= m->count; i++) {
        bool cut = m->nested || i == m->count ? m->cut[level][i] : random_number(m->random, 3) < 2;
        if (cut) {
            if (!leave_some_out || random_number(m->random, 2)) {
                add_group(&relation, m->ids + first, i - first);
            }
            first = i;
        }
    }
    if (!m->nested && random_number(m->random, 3) == 0) {
        add_pairs(m, &relation);
    }
    return relation;
}

static struct profile_communication random_layers(struct making *m, size_t most)
{
    struct profile_communication c = {.layer_count = random_number(m->random, (uint32_t)most + 1)};
    c.layers = zeroed(c.layer_count, sizeof *c.layers);
    int64_t quanta = 1 + random_number(m->random, 100);
    for (size_t i = 0; i < c.layer_count; i++) {
        c.layers[i].seconds = (double)quanta * MAP_LATENCY_QUANTUM_SECONDS;
        c.layers[i].members = cut_relation(m);
        quanta += 1 + random_number(m->random, random_number(m->random, 4) ? 4 : 1000000);
    }
    return c;
}

/* Groups that lie across all others. */
static struct profile_set *cut_across(const struct making *m, size_t *count)
{
    struct making cutting = *m;
    cutting.nested = false;
    struct profile_relation relation = cut_relation(&cutting);
    free(relation.pairs);
    *count = relation.group_count;
    return relation.groups;
}

static void random_kinds(struct making *m, struct profile_class *of)
{
    if (random_number(m->random, 3)) {
        return;
    }
    struct profile_set *groups = cut_across(m, &of->kind_count);
    of->kinds = zeroed(of->kind_count, sizeof *of->kinds);
    for (size_t k = 0; k < of->kind_count; k++) {
        of->kinds[k] = (struct profile_kind){random_number(m->random, 3), groups[k]};
    }
    free(groups);
}

static void random_bandwidths(struct making *m, struct profile_memory *memory)
{
    memory->reference_bytes_per_s = 1e9;
    for (size_t l = 0; l < memory->level_count; l++) {
        struct profile_memory_level *level = &memory->levels[l];
        level->scaling_count = random_number(m->random, 3);
        level->scaling = zeroed(level->scaling_count, sizeof *level->scaling);
        for (size_t i = 0; i < level->scaling_count; i++) {
            uint32_t workers = (uint32_t)(2 * i) + 2;
            level->scaling[i].workers = workers;
            level->scaling[i].bytes_per_s =
                (0.8 + 0.1 * random_number(m->random, 3)) * 1e9 * workers;
        }
    }
}

/* Memory of some nodes is 0, and some PUs are local to none. */
static void random_numa(struct making *m, struct profile_class *of)
{
    if (random_number(m->random, 2)) {
        return;
    }
    struct profile_set *groups = cut_across(m, &of->numa_count);
    of->numa = zeroed(of->numa_count, sizeof *of->numa);
    for (size_t n = 0; n < of->numa_count; n++) {
        of->numa[n] = (struct profile_numa){
            .os_index = (uint32_t)n, .pus = groups[n], .memory_bytes = random_number(m->random, 3)};
    }
    free(groups);
}

static void random_class(struct random *random, bool nested, struct profile_class *of)
{
    struct making m = {
        .random = random, .nested = nested, .count = 1 + random_number(random, MOST_PUS)};
    random_order(random, m.ids, MOST_OS_INDEX);
    ck_assert_int_eq(profile_set_from_array(m.ids, m.count, &of->pus), 0);
    make_levels(&m);
    if (random_number(random, 2)) {
        struct making smt = m;
        smt.nested = true;
        of->cores = cut_relation(&smt);
        of->packages = cut_relation(&smt);
    }
    of->cache_count = random_number(random, 4);
    of->caches = zeroed(of->cache_count, sizeof *of->caches);
    for (size_t i = 0; i < of->cache_count; i++) {
        of->caches[i].sharing = cut_relation(&m);
        of->caches[i].level = 1 + (uint32_t)(i / 2); /* the last level may be there twice */
        of->caches[i].size_bytes = random_number(random, 3);
        if (random_number(random, 4) == 0) {
            ck_assert_int_eq(profile_set_from_array(m.ids, 1 + m.count / 2, &of->caches[i].pus), 0);
        }
    }
    of->memory.level_count = random_number(random, 3);
    of->memory.levels = zeroed(of->memory.level_count, sizeof *of->memory.levels);
    for (size_t i = 0; i < of->memory.level_count; i++) {
        of->memory.levels[i].collisions = cut_relation(&m);
    }
    if (random_number(random, 2)) {
        random_bandwidths(&m, &of->memory);
    }
    of->communication = random_layers(&m, 3);
    random_kinds(&m, of);
    random_numa(&m, of);
}

struct servet_profile *random_profile(struct random *random, bool nested)
{
    struct servet_profile *profile = zeroed(1, sizeof *profile);
    profile->class_count = 1 + random_number(random, 2);
    profile->classes = zeroed(profile->class_count, sizeof *profile->classes);
    for (size_t c = 0; c < profile->class_count; c++) {
        random_class(random, nested, &profile->classes[c]);
    }
    profile->node_range_count = 1 + random_number(random, 2);
    profile->nodes = zeroed(profile->node_range_count, sizeof *profile->nodes);
    struct making over = {.random = random, .nested = nested};
    for (size_t r = 0; r < profile->node_range_count; r++) {
        profile->nodes[r].class_index = random_number(random, (uint32_t)profile->class_count);
        profile->nodes[r].count = 1 + random_number(random, 3);
        over.count += profile->nodes[r].count;
    }
    for (uint32_t n = 0; n < over.count; n++) {
        over.ids[n] = n;
    }
    make_levels(&over);
    profile->network = random_layers(&over, over.count > 1 ? 2 : 0);
    return profile;
}

struct profile_set random_pus(struct random *random, const struct servet_profile *profile,
                              size_t fewest)
{
    uint32_t ids[256];
    size_t count = 0, all = 0;
    for (uint32_t n = 0; n < profile_node_count(profile); n++) {
        all += profile_node_class(profile, n)->pus.count;
    }
    while (count < fewest || (random_number(random, 4) && count < all)) {
        uint32_t node = random_number(random, profile_node_count(profile));
        const struct profile_class *of = profile_node_class(profile, node);
        ids[count++] = profile_node_first_pu(profile, node) +
                       of->pus.ids[random_number(random, (uint32_t)of->pus.count)];
    }
    if (count && random_number(random, 8) == 0) {
        ids[count++] = 100000;
    }
    struct profile_set set;
    ck_assert_int_eq(profile_set_from_array(ids, count, &set), 0);
    return set;
}
