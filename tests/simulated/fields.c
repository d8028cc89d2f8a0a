/* The fields of a machine description, by the tables that profiles are read with: keys, ranges and
 * what stands for a field that is left out. Meanings are in tests/fixtures/machines/README.md; what
 * fields promise to one another is load.c's. */
#include "tests/simulated/simulated.h"

#define NAMED(kind, name, holder, member, ...)                                                     \
    PROFILE_NAMED(name, kind, holder, member, NULL, __VA_ARGS__)
#define FIELD(kind, holder, member, ...) NAMED(kind, #member, holder, member, __VA_ARGS__)
#define LIST(kind, name, holder, member, count, ...)                                               \
    NAMED(kind, name, holder, member, .count_offset = offsetof(holder, count), __VA_ARGS__)
#define NEEDED(...) FIELD(__VA_ARGS__, .required = true)
#define OBJECT(title, type, rows) PROFILE_OBJECT(title, type, rows, NULL)

/* Ranges: wide enough for any machine, narrow enough to reject another unit. */
#define SECONDS .low = 1e-12, .high = 1e-3
#define BYTES_PER_S .low = 1e6, .high = 1e14

static const char *const policies[] = {"lru", "plru", "random", "aged", "adaptive", NULL};
static const char *const inclusions[] = {"filled", "inclusive", "victim", NULL};
static const char *const indexings[] = {"physical", "virtual", NULL};
static const char *const mappings[] = {"random", "coloured", "contiguous", NULL};

static const struct profile_field cache_fields[] = {
    FIELD(FIELD_SET, struct sim_cache, pus),
    NEEDED(FIELD_U32, struct sim_cache, level, .low = 1, .high = 5),
    NEEDED(FIELD_U64, struct sim_cache, size_bytes, .low = 1024, .high = 0x1p34),
    FIELD(FIELD_U64, struct sim_cache, declared_size_bytes, .high = 0x1p34, .absent = -1),
    NEEDED(FIELD_U32, struct sim_cache, ways, .low = 1, .high = 64),
    FIELD(FIELD_U32, struct sim_cache, line_bytes, .low = 16, .high = 1024, .absent = 64),
    FIELD(FIELD_U32, struct sim_cache, slices, .low = 1, .high = 256, .absent = 1),
    NEEDED(FIELD_NUMBER, struct sim_cache, seconds, SECONDS),
    FIELD(FIELD_WORD, struct sim_cache, policy, .words = policies),
    FIELD(FIELD_WORD, struct sim_cache, inclusion, .words = inclusions),
    FIELD(FIELD_WORD, struct sim_cache, indexing, .words = indexings, .absent = SIM_BY_PLACE),
    LIST(FIELD_GROUPS, "groups", struct sim_cache, groups, group_count),
    LIST(FIELD_GROUPS, "declared_groups", struct sim_cache, declared_groups, declared_group_count),
};
static const struct profile_object cache = OBJECT("cache", struct sim_cache, cache_fields);

static const struct profile_field tlb_fields[] = {
    FIELD(FIELD_SET, struct sim_tlb, pus),
    NEEDED(FIELD_U64, struct sim_tlb, entries, .low = 1, .high = 1e7),
    FIELD(FIELD_U32, struct sim_tlb, ways, .low = 1, .high = 1024, .absent = 3),
    NEEDED(FIELD_NUMBER, struct sim_tlb, seconds, .low = 0, .high = 1e-5),
};
static const struct profile_object tlb = OBJECT("tlb", struct sim_tlb, tlb_fields);

static const struct profile_field kind_fields[] = {
    NEEDED(FIELD_SET, struct sim_kind, pus, .low = 1),
    NEEDED(FIELD_U32, struct sim_kind, efficiency, .high = 1000),
    FIELD(FIELD_NUMBER, struct sim_kind, memory_seconds, SECONDS, .absent = -1),
    FIELD(FIELD_NUMBER, struct sim_kind, pu_bytes_per_s, BYTES_PER_S, .absent = -1),
};
static const struct profile_object kind = OBJECT("kind", struct sim_kind, kind_fields);

static const struct profile_field access_fields[] = {
    NEEDED(FIELD_SET, struct sim_access, pus, .low = 1),
    NEEDED(FIELD_NUMBER, struct sim_access, seconds, SECONDS),
    NEEDED(FIELD_NUMBER, struct sim_access, bytes_per_s, BYTES_PER_S),
};
static const struct profile_object access_of = OBJECT("access", struct sim_access, access_fields);

static const struct profile_field node_fields[] = {
    NEEDED(FIELD_U32, struct sim_node, os_index, .high = 1023),
    NEEDED(FIELD_SET, struct sim_node, pus),
    FIELD(FIELD_U64, struct sim_node, memory_bytes, .high = 0x1p50),
    FIELD(FIELD_NUMBER, struct sim_node, together_bytes_per_s, .high = 1e15),
    LIST(FIELD_ARRAY, "from", struct sim_node, from, from_count, .element = &access_of),
};
static const struct profile_object node = OBJECT("node", struct sim_node, node_fields);

static const struct profile_field capacity_fields[] = {
    FIELD(FIELD_U32, struct sim_capacity, workers, .low = 1, .high = 1e6, .absent = 1),
    NEEDED(FIELD_NUMBER, struct sim_capacity, bytes_per_s, BYTES_PER_S),
};
static const struct profile_object capacity =
    OBJECT("capacity", struct sim_capacity, capacity_fields);

static const struct profile_field domain_fields[] = {
    FIELD(FIELD_SET, struct sim_domain_kind, pus),
    LIST(FIELD_GROUPS, "groups", struct sim_domain_kind, groups, group_count),
    LIST(FIELD_ARRAY, "bytes_per_s", struct sim_domain_kind, capacities, capacity_count,
         .required = true, .low = 1, .element = &capacity),
};
static const struct profile_object domain = OBJECT("domain", struct sim_domain_kind, domain_fields);

static const struct profile_field memory_fields[] = {
    NAMED(FIELD_NUMBER, "seconds", struct sim, memory_seconds, .required = true, SECONDS),
    NEEDED(FIELD_NUMBER, struct sim, pu_bytes_per_s, BYTES_PER_S),
    LIST(FIELD_ARRAY, "domains", struct sim, domain_kinds, domain_kind_count, .element = &domain),
    LIST(FIELD_ARRAY, "nodes", struct sim, nodes, node_count, .element = &node),
};
static const struct profile_object memory = OBJECT("memory", struct sim, memory_fields);

static const struct profile_field transfer_fields[] = {
    NEEDED(FIELD_U32, struct sim_transfer, node, .high = 1023),
    NEEDED(FIELD_NUMBER, struct sim_transfer, to_device_bytes_per_s, BYTES_PER_S),
    NEEDED(FIELD_NUMBER, struct sim_transfer, from_device_bytes_per_s, BYTES_PER_S),
    NEEDED(FIELD_NUMBER, struct sim_transfer, seconds, SECONDS),
};
static const struct profile_object transfer =
    OBJECT("transfer", struct sim_transfer, transfer_fields);

static const struct profile_field gpu_fields[] = {
    NEEDED(FIELD_STRING, struct sim_gpu, name),
    FIELD(FIELD_SET, struct sim_gpu, pus),
    LIST(FIELD_ARRAY, "transfers", struct sim_gpu, transfers, transfer_count, .element = &transfer),
};
static const struct profile_object gpu = OBJECT("gpu", struct sim_gpu, gpu_fields);

static const struct profile_field layer_fields[] = {
    FIELD(FIELD_STRING, struct sim_layer, name),
    LIST(FIELD_GROUPS, "groups", struct sim_layer, groups, group_count),
    NEEDED(FIELD_NUMBER, struct sim_layer, seconds, .low = 1e-9, .high = 10),
    NEEDED(FIELD_NUMBER, struct sim_layer, bytes_per_s, .low = 1e3, .high = 1e13),
    FIELD(FIELD_U64, struct sim_layer, eager_bytes, .high = 0x1p40),
    FIELD(FIELD_NUMBER, struct sim_layer, rendezvous_seconds, .high = 10),
    FIELD(FIELD_NUMBER, struct sim_layer, parallel, .high = 1e6),
};
static const struct profile_object layer = OBJECT("layer", struct sim_layer, layer_fields);

static const struct profile_field matrix_fields[] = {
    NEEDED(FIELD_STRING, struct sim_matrix, file),
};
static const struct profile_object matrix =
    OBJECT("exchange_matrix", struct sim_matrix, matrix_fields);

static const struct profile_field noise_fields[] = {
    FIELD(FIELD_NUMBER, struct sim_noise, relative, .high = 1),
    FIELD(FIELD_NUMBER, struct sim_noise, outlier_probability, .high = 1),
    FIELD(FIELD_NUMBER, struct sim_noise, outlier_factor, .low = 1, .high = 100, .absent = 1),
    FIELD(FIELD_NUMBER, struct sim_noise, others, .high = 1000),
    FIELD(FIELD_NUMBER, struct sim_noise, neighbour_probability, .high = 1),
    FIELD(FIELD_NUMBER, struct sim_noise, neighbour_lines, .high = 10),
    FIELD(FIELD_NUMBER, struct sim_noise, sibling_probability, .high = 1),
    FIELD(FIELD_NUMBER, struct sim_noise, sibling_lines, .high = 10),
};
static const struct profile_object noise = OBJECT("noise", struct sim_noise, noise_fields);

static const struct profile_field bsp_fields[] = {
    NEEDED(FIELD_NUMBER, struct sim_bsp, flop_per_s, .low = 1e3, .high = 1e15),
    NEEDED(FIELD_NUMBER, struct sim_bsp, word_seconds, SECONDS),
    NEEDED(FIELD_NUMBER, struct sim_bsp, packed_word_seconds, SECONDS),
    NEEDED(FIELD_NUMBER, struct sim_bsp, alone_seconds, SECONDS),
    FIELD(FIELD_NUMBER, struct sim_bsp, start_seconds, .high = 10),
    FIELD(FIELD_NUMBER, struct sim_bsp, partner_seconds, .high = 10),
};
static const struct profile_object bsp = OBJECT("bsp", struct sim_bsp, bsp_fields);

static const struct profile_field machine_fields[] = {
    {.key = "servet_machine", .type = FIELD_VERSION, .required = true, .high = 1},
    FIELD(FIELD_STRING, struct sim, name),
    FIELD(FIELD_STRING, struct sim, source),
    NEEDED(FIELD_SET, struct sim, pus, .low = 1),
    LIST(FIELD_GROUPS, "cores", struct sim, cores, core_count),
    LIST(FIELD_GROUPS, "packages", struct sim, packages, package_count),
    FIELD(FIELD_U64, struct sim, page_bytes, .low = 1024, .high = 0x1p20, .absent = 4096),
    FIELD(FIELD_U64, struct sim, huge_page_bytes, .high = 0x1p30),
    NAMED(FIELD_WORD, "page_mapping", struct sim, mapping, .words = mappings),
    FIELD(FIELD_U64, struct sim, prefetched_stride_bytes, .high = 0x1p20),
    FIELD(FIELD_U64, struct sim, offline_after, .high = 1e9),
    LIST(FIELD_ARRAY, "caches", struct sim, caches, cache_count, .required = true, .low = 1,
         .element = &cache),
    LIST(FIELD_ARRAY, "tlbs", struct sim, tlbs, tlb_count, .element = &tlb),
    {.key = "memory", .type = FIELD_OBJECT, .required = true, .element = &memory},
    LIST(FIELD_ARRAY, "kinds", struct sim, kinds, kind_count, .element = &kind),
    LIST(FIELD_ARRAY, "gpus", struct sim, gpus, gpu_count, .element = &gpu),
    LIST(FIELD_ARRAY, "layers", struct sim, layers, layer_count, .element = &layer),
    NAMED(FIELD_OBJECT, "exchange_matrix", struct sim, matrix, .element = &matrix),
    FIELD(FIELD_OBJECT, struct sim, noise, .element = &noise),
    FIELD(FIELD_OBJECT, struct sim, bsp, .element = &bsp),
};
const struct profile_object probe_sim_description = OBJECT("machine", struct sim, machine_fields);
