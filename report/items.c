#include "items.h"

#include "figures.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct item *add(struct item_list *list, const char *where, const char *name, ...)
    __attribute__((format(printf, 3, 4)));

static struct item *add(struct item_list *list, const char *where, const char *name, ...)
{
    static struct item nowhere; /* so that callers need not check each time */
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        struct item *items = realloc(list->items, room * sizeof *items);
        if (!items) {
            list->rc = -ENOMEM;
            return &nowhere;
        }
        list->items = items;
        list->room = room;
    }
    struct item *item = &list->items[list->count++];
    *item = (struct item){.where = strdup(where), .number = NAN};
    va_list args;
    va_start(args, name);
    if (vasprintf(&item->name, name, args) < 0) {
        item->name = NULL;
    }
    va_end(args);
    if (!item->where || !item->name) {
        list->rc = -ENOMEM;
    }
    return item;
}

static void say(struct item_list *list, struct item *item, const char *shown, const char *exact)
{
    free(item->shown);
    free(item->exact);
    item->shown = strdup(shown);
    item->exact = strdup(exact ? exact : shown);
    if (!item->shown || !item->exact) {
        list->rc = -ENOMEM;
    }
}

static void say_number(struct item_list *list, struct item *item, double number, const char *shown,
                       const struct profile_quality *quality)
{
    say(list, item, shown, NULL);
    item->number = number;
    item->quality = quality;
}

static void say_relation(struct item_list *list, struct item *item, const struct profile_relation *relation)
{
    char *exact = NULL;
    size_t length;
    FILE *stream = open_memstream(&exact, &length);
    for (size_t i = 0; stream && i < relation->group_count; i++) {
        char *text = profile_set_text(&relation->groups[i]);
        fprintf(stream, "%s ", text ? text : "");
        free(text);
    }
    for (size_t i = 0; stream && i < relation->pair_count; i++) {
        fprintf(stream, "%u+%u ", relation->pairs[i].a, relation->pairs[i].b);
    }
    if (!stream || fclose(stream) != 0) {
        list->rc = -ENOMEM;
    }
    bool none = !relation->group_count && !relation->pair_count;
    say(list, item, none ? "nobody" : figure_relation(relation).text, exact);
    free(exact);
}

static void say_set(struct item_list *list, struct item *item, const struct profile_set *set)
{
    char *text = profile_set_text(set);
    const struct profile_relation one = {.groups = (struct profile_set *)set, .group_count = 1};
    say(list, item, figure_relation(&one).text, text ? text : "");
    free(text);
}

static void add_caches(struct item_list *list, const char *where, const struct profile_class *node_class)
{
    for (size_t i = 0; i < node_class->cache_count; i++) {
        const struct profile_cache *c = &node_class->caches[i];
        char level[64];
        snprintf(level, sizeof level, "L%u%s%.40s", c->level, c->pus.count ? " of PUs " : "",
                 c->pus.count
                     ? figure_relation(&(struct profile_relation){(struct profile_set *)&c->pus, 1, NULL, 0}).text
                     : "");
        say_number(list, add(list, where, "%s effective size", level), (double)c->size_bytes,
                   c->quality.origin == PROFILE_DECLARED ? "not measured" : figure_bytes(c->size_bytes).text,
                   &c->quality);
        say_number(list, add(list, where, "%s declared size", level), (double)c->declared_size_bytes,
                   figure_bytes(c->declared_size_bytes).text, NULL);
        say_relation(list, add(list, where, "%s shared by", level), &c->sharing);
    }
}

static void add_memory(struct item_list *list, const char *where, const struct profile_memory *memory)
{
    say_number(list, add(list, where, "memory, one worker alone"), memory->reference_bytes_per_s,
               figure_bandwidth(memory->reference_bytes_per_s).text, &memory->quality);
    for (size_t i = 0; i < memory->level_count; i++) {
        const struct profile_memory_level *level = &memory->levels[i];
        say_number(list, add(list, where, "memory overhead level %zu, each of two", i), level->bytes_per_s,
                   figure_bandwidth(level->bytes_per_s).text, &level->quality);
        say_relation(list, add(list, where, "memory overhead level %zu, between", i), &level->collisions);
        if (level->scaling_count) {
            const struct profile_scaling_point *last = &level->scaling[level->scaling_count - 1];
            say_number(list, add(list, where, "memory overhead level %zu, %u workers together", i, last->workers),
                       last->bytes_per_s, figure_bandwidth(last->bytes_per_s).text, NULL);
        }
    }
}

static void add_numa_access(struct item_list *list, const char *where, const struct profile_class *node_class)
{
    for (size_t i = 0; i < node_class->numa_access_count; i++) {
        const struct profile_numa_access *row = &node_class->numa_access[i];
        char *pus = profile_set_text(&row->pus);
        say_number(list, add(list, where, "latency of NUMA node %u from PUs %.80s", row->node, pus ? pus : ""),
                   row->seconds_per_access, figure_seconds(row->seconds_per_access).text, &row->quality);
        say_number(list, add(list, where, "bandwidth of NUMA node %u from PUs %.80s", row->node, pus ? pus : ""),
                   row->bytes_per_s, figure_bandwidth(row->bytes_per_s).text, &row->quality);
        free(pus);
    }
}

static void add_layers(struct item_list *list, const char *where, const struct profile_communication *communication,
                       bool measured)
{
    for (size_t i = 0; i < communication->layer_count; i++) {
        const struct profile_layer *layer = &communication->layers[i];
        say_number(list, add(list, where, "message layer %zu, latency", i), layer->seconds,
                   measured ? figure_seconds(layer->seconds).text : "not measured", &layer->quality);
        say_relation(list, add(list, where, "message layer %zu, between", i), &layer->members);
    }
}

static void add_class(struct item_list *list, const struct servet_profile *profile, size_t index)
{
    const struct profile_class *node_class = &profile->classes[index];
    char where[32];
    snprintf(where, sizeof where, "node class %zu", index);
    say_set(list, add(list, where, "PUs"), &node_class->pus);
    say_relation(list, add(list, where, "cores"), &node_class->cores);
    say_relation(list, add(list, where, "packages"), &node_class->packages);
    add_caches(list, where, node_class);
    add_memory(list, where, &node_class->memory);
    add_numa_access(list, where, node_class);
    add_layers(list, where, &node_class->communication, profile->measured);
}

static void add_bsp(struct item_list *list, const struct servet_profile *profile)
{
    for (size_t i = 0; i < profile->bsp_count; i++) {
        const struct profile_bsp *bsp = &profile->bsp[i];
        char name[80], value[48];
        snprintf(name, sizeof name, "%.40s, %u processors", bsp->backend ? bsp->backend : "p", bsp->processors);
        snprintf(value, sizeof value, "%.4g Gflop/s", bsp->r_flop_per_s / 1e9);
        say_number(list, add(list, "BSP", "%s, r", name), bsp->r_flop_per_s, value, &bsp->quality);
        snprintf(value, sizeof value, "%.4g flops", bsp->g_flops);
        say_number(list, add(list, "BSP", "%s, g", name), bsp->g_flops, value, &bsp->quality);
        snprintf(value, sizeof value, "%.4g flops", bsp->l_flops);
        say_number(list, add(list, "BSP", "%s, l", name), bsp->l_flops, bsp->l_flops < 0 ? "none" : value,
                   &bsp->quality);
    }
}

int items_collect(const struct servet_profile *profile, struct item_list *out)
{
    struct item_list list = {0};
    const char *const heads[][2] = {{"host", profile->host_name},
                                    {"processor", profile->cpu_model},
                                    {"architecture", profile->architecture},
                                    {"kernel", profile->kernel},
                                    {"topology signature", profile->topology_signature}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        say(&list, add(&list, "machine", "%s", heads[i][0]), heads[i][1] ? heads[i][1] : "not known", NULL);
    }
    for (size_t i = 0; i < profile->node_range_count; i++) {
        char text[256];
        snprintf(text, sizeof text, "%.200s (class %u)", profile->nodes[i].names, profile->nodes[i].class_index);
        say(&list, add(&list, "machine", "nodes %zu", i), text, NULL);
    }
    for (size_t i = 0; i < profile->class_count; i++) {
        add_class(&list, profile, i);
    }
    add_layers(&list, "network", &profile->network, profile->measured);
    add_bsp(&list, profile);
    if (list.rc < 0) {
        items_free(&list);
        return -ENOMEM;
    }
    *out = list;
    return 0;
}

void items_free(struct item_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].where);
        free(list->items[i].name);
        free(list->items[i].shown);
        free(list->items[i].exact);
    }
    free(list->items);
    *list = (struct item_list){0};
}

char *item_doubt(const struct item *item)
{
    char *text = NULL;
    const struct profile_quality *q = item->quality;
    bool wide = q && q->spread > SUSPICIOUS_SPREAD;
    if (!q || (!wide && !q->note)) {
        return NULL;
    }
    char spread[64] = "";
    if (wide) {
        snprintf(spread, sizeof spread, "the middle half of %u measurements spreads over %.0f %%%s", q->repetitions,
                 fmin(q->spread * 100, 1e6), q->note ? "; " : "");
    }
    return asprintf(&text, "%s%s", spread, q->note ? q->note : "") < 0 ? NULL : text;
}
