/* Lists of PUs, and of hosts as batch systems write them. */
#include <errno.h>
#include <stdlib.h>

#include "profile/model.h"
#include "profile/scope.h"
#include "tests/fuzz/fuzz.h"

/* Names of a long list that are looked up: each costs a walk through it. */
#define MOST_LOOKED_UP 4
/* PUs that are written and read again: a short text can hold millions. */
#define MOST_WRITTEN 100000

const char *const fuzz_seeds[] = {
    "0-3,8,10-11\n",
    "0",
    "7,7,3-5",
    "node1",
    "login,node[001-128,200]-ib",
    "a[1-2],b[09-11].cluster,c",
    "n[999999999]",
    NULL,
};

static void read_pus(const char *text)
{
    struct profile_set set = {0}, again = {0};
    int rc = profile_set_parse(text, &set);
    fuzz_expect(rc == 0 || rc == -EINVAL || rc == -ERANGE || rc == -ENOMEM, "an answer for PUs");
    if (rc < 0) {
        return;
    }
    fuzz_expect(set.count > 0 && set.ids[set.count - 1] < PROFILE_SET_LIMIT, "PUs in their range");
    if (set.count <= MOST_WRITTEN) {
        char *written = profile_set_text(&set);
        fuzz_expect(written && profile_set_parse(written, &again) == 0, "to read what was written");
        fuzz_expect(profile_set_equal(&set, &again), "the same PUs again");
        free(written);
    }
    profile_set_free(&set);
    profile_set_free(&again);
}

static void read_hosts(const char *text)
{
    uint32_t count = 0;
    char name[64];
    int rc = profile_hostlist_count(text, &count);
    fuzz_expect(rc == 0 || rc == -EINVAL || rc == -ERANGE, "an answer for hosts");
    fuzz_expect(rc < 0 || (count > 0 && count <= PROFILE_SET_LIMIT), "names, and not too many");
    for (uint32_t i = 0; rc == 0 && i < MOST_LOOKED_UP && i < count; i++) {
        uint32_t index = i % 2 ? count - 1 - i / 2 : i / 2;
        int found = profile_hostlist_name(text, index, name, sizeof name);
        fuzz_expect(found == 0 || found == -ENAMETOOLONG, "the name that was counted");
        fuzz_expect(found < 0 || profile_hostlist_find(text, name) >= 0, "to find that name");
    }
    fuzz_expect(rc < 0 || profile_hostlist_name(text, count, name, sizeof name) == -ERANGE,
                "no name behind the last");
    profile_hostlist_find(text, "node1");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FREED char *text = fuzz_text(data, size);
    read_pus(text);
    read_hosts(text);
    return 0;
}
