#include "json_path.h"

#include <stdio.h>

static size_t append(const struct json_path *path, char *buffer, size_t size)
{
    if (!path->parent) {
        return (size_t)snprintf(buffer, size, "$");
    }
    size_t used = append(path->parent, buffer, size);
    if (used >= size) {
        return used;
    }
    int n = path->key ? snprintf(buffer + used, size - used, ".%s", path->key)
                      : snprintf(buffer + used, size - used, "[%zu]", path->index);
    return used + (size_t)n;
}

const char *json_path_text(const struct json_path *path, char *buffer, size_t size)
{
    append(path, buffer, size);
    return buffer;
}
