/* All plots of a profile; report_png(). */
#include "plots.h"

#include "save_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int plots_of(const struct servet_profile *profile, struct plot_list *out, struct servet_error *error)
{
    struct plot_list list = {0};
    plot_caches(&list, profile);
    plot_maps(&list, profile);
    plot_memory(&list, profile);
    plot_messages(&list, profile);
    plot_bsp(&list, profile);
    if (list.rc < 0) {
        int rc = profile_error(error, list.rc, "report: %s", strerrordesc_np(-list.rc));
        plot_free(&list);
        return rc;
    }
    *out = list;
    return 0;
}

struct image {
    char *bytes;
    size_t length;
};

static int make_folder(const char *folder, struct servet_error *error)
{
    struct stat status;
    if (mkdir(folder, 0777) < 0 && errno != EEXIST) {
        int code = errno;
        return profile_error(error, -code, "%s: %s", folder, strerrordesc_np(code));
    }
    if (stat(folder, &status) < 0 || !S_ISDIR(status.st_mode)) {
        return profile_error(error, -ENOTDIR, "%s: not a folder, expected one for the PNG files", folder);
    }
    return 0;
}

static int write_images(const struct plot_list *plots, const struct image *images, const char *folder,
                        struct servet_error *error)
{
    int rc = make_folder(folder, error);
    for (size_t i = 0; rc == 0 && i < plots->count; i++) {
        char path[PATH_MAX];
        if ((size_t)snprintf(path, sizeof path, "%s/%s.png", folder, plots->items[i].name) >= sizeof path) {
            return profile_error(error, -ENAMETOOLONG, "%s: %s", folder, strerrordesc_np(ENAMETOOLONG));
        }
        rc = save_file(path, images[i].bytes, images[i].length, error);
    }
    return rc;
}

int report_png(const struct report *report, const char *folder, size_t *count, struct servet_error *error)
{
    struct plot_list plots;
    int rc = plots_of(report->profile, &plots, error);
    if (rc < 0) {
        return rc;
    }
    struct image *images = calloc(plots.count + 1, sizeof *images);
    rc = images ? 0 : profile_error(error, -ENOMEM, "report: %s", strerrordesc_np(ENOMEM));
    for (size_t i = 0; rc == 0 && i < plots.count; i++) {
        rc = plot_png(&plots.items[i], &images[i].bytes, &images[i].length, error);
    }
    rc = rc < 0 ? rc : write_images(&plots, images, folder, error);
    if (rc == 0) {
        *count = plots.count;
    }
    for (size_t i = 0; images && i < plots.count; i++) {
        free(images[i].bytes);
    }
    free(images);
    plot_free(&plots);
    return rc;
}
