/* Which JSON key holds which member of the model, in the order in which a profile is written.
 * Loading, saving and freeing walk these tables, so none can know a field that the others do
 * not. */
#include "profile/codec/codec.h"

#include <stdlib.h>

#define COUNT(fields) (sizeof(fields) / sizeof *(fields))
#define OBJECT_OF(name, type, fields)                                                              \
    {                                                                                              \
        name, sizeof(type), fields, COUNT(fields)                                                  \
    }

/* A member whose key is its name. */
#define PLAIN(kind, need, holder, member)                                                          \
    {                                                                                              \
        .key = #member, .type = kind, .required = need, .offset = offsetof(holder, member)         \
    }
#define COUNTED(kind, need, holder, name, member, count)                                           \
    {                                                                                              \
        .key = name, .type = kind, .required = need, .offset = offsetof(holder, member),           \
        .count_offset = offsetof(holder, count)                                                    \
    }
#define ARRAY(need, holder, name, member, count, object)                                           \
    {                                                                                              \
        .key = name, .type = FIELD_ARRAY, .required = need, .offset = offsetof(holder, member),    \
        .count_offset = offsetof(holder, count), .element = &(object)                              \
    }
#define NESTED(need, holder, member, object)                                                       \
    {                                                                                              \
        .key = #member, .type = FIELD_OBJECT, .required = need,                                    \
        .offset = offsetof(holder, member), .element = &(object)                                   \
    }
/* Some members of the profile itself, gathered under one key. */
#define SECTION(name, object)                                                                      \
    {                                                                                              \
        .key = name, .type = FIELD_OBJECT, .required = true, .offset = 0, .element = &(object)     \
    }

#define YES true
#define NO false

const char *const profile_origin_names[4] = {
    [PROFILE_DECLARED] = "declared",
    [PROFILE_MEASURED] = "measured",
    [PROFILE_INFERRED] = "inferred",
    [PROFILE_QUOTED] = "quoted",
};

static const struct profile_field quality_fields[] = {
    PLAIN(FIELD_ORIGIN, YES, struct profile_quality, origin),
    PLAIN(FIELD_U32, NO, struct profile_quality, repetitions),
    {.key = "spread",
     .type = FIELD_NUMBER,
     .offset = offsetof(struct profile_quality, spread),
     .absent = -1},
    PLAIN(FIELD_STRING, NO, struct profile_quality, note),
};
static const struct profile_object quality =
    OBJECT_OF("quality", struct profile_quality, quality_fields);

/* Of the points of a curve, which are measured or not there. */
#define REPEATED(holder)                                                                           \
    PLAIN(FIELD_U32, NO, holder, repetitions),                                                     \
    {                                                                                              \
        .key = "spread", .type = FIELD_NUMBER, .offset = offsetof(holder, spread), .absent = -1    \
    }

/* Of a relation; where all is absent it is declared. */
static const struct profile_field evidence_fields[] = {
    PLAIN(FIELD_ORIGIN, NO, struct profile_quality, origin),
    PLAIN(FIELD_U32, NO, struct profile_quality, repetitions),
    PLAIN(FIELD_NUMBER, NO, struct profile_quality, spread),
};
static const struct profile_object evidence =
    OBJECT_OF("evidence", struct profile_quality, evidence_fields);

static const struct profile_field relation_fields[] = {
    COUNTED(FIELD_GROUPS, NO, struct profile_relation, "groups", groups, group_count),
    COUNTED(FIELD_PAIRS, NO, struct profile_relation, "pairs", pairs, pair_count),
};
static const struct profile_object relation =
    OBJECT_OF("relation", struct profile_relation, relation_fields);

static const struct profile_field numa_fields[] = {
    PLAIN(FIELD_U32, YES, struct profile_numa, os_index),
    PLAIN(FIELD_SET, YES, struct profile_numa, pus),
    PLAIN(FIELD_U64, NO, struct profile_numa, memory_bytes),
};
static const struct profile_object numa = OBJECT_OF("numa", struct profile_numa, numa_fields);

static const struct profile_field kind_fields[] = {
    PLAIN(FIELD_U32, YES, struct profile_kind, efficiency),
    PLAIN(FIELD_SET, YES, struct profile_kind, pus),
};
static const struct profile_object kind = OBJECT_OF("kind", struct profile_kind, kind_fields);

static const struct profile_field cache_fields[] = {
    PLAIN(FIELD_U32, YES, struct profile_cache, level),
    PLAIN(FIELD_U64, YES, struct profile_cache, size_bytes),
    PLAIN(FIELD_U64, NO, struct profile_cache, declared_size_bytes),
    PLAIN(FIELD_U32, NO, struct profile_cache, line_bytes),
    PLAIN(FIELD_U32, NO, struct profile_cache, associativity),
    PLAIN(FIELD_U64, NO, struct profile_cache, page_bytes),
    PLAIN(FIELD_SET, NO, struct profile_cache, pus),
    NESTED(YES, struct profile_cache, sharing, relation),
    NESTED(NO, struct profile_cache, sharing_quality, evidence),
    NESTED(YES, struct profile_cache, quality, quality),
};
static const struct profile_object cache = OBJECT_OF("cache", struct profile_cache, cache_fields);

static const struct profile_field cache_point_fields[] = {
    PLAIN(FIELD_U64, YES, struct profile_cache_point, bytes),
    PLAIN(FIELD_NUMBER, YES, struct profile_cache_point, seconds_per_access),
    REPEATED(struct profile_cache_point),
};
static const struct profile_object cache_point =
    OBJECT_OF("cache_point", struct profile_cache_point, cache_point_fields);

static const struct profile_field tlb_fields[] = {
    PLAIN(FIELD_U64, YES, struct profile_tlb, page_bytes),
    PLAIN(FIELD_U64, YES, struct profile_tlb, reach_bytes),
    PLAIN(FIELD_NUMBER, NO, struct profile_tlb, seconds),
    NESTED(YES, struct profile_tlb, quality, quality),
};
static const struct profile_object tlb = OBJECT_OF("tlb", struct profile_tlb, tlb_fields);

static const struct profile_field scaling_fields[] = {
    PLAIN(FIELD_U32, YES, struct profile_scaling_point, workers),
    PLAIN(FIELD_NUMBER, YES, struct profile_scaling_point, bytes_per_s),
    REPEATED(struct profile_scaling_point),
};
static const struct profile_object scaling =
    OBJECT_OF("scaling", struct profile_scaling_point, scaling_fields);

static const struct profile_field memory_level_fields[] = {
    PLAIN(FIELD_NUMBER, NO, struct profile_memory_level, bytes_per_s),
    NESTED(YES, struct profile_memory_level, collisions, relation),
    ARRAY(NO, struct profile_memory_level, "scaling", scaling, scaling_count, scaling),
    NESTED(YES, struct profile_memory_level, quality, quality),
};
static const struct profile_object memory_level =
    OBJECT_OF("memory_level", struct profile_memory_level, memory_level_fields);

static const struct profile_field memory_fields[] = {
    PLAIN(FIELD_NUMBER, NO, struct profile_memory, reference_bytes_per_s),
    PLAIN(FIELD_STRING, NO, struct profile_memory, method),
    NESTED(YES, struct profile_memory, quality, quality),
    ARRAY(YES, struct profile_memory, "levels", levels, level_count, memory_level),
};
static const struct profile_object memory =
    OBJECT_OF("memory", struct profile_memory, memory_fields);

static const struct profile_field numa_access_fields[] = {
    PLAIN(FIELD_SET, YES, struct profile_numa_access, pus),
    PLAIN(FIELD_U32, YES, struct profile_numa_access, node),
    PLAIN(FIELD_NUMBER, NO, struct profile_numa_access, seconds_per_access),
    PLAIN(FIELD_NUMBER, NO, struct profile_numa_access, bytes_per_s),
    NESTED(YES, struct profile_numa_access, quality, quality),
};
static const struct profile_object numa_access =
    OBJECT_OF("numa_access", struct profile_numa_access, numa_access_fields);

static const struct profile_field message_fields[] = {
    PLAIN(FIELD_U64, YES, struct profile_message_point, bytes),
    PLAIN(FIELD_NUMBER, YES, struct profile_message_point, seconds),
    REPEATED(struct profile_message_point),
};
static const struct profile_object message =
    OBJECT_OF("message", struct profile_message_point, message_fields);

static const struct profile_field concurrency_fields[] = {
    PLAIN(FIELD_U32, YES, struct profile_concurrency_point, messages),
    PLAIN(FIELD_NUMBER, YES, struct profile_concurrency_point, seconds),
    REPEATED(struct profile_concurrency_point),
};
static const struct profile_object concurrency =
    OBJECT_OF("concurrency", struct profile_concurrency_point, concurrency_fields);

static const struct profile_field layer_fields[] = {
    PLAIN(FIELD_STRING, NO, struct profile_layer, name),
    PLAIN(FIELD_NUMBER, NO, struct profile_layer, seconds),
    NESTED(YES, struct profile_layer, members, relation),
    ARRAY(NO, struct profile_layer, "curve", curve, curve_count, message),
    ARRAY(NO, struct profile_layer, "concurrency", concurrency, concurrency_count, concurrency),
    NESTED(YES, struct profile_layer, quality, quality),
};
static const struct profile_object layer = OBJECT_OF("layer", struct profile_layer, layer_fields);

static const struct profile_field communication_fields[] = {
    PLAIN(FIELD_U64, NO, struct profile_communication, message_bytes),
    ARRAY(NO, struct profile_communication, "layers", layers, layer_count, layer),
    NESTED(NO, struct profile_communication, measured, relation),
};
static const struct profile_object communication =
    OBJECT_OF("communication", struct profile_communication, communication_fields);

static const struct profile_field class_fields[] = {
    PLAIN(FIELD_STRING, NO, struct profile_class, name),
    PLAIN(FIELD_SET, YES, struct profile_class, pus),
    NESTED(NO, struct profile_class, cores, relation),
    NESTED(NO, struct profile_class, packages, relation),
    ARRAY(NO, struct profile_class, "numa", numa, numa_count, numa),
    ARRAY(NO, struct profile_class, "kinds", kinds, kind_count, kind),
    ARRAY(YES, struct profile_class, "caches", caches, cache_count, cache),
    ARRAY(NO, struct profile_class, "cache_curve", cache_curve, cache_curve_count, cache_point),
    ARRAY(NO, struct profile_class, "tlb", tlb, tlb_count, tlb),
    NESTED(YES, struct profile_class, memory, memory),
    ARRAY(NO, struct profile_class, "numa_access", numa_access, numa_access_count, numa_access),
    NESTED(NO, struct profile_class, communication, communication),
};
static const struct profile_object node_class =
    OBJECT_OF("node_class", struct profile_class, class_fields);

static const struct profile_field node_range_fields[] = {
    PLAIN(FIELD_STRING, YES, struct profile_node_range, names),
    PLAIN(FIELD_U32, YES, struct profile_node_range, count),
    PLAIN(FIELD_U32, YES, struct profile_node_range, class_index),
};
static const struct profile_object node_range =
    OBJECT_OF("node_range", struct profile_node_range, node_range_fields);

static const struct profile_field bsp_fields[] = {
    PLAIN(FIELD_STRING, NO, struct profile_bsp, backend),
    PLAIN(FIELD_U32, YES, struct profile_bsp, processors),
    PLAIN(FIELD_NUMBER, YES, struct profile_bsp, r_flop_per_s),
    PLAIN(FIELD_U32, NO, struct profile_bsp, vector_length),
    PLAIN(FIELD_NUMBER, YES, struct profile_bsp, g_flops),
    PLAIN(FIELD_NUMBER, NO, struct profile_bsp, g_packets_flops),
    {.key = "l_flops",
     .type = FIELD_NUMBER,
     .offset = offsetof(struct profile_bsp, l_flops),
     .absent = -1},
    PLAIN(FIELD_NUMBER, NO, struct profile_bsp, t0_flops),
    PLAIN(FIELD_U32, NO, struct profile_bsp, h_low),
    PLAIN(FIELD_U32, NO, struct profile_bsp, h_high),
    PLAIN(FIELD_U32, NO, struct profile_bsp, bend_h),
    NESTED(YES, struct profile_bsp, quality, quality),
};
static const struct profile_object bsp = OBJECT_OF("bsp", struct profile_bsp, bsp_fields);

static const struct profile_field host_fields[] = {
    {.key = "name",
     .type = FIELD_STRING,
     .required = YES,
     .offset = offsetof(struct servet_profile, host_name)},
    PLAIN(FIELD_STRING, NO, struct servet_profile, architecture),
    PLAIN(FIELD_STRING, NO, struct servet_profile, cpu_model),
    PLAIN(FIELD_STRING, NO, struct servet_profile, kernel),
    PLAIN(FIELD_STRING, NO, struct servet_profile, topology_signature),
};
static const struct profile_object host = OBJECT_OF("host", struct servet_profile, host_fields);

static const struct profile_field measurement_fields[] = {
    PLAIN(FIELD_BOOL, YES, struct servet_profile, measured),
    PLAIN(FIELD_STRING, NO, struct servet_profile, tool),
    PLAIN(FIELD_STRING, NO, struct servet_profile, started),
    PLAIN(FIELD_NUMBER, NO, struct servet_profile, seconds),
    COUNTED(FIELD_MAP, NO, struct servet_profile, "conditions", conditions, condition_count),
};
static const struct profile_object measurement =
    OBJECT_OF("measurement", struct servet_profile, measurement_fields);

static const struct profile_field document_fields[] = {
    {.key = "servet_profile", .type = FIELD_VERSION, .required = YES},
    SECTION("host", host),
    SECTION("measurement", measurement),
    ARRAY(YES, struct servet_profile, "node_classes", classes, class_count, node_class),
    ARRAY(YES, struct servet_profile, "nodes", nodes, node_range_count, node_range),
    NESTED(NO, struct servet_profile, network, communication),
    ARRAY(NO, struct servet_profile, "bsp", bsp, bsp_count, bsp),
};
const struct profile_object profile_document =
    OBJECT_OF("profile", struct servet_profile, document_fields);

static void free_counted(const struct profile_field *field, void *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (field->type == FIELD_GROUPS) {
            profile_set_free((struct profile_set *)items + i);
        } else if (field->type == FIELD_ARRAY) {
            profile_object_free(field->element, (char *)items + i * field->element->size);
        } else if (field->type == FIELD_MAP) {
            free(((struct profile_condition *)items)[i].key);
            free(((struct profile_condition *)items)[i].value);
        }
    }
    free(items);
}

void profile_object_free(const struct profile_object *type, void *object)
{
    for (size_t i = 0; i < type->field_count; i++) {
        const struct profile_field *field = &type->fields[i];
        char *member = (char *)object + field->offset;
        switch (field->type) {
        case FIELD_STRING:
            free(*(void **)member);
            break;
        case FIELD_SET:
            profile_set_free((void *)member);
            break;
        case FIELD_OBJECT:
            profile_object_free(field->element, member);
            break;
        case FIELD_GROUPS:
        case FIELD_PAIRS:
        case FIELD_ARRAY:
        case FIELD_MAP:
            free_counted(field, *(void **)member,
                         *(size_t *)((char *)object + field->count_offset));
            break;
        default:
            break;
        }
    }
}
