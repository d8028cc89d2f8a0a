/* The fixture profiles, and text surgery on them. */
#include "tests/profile/fixture.h"

char *read_text(const char *path)
{
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s: cannot be read", path);
    char *text = NULL;
    size_t size = 0;
    ssize_t n = getdelim(&text, &size, '\0', file);
    ck_assert_msg(n > 0 || feof(file), "%s: cannot be read", path);
    if (n < 0) {
        text[0] = '\0'; /* an empty file */
    }
    fclose(file);
    return text;
}

char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    ck_assert_msg(at != NULL, "the fixture has no '%s'", from);
    char *out;
    ck_assert(asprintf(&out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
    return out;
}

struct servet_profile *loaded(const char *path)
{
    struct servet_profile *profile;
    struct servet_error error = {""};
    ck_assert_msg(profile_load(path, &profile, &error) == 0, "%s", error.text);
    return profile;
}