#include "diff.h"

#include "items.h"
#include "map.h"
#include "query.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_PUS 8 /* of a mapping that changed */

struct tally {
    size_t same, changed, gone, new;
};

static const struct item *find(const struct item_list *list, const struct item *like)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i].name, like->name) == 0 && strcmp(list->items[i].where, like->where) == 0) {
            return &list->items[i];
        }
    }
    return NULL;
}

static double tolerance(const struct item *a, const struct item *b)
{
    double wide = DIFF_TOLERANCE;
    wide = a->quality ? fmax(wide, a->quality->spread) : wide;
    return b->quality ? fmax(wide, b->quality->spread) : wide;
}

static bool same(const struct item *a, const struct item *b)
{
    if (isnan(a->number) || isnan(b->number)) {
        return strcmp(a->exact, b->exact) == 0;
    }
    return fabs(a->number - b->number) <= tolerance(a, b) * fmin(fabs(a->number), fabs(b->number));
}

static void print_change(FILE *stream, const struct item *a, const struct item *b)
{
    fprintf(stream, "changed  %s: %s: %s -> %s", a->where, a->name, a->shown, b->shown);
    if (a->number > 0 && b->number > 0) {
        fprintf(stream, " (%+.0f %%)", (b->number / a->number - 1) * 100);
    }
    fputc('\n', stream);
}

static void compare(const struct item_list *old, const struct item_list *new, FILE *stream, struct tally *tally)
{
    for (size_t i = 0; i < old->count; i++) {
        const struct item *a = &old->items[i], *b = find(new, a);
        if (!b) {
            fprintf(stream, "gone     %s: %s: %s\n", a->where, a->name, a->shown);
            tally->gone++;
        } else if (same(a, b)) {
            tally->same++;
        } else {
            print_change(stream, a, b);
            tally->changed++;
        }
    }
    for (size_t i = 0; i < new->count; i++) {
        if (!find(old, &new->items[i])) {
            fprintf(stream, "new      %s: %s: %s\n", new->items[i].where, new->items[i].name, new->items[i].shown);
            tally->new ++;
        }
    }
}

/* -- mapping --------------------------------------------------------------------------------------------------------
 */

static size_t pus_of(const struct servet_profile *profile)
{
    size_t pus = 0;
    for (uint32_t node = 0; node < profile_node_count(profile); node++) {
        pus += profile_node_class(profile, node)->pus.count;
    }
    return pus;
}

static void print_pus(FILE *stream, const uint32_t *pus, size_t count)
{
    for (size_t i = 0; i < count && i < SHOWN_PUS; i++) {
        fprintf(stream, "%s%u", i ? "," : "", pus[i]);
    }
    fputs(count > SHOWN_PUS ? ",..." : "", stream);
}

/* 1: changed, 0: the same, or -errno. */
static int compare_mapping(const struct servet_profile *old, const struct servet_profile *new, size_t workers,
                           enum map_priority priority, uint32_t *room, FILE *stream, struct servet_error *error)
{
    const struct map_request request = {.priority = priority, .workers = workers};
    uint32_t *a = room, *b = room + workers;
    int rc = map_workers(old, &request, a, NULL, error);
    rc = rc < 0 ? rc : map_workers(new, &request, b, NULL, error);
    if (rc < 0 || memcmp(a, b, workers * sizeof *a) == 0) {
        return rc;
    }
    fprintf(stream, "mapping  %zu workers, %s priority: ", workers,
            priority == MAP_MEMORY ? "memory" : "communication");
    print_pus(stream, a, workers);
    fputs(" -> ", stream);
    print_pus(stream, b, workers);
    fputc('\n', stream);
    return 1;
}

static int compare_mappings(const struct servet_profile *old, const struct servet_profile *new, FILE *stream,
                            struct servet_error *error)
{
    size_t before = pus_of(old), after = pus_of(new), most = before < after ? before : after, changed = 0;
    uint32_t *room = calloc(2 * most + 1, sizeof *room);
    if (!room) {
        return profile_error(error, -ENOMEM, "comparing mappings: %s", strerrordesc_np(ENOMEM));
    }
    int rc = 0;
    for (size_t n = 1; rc >= 0 && n <= most; n = n < DIFF_WORKERS_ALL ? n + 1 : 2 * n) {
        for (int p = 0; rc >= 0 && p < 2; p++) {
            rc = compare_mapping(old, new, n, p ? MAP_COMMUNICATION : MAP_MEMORY, room, stream, error);
            changed += rc > 0;
        }
    }
    free(room);
    if (rc >= 0 && !changed) {
        fprintf(stream, "mapping  the same for 1 to %zu workers, both priorities\n", most);
    }
    return rc < 0 ? rc : 0;
}

int diff_print(const struct servet_profile *old, const struct servet_profile *new, FILE *stream,
               struct servet_error *error)
{
    struct item_list before = {0}, after = {0};
    struct tally tally = {0};
    int rc = items_collect(old, &before);
    rc = rc < 0 ? rc : items_collect(new, &after);
    if (rc < 0) {
        profile_error(error, rc, "comparing profiles: %s", strerrordesc_np(-rc));
    } else {
        compare(&before, &after, stream, &tally);
        fprintf(stream,
                "figures  %zu the same (numbers: within %.0f %% or their spread), %zu changed, %zu gone, %zu new\n",
                tally.same, DIFF_TOLERANCE * 100, tally.changed, tally.gone, tally.new);
        rc = compare_mappings(old, new, stream, error);
    }
    items_free(&before);
    items_free(&after);
    return rc;
}
