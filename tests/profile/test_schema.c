/* The table of fields: does a test see every one of them, and what do its rows promise? (The schema
 * that is made of it is held against the reader in validate.py.) */
#include "tests/profile/fixture.h"

#include <jansson.h>

#include "profile/codec/codec.h"
#include "profile/scope.h"
#include "tests/base/runner.h"

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

TEST(the_full_fixture_has_every_field)
{
    json_t *json = json_load_file(EVERY_FIELD, 0, NULL);
    assert_all_present(json, &profile_document);
    json_decref(json);
}

struct reading {
    uint32_t cups, spoons;
    double litres;
    unsigned drink;
};

static const char *const drinks[] = {"tea", "coffee", "water", NULL};
static const struct profile_field reading_fields[] = {
    {.key = "table", .type = FIELD_VERSION, .required = true, .high = 3},
    PROFILE_FIELD(FIELD_U32, struct reading, cups, "", .required = true, .low = 2, .high = 9),
    PROFILE_FIELD(FIELD_U32, struct reading, spoons, "", .required = true),
    PROFILE_FIELD(FIELD_NUMBER, struct reading, litres, "", .low = 0.5, .high = 4, .absent = -1),
    PROFILE_FIELD(FIELD_WORD, struct reading, drink, "", .words = drinks, .absent = 2),
};
static const struct profile_object reading_object =
    PROFILE_OBJECT("reading", struct reading, reading_fields, "");

/* Reads and checks; the one line that refuses, or "". */
static const char *refusal(const char *text, struct reading *out)
{
    static struct servet_error error;
    FREED struct profile_json *values;
    char *copy = quoted(text);
    struct profile_loader loader = {.file = "f", .error = &error};
    *out = (struct reading){0};
    error.text[0] = '\0';
    ck_assert_int_eq(profile_json_read(copy, strlen(copy), "f", &values, NULL), 0);
    if (profile_load_object(&loader, &JSON_PATH_ROOT, values, &reading_object, out) == 0) {
        profile_check_members(&JSON_PATH_ROOT, &reading_object, out, NULL, &error);
    }
    return error.text;
}

TEST(an_absent_field_takes_its_value)
{
    struct reading reading;
    ck_assert_str_eq(refusal("{'table': 3, 'cups': 2, 'spoons': 0}", &reading), "");
    ck_assert_double_lt(reading.litres, 0);
    ck_assert_uint_eq(reading.drink, 2);
    ck_assert_str_eq(
        refusal("{'table': 3, 'cups': 9, 'spoons': 0, 'drink': 'coffee','litres': 0.5}", &reading),
        "");
    ck_assert_uint_eq(reading.drink, 1);
}

static const struct {
    const char *text, *refusal;
} out_of_range[] = {
    {"{'table': 3, 'cups': 1, 'spoons': 0}", "$.cups: found 1, expected an integer from 2 to 9"},
    {"{'table': 3, 'cups': 10, 'spoons': 0}", "$.cups: found 10, expected an integer from 2 to 9"},
    {"{'table': 3, 'cups': 2, 'spoons': 0, 'litres': 4.5}",
     "$.litres: found 4.5, expected a number from 0.5 to 4"},
    {"{'table': 3, 'cups': 2, 'spoons': 0, 'drink': 'milk'}",
     "f: $.drink: found \"milk\", expected \"tea\", \"coffee\" or \"water\""},
    {"{'table': 3, 'cups': 2, 'spoons': 0, 'forks': 1}",
     "f: $.forks: unknown field, expected one of a reading"},
    {"{'table': 3, 'cups': 2}", "f: $.spoons: missing, expected an integer"},
    {"{'table': 4}",
     "f: $.table: found 4, expected version 3, the latest that servet " SERVET_VERSION
     " understands"},
};

TEST(what_is_out_of_its_range_is_named_with_the_range,
     .loops = sizeof out_of_range / sizeof *out_of_range)
{
    struct reading reading;
    ck_assert_str_eq(refusal(out_of_range[_i].text, &reading), out_of_range[_i].refusal);
}
