/* This machine as the tests need it. */
#include "tests/preload/here.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/mask.h"

uint32_t order[2];
char order_text[2][16], order_pair[32], order_pus[32], all_pus[256];

static struct profile_mask allowed_here(void)
{
    struct profile_mask mask;
    ck_assert_int_eq(profile_mask_get(0, &mask), 0);
    return mask;
}

static void read_allowed(struct profile_set *out)
{
    char text[4096];
    const struct profile_mask mask = allowed_here();
    profile_mask_format(&mask, text, sizeof text);
    ck_assert_int_eq(profile_set_parse(text, out), 0);
}

size_t here_pus(void)
{
    const struct profile_mask mask = allowed_here();
    return profile_mask_count(&mask);
}

static struct servet_profile *topology(void)
{
    struct servet_profile *profile;
    struct servet_error error;
    ck_assert_msg(profile_from_sysfs("", &profile, &error) == 0, "%s", error.text);
    return profile;
}

void here_order(enum map_priority priority, size_t workers, uint32_t *pus)
{
    struct profile_set allowed;
    struct servet_error error;
    struct servet_profile *profile = topology();
    read_allowed(&allowed);
    struct map_request request = {.priority = priority, .workers = workers, .allowed = &allowed};
    ck_assert_msg(map_workers(profile, &request, pus, NULL, &error) == 0, "%s", error.text);
    profile_set_free(&allowed);
    profile_free(profile);
}

static void free_kinds(struct profile_class *node_class)
{
    for (size_t i = 0; i < node_class->kind_count; i++) {
        profile_set_free(&node_class->kinds[i].pus);
    }
    free(node_class->kinds);
}

/* As of a machine that was measured: /sys tells neither its name nor its signature. */
static void sign(struct servet_profile *profile)
{
    char signature[PROFILE_SIGNATURE_SIZE];
    ck_assert_int_eq(profile_signature("", signature), 0);
    free(profile->topology_signature);
    profile->topology_signature = strdup(signature);
    ck_assert_ptr_nonnull(profile->topology_signature);
}

uint32_t here_write_uneven_profile(const char *path)
{
    struct servet_error error;
    struct servet_profile *profile = topology();
    sign(profile);
    struct profile_class *node_class = &profile->classes[0];
    const struct profile_set *pus = &node_class->pus;
    uint32_t last = pus->ids[pus->count - 1];
    free_kinds(node_class);
    node_class->kinds = calloc(2, sizeof *node_class->kinds);
    node_class->kind_count = 2;
    node_class->kinds[1].efficiency = 1;
    ck_assert_int_eq(profile_set_from_array(pus->ids, pus->count - 1, &node_class->kinds[0].pus),
                     0);
    ck_assert_int_eq(profile_set_from_array(&last, 1, &node_class->kinds[1].pus), 0);
    ck_assert_msg(profile_save(profile, path, &error) == 0, "%s", error.text);
    profile_free(profile);
    return last;
}

void here_need_two_pus(void)
{
    const struct profile_mask mask = allowed_here();
    if (profile_mask_count(&mask) < 2) {
        fprintf(stderr, "skipped: needs two PUs, this process may use one\n");
        exit(77);
    }
    profile_mask_format(&mask, all_pus, sizeof all_pus);
    here_order(MAP_MEMORY, 2, order);
    snprintf(order_text[0], sizeof order_text[0], "%u", order[0]);
    snprintf(order_text[1], sizeof order_text[1], "%u", order[1]);
    snprintf(order_pair, sizeof order_pair, "%u,%u", order[0], order[1]);
    struct profile_mask both = {0};
    profile_mask_add(&both, order[0]);
    profile_mask_add(&both, order[1]);
    profile_mask_format(&both, order_pus, sizeof order_pus);
}

void here_write_gpu_profile(const char *path, uint32_t vendor, bool both_last)
{
    static const char *const names[] = {"cuda0", "cuda1", "mlx5_0", "hsi1"};
    struct servet_profile *profile = topology();
    struct profile_set pus;
    struct servet_error error;
    sign(profile);
    read_allowed(&pus);
    struct profile_device *devices = calloc(4, sizeof *devices);
    for (uint32_t i = 0; i < 4; i++) {
        bool gpu = i < 2, last = i % 2 || both_last;
        char uuid[16];
        snprintf(uuid, sizeof uuid, "GPU-%u", i);
        devices[i] = (struct profile_device){.kind = gpu ? PROFILE_GPU : PROFILE_NIC,
                                             .name = strdup(names[i]),
                                             .uuid = gpu ? strdup(uuid) : NULL,
                                             .pci_vendor = gpu ? vendor : 0,
                                             .number = gpu ? i : PROFILE_NOT_SAID,
                                             .card = i % 2,
                                             .numa_node = PROFILE_NOT_SAID,
                                             .fabric = !gpu};
        profile_set_from_array(&pus.ids[last ? pus.count - 1 : 0], 1, &devices[i].pus);
    }
    profile->classes[0].devices = devices;
    profile->classes[0].device_count = 4;
    ck_assert_msg(profile_save(profile, path, &error) == 0, "%s", error.text);
    profile_free(profile);
    profile_set_free(&pus);
}
