/* The GPUs of a process that runs, and whether it is near them: those of which the kernel says in
 * /proc/PID/fdinfo that it has memory there (drm-usage-stats of the kernel's documentation), else
 * those that servet-pin gave. */
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>

#include "profile/base/nearness.h"
#include "profile/text/record.h"
#include "report/report.h"

enum { MOST_GPUS = 64, BUS_SIZE = 32 };

struct gpus {
    char bus[MOST_GPUS][BUS_SIZE];
    bool used[MOST_GPUS]; /* has memory there */
    size_t count, used_count;
};

/* The number behind "drm-memory-vram:" or "drm-total-vram0:" and the like. */
static bool has_memory(const char *text)
{
    bool any = false;
    for (const char *at = text; (at = strstr(at, "vram")); at++) {
        const char *colon = strchr(at, ':');
        any = any || (colon && strtoull(colon + 1, NULL, 10) > 0);
    }
    return any;
}

static void add_file(const char *text, struct gpus *out)
{
    static const char key[] = "drm-pdev:";
    const char *at = strstr(text, key);
    char bus[BUS_SIZE];
    size_t i = 0;
    if (!at || sscanf(at + strlen(key), "%31s", bus) != 1) {
        return;
    }
    while (i < out->count && strcmp(out->bus[i], bus) != 0) {
        i++;
    }
    if (i == MOST_GPUS) {
        return;
    }
    out->count += i == out->count;
    memcpy(out->bus[i], bus, sizeof bus);
    const bool used = has_memory(text);
    out->used_count += used && !out->used[i];
    out->used[i] = out->used[i] || used;
}

static void read_files(const struct report_place *place, struct gpus *out)
{
    char path[PATH_MAX], text[4096];
    const int pid = (int)place->pid;
    struct dirent *entry;
    *out = (struct gpus){0};
    snprintf(path, sizeof path, "%s/proc/%d/fdinfo", place->root, pid);
    DIR *folder = opendir(path);
    while (folder && (entry = readdir(folder))) {
        snprintf(path, sizeof path, "%s/proc/%d/fdinfo/%s", place->root, pid, entry->d_name);
        if (profile_read_small(path, text, sizeof text)) {
            add_file(text, out);
        }
    }
    if (folder) {
        closedir(folder);
    }
}

/* `near` NULL: the kernel does not know. */
static void print_gpu(const struct report_place *place, const char *name,
                      const struct profile_mask *near)
{
    struct profile_mask now;
    const char *word = near && profile_mask_get(place->pid, &now) == 0
                           ? profile_nearness(&now, near)
                           : "at an unknown place";
    profile_record_print(place->out, place->json, place->pid, "gpu: {gpu}, {nearness}",
                         PROFILE_FACTS(PROFILE_WORD("gpu", name), PROFILE_WORD("nearness", word)));
}

void report_live_gpus(const struct report_place *place, const char *beside)
{
    struct gpus gpus;
    struct profile_mask near;
    char name[64];
    read_files(place, &gpus);
    for (size_t i = 0; i < gpus.count; i++) {
        if (gpus.used[i] || !gpus.used_count) {
            print_gpu(place, gpus.bus[i],
                      profile_near_bus(place->root, gpus.bus[i], &near) ? &near : NULL);
        }
    }
    const char *at = gpus.count ? "" : profile_first_beside(beside);
    while (profile_next_beside(&at, name, sizeof name, &near)) {
        print_gpu(place, name, &near);
    }
}
