/* Plots and pictures of the topology as PNG files in a folder, for slides. Everything is drawn in
 * memory before the first file is written, so that a failure leaves nothing half-made. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "profile/base/file.h"
#include "report/report.h"

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
        return profile_error(error, -ENOTDIR, "%s: not a folder, expected one for the PNG files",
                             folder);
    }
    return 0;
}

static int write_images(const struct image *images, size_t count, const char *folder,
                        struct servet_error *error)
{
    int rc = make_folder(folder, error);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        char path[PATH_MAX];
        if ((size_t)snprintf(path, sizeof path, "%s/%s.png", folder, images[i].name) >=
            sizeof path) {
            return profile_error(error, -ENAMETOOLONG, "%s: %s", folder,
                                 strerrordesc_np(ENAMETOOLONG));
        }
        rc = profile_save_file(path, images[i].bytes, images[i].length, error);
    }
    return rc;
}

static int draw_picture(const struct pictures_item *item, struct image *image,
                        struct servet_error *error)
{
    struct plot plot = {.name = (char *)item->id};
    int rc = report_picture_script(&item->picture, item->title, &plot);
    if (rc < 0) {
        return profile_error(error, rc, "%s: %s", item->id, strerrordesc_np(-rc));
    }
    rc = report_plot_png(&plot, &image->bytes, &image->length, error);
    free(plot.script);
    return rc;
}

/* Pictures of the topology; of those that are too large none, and *left_out says so. */
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
        int rc = draw_picture(item, image, error);
        if (rc < 0) {
            return rc;
        }
        image->name = item->id;
        ++*count;
    }
    return 0;
}

static int draw_plots(const struct plot_list *plots, struct image *images, size_t *count,
                      struct servet_error *error)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < plots->count; i++) {
        struct image *image = &images[i];
        rc = report_plot_png(&plots->items[i], &image->bytes, &image->length, error);
        image->name = plots->items[i].name;
        *count += rc == 0;
    }
    return rc;
}

int report_png(const struct report *report, const char *folder, size_t *count,
               struct servet_error *left_out, struct servet_error *error)
{
    struct plot_list plots;
    struct pictures pictures = {0};
    size_t drawn = 0;
    int rc = report_plots_of(report->profile, &plots, error);
    if (rc < 0) {
        return rc;
    }
    left_out->text[0] = '\0';
    rc = report_pictures_of(report, &pictures, error);
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
    report_pictures_free(&pictures);
    report_plot_free(&plots);
    return rc;
}
