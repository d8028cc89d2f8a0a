#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/codec/fields.h"
#include "profile/codec/path.h"
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
#define FILE_LIMIT_BYTES ((size_t)16 << 20)
#define READ_STEP_BYTES ((size_t)64 << 10)
#define IDS_LIMIT                                                                                  \
    ((size_t)PROFILE_SET_LIMIT) /* members of all sets together: "0-9999999" is short */
#define ARRAY_LIMIT 65536u      /* objects in one array */
#define SHOWN_BYTES 48          /* of a value that is refused */

struct loader {
    const char *file;
    struct servet_error *error;
    size_t ids; /* members of the sets read so far */
};

/* -- refusing -- */

static void describe(const json_t *json, char *out, size_t size)
{
    if (json_is_object(json) || json_is_array(json)) {
        snprintf(out, size, "%s", json_is_object(json) ? "an object" : "an array");
        return;
    }
    char *text = json_dumps(json, JSON_ENCODE_ANY);
    snprintf(out, size, "%s", text ? text : "something else");
    if (text && strlen(text) >= size) {
        memcpy(out + size - 4, "...", 4);
    }
    free(text);
}

static int refuse(struct loader *loader, const struct json_path *at, const json_t *found,
                  const char *expected)
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

static int no_memory(struct loader *loader)
{
    return profile_error(loader->error, -ENOMEM, "%s: %s", loader->file, strerrordesc_np(ENOMEM));
}

/* -- one value -- */

static int load_version(struct loader *loader, const struct json_path *at, const json_t *json)
{
    if (json_is_integer(json) && json_integer_value(json) == PROFILE_VERSION) {
        return 0;
    }
    char expected[96];
    snprintf(expected, sizeof expected,
             "version %d, the only one that servet " SERVET_VERSION " understands",
             PROFILE_VERSION);
    return refuse(loader, at, json, expected);
}

static int load_string(struct loader *loader, const struct json_path *at, const json_t *json,
                       char **out)
{
    if (!json_is_string(json)) {
        return refuse(loader, at, json, "a string");
    }
    *out = strdup(json_string_value(json));
    return *out ? 0 : no_memory(loader);
}

static int load_u32(struct loader *loader, const struct json_path *at, const json_t *json,
                    uint32_t *out)
{
    if (!json_is_integer(json) || json_integer_value(json) < 0 ||
        json_integer_value(json) > UINT32_MAX) {
        return refuse(loader, at, json, "an integer from 0 to 4294967295");
    }
    *out = (uint32_t)json_integer_value(json);
    return 0;
}

static int load_u64(struct loader *loader, const struct json_path *at, const json_t *json,
                    uint64_t *out)
{
    if (!json_is_integer(json) || json_integer_value(json) < 0) {
        return refuse(loader, at, json, "an integer from 0 to 9223372036854775807");
    }
    *out = (uint64_t)json_integer_value(json);
    return 0;
}

static int load_number(struct loader *loader, const struct json_path *at, const json_t *json,
                       double *out)
{
    if (!json_is_number(json) || json_number_value(json) < 0) {
        return refuse(loader, at, json, "a number that is not negative");
    }
    *out = json_number_value(json);
    return 0;
}

static int load_bool(struct loader *loader, const struct json_path *at, const json_t *json,
                     bool *out)
{
    if (!json_is_boolean(json)) {
        return refuse(loader, at, json, "true or false");
    }
    *out = json_is_true(json);
    return 0;
}

static int load_origin(struct loader *loader, const struct json_path *at, const json_t *json,
                       enum profile_origin *out)
{
    for (unsigned i = 0; json_is_string(json) && i < 3; i++) {
        if (strcmp(json_string_value(json), profile_origin_names[i]) == 0) {
            *out = (enum profile_origin)i;
            return 0;
        }
    }
    return refuse(loader, at, json, "\"declared\", \"measured\" or \"inferred\"");
}

static int load_set(struct loader *loader, const struct json_path *at, const json_t *json,
                    struct profile_set *out)
{
    if (json_is_string(json) && json_string_length(json) == 0) {
        return 0; /* a memory-only NUMA node */
    }
    int rc = json_is_string(json) ? profile_set_parse(json_string_value(json), out) : -EINVAL;
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
static int open_array(struct loader *loader, const struct json_path *at, const json_t *json,
                      size_t size, void *member)
{
    if (!json_is_array(json)) {
        return refuse(loader, at, json, "an array");
    }
    size_t items = json_array_size(json);
    if (!items) {
        return 0;
    }
    void *memory = calloc(items, size);
    memcpy(member, &memory, sizeof memory);
    return memory ? 0 : no_memory(loader);
}

static int load_groups(struct loader *loader, const struct json_path *at, const json_t *json,
                       struct profile_set **member, size_t *count)
{
    int rc = open_array(loader, at, json, sizeof **member, member);
    for (size_t i = 0; rc == 0 && i < json_array_size(json); i++) {
        (*count)++;
        rc = load_set(loader, &JSON_PATH_ITEM(at, i), json_array_get(json, i), &(*member)[i]);
    }
    return rc;
}

static int load_pair(struct loader *loader, const struct json_path *at, const json_t *json,
                     struct profile_pair *out)
{
    if (!json_is_array(json) || json_array_size(json) != 2) {
        return refuse(loader, at, json, "a pair such as [0, 5]");
    }
    int rc = load_u32(loader, &JSON_PATH_ITEM(at, 0), json_array_get(json, 0), &out->a);
    return rc < 0 ? rc : load_u32(loader, &JSON_PATH_ITEM(at, 1), json_array_get(json, 1), &out->b);
}

static int load_pairs(struct loader *loader, const struct json_path *at, const json_t *json,
                      struct profile_pair **member, size_t *count)
{
    int rc = open_array(loader, at, json, sizeof **member, member);
    for (size_t i = 0; rc == 0 && i < json_array_size(json); i++) {
        (*count)++;
        rc = load_pair(loader, &JSON_PATH_ITEM(at, i), json_array_get(json, i), &(*member)[i]);
    }
    return rc;
}

static int load_object(struct loader *loader, const struct json_path *at, const json_t *json,
                       const struct profile_object *type, void *object);

static int load_array(struct loader *loader, const struct json_path *at, const json_t *json,
                      const struct profile_object *element, void **member, size_t *count)
{
    if (json_array_size(json) > ARRAY_LIMIT) {
        return refuse(loader, at, json, "no more than 65536 objects");
    }
    int rc = open_array(loader, at, json, element->size, member);
    for (size_t i = 0; rc == 0 && i < json_array_size(json); i++) {
        (*count)++;
        rc = load_object(loader, &JSON_PATH_ITEM(at, i), json_array_get(json, i), element,
                         (char *)*member + i * element->size);
    }
    return rc;
}

static int load_map(struct loader *loader, const struct json_path *at, const json_t *json,
                    struct profile_condition **member, size_t *count)
{
    if (!json_is_object(json)) {
        return refuse(loader, at, json, "an object");
    }
    size_t items = json_object_size(json);
    *member = items ? calloc(items, sizeof **member) : NULL;
    if (items && !*member) {
        return no_memory(loader);
    }
    int rc = 0;
    for (void *i = json_object_iter((json_t *)json); rc == 0 && i;
         i = json_object_iter_next((json_t *)json, i)) {
        const char *key = json_object_iter_key(i);
        struct profile_condition *condition = &(*member)[(*count)++];
        condition->key = strdup(key);
        rc = condition->key ? load_string(loader, &JSON_PATH_KEY(at, key),
                                          json_object_iter_value(i), &condition->value)
                            : no_memory(loader);
    }
    return rc;
}

/* -- objects -- */

static int load_field(struct loader *loader, const struct json_path *at, const json_t *json,
                      const struct profile_field *field, void *object)
{
    void *member = (char *)object + field->offset;
    size_t *count = (void *)((char *)object + field->count_offset);
    switch (field->type) {
    case FIELD_VERSION:
        return load_version(loader, at, json);
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
    case FIELD_ORIGIN:
        return load_origin(loader, at, json, member);
    case FIELD_SET:
        return load_set(loader, at, json, member);
    case FIELD_GROUPS:
        return load_groups(loader, at, json, member, count);
    case FIELD_PAIRS:
        return load_pairs(loader, at, json, member, count);
    case FIELD_ARRAY:
        return load_array(loader, at, json, field->element, member, count);
    case FIELD_MAP:
        return load_map(loader, at, json, member, count);
    case FIELD_OBJECT:
        return load_object(loader, at, json, field->element, member);
    }
    return -EINVAL;
}

static const char *expected_kind(enum profile_field_type type)
{
    static const char *const kinds[] = {
        [FIELD_VERSION] = "the version of the profile's format",
        [FIELD_STRING] = "a string",
        [FIELD_U32] = "an integer",
        [FIELD_U64] = "an integer",
        [FIELD_NUMBER] = "a number",
        [FIELD_BOOL] = "true or false",
        [FIELD_ORIGIN] = "\"declared\", \"measured\" or \"inferred\"",
        [FIELD_SET] = "a list such as \"0-3,8\"",
        [FIELD_GROUPS] = "an array",
        [FIELD_PAIRS] = "an array",
        [FIELD_ARRAY] = "an array",
        [FIELD_MAP] = "an object",
        [FIELD_OBJECT] = "an object",
    };
    return kinds[type];
}

static bool known_key(const struct profile_object *type, const char *key)
{
    for (size_t i = 0; i < type->field_count; i++) {
        if (strcmp(type->fields[i].key, key) == 0) {
            return true;
        }
    }
    return strncmp(key, "x-", 2) == 0; /* other tools' own notes */
}

static int refuse_key(struct loader *loader, const struct json_path *at,
                      const struct profile_object *type)
{
    char path[JSON_PATH_SIZE], keys[192] = "";
    for (size_t i = 0, used = 0; i < type->field_count && used < sizeof keys; i++) {
        used += (size_t)snprintf(keys + used, sizeof keys - used, "%s%s", i ? ", " : "",
                                 type->fields[i].key);
    }
    return profile_error(loader->error, -EINVAL,
                         "%s: %s: unknown key, expected one of %s or a key beginning with x-",
                         loader->file, profile_json_path_text(at, path, sizeof path), keys);
}

static int refuse_unknown_keys(struct loader *loader, const struct json_path *at,
                               const json_t *json, const struct profile_object *type)
{
    json_t *object = (json_t *)json; /* jansson iterates without changing it */
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        const char *key = json_object_iter_key(i);
        if (!known_key(type, key)) {
            return refuse_key(loader, &JSON_PATH_KEY(at, key), type);
        }
    }
    return 0;
}

static int load_object(struct loader *loader, const struct json_path *at, const json_t *json,
                       const struct profile_object *type, void *object)
{
    if (!json_is_object(json)) {
        return refuse(loader, at, json, "an object");
    }
    for (size_t i = 0; i < type->field_count; i++) {
        const struct profile_field *field = &type->fields[i];
        if (field->type == FIELD_NUMBER) {
            *(double *)(void *)((char *)object + field->offset) = field->absent;
        }
    }
    /* Fields first: a file of another version should be told that, not which of its keys we do not
     * know. */
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < type->field_count; i++) {
        const struct profile_field *field = &type->fields[i];
        const json_t *value = json_object_get(json, field->key);
        struct json_path here = JSON_PATH_KEY(at, field->key);
        if (value) {
            rc = load_field(loader, &here, value, field, object);
        } else if (field->required) {
            rc = refuse(loader, &here, NULL, expected_kind(field->type));
        }
    }
    return rc < 0 ? rc : refuse_unknown_keys(loader, at, json, type);
}

/* -- the whole -- */

static int refuse_syntax(struct loader *loader, const json_error_t *why)
{
    if (json_error_code(why) == json_error_out_of_memory) {
        return no_memory(loader);
    }
    return profile_error(loader->error, -EINVAL, "%s:%d:%d: not JSON: %s", loader->file, why->line,
                         why->column, why->text);
}

/* Profiles of before had the layer's number in "seconds" where nothing was measured. */
static void forget_ranks(struct profile_communication *communication)
{
    for (size_t i = 0; i < communication->layer_count; i++) {
        struct profile_layer *layer = &communication->layers[i];
        layer->seconds = layer->quality.origin == PROFILE_DECLARED ? 0 : layer->seconds;
    }
}

static int load_document(struct loader *loader, const json_t *json, struct servet_profile **out)
{
    struct servet_profile *profile = calloc(1, sizeof *profile);
    if (!profile) {
        return no_memory(loader);
    }
    int rc = load_object(loader, &JSON_PATH_ROOT, json, &profile_document, profile);
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

int profile_parse(const char *text, size_t length, const char *name, struct servet_profile **out,
                  struct servet_error *error)
{
    struct loader loader = {.file = name, .error = error};
    json_error_t why;
    json_t *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    if (!json) {
        return refuse_syntax(&loader, &why);
    }
    int rc = load_document(&loader, json, out);
    json_decref(json);
    return rc;
}

/* Reads to the end of the file, which need not be a regular one. Not stdio: in somebody else's
 * process a FILE costs a lock list entry and a buffer for nothing. */
static int read_all(int fd, char **out, size_t *length)
{
    char *text = NULL;
    size_t used = 0, room = 0;
    for (;;) {
        if (used == room) {
            room += READ_STEP_BYTES;
            char *more = used < FILE_LIMIT_BYTES ? realloc(text, room) : NULL;
            if (!more) {
                free(text);
                return used < FILE_LIMIT_BYTES ? -ENOMEM : -EFBIG;
            }
            text = more;
        }
        ssize_t got = TEMP_FAILURE_RETRY(read(fd, text + used, room - used));
        if (got < 0) {
            int saved = errno;
            free(text);
            return -saved;
        }
        if (got == 0) {
            *out = text;
            *length = used;
            return 0;
        }
        used += (size_t)got;
    }
}

int profile_load(const char *path, struct servet_profile **out, struct servet_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        int code = errno;
        return profile_error(error, -code, "%s: %s", path, strerrordesc_np(code));
    }
    char *text = NULL;
    size_t length = 0;
    int rc = read_all(fd, &text, &length);
    close(fd);
    if (rc == -EFBIG) {
        return profile_error(error, -EINVAL, "%s: larger than %zu MiB, expected a profile", path,
                             FILE_LIMIT_BYTES >> 20);
    }
    if (rc < 0) {
        return profile_error(error, rc, "%s: %s", path, strerrordesc_np(-rc));
    }
    rc = profile_parse(text, length, path, out, error);
    free(text);
    return rc;
}
