/* Profiles for tests, and text surgery on their files. */
#include "tests/profile/fixture.h"

struct profile_set set_of(const char *list)
{
    struct profile_set set;
    ck_assert_msg(profile_set_parse(list, &set) == 0, "'%s' is no list", list);
    kept(set.ids);
    return set;
}

struct profile_relation relation_of(const char *lists)
{
    char *rest = kept(strdup(lists));
    struct profile_relation relation = {
        .groups = kept(calloc(1 + strlen(lists), sizeof *relation.groups))};
    for (char *list; *lists && (list = strsep(&rest, " "));) {
        relation.groups[relation.group_count++] = set_of(list);
    }
    return relation;
}

const char *list_of(const struct profile_set *set)
{
    return kept(profile_set_text(set));
}

const char *lists_of(const struct profile_relation *relation)
{
    const char *text = "";
    for (size_t i = 0; i < relation->group_count; i++) {
        text = formatted("%s%s%s", text, *text ? " " : "", list_of(&relation->groups[i]));
    }
    for (size_t i = 0; i < relation->pair_count; i++) {
        text = formatted("%s%s[%u %u]", text, *text ? " " : "", relation->pairs[i].a,
                         relation->pairs[i].b);
    }
    return text;
}

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

struct servet_profile *of_sysfs(const char *root)
{
    struct servet_profile *profile;
    struct servet_error error = {""};
    ck_assert_msg(profile_from_sysfs(root, &profile, &error) == 0, "%s", error.text);
    return kept(profile);
}

static void take(char **text, const char *other)
{
    free(*text);
    *text = other ? strdup(other) : NULL;
}

struct servet_profile *named(struct servet_profile *profile)
{
    const struct servet_profile *here = described(NULL);
    take(&profile->host_name, here->host_name);
    take(&profile->nodes[0].names, here->nodes[0].names);
    take(&profile->architecture, here->architecture);
    take(&profile->kernel, here->kernel);
    take(&profile->cpu_model, here->cpu_model);
    take(&profile->topology_signature, here->topology_signature);
    return profile;
}

char *in_json(const struct servet_profile *profile)
{
    return kept(profile_to_json(profile));
}
