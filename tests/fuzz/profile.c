/* A profile (servet-profile(5)), as text and as a file: what is taken is whole, and is the same
 * again when it is written and read. */
#include <stdlib.h>
#include <string.h>

#include "profile/model.h"
#include "tests/fuzz/fuzz.h"

const char *const fuzz_seeds[] = {NULL};

static void expect_the_same_again(const struct servet_profile *profile)
{
    struct servet_profile *again = NULL;
    struct servet_error error = {""};
    char *text = profile_to_json(profile);
    fuzz_expect(text && profile_parse(text, strlen(text), "again", &again, &error) == 0,
                "to read what was written");
    char *second = profile_to_json(again);
    fuzz_expect(second && strcmp(text, second) == 0, "the same text again");
    free(text);
    free(second);
    profile_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct servet_profile *profile = NULL;
    struct servet_error error = {""};
    int rc = profile_parse((const char *)data, size, "input", &profile, &error);
    fuzz_expect_answer(rc, &error);
    fuzz_expect((rc == 0) == (profile != NULL), "a profile, or none");
    if (rc == 0) {
        fuzz_expect(profile_check(profile, &error) == 0, "a profile that keeps its promises");
        expect_the_same_again(profile);
        profile_free(profile);
    }
    /* Another way through the reader: without what lies between nodes. */
    rc = profile_load_node(fuzz_file(data, size), &profile, &error);
    fuzz_expect_answer(rc, &error);
    if (rc == 0) {
        profile_free(profile);
    }
    return 0;
}
