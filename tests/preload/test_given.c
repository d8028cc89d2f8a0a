/* Does a rank go beside the GPU that variables, or its launcher, give to it, to PUs that no other
 * rank has, and is nothing changed for the runtime?
 *
 * servet-pin's own code reads the variables and chooses, on machines that are not here: the mask
 * that it would set is taken down instead. */
#include <sys/stat.h>

#include "mapper/devices/devices.h"
#include "preload/command/devices.h"
#include "preload/command/given.h"
#include "tests/base/runner.h"
#include "tests/preload/machine.h"

/* -- machines -- */

/* 2 x 56 cores, eight NUMA nodes, as LLNL's Matrix; its GPUs are near nodes 3, 1, 7 and 5. */
#define MATRIX "package:2 group:4 [numa] core:14 pu:1"
#define NODE_PUS 14u
static const uint32_t matrix_nodes[] = {3, 1, 7, 5};

static struct machine machine;
static struct profile_mask mask; /* of this process, as it would be there */

int __wrap_profile_mask_get(pid_t tid, struct profile_mask *out);
int __wrap_profile_mask_set(pid_t tid, const struct profile_mask *to);

int __wrap_profile_mask_get(pid_t tid, struct profile_mask *out)
{
    *out = tid ? machine.all : mask;
    return 0;
}

int __wrap_profile_mask_set(pid_t tid, const struct profile_mask *to)
{
    ck_assert_int_eq(tid, 0);
    mask = *to;
    return 0;
}

/* `count` GPUs, GPU i near all PUs of NUMA node nodes[i]. */
static void add_gpus(uint32_t vendor, const uint32_t *nodes, uint32_t count)
{
    struct servet_error error;
    struct profile_class *of = &machine.profile->classes[0];
    of->devices = calloc(count, sizeof *of->devices);
    for (uint32_t i = 0; i < count; i++) {
        struct profile_device *gpu = &of->devices[of->device_count++];
        char name[16], uuid[48];
        snprintf(name, sizeof name, "%s%u", vendor == 0x10de ? "cuda" : "rsmi", i);
        snprintf(uuid, sizeof uuid, "GPU-%08x-0000-4000-8000-00000000%04x", 0xa0000000u + i, i);
        const char *bus = formatted("0000:%02x:00.0", 16 * (i + 1));
        *gpu = (struct profile_device){.kind = PROFILE_GPU,
                                       .name = strdup(name),
                                       .uuid = strdup(uuid),
                                       .bus_id = strdup(bus),
                                       .pci_vendor = vendor,
                                       .number = i,
                                       .card = i,
                                       .numa_node = nodes[i]};
        ck_assert_int_eq(profile_set_copy(&of->numa[nodes[i]].pus, &gpu->pus), 0);
    }
    ck_assert_msg(profile_save(machine.profile, machine.path, &error) == 0, "%s", error.text);
}

static void be_matrix(uint32_t vendor)
{
    open_machine(MATRIX, &machine);
    add_gpus(vendor, matrix_nodes, 4);
}

/* -- ranks -- */

static void set_number(const char *name, uint32_t value)
{
    setenv(name, formatted("%u", value), 1);
}

static void be_rank(uint32_t rank, uint32_t ranks, uint32_t threads)
{
    set_number("OMPI_COMM_WORLD_LOCAL_RANK", rank);
    set_number("OMPI_COMM_WORLD_LOCAL_SIZE", ranks);
    set_number("OMP_NUM_THREADS", threads);
}

static void be_worker(uint32_t rank, uint32_t ranks)
{
    set_number("LOCAL_RANK", rank);
    set_number("LOCAL_WORLD_SIZE", ranks);
    setenv("OMP_NUM_THREADS", "1", 1);
}

/* As servet-pin --gpus does, for a rank that was given `given`: `mask` is then the rank's. */
static void apply_to(const struct profile_mask *given)
{
    static struct pin_options options;
    struct pin_launcher launcher;
    const struct pin_device_wish wish = {.gpus = MAP_ALL_GPUS};
    memset(&options, 0, sizeof options);
    options.profile = machine.path;
    unsetenv("SERVET_BESIDE");
    mask = *given;
    pin_launcher_read(false, &launcher);
    pin_devices_apply(&wish, &options, &launcher);
}

static void apply(void)
{
    apply_to(&machine.all);
}

static size_t count_near(uint32_t node)
{
    size_t near = 0;
    PROFILE_MASK_EACH(&mask, pu)
    {
        near += pu / NODE_PUS == node;
    }
    return near;
}

/* The rank has `pus` PUs, all near the GPU, and no other rank has them. */
static void expect_beside(uint32_t gpu, size_t pus, struct profile_mask *before)
{
    char text[256];
    profile_mask_format(&mask, text, sizeof text);
    ck_assert_msg(profile_mask_count(&mask) == pus && count_near(matrix_nodes[gpu]) == pus,
                  "GPU %u, %zu PUs: got %s", gpu, pus, text);
    PROFILE_MASK_EACH(&mask, pu)
    {
        ck_assert_msg(!profile_mask_has(before, pu), "GPU %u: PU %u is another rank's", gpu, pu);
        profile_mask_add(before, pu);
    }
}

/* -- MPI ranks and variables -- */

/* In the order of the ranks, in another one, and by UUID. */
TEST(a_rank_lies_beside_the_gpu_that_it_was_given, .loops = 3)
{
    static const char *const given[][4] = {
        {"0", "1", "2", "3"},
        {"2", "3", "1", "0"},
        {"GPU-a0000000-0000-4000-8000-000000000000", "gpu-a0000001", "GPU-a0000002",
         "GPU-a0000003"},
    };
    static const uint32_t gpus[][4] = {{0, 1, 2, 3}, {2, 3, 1, 0}, {0, 1, 2, 3}};
    struct profile_mask before = {0};
    be_matrix(PROFILE_PCI_NVIDIA);
    for (uint32_t rank = 0; rank < 4; rank++) {
        be_rank(rank, 4, 8);
        setenv("CUDA_VISIBLE_DEVICES", given[_i][rank], 1);
        apply();
        expect_beside(gpus[_i][rank], 8, &before);
        ck_assert_str_eq(getenv("CUDA_VISIBLE_DEVICES"), given[_i][rank]);
    }
    close_machine(&machine);
}

/* Seen red: only ranks were moved. */
TEST(a_process_by_itself_lies_beside_the_gpu_that_it_was_given)
{
    struct profile_mask before = {0};
    be_matrix(PROFILE_PCI_NVIDIA);
    setenv("CUDA_VISIBLE_DEVICES", "2", 1);
    apply();
    expect_beside(2, NODE_PUS, &before);
    ck_assert_ptr_nonnull(strstr(getenv("SERVET_BESIDE"), "cuda2="));
    ck_assert_str_eq(getenv("CUDA_VISIBLE_DEVICES"), "2");
    close_machine(&machine);
}

/* A script has narrowed it: the PUs near the GPU are those of them that are inside. */
TEST(a_process_by_itself_stays_inside_its_mask)
{
    struct profile_mask given, before = {0};
    be_matrix(PROFILE_PCI_NVIDIA);
    setenv("CUDA_VISIBLE_DEVICES", "2", 1);
    given = machine.all;
    for (uint32_t i = 0; i < 4; i++) {
        profile_mask_remove(&given, matrix_nodes[2] * NODE_PUS + i);
    }
    apply_to(&given);
    expect_beside(2, NODE_PUS - 4, &before);
    PROFILE_MASK_EACH(&mask, pu)
    {
        ck_assert(profile_mask_has(&given, pu));
    }
    close_machine(&machine);
}

/* Half of a NUMA node and of the next, then only what is far. Seen red: the mask stayed. */
TEST(a_rank_with_a_mask_of_its_own_has_what_is_near_inside, .loops = 8)
{
    const uint32_t gpu = (uint32_t)_i / 2, node = matrix_nodes[gpu];
    struct profile_mask given = {0};
    be_matrix(_i % 2 ? PROFILE_PCI_NVIDIA : PROFILE_PCI_AMD);
    for (uint32_t i = 0; i < NODE_PUS; i++) {
        profile_mask_add(&given, (node * NODE_PUS + NODE_PUS / 2 + i) % (8 * NODE_PUS));
    }
    set_number(_i % 2 ? "CUDA_VISIBLE_DEVICES" : "ROCR_VISIBLE_DEVICES", gpu);
    for (uint32_t far = 0; far < 2; far++) {
        be_rank(gpu, 4, 7);
        apply_to(&given);
        ck_assert_uint_eq(profile_mask_count(&mask), 7);
        ck_assert(profile_mask_within(&mask, &given));
        ck_assert_uint_eq(count_near(node), far ? 0 : 7);
        for (uint32_t i = 0; i < NODE_PUS; i++) {
            profile_mask_remove(&given, node * NODE_PUS + i);
        }
    }
    close_machine(&machine);
}

/* In blocks and in turn. */
TEST(ranks_that_share_a_gpu_share_the_pus_near_it, .loops = 4)
{
    static const struct {
        uint32_t ranks;
        bool in_turn;
    } deals[] = {{8, false}, {8, true}, {12, false}, {12, true}};
    const uint32_t ranks = deals[_i].ranks;
    struct profile_mask before = {0};
    be_matrix(PROFILE_PCI_NVIDIA);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        const uint32_t gpu = deals[_i].in_turn ? rank % 4 : rank / (ranks / 4);
        be_rank(rank, ranks, 4);
        set_number("CUDA_VISIBLE_DEVICES", gpu);
        apply();
        expect_beside(gpu, 4, &before);
    }
    close_machine(&machine);
}

/* A step of Slurm with four GPUs, of which each task sees all. */
TEST(ranks_that_see_the_same_gpus_take_them_in_turn, .loops = 2)
{
    struct profile_mask before = {0};
    be_matrix(PROFILE_PCI_NVIDIA);
    setenv(_i ? "SLURM_STEP_GPUS" : "CUDA_VISIBLE_DEVICES", "0,1,2,3", 1);
    for (uint32_t rank = 0; rank < 4; rank++) {
        be_rank(rank, 4, 8);
        apply();
        expect_beside(rank, 8, &before);
    }
    ck_assert(!_i || !getenv("CUDA_VISIBLE_DEVICES"));
    close_machine(&machine);
}

TEST(a_rank_with_two_gpus_lies_beside_both)
{
    be_matrix(PROFILE_PCI_NVIDIA);
    be_rank(1, 2, 28);
    setenv("CUDA_VISIBLE_DEVICES", "2,3", 1);
    apply();
    ck_assert_uint_eq(profile_mask_count(&mask), 28);
    ck_assert_uint_eq(count_near(7), NODE_PUS);
    ck_assert_uint_eq(count_near(5), NODE_PUS);
    close_machine(&machine);
}

/* Two of the four GPUs are left: their PUs are there for threads. */
TEST(threads_that_do_not_fit_beside_the_gpu_have_pus_too)
{
    struct profile_mask before = {0};
    be_matrix(PROFILE_PCI_NVIDIA);
    for (uint32_t rank = 0; rank < 2; rank++) {
        be_rank(rank, 2, 56);
        set_number("CUDA_VISIBLE_DEVICES", rank);
        apply();
        ck_assert_uint_eq(profile_mask_count(&mask), 56);
        PROFILE_MASK_EACH(&mask, pu)
        {
            ck_assert(!profile_mask_has(&before, pu));
            profile_mask_add(&before, pu);
        }
    }
    close_machine(&machine);
}

/* HIP counts what ROCR leaves. */
TEST(lists_of_amd_are_one_behind_the_other)
{
    struct profile_mask before = {0};
    be_matrix(PROFILE_PCI_AMD);
    be_rank(0, 4, 8);
    setenv("ROCR_VISIBLE_DEVICES", "3,2", 1);
    setenv("HIP_VISIBLE_DEVICES", "1", 1);
    apply();
    expect_beside(2, 8, &before);
    close_machine(&machine);
}

/* Bound by the user, or what is said cannot be. */
TEST(a_rank_stays_where_gpus_do_not_decide, .loops = 5)
{
    static const char *const said[][2] = {
        {"CUDA_VISIBLE_DEVICES", "9"},
        {"CUDA_VISIBLE_DEVICES", "MIG-1c7d0000-0000-4000-8000-000000000000"},
        {"CUDA_VISIBLE_DEVICES", ""},
        {"CUDA_VISIBLE_DEVICES", "NoDevFiles"},
        {"NAME", "of a rank with a mask of its own"},
    };
    struct profile_mask given;
    be_matrix(PROFILE_PCI_NVIDIA);
    be_rank(1, 4, 8);
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    setenv(said[_i][0], said[_i][1], 1);
    given = machine.all;
    if (_i == 4) {
        profile_mask_remove(&given, 0);
    }
    apply_to(&given);
    ck_assert(profile_mask_equal(&mask, &given));
    close_machine(&machine);
}

/* -- workers of torchrun -- */

/* Nothing is hidden from a worker, and it has all PUs near its GPU. */
TEST(a_worker_lies_beside_the_gpu_of_its_number)
{
    struct profile_mask before = {0};
    be_matrix(PROFILE_PCI_NVIDIA);
    for (uint32_t rank = 0; rank < 4; rank++) {
        be_worker(rank, 4);
        apply();
        expect_beside(rank, NODE_PUS, &before);
        ck_assert_ptr_null(getenv("CUDA_VISIBLE_DEVICES"));
    }
    close_machine(&machine);
}

/* Fewer workers than GPUs, more, and a list that all of them see. */
TEST(workers_count_the_gpus_that_they_see, .loops = 3)
{
    static const struct {
        uint32_t workers;
        const char *seen;
        uint32_t gpus[8];
        size_t pus;
    } jobs[] = {
        {2, NULL, {0, 1}, 14}, {8, NULL, {0, 1, 2, 3, 0, 1, 2, 3}, 7}, {2, "3,2", {3, 2}, 14}};
    struct profile_mask before = {0};
    be_matrix(PROFILE_PCI_NVIDIA);
    if (jobs[_i].seen) {
        setenv("CUDA_VISIBLE_DEVICES", jobs[_i].seen, 1);
    }
    for (uint32_t rank = 0; rank < jobs[_i].workers; rank++) {
        be_worker(rank, jobs[_i].workers);
        apply();
        expect_beside(jobs[_i].gpus[rank], jobs[_i].pus, &before);
    }
    close_machine(&machine);
}

/* -- device cgroups and containers -- */

static void make(const char *path, const char *text)
{
    char whole[4096];
    snprintf(whole, sizeof whole, "%s%s", scratch_folder(), path);
    for (char *at = whole + strlen(scratch_folder()) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(whole, 0700);
        *at = '/';
    }
    FILE *file = fopen(whole, "w");
    ck_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* The driver knows four, this process may open the third: that is number 0. */
TEST(a_runtime_counts_the_gpus_that_may_be_opened, .loops = 2)
{
    struct pin_launcher launcher;
    struct pin_given given;
    struct servet_error error;
    be_matrix(PROFILE_PCI_NVIDIA);
    for (unsigned i = 0; i < 4; i++) { /* minors run the other way than buses */
        const char *path =
            formatted("/proc/driver/nvidia/gpus/0000:%02x:00.0/information", 16 * (i + 1));
        const char *text = formatted("Model: \t X\nDevice Minor: \t %u\n", 3 - i);
        make(path, text);
    }
    make("/dev/nvidia1", "");
    set_number("CUDA_VISIBLE_DEVICES", (uint32_t)_i);
    be_rank(2, 4, 8);
    pin_launcher_read(false, &launcher);
    const struct profile_class *of = &machine.profile->classes[0];
    int rc = pin_given_read(of, scratch_folder(), &launcher, &given, &error);
    if (_i) {
        ck_assert_int_eq(rc, -ENOENT);
        ck_assert_str_eq(error.text,
                         "CUDA_VISIBLE_DEVICES=1: expected numbers or UUIDs of the 1 GPUs "
                         "that this process may open, got '1'");
    } else {
        ck_assert_int_eq(rc, 0);
        ck_assert_uint_eq(given.own_count, 1);
        ck_assert_ptr_eq(given.own[0], &of->devices[2]);
        ck_assert_uint_eq(given.job_count, 4); /* other tasks may have the others */
        pin_given_free(&given);
    }
    close_machine(&machine);
}

/* By CUDA's own numbers; by bus, where the first and the last have changed places; and of two
 * models without CUDA's numbers not at all. */
TEST(numbers_are_those_of_cudas_order, .loops = 3)
{
    struct pin_launcher launcher;
    struct pin_given given;
    struct servet_error error;
    be_matrix(PROFILE_PCI_NVIDIA);
    struct profile_device *gpus = machine.profile->classes[0].devices;
    char *bus = gpus[0].bus_id;
    gpus[0].bus_id = gpus[3].bus_id;
    gpus[3].bus_id = bus;
    gpus[3].pci_device = 1;
    memcpy(gpus[3].name, _i == 2 ? "nvml3" : "cuda3", 5);
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    setenv("CUDA_DEVICE_ORDER", _i == 1 ? "PCI_BUS_ID" : "FASTEST_FIRST", 1);
    be_rank(0, 4, 8);
    pin_launcher_read(false, &launcher);
    int rc =
        pin_given_read(&machine.profile->classes[0], scratch_folder(), &launcher, &given, &error);
    if (_i == 2) {
        ck_assert_int_eq(rc, -ENOENT);
        ck_assert_str_eq(error.text, "CUDA_VISIBLE_DEVICES=0: expected UUIDs, as models differ, of "
                                     "the 4 GPUs that this process may open, got '0'");
    } else {
        ck_assert_int_eq(rc, 0);
        ck_assert_ptr_eq(given.own[0], &gpus[_i ? 3 : 0]);
        pin_given_free(&given);
    }
    close_machine(&machine);
}

TESTS(.seconds = 60)
