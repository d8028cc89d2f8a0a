/* Measured figures of NUMA nodes, for every program that uses hwloc: its own XML of the topology
 * with the memory attributes Bandwidth and Latency set, written by hwloc itself, so that the format
 * is never ours. Attributes have an initiator, the PUs of a row of the profile: that is how hwloc
 * tells near memory from far. Reference: hwloc/memattrs.h, "Comparing memory node attributes". */
#include <errno.h>
#include <hwloc.h>
#include <string.h>

#include "profile/base/cli.h"
#include "report/report.h"

/* hwloc's units: whole MiB/s and ns. */
static const double unit_bytes_per_s = 1 << 20, unit_s = 1e-9;

/* A figure that was not measured, or is less than a unit, is left out. */
static void set_value(hwloc_topology_t topology, hwloc_memattr_id_t attribute, hwloc_obj_t node,
                      hwloc_cpuset_t initiator, double units)
{
    struct hwloc_location from = {.type = HWLOC_LOCATION_TYPE_CPUSET, .location.cpuset = initiator};
    const hwloc_uint64_t whole = units > 0 ? (hwloc_uint64_t)(units + 0.5) : 0;
    if (whole && hwloc_memattr_set_value(topology, attribute, node, &from, 0, whole) < 0) {
        cli_fail("--hwloc: hwloc refuses an attribute of node %u: %s", node->os_index,
                 strerrordesc_np(errno));
    }
}

static void set_row(hwloc_topology_t topology, const struct profile_numa_access *row)
{
    hwloc_obj_t node = hwloc_get_numanode_obj_by_os_index(topology, row->node);
    hwloc_bitmap_t initiator = cli_needed(hwloc_bitmap_alloc());
    for (size_t i = 0; i < row->pus.count; i++) {
        hwloc_bitmap_set(initiator, row->pus.ids[i]);
    }
    if (!node ||
        !hwloc_bitmap_isincluded(initiator, hwloc_topology_get_complete_cpuset(topology))) {
        cli_usage(
            "--hwloc: hwloc: expected a topology with NUMA node %u and the PUs from %u on, as "
            "in the profile; the one that hwloc reads is another machine's",
            row->node, row->pus.ids[0]);
    }
    set_value(topology, HWLOC_MEMATTR_ID_BANDWIDTH, node, initiator,
              row->bytes_per_s / unit_bytes_per_s);
    set_value(topology, HWLOC_MEMATTR_ID_LATENCY, node, initiator,
              row->seconds_per_access / unit_s);
    hwloc_bitmap_free(initiator);
}

char *report_hwloc(const struct servet_profile *profile, size_t *length)
{
    hwloc_topology_t topology;
    char *text;
    int size;
    if (profile->class_count == 0 || profile->classes[0].numa_access_count == 0) {
        cli_fail("--hwloc: no latency or bandwidth of NUMA nodes in the profile (servet-probe "
                 "--probes memory measures them)");
    }
    cli_done(hwloc_topology_init(&topology));
    if (hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) < 0 ||
        hwloc_topology_load(topology) < 0) {
        cli_fail("--hwloc: hwloc cannot read the topology");
    }
    for (size_t i = 0; i < profile->classes[0].numa_access_count; i++) {
        set_row(topology, &profile->classes[0].numa_access[i]);
    }
    if (hwloc_topology_export_xmlbuffer(topology, &text, &size, 0) < 0) {
        cli_fail("--hwloc: hwloc cannot write the topology");
    }
    char *out = cli_needed(strndup(text, (size_t)size));
    *length = strlen(out);
    hwloc_free_xmlbuffer(topology, text);
    hwloc_topology_destroy(topology);
    return out;
}
