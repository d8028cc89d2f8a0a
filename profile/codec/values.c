/* One value of a profile from its JSON, by the type of its field: what it has to look like, and how
 * it is refused. Ranges are checked afterwards, by the table (table.c). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/codec/codec.h"
#include "profile/scope.h"

/* Bounds on what a hostile file can make us allocate, far above what a real one needs: a profile of
 * 256 PUs with every pair listed takes half a MiB, a list of 100,000 nodes a few. */
#define IDS_LIMIT                                                                                  \
    ((size_t)PROFILE_SET_LIMIT) /* members of all sets together: "0-9999999" is short */
#define ARRAY_LIMIT 65536u      /* objects in one array */
#define SHOWN_BYTES 48          /* of a value that is refused */
#define WORDS_SIZE 128          /* of the list of words that one field may be */

/* -- refusing -- */

static void describe_value(const struct profile_json *json, char *out, size_t size)
{
    if (json->type == PROFILE_JSON_OBJECT || json->type == PROFILE_JSON_ARRAY) {
        snprintf(out, size, "%s", json->type == PROFILE_JSON_OBJECT ? "an object" : "an array");
        return;
    }
    char *text = profile_json_text(json, false);
    snprintf(out, size, "%s", text ? text : "something else");
    if (text && strlen(text) >= size) {
        memcpy(out + size - 4, "...", 4);
    }
    free(text);
}

int profile_load_refuse(struct profile_loader *loader, const struct json_path *at,
                        const struct profile_json *found, const char *expected)
{
    char path[JSON_PATH_SIZE], shown[SHOWN_BYTES];
    profile_json_path_text(at, path, sizeof path);
    if (!found) {
        return profile_error(loader->error, -EINVAL, "%s: %s: missing, expected %s", loader->file,
                             path, expected);
    }
    describe_value(found, shown, sizeof shown);
    return profile_error(loader->error, -EINVAL, "%s: %s: found %s, expected %s", loader->file,
                         path, shown, expected);
}

int profile_load_no_memory(const struct profile_loader *loader)
{
    return profile_error(loader->error, -ENOMEM, "%s: %s", loader->file, strerrordesc_np(ENOMEM));
}

/* -- one value -- */

static int load_version(struct profile_loader *loader, const struct json_path *at,
                        const struct profile_json *json, const struct profile_field *field)
{
    int64_t version = json->type == PROFILE_JSON_INTEGER ? profile_json_integer(json) : 0;
    if (version >= 1 && (double)version <= field->high) {
        return 0;
    }
    char expected[96];
    snprintf(expected, sizeof expected,
             "version %g, the latest that servet " SERVET_VERSION " understands", field->high);
    return profile_load_refuse(loader, at, json, expected);
}

static int load_string(struct profile_loader *loader, const struct json_path *at,
                       const struct profile_json *json, char **out)
{
    if (json->type != PROFILE_JSON_STRING) {
        return profile_load_refuse(loader, at, json, "a string");
    }
    *out = strdup(json->text);
    if (!*out) {
        return profile_load_no_memory(loader);
    }
    profile_clean_text(*out);
    return 0;
}

/* `wide`: 64 bits. */
static int load_integer(struct profile_loader *loader, const struct json_path *at,
                        const struct profile_json *json, bool wide, void *out)
{
    int64_t value = json->type == PROFILE_JSON_INTEGER ? profile_json_integer(json) : -1;
    if (value < 0 || (!wide && value > UINT32_MAX)) {
        return profile_load_refuse(loader, at, json,
                                   wide ? "an integer from 0 to 9223372036854775807"
                                        : "an integer from 0 to 4294967295");
    }
    if (wide) {
        *(uint64_t *)out = (uint64_t)value;
    } else {
        *(uint32_t *)out = (uint32_t)value;
    }
    return 0;
}

static int load_number(struct profile_loader *loader, const struct json_path *at,
                       const struct profile_json *json, double *out)
{
    const bool is_number = json->type == PROFILE_JSON_INTEGER || json->type == PROFILE_JSON_REAL;
    const double value = is_number ? profile_json_number(json) : -1;
    if (value < 0) {
        return profile_load_refuse(loader, at, json, "a number that is not negative");
    }
    *out = value;
    return 0;
}

static int load_bool(struct profile_loader *loader, const struct json_path *at,
                     const struct profile_json *json, bool *out)
{
    if (json->type != PROFILE_JSON_TRUE && json->type != PROFILE_JSON_FALSE) {
        return profile_load_refuse(loader, at, json, "true or false");
    }
    *out = json->type == PROFILE_JSON_TRUE;
    return 0;
}

static int load_word(struct profile_loader *loader, const struct json_path *at,
                     const struct profile_json *json, const struct profile_field *field,
                     unsigned *out)
{
    char words[WORDS_SIZE];
    for (unsigned i = 0; json->type == PROFILE_JSON_STRING && field->words[i]; i++) {
        if (strcmp(json->text, field->words[i]) == 0) {
            *out = i;
            return 0;
        }
    }
    return profile_load_refuse(loader, at, json, profile_field_words(field, words, sizeof words));
}

static int load_set(struct profile_loader *loader, const struct json_path *at,
                    const struct profile_json *json, struct profile_set *out)
{
    bool text = json->type == PROFILE_JSON_STRING;
    if (text && json->count == 0) {
        return 0; /* a memory-only NUMA node */
    }
    int rc = text ? profile_set_parse(json->text, out) : -EINVAL;
    if (rc == -ENOMEM) {
        return profile_load_no_memory(loader);
    }
    if (rc < 0) {
        return profile_load_refuse(loader, at, json,
                                   "a list such as \"0-3,8\" in a string, numbers below 16777216");
    }
    loader->ids += out->count;
    if (loader->ids > IDS_LIMIT) {
        return profile_load_refuse(loader, at, json,
                                   "no more than 16777216 members in all lists together");
    }
    return 0;
}

/* -- arrays -- */

/* `json`: the item; of a map its key, which its value follows. */
static int load_item(struct profile_loader *loader, const struct json_path *at,
                     const struct profile_json *json, const struct profile_field *field, void *item)
{
    const struct profile_object *type = profile_field_item(field);
    const bool array = field->type == FIELD_PAIRS || field->type == FIELD_PAIR_FIGURES;
    if (field->type == FIELD_ARRAY) {
        return profile_load_object(loader, at, json, type, item);
    }
    if (array && (json->type != PROFILE_JSON_ARRAY || json->count != type->field_count)) {
        return profile_load_refuse(loader, at, json,
                                   field->type == FIELD_PAIRS
                                       ? "a pair such as [0, 5]"
                                       : "a pair and its figure such as [0, 5, 2.5e-8]");
    }
    const struct profile_json *value = array ? json + 1 : json;
    for (size_t i = 0; i < type->field_count; i++, value = profile_json_next(value)) {
        const struct json_path part = JSON_PATH_ITEM(at, i);
        TRY(profile_load_value(loader, array ? &part : at, value, &type->fields[i], item));
    }
    return 0;
}

/* The count grows as they are loaded, so that a half-loaded list can be freed. */
static int load_items(struct profile_loader *loader, const struct json_path *at,
                      const struct profile_json *json, const struct profile_field *field,
                      void *object)
{
    const bool map = field->type == FIELD_MAP;
    const size_t size = profile_field_item(field)->size;
    size_t *count = (void *)((char *)object + field->count_offset);
    if (json->type != (map ? PROFILE_JSON_OBJECT : PROFILE_JSON_ARRAY)) {
        return profile_load_refuse(loader, at, json, map ? "an object" : "an array");
    }
    if (field->type == FIELD_ARRAY && json->count > ARRAY_LIMIT) {
        return profile_load_refuse(loader, at, json, "no more than 65536 objects");
    }
    char *memory = json->count ? calloc(json->count, size) : NULL;
    if (json->count && !memory) {
        return profile_load_no_memory(loader);
    }
    memcpy((char *)object + field->offset, &memory, sizeof memory);
    const struct profile_json *item = json + 1;
    for (size_t i = 0; i < json->count; i++, item = profile_json_next(item + map)) {
        struct json_path here = map ? JSON_PATH_KEY(at, item->text) : JSON_PATH_ITEM(at, i);
        (*count)++;
        TRY(load_item(loader, &here, item, field, memory + i * size));
    }
    return 0;
}

/* -- any of them -- */

int profile_load_value(struct profile_loader *loader, const struct json_path *at,
                       const struct profile_json *json, const struct profile_field *field,
                       void *object)
{
    void *member = (char *)object + field->offset;
    switch (field->type) {
    case FIELD_VERSION:
        return load_version(loader, at, json, field);
    case FIELD_STRING:
        return load_string(loader, at, json, member);
    case FIELD_U32:
    case FIELD_U64:
        return load_integer(loader, at, json, field->type == FIELD_U64, member);
    case FIELD_NUMBER:
        return load_number(loader, at, json, member);
    case FIELD_BOOL:
        return load_bool(loader, at, json, member);
    case FIELD_WORD:
        return load_word(loader, at, json, field, member);
    case FIELD_SET:
        return load_set(loader, at, json, member);
    case FIELD_ARRAY:
    case FIELD_GROUPS:
    case FIELD_PAIRS:
    case FIELD_PAIR_FIGURES:
    case FIELD_MAP:
        return load_items(loader, at, json, field, object);
    case FIELD_OBJECT:
        return profile_load_object(loader, at, json, field->element, member);
    }
    return -EINVAL;
}

int profile_load_missing(struct profile_loader *loader, const struct json_path *at,
                         const struct profile_field *field)
{
    static const char *const kinds[] = {
        [FIELD_VERSION] = "the version of the profile's format",
        [FIELD_STRING] = "a string",
        [FIELD_U32] = "an integer",
        [FIELD_U64] = "an integer",
        [FIELD_NUMBER] = "a number",
        [FIELD_BOOL] = "true or false",
        [FIELD_SET] = "a list such as \"0-3,8\"",
        [FIELD_GROUPS] = "an array",
        [FIELD_PAIRS] = "an array",
        [FIELD_PAIR_FIGURES] = "an array",
        [FIELD_ARRAY] = "an array",
        [FIELD_MAP] = "an object",
        [FIELD_OBJECT] = "an object",
    };
    char words[WORDS_SIZE];
    return profile_load_refuse(loader, at, NULL,
                               field->type == FIELD_WORD
                                   ? profile_field_words(field, words, sizeof words)
                                   : kinds[field->type]);
}
