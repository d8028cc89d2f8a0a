/* Functions that need the table of fields alone: freeing an object, finding absent fields, and
 * checking every value against the range of its row. */
#include "profile/codec/codec.h"
#include "profile/scope.h"

#include <stdio.h>
#include <stdlib.h>

/* -- items of lists that are no objects: a set, the numbers of a pair, a name and a text -- */

static const struct profile_field set_fields[] = {{.type = FIELD_SET}};
static const struct profile_field pair_fields[] = {
    {.type = FIELD_U32, .offset = offsetof(struct profile_pair_figure, a)},
    {.type = FIELD_U32, .offset = offsetof(struct profile_pair_figure, b)},
    {.type = FIELD_NUMBER,
     .required = true,
     .positive = true,
     .offset = offsetof(struct profile_pair_figure, value)},
};
static const struct profile_field condition_fields[] = {
    {.type = FIELD_STRING, .offset = offsetof(struct profile_condition, key)},
    {.type = FIELD_STRING, .offset = offsetof(struct profile_condition, value)},
};

const struct profile_object *profile_field_item(const struct profile_field *field)
{
    static const struct profile_object items[] = {
        [FIELD_GROUPS] = {.size = sizeof(struct profile_set),
                          .fields = set_fields,
                          .field_count = 1},
        [FIELD_PAIRS] = {.size = sizeof(struct profile_pair),
                         .fields = pair_fields,
                         .field_count = 2},
        [FIELD_PAIR_FIGURES] = {.size = sizeof(struct profile_pair_figure),
                                .fields = pair_fields,
                                .field_count = 3},
        [FIELD_MAP] = {.size = sizeof(struct profile_condition),
                       .fields = condition_fields,
                       .field_count = 2},
    };
    return field->type == FIELD_ARRAY ? field->element : &items[field->type];
}

/* -- freeing -- */

static void free_items(const struct profile_field *field, const void *object)
{
    const struct profile_object *type = profile_field_item(field);
    char *items = *(char *const *)(const void *)((const char *)object + field->offset);
    for (size_t i = 0; i < profile_field_count(field, object); i++) {
        profile_object_free(type, items + i * type->size);
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
        case FIELD_PAIR_FIGURES:
        case FIELD_ARRAY:
        case FIELD_MAP:
            free_items(field, object);
            break;
        default:
            break;
        }
    }
}

void profile_free(struct servet_profile *profile)
{
    if (!profile) {
        return;
    }
    profile_object_free(&profile_document, profile);
    for (size_t i = 0; i < profile->extra_count; i++) {
        free(profile->extras[i].where);
        free(profile->extras[i].key);
        free(profile->extras[i].value);
    }
    free(profile->extras);
    free(profile->unknown);
    free(profile);
}

/* -- what is not there -- */

bool profile_field_absent(const struct profile_field *field, const void *object)
{
    const void *member = (const char *)object + field->offset;
    switch (field->type) {
    case FIELD_STRING:
        return *(void *const *)member == NULL;
    case FIELD_U32:
        return *(const uint32_t *)member == (uint32_t)(int64_t)field->absent;
    case FIELD_WORD:
        return *(const unsigned *)member == (unsigned)field->absent;
    case FIELD_U64:
        return *(const uint64_t *)member == (uint64_t)(int64_t)field->absent;
    case FIELD_NUMBER:
        /* A negative absent value stands for every negative number ("not known"). */
        return field->absent < 0 ? *(const double *)member < 0
                                 : *(const double *)member == field->absent;
    case FIELD_BOOL:
        return !field->required && !*(const bool *)member;
    case FIELD_SET:
        return ((const struct profile_set *)member)->count == 0;
    case FIELD_GROUPS:
    case FIELD_PAIRS:
    case FIELD_PAIR_FIGURES:
    case FIELD_ARRAY:
    case FIELD_MAP:
        return profile_field_count(field, object) == 0;
    case FIELD_OBJECT:
        for (size_t i = 0; i < field->element->field_count; i++) {
            if (!profile_field_absent(&field->element->fields[i], member)) {
                return false;
            }
        }
        return true;
    default:
        return false;
    }
}

/* -- ranges -- */

const char *profile_field_words(const struct profile_field *field, char *buffer, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; field->words[i] && used < size; i++) {
        const char *before = i == 0 ? "" : field->words[i + 1] ? ", " : " or ";
        used += (size_t)snprintf(buffer + used, size - used, "%s\"%s\"", before, field->words[i]);
    }
    return buffer;
}

static int check_word(const struct json_path *at, const struct profile_field *field, unsigned value,
                      struct servet_error *error)
{
    char words[128];
    for (unsigned i = 0; field->words[i]; i++) {
        if (i == value) {
            return 0;
        }
    }
    return profile_refuse(error, at, field->key, "expected %s",
                          profile_field_words(field, words, sizeof words));
}

static int check_whole(const struct json_path *at, const struct profile_field *field,
                       uint64_t value, uint64_t low, struct servet_error *error)
{
    uint64_t most = field->type == FIELD_U32 ? UINT32_MAX : INT64_MAX;
    return profile_check_integer(at, field->key, value, low,
                                 field->high > 0 ? (uint64_t)field->high : most, error);
}

static int check_real(const struct json_path *at, const struct profile_field *field, double value,
                      struct servet_error *error)
{
    if (field->high <= 0) {
        return profile_check_number(at, field->key, value, !field->positive, error);
    }
    if (value >= field->low && value <= field->high) {
        return 0;
    }
    return profile_refuse(error, at, field->key, "found %g, expected a number from %g to %g", value,
                          field->low, field->high);
}

static uint64_t whole_of(const struct profile_field *field, const void *object)
{
    const void *member = (const char *)object + field->offset;
    return field->type == FIELD_U32 ? *(const uint32_t *)member : *(const uint64_t *)member;
}

static int check_items(const struct json_path *at, const struct profile_field *field,
                       const void *object, const struct profile_set *members,
                       struct servet_error *error)
{
    struct json_path here = JSON_PATH_KEY(at, field->key);
    const char *items = profile_field_items(field, object);
    const struct profile_object *type = profile_field_item(field);
    const size_t count = profile_field_count(field, object);
    if (field->type == FIELD_PAIR_FIGURES && members) {
        TRY(profile_check_pairs(&here, items, type->size, count, members, error));
    }
    for (size_t i = 0; i < count; i++) {
        const char *item = items + i * type->size;
        TRY(profile_check_members(&JSON_PATH_ITEM(&here, i), type, item, members, error));
        if (field->ascending && i > 0) {
            TRY(check_whole(&JSON_PATH_ITEM(&here, i), &type->fields[0],
                            whole_of(&type->fields[0], item),
                            whole_of(&type->fields[0], item - type->size) + 1, error));
        }
    }
    return 0;
}

static int check_part(const struct json_path *at, const struct profile_field *field,
                      const void *part, const struct profile_set *members,
                      struct servet_error *error)
{
    struct json_path here = JSON_PATH_KEY(at, field->key);
    TRY(profile_check_members(&here, field->element, part, members, error));
    return field->disjoint && members ? profile_check_relation(&here, part, members, error) : 0;
}

static int check_field(const struct json_path *at, const struct profile_field *field,
                       const void *object, const struct profile_set *members,
                       struct servet_error *error)
{
    const void *member = (const char *)object + field->offset;
    const bool absent = profile_field_absent(field, object), lacks = absent && field->low > 0;
    if (absent && !field->required) {
        return 0;
    }
    switch (field->type) {
    case FIELD_STRING:
        return absent ? profile_refuse(error, at, field->key, "missing, expected a string") : 0;
    case FIELD_SET:
        if (lacks) {
            return profile_refuse(error, at, field->key, "found no PU, expected at least one");
        }
        return !members || profile_set_subset(member, members)
                   ? 0
                   : profile_refuse(error, at, field->key, "expected only PUs of the node class");
    case FIELD_ARRAY:
    case FIELD_PAIR_FIGURES:
        return lacks ? profile_refuse(error, at, field->key, "found none, expected at least one")
                     : check_items(at, field, object, members, error);
    case FIELD_OBJECT:
        return check_part(at, field, member, members, error);
    case FIELD_U32:
    case FIELD_U64:
        return check_whole(at, field, whole_of(field, object), (uint64_t)field->low, error);
    case FIELD_NUMBER:
        return check_real(at, field, *(const double *)member, error);
    case FIELD_WORD:
        return check_word(at, field, *(const unsigned *)member, error);
    default:
        return 0;
    }
}

int profile_check_members(const struct json_path *at, const struct profile_object *type,
                          const void *object, const struct profile_set *members,
                          struct servet_error *error)
{
    const struct profile_set *above = members;
    for (size_t i = 0; i < type->field_count; i++) {
        const struct profile_field *field = &type->fields[i];
        const struct profile_set *set = (const void *)((const char *)object + field->offset);
        members = field->speaks_of && set->count > 0 ? set : members;
    }
    for (size_t i = 0; i < type->field_count; i++) {
        const struct profile_field *field = &type->fields[i];
        TRY(check_field(at, field, object, field->speaks_of ? above : members, error));
    }
    return 0;
}
