/* Does a profile come back from its file as it went in, and is everything that is not one refused
 * with its place? */
#include "tests/profile/fixture.h"

#include <errno.h>
#include <jansson.h>
#include <locale.h>
#include <unistd.h>

#include "tests/base/runner.h"

TEST(the_nehalem_fixture_is_the_machine_of_the_paper)
{
    struct servet_profile *p = loaded(NEHALEM);
    ck_assert_uint_eq(profile_node_count(p), 2);
    ck_assert_uint_eq(profile_node_first_pu(p, 0), 0);
    ck_assert_uint_eq(profile_node_first_pu(p, 1), 8);
    ck_assert_ptr_eq(profile_node_class(p, 1), &p->classes[0]);
    ck_assert_ptr_null(profile_node_class(p, 2));
    const struct profile_class *node = &p->classes[0];
    ck_assert_uint_eq(node->pus.count, 8);
    ck_assert_uint_eq(node->cache_count, 3);
    ck_assert_uint_eq(node->caches[2].size_bytes, 8u << 20);
    ck_assert_uint_eq(node->caches[2].sharing.group_count, 4);
    ck_assert(profile_set_has(&node->caches[2].sharing.groups[3], 7));
    ck_assert_uint_eq(node->memory.level_count, 1);
    ck_assert_uint_eq(p->network.layer_count, 1);
    ck_assert(p->network.layers[0].seconds > node->communication.layers[0].seconds);
    ck_assert(node->caches[0].quality.spread < 0);
    ck_assert_int_eq(node->caches[0].quality.origin, PROFILE_QUOTED);
}

/* Every field of the model with a value of its own: a field that the saver or the loader forgets is
 * seen. (That the fixture has all of them: test_schema.c.) */
TEST(every_field_survives_the_way_through_a_file)
{
    char *first = in_json(loaded(EVERY_FIELD)), *second = in_json(parsed(first));
    json_t *before = json_load_file(EVERY_FIELD, JSON_DECODE_INT_AS_REAL, NULL),
           *after = json_loads(first, JSON_DECODE_INT_AS_REAL, NULL);
    ck_assert(json_equal(before, after));
    ck_assert_str_eq(first, second);
    /* numbers to the last digit, conditions in their order */
    ck_assert_ptr_nonnull(strstr(first, "\"memory_bytes\": 9007199254740993"));
    ck_assert_ptr_nonnull(strstr(first, "\"conditions\": {\"z\": \"1\", \"a\": \"2\"}"));
    json_decref(before);
    json_decref(after);
}

TEST(relations_are_written_as_lists_on_one_line)
{
    char *text = in_json(loaded(NEHALEM));
    ck_assert_ptr_nonnull(strstr(text, "{\"groups\": [\"0,2\", \"1,3\", \"4,6\", \"5,7\"]}"));
    ck_assert_ptr_nonnull(strstr(text, "\"seconds\": 1.2e-5,"));
}

/* Refused files: a piece of a fixture (that of the paper, and below the full one), its replacement,
 * and the text of the one line. */
static const struct refusal {
    const char *from, *to, *says;
} refusals[] =
    {
        {"'servet_profile': 1", "'servet_profile': 2",
         "$.servet_profile: found 2, expected version 1"},
        {"'servet_profile': 1,", "", "$.servet_profile: missing, expected the version"},
        {"'size_bytes': 32768", "'size_bytes': '32K'",
         "$.node_classes[0].caches[0].size_bytes: found \"32K\", expected an integer"},
        {"'size_bytes': 262144", "'size_bytes': 0",
         "$.node_classes[0].caches[1].size_bytes: found 0, expected"},
        {"'size_bytes': 262144", "'size_bytes': -5",
         "caches[1].size_bytes: found -5, expected an integer from 0"},
        {"'size_bytes': 262144", "'size_bytes': 262144, 'size_low_bytes': 262145",
         "$.node_classes[0].caches[1].size_low_bytes: found 262145, expected an integer from 1 to "
         "262144"},
        {"'size_bytes': 262144", "'size_bytes': 262144, 'size_low_bytes': 1",
         "$.node_classes[0].caches[1].size_high_bytes: found 0, expected an integer from 262144"},
        {"'size_bytes': 262144", "'size_bytes': 262144, 'size_high_bytes': 262144",
         "$.node_classes[0].caches[1].size_low_bytes: found 0, expected an integer from 1 to "
         "262144"},
        {"'size_bytes': 262144,", "",
         "$.node_classes[0].caches[1].size_bytes: missing, expected an integer"},
        {"'level': 2", "'level': 0", "$.node_classes[0].caches[1].level: found 0"},
        {"'level': 3", "'level': 1",
         "$.node_classes[0].caches[2].level: expected caches in ascending order"},
        {"'pus': '0-7'", "'pus': '7-0'",
         "$.node_classes[0].pus: found \"7-0\", expected a list such as"},
        {"'pus': '0-7'", "'pus': '0-99999999'",
         "$.node_classes[0].pus: found \"0-99999999\", expected a list"},
        {"'pus': '0-7'", "'pus': ''", "$.node_classes[0].pus: found no PU"},
        {"'pus': '0-7'", "'pus': '0-6'", "packages.groups[1]: found 7, expected only numbers that"},
        {"'0,2', '1,3'", "'0,2', '2,3'",
         "caches[2].sharing.groups[1]: found 2, which is in group 0 too"},
        {"'0,2', '1,3'", "'1,3', '0,2'",
         "caches[2].sharing.groups[1]: expected groups in the order"},
        {"'5,7']", "'5,7'], 'pairs': [[3, 3]]",
         "caches[2].sharing.pairs[0]: found [3, 3], expected the lower"},
        {"'5,7']", "'5,7'], 'pairs': [[3, 8]]",
         "caches[2].sharing.pairs[0]: found [3, 8], expected only"},
        {"'5,7']", "'5,7'], 'pairs': [[3, 4], [0, 1]]",
         "sharing.pairs[1]: expected pairs in ascending order"},
        {"'5,7']", "'5,7'], 'pairs': [[3]]",
         "sharing.pairs[0]: found an array, expected a pair such as [0, 5]"},
        {"'origin': 'quoted'", "'origin': 'guessed'",
         "quality.origin: found \"guessed\", expected \"declared\""},
        {"'measured': true", "'measured': 1",
         "$.measurement.measured: found 1, expected true or false"},
        {"1.2e-05", "-1.2e-05",
         "communication.layers[0].seconds: found -1.2e-05, expected a number"},
        {"1.2e-05", "0", "layers[0].seconds: found 0, expected a finite, positive number"},
        {"'bytes_per_s': 6000000000", "'bytes_per_s': null",
         "memory.levels[0].bytes_per_s: found null, expected a"},
        {"'count': 2", "'count': 3", "$.nodes[0].count: found 3, expected an integer from 2 to 2"},
        {"node[1-2]", "node[2-1]", "$.nodes[0].names: expected host names such as"},
        {"'class_index': 0", "'class_index': 1",
         "$.nodes[0].class_index: found 1, expected an integer from 0 to 0"},
        {"['0-1']", "['0-2']", "$.network.layers[0].members.groups[0]: found 2, expected only"},
        {"'message_bytes': 32768", "'message_bytes': 1.5",
         "message_bytes: found 1.5, expected an integer"},
        {"'host': {", "'host': [{", ":5:"},
        {"'host': {'name': 'node1',", "'host': {", "$.host.name: missing, expected a string"},
        {"'level': 2", "'level': 1, 'level': 2", "duplicate object key"},
        {"'collisions'", "'col\\nlisions'",
         "memory.levels[0].collisions: missing, expected an object"},
        {"'servet_profile': 1", "'servet_profile': 0",
         "$.servet_profile: found 0, expected version 1"},
},
  full_refusals[] = {
      /* A piece beside itself: what one of a kind cannot break. */
      {"'caches': [",
       "'caches': [{'level': 1, 'size_bytes': 1, 'pus': '9', 'sharing': {}, 'quality': {'origin': "
       "'measured'}}, ",
       "$.node_classes[0].caches[1]: found a PU that another cache of this level holds"},
      {"'cache_curve': [", "'cache_curve': [{'bytes': 12, 'seconds_per_access': 1}, ",
       "$.node_classes[0].cache_curve[1].bytes: found 12, expected an integer from 13"},
      {"'layers': [",
       "'layers': [{'seconds': 1, 'members': {}, 'quality': {'origin': 'measured'}}, ",
       "communication.layers[1].seconds: expected layers from the lowest latency to the highest"},
      {"'levels': [",
       "'levels': [{'bytes_per_s': 7, 'collisions': {}, 'quality': {'origin': 'measured'}}, ",
       "memory.levels[1].bytes_per_s: expected levels from the lowest bandwidth to the highest"},
      {"'curve': [", "'curve': [{'bytes': 1, 'seconds': 1}, ",
       "curve[1].bytes: found 0, expected an integer from 2"},
      {"'numa_access': [",
       "'numa_access': [{'pus': '0-3', 'node': 0, 'quality': {'origin': 'measured'}}, ",
       "numa_access[1]: expected an order by lowest PU"},
      {"'node': 2", "'node': 1",
       "numa_access[1].node: expected the number of one of the class's NUMA nodes"},
      {"'node': 2, 'to_device", "'node': 1, 'to_device",
       "devices[0].transfers[0].node: expected the number of one of the class's NUMA nodes"},
      {"'transfers': [",
       "'transfers': [{'node': 2, 'to_device_bytes_per_s': 1, 'from_device_bytes_per_s': 1, "
       "'seconds': 1, 'quality': {'origin': 'measured'}}, ",
       "devices[0].transfers[1].node: found 2, expected an integer from 3"},
      {"'to_device_bytes_per_s': 26500000000", "'to_device_bytes_per_s': 0",
       "devices[0].transfers[0].to_device_bytes_per_s: found 0, expected"},
      {"'numa': [", "'numa': [{'os_index': 1, 'pus': ''}, ",
       "numa[1].os_index: found 0, expected an integer from 2"},
};

enum { SHORT = sizeof refusals / sizeof *refusals };

TEST(bad_input_is_refused_with_place_finding_and_expectation,
     .loops = SHORT + sizeof full_refusals / sizeof *full_refusals)
{
    bool full = _i >= SHORT;
    const struct refusal *r = full ? &full_refusals[_i - SHORT] : &refusals[_i];
    char *good = read_text(full ? EVERY_FIELD : NEHALEM),
         *bad = replaced(good, quoted(r->from), quoted(r->to));
    struct servet_profile *profile = NULL;
    struct servet_error error = {""};
    int rc = profile_parse(bad, strlen(bad), "some/file.json", &profile, &error);
    ck_assert_msg(rc == -EINVAL, "'%s' was taken", r->to);
    ck_assert_ptr_null(profile);
    ck_assert_msg(strstr(error.text, r->says) != NULL, "'%s' does not say '%s'", error.text,
                  r->says);
    ck_assert_msg(strncmp(error.text, "some/file.json:", 15) == 0, "'%s' does not name the file",
                  error.text);
    ck_assert_ptr_null(strpbrk(error.text, "\n\r\t"));
    ck_assert_int_eq(profile_parse(bad, strlen(bad), "some/file.json", &profile, NULL), -EINVAL);
}

TEST(syntax_errors_name_line_and_column)
{
    static const char text[] = "{\n  \"servet_profile\": 1,\n  \"host\": }\n";
    struct servet_profile *profile;
    struct servet_error error = {""};
    ck_assert_int_eq(profile_parse(text, strlen(text), "f", &profile, &error), -EINVAL);
    ck_assert_msg(strncmp(error.text, "f:3:11: not JSON: ", 18) == 0, "%s", error.text);
}

TEST(a_byte_order_mark_is_passed_over)
{
    char *good = read_text(NEHALEM), *marked = NULL;
    ck_assert_int_gt(asprintf(&marked, "\xef\xbb\xbf%s", good), 0);
    ck_assert_int_eq(in_json(parsed(kept(marked)))[0], '{');
}

TEST(unknown_keys_are_kept_where_they_were_and_noted_once)
{
    char *good = read_text(NEHALEM),
         *more = replaced(good, "\"level\": 2",
                          "\"victim\": {\"of\": [2, \"L1\"]}, \"x-site\": 1.5, \"level\": 2"),
         *most = replaced(more, "\"host\": {", "\"fu\\u001bture\": null, \"host\": {");
    struct servet_profile *profile = parsed(most);
    ck_assert_str_eq(profile->unknown, "f: $.node_classes[0].caches[1].victim");
    char *saved = in_json(profile);
    ck_assert_ptr_nonnull(strstr(saved, "ture\": null"));
    const char *level = strstr(saved, "\"level\": 2"), *next = strstr(saved, "\"level\": 3");
    const char *victim = strstr(saved, "\"victim\": {\"of\": [2, \"L1\"]}");
    const char *site = strstr(saved, "\"x-site\": 1.5");
    ck_assert(level < victim && victim < next && level < site && site < next);
    ck_assert_str_eq(saved, in_json(parsed(saved)));
    ck_assert_ptr_null(parsed(good)->unknown);
}

TEST(strings_bring_no_control_characters)
{
    char *good = read_text(NEHALEM),
         *bad = replaced(good, "Intel Xeon", "In\\u001b[2J\\nel\\u009b Xeon");
    ck_assert_str_eq(parsed(bad)->cpu_model, "In?[2J?el?? Xeon E5520");
}

TEST(worse_memory_levels_must_collide_in_the_milder_ones)
{
    static const char end[] = "'quality': {'origin': 'quoted'}}\n        ]\n      },",
                      milder[] = "'quality': {'origin': 'quoted'}}, {'bytes_per_s': 7e9, "
                                 "'collisions': {'groups': ['0-3']}, "
                                 "'quality': {'origin': 'quoted'}}\n        ]\n      },";
    char *bad = replaced(read_text(NEHALEM), quoted(end), quoted(milder));
    struct servet_profile *profile;
    struct servet_error error = {""};
    ck_assert_int_eq(profile_parse(bad, strlen(bad), "f", &profile, &error), -EINVAL);
    ck_assert_msg(
        strstr(error.text,
               "$.node_classes[0].memory.levels[0].collisions.groups[0]: expected members that"),
        "%s", error.text);
    parsed(replaced(bad, "[\"0-3\"]", "[\"0-7\"]"));
}

TEST(files_that_cannot_be_read_say_why)
{
    struct servet_profile *profile;
    struct servet_error error = {""};
    ck_assert_int_eq(profile_load("/nonexistent/p.json", &profile, &error), -ENOENT);
    ck_assert_str_eq(error.text, "/nonexistent/p.json: No such file or directory");
    ck_assert_int_eq(profile_load("/", &profile, &error), -EISDIR);
    ck_assert_int_eq(profile_load("/dev/null", &profile, &error), -EINVAL);
}

/* A few locales write 0,1: neither reading nor writing may notice. */
TEST(a_decimal_comma_in_the_locale_changes_nothing)
{
    char *before = in_json(loaded(EVERY_FIELD));
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8")) {
        fprintf(stderr,
                "no locale with a decimal comma is installed: only the C locale was tried\n");
    }
    char *after = in_json(parsed(before));
    setlocale(LC_ALL, "C");
    ck_assert_str_eq(before, after);
}
