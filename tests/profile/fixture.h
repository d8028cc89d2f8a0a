/* Profiles for tests, and text surgery on their files. All of it stays (kept() of scratch.h). */
#pragma once

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/model.h"
#include "tests/base/scratch.h"

#define EVERY_FIELD                                                                                \
    FIXTURES "/every-field.json" /* a value of its own for every field of the model */
#define NEHALEM FIXTURES "/nehalem-2-nodes.json"

/* "0-3,8"; groups, and in text single pairs as well: "0-3 4-7 [0 5]". An owner may free them. */
struct profile_set set_of(const char *list);
struct profile_relation relation_of(const char *lists);
const char *list_of(const struct profile_set *set);
const char *lists_of(const struct profile_relation *relation);

/* A new string in which the first `from` is `to`. */
char *replaced(const char *text, const char *from, const char *to);

/* The profile in the file, in the text, of the machine that hwloc reads (a file, a description;
 * NULL: this one) or whose /sys is in a folder, in JSON. A refusal fails the test. */
struct servet_profile *loaded(const char *path);
struct servet_profile *parsed(const char *text);
struct servet_profile *described(const char *source);
struct servet_profile *of_sysfs(const char *root);
/* With what names this machine, which sysfs is not asked for; the profile. */
struct servet_profile *named(struct servet_profile *profile);
char *in_json(const struct servet_profile *profile);
