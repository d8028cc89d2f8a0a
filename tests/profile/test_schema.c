/* Does the published schema know exactly the keys that profiles are read and written with, and no
 * others? */
#include "tests/profile/fixture.h"

#include <jansson.h>

#include "profile/codec/codec.h"
#include "tests/base/runner.h"

static json_t *definition(json_t *schema, const struct profile_object *type)
{
    json_t *found = type == &profile_document
                        ? schema
                        : json_object_get(json_object_get(schema, "$defs"), type->name);
    ck_assert_msg(found != NULL, "the schema has no definition '%s'", type->name);
    return found;
}

static bool required(json_t *object, const char *key)
{
    size_t i;
    json_t *name;
    json_array_foreach(json_object_get(object, "required"), i, name)
    {
        if (strcmp(json_string_value(name), key) == 0) {
            return true;
        }
    }
    return false;
}

/* "#/$defs/cache" of a property or of its items. */
static const char *target(json_t *property)
{
    json_t *items = json_object_get(property, "items");
    const char *reference = json_string_value(json_object_get(items ? items : property, "$ref"));
    return reference ? reference + strlen("#/$defs/") : "";
}

static const char *schema_type(enum profile_field_type type)
{
    switch (type) {
    case FIELD_STRING:
        return "string";
    case FIELD_U32:
    case FIELD_U64:
        return "integer";
    case FIELD_NUMBER:
        return "number";
    case FIELD_BOOL:
        return "boolean";
    case FIELD_GROUPS:
    case FIELD_PAIRS:
    case FIELD_ARRAY:
        return "array";
    case FIELD_MAP:
        return "object";
    default:
        return NULL; /* said by a reference or a constant */
    }
}

static void assert_object(json_t *schema, const struct profile_object *type)
{
    json_t *object = definition(schema, type), *properties = json_object_get(object, "properties");
    ck_assert_msg(json_is_false(json_object_get(object, "additionalProperties")), "%s is open",
                  type->name);
    ck_assert_uint_eq(json_object_size(properties), type->field_count);
    for (size_t i = 0; i < type->field_count; i++) {
        const struct profile_field *field = &type->fields[i];
        json_t *property = json_object_get(properties, field->key);
        ck_assert_msg(property != NULL, "%s.%s is not in the schema", type->name, field->key);
        ck_assert_msg(required(object, field->key) == field->required, "%s.%s: required?",
                      type->name, field->key);
        const char *expected = schema_type(field->type),
                   *found = json_string_value(json_object_get(property, "type"));
        ck_assert_msg(!expected || (found && strcmp(found, expected) == 0), "%s.%s: type",
                      type->name, field->key);
        if (field->element) {
            ck_assert_str_eq(target(property), field->element->name);
            assert_object(schema, field->element);
        }
    }
}

START_TEST(the_schema_has_the_keys_of_the_model)
{
    json_error_t why;
    json_t *schema = json_load_file(SCHEMA, JSON_REJECT_DUPLICATES, &why);
    ck_assert_msg(schema != NULL, "%d: %s", why.line, why.text);
    assert_object(schema, &profile_document);
    json_decref(schema);
}
END_TEST

START_TEST(the_schema_is_of_the_version_that_is_written)
{
    json_t *schema = json_load_file(SCHEMA, 0, NULL);
    json_t *version = json_object_get(json_object_get(schema, "properties"), "servet_profile");
    ck_assert_int_eq(json_integer_value(json_object_get(version, "const")), PROFILE_VERSION);
    json_decref(schema);
}
END_TEST

/* A field that the fixture lacks is one that no test sees lost. */
static void assert_all_present(json_t *json, const struct profile_object *type)
{
    for (size_t i = 0; i < type->field_count; i++) {
        const struct profile_field *field = &type->fields[i];
        json_t *value = json_object_get(json, field->key);
        if (field->type == FIELD_OBJECT && value) {
            assert_all_present(value, field->element);
        }
        if (field->type == FIELD_ARRAY && json_array_size(value) &&
            field->element->field_count > 4) {
            assert_all_present(json_array_get(value, 0), field->element);
        }
        ck_assert_msg(value || !strcmp(type->name, "quality") || !strcmp(type->name, "relation"),
                      "%s.%s is missing", type->name, field->key);
    }
}

START_TEST(the_full_fixture_has_every_field)
{
    json_t *json = json_load_file(EVERY_FIELD, 0, NULL);
    assert_all_present(json, &profile_document);
    json_decref(json);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("schema");
    tcase_add_test(tcase, the_schema_has_the_keys_of_the_model);
    tcase_add_test(tcase, the_schema_is_of_the_version_that_is_written);
    tcase_add_test(tcase, the_full_fixture_has_every_field);
    return run_tests(tcase);
}
