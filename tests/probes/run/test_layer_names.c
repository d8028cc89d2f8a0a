/* Is a layer of messages named after what the PUs of most of its pairs have in common? */
#include "probes/pairs/messages.h"
#include "probes/probe.h"
#include "probes/run/result.h"
#include "probes/run/run.h"
#include "tests/base/runner.h"

enum { GROUPS = 2, LAYERS = 2 };

/* The groups are freed with the layers. */
static struct profile_relation groups(const char *first, const char *second)
{
    struct profile_relation relation = {.groups = calloc(GROUPS, sizeof *relation.groups)};
    ck_assert_ptr_nonnull(relation.groups);
    ck_assert_int_eq(profile_set_parse(first, &relation.groups[relation.group_count++]), 0);
    if (second) {
        ck_assert_int_eq(profile_set_parse(second, &relation.groups[relation.group_count++]), 0);
    }
    return relation;
}

static struct profile_class node_class;
static struct profile_cache last_level;

/* Two packages of four PUs, each with a cache that two PUs of it share. */
static void open_class(void)
{
    last_level = (struct profile_cache){.level = 2, .sharing = groups("0-1", "4-5")};
    node_class = (struct profile_class){
        .packages = groups("0-3", "4-7"), .caches = &last_level, .cache_count = 1};
    ck_assert_int_eq(profile_set_parse("0-7", &node_class.pus), 0);
}

static void close_class(void)
{
    profile_communication_free(&node_class.communication);
    profile_relation_free(&node_class.packages);
    profile_relation_free(&last_level.sharing);
    profile_set_free(&node_class.pus);
}

/* A layer of these groups, if there are any, below one of all PUs. */
static void measure(const char *first, const char *second)
{
    struct profile_communication found = {.layers = calloc(LAYERS, sizeof *found.layers)};
    ck_assert_ptr_nonnull(found.layers);
    if (first) {
        found.layers[found.layer_count++].members = groups(first, second);
    }
    found.layers[found.layer_count++].members = groups("0-7", NULL);
    ck_assert_int_eq(probe_result_set_layers(&node_class, &found), 0);
    ck_assert_ptr_null(found.layers);
}

static void assert_named(size_t layer, const char *name)
{
    ck_assert_str_eq(node_class.communication.layers[layer].name, name);
}

/* The first pair of PUs shares a cache, and the next ones a package. */
TEST(a_layer_across_packages_is_the_nodes)
{
    open_class();
    measure(NULL, NULL);
    assert_named(0, "node");
    close_class();
}

TEST(each_layer_is_named_by_its_own_pairs)
{
    open_class();
    measure("0-1", "4-5");
    assert_named(0, "L2");
    assert_named(1, "node");
    measure("0-3", "4-7");
    assert_named(0, "package");
    assert_named(1, "node");
    close_class();
}

TEST(a_few_pairs_elsewhere_do_not_name_a_layer)
{
    open_class();
    measure("0-4", NULL); /* six pairs of one package, and four across */
    assert_named(0, "package");
    close_class();
}
