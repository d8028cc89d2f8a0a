/* Every figure of a profile as a row, and two profiles compared row by row.
 *
 * A row is known by where it belongs and what it is called, so that a figure that moved in the file
 * is found again; numbers differ only by more than what repeated measurements do. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/map.h"
#include "profile/base/cli.h"
#include "profile/base/statistics.h"
#include "profile/scope.h"
#include "profile/text/text.h"
#include "report/report.h"

/* The texts are copied. `number` NAN: it is none; `exact` NULL: as shown. */
__attribute__((format(printf, 6, 7))) static void add_item(struct item_list *list, double number,
                                                           const struct profile_quality *quality,
                                                           const char *shown, const char *exact,
                                                           const char *name, ...)
{
    va_list args;
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 64;
        list->items = cli_needed(realloc(list->items, list->room * sizeof *list->items));
    }
    struct item *item = &list->items[list->count++];
    *item = (struct item){.where = cli_needed(strdup(list->where)),
                          .shown = cli_needed(strdup(shown)),
                          .exact = cli_needed(strdup(exact ? exact : shown)),
                          .number = number,
                          .quality = quality};
    va_start(args, name);
    cli_done(vasprintf(&item->name, name, args));
    va_end(args);
}

#define ADD_NUMBER(list, number, shown, quality, ...)                                              \
    add_item(list, number, quality, (shown).text, NULL, __VA_ARGS__)
#define ADD_TEXT(list, shown, exact, ...) add_item(list, NAN, NULL, shown, exact, __VA_ARGS__)

static void add_relation_items(struct item_list *list, const struct profile_relation *relation,
                               const char *name)
{
    FREED char *exact = profile_relation_text(relation);
    ADD_TEXT(list, profile_figure_sharers(relation).text, exact, "%s", name);
}

static void add_caches(struct item_list *list, const struct profile_class *node_class)
{
    for (size_t i = 0; i < node_class->cache_count; i++) {
        const struct profile_cache *c = &node_class->caches[i];
        char level[64], name[80];
        snprintf(level, sizeof level, "L%u%s%.40s", c->level, c->pus.count ? " of PUs " : "",
                 c->pus.count ? profile_figure_group(&c->pus).text : "");
        ADD_NUMBER(list, (double)c->size_bytes, profile_figure_cache(c), &c->quality,
                   "%s effective size", level);
        ADD_NUMBER(list, (double)c->declared_size_bytes,
                   profile_figure_bytes(c->declared_size_bytes), NULL, "%s declared size", level);
        snprintf(name, sizeof name, "%s shared by", level);
        add_relation_items(list, &c->sharing, name);
    }
}

static void add_memory(struct item_list *list, const struct profile_memory *memory)
{
    ADD_NUMBER(list, memory->reference_bytes_per_s,
               profile_figure_bandwidth(memory->reference_bytes_per_s), &memory->quality,
               "memory, one worker alone");
    for (size_t i = 0; i < memory->level_count; i++) {
        const struct profile_memory_level *level = &memory->levels[i];
        char name[80];
        ADD_NUMBER(list, level->bytes_per_s, profile_figure_bandwidth(level->bytes_per_s),
                   &level->quality, "memory overhead level %zu, each of two", i);
        snprintf(name, sizeof name, "memory overhead level %zu, between", i);
        add_relation_items(list, &level->collisions, name);
        if (level->scaling_count) {
            const struct profile_scaling_point *last = &level->scaling[level->scaling_count - 1];
            ADD_NUMBER(list, last->bytes_per_s, profile_figure_bandwidth(last->bytes_per_s), NULL,
                       "memory overhead level %zu, %u workers together", i, last->workers);
        }
    }
}

static void add_numa_access(struct item_list *list, const struct profile_class *node_class)
{
    for (size_t i = 0; i < node_class->numa_access_count; i++) {
        const struct profile_numa_access *row = &node_class->numa_access[i];
        FREED char *pus = cli_needed(profile_set_text(&row->pus));
        ADD_NUMBER(list, row->seconds_per_access, profile_figure_seconds(row->seconds_per_access),
                   &row->quality, "latency of NUMA node %u from PUs %.80s", row->node, pus);
        ADD_NUMBER(list, row->bytes_per_s, profile_figure_bandwidth(row->bytes_per_s),
                   &row->quality, "bandwidth of NUMA node %u from PUs %.80s", row->node, pus);
    }
}

static void add_transfers(struct item_list *list, const struct profile_device *device)
{
    for (size_t i = 0; i < device->transfer_count; i++) {
        const struct profile_transfer *row = &device->transfers[i];
        const double rates[] = {row->to_device_bytes_per_s, row->from_device_bytes_per_s};
        for (size_t k = 0; k < 2; k++) {
            ADD_NUMBER(list, rates[k], profile_figure_bandwidth(rates[k]), &row->quality,
                       "copies of NUMA node %u %s %.40s", row->node, k ? "from" : "to",
                       device->name);
        }
        ADD_NUMBER(list, row->seconds, profile_figure_seconds(row->seconds), &row->quality,
                   "latency of copies of NUMA node %u to %.40s", row->node, device->name);
    }
}

static void add_layer_items(struct item_list *list,
                            const struct profile_communication *communication)
{
    for (size_t i = 0; i < communication->layer_count; i++) {
        const struct profile_layer *layer = &communication->layers[i];
        const bool measured = layer->seconds > 0;
        char name[64];
        ADD_NUMBER(list, measured ? layer->seconds : NAN,
                   measured ? profile_figure_seconds(layer->seconds)
                            : (struct figure){"not measured"},
                   &layer->quality, "message layer %zu, latency", i);
        snprintf(name, sizeof name, "message layer %zu, between", i);
        add_relation_items(list, &layer->members, name);
    }
}

static void add_class_items(struct item_list *list, const struct servet_profile *profile,
                            size_t index)
{
    const struct profile_class *node_class = &profile->classes[index];
    FREED char *pus = cli_needed(profile_set_text(&node_class->pus));
    char where[32];
    snprintf(where, sizeof where, "node class %zu", index);
    list->where = where;
    ADD_TEXT(list, profile_figure_group(&node_class->pus).text, pus, "PUs");
    add_relation_items(list, &node_class->cores, "cores");
    add_relation_items(list, &node_class->packages, "packages");
    add_caches(list, node_class);
    add_memory(list, &node_class->memory);
    add_numa_access(list, node_class);
    for (size_t i = 0; i < node_class->device_count; i++) {
        add_transfers(list, &node_class->devices[i]);
    }
    add_layer_items(list, &node_class->communication);
}

static void add_bsp(struct item_list *list, const struct servet_profile *profile)
{
    list->where = "BSP";
    for (size_t i = 0; i < profile->bsp_count; i++) {
        const struct profile_bsp *bsp = &profile->bsp[i];
        const double values[] = {bsp->r_flop_per_s, bsp->g_flops, bsp->l_flops};
        for (size_t k = 0; k < 3; k++) {
            struct figure value = {"none"};
            if (k < 2 || bsp->l_flops >= 0) {
                snprintf(value.text, sizeof value.text, k ? "%.4g flops" : "%.4g Gflop/s",
                         k ? values[k] : values[k] / 1e9);
            }
            ADD_NUMBER(list, values[k], value, &bsp->quality, "%.40s, %u processors, %c",
                       bsp->backend ? bsp->backend : "p", bsp->processors, "rgl"[k]);
        }
    }
}

struct item_list report_items_collect(const struct servet_profile *profile)
{
    struct item_list list = {.where = "machine"};
    const char *const heads[][2] = {{"host", profile->host_name},
                                    {"processor", profile->cpu_model},
                                    {"architecture", profile->architecture},
                                    {"kernel", profile->kernel},
                                    {"topology signature", profile->topology_signature}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        const char *said = heads[i][1] ? heads[i][1] : "not known";
        ADD_TEXT(&list, said, said, "%s", heads[i][0]);
    }
    for (size_t i = 0; i < profile->node_range_count; i++) {
        char text[256];
        snprintf(text, sizeof text, "%.200s (class %u)", profile->nodes[i].names,
                 profile->nodes[i].class_index);
        ADD_TEXT(&list, text, text, "nodes %zu", i);
    }
    for (size_t i = 0; i < profile->class_count; i++) {
        add_class_items(&list, profile, i);
    }
    list.where = "network";
    add_layer_items(&list, &profile->network);
    add_bsp(&list, profile);
    return list;
}

void report_items_free(struct item_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].where);
        free(list->items[i].name);
        free(list->items[i].shown);
        free(list->items[i].exact);
    }
    free(list->items);
}

#define SHOWN_PUS 8 /* of a mapping that changed */

static const struct item *find(const struct item_list *list, const struct item *like)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i].name, like->name) == 0 &&
            strcmp(list->items[i].where, like->where) == 0) {
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
    return profile_same(a->number, b->number, tolerance(a, b));
}

/* jansson's functions do not fail in a command (cli.c). */
static void add_change(json_t *list, const struct item *a, const struct item *b)
{
    json_t *object = json_pack("{s:s,s:s,s:s,s:s}", "where", a->where, "figure", a->name, "old",
                               a->shown, "new", b->shown);
    if (a->number > 0 && b->number > 0) {
        json_object_set_new(object, "ratio", json_real(b->number / a->number));
    }
    json_array_append_new(list, object);
}

static void add_one(json_t *list, const struct item *item)
{
    json_array_append_new(list, json_pack("{s:s,s:s,s:s}", "where", item->where, "figure",
                                          item->name, "value", item->shown));
}

/* "same": how many; "changed", "gone", "new": lists. */
static void compare_items(const struct item_list *old, const struct item_list *new, json_t *diff)
{
    json_int_t same_figures = 0;
    for (size_t i = 0; i < old->count; i++) {
        const struct item *a = &old->items[i], *b = find(new, a);
        if (!b) {
            add_one(json_object_get(diff, "gone"), a);
        } else if (same(a, b)) {
            same_figures++;
        } else {
            add_change(json_object_get(diff, "changed"), a, b);
        }
    }
    for (size_t i = 0; i < new->count; i++) {
        if (!find(old, &new->items[i])) {
            add_one(json_object_get(diff, "new"), &new->items[i]);
        }
    }
    json_object_set_new(diff, "same", json_integer(same_figures));
}

/* -- mapping -- */

static size_t count_pus(const struct servet_profile *profile)
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

/* `list` gets what changed. */
static void compare_mapping(const struct servet_profile *old, const struct servet_profile *new,
                            const struct map_request *request, uint32_t *room, json_t *list)
{
    const size_t workers = request->workers;
    uint32_t *a = room, *b = room + workers;
    struct servet_error error;
    cli_check(map_workers(old, request, a, NULL, &error), &error);
    cli_check(map_workers(new, request, b, NULL, &error), &error);
    if (memcmp(a, b, workers * sizeof *a) != 0) {
        const char *priority = request->priority == MAP_MEMORY ? "memory" : "communication";
        json_array_append_new(list, json_pack("{s:I,s:s,s:o,s:o}", "workers", (json_int_t)workers,
                                              "priority", priority, "old", list_of(a, workers),
                                              "new", list_of(b, workers)));
    }
}

static void compare_mappings(const struct servet_profile *old, const struct servet_profile *new,
                             json_t *diff)
{
    size_t before = count_pus(old), after = count_pus(new), most = before < after ? before : after;
    FREED uint32_t *room = cli_needed(calloc(2 * most + 1, sizeof *room));
    for (size_t n = 1; n <= most; n = n < DIFF_WORKERS_ALL ? n + 1 : 2 * n) {
        for (int p = 0; p < 2; p++) {
            const struct map_request request =
                map_request_of(p ? MAP_COMMUNICATION : MAP_MEMORY, n);
            compare_mapping(old, new, &request, room, json_object_get(diff, "mappings"));
        }
    }
    json_object_set_new(diff, "most_workers", json_integer((json_int_t)most));
}

json_t *report_diff_profiles(const struct servet_profile *old, const struct servet_profile *new)
{
    FREED_BY(report_items_free)
    struct item_list before = report_items_collect(old), after = report_items_collect(new);
    json_t *diff = json_pack("{s:i,s:[],s:[],s:[],s:f,s:i,s:[]}", "same", 0, "changed", "gone",
                             "new", "tolerance", DIFF_TOLERANCE, "most_workers", 0, "mappings");
    compare_items(&before, &after, diff);
    compare_mappings(old, new, diff);
    return diff;
}

/* -- in words -- */

static const char *json_text(const json_t *object, const char *key)
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
        fprintf(stream, "changed  %s: %s: %s -> %s", json_text(item, "where"),
                json_text(item, "figure"), json_text(item, "old"), json_text(item, "new"));
        if (ratio) {
            fprintf(stream, " (%+.0f %%)", (json_real_value(ratio) - 1) * 100);
        }
        fputc('\n', stream);
    }
    static const char *const lists[] = {"gone", "new"};
    for (size_t l = 0; l < 2; l++) {
        json_array_foreach(json_object_get(diff, lists[l]), i, item)
        {
            fprintf(stream, "%-8s %s: %s: %s\n", lists[l], json_text(item, "where"),
                    json_text(item, "figure"), json_text(item, "value"));
        }
    }
    fprintf(stream,
            "figures  %lld the same (numbers: within %.0f %% or their spread), %zu changed, %zu "
            "gone, %zu new\n",
            json_integer_value(json_object_get(diff, "same")), DIFF_TOLERANCE * 100,
            json_array_size(changed), json_array_size(json_object_get(diff, "gone")),
            json_array_size(json_object_get(diff, "new")));
}

void report_diff_print(const json_t *diff, FILE *stream)
{
    const json_t *mappings = json_object_get(diff, "mappings"), *item;
    size_t i;
    print_figures(diff, stream);
    json_array_foreach(mappings, i, item)
    {
        fprintf(stream, "mapping  %lld workers, %s priority: ",
                json_integer_value(json_object_get(item, "workers")), json_text(item, "priority"));
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
