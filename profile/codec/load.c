/* A profile from its file: its text, the values in that (json.c), walked along the table of fields.
 * Unknown keys are kept, missing ones are refused; the form of one value is checked in values.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/file.h"
#include "profile/codec/codec.h"
#include "profile/model.h"
#include "profile/scope.h"

#define EXTRA_LIMIT 4096u /* keys that are not known: a newer version has a handful an object */

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
        return profile_load_refuse(loader, &JSON_PATH_KEY(at, key), value,
                                   "no more than 4096 unknown keys");
    }
    struct profile_extra *more = reallocarray(profile->extras, count + 1, sizeof *more);
    if (!more) {
        return profile_load_no_memory(loader);
    }
    profile->extras = more;
    struct profile_extra *extra = &more[profile->extra_count++];
    extra->where = strdup(profile_json_path_text(at, path, sizeof path));
    extra->key = strdup(key);
    extra->value = profile_json_text(value, false);
    return extra->where && extra->key && extra->value ? 0 : profile_load_no_memory(loader);
}

static int note_unknown(struct profile_loader *loader, const struct json_path *at)
{
    char path[JSON_PATH_SIZE];
    if (loader->profile->unknown) {
        return 0;
    }
    int length = asprintf(&loader->profile->unknown, "%s: %s", loader->file,
                          profile_json_path_text(at, path, sizeof path));
    if (length < 0) {
        loader->profile->unknown = NULL;
        return profile_load_no_memory(loader);
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
    const struct profile_json *at_key = json + 1;
    for (size_t i = 0; i < json->count; i++, at_key = profile_json_next(at_key + 1)) {
        const char *key = at_key->text;
        if (known_key(type, key)) {
            continue;
        }
        if (!loader->profile) {
            return refuse_unknown(loader, &JSON_PATH_KEY(at, key), type);
        }
        TRY(keep_extra(loader, at, key, at_key + 1));
        if (strncmp(key, "x-", 2) != 0) {
            TRY(note_unknown(loader, &JSON_PATH_KEY(at, key)));
        }
    }
    return 0;
}

/* Sets every optional field to its value for "absent". */
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

/* *value: the field's, NULL: it is not there. */
static int find_value(struct profile_loader *loader, const struct json_path *at,
                      const struct profile_json *json, const struct profile_field *field,
                      const struct profile_json **value)
{
    char path[JSON_PATH_SIZE];
    bool twice;
    *value = profile_json_get(json, field->key, &twice);
    if (!twice) {
        return 0;
    }
    return profile_error(loader->error, -EINVAL, "%s: %s: duplicate object key", loader->file,
                         profile_json_path_text(&JSON_PATH_KEY(at, field->key), path, sizeof path));
}

int profile_load_object(struct profile_loader *loader, const struct json_path *at,
                        const struct profile_json *json, const struct profile_object *type,
                        void *object)
{
    if (json->type != PROFILE_JSON_OBJECT) {
        return profile_load_refuse(loader, at, json, "an object");
    }
    for (size_t i = 0; i < type->field_count; i++) {
        set_absent(&type->fields[i], object);
    }
    /* Known keys first: the message on a file of another version must be its version, not its
     * unknown keys. Missing keys last: a misspelt key explains more. */
    const struct profile_field *missing = NULL;
    for (size_t i = 0; i < type->field_count; i++) {
        const struct profile_field *field = &type->fields[i];
        const struct profile_json *value;
        TRY(find_value(loader, at, json, field, &value));
        if (value && !(loader->places_only && field->aside)) {
            TRY(profile_load_value(loader, &JSON_PATH_KEY(at, field->key), value, field, object));
        } else if (!value && !missing && field->required) {
            missing = field;
        }
    }
    TRY(keep_unknown_keys(loader, at, json, type));
    return missing ? profile_load_missing(loader, &JSON_PATH_KEY(at, missing->key), missing) : 0;
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
        return profile_load_no_memory(loader);
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

static int parse_text(struct profile_loader *loader, char *text, size_t length,
                      struct servet_profile **out)
{
    FREED struct profile_json *values = NULL;
    TRY(profile_json_read(text, length, loader->file, &values, loader->error));
    return load_document(loader, values, out);
}

int profile_parse(const char *text, size_t length, const char *name, struct servet_profile **out,
                  struct servet_error *error)
{
    struct profile_loader loader = {.file = name, .error = error};
    FREED char *copy = malloc(length + 1);
    if (!copy) {
        return profile_load_no_memory(&loader);
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    return parse_text(&loader, copy, length, out);
}

/* -- files, read whole and within bounds -- */

/* Far above what a real one needs: a profile of 256 PUs with every pair listed takes half a MiB, a
 * list of 100,000 nodes a few. */
#define FILE_LIMIT_BYTES ((size_t)16 << 20)

/* No stdio: a FILE costs the program an entry in a list with a lock, and a buffer. */
static int read_all(int fd, size_t size, char **out, size_t *length)
{
    size_t used = 0;
    ssize_t got = 1;
    FREED char *text = malloc(size + 1);
    if (!text) {
        return -ENOMEM;
    }
    while (used < size && got > 0) {
        do { /* musl has no TEMP_FAILURE_RETRY() */
            got = read(fd, text + used, size - used);
        } while (got < 0 && errno == EINTR);
        used += got > 0 ? (size_t)got : 0;
    }
    if (got < 0) {
        return -errno;
    }
    text[used] = '\0';
    *out = TAKE(text);
    *length = used;
    return 0;
}

int profile_read_text(const char *path, char **text, size_t *length, struct servet_error *error)
{
    struct stat info;
    if (!*path) { /* of a variable that is not set, say */
        return profile_error(error, -ENOENT, "expected the name of a file, got ''");
    }
    const int fd = profile_open_plain(path);
    int rc = fd < 0 ? fd : fstat(fd, &info) < 0 ? -errno : 0;
    const bool large = rc == 0 && (size_t)info.st_size > FILE_LIMIT_BYTES;
    if (rc == 0 && !large) {
        rc = read_all(fd, (size_t)info.st_size, text, length);
    }
    if (fd >= 0) {
        close(fd);
    }
    if (large) {
        return profile_error(error, -EINVAL, "%s: larger than %zu MiB, expected a profile", path,
                             FILE_LIMIT_BYTES >> 20);
    }
    if (rc == -EINVAL) {
        return profile_error(error, rc, "%s: not a regular file, expected a profile", path);
    }
    return rc < 0 ? profile_error(error, rc, "%s: %s", path, strerrordesc_np(-rc)) : 0;
}

static int load_file(const char *path, struct profile_loader loader, struct servet_profile **out)
{
    FREED char *text = NULL;
    size_t length;
    TRY(profile_read_text(path, &text, &length, loader.error));
    return parse_text(&loader, text, length, out);
}

int profile_load(const char *path, struct servet_profile **out, struct servet_error *error)
{
    return load_file(path, (struct profile_loader){.file = path, .error = error}, out);
}

int profile_load_node(const char *path, struct servet_profile **out, struct servet_error *error)
{
    return load_file(
        path, (struct profile_loader){.file = path, .error = error, .places_only = true}, out);
}
