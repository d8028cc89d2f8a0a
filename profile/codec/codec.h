/* The codec: one table of fields, the JSON reader, loading, saving and checks. */
#pragma once

#include <stddef.h>

#include "profile/model.h"

/* -- path -- */

/* Where in a profile something is: "$.node_classes[0].caches[1].size_bytes". A path is a chain of
 * frames on the stack of the function that walks the profile, so that it costs nothing until an
 * error has to be worded. */

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

/* -- refuse -- */

/* Checks of promises that hold in every part of a profile. All: 0, or -EINVAL with the path of the
 * field. */

/* -EINVAL with "PATH: " and what is wrong there; `key` may be NULL. */
int profile_refuse(struct servet_error *error, const struct json_path *at, const char *key,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

int profile_check_number(const struct json_path *at, const char *key, double value,
                         bool zero_allowed, struct servet_error *error);
int profile_check_integer(const struct json_path *at, const char *key, uint64_t value, uint64_t low,
                          uint64_t high, struct servet_error *error);
/* Pairs of `members`, each once, in ascending order, the lower number first: the beginning of each
 * of the items, which have `size` bytes. */
int profile_check_pairs(const struct json_path *at, const void *items, size_t size, size_t count,
                        const struct profile_set *members, struct servet_error *error);
/* A relation between `members`: disjoint groups, ordered by lowest member; pairs as
 * profile_check_pairs() has them. 0,
 * -EINVAL with the path, -ENOMEM. */
int profile_check_relation(const struct json_path *at, const struct profile_relation *relation,
                           const struct profile_set *members, struct servet_error *error);

/* -- fields -- */

/* Which JSON key holds which member of a struct, in the order in which it is written, with the
 * range of its values and what it means. Loading, saving, checking, freeing, the JSON Schema and
 * the list in servet-profile(5) all walk these tables, so none of them can know a field that the
 * others do not. */

enum profile_field_type {
    FIELD_VERSION, /* 1 to `high`, the number of the format; no member */
    FIELD_STRING,  /* char *; absent: NULL */
    FIELD_U32,
    FIELD_U64,
    FIELD_NUMBER, /* double, finite */
    FIELD_BOOL,
    FIELD_WORD,         /* an enum: the position of the string in `words` */
    FIELD_SET,          /* cpulist text */
    FIELD_GROUPS,       /* array of cpulist texts; pointer at offset, count at count_offset */
    FIELD_PAIRS,        /* array of [a, b]; the same */
    FIELD_PAIR_FIGURES, /* array of [a, b, value]; the same */
    FIELD_ARRAY,        /* array of `element` objects; the same */
    FIELD_MAP,          /* object with string values: struct profile_condition; the same */
    FIELD_OBJECT,       /* one `element` object, held at offset */
};

struct profile_object;

struct profile_field {
    const char *key;
    enum profile_field_type type;
    bool required;  /* refused when absent; never left out when written */
    bool positive;  /* FIELD_NUMBER: 0 is refused, unless it stands for "not there" */
    bool aside;     /* no place is chosen by it: profile_load_node() passes it over */
    bool ascending; /* FIELD_ARRAY: by the first field of its items, each value once */
    bool disjoint;  /* FIELD_OBJECT, a relation: its groups are */
    bool speaks_of; /* FIELD_SET: what is beside it speaks of these members, where there are any */
    double low;     /* least value; of a list its least number of members or items */
    double high;    /* greatest value; 0: the type's */
    double absent;  /* the value that stands for "not there" in numbers, integers and words */
    size_t offset;
    size_t count_offset;
    const struct profile_object *element;
    const char *const *words; /* ends with NULL */
    /* For people, NULL but where PROFILE_FIELDS_EXPLAINED is set: what is linked into programs does
     * not carry it. */
    const char *unit;
    const char *meaning;
};

struct profile_object {
    const char *name; /* as the schema's "$defs" calls it */
    const char *meaning;
    size_t size;
    const struct profile_field *fields;
    size_t field_count;
};

/* The rows of a table. `says` is what the field means; further members of the row may follow. */
#ifdef PROFILE_FIELDS_EXPLAINED
#define PROFILE_SAYS(text) text
#else
#define PROFILE_SAYS(text) NULL
#endif
#define PROFILE_OBJECT(title, type, rows, says)                                                    \
    {                                                                                              \
        .name = title, .meaning = PROFILE_SAYS(says), .size = sizeof(type), .fields = rows,        \
        .field_count = sizeof(rows) / sizeof *(rows)                                               \
    }
#define PROFILE_NAMED(name, kind, holder, member, says, ...)                                       \
    {                                                                                              \
        .key = name, .type = kind, .offset = offsetof(holder, member),                             \
        .meaning = PROFILE_SAYS(says), __VA_ARGS__                                                 \
    }
/* A member whose key is its name. */
#define PROFILE_FIELD(kind, holder, member, ...)                                                   \
    PROFILE_NAMED(#member, kind, holder, member, __VA_ARGS__)
#define PROFILE_COUNTED(name, kind, holder, member, count, ...)                                    \
    PROFILE_NAMED(name, kind, holder, member, __VA_ARGS__, .count_offset = offsetof(holder, count))
#define PROFILE_UNIT(text) .unit = PROFILE_SAYS(text)

extern const struct profile_object profile_document;             /* struct servet_profile */
extern const struct profile_object profile_communication_object; /* struct profile_communication */

/* The items of a list that `object` holds, and their number. */
static inline const void *profile_field_items(const struct profile_field *field, const void *object)
{
    return *(const void *const *)(const void *)((const char *)object + field->offset);
}

static inline size_t profile_field_count(const struct profile_field *field, const void *object)
{
    return *(const size_t *)(const void *)((const char *)object + field->count_offset);
}

/* The texts of enum profile_origin. */
extern const char *const profile_origin_names[];
/* The texts of enum profile_kernel. */
extern const char *const profile_kernel_names[];
extern const char *const profile_device_kind_names[];

/* -- what a table alone is enough for -- */

/* The item of a list, as an object; where it is none, its fields have no keys. */
const struct profile_object *profile_field_item(const struct profile_field *field);
/* Frees what the members of `object` own, not `object` itself. */
void profile_object_free(const struct profile_object *type, void *object);
/* The same of parts by themselves, which are empty then. */
void profile_relation_free(struct profile_relation *relation);
void profile_layer_free(struct profile_layer *layer);
void profile_communication_free(struct profile_communication *communication);
void profile_memory_level_free(struct profile_memory_level *level);
void profile_memory_free(struct profile_memory *memory);
void profile_device_free(struct profile_device *device);
void profile_cache_free(struct profile_cache *cache);
void profile_class_free(struct profile_class *node_class);
void profile_bsp_free(struct profile_bsp *bsp);
/* Does the member hold what its absence means? */
bool profile_field_absent(const struct profile_field *field, const void *object);
/* The words of a FIELD_WORD as people list them, cut to `size`; returns `buffer`. */
const char *profile_field_words(const struct profile_field *field, char *buffer, size_t size);
/* Is every field there that has to be, within its range and as its flags say? Sets, relations and
 * pairs speak of `members`; NULL: members are not known. 0, -EINVAL with the path, -ENOMEM. */
int profile_check_members(const struct json_path *at, const struct profile_object *type,
                          const void *object, const struct profile_set *members,
                          struct servet_error *error);

/* -- json -- */

/* A text of JSON as it is read, and written. */

enum profile_json_type {
    PROFILE_JSON_NULL,
    PROFILE_JSON_TRUE,
    PROFILE_JSON_FALSE,
    PROFILE_JSON_INTEGER,
    PROFILE_JSON_REAL,
    PROFILE_JSON_STRING,
    PROFILE_JSON_ARRAY,
    PROFILE_JSON_OBJECT,
};

/* A value; what is in an array or object comes right after it, in an object each value after its
 * key, a string. */
struct profile_json {
    enum profile_json_type type;
    uint32_t count;   /* items of an array, members of an object, bytes of a string */
    uint32_t size;    /* values that it takes, itself and all that is in it */
    const char *text; /* of a string, decoded; of a number its first character */
};

/* Reads `text`, which ends with a zero behind its `length` bytes and is called `name` in errors.
 * The values, to be freed, point into it, and its strings are decoded in it; the first value is the
 * text's. 0; -EINVAL with name, line, column and what was expected; -ENOMEM. */
int profile_json_read(char *text, size_t length, const char *name, struct profile_json **values,
                      struct servet_error *error);

/* The value that follows in an array; in an object the next key. */
static inline const struct profile_json *profile_json_next(const struct profile_json *value)
{
    return value + value->size;
}
/* The value of a key, NULL: the object has none. `*twice`: it has another. */
const struct profile_json *profile_json_get(const struct profile_json *object, const char *key,
                                            bool *twice);
/* Value of a PROFILE_JSON_INTEGER. */
int64_t profile_json_integer(const struct profile_json *value);
/* Value of a PROFILE_JSON_INTEGER or PROFILE_JSON_REAL, in any locale. */
double profile_json_number(const struct profile_json *value);
/* A value as a text again, to be freed: on one line, or, for people, in `lines`: values that do not
 * fit on one take one for each of their items. NULL: there is no memory. */
char *profile_json_text(const struct profile_json *value, bool lines);

/* A text that is written twice: without `out` only its length is counted. */
struct profile_json_writer {
    char *out;
    size_t used, line_start;
    bool failed;  /* no memory for a value's text: the whole is of no use */
    bool lines;   /* as of profile_json_text() */
    bool longest; /* reals with all digits that a double may need, else the fewest that do */
};

void profile_json_put(struct profile_json_writer *to, const char *text, size_t length);
void profile_json_put_string(struct profile_json_writer *to, const char *text);
void profile_json_put_real(struct profile_json_writer *to, double value);

/* -- load -- */

struct profile_loader {
    const char *file;
    struct servet_error *error;
    struct servet_profile *profile; /* keeps the keys that are not known; NULL: they are refused */
    size_t ids;                     /* members of the sets read so far */
    bool places_only;               /* fields that are `aside` are passed over */
};

/* Fills the zeroed `object` from `json`, with the form of every field checked, not its range. 0;
 * -EINVAL with file, path, the value found and the value expected; -ENOMEM. The caller frees the
 * members read until then as well. */
int profile_load_object(struct profile_loader *loader, const struct json_path *at,
                        const struct profile_json *json, const struct profile_object *type,
                        void *object);

/* One value into its member of `object`; the same. */
int profile_load_value(struct profile_loader *loader, const struct json_path *at,
                       const struct profile_json *json, const struct profile_field *field,
                       void *object);

/* -EINVAL with file, path, what was found (NULL: nothing) and what was expected. */
int profile_load_refuse(struct profile_loader *loader, const struct json_path *at,
                        const struct profile_json *found, const char *expected);
/* The same of a field that is not there. */
int profile_load_missing(struct profile_loader *loader, const struct json_path *at,
                         const struct profile_field *field);
/* -ENOMEM with the file. */
int profile_load_no_memory(const struct profile_loader *loader);

/* All of a regular file of at most 16 MiB, to be freed. A path may come from the environment of a
 * program: a pipe must not hold the program up, a device must not be read, and a large file must
 * not fill its memory. 0; -EINVAL, -EISDIR, -ENOMEM, errors of open(2). */
int profile_read_text(const char *path, char **text, size_t *length, struct servet_error *error);
