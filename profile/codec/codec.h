/* What the files of profile/codec/ promise one another and the rest of the room. */
#ifndef SERVET_PROFILE_CODEC_CODEC_H
#define SERVET_PROFILE_CODEC_CODEC_H

#include <stddef.h>

#include "profile/model.h"

/* -- path -- */

/* Where in a profile something is: "$.node_classes[0].caches[1].size_bytes". A path is a chain of
 * frames on the stack of whoever walks the profile, so that it costs nothing until an error has to
 * be worded. */

struct json_path {
    const struct json_path *parent; /* NULL: the document itself, "$" */
    const char *key;                /* NULL: an array element, `index` */
    size_t index;
};

#define JSON_PATH_ROOT ((struct json_path){0})
#define JSON_PATH_KEY(above, name) ((struct json_path){.parent = (above), .key = (name)})
#define JSON_PATH_ITEM(above, number) ((struct json_path){.parent = (above), .index = (number)})

/* Long paths (a hostile key) are cut. */
#define JSON_PATH_SIZE 256

/* Writes the path's text, cut to `size`; returns `buffer`. */
const char *profile_json_path_text(const struct json_path *path, char *buffer, size_t size);

/* -- check -- */

/* What fields of a profile promise, whichever part they are in. All: 0, or -EINVAL with the path of
 * the field. */

/* -EINVAL with "PATH: WHAT"; `key` may be NULL. */
int profile_refuse(struct servet_error *error, const struct json_path *at, const char *key,
                   const char *what);

int profile_check_number(const struct json_path *at, const char *key, double value,
                         bool zero_allowed, struct servet_error *error);
int profile_check_integer(const struct json_path *at, const char *key, uint64_t value, uint64_t low,
                          uint64_t high, struct servet_error *error);
int profile_check_spread(const struct json_path *at, double spread, struct servet_error *error);
int profile_check_quality(const struct json_path *at, const struct profile_quality *quality,
                          struct servet_error *error);
int profile_check_subset(const struct json_path *at, const struct profile_set *part,
                         const struct profile_set *whole, struct servet_error *error);

/* The promises that a relation between PUs (or nodes) makes: groups inside the set it speaks of,
 * disjoint, ordered by lowest member; pairs ordered, of two different members. */

/* Group of every member of `members`: owner[i] is that of members->ids[i], 1 for the first group, 0
 * for none. Frees with free(). */
struct relation_owners {
    uint32_t *owner;
};

/* 0 and the owners, -EINVAL with the path, -ENOMEM. */
int profile_check_relation(const struct json_path *at, const struct profile_relation *relation,
                           const struct profile_set *members, struct relation_owners *out,
                           struct servet_error *error);

/* Memory overhead levels nest: is every pair of `worse` related in `milder` as well? */
int profile_check_nesting(const struct json_path *at, const struct profile_relation *worse,
                          const struct profile_relation *milder,
                          const struct relation_owners *owners, const struct profile_set *members,
                          struct servet_error *error);

/* What one class of nodes promises: caches, NUMA nodes, memory, messages. */

/* 0, -EINVAL with the path, -ENOMEM. */
int profile_check_class(const struct json_path *at, const struct profile_class *node_class,
                        struct servet_error *error);
/* Layers between `members`: PUs of a class, or the nodes of a cluster. */
int profile_check_communication(const struct json_path *at,
                                const struct profile_communication *communication,
                                const struct profile_set *members, struct servet_error *error);

/* -- fields -- */

/* Which JSON key holds which member of the model, in the order in which a profile is written.
 * Loading, saving and freeing all walk these tables, so none of them can know a field that the
 * others do not. */

enum profile_field_type {
    FIELD_VERSION, /* the number PROFILE_VERSION; no member */
    FIELD_STRING,  /* char *; absent: NULL */
    FIELD_U32,
    FIELD_U64,
    FIELD_NUMBER, /* double */
    FIELD_BOOL,
    FIELD_ORIGIN, /* enum profile_origin: "declared", "measured", "inferred", "quoted" */
    FIELD_SET,    /* cpulist text */
    FIELD_GROUPS, /* array of cpulist texts; pointer at offset, count at count_offset */
    FIELD_PAIRS,  /* array of [a, b]; the same */
    FIELD_ARRAY,  /* array of `element` objects; the same */
    FIELD_MAP,    /* object with string values: struct profile_condition; the same */
    FIELD_OBJECT, /* one `element` object, held at offset */
};

struct profile_object;

struct profile_field {
    const char *key;
    enum profile_field_type type;
    bool required; /* refused when absent; never left out when written */
    size_t offset;
    size_t count_offset;
    const struct profile_object *element;
    double absent; /* FIELD_NUMBER: the value that stands for "not there" */
};

struct profile_object {
    const char *name; /* as the schema's "$defs" calls it */
    size_t size;
    const struct profile_field *fields;
    size_t field_count;
};

extern const struct profile_object profile_document; /* struct servet_profile */

/* The texts of enum profile_origin. */
extern const char *const profile_origin_names[4];

/* Frees what the members of `object` own, not `object` itself. */
void profile_object_free(const struct profile_object *type, void *object);

#endif
