/* Heat maps: what every two PUs share, and how long a message between them takes, in the order of
 * their numbers and in the order of their groups. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/weights/weights.h"
#include "profile/base/cli.h"
#include "profile/query.h"
#include "profile/scope.h"
#include "profile/text/chart.h"
#include "profile/text/text.h"
#include "report/report.h"

/* -- the order -- */

/* The PUs of a class in the order of the mapper's tree: what shares more stands closer. */
static void order_class(struct map_view *view, size_t index, uint32_t *out)
{
    const struct map_class *class = &view->classes[index];
    struct map_order order;
    cli_done(map_order_by_all(&view->arena, class, MAP_MEMORY, &order));
    for (size_t i = 0; i < class->of->pus.count; i++) {
        out[i] = class->of->pus.ids[order.item[i]];
    }
}

/* -- the picture -- */

#define MEMBERS_MOST 512 /* of one map; of more members every n-th is drawn */
#define MEMBERS_FEW 2    /* one pair is no map: the tables have it */
#define VALUES_MOST 12   /* up to so many members each cell has its value */
#define TICKS_ALL 16     /* up to so many members each one gets its tick */
#define TICKS_SOME 8
#define SHADES 32 /* of a continuous scale: more are not told apart */

/* Pixels. */
#define SIDE 400.0
#define LEFT 64.0
#define TOP 8.0
#define LEGEND 484.0
#define FONT 16
#define OVERLAP 0.02 /* beyond what rounding leaves between two cells */

struct map {
    const struct profile_class *node_class;            /* of sharing */
    const struct profile_communication *communication; /* of latency */
    bool measured;                                     /* latencies; else the layers are numbered */
    bool lines;              /* of single cache lines, in the place of messages */
    const uint32_t *order;   /* of all members */
    size_t step, count;      /* every step-th is drawn: so many */
    const char *member;      /* "PU", "node" */
    double low, high;        /* of the scale */
    struct chart_axis scale; /* how its values are written */
    size_t shades;
};

/* viridis at five points (Smith and van der Walt, 2015, public domain), from the nearest to the
 * farthest. */
static void shade_colour(const struct map *map, size_t shade, unsigned rgb[3])
{
    static const unsigned points[][3] = {{0xfd, 0xe7, 0x25},
                                         {0x5e, 0xc9, 0x62},
                                         {0x21, 0x91, 0x8c},
                                         {0x3b, 0x52, 0x8b},
                                         {0x44, 1, 0x54}};
    double part = map->shades > 1 ? (double)shade / (double)(map->shades - 1) : 0, at = 4 * part;
    size_t i = (size_t)fmin(floor(at), 3);
    for (size_t k = 0; k < 3; k++) {
        double from = points[i][k], to = points[i + 1][k];
        rgb[k] = (unsigned)lround(from + (to - from) * (at - (double)i));
    }
}

static void put_colour(FILE *out, const struct map *map, size_t shade)
{
    unsigned rgb[3];
    shade_colour(map, shade, rgb);
    fprintf(out, "#%02x%02x%02x", rgb[0], rgb[1], rgb[2]);
}

/* map->shades for NAN: an empty cell. */
static size_t shade_of(const struct map *map, double value)
{
    if (!isfinite(value)) {
        return map->shades;
    }
    double part = (value - map->low) / (map->high - map->low);
    return (size_t)fmin(floor(fmax(part, 0) * (double)map->shades), (double)map->shades - 1);
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

static size_t count_cache_levels(const struct profile_class *node_class)
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
           !(profile_level_disturbs(&node_class->memory, i) &&
             profile_related(&node_class->memory.levels[i].collisions, a, b))) {
        i++;
    }
    return count_cache_levels(node_class) + i;
}

/* "L2", "memory 0", "nothing" */
static void shared_name(const struct profile_class *node_class, size_t index, char *out,
                        size_t size)
{
    size_t levels = count_cache_levels(node_class);
    if (index >= levels) {
        bool none = index == levels + node_class->memory.level_count;
        snprintf(out, size, none ? "nothing" : "memory %zu", index - levels);
        return;
    }
    for (size_t i = 0; i < node_class->cache_count; i++) {
        if (level_index(node_class, i) == index) {
            snprintf(out, size, "L%u", node_class->caches[i].level);
        }
    }
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

/* The value at row and column; for lines that of the pair if it was measured, else its layer's.
 * NAN: not known. */
static double cell_value(const struct map *map, size_t row, size_t column)
{
    uint32_t a = map->order[row * map->step], b = map->order[column * map->step];
    const struct profile_communication *of = map->communication;
    size_t index;
    if (row == column) {
        return NAN;
    }
    if (map->node_class) {
        return (double)shared(map->node_class, a, b);
    }
    double value = map->lines ? profile_pair_figure(of->line_times, of->line_time_count, a, b) : 0;
    if (value <= 0 && profile_layer_of(of, a, b, &index)) {
        value = layer_value(map, index);
    }
    return value > 0 ? value : NAN;
}

/* A value without its unit, which the legend says: three letters fit a cell. */
static void put_cell_value(FILE *out, const struct map *map, size_t at, double value, double cell)
{
    const double row = (double)(at / map->count), column = (double)(at % map->count);
    char text[64];
    unsigned rgb[3];
    if (!isfinite(value)) {
        return;
    }
    if (map->node_class) {
        shared_name(map->node_class, (size_t)value, text, sizeof text);
        if (text[0] == 'm' || text[0] == 'n') { /* "M0", "-" */
            snprintf(text, sizeof text, text[0] == 'm' ? "M%zu" : "-",
                     (size_t)value - count_cache_levels(map->node_class));
        }
    } else {
        profile_chart_value(&map->scale, value, text, sizeof text);
        char *unit = strchr(text, ' ');
        if (unit && map->count > VALUES_MOST / 2) {
            *unit = '\0';
        }
    }
    shade_colour(map, shade_of(map, value), rgb);
    const bool bright = 2 * rgb[0] + 5 * rgb[1] + rgb[2] > 8 * 0x80; /* as the eye sees it */
    fprintf(out,
            "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" font-size=\"%.0f\" "
            "fill=\"%s\">%s</text>\n",
            LEFT + cell * (column + 0.5), TOP + cell * (row + 0.5) + 5, fmin(FONT, cell / 2.6),
            bright ? "#000" : "#fff", text);
}

/* One path for each shade, one rectangle for each run of a row: pairs of a group stand together. */
static void put_cells(FILE *out, const struct map *map, const double *values, double cell)
{
    size_t n = map->count;
    for (size_t shade = 0; shade < map->shades; shade++) {
        bool any = false;
        for (size_t row = 0; row < n; row++) {
            for (size_t from = 0, to; from < n; from = to) {
                to = from + 1;
                if (shade_of(map, values[row * n + from]) != shade) {
                    continue;
                }
                for (; to < n && shade_of(map, values[row * n + to]) == shade; to++) {
                }
                if (!any) {
                    fputs("<path shape-rendering=\"crispEdges\" fill=\"", out);
                    put_colour(out, map, shade);
                    fputs("\" d=\"", out);
                }
                any = true;
                fprintf(out, "M%.5g %.5gh%.5gv%.5gh-%.5gz", LEFT + cell * (double)from,
                        TOP + cell * (double)row, cell * (double)(to - from) + OVERLAP,
                        cell + OVERLAP, cell * (double)(to - from) + OVERLAP);
            }
        }
        fputs(any ? "\"/>\n" : "", out);
    }
}

static void put_ticks(FILE *out, const struct map *map, double cell)
{
    size_t step = map->count <= TICKS_ALL ? 1 : (map->count + TICKS_SOME - 1) / TICKS_SOME;
    char text[32];
    for (size_t i = 0; i < map->count; i += step) {
        double middle = cell * ((double)i + 0.5);
        snprintf(text, sizeof text, "%u", map->order[i * map->step]);
        profile_svg_text(out, LEFT - 6, TOP + middle + FONT / 3.0, "end", text);
        profile_svg_text(out, LEFT + middle, TOP + SIDE + 18, "middle", text);
    }
    snprintf(text, sizeof text, "number of the %s", map->member);
    profile_svg_text(out, LEFT + SIDE / 2, TOP + SIDE + 40, "middle", text);
}

static void put_legend(FILE *out, const struct map *map)
{
    double height = map->node_class ? 26 : 240.0 / (double)map->shades;
    char text[64];
    profile_svg_text(out, LEGEND, TOP + 14, "start",
                     map->node_class ? "innermost"
                     : map->measured ? "one way"
                                     : "layer");
    for (size_t i = 0; i < map->shades; i++) {
        double y = TOP + 28 + height * (double)i;
        fprintf(out, "<rect x=\"%g\" y=\"%.1f\" width=\"20\" height=\"%.1f\" fill=\"", LEGEND, y,
                height + (map->node_class ? -4 : 0.5));
        put_colour(out, map, i);
        fputs("\"/>\n", out);
        size_t quarter = map->shades / 4 ? map->shades / 4 : 1;
        if (map->node_class) {
            shared_name(map->node_class, i, text, sizeof text);
        } else {
            double part = (double)i / fmax((double)map->shades - 1, 1);
            profile_chart_value(&map->scale, map->low + part * (map->high - map->low), text,
                                sizeof text);
        }
        if (map->node_class || !map->measured || i % quarter == 0 || i + 1 == map->shades) {
            profile_svg_text(out, LEGEND + 26, y + height / 2 + (map->node_class ? 3 : 5), "start",
                             text);
        }
    }
}

/* Names of one picture. */
struct naming {
    const char *name, *title, *caption;
};

static void put_map(FILE *out, const struct map *map, const char *title)
{
    double cell = SIDE / (double)map->count;
    FREED double *values = cli_needed(calloc(map->count * map->count, sizeof *values));
    for (size_t i = 0; i < map->count * map->count; i++) {
        values[i] = cell_value(map, i / map->count, i % map->count);
    }
    fprintf(out,
            "<svg role=\"img\" viewBox=\"0 0 600 %g\" font-family=\"sans-serif\" "
            "font-size=\"%d\">\n<title>%s</title>\n",
            TOP + SIDE + 48, FONT, title);
    put_cells(out, map, values, cell);
    fprintf(out,
            "<rect class=\"muted\" x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"none\" "
            "stroke=\"currentColor\"/>\n",
            LEFT, TOP, SIDE, SIDE);
    for (size_t i = 0; i < map->count * map->count && map->count <= VALUES_MOST; i++) {
        put_cell_value(out, map, i, values[i], cell);
    }
    put_ticks(out, map, cell);
    put_legend(out, map);
    fputs("</svg>\n", out);
}

/* -- which maps there are -- */

static void add_map(struct page *page, const struct map *map, const struct naming *naming)
{
    char thinned[64] = "", message[160] = "";
    if (map->step > 1) {
        snprintf(thinned, sizeof thinned, " One of every %zu is drawn.", map->step);
    }
    if (map->communication && !map->lines && map->communication->message_bytes) {
        snprintf(message, sizeof message, " Messages of %s.",
                 profile_figure_bytes(map->communication->message_bytes).text);
    }
    report_figure_open(page, naming->name, naming->title);
    put_map(page->out, map, naming->title);
    report_figure_close(page, "%s%s%s%s", naming->caption, message, thinned,
                        map->measured ? "" : " Not measured: only the order means something.");
}

/* In the order of numbers, and in that of groups where it is another one. */
static void add_both(struct page *page, struct map *map, const uint32_t *orders, size_t members,
                     const struct naming *namings)
{
    bool same = memcmp(orders, orders + members, members * sizeof *orders) == 0;
    map->step = (members + MEMBERS_MOST - 1) / MEMBERS_MOST;
    map->count = (members + map->step - 1) / map->step;
    for (size_t i = 0; i < 2 && !(i && (same || !namings[i].name)); i++) {
        map->order = orders + i * members;
        add_map(page, map, &namings[i]);
    }
}

static struct map sharing_map(const struct profile_class *node_class)
{
    size_t shades = count_cache_levels(node_class) + node_class->memory.level_count + 1;
    return (struct map){.node_class = node_class,
                        .measured = true,
                        .member = "PU",
                        .low = 0,
                        .high = (double)shades,
                        .shades = shades};
}

static struct map latency_map(const struct profile_communication *communication, bool measured,
                              bool lines, const char *member)
{
    struct map map = {.communication = communication,
                      .measured = measured,
                      .lines = lines,
                      .member = member,
                      .scale = {.unit = measured ? "s" : ""},
                      .shades = measured ? SHADES : communication->layer_count};
    map.low = layer_value(&map, 0);
    map.high = layer_value(&map, communication->layer_count - 1);
    for (size_t i = 0; lines && i < communication->line_time_count; i++) {
        map.high = fmax(map.high, communication->line_times[i].value);
    }
    map.low = lines || !(map.high > map.low) ? 0 : map.low;
    map.high = !measured ? (double)communication->layer_count : map.high;
    return map;
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

static void class_maps(struct page *page, enum plot_section section)
{
    static const struct naming sharing[] = {
        {"sharing-core-order", "Resources that two PUs share, by number",
         "The innermost cache, or else the memory overhead level, that two PUs share."},
        {"sharing-group-order", "Resources that two PUs share, by group",
         "The same, with PUs of one group beside one another."},
    };
    static const struct naming latency[] = {
        {"latency-core-order", "Latency between two PUs, by number",
         "One way, of the layer that holds both."},
        {"latency-group-order", "Latency between two PUs, by group",
         "The same, with PUs of one group beside one another."},
    };
    static const struct naming lines[] = {
        {"line-core-order", "One cache line between two PUs",
         "One way, of the pair where it was measured, of its layer otherwise."},
        {NULL, NULL, NULL}};
    struct map_view *view = &page->view;
    const struct profile_class *node_class = view->classes[page->node_class].of;
    const struct profile_communication *found = &node_class->communication;
    size_t count = node_class->pus.count;
    if (count <= MEMBERS_FEW) {
        return;
    }
    uint32_t *orders = cli_needed(map_arena_get(&view->arena, 2 * count, sizeof *orders));
    order_class(view, page->node_class, orders + count);
    memcpy(orders, node_class->pus.ids, count * sizeof *orders);
    if (section == PLOT_SHARING) {
        struct map map = sharing_map(node_class);
        add_both(page, &map, orders, count, sharing);
    }
    if (section == PLOT_CORES && found->layer_count > 1) {
        struct map map = latency_map(found, view->latencies_known, false, "PU");
        add_both(page, &map, orders, count, latency);
    }
    if (section == PLOT_CORES && lines_known(found)) {
        struct map map = latency_map(found, true, true, "PU");
        add_both(page, &map, orders, count, lines);
    }
}

static void network_maps(struct page *page)
{
    static const struct naming naming[] = {
        {"network-node-order", "Latency between two nodes, by number",
         "One way, of the layer that holds both."},
        {"network-group-order", "Latency between two nodes, by group",
         "The same, with nodes of one group beside one another."},
    };
    struct map_view *view = &page->view;
    const struct profile_communication *network = &view->profile->network;
    const size_t count = view->node_count;
    struct map_order order;
    if (!network->layer_count || count <= MEMBERS_FEW) {
        return;
    }
    uint32_t *orders = cli_needed(map_arena_get(&view->arena, 2 * count, sizeof *orders));
    cli_done(map_order_of_nodes(view, &order));
    for (size_t i = 0; i < count; i++) {
        orders[i] = (uint32_t)i;
    }
    memcpy(orders + count, order.item, count * sizeof *orders);
    struct map map = latency_map(network, view->latencies_known, false, "node");
    add_both(page, &map, orders, count, naming);
}

void report_maps(struct page *page, enum plot_section section)
{
    const bool network = page->node_class == PLOT_NETWORK;
    if (network && section == PLOT_MESSAGES) {
        network_maps(page);
    } else if (!network && (section == PLOT_SHARING || section == PLOT_CORES)) {
        class_maps(page, section);
    }
}
