#include "mapper/spmd/library/plan_file.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

static int refuse(char *error, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int refuse(char *error, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, size, format, args);
    va_end(args);
    return -1;
}

/* False: not there, not a number, negative. */
static int number(const json_t *value, size_t *out)
{
    json_int_t found = json_integer_value(value);
    *out = (size_t)found;
    return json_is_integer(value) && found >= 0 && found <= INT32_MAX;
}

static int two(const json_t *object, const char *key, size_t *a, size_t *b)
{
    const json_t *list = json_object_get(object, key);
    return json_array_size(list) == 2 && number(json_array_get(list, 0), a) &&
           number(json_array_get(list, 1), b);
}

static int read_layout(const json_t *root, struct servet_spmd_layout *t)
{
    const json_t *halo = json_object_get(root, "halo");
    int good = two(root, "problem", &t->problem_x, &t->problem_y) &&
               two(root, "grid", &t->n, &t->m) && two(root, "tile", &t->x, &t->y) &&
               number(json_object_get(halo, "left"), &t->left) &&
               number(json_object_get(halo, "right"), &t->right) &&
               number(json_object_get(halo, "down"), &t->down) &&
               number(json_object_get(halo, "up"), &t->up);
    good = good && t->n && t->m && t->x * t->n == t->problem_x && t->y * t->m == t->problem_y;
    t->stride = t->x + t->left + t->right;
    t->rows = t->y + t->down + t->up;
    return good;
}

static int read_boxes(const json_t *list, struct spmd_plan_file *out)
{
    const struct servet_spmd_layout *t = &out->layout;
    size_t tasks = 0;
    out->box_count = json_array_size(list);
    if (out->box_count > SPMD_FILE_BOXES) {
        return 0;
    }
    for (size_t i = 0; i < out->box_count; i++) {
        struct servet_spmd_box *box = &out->boxes[i];
        const json_t *item = json_array_get(list, i);
        box->priority = (int)json_integer_value(json_object_get(item, "priority"));
        if (!two(item, "x", &box->x0, &box->x1) || !two(item, "y", &box->y0, &box->y1) ||
            box->x0 > box->x1 || box->y0 > box->y1 || box->x1 > t->x || box->y1 > t->y ||
            box->priority < 1 || box->priority > 3 || (i && box->priority < box[-1].priority)) {
            return 0;
        }
        tasks += (box->x1 - box->x0) * (box->y1 - box->y0);
    }
    return tasks == t->x * t->y;
}

static int read_messages(const json_t *list, int ranks, struct spmd_plan_file *out)
{
    out->message_count = json_array_size(list);
    if (out->message_count > SPMD_FILE_MESSAGES) {
        return 0;
    }
    for (size_t i = 0; i < out->message_count; i++) {
        const json_t *item = json_array_get(list, i),
                     *direction = json_object_get(item, "direction");
        json_int_t to = json_integer_value(json_object_get(item, "to"));
        json_int_t dx = json_integer_value(json_array_get(direction, 0));
        json_int_t dy = json_integer_value(json_array_get(direction, 1));
        if (to < 0 || to >= ranks || dx < -1 || dx > 1 || dy < -1 || dy > 1) {
            return 0;
        }
        out->messages[i] = (struct spmd_file_message){(int)to, (int)dx, (int)dy};
    }
    return 1;
}

static int read_plan(const json_t *root, const char *path, int rank, int ranks,
                     struct spmd_plan_file *out, char *error, size_t size)
{
    if (json_integer_value(json_object_get(root, "servet_spmd_plan")) != 1 ||
        !read_layout(root, &out->layout)) {
        return refuse(error, size, "%s: not a plan of servet-spmd (version 1)", path);
    }
    if (out->layout.n * out->layout.m != (size_t)ranks) {
        return refuse(error, size,
                      "%s: a plan for %zu x %zu processes, expected one for the %d that run", path,
                      out->layout.n, out->layout.m, ranks);
    }
    const json_t *mine = json_array_get(json_object_get(root, "ranks"), (size_t)rank);
    out->layout.i = (size_t)rank % out->layout.n;
    out->layout.j = (size_t)rank / out->layout.n;
    if (!read_boxes(json_object_get(mine, "tasks"), out) ||
        !read_messages(json_object_get(mine, "messages"), ranks, out)) {
        return refuse(error, size, "%s: the tasks or messages of rank %d make no sense", path,
                      rank);
    }
    return 0;
}

int spmd_plan_read(const char *path, int rank, int ranks, struct spmd_plan_file *out, char *error,
                   size_t size)
{
    json_error_t why;
    if (!path || !*path) {
        return refuse(error, size,
                      "SERVET_SPMD_PLAN: not set, expected the plan file of servet-spmd --plan");
    }
    json_t *root = json_load_file(path, 0, &why);
    if (!root) {
        return refuse(error, size, "%s: %s", path, why.text);
    }
    struct spmd_plan_file file = {0};
    int rc = read_plan(root, path, rank, ranks, &file, error, size);
    json_decref(root);
    if (rc == 0) {
        *out = file;
    }
    return rc;
}
