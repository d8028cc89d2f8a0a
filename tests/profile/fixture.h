/* The fixture profiles, and text surgery on them. */
#ifndef SERVET_TESTS_PROFILE_FIXTURE_H
#define SERVET_TESTS_PROFILE_FIXTURE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/model.h"

#define EVERY_FIELD                                                                                \
    FIXTURES "/every-field.json" /* a value of its own for every field of the model */
#define NEHALEM FIXTURES "/nehalem-2-nodes.json"

/* The whole file as a new string. */
char *read_text(const char *path);

/* A new string in which the first `from` is `to`. */
char *replaced(const char *text, const char *from, const char *to);

/* The profile in the file; a refusal fails the test. */
struct servet_profile *loaded(const char *path);

#endif
