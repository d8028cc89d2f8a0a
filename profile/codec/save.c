/* A profile as text: what the table of fields says, in its order, and keys of other versions where
 * they were read. Printed by ourselves, so that a person can read it and a diff shows what
 * changed. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/file.h"
#include "profile/codec/codec.h"
#include "profile/model.h"

#define LINE_WIDTH 120   /* columns: what fits is kept on one line */
#define INDENT_COLUMNS 2 /* per nesting level */
/* 15 digits give back every decimal number a person wrote, 17 every double (C17 5.2.4.2.2, DBL_DIG,
 * DBL_DECIMAL_DIG).
 */
#define REAL_DIGITS_FEWEST 15
#define REAL_DIGITS_MOST 17

/* -- model to jansson -- */

static json_t *save_groups(const struct profile_set *groups, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; array && i < count; i++) {
        char *text = profile_set_text(&groups[i]);
        if (!text || json_array_append_new(array, json_string(text)) < 0) {
            json_decref(array);
            array = NULL;
        }
        free(text);
    }
    return array;
}

static json_t *save_pairs(const struct profile_pair *pairs, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; array && i < count; i++) {
        json_t *pair = json_pack("[I,I]", (json_int_t)pairs[i].a, (json_int_t)pairs[i].b);
        if (json_array_append_new(array, pair) < 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *save_pair_figures(const struct profile_pair_figure *figures, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; array && i < count; i++) {
        const struct profile_pair_figure *figure = &figures[i];
        json_t *triple =
            json_pack("[I,I,f]", (json_int_t)figure->a, (json_int_t)figure->b, figure->value);
        if (json_array_append_new(array, triple) < 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *save_map(const struct profile_condition *conditions, size_t count)
{
    json_t *object = json_object();
    for (size_t i = 0; object && i < count; i++) {
        if (json_object_set_new(object, conditions[i].key, json_string(conditions[i].value)) < 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static json_t *save_set(const struct profile_set *set)
{
    char *text = profile_set_text(set);
    json_t *json = text ? json_string(text) : NULL;
    free(text);
    return json;
}

struct place {
    const struct servet_profile *profile;
    struct json_path path;
};

static json_t *save_object(const struct place *at, const struct profile_object *type,
                           const void *object);

static json_t *save_array(const struct place *at, const struct profile_object *element,
                          const void *items, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; array && i < count; i++) {
        struct place here = {at->profile, JSON_PATH_ITEM(&at->path, i)};
        const void *item = (const char *)items + i * element->size;
        if (json_array_append_new(array, save_object(&here, element, item)) < 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static const void *items_of(const void *member)
{
    return *(void *const *)member;
}

static size_t count_of(const struct profile_field *field, const void *object)
{
    return *(const size_t *)(const void *)((const char *)object + field->count_offset);
}

static json_t *save_field(const struct place *parent, const struct profile_field *field,
                          const void *object)
{
    struct place at = {parent->profile, JSON_PATH_KEY(&parent->path, field->key)};
    const void *member = (const char *)object + field->offset;
    switch (field->type) {
    case FIELD_VERSION:
        return json_integer(PROFILE_VERSION);
    case FIELD_STRING:
        return json_string(*(char *const *)member);
    case FIELD_U32:
        return json_integer(*(const uint32_t *)member);
    case FIELD_U64:
        return json_integer((json_int_t) * (const uint64_t *)member);
    case FIELD_NUMBER:
        return json_real(*(const double *)member);
    case FIELD_BOOL:
        return json_boolean(*(const bool *)member);
    case FIELD_WORD:
        return json_string(field->words[*(const unsigned *)member]);
    case FIELD_SET:
        return save_set(member);
    case FIELD_GROUPS:
        return save_groups(items_of(member), count_of(field, object));
    case FIELD_PAIRS:
        return save_pairs(items_of(member), count_of(field, object));
    case FIELD_PAIR_FIGURES:
        return save_pair_figures(items_of(member), count_of(field, object));
    case FIELD_ARRAY:
        return save_array(&at, field->element, items_of(member), count_of(field, object));
    case FIELD_MAP:
        return save_map(items_of(member), count_of(field, object));
    case FIELD_OBJECT:
        return save_object(&at, field->element, member);
    }
    return NULL;
}

static int add_extras(const struct place *at, json_t *json)
{
    char path[JSON_PATH_SIZE];
    const struct servet_profile *profile = at->profile;
    if (!profile->extra_count) {
        return 0;
    }
    profile_json_path_text(&at->path, path, sizeof path);
    for (size_t i = 0; i < profile->extra_count; i++) {
        const struct profile_extra *extra = &profile->extras[i];
        if (strcmp(extra->where, path) == 0 &&
            json_object_set_new(json, extra->key, json_loads(extra->value, JSON_DECODE_ANY, NULL)) <
                0) {
            return -ENOMEM;
        }
    }
    return 0;
}

static json_t *save_object(const struct place *at, const struct profile_object *type,
                           const void *object)
{
    json_t *json = json_object();
    for (size_t i = 0; json && i < type->field_count; i++) {
        const struct profile_field *field = &type->fields[i];
        if (!field->required && profile_field_absent(field, object)) {
            continue;
        }
        if (json_object_set_new(json, field->key, save_field(at, field, object)) < 0) {
            json_decref(json);
            return NULL;
        }
    }
    if (json && add_extras(at, json) < 0) {
        json_decref(json);
        return NULL;
    }
    return json;
}

/* -- jansson to text -- */

/* jansson's own indentation puts every number of an array on a line of its own, and prints 0.1 as
 * 0.10000000000000001. Here what fits on a line stays on it, and numbers have the fewest digits
 * that give them back. */
struct printer {
    FILE *stream;
    size_t column;
};

static void put(struct printer *printer, const char *text)
{
    fputs(text, printer->stream);
    printer->column += strlen(text);
}

static void new_line(struct printer *printer, size_t depth)
{
    fprintf(printer->stream, "\n%*s", (int)(depth * INDENT_COLUMNS), "");
    printer->column = depth * INDENT_COLUMNS;
}

static bool gives_back(const char *text, double value)
{
    json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);
    bool same = json && json_number_value(json) == value;
    json_decref(json);
    return same;
}

static char *real_text(const json_t *json)
{
    for (size_t digits = REAL_DIGITS_FEWEST;; digits++) {
        char *text = json_dumps(json, JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
        if (!text || digits == REAL_DIGITS_MOST || gives_back(text, json_real_value(json))) {
            return text;
        }
        free(text);
    }
}

static int print_scalar(struct printer *printer, const json_t *json)
{
    char *text = json_is_real(json) ? real_text(json) : json_dumps(json, JSON_ENCODE_ANY);
    if (!text) {
        return -ENOMEM;
    }
    put(printer, text);
    free(text);
    return 0;
}

/* Is its compact text (which has longer numbers and fewer spaces, about the same) short enough for
 * this line? */
static bool fits(const struct printer *printer, const json_t *json)
{
    size_t length = json_dumpb(json, NULL, 0, JSON_ENCODE_ANY);
    return length && printer->column + length < LINE_WIDTH;
}

/* `wide`: one item per line, `depth` is theirs. */
static void separate(struct printer *printer, bool first, bool wide, size_t depth)
{
    put(printer, first ? "" : wide ? "," : ", ");
    if (wide) {
        new_line(printer, depth);
    }
}

static int print_value(struct printer *printer, const json_t *json, size_t depth);

static int print_object(struct printer *printer, const json_t *json, size_t depth)
{
    bool wide = depth == 0 || !fits(printer, json);
    json_t *object = (json_t *)json; /* jansson iterates without changing it */
    put(printer, "{");
    bool first = true;
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        separate(printer, first, wide, depth + 1);
        first = false;
        json_t *name = json_string(json_object_iter_key(i));
        int rc = name ? print_scalar(printer, name) : -ENOMEM;
        json_decref(name);
        put(printer, ": ");
        rc = rc < 0 ? rc : print_value(printer, json_object_iter_value(i), depth + 1);
        if (rc < 0) {
            return rc;
        }
    }
    if (wide) {
        new_line(printer, depth);
    }
    put(printer, "}");
    return 0;
}

static int print_array(struct printer *printer, const json_t *json, size_t depth)
{
    bool wide = !fits(printer, json);
    put(printer, "[");
    for (size_t i = 0; i < json_array_size(json); i++) {
        separate(printer, i == 0, wide, depth + 1);
        int rc = print_value(printer, json_array_get(json, i), depth + 1);
        if (rc < 0) {
            return rc;
        }
    }
    if (wide) {
        new_line(printer, depth);
    }
    put(printer, "]");
    return 0;
}

static int print_value(struct printer *printer, const json_t *json, size_t depth)
{
    if (json_is_object(json)) {
        return print_object(printer, json, depth);
    }
    return json_is_array(json) ? print_array(printer, json, depth) : print_scalar(printer, json);
}

static char *document_text(const json_t *json)
{
    char *text = NULL;
    size_t size;
    struct printer printer = {.stream = profile_stream_open(&text, &size)};
    if (!printer.stream) {
        return NULL;
    }
    int rc = print_value(&printer, json, 0);
    fputs("\n", printer.stream);
    if (fclose(printer.stream) != 0 || rc < 0) {
        free(text);
        return NULL;
    }
    return text;
}

char *profile_to_json(const struct servet_profile *profile)
{
    const struct place root = {profile, JSON_PATH_ROOT};
    json_t *json = save_object(&root, &profile_document, profile);
    char *text = json ? document_text(json) : NULL;
    json_decref(json);
    return text;
}
