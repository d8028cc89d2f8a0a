/* Profiles for tests, and text surgery on their files. */
#include "tests/profile/fixture.h"

char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    ck_assert_msg(at != NULL, "the fixture has no '%s'", from);
    char *out;
    ck_assert(asprintf(&out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
    return kept(out);
}

struct servet_profile *loaded(const char *path)
{
    struct servet_profile *profile;
    struct servet_error error = {""};
    ck_assert_msg(profile_load(path, &profile, &error) == 0, "%s", error.text);
    return kept(profile);
}

struct servet_profile *parsed(const char *text)
{
    struct servet_profile *profile;
    struct servet_error error = {""};
    ck_assert_msg(profile_parse(text, strlen(text), "f", &profile, &error) == 0, "%s", error.text);
    return kept(profile);
}

struct servet_profile *described(const char *source)
{
    struct servet_profile *profile;
    struct servet_error error = {""};
    ck_assert_msg(profile_from_hwloc(source, &profile, &error) == 0, "%s: %s",
                  source ? source : "here", error.text);
    return kept(profile);
}

char *in_json(const struct servet_profile *profile)
{
    return kept(profile_to_json(profile));
}
