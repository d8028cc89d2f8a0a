/* A machine description as a `struct sim`: read by the table of its fields (fields.c), checked here
 * for what they promise one another; and what such a machine declares of itself. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/topology/topology.h"
#include "tests/simulated/simulated.h"

/* Memory of a probe on a machine without a limit of its own. */
static const size_t memory_limit_bytes = (size_t)8 << 30;

/* -- checks -- */

/* "FILE: …" */
__attribute__((format(printf, 2, 3))) static void refuse(struct sim_reader *reader,
                                                         const char *format, ...)
{
    char text[256];
    va_list args;
    if (reader->failed) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    reader->failed = profile_error(reader->error, -EINVAL, "%s: %s", reader->path, text);
}

/* There was no memory for what `where` names. */
static void no_memory(struct sim_reader *reader, const char *where)
{
    if (!reader->failed) {
        reader->failed = profile_error(reader->error, -ENOMEM, "%s: %s: %s", reader->path, where,
                                       strerror(ENOMEM));
    }
}

/* PUs of `within` alone, without a common PU. */
static void check_groups(struct sim_reader *reader, const struct profile_set *groups, size_t count,
                         const struct profile_set *within, const char *where)
{
    for (size_t i = 0; i < count && !reader->failed; i++) {
        if (!profile_set_subset(&groups[i], within)) {
            refuse(reader, "%s: names a PU that the machine does not have", where);
        }
        for (size_t j = 0; j < i; j++) {
            if (profile_set_overlaps(&groups[i], &groups[j])) {
                refuse(reader, "%s: expected groups without a common PU", where);
            }
        }
    }
}

static void check_kinds(struct sim_reader *reader, struct sim *sim)
{
    for (size_t i = 0; i < sim->kind_count; i++) {
        struct sim_kind *kind = &sim->kinds[i];
        for (size_t j = 0; j < i; j++) {
            if (profile_set_overlaps(&kind->pus, &sim->kinds[j].pus)) {
                refuse(reader, "$.kinds[%zu].pus: expected kinds without a common PU", i);
            }
        }
        if (kind->memory_seconds < 0) {
            kind->memory_seconds = sim->memory_seconds;
        }
        if (kind->pu_bytes_per_s < 0) {
            kind->pu_bytes_per_s = sim->pu_bytes_per_s;
        }
    }
}

static void check_domain_kind(struct sim_reader *reader, const struct sim *sim, size_t index)
{
    const struct sim_domain_kind *kind = &sim->domain_kinds[index];
    char where[64];
    snprintf(where, sizeof where, "$.memory.domains[%zu]", index);
    if ((kind->pus.count > 0) == (kind->group_count > 0)) {
        refuse(reader, "%s: expected either pus or groups", where);
    }
    check_groups(reader, kind->groups, kind->group_count, &sim->pus, where);
    for (size_t i = 1; i < kind->capacity_count; i++) {
        if (kind->capacities[i].workers <= kind->capacities[i - 1].workers) {
            refuse(reader, "%s.bytes_per_s[%zu].workers: expected more than before", where, i);
        }
    }
}

/* Every group of a kind is a domain. */
static void make_domains(struct sim_reader *reader, struct sim *sim)
{
    size_t count = 0;
    for (size_t i = 0; i < sim->domain_kind_count; i++) {
        check_domain_kind(reader, sim, i);
        count += 1 + sim->domain_kinds[i].group_count;
    }
    sim->domains = calloc(count + 1, sizeof *sim->domains);
    if (!sim->domains) {
        no_memory(reader, "$.memory.domains");
    }
    for (size_t i = 0; i < sim->domain_kind_count && !reader->failed; i++) {
        const struct sim_domain_kind *kind = &sim->domain_kinds[i];
        size_t alike = kind->group_count ? kind->group_count : 1;
        for (size_t j = 0; j < alike; j++) {
            sim->domains[sim->domain_count++] = (struct sim_domain){
                .pus = kind->group_count ? kind->groups[j] : kind->pus,
                .capacities = kind->capacities,
                .capacity_count = kind->capacity_count,
            };
        }
    }
}

static void check_layers(struct sim_reader *reader, struct sim *sim)
{
    char where[48];
    for (size_t i = 0; i < sim->layer_count; i++) {
        struct sim_layer *layer = &sim->layers[i];
        snprintf(where, sizeof where, "$.layers[%zu].groups", i);
        check_groups(reader, layer->groups, layer->group_count, &sim->pus, where);
        if (!layer->name) {
            layer->name = strdup("");
        }
    }
}

static bool power_of_two(uint64_t bytes)
{
    return (bytes & (bytes - 1)) == 0;
}

/* -- caches and TLBs: who has them, and which stand in front of each PU -- */

static void number_instances(struct sim_reader *reader, struct sim_cache *cache,
                             const struct profile_set *pus)
{
    cache->instance_of = calloc(pus->count, sizeof *cache->instance_of);
    if (!cache->instance_of) {
        no_memory(reader, "$.caches");
        return;
    }
    for (size_t i = 0; i < pus->count; i++) {
        uint32_t instance = SIM_NO_INSTANCE;
        for (size_t g = 0; g < cache->group_count; g++) {
            if (profile_set_has(&cache->groups[g], pus->ids[i])) {
                instance = (uint32_t)g;
            }
        }
        if (instance == SIM_NO_INSTANCE &&
            profile_set_has(&cache->pus, pus->ids[i])) { /* a cache of its own */
            instance = (uint32_t)cache->group_count + cache->instances++;
        }
        cache->instance_of[i] = instance;
    }
    cache->instances += (uint32_t)cache->group_count;
}

/* Completes the PUs of a resource: all of the machine if none are named. */
static void complete_holders(struct sim_reader *reader, const struct sim *sim,
                             struct profile_set *pus)
{
    if (pus->count == 0 && profile_set_copy(&sim->pus, pus) < 0) {
        no_memory(reader, "$.pus");
    }
}

static bool has_node(const struct sim *sim, uint32_t os_index)
{
    size_t i = 0;
    while (i < sim->node_count && sim->nodes[i].os_index != os_index) {
        i++;
    }
    return i < sim->node_count || (sim->node_count == 0 && os_index == 0);
}

static void complete_gpus(struct sim_reader *reader, const struct sim *sim)
{
    for (size_t i = 0; i < sim->gpu_count; i++) {
        complete_holders(reader, sim, &sim->gpus[i].pus);
        for (size_t k = 0; k < sim->gpus[i].transfer_count; k++) {
            if (!has_node(sim, sim->gpus[i].transfers[k].node)) {
                refuse(reader, "$.gpus[%zu].transfers[%zu].node: expected one of memory.nodes", i,
                       k);
            }
        }
    }
}

/* Caches of a PU are listed nearest first: what comes later is of a later level, and no faster. */
static void check_behind(struct sim_reader *reader, const struct sim *sim, size_t before,
                         size_t cache)
{
    if (sim->caches[cache].level <= sim->caches[before].level) {
        refuse(reader, "$.caches[%zu].level: expected more than that of $.caches[%zu]", cache,
               before);
    }
    if (sim->caches[cache].seconds < sim->caches[before].seconds) {
        refuse(reader, "$.caches[%zu].seconds: expected no less than those of $.caches[%zu]", cache,
               before);
    }
}

/* The cache is behind those before it, for the PUs that have it. */
static void extend_paths(struct sim_reader *reader, struct sim *sim, size_t cache)
{
    for (size_t i = 0; i < sim->pu_count && !reader->failed; i++) {
        struct sim_path *path = &sim->paths[i];
        if (sim->caches[cache].instance_of[i] == SIM_NO_INSTANCE) {
            continue;
        }
        if (path->depth == SIM_DEPTH_MAX) {
            refuse(reader, "$.caches: expected at most %d for one PU", SIM_DEPTH_MAX);
            return;
        }
        if (path->depth > 0) {
            check_behind(reader, sim, path->caches[path->depth - 1], cache);
        } else if (sim->caches[cache].inclusion == SIM_VICTIM) {
            refuse(reader, "$.caches[%zu].inclusion: expected a cache before it", cache);
        }
        path->caches[path->depth++] = (uint8_t)cache;
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

static void place_cache(struct sim_reader *reader, struct sim *sim, size_t index)
{
    struct sim_cache *cache = &sim->caches[index];
    char where[48];
    complete_holders(reader, sim, &cache->pus);
    snprintf(where, sizeof where, "$.caches[%zu].groups", index);
    check_groups(reader, cache->groups, cache->group_count, &cache->pus, where);
    snprintf(where, sizeof where, "$.caches[%zu].declared_groups", index);
    check_groups(reader, cache->declared_groups, cache->declared_group_count, &cache->pus, where);
    if (!power_of_two(cache->line_bytes)) {
        refuse(reader, "$.caches[%zu].line_bytes: expected a power of two", index);
    }
    uint64_t row = (uint64_t)cache->ways * cache->line_bytes * cache->slices;
    if (cache->size_bytes % row != 0) {
        refuse(reader,
               "$.caches[%zu].size_bytes: expected a multiple of ways * line_bytes * slices",
               index);
    }
    if (reader->failed) {
        return;
    }
    cache->sets = cache->size_bytes / row;
    if (cache->declared_size_bytes == UINT64_MAX) {
        cache->declared_size_bytes = cache->size_bytes;
    }
    if (cache->indexing == SIM_BY_PLACE) {
        cache->indexing = is_first(sim, cache) ? SIM_VIRTUAL : SIM_PHYSICAL;
    }
    number_instances(reader, cache, &sim->pus);
    if (!reader->failed) {
        extend_paths(reader, sim, index);
    }
}

static void place_caches(struct sim_reader *reader, struct sim *sim)
{
    if (sim->cache_count > SIM_CACHES_MAX) {
        refuse(reader, "$.caches: expected an array of 1 to %d", SIM_CACHES_MAX);
        return;
    }
    sim->paths = calloc(sim->pu_count, sizeof *sim->paths);
    if (!sim->paths) {
        no_memory(reader, "$.caches");
    }
    for (size_t i = 0; i < sim->cache_count && !reader->failed; i++) {
        place_cache(reader, sim, i);
    }
    for (size_t i = 0; i < sim->pu_count && !reader->failed; i++) {
        if (sim->paths[i].depth == 0) {
            refuse(reader, "$.caches: expected one for PU %u", sim->pus.ids[i]);
        }
    }
    for (size_t i = 0; i < sim->tlb_count && !reader->failed; i++) {
        complete_holders(reader, sim, &sim->tlbs[i].pus);
    }
}

/* -- one-way times between all PUs, out of a CSV file as people publish them: a square of numbers,
 * a row and a column for each PU in ascending order of OS index, nothing on the diagonal. Real
 * machines are not layers with one time each; a probe of layers must cope with measured matrices.
 * -- */

/* A relative name is meant from the description's folder. To be freed; NULL: no memory. */
static char *beside(const char *description, const char *name)
{
    const char *slash = *name == '/' ? NULL : strrchr(description, '/');
    char *path;
    return asprintf(&path, "%.*s%s", slash ? (int)(slash + 1 - description) : 0, description,
                    name) < 0
               ? NULL
               : path;
}

/* Cells of one line; what stands on the diagonal is not looked at. */
static void read_row(struct sim_reader *reader, char *line, size_t row, struct sim *sim)
{
    char *rest = line;
    for (size_t column = 0; column < sim->pu_count && !reader->failed; column++) {
        const char *cell = strsep(&rest, ",");
        char *end = NULL;
        double value = cell ? strtod(cell, &end) : 0;
        sim->matrix.seconds[row * sim->pu_count + column] = value * 1e-9;
        if (row != column && (!cell || end == cell || !isfinite(value) || value <= 0)) {
            refuse(reader, "exchange_matrix: row %zu, column %zu: expected a number above 0",
                   row + 1, column + 1);
        }
    }
    if (rest && !reader->failed) {
        refuse(reader, "exchange_matrix: row %zu: expected %zu columns", row + 1, sim->pu_count);
    }
}

static void read_rows(struct sim_reader *reader, FILE *file, struct sim *sim)
{
    char *line = NULL;
    size_t size = 0, rows = 0;
    ssize_t length;
    while (!reader->failed && (length = getline(&line, &size, file)) > 0) {
        line[strcspn(line, "\r\n")] = '\0';
        if (*line == '\0' && sim->pu_count > 1) {
            continue;
        }
        if (rows == sim->pu_count) {
            rows++;
            break;
        }
        read_row(reader, line, rows++, sim);
    }
    free(line);
    if (!reader->failed && rows != sim->pu_count) {
        refuse(reader, "exchange_matrix: expected %zu rows, one for each PU", sim->pu_count);
    }
}

void probe_sim_load_matrix(struct sim_reader *reader, struct sim *sim)
{
    const char *name = sim->matrix.file;
    if (!name || reader->failed) {
        return;
    }
    FREED char *path = beside(reader->path, name);
    FILE *file = path ? fopen(path, "re") : NULL;
    sim->matrix.seconds = calloc(sim->pu_count * sim->pu_count, sizeof *sim->matrix.seconds);
    if (!path || !sim->matrix.seconds) {
        no_memory(reader, "exchange_matrix.file");
    } else if (!file) {
        refuse(reader, "exchange_matrix.file: %s: %s", name, strerror(errno));
    } else {
        read_rows(reader, file, sim);
    }
    if (file) {
        fclose(file);
    }
}

/* Memory is no faster than the last cache of a PU. */
static void check_memory(struct sim_reader *reader, const struct sim *sim)
{
    for (size_t i = 0; i < sim->pu_count && !reader->failed; i++) {
        const struct sim_path *path = &sim->paths[i];
        const size_t last = path->caches[path->depth - 1];
        double seconds, bytes_per_s;
        int rc = probe_sim_memory_of(sim, -1, sim->pus.ids[i], &seconds, &bytes_per_s);
        if (rc == 0 && seconds < sim->caches[last].seconds) {
            refuse(reader, "$.memory.seconds: expected no less than those of $.caches[%zu]", last);
        }
    }
}

/* -- the whole -- */

/* After every field was read and is in its range. */
static void complete_sim(struct sim_reader *reader, struct sim *sim)
{
    sim->pu_count = sim->pus.count;
    if (!power_of_two(sim->page_bytes) || !power_of_two(sim->huge_page_bytes)) {
        refuse(reader, "$.page_bytes: expected powers of two");
    }
    if (sim->huge_page_bytes > 0 && sim->huge_page_bytes < sim->page_bytes) {
        refuse(reader, "$.huge_page_bytes: expected no less than page_bytes");
    }
    if (!sim->name) {
        sim->name = strdup("simulated");
    }
    check_groups(reader, sim->packages, sim->package_count, &sim->pus, "$.packages");
    check_groups(reader, sim->cores, sim->core_count, &sim->pus, "$.cores");
    place_caches(reader, sim);
    check_layers(reader, sim);
    probe_sim_load_matrix(reader, sim);
    make_domains(reader, sim);
    check_kinds(reader, sim);
    complete_gpus(reader, sim);
    check_memory(reader, sim);
}

/* -- what the machine says of itself -- */

static int declare_groups(struct profile_relation *relation, const struct profile_set *sets,
                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct profile_set copy;
        if (profile_set_copy(&sets[i], &copy) < 0 ||
            profile_topology_add_group(relation, copy) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

/* A PU that has the cache and is in no group has one of its own. */
static int declare_cache(struct profile_class *node_class, const struct sim_cache *cache)
{
    const struct topology_cache said = {cache->level, cache->declared_size_bytes, cache->line_bytes,
                                        cache->ways};
    const bool otherwise = cache->declared_group_count > 0;
    const struct profile_set *groups = otherwise ? cache->declared_groups : cache->groups;
    const size_t count = otherwise ? cache->declared_group_count : cache->group_count;
    for (size_t i = 0; i < count + cache->pus.count; i++) {
        const uint32_t *alone = i < count ? NULL : &cache->pus.ids[i - count];
        struct profile_set set;
        bool grouped = false;
        for (size_t g = 0; alone && g < count && !grouped; g++) {
            grouped = profile_set_has(&groups[g], *alone);
        }
        if (grouped) {
            continue;
        }
        int rc =
            alone ? profile_set_from_array(alone, 1, &set) : profile_set_copy(&groups[i], &set);
        if (rc < 0 || profile_topology_add_cache(node_class, &said, set) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

/* Without nodes of its own the machine has one, number 0, of all PUs. */
static int declare_nodes(struct profile_class *node_class, const struct sim *sim)
{
    const struct sim_node whole = {.pus = sim->pus};
    for (size_t i = 0; i < (sim->node_count ? sim->node_count : 1); i++) {
        const struct sim_node *node = sim->node_count ? &sim->nodes[i] : &whole;
        struct profile_set copy;
        if (profile_set_copy(&node->pus, &copy) < 0 ||
            profile_topology_add_numa(node_class, node->os_index, node->memory_bytes, copy) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

static int declare_kinds(struct profile_class *node_class, const struct sim *sim)
{
    for (size_t i = 0; i < sim->kind_count; i++) {
        struct profile_set copy;
        if (profile_set_copy(&sim->kinds[i].pus, &copy) < 0 ||
            profile_topology_add_kind(node_class, sim->kinds[i].efficiency, copy) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

static int declare_gpu(const struct sim_gpu *gpu, uint32_t number, struct profile_device *out)
{
    *out = (struct profile_device){
        .kind = PROFILE_GPU, .number = number, .card = number, .numa_node = PROFILE_NOT_SAID};
    out->name = strdup(gpu->name);
    return out->name ? profile_set_copy(&gpu->pus, &out->pus) : -ENOMEM;
}

static int declare_gpus(struct profile_class *node_class, const struct sim *sim)
{
    int rc = 0;
    node_class->devices = calloc(sim->gpu_count + 1, sizeof *node_class->devices);
    if (!node_class->devices) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; rc == 0 && i < sim->gpu_count; i++) {
        rc = declare_gpu(&sim->gpus[i], i, &node_class->devices[node_class->device_count++]);
    }
    return rc;
}

static int declare_all(const struct sim *sim, struct machine *machine, struct servet_error *error)
{
    struct servet_profile *profile = profile_topology_new();
    if (!profile) {
        return -ENOMEM;
    }
    struct profile_class *node_class = &profile->classes[0];
    free(profile->host_name);
    profile->host_name = strdup(sim->name);
    const bool said =
        profile->host_name && profile_set_copy(&sim->pus, &node_class->pus) == 0 &&
        declare_groups(&node_class->packages, sim->packages, sim->package_count) == 0 &&
        declare_groups(&node_class->cores, sim->cores, sim->core_count) == 0 &&
        declare_nodes(node_class, sim) == 0 && declare_kinds(node_class, sim) == 0 &&
        declare_gpus(node_class, sim) == 0;
    int rc = said ? 0 : -ENOMEM;
    for (size_t i = 0; i < sim->cache_count && rc == 0; i++) {
        rc = sim->caches[i].declared_size_bytes ? declare_cache(node_class, &sim->caches[i]) : 0;
    }
    if (rc == 0) {
        rc = profile_topology_finish(profile, NULL, error);
    }
    if (rc < 0) {
        profile_free(profile);
        return rc;
    }
    machine->declared = profile;
    return 0;
}

/* -- the file -- */

static int load_file(const char *path, struct sim *sim, struct servet_error *error)
{
    struct profile_loader loader = {.file = path, .error = error};
    struct servet_error why;
    struct profile_json *values;
    char *text;
    size_t length;
    int rc = profile_read_text(path, &text, &length, error);
    if (rc < 0) {
        return rc;
    }
    rc = profile_json_read(text, length, path, &values, error);
    if (rc == 0) {
        rc = profile_load_object(&loader, &JSON_PATH_ROOT, values, &probe_sim_description, sim);
    }
    free(values);
    free(text);
    if (rc < 0) {
        return rc;
    }
    rc = profile_check_members(&JSON_PATH_ROOT, &probe_sim_description, sim, &sim->pus, &why);
    return rc < 0 ? profile_error(error, rc, "%s: %s", path, why.text) : 0;
}

int probe_sim_load(const char *path, struct sim *sim, struct machine *machine,
                   struct servet_error *error)
{
    struct sim_reader reader = {path, error, 0};
    int rc = load_file(path, sim, error);
    if (rc < 0) {
        return rc;
    }
    complete_sim(&reader, sim);
    if (reader.failed) {
        return reader.failed;
    }
    if (profile_set_copy(&sim->pus, &machine->pus) < 0) {
        return -ENOMEM;
    }
    machine->page_bytes = sim->page_bytes;
    machine->huge_page_bytes = sim->huge_page_bytes;
    machine->memory_limit_bytes = memory_limit_bytes;
    return declare_all(sim, machine, error);
}

void probe_sim_free(struct sim *sim)
{
    /* More caches than that were refused before anything was made of them. */
    size_t caches = sim->cache_count < SIM_CACHES_MAX ? sim->cache_count : SIM_CACHES_MAX;
    for (size_t i = 0; i < caches; i++) {
        for (uint32_t j = 0; sim->ways[i] && j < sim->caches[i].instances; j++) {
            probe_sim_ways_free(&sim->ways[i][j]);
        }
        free(sim->ways[i]);
        free(sim->caches[i].instance_of);
    }
    free(sim->paths);
    free(sim->domains);
    free(sim->matrix.seconds);
    profile_object_free(&probe_sim_description, sim);
}
