#include "picture.h"

#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Of lstopo's SVG: ids made unique, name space and xlink left to HTML, colours of boxes left to the style sheet, save
 * those of the PUs that have a worker. */
static char *tidy(const char *raw, const char *name)
{
    char *out = NULL;
    size_t length;
    const char *p = strstr(raw, "<svg");
    FILE *stream = p ? open_memstream(&out, &length) : NULL;
    if (!stream) {
        return NULL;
    }
    static const char name_space[] = " xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink'";
    static const char pixels[] = "px' viewBox='0 0 ";
    while (*p) {
        if (strncmp(p, name_space, sizeof name_space - 1) == 0) {
            p += sizeof name_space - 1;
        } else if (strncmp(p, " id='", 5) == 0) {
            fprintf(stream, " id='%s-", name);
            p += 5;
        } else if (strncmp(p, pixels, sizeof pixels - 1) == 0) {
            /* a view box has no units, and the one that lstopo writes is refused by browsers */
            int width, height;
            p += sizeof pixels - 1;
            fputs(pixels, stream);
            if (sscanf(p, "%dpx %dpx", &width, &height) == 2) {
                fprintf(stream, "%d %d", width, height);
                p += strcspn(p, "'");
            }
        } else {
            fputc(*p++, stream);
        }
    }
    if (fclose(stream) != 0) {
        free(out);
        return NULL;
    }
    return out;
}

int picture_raw(const struct picture *picture, char **out, size_t *left_out, struct servet_error *error)
{
    char *xml;
    size_t length;
    int rc = picture_xml(picture, &xml, left_out);
    if (rc < 0) {
        return profile_error(error, rc, "lstopo: %s", strerrordesc_np(-rc));
    }
    char *argv[] = {"lstopo-no-graphics",
                    "--if",
                    "xml",
                    "-i",
                    "-",
                    "--of",
                    "nativesvg",
                    "-p",
                    "--no-legend",
                    "--no-factorize",
                    "--no-collapse",
                    picture->compact ? "--no-index=PU" : NULL,
                    "--no-text=Core",
                    "--gridsize",
                    "4",
                    NULL};
    rc = run_filter(argv, xml, strlen(xml), out, &length, error);
    if (rc == -ENOENT) {
        argv[0] = "lstopo";
        rc = run_filter(argv, xml, strlen(xml), out, &length, error);
    }
    free(xml);
    return rc;
}

int picture_svg(const struct picture *picture, const char *name, char **out, size_t *left_out,
                struct servet_error *error)
{
    char *raw;
    int rc = picture_raw(picture, &raw, left_out, error);
    if (rc < 0) {
        return rc;
    }
    *out = tidy(raw, name);
    free(raw);
    return *out ? 0 : profile_error(error, -EIO, "lstopo: wrote no SVG");
}
