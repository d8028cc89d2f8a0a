/* Heat maps: what every two PUs share, and how long a message between them takes, in the order of
 * their numbers and in the order of their groups. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/query.h"
#include "profile/text/text.h"
#include "report/report.h"

/* -- the order -- */

struct row {
    uint32_t id;
    uint32_t *keys; /* lowest member of its group, per relation */
    size_t key_count;
};

static int by_keys(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    for (size_t i = 0; i < x->key_count; i++) {
        if (x->keys[i] != y->keys[i]) {
            return x->keys[i] < y->keys[i] ? -1 : 1;
        }
    }
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Average members per group: coarse relations first. */
static double coarseness(const struct profile_relation *relation)
{
    size_t members = 0;
    for (size_t i = 0; i < relation->group_count; i++) {
        members += relation->groups[i].count;
    }
    return relation->group_count ? (double)members / (double)relation->group_count : 0;
}

static int by_coarseness(const void *a, const void *b)
{
    double x = coarseness(*(const struct profile_relation *const *)a);
    double y = coarseness(*(const struct profile_relation *const *)b);
    return x > y ? -1 : x < y;
}

static void fill_keys(const struct profile_set *members, const struct profile_relation *relation,
                      size_t key, struct row *rows)
{
    for (size_t g = 0; g < relation->group_count; g++) {
        const struct profile_set *group = &relation->groups[g];
        for (size_t i = 0; i < group->count; i++) {
            size_t at = profile_set_position(members, group->ids[i]);
            if (at < members->count) {
                rows[at].keys[key] = group->ids[0];
            }
        }
    }
}

/* Orders `members` by their groups, the largest groups first: what shares more stands closer. `out`
 * has room for members->count. 0 or -ENOMEM. */
static int order_by_groups(const struct profile_set *members,
                           const struct profile_relation *const *relations, size_t count,
                           uint32_t *out)
{
    const struct profile_relation **sorted = calloc(count + 1, sizeof(struct profile_relation *));
    struct row *rows = calloc(members->count + 1, sizeof *rows);
    uint32_t *keys = calloc(members->count * count + 1, sizeof *keys);
    if (!sorted || !rows || !keys) {
        free(sorted);
        free(rows);
        free(keys);
        return -ENOMEM;
    }
    memcpy(sorted, relations, count * sizeof(struct profile_relation *));
    qsort(sorted, count, sizeof(struct profile_relation *), by_coarseness);
    for (size_t i = 0; i < members->count; i++) {
        rows[i] = (struct row){members->ids[i], keys + i * count, count};
        for (size_t k = 0; k < count; k++) {
            rows[i].keys[k] = members->ids[i];
        }
    }
    for (size_t k = 0; k < count; k++) {
        fill_keys(members, sorted[k], k, rows);
    }
    qsort(rows, members->count, sizeof *rows, by_keys);
    for (size_t i = 0; i < members->count; i++) {
        out[i] = rows[i].id;
    }
    free(sorted);
    free(rows);
    free(keys);
    return 0;
}

/* The same for the PUs of a class, by everything that the profile groups them by. */
static int order_class(const struct profile_class *node_class, uint32_t *out)
{
    size_t most = 2 + node_class->cache_count + node_class->memory.level_count +
                  node_class->communication.layer_count;
    const struct profile_relation **relations = calloc(most, sizeof(struct profile_relation *));
    if (!relations) {
        return -ENOMEM;
    }
    size_t count = 0;
    relations[count++] = &node_class->packages;
    relations[count++] = &node_class->cores;
    for (size_t i = 0; i < node_class->cache_count; i++) {
        relations[count++] = &node_class->caches[i].sharing;
    }
    for (size_t i = 0; i < node_class->memory.level_count; i++) {
        relations[count++] = &node_class->memory.levels[i].collisions;
    }
    for (size_t i = 0; i < node_class->communication.layer_count; i++) {
        relations[count++] = &node_class->communication.layers[i].members;
    }
    int rc = order_by_groups(&node_class->pus, relations, count, out);
    free(relations);
    return rc;
}

/* -- the maps -- */

#define MEMBERS_MOST                                                                               \
    1024 /* of one map, whose points are hardly seen then; of more members every n-th is drawn */
#define TICKS_ALL 16 /* up to so many members each one gets its tick */
#define TICKS_SOME 8

/* What a picture is called. */
struct naming {
    const char *name, *title, *caption;
};

struct map {
    const struct profile_class *node_class;            /* of sharing */
    const struct profile_communication *communication; /* of latency */
    bool measured;                                     /* latencies; else the layers are numbered */
    bool lines;            /* of single cache lines, in the place of messages */
    const uint32_t *order; /* of all members */
    size_t step, count;    /* every step-th is drawn: so many */
};

static struct map map_of(const uint32_t *order, size_t members)
{
    size_t step = (members + MEMBERS_MOST - 1) / MEMBERS_MOST;
    return (struct map){.order = order, .step = step, .count = (members + step - 1) / step};
}

/* What to say behind a caption; "" where every member is drawn. */
static const char *thinned(const struct map *map, char *text, size_t size)
{
    text[0] = '\0';
    if (map->step > 1) {
        snprintf(text, size, " One of every %zu is drawn.", map->step);
    }
    return text;
}

static void ticks(FILE *out, const struct map *map)
{
    size_t step = map->count <= TICKS_ALL ? 1 : (map->count + TICKS_SOME - 1) / TICKS_SOME;
    for (const char *axis = "xy"; *axis; axis++) {
        fprintf(out, "set %ctics (", *axis);
        for (size_t i = 0; i < map->count; i += step) {
            fprintf(out, "%s'%u' %zu", i ? ", " : "", map->order[i * map->step], i);
        }
        fputs(") nomirror scale 0.3\n", out);
    }
    fprintf(out,
            "set xrange [-0.5:%g]\nset yrange [%g:-0.5]\nset size ratio 1\nunset grid\nset border "
            "15 lc rgb muted\n",
            (double)map->count - 0.5, (double)map->count - 0.5);
    fputs("set border 15\nset lmargin at screen 0.10\nset rmargin at screen 0.74\nset bmargin at "
          "screen 0.12\n"
          "set tmargin at screen 0.95\nset colorbox user origin screen 0.78, screen 0.22 size "
          "screen 0.03, screen 0.6\n",
          out);
}

/* Which level the cache is of, from 0: several kinds of cores have several caches of one level. */
static size_t level_index(const struct profile_class *node_class, size_t cache)
{
    size_t index = 0;
    for (size_t i = 1; i <= cache; i++) {
        index += node_class->caches[i].level != node_class->caches[i - 1].level;
    }
    return index;
}

static size_t count_levels(const struct profile_class *node_class)
{
    return node_class->cache_count ? level_index(node_class, node_class->cache_count - 1) + 1 : 0;
}

/* Which innermost thing two PUs share: levels of caches from 0 outwards, then the overhead levels,
 * then nothing. */
static size_t shared(const struct profile_class *node_class, uint32_t a, uint32_t b)
{
    for (size_t i = 0; i < node_class->cache_count; i++) {
        if (profile_related(&node_class->caches[i].sharing, a, b)) {
            return level_index(node_class, i);
        }
    }
    size_t i = 0;
    while (i < node_class->memory.level_count &&
           !profile_related(&node_class->memory.levels[i].collisions, a, b)) {
        i++;
    }
    return count_levels(node_class) + i;
}

static void sharing_legend(FILE *out, const struct profile_class *node_class)
{
    size_t levels = count_levels(node_class), last = levels + node_class->memory.level_count;
    fprintf(out, "set cbrange [-0.5:%g]\nset cbtics (", (double)last + 0.5);
    for (size_t i = 0; i < node_class->cache_count; i++) {
        size_t index = level_index(node_class, i);
        if (i == 0 || index > level_index(node_class, i - 1)) {
            fprintf(out, "'L%u' %zu, ", node_class->caches[i].level, index);
        }
    }
    for (size_t i = 0; i < node_class->memory.level_count; i++) {
        fprintf(out, "'memory %zu' %zu, ", i, levels + i);
    }
    fprintf(out, "'nothing' %zu) scale 0\n", last);
}

/* gnuplot 5.4 has no named palettes; this is viridis at five points (Smith and van der Walt, 2015,
 * public domain). */
static void palette(FILE *out)
{
    fputs("set palette defined (0 '#fde725', 1 '#5ec962', 2 '#21918c', 3 '#3b528b', 4 '#440154')\n",
          out);
}

/* Its latency, or where latencies are not known its number. */
static double layer_value(const struct map *map, size_t index)
{
    const struct profile_layer *layer = &map->communication->layers[index];
    if (map->lines) {
        return layer->line_seconds;
    }
    return map->measured ? layer->seconds : (double)index + 1;
}

/* Of lines that of the pair itself where it was measured, or else its layer's; 0: not known. */
static double pair_value(const struct map *map, uint32_t a, uint32_t b)
{
    const struct profile_communication *communication = map->communication;
    double value = !map->lines ? 0
                               : profile_pair_figure(communication->line_times,
                                                     communication->line_time_count, a, b);
    size_t index;
    if (value <= 0 && profile_layer_of(communication, a, b, &index)) {
        value = layer_value(map, index);
    }
    return value;
}

static void draw(FILE *out, const struct map *map)
{
    fputs("$map << EOD\n", out);
    for (size_t i = 0; i < map->count; i++) {
        for (size_t k = 0; k < map->count; k++) {
            uint32_t a = map->order[i * map->step], b = map->order[k * map->step];
            if (i == k) {
                fputs("NaN ", out);
            } else if (map->node_class) {
                fprintf(out, "%zu ", shared(map->node_class, a, b));
            } else {
                double value = pair_value(map, a, b);
                if (value > 0) {
                    fprintf(out, "%.5g ", value);
                } else {
                    fputs("NaN ", out);
                }
            }
        }
        fputc('\n', out);
    }
    fputs("EOD\nplot $map matrix with image notitle\n", out);
}

static void sharing_map(struct plot_list *list, const struct servet_profile *profile, size_t index,
                        const uint32_t *order, const struct naming *naming)
{
    FILE *out = report_plot_open(list, PLOT_SHARING, PLOT_MAP, index, profile->class_count,
                                 naming->name, naming->title);
    if (!out) {
        return;
    }
    const struct profile_class *node_class = &profile->classes[index];
    struct map map = map_of(order, node_class->pus.count);
    char said[64];
    map.node_class = node_class;
    size_t last = node_class->cache_count + node_class->memory.level_count;
    ticks(out, &map);
    palette(out);
    sharing_legend(out, node_class);
    fprintf(out, "set palette maxcolors %zu\n", last + 1);
    draw(out, &map);
    report_plot_close(list, "%s%s", naming->caption, thinned(&map, said, sizeof said));
}

static void latency_map(struct plot_list *list, const struct map *map, size_t index, size_t classes,
                        const struct naming *naming)
{
    enum plot_section section = index == PLOT_NETWORK ? PLOT_MESSAGES : PLOT_CORES;
    FILE *out =
        report_plot_open(list, section, PLOT_MAP, index, classes, naming->name, naming->title);
    if (!out) {
        return;
    }
    char said[64];
    double low = layer_value(map, 0), high = layer_value(map, map->communication->layer_count - 1);
    ticks(out, map);
    palette(out);
    if (map->lines) {
        fputs("set cbrange [0:*]\nset cbtics add ('0' 0)\n", out);
    } else if (high > low) {
        fprintf(out, "set cbrange [%.5g:%.5g]\n", low, high);
    } else {
        fprintf(out, "set cbrange [0:%.5g]\nset cbtics add ('0' 0)\n", 2 * high);
    }
    /* Without measured times the layers are numbered: no tick between two of them. */
    fprintf(out, "set format cb '%s'\nset cbtics %sscale 0.3\n",
            map->measured ? "%.1s %cs" : "%.0f", map->measured ? "" : "1 ");
    draw(out, map);
    report_plot_close(list, "%s%s%s", naming->caption, thinned(map, said, sizeof said),
                      map->measured ? "" : " Not measured: only the order means something.");
}

/* Was the time of a cache line measured on any layer? */
static bool lines_known(const struct profile_communication *communication)
{
    bool known = false;
    for (size_t i = 0; i < communication->layer_count; i++) {
        known |= communication->layers[i].line_seconds > 0;
    }
    return known;
}

static int number_order(const struct profile_set *members, uint32_t *out)
{
    for (size_t i = 0; i < members->count; i++) {
        out[i] = members->ids[i];
    }
    return 0;
}

static void class_maps(struct plot_list *list, const struct servet_profile *profile, size_t index)
{
    static const struct naming sharing[] = {
        {"sharing-core-order", "What two PUs share, in core order",
         "The innermost cache, or else the memory overhead level, that two PUs share; PUs by "
         "number."},
        {"sharing-group-order", "What two PUs share, in group order",
         "The same, with PUs of one group beside one another."},
    };
    static const struct naming latency[] = {
        {"latency-core-order", "Latency between two PUs, in core order",
         "One way, of the layer that holds both; PUs by number."},
        {"latency-group-order", "Latency between two PUs, in group order",
         "The same, with PUs of one group beside one another."},
    };
    static const struct naming lines = {
        "line-core-order", "One cache line between two PUs",
        "One way, of the pair where it was measured, of its layer otherwise; PUs by number."};
    const struct profile_class *node_class = &profile->classes[index];
    size_t count = node_class->pus.count;
    if (count < 2) {
        return;
    }
    uint32_t *order = calloc(2 * count, sizeof *order);
    if (!order || order_class(node_class, order + count) < 0) {
        free(order);
        list->rc = -ENOMEM;
        return;
    }
    number_order(&node_class->pus, order);
    for (size_t i = 0; i < 2; i++) {
        sharing_map(list, profile, index, order + i * count, &sharing[i]);
    }
    for (size_t i = 0; i < 2 && node_class->communication.layer_count; i++) {
        struct map map = map_of(order + i * count, count);
        map.communication = &node_class->communication;
        map.measured = profile_latencies_known(profile);
        latency_map(list, &map, index, profile->class_count, &latency[i]);
    }
    if (lines_known(&node_class->communication)) {
        struct map map = map_of(order, count);
        map.communication = &node_class->communication;
        map.measured = map.lines = true;
        latency_map(list, &map, index, profile->class_count, &lines);
    }
    free(order);
}

static void network_maps(struct plot_list *list, const struct servet_profile *profile)
{
    static const struct naming naming[] = {
        {"network-node-order", "Latency between two nodes, in their order",
         "One way, of the layer that holds both."},
        {"network-group-order", "Latency between two nodes, in group order",
         "The same, with nodes of one group beside one another."},
    };
    const struct profile_communication *network = &profile->network;
    size_t count = profile_node_count(profile);
    if (!network->layer_count || count < 2) {
        return;
    }
    uint32_t *order = calloc(2 * count, sizeof *order);
    const struct profile_relation **relations =
        calloc(network->layer_count, sizeof(struct profile_relation *));
    int rc = order && relations ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        order[i] = (uint32_t)i;
    }
    for (size_t i = 0; rc == 0 && i < network->layer_count; i++) {
        relations[i] = &network->layers[i].members;
    }
    if (rc == 0) {
        struct profile_set nodes = {order, count};
        rc = order_by_groups(&nodes, relations, network->layer_count, order + count);
    }
    if (rc < 0) {
        list->rc = rc;
    } else {
        for (size_t i = 0; i < 2; i++) {
            struct map map = map_of(order + i * count, count);
            map.communication = network;
            map.measured = profile_latencies_known(profile);
            latency_map(list, &map, PLOT_NETWORK, 0, &naming[i]);
        }
    }
    free(relations);
    free(order);
}

void report_plot_maps(struct plot_list *list, const struct servet_profile *profile)
{
    for (size_t i = 0; i < profile->class_count; i++) {
        class_maps(list, profile, i);
    }
    network_maps(list, profile);
}

/* -- What one PU does to each other one: in each cache (2010 paper, Figure 8), at memory (Figure
 * 9a). As in the paper, of one PU alone: the lowest that has measured pairs. -- */

/* How many pairs at the front of an ascending list have the same lower PU. */
static size_t pairs_of_first(const struct profile_pair_figure *pairs, size_t count)
{
    size_t of_first = 0;
    while (of_first < count && pairs[of_first].a == pairs[0].a) {
        of_first++;
    }
    return of_first;
}

static void write_pairs(FILE *out, const char *name, size_t number,
                        const struct profile_pair_figure *pairs, size_t count)
{
    fprintf(out, "$%s%zu << EOD\n", name, number);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%u %.6g\n", pairs[i].b, pairs[i].value);
    }
    fputs("EOD\n", out);
}

/* A picture that leaves the page has no caption, so that its axis says whose pairs they are. */
static void others_axis(FILE *out, const struct profile_class *node_class, uint32_t pu)
{
    fprintf(out,
            "set xrange [-0.5:%u.5]\nset yrange [0:*]\nset ytics add ('0' 0)\n"
            "set xlabel 'the other PU, beside PU %u'\n",
            node_class->pus.ids[node_class->pus.count - 1], pu);
}

/* What the slower of the two gets alone: of two kinds of cores the lesser figure. */
static void write_alone(FILE *out, const struct profile_class *node_class,
                        const struct profile_pair_figure *pairs, size_t count)
{
    const double own = profile_memory_alone(node_class, pairs[0].a);
    fputs("$alone << EOD\n", out);
    for (size_t i = 0; i < count; i++) {
        const double other = profile_memory_alone(node_class, pairs[i].b);
        const double least = own < other ? own : other;
        fprintf(out, "%u.5 %.6g\n%u.5 %.6g\n", pairs[i].b - 1, least, pairs[i].b, least);
    }
    fputs("EOD\n", out);
}

void report_plot_pair_rates(struct plot_list *list, const struct servet_profile *profile,
                            size_t index)
{
    const struct profile_class *node_class = &profile->classes[index];
    const struct profile_memory *memory = &node_class->memory;
    size_t of_first = pairs_of_first(memory->pair_rates, memory->pair_rate_count);
    FILE *out = of_first < 2
                    ? NULL
                    : report_plot_open(list, PLOT_MEMORY, PLOT_CURVE, index, profile->class_count,
                                       "memory-pairs", "Memory bandwidth beside one other PU");
    if (!out) {
        return;
    }
    others_axis(out, node_class, memory->pair_rates[0].a);
    fputs("set format y '%.1s %cB/s'\nset ylabel 'the slower of the two'\n"
          "set key bottom right\n",
          out);
    write_pairs(out, "pairs", 0, memory->pair_rates, of_first);
    if (memory->reference_bytes_per_s > 0) {
        write_alone(out, node_class, memory->pair_rates, of_first);
        fputs("plot $alone using 1:2 with lines dt 3 lc rgb muted title 'alone', ", out);
    } else {
        fputs("plot ", out);
    }
    fputs("$pairs0 using 1:2 with points lc rgb c1 pt 7 ps 0.7 notitle\n", out);
    report_plot_close(list, "PU %u and another one copy at the same time.",
                      memory->pair_rates[0].a);
}

/* The cache's pairs of the class's lowest PU with measured ones in any cache. */
static size_t ratios_of(const struct profile_cache *cache, uint32_t pu,
                        const struct profile_pair_figure **pairs)
{
    size_t first = 0;
    while (first < cache->pair_ratio_count && cache->pair_ratios[first].a < pu) {
        first++;
    }
    *pairs = cache->pair_ratios + first;
    bool any = first < cache->pair_ratio_count && (*pairs)->a == pu;
    return any ? pairs_of_first(*pairs, cache->pair_ratio_count - first) : 0;
}

static uint32_t lowest_with_ratios(const struct profile_class *node_class)
{
    uint32_t lowest = UINT32_MAX;
    for (size_t i = 0; i < node_class->cache_count; i++) {
        const struct profile_cache *cache = &node_class->caches[i];
        if (cache->pair_ratio_count && cache->pair_ratios[0].a < lowest) {
            lowest = cache->pair_ratios[0].a;
        }
    }
    return lowest;
}

void report_plot_pair_ratios(struct plot_list *list, const struct servet_profile *profile,
                             size_t index)
{
    const struct profile_class *node_class = &profile->classes[index];
    const uint32_t pu = lowest_with_ratios(node_class);
    const struct profile_pair_figure *pairs;
    FILE *out = pu == UINT32_MAX
                    ? NULL
                    : report_plot_open(list, PLOT_CACHES, PLOT_CURVE, index, profile->class_count,
                                       "cache-pairs", "Time in a cache beside one other PU");
    if (!out) {
        return;
    }
    others_axis(out, node_class, pu);
    fputs("set ylabel 'times that alone' offset 1\nset key tmargin center horizontal\n", out);
    for (size_t i = 0; i < node_class->cache_count; i++) {
        size_t count = ratios_of(&node_class->caches[i], pu, &pairs);
        write_pairs(out, "cache", i, pairs, count);
    }
    fputs("plot 1 with lines dt 3 lc rgb muted title 'alone'", out);
    for (size_t i = 0; i < node_class->cache_count; i++) {
        if (ratios_of(&node_class->caches[i], pu, &pairs)) {
            fprintf(out, ", $cache%zu using 1:2 with points lc rgb c%u pt 7 ps 0.7 title 'L%u'", i,
                    (node_class->caches[i].level - 1) % PLOT_COLOURS + 1,
                    node_class->caches[i].level);
        }
    }
    fputc('\n', out);
    report_plot_close(list,
                      "PU %u and another one use two thirds of the cache each: the slower of the "
                      "two takes much longer where it is one cache.",
                      pu);
}
