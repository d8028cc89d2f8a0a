/* Does a rank go beside the GPU that variables, or its launcher, give to it, to PUs that no other
 * rank has, and is nothing changed for the runtime?
 *
 * servet-pin's own code reads the variables and chooses, on machines that are not here: the mask
 * that it would set is taken down instead. */
#include "mapper/devices/devices.h"
#include "preload/command/devices.h"
#include "tests/base/runner.h"
#include "tests/preload/machine.h"

/* -- machines -- */

/* 2 x 56 cores, eight NUMA nodes, as LLNL's Matrix; its GPUs are near nodes 3, 1, 7 and 5. */
#define MATRIX "package:2 group:4 [numa] core:14 pu:1"
#define NODE_PUS 14u
static const uint32_t matrix_nodes[] = {3, 1, 7, 5};

static struct machine machine;
static struct profile_mask mask; /* of this process, as it would be there */

WRAP(int, profile_mask_get, pid_t tid, struct profile_mask *out)
{
    *out = tid ? machine.all : mask;
    return 0;
}

WRAP(int, profile_mask_set, pid_t tid, const struct profile_mask *to)
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

static void leave_matrix(void)
{
    close_machine(&machine);
}

static void be_usual_matrix(void)
{
    be_matrix(PROFILE_PCI_NVIDIA);
}

static void be_matrix_of_amd(void)
{
    leave_matrix();
    be_matrix(PROFILE_PCI_AMD);
}

/* -- ranks -- */

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

/* The rank has `pus` PUs, and no rank before it has had them. */
static void expect_own(size_t pus)
{
    static struct profile_mask taken;
    ck_assert_uint_eq(profile_mask_count(&mask), pus);
    PROFILE_MASK_EACH(&mask, pu)
    {
        ck_assert_msg(!profile_mask_has(&taken, pu), "PU %u is another rank's", pu);
        profile_mask_add(&taken, pu);
    }
}

/* They are all near the GPU. */
static void expect_beside(uint32_t gpu, size_t pus)
{
    char text[256];
    profile_mask_format(&mask, text, sizeof text);
    ck_assert_msg(count_near(matrix_nodes[gpu]) == pus, "GPU %u, %zu PUs: got %s", gpu, pus, text);
    expect_own(pus);
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
    for (uint32_t rank = 0; rank < 4; rank++) {
        be_rank(rank, 4, 8);
        setenv("CUDA_VISIBLE_DEVICES", given[_i][rank], 1);
        apply();
        expect_beside(gpus[_i][rank], 8);
        ck_assert_str_eq(getenv("CUDA_VISIBLE_DEVICES"), given[_i][rank]);
    }
}

/* Seen red: only ranks were moved. */
TEST(a_process_by_itself_lies_beside_the_gpu_that_it_was_given)
{
    setenv("CUDA_VISIBLE_DEVICES", "2", 1);
    apply();
    expect_beside(2, NODE_PUS);
    ck_assert_ptr_nonnull(strstr(getenv("SERVET_BESIDE"), "cuda2="));
    ck_assert_str_eq(getenv("CUDA_VISIBLE_DEVICES"), "2");
}

/* A script has narrowed it: the PUs near the GPU are those of them that are inside. */
TEST(a_process_by_itself_stays_inside_its_mask)
{
    struct profile_mask given;
    setenv("CUDA_VISIBLE_DEVICES", "2", 1);
    given = machine.all;
    for (uint32_t i = 0; i < 4; i++) {
        profile_mask_remove(&given, matrix_nodes[2] * NODE_PUS + i);
    }
    apply_to(&given);
    expect_beside(2, NODE_PUS - 4);
    ck_assert(profile_mask_within(&mask, &given));
}

/* Half of a NUMA node and of the next, then only what is far. Seen red: the mask stayed. */
TEST(a_rank_with_a_mask_of_its_own_has_what_is_near_inside, .loops = 8)
{
    const uint32_t gpu = (uint32_t)_i / 2, node = matrix_nodes[gpu];
    struct profile_mask given = {0};
    if (_i % 2 == 0) {
        be_matrix_of_amd();
    }
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
}

/* In blocks and in turn. */
TEST(ranks_that_share_a_gpu_share_the_pus_near_it, .loops = 4)
{
    static const struct {
        uint32_t ranks;
        bool in_turn;
    } deals[] = {{8, false}, {8, true}, {12, false}, {12, true}};
    const uint32_t ranks = deals[_i].ranks;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        const uint32_t gpu = deals[_i].in_turn ? rank % 4 : rank / (ranks / 4);
        be_rank(rank, ranks, 4);
        set_number("CUDA_VISIBLE_DEVICES", gpu);
        apply();
        expect_beside(gpu, 4);
    }
}

/* A step of Slurm with four GPUs, of which each task sees all. */
TEST(ranks_that_see_the_same_gpus_take_them_in_turn, .loops = 2)
{
    setenv(_i ? "SLURM_STEP_GPUS" : "CUDA_VISIBLE_DEVICES", "0,1,2,3", 1);
    for (uint32_t rank = 0; rank < 4; rank++) {
        be_rank(rank, 4, 8);
        apply();
        expect_beside(rank, 8);
    }
    ck_assert(!_i || !getenv("CUDA_VISIBLE_DEVICES"));
}

TEST(a_rank_with_two_gpus_lies_beside_both)
{
    be_rank(1, 2, 28);
    setenv("CUDA_VISIBLE_DEVICES", "2,3", 1);
    apply();
    ck_assert_uint_eq(profile_mask_count(&mask), 28);
    ck_assert_uint_eq(count_near(7), NODE_PUS);
    ck_assert_uint_eq(count_near(5), NODE_PUS);
}

/* Two of the four GPUs are left: their PUs are there for threads. */
TEST(threads_that_do_not_fit_beside_the_gpu_have_pus_too)
{
    for (uint32_t rank = 0; rank < 2; rank++) {
        be_rank(rank, 2, 56);
        set_number("CUDA_VISIBLE_DEVICES", rank);
        apply();
        expect_own(56);
    }
}

/* HIP counts what ROCR leaves. */
TEST(lists_of_amd_are_one_behind_the_other)
{
    be_matrix_of_amd();
    be_rank(0, 4, 8);
    setenv("ROCR_VISIBLE_DEVICES", "3,2", 1);
    setenv("HIP_VISIBLE_DEVICES", "1", 1);
    apply();
    expect_beside(2, 8);
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
    be_rank(1, 4, 8);
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    setenv(said[_i][0], said[_i][1], 1);
    given = machine.all;
    if (_i == 4) {
        profile_mask_remove(&given, 0);
    }
    apply_to(&given);
    ck_assert(profile_mask_equal(&mask, &given));
}

/* -- workers of torchrun -- */

/* Nothing is hidden from a worker, and it has all PUs near its GPU. */
TEST(a_worker_lies_beside_the_gpu_of_its_number)
{
    for (uint32_t rank = 0; rank < 4; rank++) {
        be_worker(rank, 4);
        apply();
        expect_beside(rank, NODE_PUS);
        ck_assert_ptr_null(getenv("CUDA_VISIBLE_DEVICES"));
    }
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
    if (jobs[_i].seen) {
        setenv("CUDA_VISIBLE_DEVICES", jobs[_i].seen, 1);
    }
    for (uint32_t rank = 0; rank < jobs[_i].workers; rank++) {
        be_worker(rank, jobs[_i].workers);
        apply();
        expect_beside(jobs[_i].gpus[rank], jobs[_i].pus);
    }
}

/* -- device cgroups and containers -- */

static struct pin_given given;

/* What a rank was given: 0, or -ENOENT with this text. */
static void read_given(uint32_t rank, const char *refusal)
{
    struct pin_launcher launcher;
    struct servet_error error = {""};
    be_rank(rank, 4, 8);
    pin_launcher_read(false, &launcher);
    const int rc =
        pin_given_read(&machine.profile->classes[0], scratch_folder(), &launcher, &given, &error);
    ck_assert_int_eq(rc, refusal ? -ENOENT : 0);
    ck_assert_str_eq(error.text, refusal ? refusal : "");
}

/* The driver knows four, this process may open the third: that is number 0. */
TEST(a_runtime_counts_the_gpus_that_may_be_opened)
{
    for (unsigned i = 0; i < 4; i++) { /* minors run the other way than buses */
        scratch_file(formatted("proc/driver/nvidia/gpus/0000:%02x:00.0/information", 16 * (i + 1)),
                     "Model: \t X\nDevice Minor: \t %u\n", 3 - i);
    }
    scratch_file("dev/nvidia1", "%s", "");
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    read_given(2, NULL);
    ck_assert_uint_eq(given.own.count, 1);
    ck_assert_ptr_eq(given.own.list[0], &machine.profile->classes[0].devices[2]);
    ck_assert_uint_eq(given.job.count, 4); /* other tasks may have the others */
    pin_given_free(&given);
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    read_given(2, "CUDA_VISIBLE_DEVICES=1: expected numbers or UUIDs of the 1 GPUs that this "
                  "process may open, got '1'");
}

/* By CUDA's own numbers; by bus, where the first and the last have changed places; and of two
 * models without CUDA's numbers not at all. */
TEST(numbers_are_those_of_cudas_order)
{
    struct profile_device *gpus = machine.profile->classes[0].devices;
    char *bus = gpus[0].bus_id;
    gpus[0].bus_id = gpus[3].bus_id;
    gpus[3].bus_id = bus;
    gpus[3].pci_device = 1;
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    for (int by_bus = 0; by_bus < 2; by_bus++) {
        setenv("CUDA_DEVICE_ORDER", by_bus ? "PCI_BUS_ID" : "FASTEST_FIRST", 1);
        read_given(0, NULL);
        ck_assert_ptr_eq(given.own.list[0], &gpus[by_bus ? 3 : 0]);
        pin_given_free(&given);
    }
    setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST", 1);
    memcpy(gpus[3].name, "nvml3", 5);
    read_given(0,
               "CUDA_VISIBLE_DEVICES=0: expected UUIDs, as models differ, of the 4 GPUs that this "
               "process may open, got '0'");
}

TESTS(.seconds = 60, .setup = be_usual_matrix, .teardown = leave_matrix)
