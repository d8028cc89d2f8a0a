/* Does a machine that was never measured get the profile that its operating system's description
 * means? */
#include "tests/profile/fixture.h"
#include "tests/profile/tree.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/query.h"
#include "profile/topology/topology.h"
#include "tests/base/runner.h"

/* Of what is refused. */
static struct servet_profile *none;
static struct servet_error error;

static struct servet_profile *from_hwloc(const char *source)
{
    struct servet_profile *profile = described(source);
    ck_assert_msg(profile_check(profile, &error) == 0, "%s", error.text);
    ck_assert(!profile->measured);
    return profile;
}

static void assert_groups(const struct profile_relation *relation, const char *expected)
{
    ck_assert_str_eq(lists_of(relation), expected);
}

static const struct profile_class *only_class(const struct servet_profile *profile)
{
    ck_assert_uint_eq(profile->class_count, 1);
    ck_assert_uint_eq(profile_node_count(profile), 1);
    return &profile->classes[0];
}

/* "core 0-1 2-3, node 0-3": the layers, of which none was measured. */
static void assert_layers(const struct profile_class *node, const char *expected)
{
    const char *text = "";
    for (size_t i = 0; i < node->communication.layer_count; i++) {
        const struct profile_layer *layer = &node->communication.layers[i];
        ck_assert(layer->seconds == 0);
        text = formatted("%s%s%s %s", text, i ? ", " : "", layer->name, lists_of(&layer->members));
    }
    ck_assert_str_eq(text, expected);
}

/* "0-1 2-3, 0-3": the PUs that share memory bandwidth, the worst level first. */
static void assert_levels(const struct profile_class *node, const char *expected)
{
    const char *text = "";
    for (size_t i = 0; i < node->memory.level_count; i++) {
        text =
            formatted("%s%s%s", text, i ? ", " : "", lists_of(&node->memory.levels[i].collisions));
    }
    ck_assert_str_eq(text, expected);
}

TEST(sysfs_describes_a_captured_smt_machine)
{
    put_smt_machine();
    struct servet_profile *p = of_sysfs(scratch_folder());
    const struct profile_class *node = only_class(p);
    assert_groups(&node->cores, "0,4 1,5 2,6 3,7");
    assert_groups(&node->packages, "0-1,4-5 2-3,6-7");
    ck_assert_uint_eq(node->cache_count, 3);
    const uint64_t sizes[] = {32 << 10, 256 << 10, 8 << 20};
    const char *groups[] = {"0,4 1,5 2,6 3,7", "0,4 1,5 2,6 3,7", "0-1,4-5 2-3,6-7"};
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(node->caches[i].level, i + 1);
        ck_assert_uint_eq(node->caches[i].size_bytes, sizes[i]);
        ck_assert_uint_eq(node->caches[i].line_bytes, 64);
        ck_assert_int_eq(node->caches[i].quality.origin, PROFILE_DECLARED);
        assert_groups(&node->caches[i].sharing, groups[i]);
    }
    ck_assert_uint_eq(node->caches[2].associativity, 16);
    ck_assert_uint_eq(node->numa_count, 3);
    ck_assert_uint_eq(node->numa[0].memory_bytes, 2048 << 10);
    ck_assert_uint_eq(node->numa[2].pus.count, 0);
    assert_levels(node, "0-1,4-5 2-3,6-7"); /* package and NUMA node are the same PUs */
    assert_layers(node, "core 0,4 1,5 2,6 3,7, L3 0-1,4-5 2-3,6-7, node 0-7");
}

/* Lines of /proc/cpuinfo as these processors have them; Arm's has no name. */
TEST(processors_without_a_model_name_are_named)
{
    static const struct {
        const char *cpuinfo, *name;
    } cases[] = {
        {"processor\t: 0\nBogoMIPS\t: 2000.00\nCPU implementer\t: 0x41\nCPU architecture: 8\n"
         "CPU variant\t: 0x0\nCPU part\t: 0xd4f\nCPU revision\t: 0\n",
         "Arm Neoverse-V2"},
        {"CPU implementer\t: 0x46\nCPU part\t: 0x001\n", "Fujitsu A64FX"},
        {"CPU implementer\t: 0x7f\nCPU part\t: 0x123\n", "Arm implementer 0x7f part 0x123"},
        {"processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 3800.000000MHz\n",
         "POWER9"},
        {"processor\t: 0\nhart\t\t: 1\nisa\t\t: rv64imafdc\nuarch\t\t: sifive,u74-mc\n",
         "sifive,u74-mc"},
        {"model name\t: Test CPU\n", "Test CPU"},
        {"processor\t: 0\n", "A Board"},
    };
    enum { CASES = sizeof cases / sizeof cases[0] };
    const char *root = scratch_folder();
    char signatures[CASES][PROFILE_SIGNATURE_SIZE];
    struct sysfs fs = {.root = root};
    put_smt_machine();
    put_file("/proc/device-tree/model", "A Board");
    for (size_t i = 0; i < CASES; i++) {
        put_file("/proc/cpuinfo", cases[i].cpuinfo);
        char *name = profile_sysfs_processor(&fs);
        ck_assert_str_eq(name, cases[i].name);
        free(name);
        ck_assert_int_eq(profile_signature(root, signatures[i]), 0);
        ck_assert(i == 0 || strcmp(signatures[i], signatures[i - 1]) != 0);
    }
}

TEST(offline_pus_are_left_out_by_sysfs)
{
    put_smt_machine();
    put_file("/sys/devices/system/cpu/online", "0-6\n");
    struct servet_profile *p = of_sysfs(scratch_folder());
    assert_groups(&p->classes[0].cores, "0,4 1,5 2,6");
    assert_levels(&p->classes[0], "0-1,4-5 2-3,6");
}

TEST(cores_of_different_caches_are_told_apart_by_sysfs)
{
    put_smt_machine();
    const int small[] = {2, 3, 6, 7};
    for (size_t i = 0; i < 4; i++) {
        const char *cache = formatted("/sys/devices/system/cpu/cpu%d/cache/index0", small[i]);
        put_file(formatted("%s/size", cache), "48K\n");
        put_file(formatted("%s/ways_of_associativity", cache), "12\n");
    }
    put_file("/sys/devices/cpu_atom/cpus", "0-1,4-5\n");
    put_file("/sys/devices/cpu_core/cpus", "2-3,6-7\n");
    struct servet_profile *p = of_sysfs(scratch_folder());
    const struct profile_class *node = only_class(p);
    ck_assert_uint_eq(node->cache_count, 4);
    ck_assert_uint_eq(node->caches[0].size_bytes, 32 << 10);
    assert_groups(&node->caches[0].sharing, "0,4 1,5");
    ck_assert_uint_eq(node->caches[1].size_bytes, 48 << 10);
    ck_assert_uint_eq(node->caches[1].associativity, 12);
    ck_assert_uint_eq(node->caches[1].pus.count, 4);
    ck_assert_uint_eq(node->kind_count, 2);
    ck_assert(profile_set_has(&node->kinds[1].pus, 7));
}

TEST(a_folder_without_a_machine_is_refused)
{
    ck_assert_int_eq(profile_from_sysfs(scratch_folder(), &none, &error), -ENOENT);
    ck_assert_ptr_nonnull(strstr(error.text, "/sys/devices/system/cpu/online: No such file"));
    ck_assert_ptr_null(none);
}

/* As far as the kernel says it: hwloc adds what CPUID knows. */
TEST(sysfs_and_hwloc_agree_on_this_machine)
{
    setenv("HWLOC_COMPONENTS", "-x86", 1);
    struct servet_profile *sysfs = of_sysfs("");
    ck_assert_ptr_null(sysfs->topology_signature); /* it costs, and the shim does not ask for it */
    ck_assert_ptr_null(sysfs->cpu_model);
    struct servet_profile *hwloc = from_hwloc(NULL);
    size_t devices = hwloc->classes[0].device_count;
    hwloc->classes[0].device_count = 0; /* no place is chosen by them in the shim */
    ck_assert_str_eq(in_json(named(sysfs)), in_json(hwloc));
    hwloc->classes[0].device_count = devices;
}

/* Rule 5 is the mapper's: the profile knows the whole machine, whatever this process may use. */
TEST(a_narrow_mask_does_not_make_the_machine_smaller)
{
    struct servet_profile *before = from_hwloc(NULL), *after;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    after = from_hwloc(NULL);
    ck_assert(profile_set_equal(&before->classes[0].pus, &after->classes[0].pus));
}

TEST(a_described_machine_gets_its_layers_and_memory_levels, .loops = 5)
{
    static const struct {
        const char *machine, *layers, *levels;
    } machines[] = {
        /* the NUMA node is the worse level */
        {"package:2 numa:2 l3:1 core:2 pu:2",
         "core 0-1 2-3 4-5 6-7 8-9 10-11 12-13 14-15, L3 0-3 4-7 8-11 12-15, package 0-7 8-15, "
         "node 0-15",
         "0-3 4-7 8-11 12-15, 0-7 8-15"},
        /* Kunpeng's shape: clusters of cores that share no cache which anybody tells of */
        {"package:2 group:2 core:2 pu:1", "group 0-1 2-3 4-5 6-7, package 0-3 4-7, NUMA node 0-7",
         "0-1 2-3 4-5 6-7, 0-3 4-7, 0-7"},
        /* dies and clusters */
        {"package:1 die:2 group:2 core:2 pu:1", NULL, "0-1 2-3 4-5 6-7, 0-3 4-7, 0-7"},
        /* an L2 says it already */
        {"package:2 group:2 l2:1 core:2 pu:1", NULL, "0-3 4-7, 0-7"},
        /* Finis Terrae's shape: two packages (buses) in each NUMA node (cell) */
        {"numa:2 package:2 core:2 pu:1", NULL, "0-1 2-3 4-5 6-7, 0-3 4-7"},
    };
    struct servet_profile *p = from_hwloc(machines[_i].machine);
    if (machines[_i].layers) {
        assert_layers(only_class(p), machines[_i].layers);
    }
    assert_levels(only_class(p), machines[_i].levels);
    ck_assert_str_eq(p->nodes[0].names, "localhost");
}

/* Seen red: it was waited for a writer. */
TEST(a_fifo_in_place_of_a_file_is_refused)
{
    put_smt_machine();
    const char *online = scratch_path("sys/devices/system/cpu/online");
    ck_assert(unlink(online) == 0 && mkfifo(online, 0600) == 0);
    ck_assert_int_lt(profile_from_sysfs(scratch_folder(), &none, &error), 0);
    ck_assert_msg(strstr(error.text, "online"), "%s", error.text);
}

/* One package of eight cores, `groups` in files of this name. */
static void put_clusters(const char *file, const char *low, const char *high)
{
    put_file("/sys/devices/system/cpu/online", "0-7\n");
    for (unsigned pu = 0; pu < 8; pu++) {
        const char *folder = formatted("/sys/devices/system/cpu/cpu%u/topology", pu);
        put_file(formatted("%s/core_cpus_list", folder), formatted("%u\n", pu));
        put_file(formatted("%s/package_cpus_list", folder), "0-7\n");
        put_file(formatted("%s/%s", folder, file), pu < 4 ? low : high);
    }
}

TEST(clusters_and_dies_are_read_by_sysfs, .loops = 2)
{
    static const char *const files[] = {"cluster_cpus_list", "die_cpus_list"};
    put_clusters(files[_i], "0-3\n", "4-7\n");
    assert_levels(only_class(of_sysfs(scratch_folder())), "0-3 4-7, 0-7");
}

TEST(hybrid_cores_keep_their_kinds_and_caches)
{
    struct servet_profile *p =
        from_hwloc(FIXTURES "/topologies/Intel-ArrowLake-CoreUltra5-225U.xml");
    const struct profile_class *node = only_class(p);
    ck_assert_uint_eq(node->kind_count, 2);
    ck_assert_uint_eq(node->kinds[0].pus.count, 10);
    ck_assert_uint_eq(node->kinds[1].pus.count, 4);
    ck_assert_uint_eq(node->cache_count, 4);
    assert_groups(&node->caches[0].sharing, "0-1 2-3");
    ck_assert_uint_eq(node->caches[1].pus.count, 10);
    assert_groups(&node->caches[2].sharing, "0-1 2-3 4-7 8-11 12-13");
    ck_assert_uint_eq(node->caches[3].pus.count, 12); /* the two low-power cores have no L3 */
}

/* file, PUs, caches, NUMA nodes */
static const struct odd {
    const char *name;
    size_t pus, caches, numa;
} odd_machines[] = {
    {"fakeheteromemtiers", 6, 3, 7},  /* several NUMA nodes with the same PUs */
    {"nvidiagpunumanodes", 32, 3, 2}, /* four threads a core, cgroup */
    {"4fake-4gr1nu1pu", 2, 0, 2},     /* no caches; a node whose PUs are not allowed */
    {"2ps3-2t", 2, 0, 1},             /* no package, no caches */
    {"fakeheterocpunuma", 24, 0, 4},  /* NUMA nodes of different size that overlap */
    {"16amd64-4n4c-cgroup-distance-merge", 4, 3,
     2}, /* memory allowed on other nodes than the PUs */
};

TEST(odd_machines_give_valid_profiles, .loops = sizeof odd_machines / sizeof *odd_machines)
{
    const struct odd *odd = &odd_machines[_i];
    struct servet_profile *p = from_hwloc(formatted(FIXTURES "/topologies/%s.xml", odd->name));
    ck_assert_uint_eq(only_class(p)->pus.count, odd->pus);
    ck_assert_uint_eq(only_class(p)->cache_count, odd->caches);
    ck_assert_uint_eq(only_class(p)->numa_count, odd->numa);
    parsed(in_json(p));
}

TEST(what_is_no_topology_is_refused_by_name)
{
    ck_assert_int_eq(profile_from_hwloc(NEHALEM, &none, &error), -EINVAL);
    ck_assert_ptr_nonnull(
        strstr(error.text, "nehalem-2-nodes.json: expected a topology in hwloc's XML"));
    ck_assert_int_eq(profile_from_hwloc("pakage:2", &none, &error), -EINVAL);
    ck_assert_ptr_nonnull(strstr(error.text, "'pakage:2': expected a file"));
}

/* One PCI device has many names, and graphics of a board's management are no GPU; tiles and dies
 * are devices of one card; a device without a place is near to all PUs and to no NUMA node. */
TEST(a_device_is_listed_once_with_its_card_and_its_place)
{
    static const struct {
        enum profile_device_kind kind;
        const char *name, *uuid, *pus;
        uint32_t number, card, node;
    } expected[] = {
        {PROFILE_GPU, "cuda0", "GPU-bbbb", "0-3", 0, 0, 0},
        {PROFILE_GPU, "rsmi0", "GPU-0f62596172e6212b", "4-7", 0, 1, 1},
        {PROFILE_GPU, "ze0.0", NULL, "4-7", 0, 2, 1},
        {PROFILE_GPU, "cuda1", "GPU-aaaa", "0-3", 1, 0, 0},
        {PROFILE_GPU, "ze0.1", NULL, "4-7", 1, 2, 1},
        {PROFILE_GPU, "rsmi1", NULL, "4-7", 1, 3, 1},
        {PROFILE_GPU, "ze1", NULL, "4-7", 1, 4, 1},
        {PROFILE_GPU, "rsmi2", NULL, "4-7", 2, 3, 1},
        {PROFILE_GPU, "ze2", NULL, "4-7", 2, 4, 1},
        {PROFILE_GPU, "cuda2", NULL, "0-7", 2, 5, PROFILE_NOT_SAID},
        {PROFILE_NIC, "mlx5_0", NULL, "0-3", PROFILE_NOT_SAID, 0, 0},
        {PROFILE_NIC, "mlx5_1", NULL, "0-3", PROFILE_NOT_SAID, 0, 0},
        {PROFILE_NIC, "hsi0", NULL, "0-7", PROFILE_NOT_SAID, 1, PROFILE_NOT_SAID},
        {PROFILE_DISK, "sda", NULL, "0-7", PROFILE_NOT_SAID, 0, PROFILE_NOT_SAID},
        {PROFILE_DISK, "nvme0n1", NULL, "4-7", PROFILE_NOT_SAID, 1, 1},
    };
    const struct profile_class *node = only_class(from_hwloc(FIXTURES "/topologies/devices.xml"));
    ck_assert_uint_eq(node->device_count, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < node->device_count; i++) {
        const struct profile_device *device = &node->devices[i];
        ck_assert_str_eq(device->name, expected[i].name);
        ck_assert_int_eq(device->kind, expected[i].kind);
        ck_assert_pstr_eq(device->uuid, expected[i].uuid);
        ck_assert_str_eq(list_of(&device->pus), expected[i].pus);
        ck_assert_uint_eq(device->number, expected[i].number);
        ck_assert_uint_eq(device->card, expected[i].card);
        ck_assert_uint_eq(device->numa_node, expected[i].node);
    }
    ck_assert_str_eq(node->devices[3].aliases, "opencl0d1 nvml0");
    ck_assert_str_eq(node->devices[1].model, "Aldebaran");
    ck_assert_str_eq(node->devices[7].model, "MI300A");
    ck_assert(node->devices[10].fabric && !node->devices[10].down && node->devices[11].down);
    ck_assert(node->devices[12].fabric);
}

TEST(memory_of_a_gpu_is_no_numa_node_of_a_pu)
{
    const struct profile_class *node = only_class(from_hwloc(FIXTURES "/topologies/devices.xml"));
    ck_assert_uint_eq(node->numa_count, 2);
    ck_assert(profile_numa_of(node, 0) && profile_numa_of(node, 1));
    put_smt_machine();
    put_file("/sys/devices/system/node/online", "0-4\n");
    put_file("/sys/devices/system/node/node2/cpulist", "\n");
    put_file("/sys/devices/system/node/node3/cpulist", "\n");
    put_file("/sys/devices/system/node/node4/cpulist", "\n");
    put_file("/sys/devices/system/node/has_generic_initiator", "0,2\n");
    put_file("/proc/driver/nvidia/gpus/0009:01:00.0/numa_status", "Node: 3\n");
    node = only_class(of_sysfs(scratch_folder()));
    ck_assert_uint_eq(node->numa_count, 3); /* node 0 has PUs, node 4 is CXL memory */
    ck_assert_uint_eq(node->numa[2].os_index, 4);
}

/* One PU, and functions on a PCI bus: their class, vendor and device in order, from bus 41 on. */
static const char *put_functions(const char *const *types, size_t count)
{
    const char *text = "";
    for (size_t i = 0; i < count; i++) {
        text = formatted("%s<object type=\"PCIDev\" gp_index=\"9%zu\" pci_busid=\"0000:%zx:00.0\" "
                         "pci_type=\"%s [0:0] 00\"><object type=\"OSDev\" gp_index=\"8%zu\" "
                         "name=\"card%zu\" osdev_type=\"1\"/></object>",
                         text, i, 0x41 + i, types[i], i, i);
    }
    return scratch_file(
        "gpus.xml",
        "<topology version=\"2.0\"><object type=\"Machine\" os_index=\"0\" cpuset=\"0x1\" "
        "complete_cpuset=\"0x1\" allowed_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\" "
        "allowed_nodeset=\"0x1\" gp_index=\"1\"><object type=\"NUMANode\" os_index=\"0\" "
        "cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\" "
        "gp_index=\"2\"/><object type=\"PU\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" "
        "nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"3\"/><object type=\"Bridge\" "
        "gp_index=\"4\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[00-ff]\">%s"
        "</object></object></topology>",
        text);
}

/* Where no runtime names any GPU: a board's management, old graphics of a maker of GPUs, and GPUs;
 * graphics alone are the GPU of a desktop. */
TEST(graphics_are_no_gpu_beside_accelerators)
{
    static const char *const server[] = {"0300 [1a03:2000]", "0300 [1002:515e]", "0302 [10de:20b0]",
                                         "1200 [1002:74a0]"};
    const struct profile_class *node = only_class(from_hwloc(put_functions(server, 4)));
    ck_assert_uint_eq(node->device_count, 2);
    ck_assert_str_eq(node->devices[0].name, "card2");
    ck_assert_str_eq(node->devices[1].name, "card3");
    node = only_class(from_hwloc(put_functions(server, 2)));
    ck_assert_uint_eq(node->device_count, 1);
    ck_assert_str_eq(node->devices[0].name, "card1");
}

/* Two NVIDIA GPUs, the second divided into two instances, and one of AMD in two partitions: hwloc
 * has no plugin for any runtime, as Debian's. */
TEST(drivers_name_the_gpus_that_hwloc_cannot)
{
    static const char *const types[] = {"0302 [10de:20b0]", "0302 [10de:20b0]", "1200 [1002:74a0]"};
    static const struct {
        const char *name, *uuid;
        uint32_t number;
    } expected[] = {
        {"card0", "GPU-one", 0},
        {"card2", NULL, 0},
        {"renderD129", NULL, 1},
        {"card1.1.0", "MIG-GPU-two/1/0", PROFILE_NOT_SAID},
        {"card1.9.1", "MIG-GPU-two/9/1", PROFILE_NOT_SAID},
    };
    const char *root = scratch_folder();
    put_file("/proc/driver/nvidia/gpus/0000:41:00.0/information",
             "Model: \t A100\nGPU UUID: \t GPU-one\nDevice Minor: \t 0\n");
    put_file("/proc/driver/nvidia/gpus/0000:42:00.0/information",
             "Model: \t A100\nGPU UUID: \t GPU-two\nDevice Minor: \t 1\n");
    put_file("/proc/driver/nvidia/capabilities/gpu1/mig/gi1/ci0/access", "");
    put_file("/proc/driver/nvidia/capabilities/gpu1/mig/gi9/ci1/access", "");
    put_file("/sys/class/kfd/kfd/topology/nodes/0/properties", "simd_count 0\n");
    for (int part = 1; part <= 2; part++) {
        put_file(formatted("/sys/class/kfd/kfd/topology/nodes/%d/properties", part),
                 formatted("simd_count 304\nlocation_id %d\ndomain 0\nunique_id 7\n"
                           "drm_render_minor %d\n",
                           0x4300 + part - 1, 127 + part));
    }
    struct servet_profile *profile = from_hwloc(put_functions(types, 3));
    struct sysfs fs = {.root = root};
    ck_assert_int_eq(profile_topology_count_gpus(&fs, &profile->classes[0]), 0);
    const struct profile_class *node = only_class(profile);
    ck_assert_uint_eq(node->device_count, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < node->device_count; i++) {
        ck_assert_str_eq(node->devices[i].name, expected[i].name);
        ck_assert_pstr_eq(node->devices[i].uuid, expected[i].uuid);
        ck_assert_uint_eq(node->devices[i].number, expected[i].number);
    }
    ck_assert_uint_eq(node->devices[1].card, node->devices[2].card);
    parsed(in_json(profile));
}

/* libhwloc 2.9 crashes on two of these. */
TEST(damaged_xml_is_refused_by_name)
{
    static const char name[] = "complete_nodeset";
    struct servet_profile *profile;
    char *text = kept(read_text(FIXTURES "/topologies/2ps3-2t.xml"));
    size_t damaged = 0;
    for (char *at = text; (at = strstr(at, name)); at += strlen(name), damaged++) {
        *at = 'x';
        const char *path = scratch_file("damaged.xml", "%s", text);
        int rc = profile_from_hwloc(path, &profile, &error);
        if (rc == 0) {
            profile_free(profile);
        } else {
            ck_assert_int_eq(rc, -EINVAL);
            ck_assert_ptr_nonnull(
                strstr(error.text, "damaged.xml: expected a topology in hwloc's XML"));
        }
        *at = name[0];
    }
    ck_assert_uint_eq(damaged, 5);
}
