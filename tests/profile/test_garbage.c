/* Does any garbage at all crash the reader, or get past it as something that is no profile? Best
 * asked with the sanitizers on. */
#include "profile/base/random.h"
#include "profile/scope.h"
#include "tests/profile/fixture.h"

#include <errno.h>

#include "tests/base/runner.h"

/* Each takes about 0.1 ms. */
#define FLIPPED_FILES 4000
#define SWAPPED_FILES 2000

static struct random source;

static size_t random_number(size_t below)
{
    return (size_t)random_below(&source, below);
}

/* 0 or -EINVAL with a line that names the file; what is taken must pass the check and be
 * writable. */
static bool taken(const char *text, size_t length)
{
    struct servet_profile *profile = NULL;
    struct servet_error error = {""};
    char *copy =
        malloc(length ? length : 1); /* no terminator behind it: ASan sees a byte read too many */
    memcpy(copy, text, length);
    int rc = profile_parse(copy, length, "garbage", &profile, &error);
    free(copy);
    if (rc < 0) {
        ck_assert_int_eq(rc, -EINVAL);
        ck_assert_ptr_null(profile);
        ck_assert_msg(strncmp(error.text, "garbage:", 8) == 0 && strlen(error.text) > 10, "'%s'",
                      error.text);
        return false;
    }
    ck_assert_int_eq(profile_check(profile, &error), 0);
    char *again = profile_to_json(profile);
    ck_assert_ptr_nonnull(again);
    free(again);
    profile_free(profile);
    return true;
}

TEST(every_truncation_is_refused)
{
    char *text = read_text(NEHALEM);
    size_t length = strlen(text);
    ck_assert(taken(text, length));
    size_t end = (size_t)(strrchr(text, '}') - text) + 1;
    for (size_t i = 0; i < end; i++) {
        ck_assert_msg(!taken(text, i), "the first %zu bytes were taken", i);
    }
}

TEST(flipped_bytes_are_refused_or_harmless)
{
    char *text = read_text(NEHALEM);
    size_t length = strlen(text), accepted = 0;
    source.state = 20121119;
    for (int i = 0; i < FLIPPED_FILES; i++) {
        char *bad = strdup(text);
        for (size_t flips = 1 + random_number(3); flips > 0; flips--) {
            bad[random_number(length)] ^= (char)(1u << random_number(8));
        }
        accepted += taken(bad, length);
        free(bad);
    }
    ck_assert_uint_lt(accepted, FLIPPED_FILES / 2); /* digits and names may change and stay valid */
}

/* Values where they do not belong get deeper than wrong bytes do. */
TEST(misplaced_values_are_refused_or_harmless)
{
    static const char *const values[] = {"0",
                                         "-1",
                                         "1e308",
                                         "4294967296",
                                         "9223372036854775807",
                                         "null",
                                         "true",
                                         "[]",
                                         "{}",
                                         "\"\"",
                                         "\"0-16777215\"",
                                         "[[0,1]]",
                                         "[\"0-7\"]",
                                         "[[[[[]]]]]",
                                         "\"n[1-9999]\"",
                                         "0.5",
                                         "\"0\"",
                                         "16777216"};
    char *text = read_text(NEHALEM);
    source.state = 7;
    for (int i = 0; i < SWAPPED_FILES; i++) {
        char *bad;
        const char *colon = text + random_number(strlen(text));
        colon = strchr(colon, ':');
        if (!colon) {
            continue;
        }
        const char *end = colon + strcspn(colon, ",}]\n");
        const char *value = values[random_number(sizeof values / sizeof *values)];
        ck_assert(asprintf(&bad, "%.*s: %s%s", (int)(colon - text), text, value, end) > 0);
        taken(bad, strlen(bad));
        free(bad);
    }
}

TEST(deep_nesting_is_refused)
{
    enum { DEPTH = 1000000 };
    FREED char *text = malloc(DEPTH);
    memset(text, '[', DEPTH);
    ck_assert(!taken(text, DEPTH));
}

TEST(short_texts_cannot_make_huge_sets)
{
    char *text = read_text(NEHALEM);
    char *wide = replaced(text, "\"pus\": \"0-7\"", "\"pus\": \"0-16777215\"");
    char *wider =
        replaced(wide, "\"groups\": [\"0,2,4,6\", \"1,3,5,7\"]", "\"groups\": [\"0-16777215\"]");
    struct servet_profile *profile;
    struct servet_error error = {""};
    ck_assert_int_eq(profile_parse(wider, strlen(wider), "f", &profile, &error), -EINVAL);
    ck_assert_msg(strstr(error.text, "expected no more than 16777216 members") != NULL, "%s",
                  error.text);
}

TESTS(.seconds = 120)
