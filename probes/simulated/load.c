/* A machine description as a `struct sim`, and what such a machine declares of itself. Fields and
 * defaults are documented in tests/fixtures/machines/README.md. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/simulated/simulated.h"
#include "profile/topology/topology.h"

/* -- kinds of cores -- */

static void read_kind(struct sim_reader *reader, const json_t *object,
                      const struct profile_set *pus, struct sim *sim)
{
    static const char *const keys[] = {"pus", "efficiency", "memory_seconds", "pu_bytes_per_s",
                                       NULL};
    struct sim_kind *kind = &sim->kinds[sim->kind_count];
    char where[32];
    snprintf(where, sizeof where, "kinds[%zu]", sim->kind_count++);
    probe_sim_known_keys(reader, object, where, keys);
    kind->pus = probe_sim_pu_list(reader, json_object_get(object, "pus"), where, pus);
    for (size_t i = 0; i < kind->pus.count * (sim->kind_count - 1); i++) {
        if (profile_set_has(&sim->kinds[i / kind->pus.count].pus,
                            kind->pus.ids[i % kind->pus.count])) {
            probe_sim_refuse(reader, "%s.pus: expected kinds without a common PU", where);
        }
    }
    kind->efficiency = (uint32_t)probe_sim_whole(reader, object, where, "efficiency", NAN, 0, 1000);
    kind->memory_seconds =
        probe_sim_number(reader, object, where, "memory_seconds", sim->memory_seconds, 1e-9, 1e-3);
    kind->pu_bytes_per_s =
        probe_sim_number(reader, object, where, "pu_bytes_per_s", sim->pu_bytes_per_s, 1e6, 1e13);
}

/* After the memory, whose figures are theirs where they do not say otherwise. */
static void read_kinds(struct sim_reader *reader, const json_t *array,
                       const struct profile_set *pus, struct sim *sim)
{
    if (array && !json_is_array(array)) {
        probe_sim_refuse(reader, "kinds: expected an array");
    }
    sim->kinds = calloc(json_array_size(array) + 1, sizeof *sim->kinds);
    for (size_t i = 0; sim->kinds && i < json_array_size(array) && !reader->failed; i++) {
        read_kind(reader, json_array_get(array, i), pus, sim);
    }
}

/* -- memory, layers, noise -- */

static void read_access(struct sim_reader *reader, const json_t *object, const char *where,
                        const struct profile_set *pus, struct sim_access *out)
{
    static const char *const keys[] = {"pus", "seconds", "bytes_per_s", NULL};
    probe_sim_known_keys(reader, object, where, keys);
    out->pus = probe_sim_pu_list(reader, json_object_get(object, "pus"), where, pus);
    out->seconds = probe_sim_number(reader, object, where, "seconds", NAN, 1e-9, 1e-3);
    out->bytes_per_s = probe_sim_number(reader, object, where, "bytes_per_s", NAN, 1e6, 1e13);
}

static void read_node(struct sim_reader *reader, const json_t *object, size_t index,
                      const struct profile_set *pus, struct sim_node *out)
{
    static const char *const keys[] = {"os_index", "pus", "memory_bytes", "from", NULL};
    const json_t *from = json_object_get(object, "from");
    char where[48], row[80];
    snprintf(where, sizeof where, "memory.nodes[%zu]", index);
    probe_sim_known_keys(reader, object, where, keys);
    out->os_index = (uint32_t)probe_sim_whole(reader, object, where, "os_index", NAN, 0, 1023);
    const char *local = json_string_value(json_object_get(object, "pus"));
    if (!local || *local) { /* none: memory only */
        out->pus = probe_sim_pu_list(reader, json_object_get(object, "pus"), where, pus);
    }
    out->memory_bytes = probe_sim_whole(reader, object, where, "memory_bytes", 0, 0, 0x1p50);
    out->from = calloc(json_array_size(from) + 1, sizeof *out->from);
    for (size_t i = 0; out->from && i < json_array_size(from); i++) {
        snprintf(row, sizeof row, "%s.from[%zu]", where, i);
        read_access(reader, json_array_get(from, i), row, pus, &out->from[out->from_count++]);
    }
}

static void read_capacities(struct sim_reader *reader, const json_t *array, const char *where,
                            struct sim_domain *out)
{
    static const char *const keys[] = {"workers", "bytes_per_s", NULL};
    uint32_t least = 1;
    char row[112];
    for (size_t i = 0; i < json_array_size(array) && !reader->failed; i++) {
        const json_t *object = json_array_get(array, i);
        struct sim_capacity *capacity = &out->capacities[out->capacity_count++];
        snprintf(row, sizeof row, "%s.bytes_per_s[%zu]", where, i);
        probe_sim_known_keys(reader, object, row, keys);
        capacity->workers =
            (uint32_t)probe_sim_whole(reader, object, row, "workers", NAN, least, 1e6);
        capacity->bytes_per_s =
            probe_sim_number(reader, object, row, "bytes_per_s", NAN, 1e6, 1e14);
        least = capacity->workers + 1;
    }
}

/* One of an entry's domains, with the entry's capacity: a number, or a list by workers. */
static void read_domain(struct sim_reader *reader, const json_t *object, const char *where,
                        struct sim_domain *out)
{
    const json_t *capacity = json_object_get(object, "bytes_per_s");
    out->capacities = calloc(json_array_size(capacity) + 1, sizeof *out->capacities);
    if (!out->capacities) {
        probe_sim_refuse(reader, "%s: %s", where, strerror(ENOMEM));
    } else if (json_array_size(capacity) > 0) {
        read_capacities(reader, capacity, where, out);
    } else {
        out->capacities[0].workers = 1;
        out->capacities[0].bytes_per_s =
            probe_sim_number(reader, object, where, "bytes_per_s", NAN, 1e6, 1e14);
        out->capacity_count = 1;
    }
}

/* An entry describes one domain (`pus`) or several of a kind (`groups`). */
static void read_domains(struct sim_reader *reader, const json_t *object, size_t index,
                         const struct profile_set *pus, struct sim *sim)
{
    static const char *const keys[] = {"pus", "groups", "bytes_per_s", NULL};
    const json_t *list = json_object_get(object, "pus");
    struct profile_set *sets;
    size_t count = 0;
    char where[48];
    snprintf(where, sizeof where, "memory.domains[%zu]", index);
    probe_sim_known_keys(reader, object, where, keys);
    sets = probe_sim_groups(reader, object, where, "groups", pus, &count);
    if (!sets || (list != NULL) == (count > 0)) {
        probe_sim_refuse(reader, "%s: expected either pus or groups", where);
    } else if (list) {
        sets[count++] = probe_sim_pu_list(reader, list, where, pus);
    }
    struct sim_domain *more =
        realloc(sim->domains, (sim->domain_count + count + 1) * sizeof *sim->domains);
    if (!more) {
        probe_sim_refuse(reader, "%s: %s", where, strerror(ENOMEM));
    }
    sim->domains = more ? more : sim->domains;
    for (size_t i = 0; i < count; i++) {
        if (reader->failed) {
            profile_set_free(&sets[i]);
            continue;
        }
        struct sim_domain *domain = &sim->domains[sim->domain_count++];
        *domain = (struct sim_domain){.pus = sets[i]};
        read_domain(reader, object, where, domain);
    }
    free(sets);
}

static void read_memory(struct sim_reader *reader, const json_t *object,
                        const struct profile_set *pus, struct sim *sim)
{
    static const char *const keys[] = {"seconds", "pu_bytes_per_s", "domains", "nodes", NULL};
    const json_t *domains = json_object_get(object, "domains");
    probe_sim_known_keys(reader, object, "memory", keys);
    sim->memory_seconds = probe_sim_number(reader, object, "memory", "seconds", NAN, 1e-9, 1e-3);
    sim->pu_bytes_per_s =
        probe_sim_number(reader, object, "memory", "pu_bytes_per_s", NAN, 1e6, 1e13);
    for (size_t i = 0; i < json_array_size(domains) && !reader->failed; i++) {
        read_domains(reader, json_array_get(domains, i), i, pus, sim);
    }
    const json_t *nodes = json_object_get(object, "nodes");
    sim->nodes = calloc(json_array_size(nodes) + 1, sizeof *sim->nodes);
    for (size_t i = 0; sim->nodes && i < json_array_size(nodes); i++) {
        read_node(reader, json_array_get(nodes, i), i, pus, &sim->nodes[sim->node_count++]);
    }
}

static void read_layer(struct sim_reader *reader, const json_t *object, size_t index,
                       const struct profile_set *pus, struct sim_layer *layer)
{
    static const char *const keys[] = {"name",        "groups",      "seconds",
                                       "bytes_per_s", "eager_bytes", "rendezvous_seconds",
                                       "parallel",    NULL};
    char where[32];
    snprintf(where, sizeof where, "layers[%zu]", index);
    probe_sim_known_keys(reader, object, where, keys);
    const char *name = json_string_value(json_object_get(object, "name"));
    layer->name = strdup(name ? name : "");
    layer->seconds = probe_sim_number(reader, object, where, "seconds", NAN, 1e-9, 10);
    layer->bytes_per_s = probe_sim_number(reader, object, where, "bytes_per_s", NAN, 1e3, 1e13);
    layer->rendezvous_seconds =
        probe_sim_number(reader, object, where, "rendezvous_seconds", 0, 0, 10);
    layer->eager_bytes = probe_sim_whole(reader, object, where, "eager_bytes", 0, 0, 0x1p40);
    layer->parallel = probe_sim_number(reader, object, where, "parallel", 0, 0, 1e6);
    layer->groups = probe_sim_groups(reader, object, where, "groups", pus, &layer->group_count);
}

static void read_noise(struct sim_reader *reader, const json_t *object, struct sim_noise *noise)
{
    static const char *const keys[] = {
        "relative",        "outlier_probability", "outlier_factor", "neighbour_probability",
        "neighbour_lines", "sibling_probability", "sibling_lines",  NULL};
    if (!object) {
        return;
    }
    probe_sim_known_keys(reader, object, "noise", keys);
    noise->relative = probe_sim_number(reader, object, "noise", "relative", 0, 0, 1);
    noise->outlier_probability =
        probe_sim_number(reader, object, "noise", "outlier_probability", 0, 0, 1);
    noise->outlier_factor = probe_sim_number(reader, object, "noise", "outlier_factor", 1, 1, 100);
    noise->neighbour_probability =
        probe_sim_number(reader, object, "noise", "neighbour_probability", 0, 0, 1);
    noise->neighbour_lines = probe_sim_number(reader, object, "noise", "neighbour_lines", 0, 0, 10);
    noise->sibling_probability =
        probe_sim_number(reader, object, "noise", "sibling_probability", 0, 0, 1);
    noise->sibling_lines = probe_sim_number(reader, object, "noise", "sibling_lines", 0, 0, 10);
}

static void read_layers(struct sim_reader *reader, const json_t *layers,
                        const struct profile_set *pus, struct sim *sim)
{
    sim->layers = calloc(json_array_size(layers) + 1, sizeof *sim->layers);
    for (size_t i = 0; sim->layers && i < json_array_size(layers) && !reader->failed; i++) {
        read_layer(reader, json_array_get(layers, i), i, pus, &sim->layers[i]);
        sim->layer_count++;
    }
}

static void read_bsp(struct sim_reader *reader, const json_t *array, struct sim *sim)
{
    static const char *const keys[] = {"processors", "r_flop_per_s", "g_flops", "g_packets_flops",
                                       "l_flops",    "t0_flops",     NULL};
    if (array && !json_is_array(array)) {
        probe_sim_refuse(reader, "bsp: expected an array");
    }
    sim->bsp = calloc(json_array_size(array) + 1, sizeof *sim->bsp);
    for (size_t i = 0; sim->bsp && i < json_array_size(array) && !reader->failed; i++) {
        const json_t *object = json_array_get(array, i);
        struct sim_bsp *bsp = &sim->bsp[i];
        char where[32];
        snprintf(where, sizeof where, "bsp[%zu]", i);
        probe_sim_known_keys(reader, object, where, keys);
        double least = i ? sim->bsp[i - 1].processors + 1.0 : 1;
        bsp->processors = (uint32_t)probe_sim_whole(reader, object, where, "processors", NAN, least,
                                                    (double)sim->pu_count);
        bsp->flop_per_s = probe_sim_number(reader, object, where, "r_flop_per_s", NAN, 1e3, 1e15);
        bsp->g_flops = probe_sim_number(reader, object, where, "g_flops", NAN, 0, 1e12);
        bsp->g_packets_flops =
            probe_sim_number(reader, object, where, "g_packets_flops", bsp->g_flops, 0, 1e12);
        bsp->t0_flops = probe_sim_number(reader, object, where, "t0_flops", NAN, 0, 1e15);
        bsp->l_flops = probe_sim_number(reader, object, where, "l_flops", bsp->t0_flops, 0, 1e15);
        sim->bsp_count++;
    }
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

static int declare_cache(struct profile_class *node_class, const struct sim_cache *cache,
                         const struct profile_set *pus)
{
    const struct topology_cache said = {cache->level, cache->declared_size_bytes, cache->line_bytes,
                                        cache->ways};
    for (uint32_t instance = 0; instance < cache->instances; instance++) {
        struct profile_set group;
        uint32_t *ids = malloc(pus->count * sizeof *ids);
        size_t count = 0;
        for (size_t i = 0; ids && i < pus->count; i++) {
            if (cache->instance_of[i] == instance) {
                ids[count++] = pus->ids[i];
            }
        }
        int rc = ids ? profile_set_from_array(ids, count, &group) : -ENOMEM;
        free(ids);
        rc = rc < 0 ? rc : profile_topology_add_cache(node_class, &said, group);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* Without nodes of its own the machine has one, number 0, of all PUs. */
static int declare_nodes(struct profile_class *node_class, const struct sim *sim,
                         const struct profile_set *pus)
{
    const struct sim_node whole = {.pus = *pus};
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

static int declare(const struct sim *sim, const struct profile_set *pus,
                   const struct profile_set *packages, size_t package_count,
                   const struct profile_set *cores, size_t core_count, struct machine *machine,
                   struct servet_error *error)
{
    struct servet_profile *profile = profile_topology_new();
    if (!profile) {
        return -ENOMEM;
    }
    struct profile_class *node_class = &profile->classes[0];
    free(profile->host_name);
    profile->host_name = strdup(sim->name);
    int rc = profile->host_name ? profile_set_copy(pus, &node_class->pus) : -ENOMEM;
    rc = rc < 0 ? rc : declare_groups(&node_class->packages, packages, package_count);
    rc = rc < 0 ? rc : declare_groups(&node_class->cores, cores, core_count);
    rc = rc < 0 ? rc : declare_nodes(node_class, sim, pus);
    rc = rc < 0 ? rc : declare_kinds(node_class, sim);
    for (size_t i = 0; i < sim->cache_count && rc == 0; i++) {
        rc = sim->caches[i].declared_size_bytes ? declare_cache(node_class, &sim->caches[i], pus)
                                                : 0;
    }
    rc = rc < 0 ? rc : profile_topology_finish(profile, NULL, error);
    if (rc < 0) {
        profile_free(profile);
        return rc;
    }
    machine->declared = profile;
    return 0;
}

/* -- the file -- */

static void read_machine(struct sim_reader *reader, const json_t *root, struct sim *sim,
                         struct machine *machine)
{
    static const char *const keys[] = {"servet_machine",
                                       "name",
                                       "source",
                                       "pus",
                                       "cores",
                                       "packages",
                                       "page_bytes",
                                       "huge_page_bytes",
                                       "page_mapping",
                                       "caches",
                                       "tlbs",
                                       "prefetched_stride_bytes",
                                       "memory",
                                       "layers",
                                       "noise",
                                       "bsp",
                                       "offline_after",
                                       "kinds",
                                       "exchange_matrix",
                                       NULL};
    static const char *const mappings[] = {"random", "coloured", "contiguous", NULL};
    size_t package_count = 0, core_count = 0;
    probe_sim_known_keys(reader, root, "machine", keys);
    if (probe_sim_whole(reader, root, "machine", "servet_machine", NAN, 1, 1) != 1 ||
        reader->failed) {
        return;
    }
    const char *name = json_string_value(json_object_get(root, "name"));
    sim->name = strdup(name ? name : "simulated");
    machine->pus = probe_sim_pu_list(reader, json_object_get(root, "pus"), "pus", NULL);
    sim->pu_count = machine->pus.count;
    sim->page_bytes = probe_sim_whole(reader, root, "machine", "page_bytes", 4096, 1024, 0x1p20);
    sim->huge_page_bytes =
        probe_sim_whole(reader, root, "machine", "huge_page_bytes", 0, 0, 0x1p30);
    sim->mapping = (enum sim_mapping)probe_sim_choice(reader, root, "machine", "page_mapping",
                                                      mappings, SIM_PAGES_RANDOM);
    if ((sim->page_bytes & (sim->page_bytes - 1)) ||
        (sim->huge_page_bytes & (sim->huge_page_bytes - 1))) {
        probe_sim_refuse(reader, "machine.page_bytes: expected powers of two");
    }
    sim->prefetched_stride_bytes =
        probe_sim_whole(reader, root, "machine", "prefetched_stride_bytes", 0, 0, 0x1p20);
    sim->offline_after = probe_sim_whole(reader, root, "machine", "offline_after", 0, 0, 1e9);
    if (reader->failed) {
        return;
    }
    probe_sim_load_caches(reader, root, &machine->pus, sim);
    read_layers(reader, json_object_get(root, "layers"), &machine->pus, sim);
    probe_sim_load_matrix(reader, json_object_get(root, "exchange_matrix"), sim);
    read_memory(reader, json_object_get(root, "memory"), &machine->pus, sim);
    read_kinds(reader, json_object_get(root, "kinds"), &machine->pus, sim);
    read_noise(reader, json_object_get(root, "noise"), &sim->noise);
    read_bsp(reader, json_object_get(root, "bsp"), sim);
    struct profile_set *packages =
        probe_sim_groups(reader, root, "machine", "packages", &machine->pus, &package_count);
    struct profile_set *cores =
        probe_sim_groups(reader, root, "machine", "cores", &machine->pus, &core_count);
    if (!reader->failed) {
        int rc = declare(sim, &machine->pus, packages, package_count, cores, core_count, machine,
                         reader->error);
        reader->failed = rc;
    }
    for (size_t i = 0; i < package_count; i++) {
        profile_set_free(&packages[i]);
    }
    for (size_t i = 0; i < core_count; i++) {
        profile_set_free(&cores[i]);
    }
    free(packages);
    free(cores);
}

int probe_sim_load(const char *path, struct sim *sim, struct machine *machine,
                   struct servet_error *error)
{
    struct sim_reader reader = {path, error, 0};
    json_error_t where;
    FILE *file = fopen(path, "re");
    if (!file) {
        return profile_error(error, -errno, "%s: %s", path, strerror(errno));
    }
    json_t *root = json_loadf(file, JSON_REJECT_DUPLICATES, &where);
    fclose(file);
    if (!root) {
        return profile_error(error, -EINVAL, "%s:%d: %s", path, where.line, where.text);
    }
    read_machine(&reader, root, sim, machine);
    json_decref(root);
    machine->page_bytes = sim->page_bytes;
    machine->huge_page_bytes = sim->huge_page_bytes;
    machine->memory_limit_bytes = (size_t)8 << 30;
    return reader.failed;
}

static void free_sets(struct profile_set *sets, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        profile_set_free(&sets[i]);
    }
    free(sets);
}

void probe_sim_free(struct sim *sim)
{
    for (size_t i = 0; i < sim->cache_count; i++) {
        for (uint32_t j = 0; sim->ways[i] && j < sim->caches[i].instances; j++) {
            probe_sim_ways_free(&sim->ways[i][j]);
        }
        free(sim->ways[i]);
        free(sim->caches[i].instance_of);
        profile_set_free(&sim->caches[i].pus);
        free_sets(sim->caches[i].groups, sim->caches[i].group_count);
    }
    for (size_t i = 0; i < sim->tlb_count; i++) {
        profile_set_free(&sim->tlbs[i].pus);
    }
    for (size_t i = 0; i < sim->kind_count; i++) {
        profile_set_free(&sim->kinds[i].pus);
    }
    for (size_t i = 0; i < sim->domain_count; i++) {
        profile_set_free(&sim->domains[i].pus);
        free(sim->domains[i].capacities);
    }
    for (size_t i = 0; i < sim->layer_count; i++) {
        free(sim->layers[i].name);
        free_sets(sim->layers[i].groups, sim->layers[i].group_count);
    }
    for (size_t i = 0; i < sim->node_count; i++) {
        for (size_t j = 0; j < sim->nodes[i].from_count; j++) {
            profile_set_free(&sim->nodes[i].from[j].pus);
        }
        free(sim->nodes[i].from);
        profile_set_free(&sim->nodes[i].pus);
    }
    free(sim->paths);
    free(sim->kinds);
    free(sim->nodes);
    free(sim->domains);
    free(sim->matrix.seconds);
    free(sim->layers);
    free(sim->bsp);
    free(sim->name);
}
