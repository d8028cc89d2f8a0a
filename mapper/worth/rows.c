/* The rows of --worth: how many workers get nearly all of a memory's bandwidth, and where they sit;
 * how many messages at a time a layer takes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/worth/worth.h"
#include "profile/base/cli.h"
#include "profile/scope.h"

/* -- messages -- */

static void add_layers(struct map_worth_rows *list, const struct profile_communication *in,
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
        list->queues =
            cli_needed(realloc(list->queues, (list->queue_count + 1) * sizeof *list->queues));
        list->queues[list->queue_count++] = row;
    }
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

/* Takes the row. */
static void add_row(struct map_worth_rows *list, const struct map_worth_row *row, bool opens)
{
    struct map_worth_row *last = list->count ? &list->rows[list->count - 1] : NULL;
    if (last && !opens && same_answer(last, row)) {
        last->groups++;
        free(row->places);
        return;
    }
    list->rows = cli_needed(realloc(list->rows, (list->count + 1) * sizeof *list->rows));
    list->rows[list->count++] = *row;
}

static char *list_of(const uint32_t *pus, size_t count)
{
    FREED_BY(profile_set_free) struct profile_set set;
    cli_done(profile_set_from_array(pus, count, &set));
    return cli_needed(profile_set_text(&set));
}

/* The PUs of `group` that may be used, as one row; -ENODATA is an answer. */
static void add_scope(struct listing *l, const char *scope, const struct profile_set *group,
                      bool opens)
{
    struct map_worth_row row = {.groups = 1};
    FREED_BY(profile_set_free) struct profile_set pus = {0};
    struct servet_error why;
    snprintf(row.scope, sizeof row.scope, "%s", scope);
    cli_done(profile_set_intersect(group, &l->node->allowed, &pus));
    row.pus = pus.count;
    if (!row.pus) {
        return;
    }
    FREED uint32_t *places = cli_needed(calloc(pus.count, sizeof *places));
    const int rc = map_worth(l->node->of, &pus, places, &row.worth, &why);
    if (rc == -ENODATA && !l->why) {
        l->why = rc;
        *l->error = why;
    }
    cli_check(rc == -ENODATA ? 0 : rc, &why);
    row.measured = rc == 0;
    l->measured |= row.measured;
    row.places = row.measured ? list_of(places, row.worth.workers) : NULL;
    add_row(l->rows, &row, opens);
}

static void add_groups(struct listing *l, const char *scope,
                       const struct profile_relation *relation)
{
    for (size_t g = 0; g < relation->group_count; g++) {
        add_scope(l, scope, &relation->groups[g], g == 0);
    }
}

static void add_node(struct listing *l, const char *name)
{
    const struct profile_class *of = l->node->of;
    add_scope(l, name, &of->pus, true);
    add_groups(l, "package", &of->packages);
    for (size_t level = of->memory.level_count; level-- > 0;) {
        char scope[48];
        snprintf(scope, sizeof scope, "overhead level %zu", level);
        add_groups(l, scope, &of->memory.levels[level].collisions);
    }
}

/* -- the whole -- */

/* The first node of the class that has any of the allowed PUs, and the class's messages. */
static void add_class(struct listing *l, const struct servet_profile *profile, size_t index,
                      const struct profile_set *allowed)
{
    FREED_BY(map_part_free) struct map_part node = {0};
    const char *name = profile->class_count > 1 ? profile->classes[index].name : NULL;
    for (uint32_t n = 0; n < profile_node_count(profile) && !node.allowed.count; n++) {
        if (profile_node_class(profile, n) == &profile->classes[index]) {
            map_part_free(&node);
            cli_done(map_part_of_node(profile, n, allowed, &node));
        }
    }
    l->node = &node;
    if (node.allowed.count) {
        add_node(l, name ? name : "node");
    }
    add_layers(l->rows, &profile->classes[index].communication, name ? name : "");
}

int map_worth_rows_make(const struct servet_profile *profile, const struct profile_set *allowed,
                        struct map_worth_rows *out, struct servet_error *error)
{
    struct listing l = {.rows = out, .error = error};
    *out = (struct map_worth_rows){0};
    for (size_t c = 0; c < profile->class_count; c++) {
        add_class(&l, profile, c, allowed);
    }
    add_layers(out, &profile->network, "");
    if (l.measured || out->queue_count) {
        return 0;
    }
    map_worth_rows_free(out);
    return l.why;
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
