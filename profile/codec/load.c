/* A profile from its text: its values (json.c), walked along the table of fields. Whatever is
 * wrong is named with its path and what was expected there; what is not known is kept. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/codec/codec.h"
#include "profile/model.h"

static size_t append(const struct json_path *path, char *buffer, size_t size)
{
    if (!path->parent) {
        return (size_t)snprintf(buffer, size, "$");
    }
    size_t used = append(path->parent, buffer, size);
    if (used >= size) {
        return used;
    }
    int n = path->key ? snprintf(buffer + used, size - used, ".%s", path->key)
                      : snprintf(buffer + used, size - used, "[%zu]", path->index);
    return used + (size_t)n;
}

const char *profile_json_path_text(const struct json_path *path, char *buffer, size_t size)
{
    append(path, buffer, size);
    return buffer;
}

/* Bounds on what a hostile file can make us allocate, far above what a real one needs: a profile of
 * 256 PUs with every pair listed takes half a MiB, a list of 100,000 nodes a few. */
#define IDS_LIMIT                                                                                  \
    ((size_t)PROFILE_SET_LIMIT) /* members of all sets together: "0-9999999" is short */
#define ARRAY_LIMIT 65536u      /* objects in one array */
#define SHOWN_BYTES 48          /* of a value that is refused */
#define WORDS_SIZE 128          /* of the list of words that one field may be */
#define EXTRA_LIMIT 4096u /* keys that are not known: a newer version has a handful an object */

/* -- refusing -- */

static void describe(const struct profile_json *json, char *out, size_t size)
{
    if (json->type == PROFILE_JSON_OBJECT || json->type == PROFILE_JSON_ARRAY) {
        snprintf(out, size, "%s", json->type == PROFILE_JSON_OBJECT ? "an object" : "an array");
        return;
    }
    char *text = profile_json_text(json);
    snprintf(out, size, "%s", text ? text : "something else");
    if (text && strlen(text) >= size) {
        memcpy(out + size - 4, "...", 4);
    }
    free(text);
}

static int refuse(struct profile_loader *loader, const struct json_path *at,
                  const struct profile_json *found, const char *expected)
{
    char path[JSON_PATH_SIZE], shown[SHOWN_BYTES];
    profile_json_path_text(at, path, sizeof path);
    if (!found) {
        return profile_error(loader->error, -EINVAL, "%s: %s: missing, expected %s", loader->file,
                             path, expected);
    }
    describe(found, shown, sizeof shown);
    return profile_error(loader->error, -EINVAL, "%s: %s: found %s, expected %s", loader->file,
                         path, shown, expected);
}

static int no_memory(struct profile_loader *loader)
{
    return profile_error(loader->error, -ENOMEM, "%s: %s", loader->file, strerrordesc_np(ENOMEM));
}

/* -- one value -- */

static int load_version(struct profile_loader *loader, const struct json_path *at,
                        const struct profile_json *json, const struct profile_field *field)
{
    int64_t version = json->type == PROFILE_JSON_INTEGER ? profile_json_integer(json) : 0;
    if (version >= 1 && (double)version <= field->high) {
        loader->version = (int)version;
        return 0;
    }
    char expected[96];
    snprintf(expected, sizeof expected,
             "version %g, the latest that servet " SERVET_VERSION " understands", field->high);
    return refuse(loader, at, json, expected);
}

static int load_string(struct profile_loader *loader, const struct json_path *at,
                       const struct profile_json *json, char **out)
{
    if (json->type != PROFILE_JSON_STRING) {
        return refuse(loader, at, json, "a string");
    }
    *out = strdup(json->text);
    if (!*out) {
        return no_memory(loader);
    }
    profile_clean_text(*out);
    return 0;
}

static int load_u32(struct profile_loader *loader, const struct json_path *at,
                    const struct profile_json *json, uint32_t *out)
{
    int64_t value = json->type == PROFILE_JSON_INTEGER ? profile_json_integer(json) : -1;
    if (value < 0 || value > UINT32_MAX) {
        return refuse(loader, at, json, "an integer from 0 to 4294967295");
    }
    *out = (uint32_t)value;
    return 0;
}

static int load_u64(struct profile_loader *loader, const struct json_path *at,
                    const struct profile_json *json, uint64_t *out)
{
    int64_t value = json->type == PROFILE_JSON_INTEGER ? profile_json_integer(json) : -1;
    if (value < 0) {
        return refuse(loader, at, json, "an integer from 0 to 9223372036854775807");
    }
    *out = (uint64_t)value;
    return 0;
}

static bool is_number(const struct profile_json *json)
{
    return json->type == PROFILE_JSON_INTEGER || json->type == PROFILE_JSON_REAL;
}

static int load_number(struct profile_loader *loader, const struct json_path *at,
                       const struct profile_json *json, double *out)
{
    double value = is_number(json) ? profile_json_number(json) : -1;
    if (value < 0) {
        return refuse(loader, at, json, "a number that is not negative");
    }
    *out = value;
    return 0;
}

static int load_bool(struct profile_loader *loader, const struct json_path *at,
                     const struct profile_json *json, bool *out)
{
    if (json->type != PROFILE_JSON_TRUE && json->type != PROFILE_JSON_FALSE) {
        return refuse(loader, at, json, "true or false");
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
    return refuse(loader, at, json, profile_field_words(field, words, sizeof words));
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
        return no_memory(loader);
    }
    if (rc < 0) {
        return refuse(loader, at, json,
                      "a list such as \"0-3,8\" in a string, numbers below 16777216");
    }
    loader->ids += out->count;
    if (loader->ids > IDS_LIMIT) {
        return refuse(loader, at, json, "no more than 16777216 members in all lists together");
    }
    return 0;
}

/* -- arrays -- */

/* Room for every item of the array; *count grows as they are loaded, so that a half-loaded one can
 * be freed. */
static int open_array(struct profile_loader *loader, const struct json_path *at,
                      const struct profile_json *json, size_t size, void *member)
{
    if (json->type != PROFILE_JSON_ARRAY) {
        return refuse(loader, at, json, "an array");
    }
    if (!json->count) {
        return 0;
    }
    void *memory = calloc(json->count, size);
    memcpy(member, &memory, sizeof memory);
    return memory ? 0 : no_memory(loader);
}

static int load_groups(struct profile_loader *loader, const struct json_path *at,
                       const struct profile_json *json, struct profile_set **member, size_t *count)
{
    int rc = open_array(loader, at, json, sizeof **member, member);
    const struct profile_json *item = json + 1;
    for (size_t i = 0; rc == 0 && i < json->count; i++, item = profile_json_next(item)) {
        (*count)++;
        rc = load_set(loader, &JSON_PATH_ITEM(at, i), item, &(*member)[i]);
    }
    return rc;
}

static int load_pair(struct profile_loader *loader, const struct json_path *at,
                     const struct profile_json *json, struct profile_pair *out)
{
    if (json->type != PROFILE_JSON_ARRAY || json->count != 2) {
        return refuse(loader, at, json, "a pair such as [0, 5]");
    }
    const struct profile_json *a = json + 1, *b = profile_json_next(a);
    int rc = load_u32(loader, &JSON_PATH_ITEM(at, 0), a, &out->a);
    return rc < 0 ? rc : load_u32(loader, &JSON_PATH_ITEM(at, 1), b, &out->b);
}

static int load_pairs(struct profile_loader *loader, const struct json_path *at,
                      const struct profile_json *json, struct profile_pair **member, size_t *count)
{
    int rc = open_array(loader, at, json, sizeof **member, member);
    const struct profile_json *item = json + 1;
    for (size_t i = 0; rc == 0 && i < json->count; i++, item = profile_json_next(item)) {
        (*count)++;
        rc = load_pair(loader, &JSON_PATH_ITEM(at, i), item, &(*member)[i]);
    }
    return rc;
}

static int load_pair_figure(struct profile_loader *loader, const struct json_path *at,
                            const struct profile_json *json, struct profile_pair_figure *out)
{
    if (json->type != PROFILE_JSON_ARRAY || json->count != 3) {
        return refuse(loader, at, json, "a pair and its figure such as [0, 5, 2.5e-8]");
    }
    const struct profile_json *a = json + 1, *b = profile_json_next(a);
    int rc = load_u32(loader, &JSON_PATH_ITEM(at, 0), a, &out->a);
    rc = rc < 0 ? rc : load_u32(loader, &JSON_PATH_ITEM(at, 1), b, &out->b);
    return rc < 0 ? rc
                  : load_number(loader, &JSON_PATH_ITEM(at, 2), profile_json_next(b), &out->value);
}

static int load_pair_figures(struct profile_loader *loader, const struct json_path *at,
                             const struct profile_json *json, struct profile_pair_figure **member,
                             size_t *count)
{
    int rc = open_array(loader, at, json, sizeof **member, member);
    const struct profile_json *item = json + 1;
    for (size_t i = 0; rc == 0 && i < json->count; i++, item = profile_json_next(item)) {
        (*count)++;
        rc = load_pair_figure(loader, &JSON_PATH_ITEM(at, i), item, &(*member)[i]);
    }
    return rc;
}

static int load_array(struct profile_loader *loader, const struct json_path *at,
                      const struct profile_json *json, const struct profile_field *field,
                      void *object)
{
    const struct profile_object *element = field->element;
    void **member = (void *)((char *)object + field->offset);
    size_t *count = (void *)((char *)object + field->count_offset);
    if (json->type == PROFILE_JSON_ARRAY && json->count > ARRAY_LIMIT) {
        return refuse(loader, at, json, "no more than 65536 objects");
    }
    int rc = open_array(loader, at, json, element->size, member);
    const struct profile_json *item = json + 1;
    for (size_t i = 0; rc == 0 && i < json->count; i++, item = profile_json_next(item)) {
        (*count)++;
        rc = profile_load_object(loader, &JSON_PATH_ITEM(at, i), item, element,
                                 (char *)*member + i * element->size);
    }
    return rc;
}

/* A number that stands for an only item is read as that item: [{"LONE": NUMBER}]. */
static int load_lone(struct profile_loader *loader, const struct json_path *at,
                     const struct profile_json *json, const struct profile_field *field,
                     void *object)
{
    const struct profile_json item[] = {
        {.type = PROFILE_JSON_ARRAY, .count = 1, .size = 4, .text = ""},
        {.type = PROFILE_JSON_OBJECT, .count = 1, .size = 3, .text = ""},
        {.type = PROFILE_JSON_STRING, .count = strlen(field->lone), .size = 1, .text = field->lone},
        *json,
    };
    return load_array(loader, at, item, field, object);
}

static int load_map(struct profile_loader *loader, const struct json_path *at,
                    const struct profile_json *json, struct profile_condition **member,
                    size_t *count)
{
    if (json->type != PROFILE_JSON_OBJECT) {
        return refuse(loader, at, json, "an object");
    }
    *member = json->count ? calloc(json->count, sizeof **member) : NULL;
    if (json->count && !*member) {
        return no_memory(loader);
    }
    int rc = 0;
    const struct profile_json *key = json + 1;
    for (size_t i = 0; rc == 0 && i < json->count; i++, key = profile_json_next(key + 1)) {
        struct profile_condition *condition = &(*member)[(*count)++];
        condition->key = strdup(key->text);
        if (condition->key) {
            profile_clean_text(condition->key);
        }
        rc = condition->key
                 ? load_string(loader, &JSON_PATH_KEY(at, key->text), key + 1, &condition->value)
                 : no_memory(loader);
    }
    return rc;
}

/* -- objects -- */

static int load_field(struct profile_loader *loader, const struct json_path *at,
                      const struct profile_json *json, const struct profile_field *field,
                      void *object)
{
    void *member = (char *)object + field->offset;
    size_t *count = (void *)((char *)object + field->count_offset);
    switch (field->type) {
    case FIELD_VERSION:
        return load_version(loader, at, json, field);
    case FIELD_STRING:
        return load_string(loader, at, json, member);
    case FIELD_U32:
        return load_u32(loader, at, json, member);
    case FIELD_U64:
        return load_u64(loader, at, json, member);
    case FIELD_NUMBER:
        return load_number(loader, at, json, member);
    case FIELD_BOOL:
        return load_bool(loader, at, json, member);
    case FIELD_WORD:
        return load_word(loader, at, json, field, member);
    case FIELD_SET:
        return load_set(loader, at, json, member);
    case FIELD_GROUPS:
        return load_groups(loader, at, json, member, count);
    case FIELD_PAIRS:
        return load_pairs(loader, at, json, member, count);
    case FIELD_PAIR_FIGURES:
        return load_pair_figures(loader, at, json, member, count);
    case FIELD_ARRAY:
        return field->lone && is_number(json) ? load_lone(loader, at, json, field, object)
                                              : load_array(loader, at, json, field, object);
    case FIELD_MAP:
        return load_map(loader, at, json, member, count);
    case FIELD_OBJECT:
        return profile_load_object(loader, at, json, field->element, member);
    }
    return -EINVAL;
}

static int refuse_missing(struct profile_loader *loader, const struct json_path *at,
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
    return refuse(loader, at, NULL,
                  field->type == FIELD_WORD ? profile_field_words(field, words, sizeof words)
                                            : kinds[field->type]);
}

static bool known_key(const struct profile_object *type, const char *key)
{
    for (size_t i = 0; i < type->field_count; i++) {
        if (strcmp(type->fields[i].key, key) == 0) {
            return true;
        }
    }
    return false;
}

static int keep_extra(struct profile_loader *loader, const struct json_path *at, const char *key,
                      const struct profile_json *value)
{
    char path[JSON_PATH_SIZE];
    struct servet_profile *profile = loader->profile;
    size_t count = profile->extra_count;
    if (count == EXTRA_LIMIT) {
        return refuse(loader, &JSON_PATH_KEY(at, key), value, "no more than 4096 unknown keys");
    }
    struct profile_extra *more = reallocarray(profile->extras, count + 1, sizeof *more);
    if (!more) {
        return no_memory(loader);
    }
    profile->extras = more;
    struct profile_extra *extra = &more[profile->extra_count++];
    extra->where = strdup(profile_json_path_text(at, path, sizeof path));
    extra->key = strdup(key);
    extra->value = profile_json_text(value);
    return extra->where && extra->key && extra->value ? 0 : no_memory(loader);
}

static int note_unknown(struct profile_loader *loader, const struct json_path *at)
{
    char path[JSON_PATH_SIZE];
    if (loader->unknown++) {
        return 0;
    }
    int length = asprintf(&loader->profile->unknown, "%s: %s", loader->file,
                          profile_json_path_text(at, path, sizeof path));
    if (length < 0) {
        loader->profile->unknown = NULL;
        return no_memory(loader);
    }
    profile_clean_text(loader->profile->unknown);
    return 0;
}

static int refuse_unknown(struct profile_loader *loader, const struct json_path *at,
                          const struct profile_object *type)
{
    char path[JSON_PATH_SIZE];
    return profile_error(loader->error, -EINVAL, "%s: %s: unknown field, expected one of a %s",
                         loader->file, profile_json_path_text(at, path, sizeof path), type->name);
}

/* Keys that begin with x- are free for other tools; others are of a newer version, or misspelt. */
static int keep_unknown_keys(struct profile_loader *loader, const struct json_path *at,
                             const struct profile_json *json, const struct profile_object *type)
{
    int rc = 0;
    const struct profile_json *at_key = json + 1;
    for (size_t i = 0; rc == 0 && i < json->count; i++, at_key = profile_json_next(at_key + 1)) {
        const char *key = at_key->text;
        if (known_key(type, key)) {
            continue;
        }
        if (!loader->profile) {
            return refuse_unknown(loader, &JSON_PATH_KEY(at, key), type);
        }
        rc = keep_extra(loader, at, key, at_key + 1);
        if (rc == 0 && strncmp(key, "x-", 2) != 0) {
            rc = note_unknown(loader, &JSON_PATH_KEY(at, key));
        }
    }
    return rc;
}

/* What stands for "not there", for every field that may be so. */
static void set_absent(const struct profile_field *field, void *object)
{
    void *member = (char *)object + field->offset;
    switch (field->type) {
    case FIELD_NUMBER:
        *(double *)member = field->absent;
        break;
    case FIELD_U32:
        *(uint32_t *)member = (uint32_t)(int64_t)field->absent;
        break;
    case FIELD_U64:
        *(uint64_t *)member = (uint64_t)(int64_t)field->absent;
        break;
    case FIELD_WORD:
        *(unsigned *)member = (unsigned)field->absent;
        break;
    case FIELD_OBJECT:
        for (size_t i = 0; i < field->element->field_count; i++) {
            set_absent(&field->element->fields[i], member);
        }
        break;
    default:
        break;
    }
}

static int load_if_there(struct profile_loader *loader, const struct json_path *at,
                         const struct profile_json *json, const struct profile_field *field,
                         void *object)
{
    char path[JSON_PATH_SIZE];
    bool twice;
    const struct profile_json *value = profile_json_get(json, field->key, &twice);
    if (twice) {
        return profile_error(
            loader->error, -EINVAL, "%s: %s: duplicate object key", loader->file,
            profile_json_path_text(&JSON_PATH_KEY(at, field->key), path, sizeof path));
    }
    if (!value || (loader->places_only && field->aside)) {
        return 0;
    }
    return load_field(loader, &JSON_PATH_KEY(at, field->key), value, field, object);
}

int profile_load_object(struct profile_loader *loader, const struct json_path *at,
                        const struct profile_json *json, const struct profile_object *type,
                        void *object)
{
    if (json->type != PROFILE_JSON_OBJECT) {
        return refuse(loader, at, json, "an object");
    }
    for (size_t i = 0; i < type->field_count; i++) {
        set_absent(&type->fields[i], object);
    }
    /* What is there first: a file of another version should be told that, not which of its keys we
     * do not know. What is missing last: a key that is misspelt says more. */
    int rc = 0;
    bool twice;
    for (size_t i = 0; rc == 0 && i < type->field_count; i++) {
        rc = load_if_there(loader, at, json, &type->fields[i], object);
    }
    if (rc == 0) {
        rc = keep_unknown_keys(loader, at, json, type);
    }
    for (size_t i = 0; rc == 0 && i < type->field_count; i++) {
        const struct profile_field *field = &type->fields[i];
        if (field->required && field->since <= loader->version &&
            !profile_json_get(json, field->key, &twice)) {
            rc = refuse_missing(loader, &JSON_PATH_KEY(at, field->key), field);
        }
    }
    return rc;
}

/* -- the whole -- */

/* Profiles of before had the layer's number in "seconds" where nothing was measured. */
static void forget_ranks(struct profile_communication *communication)
{
    for (size_t i = 0; i < communication->layer_count; i++) {
        struct profile_layer *layer = &communication->layers[i];
        layer->seconds = layer->quality.origin == PROFILE_DECLARED ? 0 : layer->seconds;
    }
}

static int load_document(struct profile_loader *loader, const struct profile_json *json,
                         struct servet_profile **out)
{
    struct servet_profile *profile = calloc(1, sizeof *profile);
    if (!profile) {
        return no_memory(loader);
    }
    loader->profile = profile;
    int rc = profile_load_object(loader, &JSON_PATH_ROOT, json, &profile_document, profile);
    forget_ranks(&profile->network);
    for (size_t i = 0; i < profile->class_count; i++) {
        forget_ranks(&profile->classes[i].communication);
    }
    if (rc == 0) {
        struct servet_error why;
        rc = profile_check(profile, &why);
        if (rc < 0) {
            profile_error(loader->error, rc, "%s: %s", loader->file, why.text);
        }
    }
    if (rc < 0) {
        profile_free(profile);
        return rc;
    }
    *out = profile;
    return 0;
}

static int parse(struct profile_loader *loader, const char *text, size_t length,
                 struct servet_profile **out)
{
    struct profile_json_text json;
    int rc = profile_json_read(text, length, loader->file, &json, loader->error);
    if (rc == 0) {
        rc = load_document(loader, json.values, out);
        profile_json_free(&json);
    }
    return rc;
}

int profile_parse(const char *text, size_t length, const char *name, struct servet_profile **out,
                  struct servet_error *error)
{
    struct profile_loader loader = {.file = name, .error = error};
    return parse(&loader, text, length, out);
}

int profile_parse_places(const char *text, size_t length, const char *name,
                         struct servet_profile **out, struct servet_error *error)
{
    struct profile_loader loader = {.file = name, .error = error, .places_only = true};
    return parse(&loader, text, length, out);
}
