/* Runs a plan inside an application: the plan file read, tasks computed edges first, messages
 * sent and awaited. One file, because it is linked into programs of others: it exports what
 * servet_spmd.h declares and nothing else. */
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/spmd/library/servet_spmd.h"

enum { MESSAGES = 8, BOXES = 9, TAG = 7305 };

/* Between this many slices of the internal tasks MPI is called: often enough for a message of
 * several fragments, at some 0.3 us a call not to be noticed in an iteration of 0.1 ms. */
enum { SLICES = 12 };

/* The first steps are done by turns in both orders, so many each. */
enum { TRIALS = 15 };
/* The whole tile at once must be so much faster to be kept. */
static const double worth = 0.98;

enum order { EDGES_FIRST, WHOLE, ORDERS };

struct trial {
    unsigned steps;
    double seconds[ORDERS][TRIALS];
    enum order kept; /* from then on */
};

struct message {
    int to, dx, dy;
    /* in array coordinates: tasks that it carries, the halo that its answer fills */
    struct servet_spmd_box inner, outer;
    char *sent, *received; /* packed */
};

struct servet_spmd {
    struct servet_spmd_layout layout;
    struct message messages[MESSAGES]; /* in the order of posting */
    size_t message_count;
    struct servet_spmd_box boxes[BOXES]; /* by priority */
    size_t box_count;
    MPI_Comm comm;
    size_t bytes;
    MPI_Request requests[2 * MESSAGES];
    struct trial trial;
};

const struct servet_spmd_layout *servet_spmd_layout(const servet_spmd *plan)
{
    return &plan->layout;
}

/* -- the plan file: what one rank needs of it (its form is in mapper/spmd/plan.c) -- */

/* False: not there, not a number, negative. */
static int number_of(const json_t *value, size_t *out)
{
    json_int_t found = json_integer_value(value);
    *out = (size_t)found;
    return json_is_integer(value) && found >= 0 && found <= INT32_MAX;
}

static int two(const json_t *object, const char *key, size_t *a, size_t *b)
{
    const json_t *list = json_object_get(object, key);
    return json_array_size(list) == 2 && number_of(json_array_get(list, 0), a) &&
           number_of(json_array_get(list, 1), b);
}

static int read_layout(const json_t *root, struct servet_spmd_layout *t)
{
    const json_t *halo = json_object_get(root, "halo");
    int good = two(root, "problem", &t->problem_x, &t->problem_y) &&
               two(root, "grid", &t->n, &t->m) && two(root, "tile", &t->x, &t->y) &&
               number_of(json_object_get(halo, "left"), &t->left) &&
               number_of(json_object_get(halo, "right"), &t->right) &&
               number_of(json_object_get(halo, "down"), &t->down) &&
               number_of(json_object_get(halo, "up"), &t->up);
    good = good && t->n && t->m && t->x * t->n == t->problem_x && t->y * t->m == t->problem_y;
    t->stride = t->x + t->left + t->right;
    t->rows = t->y + t->down + t->up;
    return good;
}

static int read_boxes(const json_t *list, servet_spmd *out)
{
    const struct servet_spmd_layout *t = &out->layout;
    size_t tasks = 0;
    out->box_count = json_array_size(list);
    if (out->box_count > BOXES) {
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

static int read_messages(const json_t *list, int ranks, servet_spmd *out)
{
    size_t count = json_array_size(list);
    if (count > MESSAGES) {
        return 0;
    }
    out->message_count = count;
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i),
                     *direction = json_object_get(item, "direction");
        json_int_t to = json_integer_value(json_object_get(item, "to"));
        json_int_t dx = json_integer_value(json_array_get(direction, 0));
        json_int_t dy = json_integer_value(json_array_get(direction, 1));
        if (to < 0 || to >= ranks || dx < -1 || dx > 1 || dy < -1 || dy > 1) {
            return 0;
        }
        out->messages[i] = (struct message){.to = (int)to, .dx = (int)dx, .dy = (int)dy};
    }
    return 1;
}

/* 0, or -1 with one line in `error` naming the file. */
static int read_file(const char *path, int rank, int ranks, servet_spmd *out, char *error,
                     size_t size)
{
    json_error_t why;
    if (!path || !*path) {
        snprintf(error, size,
                 "SERVET_SPMD_PLAN: not set, expected the plan file of servet-spmd --plan");
        return -1;
    }
    json_t *root = json_load_file(path, 0, &why);
    if (!root) {
        snprintf(error, size, "%s: %s", path, why.text);
        return -1;
    }
    struct servet_spmd_layout *t = &out->layout;
    int rc = -1;
    const json_t *mine = json_array_get(json_object_get(root, "ranks"), (size_t)rank);
    if (json_integer_value(json_object_get(root, "servet_spmd_plan")) != 1 ||
        !read_layout(root, t)) {
        snprintf(error, size, "%s: not a plan of servet-spmd (version 1)", path);
    } else if (t->n * t->m != (size_t)ranks) {
        snprintf(error, size,
                 "%s: a plan for %zu x %zu processes, expected one for the %d that run", path, t->n,
                 t->m, ranks);
    } else if (!read_boxes(json_object_get(mine, "tasks"), out) ||
               !read_messages(json_object_get(mine, "messages"), ranks, out)) {
        snprintf(error, size, "%s: the tasks or messages of rank %d make no sense", path, rank);
    } else {
        t->i = (size_t)rank % t->n;
        t->j = (size_t)rank / t->n;
        rc = 0;
    }
    json_decref(root);
    return rc;
}

/* -- packing -- */

static size_t box_tasks(const struct servet_spmd_box *box)
{
    return (box->x1 - box->x0) * (box->y1 - box->y0);
}

/* Boxes in array coordinates: halo included. */
static void copy_box(const servet_spmd *plan, char *array, const struct servet_spmd_box *box,
                     char *packed, int out)
{
    size_t bytes = plan->bytes, stride = plan->layout.stride * bytes,
           row = (box->x1 - box->x0) * bytes;
    for (size_t y = box->y0; y < box->y1; y++) {
        char *at = array + y * stride + box->x0 * bytes;
        if (out) {
            memcpy(packed, at, row);
        } else {
            memcpy(at, packed, row);
        }
        packed += row;
    }
}

/* Along one axis: what goes to a neighbour (`inner`) and what comes from it (`outer`), with halos
 * `before` and `after` of a tile of `size`. The neighbour's halo that we fill lies on its other
 * side. */
static void along(int direction, size_t size, size_t before, size_t after, size_t inner[2],
                  size_t outer[2])
{
    const size_t end = before + size, begins[] = {before, before, size},
                 ends[] = {before + after, end, end}, beyond[] = {0, before, end, end + after};
    inner[0] = begins[direction + 1];
    inner[1] = ends[direction + 1];
    outer[0] = beyond[direction + 1];
    outer[1] = beyond[direction + 2];
}

static int prepare_plan(servet_spmd *plan)
{
    const struct servet_spmd_layout *t = &plan->layout;
    for (size_t k = 0; k < plan->message_count; k++) {
        struct message *m = &plan->messages[k];
        size_t ix[2], iy[2], ox[2], oy[2];
        along(m->dx, t->x, t->left, t->right, ix, ox);
        along(m->dy, t->y, t->down, t->up, iy, oy);
        m->inner = (struct servet_spmd_box){ix[0], ix[1], iy[0], iy[1], 0};
        m->outer = (struct servet_spmd_box){ox[0], ox[1], oy[0], oy[1], 0};
        m->sent = malloc(box_tasks(&m->inner) * plan->bytes + 1);
        m->received = malloc(box_tasks(&m->outer) * plan->bytes + 1);
        if (!m->sent || !m->received) {
            return -1;
        }
    }
    return 0;
}

/* -- exchanging -- */

/* Messages of one direction have its tag: two neighbours may be the same process. */
static int tag_of(int dx, int dy)
{
    return TAG + (dy + 1) * 3 + dx + 1;
}

static int post_receives(servet_spmd *plan)
{
    int rc = MPI_SUCCESS;
    for (size_t k = 0; rc == MPI_SUCCESS && k < plan->message_count; k++) {
        const struct message *m = &plan->messages[k];
        rc = MPI_Irecv(m->received, (int)(box_tasks(&m->outer) * plan->bytes), MPI_BYTE, m->to,
                       tag_of(-m->dx, -m->dy), plan->comm, &plan->requests[k]);
    }
    return rc;
}

static int post_sends(servet_spmd *plan, char *array)
{
    size_t count = plan->message_count;
    int rc = MPI_SUCCESS;
    for (size_t k = 0; rc == MPI_SUCCESS && k < count; k++) {
        const struct message *m = &plan->messages[k];
        copy_box(plan, array, &m->inner, m->sent, 1);
        rc = MPI_Isend(m->sent, (int)(box_tasks(&m->inner) * plan->bytes), MPI_BYTE, m->to,
                       tag_of(m->dx, m->dy), plan->comm, &plan->requests[count + k]);
    }
    return rc;
}

static int finish_plan(servet_spmd *plan, char *array)
{
    size_t count = plan->message_count;
    int rc = MPI_Waitall((int)(2 * count), plan->requests, MPI_STATUSES_IGNORE);
    for (size_t k = 0; rc == MPI_SUCCESS && k < count; k++) {
        copy_box(plan, array, &plan->messages[k].outer, plan->messages[k].received, 0);
    }
    return rc;
}

int servet_spmd_exchange(servet_spmd *plan, void *array)
{
    int rc = post_receives(plan);
    rc = rc == MPI_SUCCESS ? post_sends(plan, array) : rc;
    return rc == MPI_SUCCESS ? finish_plan(plan, array) : rc;
}

/* The slice number `k` of SLICES: along y, or along x where the tile has few rows. */
static struct servet_spmd_box slice(const struct servet_spmd_box *box, size_t k)
{
    struct servet_spmd_box part = *box;
    if (box->y1 - box->y0 >= SLICES) {
        part.y0 = box->y0 + (box->y1 - box->y0) * k / SLICES;
        part.y1 = box->y0 + (box->y1 - box->y0) * (k + 1) / SLICES;
    } else {
        part.x0 = box->x0 + (box->x1 - box->x0) * k / SLICES;
        part.x1 = box->x0 + (box->x1 - box->x0) * (k + 1) / SLICES;
    }
    return part;
}

static int compute_internal(servet_spmd *plan, const struct servet_spmd_box *box,
                            servet_spmd_compute *compute, void *context)
{
    int done = plan->message_count == 0, rc = MPI_SUCCESS;
    for (size_t k = 0; rc == MPI_SUCCESS && k < SLICES; k++) {
        struct servet_spmd_box part = slice(box, k);
        if (part.x0 < part.x1 && part.y0 < part.y1) {
            compute(context, &part);
        }
        if (!done) {
            rc = MPI_Testall((int)(2 * plan->message_count), plan->requests, &done,
                             MPI_STATUSES_IGNORE);
        }
    }
    return rc;
}

/* The whole tile at once is one box of edge tasks. */
static int run_step(servet_spmd *plan, enum order order, void *next, servet_spmd_compute *compute,
                    void *context)
{
    const struct servet_spmd_box all = {0, plan->layout.x, 0, plan->layout.y, 1};
    const struct servet_spmd_box *boxes = order == WHOLE ? &all : plan->boxes;
    size_t box = 0, count = order == WHOLE ? 1 : plan->box_count;
    int rc = post_receives(plan);
    for (; rc == MPI_SUCCESS && box < count && boxes[box].priority < 3; box++) {
        compute(context, &boxes[box]);
    }
    rc = rc == MPI_SUCCESS ? post_sends(plan, next) : rc;
    for (; rc == MPI_SUCCESS && box < count; box++) {
        rc = compute_internal(plan, &boxes[box], compute, context);
    }
    return rc == MPI_SUCCESS ? finish_plan(plan, next) : rc;
}

/* -- the better order -- */

static int by_seconds(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* All ranks decide the same, by the sum of their medians. */
static int decide_order(servet_spmd *plan)
{
    double mine[ORDERS], all[ORDERS];
    for (int order = 0; order < ORDERS; order++) {
        qsort(plan->trial.seconds[order], TRIALS, sizeof(double), by_seconds);
        mine[order] = plan->trial.seconds[order][TRIALS / 2];
    }
    int rc = MPI_Allreduce(mine, all, ORDERS, MPI_DOUBLE, MPI_SUM, plan->comm);
    if (rc == MPI_SUCCESS && all[WHOLE] < worth * all[EDGES_FIRST]) {
        plan->trial.kept = WHOLE;
    }
    return rc;
}

static int try_step(servet_spmd *plan, void *next, servet_spmd_compute *compute, void *context)
{
    unsigned step = plan->trial.steps++;
    enum order order = step % ORDERS == 0 ? EDGES_FIRST : WHOLE;
    double start = MPI_Wtime();
    int rc = run_step(plan, order, next, compute, context);
    plan->trial.seconds[order][step / ORDERS] = MPI_Wtime() - start;
    return rc == MPI_SUCCESS && plan->trial.steps == ORDERS * TRIALS ? decide_order(plan) : rc;
}

int servet_spmd_step(servet_spmd *plan, void *next, servet_spmd_compute *compute, void *context)
{
    if (plan->trial.steps < ORDERS * TRIALS && plan->layout.n * plan->layout.m > 1) {
        return try_step(plan, next, compute, context);
    }
    return run_step(plan, plan->trial.kept, next, compute, context);
}

/* -- opening -- */

static void free_plan(servet_spmd *plan)
{
    for (size_t k = 0; plan && k < plan->message_count; k++) {
        free(plan->messages[k].sent);
        free(plan->messages[k].received);
    }
    free(plan);
}

void servet_spmd_close(servet_spmd *plan)
{
    if (plan) {
        MPI_Comm_free(&plan->comm);
        free_plan(plan);
    }
}

int servet_spmd_open(const char *path, MPI_Comm comm, size_t bytes, servet_spmd **out, char *error,
                     size_t size)
{
    int rank, ranks, failed, any;
    servet_spmd *plan = calloc(1, sizeof *plan);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    failed = !plan ||
             read_file(path ? path : getenv("SERVET_SPMD_PLAN"), rank, ranks, plan, error, size);
    if (!failed) {
        plan->bytes = bytes;
        failed = prepare_plan(plan) < 0;
    }
    /* All or none: a rank that goes on alone would wait for the others for ever. */
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, comm);
    if (any || MPI_Comm_dup(comm, &plan->comm) != MPI_SUCCESS) {
        if (!failed) {
            strncpy(error, "another rank cannot read the plan", size - 1);
            error[size - 1] = '\0';
        }
        free_plan(plan);
        return -1;
    }
    *out = plan;
    return 0;
}
