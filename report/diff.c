#include "diff.h"

#include "items.h"
#include "map.h"
#include "query.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_PUS 8 /* of a mapping that changed */

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

static int append(json_t *list, json_t *object)
{
    return object ? json_array_append_new(list, object) : -1;
}

static int add_change(json_t *list, const struct item *a, const struct item *b)
{
    json_t *object =
        json_pack("{s:s,s:s,s:s,s:s}", "where", a->where, "figure", a->name, "old", a->shown, "new", b->shown);
    if (object && a->number > 0 && b->number > 0) {
        json_object_set_new(object, "ratio", json_real(b->number / a->number));
    }
    return append(list, object);
}

static int add_one(json_t *list, const struct item *item)
{
    return append(list, json_pack("{s:s,s:s,s:s}", "where", item->where, "figure", item->name, "value", item->shown));
}

/* "same": how many; "changed", "gone", "new": lists. */
static int compare(const struct item_list *old, const struct item_list *new, json_t *diff)
{
    json_t *changed = json_object_get(diff, "changed"), *gone = json_object_get(diff, "gone");
    json_int_t same_figures = 0;
    int rc = 0;
    for (size_t i = 0; i < old->count; i++) {
        const struct item *a = &old->items[i], *b = find(new, a);
        if (b && same(a, b)) {
            same_figures++;
        } else {
            rc |= b ? add_change(changed, a, b) : add_one(gone, a);
        }
    }
    for (size_t i = 0; i < new->count; i++) {
        rc |= find(old, &new->items[i]) ? 0 : add_one(json_object_get(diff, "new"), &new->items[i]);
    }
    rc |= json_object_set_new(diff, "same", json_integer(same_figures));
    return rc ? -ENOMEM : 0;
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

static json_t *list_of(const uint32_t *pus, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, json_integer(pus[i]));
    }
    return list;
}

/* 0, or -errno; `list` gets what changed. */
static int compare_mapping(const struct servet_profile *old, const struct servet_profile *new,
                           const struct map_request *request, uint32_t *room, json_t *list, struct servet_error *error)
{
    size_t workers = request->workers;
    uint32_t *a = room, *b = room + workers;
    int rc = map_workers(old, request, a, NULL, error);
    rc = rc < 0 ? rc : map_workers(new, request, b, NULL, error);
    if (rc < 0 || memcmp(a, b, workers * sizeof *a) == 0) {
        return rc;
    }
    const char *priority = request->priority == MAP_MEMORY ? "memory" : "communication";
    rc = append(list, json_pack("{s:I,s:s,s:o,s:o}", "workers", (json_int_t)workers, "priority", priority, "old",
                                list_of(a, workers), "new", list_of(b, workers)));
    return rc ? profile_error(error, -ENOMEM, "comparing mappings: %s", strerrordesc_np(ENOMEM)) : 0;
}

static int compare_mappings(const struct servet_profile *old, const struct servet_profile *new, json_t *diff,
                            struct servet_error *error)
{
    size_t before = pus_of(old), after = pus_of(new), most = before < after ? before : after;
    uint32_t *room = calloc(2 * most + 1, sizeof *room);
    if (!room) {
        return profile_error(error, -ENOMEM, "comparing mappings: %s", strerrordesc_np(ENOMEM));
    }
    int rc = 0;
    for (size_t n = 1; rc >= 0 && n <= most; n = n < DIFF_WORKERS_ALL ? n + 1 : 2 * n) {
        for (int p = 0; rc >= 0 && p < 2; p++) {
            const struct map_request request = {.priority = p ? MAP_COMMUNICATION : MAP_MEMORY, .workers = n};
            rc = compare_mapping(old, new, &request, room, json_object_get(diff, "mappings"), error);
        }
    }
    free(room);
    json_object_set_new(diff, "most_workers", json_integer((json_int_t)most));
    return rc < 0 ? rc : 0;
}

int diff_profiles(const struct servet_profile *old, const struct servet_profile *new, json_t **out,
                  struct servet_error *error)
{
    struct item_list before = {0}, after = {0};
    json_t *diff = json_pack("{s:i,s:[],s:[],s:[],s:f,s:i,s:[]}", "same", 0, "changed", "gone", "new", "tolerance",
                             DIFF_TOLERANCE, "most_workers", 0, "mappings");
    int rc = diff ? items_collect(old, &before) : -ENOMEM;
    rc = rc < 0 ? rc : items_collect(new, &after);
    rc = rc < 0 ? rc : compare(&before, &after, diff);
    if (rc < 0) {
        profile_error(error, rc, "comparing profiles: %s", strerrordesc_np(-rc));
    } else {
        rc = compare_mappings(old, new, diff, error);
    }
    items_free(&before);
    items_free(&after);
    if (rc < 0) {
        json_decref(diff);
        return rc;
    }
    *out = diff;
    return 0;
}

/* -- in words -------------------------------------------------------------------------------------------------------
 */

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void print_pus(FILE *stream, const json_t *pus)
{
    size_t count = json_array_size(pus);
    for (size_t i = 0; i < count && i < SHOWN_PUS; i++) {
        fprintf(stream, "%s%lld", i ? "," : "", json_integer_value(json_array_get(pus, i)));
    }
    fputs(count > SHOWN_PUS ? ",..." : "", stream);
}

static void print_figures(const json_t *diff, FILE *stream)
{
    const json_t *changed = json_object_get(diff, "changed"), *item;
    size_t i;
    json_array_foreach(changed, i, item)
    {
        const json_t *ratio = json_object_get(item, "ratio");
        fprintf(stream, "changed  %s: %s: %s -> %s", text(item, "where"), text(item, "figure"), text(item, "old"),
                text(item, "new"));
        if (ratio) {
            fprintf(stream, " (%+.0f %%)", (json_real_value(ratio) - 1) * 100);
        }
        fputc('\n', stream);
    }
    static const char *const lists[] = {"gone", "new"};
    for (size_t l = 0; l < 2; l++) {
        json_array_foreach(json_object_get(diff, lists[l]), i, item)
        {
            fprintf(stream, "%-8s %s: %s: %s\n", lists[l], text(item, "where"), text(item, "figure"),
                    text(item, "value"));
        }
    }
    fprintf(stream,
            "figures  %lld the same (numbers: within %.0f %% or their spread), %zu changed, %zu gone, %zu new\n",
            json_integer_value(json_object_get(diff, "same")), DIFF_TOLERANCE * 100, json_array_size(changed),
            json_array_size(json_object_get(diff, "gone")), json_array_size(json_object_get(diff, "new")));
}

void diff_print(const json_t *diff, FILE *stream)
{
    const json_t *mappings = json_object_get(diff, "mappings"), *item;
    size_t i;
    print_figures(diff, stream);
    json_array_foreach(mappings, i, item)
    {
        fprintf(stream, "mapping  %lld workers, %s priority: ", json_integer_value(json_object_get(item, "workers")),
                text(item, "priority"));
        print_pus(stream, json_object_get(item, "old"));
        fputs(" -> ", stream);
        print_pus(stream, json_object_get(item, "new"));
        fputc('\n', stream);
    }
    if (json_array_size(mappings) == 0) {
        fprintf(stream, "mapping  the same for 1 to %lld workers, both priorities\n",
                json_integer_value(json_object_get(diff, "most_workers")));
    }
}
