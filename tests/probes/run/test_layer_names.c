/* Is a layer of messages named after what the PUs of most of its pairs have in common? */
#include "probes/pairs/messages.h"
#include "probes/probe.h"
#include "probes/run/result.h"
#include "probes/run/run.h"
#include "tests/base/runner.h"
#include "tests/profile/fixture.h"

/* The names of the layers of these groups, if there are any, and of one of all PUs, on two packages
 * of four PUs, each with a cache that two PUs of it share. */
static void expect_names(const char *groups, const char *first, const char *second)
{
    struct profile_cache last_level = {.level = 2, .sharing = relation_of("0-1 4-5")};
    struct profile_class node_class = {.pus = set_of("0-7"),
                                       .packages = relation_of("0-3 4-7"),
                                       .caches = &last_level,
                                       .cache_count = 1};
    struct profile_communication found = {.layers = calloc(2, sizeof *found.layers)};
    if (groups) {
        found.layers[found.layer_count++].members = relation_of(groups);
    }
    found.layers[found.layer_count++].members = relation_of("0-7");
    ck_assert_int_eq(probe_result_set_layers(&node_class, &found), 0);
    ck_assert_ptr_null(found.layers);
    ck_assert_str_eq(node_class.communication.layers[0].name, first);
    ck_assert(!second || strcmp(node_class.communication.layers[1].name, second) == 0);
    profile_communication_free(&node_class.communication);
}

/* The first pair of PUs shares a cache, and the next ones a package. */
TEST(a_layer_across_packages_is_the_nodes)
{
    expect_names(NULL, "node", NULL);
}

TEST(each_layer_is_named_by_its_own_pairs)
{
    expect_names("0-1 4-5", "L2", "node");
    expect_names("0-3 4-7", "package", "node");
}

TEST(a_few_pairs_elsewhere_do_not_name_a_layer)
{
    expect_names("0-4", "package", NULL); /* six pairs of one package, and four across */
}
