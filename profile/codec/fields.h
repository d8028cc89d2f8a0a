/* Which JSON key holds which member of the model, in the order in which a profile is written.
 * Loading, saving and freeing all walk these tables, so none of them can know a field that the
 * others do not. */
#ifndef SERVET_PROFILE_CODEC_FIELDS_H
#define SERVET_PROFILE_CODEC_FIELDS_H

#include "profile/model.h"

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
