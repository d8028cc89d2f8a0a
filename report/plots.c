/* All plots of a profile; report_png(). */
#include "plots.h"

#include "picture_png.h"
#include "pictures.h"
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
    const char *name;
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

static int write_images(const struct image *images, size_t count, const char *folder, struct servet_error *error)
{
    int rc = make_folder(folder, error);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        char path[PATH_MAX];
        if ((size_t)snprintf(path, sizeof path, "%s/%s.png", folder, images[i].name) >= sizeof path) {
            return profile_error(error, -ENAMETOOLONG, "%s: %s", folder, strerrordesc_np(ENAMETOOLONG));
        }
        rc = save_file(path, images[i].bytes, images[i].length, error);
    }
    return rc;
}

/* Pictures of the topology; without lstopo none, and *left_out says so. */
static int draw_pictures(const struct pictures *pictures, struct image *images, size_t *count,
                         struct servet_error *left_out, struct servet_error *error)
{
    for (size_t i = 0; i < pictures->count; i++) {
        const struct pictures_item *item = &pictures->items[i];
        struct image *image = &images[*count];
        if (item->picture.node_class->pus.count > PICTURE_PUS) {
            profile_error(left_out, 0, "%s: more than %d PUs are not drawn", item->id, PICTURE_PUS);
            continue;
        }
        int rc = picture_png(item, &image->bytes, &image->length, error);
        if (rc == -ENOENT) {
            *left_out = *error;
            return 0;
        }
        if (rc < 0) {
            return rc;
        }
        image->name = item->id;
        ++*count;
    }
    return 0;
}

static int draw_plots(const struct plot_list *plots, struct image *images, size_t *count, struct servet_error *error)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < plots->count; i++) {
        struct image *image = &images[i];
        rc = plot_png(&plots->items[i], &image->bytes, &image->length, error);
        image->name = plots->items[i].name;
        *count += rc == 0;
    }
    return rc;
}

int report_png(const struct report *report, const char *folder, size_t *count, struct servet_error *left_out,
               struct servet_error *error)
{
    struct plot_list plots;
    struct pictures pictures = {0};
    size_t drawn = 0;
    int rc = plots_of(report->profile, &plots, error);
    if (rc < 0) {
        return rc;
    }
    left_out->text[0] = '\0';
    rc = pictures_of(report, &pictures, error);
    struct image *images = calloc(plots.count + pictures.count + 1, sizeof *images);
    if (rc == 0 && !images) {
        rc = profile_error(error, -ENOMEM, "report: %s", strerrordesc_np(ENOMEM));
    }
    rc = rc < 0 ? rc : draw_plots(&plots, images, &drawn, error);
    rc = rc < 0 ? rc : draw_pictures(&pictures, images, &drawn, left_out, error);
    rc = rc < 0 ? rc : write_images(images, drawn, folder, error);
    if (rc == 0) {
        *count = drawn;
    }
    for (size_t i = 0; images && i < drawn; i++) {
        free(images[i].bytes);
    }
    free(images);
    pictures_free(&pictures);
    plot_free(&plots);
    return rc;
}
