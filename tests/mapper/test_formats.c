/* Are the numbers by which Open MPI's --cpu-list and pe-list count those of hwloc's own tree? (What
 * the formats print: golden/formats.golden.) */
#include <hwloc.h>
#include <string.h>

#include "mapper/formats/formats.h"
#include "profile/scope.h"
#include "tests/base/runner.h"
#include "tests/profile/fixture.h"

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
