/* The rows of --worth: how many workers get nearly all of a memory's bandwidth, and where they sit;
 * how many messages at a time a layer takes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/worth/worth.h"
#include "profile/scope.h"

int map_part_of_node(const struct servet_profile *profile, uint32_t number,
                     const struct profile_set *allowed, struct map_part *out)
{
    const struct profile_class *of = profile_node_class(profile, number);
    uint32_t first_pu = profile_node_first_pu(profile, number);
    struct profile_set own = {calloc(of->pus.count + 1, sizeof *own.ids), 0};
    for (size_t i = 0; own.ids && i < of->pus.count; i++) {
        if (!allowed || profile_set_has(allowed, first_pu + of->pus.ids[i])) {
            own.ids[own.count++] = of->pus.ids[i];
        }
    }
    *out = (struct map_part){.of = of, .first_pu = first_pu, .allowed = own};
    return own.ids ? 0 : -ENOMEM;
}

void map_part_free(struct map_part *part)
{
    profile_set_free(&part->allowed);
}

/* -- messages -- */

static int add_layers(struct map_worth_rows *list, const struct profile_communication *in,
                      const char *where)
{
    for (size_t i = 0; i < in->layer_count; i++) {
        struct map_queue_row row;
        row.worth = map_messages_worth(&in->layers[i], &row.most);
        if (!row.worth) {
            continue;
        }
        const char *name = in->layers[i].name ? in->layers[i].name : "layer";
        snprintf(row.layer, sizeof row.layer, "%s%s%s", where, *where ? ": " : "", name);
        struct map_queue_row *queues =
            realloc(list->queues, (list->queue_count + 1) * sizeof *queues);
        if (!queues) {
            return -ENOMEM;
        }
        list->queues = queues;
        list->queues[list->queue_count++] = row;
    }
    return 0;
}

/* -- workers -- */

struct listing {
    struct map_worth_rows *rows;
    const struct map_part *node;
    bool measured; /* any row */
    int why;       /* the first -ENODATA, whose text is in `error` */
    struct servet_error *error;
};

static bool same_answer(const struct map_worth_row *a, const struct map_worth_row *b)
{
    return strcmp(a->scope, b->scope) == 0 && a->pus == b->pus && a->measured == b->measured &&
           a->worth.workers == b->worth.workers &&
           a->worth.measured_workers == b->worth.measured_workers &&
           !(a->worth.bytes_per_s < b->worth.bytes_per_s) &&
           !(a->worth.bytes_per_s > b->worth.bytes_per_s);
}

/* Takes the row. 0 or -ENOMEM. */
static int add_row(struct map_worth_rows *list, struct map_worth_row *row, bool opens)
{
    struct map_worth_row *last = list->count ? &list->rows[list->count - 1] : NULL;
    if (last && !opens && same_answer(last, row)) {
        last->groups++;
        free(row->places);
        return 0;
    }
    struct map_worth_row *rows = realloc(list->rows, (list->count + 1) * sizeof *rows);
    if (!rows) {
        free(row->places);
        return -ENOMEM;
    }
    list->rows = rows;
    list->rows[list->count++] = *row;
    return 0;
}

static char *list_of(const uint32_t *pus, size_t count)
{
    struct profile_set set;
    if (profile_set_from_array(pus, count, &set) < 0) {
        return NULL;
    }
    char *text = profile_set_text(&set);
    profile_set_free(&set);
    return text;
}

/* The PUs of `group` that may be used, as one row; -ENODATA is an answer. */
static int add_scope(struct listing *l, const char *scope, const struct profile_set *group,
                     bool opens)
{
    struct map_worth_row row = {.groups = 1};
    FREED_BY(profile_set_free) struct profile_set pus = {0};
    struct servet_error why;
    snprintf(row.scope, sizeof row.scope, "%s", scope);
    TRY(profile_set_intersect(group, &l->node->allowed, &pus));
    row.pus = pus.count;
    if (!row.pus) {
        return 0;
    }
    FREED uint32_t *places = calloc(pus.count, sizeof *places);
    const int rc = places ? map_worth(l->node->of, &pus, places, &row.worth, &why) : -ENOMEM;
    if (rc == -ENODATA && !l->why) {
        l->why = rc;
        *l->error = why;
    }
    TRY(rc == -ENODATA ? 0 : rc);
    row.measured = rc == 0;
    l->measured |= row.measured;
    row.places = row.measured ? list_of(places, row.worth.workers) : NULL;
    return row.measured && !row.places ? -ENOMEM : add_row(l->rows, &row, opens);
}

static int add_groups(struct listing *l, const char *scope, const struct profile_relation *relation)
{
    for (size_t g = 0; g < relation->group_count; g++) {
        TRY(add_scope(l, scope, &relation->groups[g], g == 0));
    }
    return 0;
}

static int add_node(struct listing *l, const char *name)
{
    const struct profile_class *of = l->node->of;
    TRY(add_scope(l, name, &of->pus, true));
    TRY(add_groups(l, "package", &of->packages));
    for (size_t level = of->memory.level_count; level-- > 0;) {
        char scope[48];
        snprintf(scope, sizeof scope, "overhead level %zu", level);
        TRY(add_groups(l, scope, &of->memory.levels[level].collisions));
    }
    return 0;
}

/* -- the whole -- */

/* The first node of the class that has any of the allowed PUs, and the class's messages. */
static int add_class(struct listing *l, const struct servet_profile *profile, size_t index,
                     const struct profile_set *allowed)
{
    FREED_BY(map_part_free) struct map_part node = {0};
    const char *name = profile->class_count > 1 ? profile->classes[index].name : NULL;
    for (uint32_t n = 0; n < profile_node_count(profile) && !node.allowed.count; n++) {
        if (profile_node_class(profile, n) == &profile->classes[index]) {
            map_part_free(&node);
            TRY(map_part_of_node(profile, n, allowed, &node));
        }
    }
    l->node = &node;
    if (node.allowed.count) {
        TRY(add_node(l, name ? name : "node"));
    }
    return add_layers(l->rows, &profile->classes[index].communication, name ? name : "");
}

static int add_all(const struct servet_profile *profile, const struct profile_set *allowed,
                   struct map_worth_rows *rows, struct servet_error *error)
{
    struct listing l = {.rows = rows, .error = error};
    for (size_t c = 0; c < profile->class_count; c++) {
        TRY(add_class(&l, profile, c, allowed));
    }
    TRY(add_layers(rows, &profile->network, ""));
    return l.measured || rows->queue_count ? 0 : l.why;
}

int map_worth_rows_make(const struct servet_profile *profile, const struct profile_set *allowed,
                        struct map_worth_rows *out, struct servet_error *error)
{
    struct map_worth_rows rows = {0};
    const int rc = add_all(profile, allowed, &rows, error);
    if (rc < 0) {
        map_worth_rows_free(&rows);
        return map_out_of_memory(rc, error);
    }
    *out = rows;
    return 0;
}

void map_worth_rows_free(struct map_worth_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        free(rows->rows[i].places);
    }
    free(rows->rows);
    free(rows->queues);
    *rows = (struct map_worth_rows){0};
}
