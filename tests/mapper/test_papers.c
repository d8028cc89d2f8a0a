/* Do the machines of the two papers get the placements that the papers describe? */
#include <string.h>

#include "mapper/map.h"
#include "tests/base/runner.h"
#include "tests/profile/fixture.h"

#define MOST 128

static void place(const struct servet_profile *profile, enum map_priority priority, size_t workers,
                  uint32_t *out)
{
    struct map_request request = {.priority = priority, .workers = workers};
    struct servet_error error;
    ck_assert_msg(map_workers(profile, &request, out, NULL, &error) == 0, "%s", error.text);
}

static void assert_places(const struct servet_profile *profile, enum map_priority priority,
                          size_t workers, const uint32_t *expected)
{
    uint32_t out[MOST];
    place(profile, priority, workers, out);
    for (size_t w = 0; w < workers; w++) {
        ck_assert_msg(out[w] == expected[w], "worker %zu of %zu: PU %u, expected %u", w, workers,
                      out[w], expected[w]);
    }
}

/* No two of the workers share a block of `size` consecutive PUs. */
static void assert_one_per_block(const uint32_t *out, size_t workers, uint32_t size)
{
    bool used[MOST] = {false};
    for (size_t w = 0; w < workers; w++) {
        ck_assert_msg(!used[out[w] / size], "%zu workers: two in block %u of %u PUs", workers,
                      out[w] / size, size);
        used[out[w] / size] = true;
    }
}

static uint32_t nehalem_l3(uint32_t pu)
{
    static const uint32_t l3[] = {0, 1, 0, 1, 2, 3, 2, 3};
    return pu / 8 * 4 + l3[pu % 8];
}

TEST(nehalem_memory_priority_takes_one_core_per_processor_up_to_16)
{
    struct servet_profile *profile = loaded(FIXTURES "/nehalem-8-nodes.json");
    for (size_t workers = 1; workers <= 16; workers++) {
        uint32_t out[MOST];
        bool used[16] = {false};
        place(profile, MAP_MEMORY, workers, out);
        for (size_t w = 0; w < workers; w++) {
            uint32_t processor = out[w] / 8 * 2 + out[w] % 2;
            ck_assert_msg(!used[processor], "%zu workers: two on processor %u", workers, processor);
            used[processor] = true;
        }
    }
}

TEST(nehalem_memory_priority_takes_one_core_per_l3_up_to_32)
{
    struct servet_profile *profile = loaded(FIXTURES "/nehalem-8-nodes.json");
    uint32_t out[MOST];
    bool used[32] = {false};
    place(profile, MAP_MEMORY, 32, out);
    for (size_t w = 0; w < 32; w++) {
        ck_assert_msg(!used[nehalem_l3(out[w])], "two workers on L3 %u", nehalem_l3(out[w]));
        used[nehalem_l3(out[w])] = true;
    }
}

TEST(nehalem_communication_priority_fills_node_after_node)
{
    struct servet_profile *profile = loaded(FIXTURES "/nehalem-8-nodes.json");
    uint32_t out[MOST];
    place(profile, MAP_COMMUNICATION, 64, out);
    for (uint32_t w = 0; w < 64; w++) {
        ck_assert_uint_eq(out[w] / 8, w / 8);
    }
    assert_places(profile, MAP_COMMUNICATION, 8, (const uint32_t[]){0, 1, 4, 5, 2, 3, 6, 7});
}

TEST(dunnington_memory_priority_avoids_shared_caches)
{
    struct servet_profile *profile = loaded(FIXTURES "/dunnington.json");
    assert_places(profile, MAP_MEMORY, 4, (const uint32_t[]){0, 3, 6, 9}); /* one per L3 */
    uint32_t out[MOST];
    bool used[12] = {false};
    place(profile, MAP_MEMORY, 12, out); /* one per L2 */
    for (size_t w = 0; w < 12; w++) {
        ck_assert(!used[out[w] % 12]);
        used[out[w] % 12] = true;
    }
}

TEST(dunnington_communication_priority_stays_in_the_package)
{
    struct servet_profile *profile = loaded(FIXTURES "/dunnington.json");
    assert_places(profile, MAP_COMMUNICATION, 6, (const uint32_t[]){0, 12, 1, 13, 2, 14});
}

TEST(finis_terrae_memory_priority_takes_cells_then_buses)
{
    struct servet_profile *profile = loaded(FIXTURES "/finis-terrae-2-nodes.json");
    uint32_t out[MOST];
    place(profile, MAP_MEMORY, 8, out);
    assert_one_per_block(out, 4, 8);
    assert_one_per_block(out, 8, 4);
    assert_places(profile, MAP_MEMORY, 8, (const uint32_t[]){0, 8, 16, 24, 4, 12, 20, 28});
}

TEST(finis_terrae_communication_priority_fills_the_node_and_spares_the_bus)
{
    struct servet_profile *profile = loaded(FIXTURES "/finis-terrae-2-nodes.json");
    uint32_t out[MOST];
    place(profile, MAP_COMMUNICATION, 16, out);
    assert_one_per_block(out, 4, 4);
    for (size_t w = 0; w < 16; w++) {
        ck_assert_uint_lt(out[w], 16);
    }
}

TEST(superdome_takes_cells_then_buses_then_processors_whatever_the_priority)
{
    struct servet_profile *profile = loaded(FIXTURES "/superdome.json");
    for (size_t workers = 1; workers <= 128; workers++) {
        uint32_t memory[MOST], communication[MOST];
        place(profile, MAP_MEMORY, workers, memory);
        place(profile, MAP_COMMUNICATION, workers, communication);
        ck_assert_mem_eq(memory, communication, workers * sizeof *memory);
        if (workers <= 16) {
            assert_one_per_block(memory, workers, 8);
        } else if (workers <= 32) {
            assert_one_per_block(memory, workers, 4);
        } else if (workers <= 64) {
            assert_one_per_block(memory, workers, 2);
        }
    }
}
