/* A machine description as a `struct sim`: read by the table of its fields (fields.c); and what the
 * machine declares of itself. Descriptions are the tests' own: the program ends with a line where
 * fields contradict one another, and where there is no memory. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/cli.h"
#include "profile/topology/topology.h"
#include "tests/simulated/simulated.h"

/* Memory of a probe on a machine without a limit of its own. */
static const size_t memory_limit_bytes = (size_t)8 << 30;

static void need(bool holds, const char *path, const char *what)
{
    if (!holds) {
        cli_usage("%s: expected %s", path, what);
    }
}

static struct profile_set copy_of(const struct profile_set *set)
{
    struct profile_set copy;
    cli_done(profile_set_copy(set, &copy));
    return copy;
}

/* Its position; `count`: none has the PU. */
static size_t find_group(const struct profile_set *groups, size_t count, uint32_t pu)
{
    size_t i = 0;
    while (i < count && !profile_set_has(&groups[i], pu)) {
        i++;
    }
    return i;
}

static bool are_apart(const struct profile_set *groups, size_t count,
                      const struct profile_set *within)
{
    bool apart = true;
    for (size_t i = 0; i < count; i++) {
        apart = apart && profile_set_subset(&groups[i], within);
        for (size_t j = 0; j < i; j++) {
            apart = apart && !profile_set_overlaps(&groups[i], &groups[j]);
        }
    }
    return apart;
}

static bool power_of_two(uint64_t bytes)
{
    return (bytes & (bytes - 1)) == 0;
}

/* Completes the PUs of a resource: all of the machine if none are named. */
static void complete_holders(const struct sim *sim, struct profile_set *pus)
{
    if (pus->count == 0) {
        *pus = copy_of(&sim->pus);
    }
}

/* -- caches: who has them, and which stand in front of each PU -- */

/* A PU that is in no group has a cache of its own. */
static void number_instances(struct sim_cache *cache, const struct profile_set *pus)
{
    cache->instance_of = cli_needed(calloc(pus->count, sizeof *cache->instance_of));
    cache->instances = (uint32_t)cache->group_count;
    for (size_t i = 0; i < pus->count; i++) {
        const size_t group = find_group(cache->groups, cache->group_count, pus->ids[i]);
        cache->instance_of[i] = group < cache->group_count                  ? (uint32_t)group
                                : profile_set_has(&cache->pus, pus->ids[i]) ? cache->instances++
                                                                            : SIM_NO_INSTANCE;
    }
}

/* Caches of a PU are listed nearest first: what comes later is of a later level, and no faster. */
static void extend_paths(const char *path, struct sim *sim, const struct sim_cache *cache)
{
    for (size_t i = 0; i < sim->pu_count; i++) {
        struct sim_path *of = &sim->paths[i];
        if (cache->instance_of[i] == SIM_NO_INSTANCE) {
            continue;
        }
        const struct sim_cache *before = of->depth ? &sim->caches[of->caches[of->depth - 1]] : NULL;
        need(of->depth < SIM_DEPTH_MAX, path, "fewer caches for one PU");
        need(before || cache->inclusion != SIM_VICTIM, path, "a cache before that of victims");
        need(!before || (cache->level > before->level && cache->seconds >= before->seconds), path,
             "each cache of a later level, and no faster, than those before it");
        of->caches[of->depth++] = (uint8_t)(cache - sim->caches);
    }
}

/* Nothing is in front of any of them yet. */
static bool is_first(const struct sim *sim, const struct sim_cache *cache)
{
    for (size_t i = 0; i < sim->pu_count; i++) {
        if (profile_set_has(&cache->pus, sim->pus.ids[i]) && sim->paths[i].depth > 0) {
            return false;
        }
    }
    return true;
}

static void place_cache(const char *path, struct sim *sim, struct sim_cache *cache)
{
    const uint64_t row = (uint64_t)cache->ways * cache->line_bytes * cache->slices;
    complete_holders(sim, &cache->pus);
    need(are_apart(cache->groups, cache->group_count, &cache->pus) &&
             are_apart(cache->declared_groups, cache->declared_group_count, &cache->pus),
         path, "groups of a cache without a common PU");
    need(power_of_two(cache->line_bytes), path, "lines of a power of two");
    need(cache->size_bytes % row == 0, path, "caches of a multiple of ways * line_bytes * slices");
    cache->sets = cache->size_bytes / row;
    if (cache->declared_size_bytes == UINT64_MAX) {
        cache->declared_size_bytes = cache->size_bytes;
    }
    if (cache->indexing == SIM_BY_PLACE) {
        cache->indexing = is_first(sim, cache) ? SIM_VIRTUAL : SIM_PHYSICAL;
    }
    number_instances(cache, &sim->pus);
    extend_paths(path, sim, cache);
}

/* Memory is no faster than the last cache of a PU. */
static void place_caches(const char *path, struct sim *sim)
{
    need(sim->cache_count <= SIM_CACHES_MAX, path, "fewer caches");
    sim->paths = cli_needed(calloc(sim->pu_count, sizeof *sim->paths));
    for (size_t i = 0; i < sim->cache_count; i++) {
        place_cache(path, sim, &sim->caches[i]);
    }
    for (size_t i = 0; i < sim->pu_count; i++) {
        const struct sim_path *of = &sim->paths[i];
        double seconds = INFINITY, bytes_per_s;
        need(of->depth > 0, path, "a cache for each PU");
        (void)probe_sim_memory_of(sim, -1, sim->pus.ids[i], &seconds, &bytes_per_s);
        need(seconds >= sim->caches[of->caches[of->depth - 1]].seconds, path,
             "memory no faster than the caches");
    }
}

/* -- memory, messages and GPUs -- */

static void complete_kinds(struct sim *sim)
{
    for (size_t i = 0; i < sim->kind_count; i++) {
        struct sim_kind *kind = &sim->kinds[i];
        if (kind->memory_seconds < 0) {
            kind->memory_seconds = sim->memory_seconds;
        }
        if (kind->pu_bytes_per_s < 0) {
            kind->pu_bytes_per_s = sim->pu_bytes_per_s;
        }
    }
}

/* Every group of a kind is a domain. */
static void make_domains(const char *path, struct sim *sim)
{
    size_t count = 1;
    for (size_t i = 0; i < sim->domain_kind_count; i++) {
        count += 1 + sim->domain_kinds[i].group_count;
    }
    sim->domains = cli_needed(calloc(count, sizeof *sim->domains));
    for (size_t i = 0; i < sim->domain_kind_count; i++) {
        const struct sim_domain_kind *kind = &sim->domain_kinds[i];
        need((kind->pus.count > 0) != (kind->group_count > 0) &&
                 are_apart(kind->groups, kind->group_count, &sim->pus),
             path, "either PUs or groups of a domain");
        for (size_t k = 1; k < kind->capacity_count; k++) {
            need(kind->capacities[k].workers > kind->capacities[k - 1].workers, path,
                 "capacities of a domain in ascending order");
        }
        for (size_t j = 0; j < (kind->group_count ? kind->group_count : 1); j++) {
            sim->domains[sim->domain_count++] =
                (struct sim_domain){kind->group_count ? &kind->groups[j] : &kind->pus, kind};
        }
    }
}

static void complete_layers(const char *path, struct sim *sim)
{
    for (size_t i = 0; i < sim->layer_count; i++) {
        struct sim_layer *layer = &sim->layers[i];
        need(are_apart(layer->groups, layer->group_count, &sim->pus), path,
             "groups of a layer without a common PU");
        layer->name = layer->name ? layer->name : cli_needed(strdup(""));
    }
}

/* A relative name is meant from the description's folder. To be freed. */
static char *beside(const char *description, const char *name)
{
    const char *slash = *name == '/' ? NULL : strrchr(description, '/');
    char *path;
    cli_done(
        asprintf(&path, "%.*s%s", slash ? (int)(slash + 1 - description) : 0, description, name));
    return path;
}

/* One-way times between all PUs, out of a CSV file as people publish them: a square of numbers, a
 * row and a column for each PU in ascending order of OS index, nothing on the diagonal. Real
 * machines are not layers with one time each; a probe of layers must cope with measured ones. */
static void load_matrix(const char *description, struct sim *sim)
{
    const size_t count = sim->pu_count;
    FREED char *path = NULL;
    FREED char *line = NULL;
    size_t size = 0, rows = 0;
    if (!sim->matrix.file) {
        return;
    }
    path = beside(description, sim->matrix.file);
    FILE *file = fopen(path, "re");
    need(file != NULL, path, "a file of times");
    sim->matrix.seconds = cli_needed(calloc(count * count, sizeof *sim->matrix.seconds));
    for (; rows < count && getline(&line, &size, file) > 0; rows++) {
        char *rest = line;
        for (size_t column = 0; column < count; column++) {
            const char *cell = strsep(&rest, ",");
            double *seconds = &sim->matrix.seconds[rows * count + column];
            *seconds = cell ? strtod(cell, NULL) * 1e-9 : 0;
            need(*seconds > 0 || rows == column, path, "a number above 0 for each pair of PUs");
        }
    }
    need(rows == count, path, "a row for each PU");
    fclose(file);
}

static void complete_gpus(const struct sim *sim)
{
    for (size_t i = 0; i < sim->gpu_count; i++) {
        complete_holders(sim, &sim->gpus[i].pus);
    }
}

/* -- the whole -- */

/* After every field was read and is in its range. */
static void complete_sim(const char *path, struct sim *sim)
{
    sim->pu_count = sim->pus.count;
    need(power_of_two(sim->page_bytes) && power_of_two(sim->huge_page_bytes) &&
             (sim->huge_page_bytes == 0 || sim->huge_page_bytes >= sim->page_bytes),
         path, "pages of powers of two, huge ones no smaller");
    need(are_apart(sim->packages, sim->package_count, &sim->pus) &&
             are_apart(sim->cores, sim->core_count, &sim->pus),
         path, "packages, and cores, without a common PU");
    sim->name = sim->name ? sim->name : cli_needed(strdup("simulated"));
    for (size_t i = 0; i < sim->tlb_count; i++) {
        complete_holders(sim, &sim->tlbs[i].pus);
    }
    complete_kinds(sim);
    place_caches(path, sim);
    complete_layers(path, sim);
    load_matrix(path, sim);
    make_domains(path, sim);
    complete_gpus(sim);
}

/* -- what the machine says of itself -- */

static void declare_groups(struct profile_relation *relation, const struct profile_set *sets,
                           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cli_done(profile_topology_add_group(relation, copy_of(&sets[i])));
    }
}

/* A PU that has the cache and is in no group has one of its own. */
static void declare_cache(struct profile_class *node_class, const struct sim_cache *cache)
{
    const struct profile_cache said = {.level = cache->level,
                                       .size_bytes = cache->declared_size_bytes,
                                       .line_bytes = cache->line_bytes,
                                       .associativity = cache->ways};
    const bool otherwise = cache->declared_group_count > 0;
    const struct profile_set *groups = otherwise ? cache->declared_groups : cache->groups;
    const size_t count = otherwise ? cache->declared_group_count : cache->group_count;
    for (size_t i = 0; i < count; i++) {
        cli_done(profile_topology_add_cache(node_class, &said, copy_of(&groups[i])));
    }
    for (size_t i = 0; i < cache->pus.count; i++) {
        if (find_group(groups, count, cache->pus.ids[i]) == count) {
            const struct profile_set alone = {.ids = &cache->pus.ids[i], .count = 1};
            cli_done(profile_topology_add_cache(node_class, &said, copy_of(&alone)));
        }
    }
}

/* Without nodes of its own the machine has one, number 0, of all PUs. */
static void declare_nodes(struct profile_class *node_class, const struct sim *sim)
{
    const struct sim_node whole = {.pus = sim->pus};
    for (size_t i = 0; i < (sim->node_count ? sim->node_count : 1); i++) {
        const struct sim_node *node = sim->node_count ? &sim->nodes[i] : &whole;
        cli_done(profile_topology_add_numa(node_class,
                                           (struct profile_numa){.os_index = node->os_index,
                                                                 .memory_bytes = node->memory_bytes,
                                                                 .pus = copy_of(&node->pus)}));
    }
}

static void declare_gpus(struct profile_class *node_class, const struct sim *sim)
{
    node_class->devices = cli_needed(calloc(sim->gpu_count + 1, sizeof *node_class->devices));
    for (uint32_t i = 0; i < sim->gpu_count; i++) {
        node_class->devices[node_class->device_count++] =
            (struct profile_device){.kind = PROFILE_GPU,
                                    .number = i,
                                    .card = i,
                                    .numa_node = PROFILE_NOT_SAID,
                                    .name = cli_needed(strdup(sim->gpus[i].name)),
                                    .pus = copy_of(&sim->gpus[i].pus)};
    }
}

static int declare_all(const struct sim *sim, struct machine *machine, struct servet_error *error)
{
    machine->declared = cli_needed(profile_topology_new());
    struct profile_class *node_class = &machine->declared->classes[0];
    free(machine->declared->host_name);
    machine->declared->host_name = cli_needed(strdup(sim->name));
    node_class->pus = copy_of(&sim->pus);
    declare_groups(&node_class->packages, sim->packages, sim->package_count);
    declare_groups(&node_class->cores, sim->cores, sim->core_count);
    declare_nodes(node_class, sim);
    declare_gpus(node_class, sim);
    for (size_t i = 0; i < sim->kind_count; i++) {
        cli_done(profile_topology_add_kind(
            node_class,
            (struct profile_kind){sim->kinds[i].efficiency, copy_of(&sim->kinds[i].pus)}));
    }
    for (size_t i = 0; i < sim->cache_count; i++) {
        if (sim->caches[i].declared_size_bytes > 0) {
            declare_cache(node_class, &sim->caches[i]);
        }
    }
    return profile_topology_finish(machine->declared, &(struct topology_groupings){0}, error);
}

/* -- the file -- */

static int load_file(const char *path, struct sim *sim, struct servet_error *error)
{
    struct profile_loader loader = {.file = path, .error = error};
    struct servet_error why;
    FREED struct profile_json *values = NULL;
    FREED char *text = NULL;
    size_t length;
    TRY(profile_read_text(path, &text, &length, error));
    TRY(profile_json_read(text, length, path, &values, error));
    TRY(profile_load_object(&loader, &JSON_PATH_ROOT, values, &probe_sim_description, sim));
    int rc = profile_check_members(&JSON_PATH_ROOT, &probe_sim_description, sim, &sim->pus, &why);
    return rc < 0 ? profile_error(error, rc, "%s: %s", path, why.text) : 0;
}

int probe_sim_load(const char *path, struct sim *sim, struct machine *machine,
                   struct servet_error *error)
{
    TRY(load_file(path, sim, error));
    complete_sim(path, sim);
    machine->pus = copy_of(&sim->pus);
    machine->page_bytes = sim->page_bytes;
    machine->huge_page_bytes = sim->huge_page_bytes;
    machine->memory_limit_bytes = memory_limit_bytes;
    return declare_all(sim, machine, error);
}

void probe_sim_free(struct sim *sim)
{
    for (size_t i = 0; i < sim->cache_count; i++) {
        for (uint32_t j = 0; sim->ways[i] && j < sim->caches[i].instances; j++) {
            probe_sim_ways_free(&sim->ways[i][j]);
        }
        free(sim->ways[i]);
        free(sim->caches[i].instance_of);
    }
    free(sim->paths);
    free(sim->domains);
    free(sim->matrix.seconds);
    free(sim->links);
    profile_object_free(&probe_sim_description, sim);
}
