/* JSON as profiles are read: the same texts are taken as by jansson, with the same values, and a
 * text that is refused is refused with its place. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "profile/codec/codec.h"
#include "profile/scope.h"
#include "tests/fuzz/fuzz.h"

/* Our reader skips one at the beginning (RFC 8259, section 8.1), jansson refuses it. */
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

/* Deeper texts are refused here and not there. */
#define DEPTH 64

static size_t depth_of(const json_t *value)
{
    size_t deepest = 0, index;
    const char *key;
    json_t *item;
    if (json_is_array(value)) {
        json_array_foreach(value, index, item)
        {
            size_t depth = depth_of(item);
            deepest = depth > deepest ? depth : deepest;
        }
    } else if (json_is_object(value)) {
        json_object_foreach((json_t *)(uintptr_t)value, key, item)
        {
            size_t depth = depth_of(item);
            deepest = depth > deepest ? depth : deepest;
        }
    } else {
        return 0;
    }
    return deepest + 1;
}

static void expect_same(const struct profile_json *ours, json_t *theirs);

static void expect_same_items(const struct profile_json *ours, json_t *theirs)
{
    const struct profile_json *item = ours + 1;
    bool twice;
    fuzz_expect(json_is_array(theirs) ? ours->count == json_array_size(theirs)
                                      : ours->count == json_object_size(theirs),
                "as many items");
    for (size_t i = 0; i < ours->count; i++) {
        if (json_is_array(theirs)) {
            expect_same(item, json_array_get(theirs, i));
        } else {
            json_t *value = json_object_get(theirs, item->text);
            fuzz_expect(value != NULL, "the same keys");
            fuzz_expect(profile_json_get(ours, item->text, &twice) == item + 1 && !twice,
                        "to find a key");
            expect_same(++item, value);
        }
        item = profile_json_next(item);
    }
    fuzz_expect(item == ours + ours->size, "the size of all items");
}

static void expect_same(const struct profile_json *ours, json_t *theirs)
{
    static const json_type types[] = {
        [PROFILE_JSON_NULL] = JSON_NULL,   [PROFILE_JSON_TRUE] = JSON_TRUE,
        [PROFILE_JSON_FALSE] = JSON_FALSE, [PROFILE_JSON_INTEGER] = JSON_INTEGER,
        [PROFILE_JSON_REAL] = JSON_REAL,   [PROFILE_JSON_STRING] = JSON_STRING,
        [PROFILE_JSON_ARRAY] = JSON_ARRAY, [PROFILE_JSON_OBJECT] = JSON_OBJECT,
    };
    fuzz_expect(types[ours->type] == json_typeof(theirs), "the same type");
    switch (ours->type) {
    case PROFILE_JSON_INTEGER:
        fuzz_expect(profile_json_integer(ours) == json_integer_value(theirs), "the same integer");
        break;
    case PROFILE_JSON_REAL:
        fuzz_expect(profile_json_number(ours) == json_real_value(theirs), "the same number");
        break;
    case PROFILE_JSON_STRING:
        fuzz_expect(ours->count == json_string_length(theirs) &&
                        strcmp(ours->text, json_string_value(theirs)) == 0,
                    "the same string");
        break;
    case PROFILE_JSON_ARRAY:
    case PROFILE_JSON_OBJECT:
        expect_same_items(ours, theirs);
        break;
    default:
        break;
    }
}

/* As text and read again it is the same. */
static void expect_same_again(const struct profile_json *value, json_t *theirs)
{
    struct servet_error error = {""};
    FREED struct profile_json *again = NULL;
    FREED char *text = profile_json_text(value, false);
    fuzz_expect(text && profile_json_read(text, strlen(text), "again", &again, &error) == 0,
                "to read what was written");
    expect_same(again, theirs);
}

static bool has_key_twice(const char *text, size_t size)
{
    json_t *other = json_loadb(text, size, JSON_DECODE_ANY, NULL);
    json_decref(other);
    return other != NULL;
}

FUZZ(json, "{\"a\": [1, -0, 0.5, 1e5, -12.25E-3, true, false, null, \"\", {}, []]}",
     "[\"\\\" \\\\ \\/ \\b\\f\\n\\r\\t \\u00e9 \\u20AC \\ud83d\\ude00 \303\251 \342\202\254\"]",
     "[9223372036854775807, -9223372036854775808, 1e308, 1e-400, 123456789012345678]",
     "[[[[[[[[]]]]]]], {\"k\": {\"k\": {\"k\": 1}}}]", "[1, 2 \t\r\n, \"x\"]",
     BYTE_ORDER_MARK "{\"marked\": 1}")
{
    struct servet_error error = {""};
    struct profile_json *ours;
    const char *text = (const char *)data;
    FREED char *copy = fuzz_text(data, size);
    int rc = profile_json_read(copy, size, "input", &ours, &error);
    size_t mark = strlen(BYTE_ORDER_MARK);
    if (size >= mark && memcmp(text, BYTE_ORDER_MARK, mark) == 0) {
        text += mark;
        size -= mark;
    }
    json_t *theirs = json_loadb(text, size, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    fuzz_expect_answer(rc, &error);
    /* jansson passes over bytes of zero between values. */
    bool zeros = memchr(text, 0, size) != NULL;
    if (theirs && !zeros && depth_of(theirs) <= DEPTH) {
        fuzz_expect(rc == 0, "to take what jansson takes");
        expect_same(ours, theirs);
        expect_same_again(ours, theirs);
    } else if (!theirs && !zeros && rc == 0) {
        fuzz_expect(has_key_twice(text, size), "to refuse what jansson refuses");
    }
    json_decref(theirs);
    free(ours);
}
