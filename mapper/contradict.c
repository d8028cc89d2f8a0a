#include "contradict.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "nest.h"

static void name_family(const struct profile_class *of, size_t family, char *name, size_t size)
{
    size_t levels = of->cache_count + of->memory.level_count;
    if (family < of->cache_count) {
        snprintf(name, size, "L%u cache", of->caches[family].level);
    } else if (family < levels) {
        snprintf(name, size, "memory level %zu", family - of->cache_count + 1);
    } else {
        snprintf(name, size, "communication layer %zu", family - levels + 1);
    }
}

/* Appends "L3 cache 0-1"; positions become OS indices again (a network has node numbers already). */
static int append_group(const struct map_family *families, const struct profile_class *of, size_t family,
                        uint32_t group, char *text, size_t size)
{
    char name[64] = "network layer";
    const struct map_groups *groups = &families[family].groups;
    uint32_t count = groups->start[group + 1] - groups->start[group];
    const uint32_t *members = groups->members + groups->start[group];
    struct profile_set set;
    if (profile_set_from_array(members, count, &set) < 0) {
        return -ENOMEM;
    }
    if (of) {
        name_family(of, family, name, sizeof name);
        for (size_t i = 0; i < set.count; i++) {
            set.ids[i] = of->pus.ids[set.ids[i]];
        }
    }
    size_t used = strlen(text);
    int n = snprintf(text + used, size - used, "%s%s ", used ? " and " : "", name);
    used += n > 0 && (size_t)n < size - used ? (size_t)n : 0;
    profile_set_format(&set, text + used, size - used);
    profile_set_free(&set);
    return 0;
}

static int look_at(struct map_arena *arena, const struct map_family *families, size_t count, uint32_t items,
                   const struct profile_class *of, char *text, size_t size)
{
    struct map_nest nest;
    struct map_crossing crossing = {.first_group = MAP_NONE};
    int rc = map_nest_make(arena, families, count, items, &nest, &crossing);
    if (rc != -ENOTSUP || crossing.first_group == MAP_NONE) {
        return rc == -ENOTSUP ? 0 : rc; /* pairs contradict nothing */
    }
    rc = append_group(families, of, crossing.first, crossing.first_group, text, size);
    rc = rc < 0 ? rc : append_group(families, of, crossing.second, crossing.second_group, text, size);
    return rc < 0 ? rc : 1;
}

int map_contradiction(const struct servet_profile *profile, char *text, size_t size, struct servet_error *error)
{
    struct map_view view;
    int rc = map_view_make(profile, MAP_MEMORY, 1, &view, error);
    text[0] = '\0';
    if (rc < 0) {
        return rc;
    }
    for (size_t c = 0; rc == 0 && c < view.class_count; c++) {
        const struct map_class *class = &view.classes[c];
        rc = look_at(&view.arena, class->families, class->family_count, (uint32_t) class->of->pus.count, class->of,
                     text, size);
    }
    if (rc == 0) {
        rc = look_at(&view.arena, view.network, view.network_count, view.node_count, NULL, text, size);
    }
    map_view_free(&view);
    return rc < 0 ? profile_error(error, rc, "out of memory") : rc;
}
