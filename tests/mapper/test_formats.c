/* Does every format say the mapping it was given? Mappings drawn at random, of machines whose PUs
 * are numbered at random, are printed in all formats that name PUs and read back here. (Whether
 * their consumers read them so too: test_consumers.c.) */
#include <ctype.h>
#include <hwloc.h>
#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/formats/formats.h"
#include "profile/scope.h"
#include "tests/base/runner.h"
#include "tests/mapper/random_profile.h"
#include "tests/profile/fixture.h"

#define MOST_PUS 160 /* masks of three words of 64 bits */
#define MAPPINGS 400

/* How a format writes PUs. */
struct language {
    const char *format;
    const char *before;  /* the first number of a line */
    const char *between; /* what may stand between numbers of one rank */
    char ranks;          /* between ranks on one line; 0: each has a line */
    bool masks, logical;
    bool sorted; /* it says a set */
};

static const struct language languages[] = {
    {"list", "", ",", 0, false, false, false},
    {"omp-places", "OMP_PLACES=", "{},", 0, false, false, false},
    {"gomp", "GOMP_CPU_AFFINITY=", ",", 0, false, false, false},
    {"kmp", "proclist=[", ",", 0, false, false, false},
    {"likwid-pin", "-c ", ",", 0, false, false, false},
    {"taskset", "-c ", ",", 0, false, false, true},
    {"numactl", "-C ", ",", 0, false, false, true},
    {"hwloc-bind", "--physical", " pu:", 0, false, false, true},
    {"rankfile", " slot=", ",", 0, false, false, true},
    {"prrte-rankfile", " slot=", ",", 0, false, true, true},
    {"hydra", "user:", "+", ',', false, false, true},
    {"pals", "list:", ",", ':', false, false, true},
    {"flux", "map:", ",", ';', false, false, true},
    {"impi-list", "PROCESSOR_LIST=", "", ',', false, false, false},
    {"slurm-map", "map_cpu:", "", ',', false, false, false},
    {"cpu-list", "--cpu-list ", "", ',', false, true, false},
    {"pe-list", "pe-list=", "", ',', false, true, false},
    {"impi-domain", "PIN_DOMAIN=[", "", ',', true, false, true},
    {"slurm-mask", "mask_cpu:", "", ',', true, false, true},
};

/* Formats that name no PUs; json is in golden/formats.golden. */
static const char *const others[] = {"devices",  "json",        "host",
                                     "hostfile", "hydra-hosts", "slurm-hosts"};

/* The mapping read back: the PUs of one rank after the other. */
struct reading {
    uint32_t pus[MOST_PUS];
    size_t first[MOST_PUS + 1], ranks;
};

static void add_pu(struct reading *r, uint32_t pu)
{
    ck_assert_uint_lt(r->first[r->ranks], MOST_PUS);
    r->pus[r->first[r->ranks]++] = pu;
}

static void end_rank(struct reading *r)
{
    ck_assert_uint_lt(r->ranks, MOST_PUS);
    r->ranks++;
    r->first[r->ranks] = r->first[r->ranks - 1];
}

/* The bits of a number in hexadecimal, of any length. */
static const char *read_mask(struct reading *r, const char *at)
{
    at += strncmp(at, "0x", 2) == 0 ? 2 : 0;
    size_t digits = strspn(at, "0123456789abcdefABCDEF");
    ck_assert_uint_gt(digits, 0);
    for (size_t d = digits; d-- > 0;) {
        char digit[] = {at[d], '\0'};
        for (uint32_t bit = 0; bit < 4; bit++) {
            if (strtoul(digit, NULL, 16) >> bit & 1) {
                add_pu(r, (uint32_t)(4 * (digits - 1 - d)) + bit);
            }
        }
    }
    return at + digits;
}

static const char *read_number(struct reading *r, const char *at)
{
    char *end;
    unsigned long first = strtoul(at, &end, 10), last = first;
    ck_assert(end > at);
    last = *end == '-' && isdigit((unsigned char)end[1]) ? strtoul(end + 1, &end, 10) : first;
    for (; first <= last; first++) {
        add_pu(r, (uint32_t)first);
    }
    return end;
}

static void read_back(const struct language *language, const char *text, struct reading *r)
{
    *r = (struct reading){0};
    while (*text) {
        size_t length = strcspn(text, "\n");
        const char *at = strstr(text, language->before), *end = text + length;
        ck_assert_msg(at && at < end, "%s: %s", language->format, text);
        at += strlen(language->before);
        for (bool more = true; more && at < end;) {
            at += strspn(at, language->between);
            more = isxdigit((unsigned char)*at) && !(*language->before == '-' && *at == '-');
            if (more) {
                at = language->masks ? read_mask(r, at) : read_number(r, at);
            }
            if (more && language->ranks && *at == language->ranks) {
                end_rank(r);
                at++;
            }
        }
        end_rank(r);
        text = end + (*end == '\n');
    }
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void assert_same(const struct language *language, const char *text,
                        const struct map_mapping *mapping, hwloc_topology_t topology)
{
    struct reading r;
    uint32_t expected[MOST_PUS];
    read_back(language, text, &r);
    /* The threads of one process are one line; else every worker is a rank. */
    bool one = !mapping->hybrid && !language->ranks && !strstr(language->format, "rankfile");
    ck_assert_msg(r.ranks == (one ? 1 : mapping->rank_count), "%s: %zu ranks, expected %zu in: %s",
                  language->format, r.ranks, mapping->rank_count, text);
    ck_assert_msg(r.first[r.ranks - 1] == mapping->place_count, "%s: %s", language->format, text);
    for (size_t i = 0; i < mapping->place_count; i++) {
        expected[i] = mapping->places[i].os_index;
        if (language->logical) {
            hwloc_obj_t pu = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, r.pus[i]);
            ck_assert_msg(pu, "%s: %s", language->format, text);
            r.pus[i] = pu->os_index;
        }
    }
    for (size_t rank = 0, from = 0; rank < r.ranks; from = r.first[rank++]) {
        size_t count = r.first[rank] - from;
        ck_assert(one || count == mapping->first[rank + 1] - mapping->first[rank]);
        if (language->sorted) {
            qsort(expected + from, count, sizeof *expected, by_number);
            qsort(r.pus + from, count, sizeof *r.pus, by_number);
        }
        ck_assert_msg(memcmp(expected + from, r.pus + from, count * sizeof *expected) == 0,
                      "%s: rank %zu differs in: %s", language->format, rank, text);
    }
}

/* As hwloc itself has the machine of a description or of a file. */
static hwloc_topology_t opened(const char *source)
{
    hwloc_topology_t topology;
    ck_assert(hwloc_topology_init(&topology) == 0 &&
              (strstr(source, ".xml") ? hwloc_topology_set_xml(topology, source)
                                      : hwloc_topology_set_synthetic(topology, source)) == 0 &&
              hwloc_topology_load(topology) == 0);
    return topology;
}

static uint32_t choose(struct random_source *random, uint32_t low, uint32_t high)
{
    return low + random_below(random, high - low + 1);
}

/* A machine as a description for hwloc; its PUs. */
static uint32_t draw_machine(struct random_source *random, char *text, size_t size)
{
    uint32_t packages = choose(random, 1, 2), caches = choose(random, 1, 4),
             cores = choose(random, 1, 10), threads = choose(random, 1, 2);
    uint32_t pus = packages * caches * cores * threads, numbers[MOST_PUS];
    random_order(random, numbers, pus);
    int used = snprintf(text, size, "package:%u [numa] l3:%u core:%u pu:%u", packages, caches,
                        cores, threads);
    for (uint32_t i = 0; i < pus && random_below(random, 4) + (i > 0); i++) {
        used +=
            snprintf(text + used, size - (size_t)used, "%s%u", i ? "," : "(indexes=", numbers[i]);
    }
    if (strchr(text, '(')) {
        snprintf(text + used, size - (size_t)used, ")");
    }
    return pus;
}

/* Some of the PUs in any order; of ranks with threads, any number for each. */
static void draw_mapping(struct random_source *random, const struct servet_profile *profile,
                         uint32_t pus, struct map_mapping *out)
{
    uint32_t order[MOST_PUS], threads[MOST_PUS], used = 0, ranks = 0;
    bool hybrid = random_below(random, 2);
    random_order(random, order, pus);
    uint32_t most = choose(random, 1, pus);
    while (used < most) {
        threads[ranks] = hybrid ? choose(random, 1, most - used) : 1;
        used += threads[ranks++];
    }
    if (random_below(random, 8) == 0) {
        qsort(order, used, sizeof *order, by_number);
    }
    *out = map_mapping_make(profile, order, ranks, hybrid ? threads : NULL);
}

/* Which printed something, by language. */
static void print_in_all(const struct map_mapping *mapping, hwloc_topology_t topology,
                         size_t *printed)
{
    for (size_t l = 0; l < sizeof languages / sizeof *languages; l++) {
        const struct map_format *format = map_format_find(languages[l].format);
        struct servet_error error;
        char *text;
        size_t length;
        ck_assert_msg(format, "no format %s", languages[l].format);
        FILE *out = open_memstream(&text, &length);
        int rc = map_format_print(out, format, mapping, &error);
        fclose(out);
        if (rc == 0) {
            assert_same(&languages[l], text, mapping, topology);
            printed[l]++;
        } else {
            ck_assert_msg(rc == -EINVAL && (mapping->hybrid || languages[l].logical), "%s: %s",
                          format->name, error.text);
        }
        free(text);
    }
}

/* PRRTE 3's grammar, as its lexer and its documentation have it (rmaps_rank_file_lex.l,
 * detail-placement-rankfiles.rst, cli-map-by.rst): lines of a rankfile; a directive of --map-by,
 * and its qualifiers. */
static const struct {
    const char *format, *grammar;
} prrte[] = {
    {"prrte-rankfile",
     "^(rank [0-9]+=[A-Za-z][A-Za-z0-9_.-]* slot=[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*\n)+$"},
    {"pe-list", "^--bind-to hwthread --map-by pe-list=[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*"
                "(:(ordered|hwtcpus|corecpus|inherit|noinherit|oversubscribe|nooversubscribe))*"
                "\n$"},
};

TEST(prrte_reads_what_is_printed, .loops = (sizeof prrte / sizeof *prrte))
{
    const uint32_t order[] = {3, 0, 6, 5};
    const struct map_format *format = map_format_find(prrte[_i].format);
    FREED_BY(map_mapping_free)
    struct map_mapping mapping =
        map_mapping_make(described("package:2 core:2 pu:2"), order, 4, NULL);
    struct servet_error error;
    FREED char *text;
    size_t length;
    regex_t grammar;
    FILE *out = open_memstream(&text, &length);
    ck_assert_msg(map_format_print(out, format, &mapping, &error) == 0, "%s", error.text);
    fclose(out);
    ck_assert_int_eq(regcomp(&grammar, prrte[_i].grammar, REG_EXTENDED | REG_NOSUB), 0);
    ck_assert_msg(regexec(&grammar, text, 0, NULL, 0) == 0, "%s", text);
    regfree(&grammar);
}

TEST(every_format_says_the_mapping_it_was_given)
{
    size_t printed[sizeof languages / sizeof *languages] = {0};
    for (uint64_t seed = 1; seed <= MAPPINGS; seed++) {
        struct random_source random = {seed * 0x9e3779b97f4a7c15ull};
        char text[1024];
        struct map_mapping mapping;
        uint32_t pus = draw_machine(&random, text, sizeof text);
        struct servet_profile *profile = described(text);
        hwloc_topology_t topology = opened(text);
        draw_mapping(&random, profile, pus, &mapping);
        print_in_all(&mapping, topology, printed);
        map_mapping_free(&mapping);
        hwloc_topology_destroy(topology);
    }
    for (size_t l = 0; l < sizeof languages / sizeof *languages; l++) {
        ck_assert_msg(printed[l] > 5, "%s: only %zu", languages[l].format, printed[l]);
    }
}

/* A new format is read back, too. */
TEST(no_format_is_left_out)
{
    size_t count = 0;
    while (map_formats[count].name) {
        count++;
    }
    ck_assert_uint_eq(count, sizeof languages / sizeof *languages + sizeof others / sizeof *others);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        ck_assert(map_format_find(others[i]));
    }
}

/* What Open MPI's --cpu-list and pe-list count by, against hwloc's own tree. */
TEST(logical_numbers_are_those_of_hwloc)
{
    static const char *const sources[] = {
        FIXTURES "/topologies/two-l3-sizes.xml",
        FIXTURES "/topologies/Intel-ArrowLake-CoreUltra5-225U.xml",
        FIXTURES "/topologies/fakeheterocpunuma.xml",
        FIXTURES "/topologies/4fake-4gr1nu1pu.xml",
        ("package:2 [numa] l3:3 core:3 pu:2(indexes=0,18,1,19,2,20,3,21,4,22,5,23,6,24,7,25,8,26,9,"
         "27,10,28,11,29,12,30,13,31,14,32,15,33,16,34,17,35)"),
    };
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        struct servet_profile *profile = described(sources[i]);
        const struct profile_class *class = &profile->classes[0];
        bool file = strstr(sources[i], ".xml");
        hwloc_topology_t topology;
        ck_assert(hwloc_topology_init(&topology) == 0 &&
                  (file ? hwloc_topology_set_xml(topology, sources[i])
                        : hwloc_topology_set_synthetic(topology, sources[i])) == 0 &&
                  hwloc_topology_load(topology) == 0);
        FREED uint32_t *logical = map_logical_indices(class);
        for (size_t at = 0; at < class->pus.count; at++) {
            hwloc_obj_t pu = hwloc_get_pu_obj_by_os_index(topology, class->pus.ids[at]);
            ck_assert_msg(pu && pu->logical_index == logical[at], "%s: PU %u is %u, hwloc: %u",
                          sources[i], class->pus.ids[at], logical[at], pu->logical_index);
        }
        hwloc_topology_destroy(topology);
    }
}

TESTS(.seconds = 120)
