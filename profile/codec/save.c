/* A profile as text: the fields of the table, in its order, and keys of other versions where they
 * were read. The text is written on one line, read back, which refuses what is no JSON, and then
 * printed for people: a diff shows what changed. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/file.h"
#include "profile/codec/codec.h"
#include "profile/model.h"
#include "profile/scope.h"

struct place {
    struct profile_json_writer *to;
    const struct servet_profile *profile;
    struct json_path path;
};

__attribute__((format(printf, 2, 3))) static void put(struct profile_json_writer *to,
                                                      const char *format, ...)
{
    char text[64];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    profile_json_put(to, text, (size_t)length);
}

static void save_set(struct profile_json_writer *to, const struct profile_set *set)
{
    char *text = to->failed ? NULL : profile_set_text(set);
    to->failed = !text;
    profile_json_put_string(to, text ? text : "");
    free(text);
}

static void save_object(const struct place *at, const struct profile_object *type,
                        const void *object);

static void save_field(const struct place *parent, const struct profile_field *field,
                       const void *object);

static void save_item(const struct place *at, const struct profile_field *field, const void *item)
{
    const struct profile_object *type = profile_field_item(field);
    const bool array = field->type == FIELD_PAIRS || field->type == FIELD_PAIR_FIGURES;
    if (field->type == FIELD_ARRAY) {
        save_object(at, type, item);
        return;
    }
    put(at->to, array ? "[" : "");
    for (size_t i = 0; i < type->field_count; i++) {
        put(at->to, i == 0 ? "" : array ? ", " : ": ");
        save_field(at, &type->fields[i], item);
    }
    put(at->to, array ? "]" : "");
}

static void save_items(const struct place *at, const struct profile_field *field,
                       const void *object)
{
    bool keys = field->type == FIELD_MAP;
    put(at->to, keys ? "{" : "[");
    for (size_t i = 0; i < profile_field_count(field, object); i++) {
        put(at->to, i > 0 ? ", " : "");
        struct place here = {at->to, at->profile, JSON_PATH_ITEM(&at->path, i)};
        const char *items = profile_field_items(field, object);
        save_item(&here, field, items + i * profile_field_item(field)->size);
    }
    put(at->to, keys ? "}" : "]");
}

static void save_field(const struct place *parent, const struct profile_field *field,
                       const void *object)
{
    struct place at = {parent->to, parent->profile, JSON_PATH_KEY(&parent->path, field->key)};
    const void *member = (const char *)object + field->offset;
    switch (field->type) {
    case FIELD_VERSION:
        put(at.to, "%d", PROFILE_VERSION);
        break;
    case FIELD_STRING:
        if (*(char *const *)member) {
            profile_json_put_string(at.to, *(char *const *)member);
        }
        break;
    case FIELD_U32:
        put(at.to, "%" PRIu32, *(const uint32_t *)member);
        break;
    case FIELD_U64:
        put(at.to, "%" PRIu64, *(const uint64_t *)member);
        break;
    case FIELD_NUMBER:
        profile_json_put_real(at.to, *(const double *)member);
        break;
    case FIELD_BOOL:
        put(at.to, *(const bool *)member ? "true" : "false");
        break;
    case FIELD_WORD:
        profile_json_put_string(at.to, field->words[*(const unsigned *)member]);
        break;
    case FIELD_SET:
        save_set(at.to, member);
        break;
    case FIELD_GROUPS:
    case FIELD_PAIRS:
    case FIELD_PAIR_FIGURES:
    case FIELD_ARRAY:
    case FIELD_MAP:
        save_items(&at, field, object);
        break;
    case FIELD_OBJECT:
        save_object(&at, field->element, member);
        break;
    }
}

static void save_key(const struct place *at, const char *key, bool *first)
{
    put(at->to, *first ? "" : ", ");
    profile_json_put_string(at->to, key);
    put(at->to, ": ");
    *first = false;
}

/* Only the last one of a repeated key is saved. */
static bool is_last(const struct servet_profile *profile, size_t index)
{
    const struct profile_extra *extra = &profile->extras[index];
    for (size_t i = index + 1; i < profile->extra_count; i++) {
        if (strcmp(profile->extras[i].key, extra->key) == 0 &&
            strcmp(profile->extras[i].where, extra->where) == 0) {
            return false;
        }
    }
    return true;
}

static void save_extras(const struct place *at, bool *first)
{
    char path[JSON_PATH_SIZE];
    const struct servet_profile *profile = at->profile;
    if (profile->extra_count == 0) {
        return;
    }
    profile_json_path_text(&at->path, path, sizeof path);
    for (size_t i = 0; i < profile->extra_count; i++) {
        const struct profile_extra *extra = &profile->extras[i];
        if (strcmp(extra->where, path) == 0 && is_last(profile, i)) {
            save_key(at, extra->key, first);
            profile_json_put(at->to, extra->value, strlen(extra->value));
        }
    }
}

static void save_object(const struct place *at, const struct profile_object *type,
                        const void *object)
{
    bool first = true;
    put(at->to, "{");
    for (size_t i = 0; i < type->field_count; i++) {
        const struct profile_field *field = &type->fields[i];
        if (field->required || !profile_field_absent(field, object)) {
            save_key(at, field->key, &first);
            save_field(at, field, object);
        }
    }
    save_extras(at, &first);
    put(at->to, "}");
}

char *profile_to_json(const struct servet_profile *profile)
{
    struct profile_json_writer to = {0};
    struct place root = {&to, profile, JSON_PATH_ROOT};
    save_object(&root, &profile_document, profile);
    FREED char *line = to.failed ? NULL : malloc(to.used + 1);
    FREED struct profile_json *values = NULL;
    if (!line) {
        return NULL;
    }
    to = (struct profile_json_writer){.out = line};
    save_object(&root, &profile_document, profile);
    line[to.used] = '\0';
    return !to.failed && profile_json_read(line, to.used, "profile", &values, NULL) == 0
               ? profile_json_text(values, true)
               : NULL;
}

int profile_save(const struct servet_profile *profile, const char *path, struct servet_error *error)
{
    struct servet_error why;
    int rc = profile_check(profile, &why);
    if (rc < 0) {
        return profile_error(error, rc, "%s: not written: %s", path, why.text);
    }
    FREED char *text = profile_to_json(profile);
    if (!text) {
        return profile_error(error, -ENOMEM, "%s: %s", path, strerrordesc_np(ENOMEM));
    }
    return profile_save_file(path, text, strlen(text), error);
}
