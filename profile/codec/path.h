/* Where in a profile something is: "$.node_classes[0].caches[1].size_bytes". A path is a chain of
 * frames on the stack of whoever walks the profile, so that it costs nothing until an error has to
 * be worded. */
#ifndef SERVET_PROFILE_CODEC_PATH_H
#define SERVET_PROFILE_CODEC_PATH_H

#include <stddef.h>

struct json_path {
    const struct json_path *parent; /* NULL: the document itself, "$" */
    const char *key;                /* NULL: an array element, `index` */
    size_t index;
};

#define JSON_PATH_ROOT ((struct json_path){0})
#define JSON_PATH_KEY(above, name) ((struct json_path){.parent = (above), .key = (name)})
#define JSON_PATH_ITEM(above, number) ((struct json_path){.parent = (above), .index = (number)})

/* Long paths (a hostile key) are cut. */
#define JSON_PATH_SIZE 256

/* Writes the path's text, cut to `size`; returns `buffer`. */
const char *profile_json_path_text(const struct json_path *path, char *buffer, size_t size);

#endif
