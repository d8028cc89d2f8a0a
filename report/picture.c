/* The machine as nested boxes: packages, NUMA domains, measured memory overhead levels, measured
 * caches, cores and PUs of one node class, its devices, and on request the workers on them. Devices
 * are lines of the smallest box that holds all PUs near them.
 *
 * What the profile groups is sorted from the outside in and put into a tree; the tree is laid out
 * once, in pixels of its own, and written as SVG with colours by class, from the style sheet.
 * Groups that cross others have no place in a tree: they are counted, and the page says so. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/cli.h"
#include "profile/query.h"
#include "profile/scope.h"
#include "profile/text/chart.h"
#include "profile/text/text.h"
#include "report/report.h"

/* Content of one picture. */
struct picture {
    const struct profile_class *node_class;
    const uint32_t *workers; /* by position of a PU in the class, or MAP_NONE; NULL: none */
    bool compact; /* for many PUs: without caches and overhead levels that no two cores share,
                     numbers only on PUs */
};

/* From the outside in, where two boxes hold the same PUs. */
enum kind { MACHINE, PACKAGE, MEMORY, NUMA, CACHE, CORE, PU, KINDS };

/* Class in the page. */
static const char *const class_names[KINDS] = {
    [MACHINE] = "machine", [PACKAGE] = "package", [MEMORY] = "memory", [NUMA] = "numa",
    [CACHE] = "cache",     [CORE] = "core",       [PU] = "pu"};

struct box {
    enum kind kind;
    const struct profile_set *pus;
    const void *what; /* the cache, the NUMA node, the overhead level */
    uint32_t number;
    struct box *child, *next; /* by lowest PU */
    char text[48];
    char *devices[PROFILE_DEVICE_KINDS]; /* "GPU cuda0 cuda1", or NULL */
    bool busy;                           /* a PU with a worker */
    size_t columns;                      /* that its children stand in */
    double x, y, width, height, cell_height;
};

struct boxes {
    const struct picture *picture;
    struct box machine;
    struct box *items;
    size_t count, room;
    struct profile_set *single; /* one per PU */
};

/* -- the tree -- */

/* Boxes come largest first, so that a new one goes into a box or beside its children. False: it
 * crosses one. */
static bool insert(struct box *parent, struct box *box)
{
    for (struct box *child = parent->child; child; child = child->next) {
        if (profile_set_subset(box->pus, child->pus)) {
            return insert(child, box);
        }
        if (profile_set_overlaps(box->pus, child->pus)) {
            return false;
        }
    }
    struct box **at = &parent->child;
    while (*at && (*at)->pus->ids[0] < box->pus->ids[0]) {
        at = &(*at)->next;
    }
    box->next = *at;
    *at = box;
    return true;
}

static int outside_in(const void *a, const void *b)
{
    const struct box *x = a, *y = b;
    if (x->pus->count != y->pus->count) {
        return x->pus->count > y->pus->count ? -1 : 1;
    }
    if (x->kind != y->kind) {
        return x->kind < y->kind ? -1 : 1;
    }
    /* Caches of one kind: the larger level outside. Overhead levels: the milder one outside. */
    return x->number != y->number
               ? (x->number > y->number ? -1 : 1)
               : (x->pus->ids[0] > y->pus->ids[0]) - (x->pus->ids[0] < y->pus->ids[0]);
}

/* Whether all of a set lies within one core. */
static bool within_core(const struct profile_class *node_class, const struct profile_set *pus)
{
    const struct profile_set *core =
        pus->count ? profile_group_of(&node_class->cores, pus->ids[0]) : NULL;
    return pus->count == 1 || (core && profile_set_subset(pus, core));
}

/* A compact picture leaves out caches and overhead levels that no two cores share: a mapping goes
 * by the others. */
static void add_box(struct boxes *boxes, enum kind kind, const struct profile_set *pus,
                    const void *what, uint32_t number)
{
    bool kept = !boxes->picture->compact || (kind != CACHE && kind != MEMORY) ||
                !within_core(boxes->picture->node_class, pus);
    if (kept && pus->count && boxes->count < boxes->room) {
        boxes->items[boxes->count++] =
            (struct box){.kind = kind, .pus = pus, .what = what, .number = number};
    }
}

/* The groups of cores, or of a cache, and each PU that has one alone. */
static void add_cache_boxes(struct boxes *boxes, const struct profile_cache *cache)
{
    const struct profile_class *node_class = boxes->picture->node_class;
    const struct profile_relation *relation = cache ? &cache->sharing : &node_class->cores;
    enum kind kind = cache ? CACHE : CORE;
    uint32_t number = cache ? cache->level : 0;
    for (size_t i = 0; i < relation->group_count; i++) {
        add_box(boxes, kind, &relation->groups[i], cache, number);
    }
    for (size_t i = 0; i < node_class->pus.count; i++) {
        uint32_t pu = node_class->pus.ids[i];
        bool held = !cache || !cache->pus.count || profile_set_has(&cache->pus, pu);
        if (held && !profile_group_of(relation, pu)) {
            add_box(boxes, kind, &boxes->single[i], cache, number);
        }
    }
}

static void collect_boxes(struct boxes *boxes)
{
    const struct profile_class *node_class = boxes->picture->node_class;
    size_t pus = node_class->pus.count;
    size_t relations = 3 + node_class->cache_count + node_class->memory.level_count;
    boxes->room = 2 * pus * relations + node_class->numa_count + 1;
    boxes->items = cli_needed(calloc(boxes->room, sizeof *boxes->items));
    boxes->single = cli_needed(calloc(pus, sizeof *boxes->single));
    for (size_t i = 0; i < pus; i++) {
        boxes->single[i] = (struct profile_set){&node_class->pus.ids[i], 1};
        add_box(boxes, PU, &boxes->single[i], NULL, node_class->pus.ids[i]);
    }
    for (size_t i = 0; i < node_class->packages.group_count; i++) {
        add_box(boxes, PACKAGE, &node_class->packages.groups[i], NULL, (uint32_t)i);
    }
    for (size_t i = 0; i < node_class->numa_count; i++) {
        const struct profile_numa *numa = &node_class->numa[i];
        add_box(boxes, NUMA, &numa->pus, numa, numa->os_index);
    }
    add_cache_boxes(boxes, NULL);
    for (size_t i = 0; i < node_class->cache_count; i++) {
        add_cache_boxes(boxes, &node_class->caches[i]);
    }
    for (size_t i = 0; i < node_class->memory.level_count; i++) {
        const struct profile_memory_level *level = &node_class->memory.levels[i];
        bool disturbs = profile_level_disturbs(&node_class->memory, i);
        for (size_t g = 0; disturbs && g < level->collisions.group_count; g++) {
            add_box(boxes, MEMORY, &level->collisions.groups[g], level, (uint32_t)i);
        }
    }
    qsort(boxes->items, boxes->count, sizeof *boxes->items, outside_in);
}

/* -- what is written in a box -- */

/* The innermost box that holds the PUs. */
static struct box *holder_of(struct box *box, const struct profile_set *pus)
{
    for (struct box *child = box->child; child; child = child->next) {
        if (child->kind != PU && profile_set_subset(pus, child->pus)) {
            return holder_of(child, pus);
        }
    }
    return box;
}

static void add_device_boxes(struct box *machine, const struct profile_class *node_class)
{
    static const char *const words[PROFILE_DEVICE_KINDS] = {"GPU", "Network card", "Disk"};
    for (size_t i = 0; i < node_class->device_count; i++) {
        const struct profile_device *device = &node_class->devices[i];
        char **line = &holder_of(machine, &device->pus)->devices[device->kind], *before = *line;
        cli_done(asprintf(line, "%s %s", before ? before : words[device->kind], device->name));
        free(before);
    }
}

static void name_pu(struct box *box, const struct picture *picture)
{
    const size_t at = profile_set_position(&picture->node_class->pus, box->number);
    const char *pu = picture->compact ? "" : "PU ",
               *between = picture->compact ? ":w" : ": worker ";
    box->busy = picture->workers && picture->workers[at] != MAP_NONE;
    if (box->busy) {
        snprintf(box->text, sizeof box->text, "%s%u%s%u", pu, box->number, between,
                 picture->workers[at]);
    } else {
        snprintf(box->text, sizeof box->text, "%s%u", pu, box->number);
    }
}

static struct figure size_of(const struct profile_cache *cache)
{
    return cache->quality.origin == PROFILE_DECLARED ? profile_figure_bytes(cache->size_bytes)
                                                     : profile_figure_size(cache);
}

/* Size of a cache or a memory: " 8 MiB", " not settled"; "" where it is not known. */
static struct figure behind(struct figure size)
{
    struct figure text = {""};
    if (strcmp(size.text, "-") != 0) {
        snprintf(text.text, sizeof text.text, " %.40s", size.text);
    }
    return text;
}

static void name_box(struct box *box, const struct picture *picture)
{
    const struct profile_cache *cache = box->what;
    const struct profile_numa *numa = box->what;
    switch (box->kind) {
    case MACHINE:
        snprintf(box->text, sizeof box->text, "Machine");
        break;
    case PACKAGE:
        snprintf(box->text, sizeof box->text, "Package %u", box->number);
        break;
    case MEMORY:
        snprintf(box->text, sizeof box->text, "Memory overhead level %u", box->number);
        break;
    case NUMA:
        snprintf(box->text, sizeof box->text, "NUMA node %u%s%.24s", box->number,
                 numa->memory_bytes ? "," : "",
                 behind(profile_figure_bytes(numa->memory_bytes)).text);
        break;
    case CACHE:
        snprintf(box->text, sizeof box->text, "L%u%s%.40s", cache->level,
                 cache->level == 1 ? "d" : "", behind(size_of(cache)).text);
        break;
    case PU:
        name_pu(box, picture);
        break;
    case CORE: /* its number would be ours alone */
    case KINDS:
        break;
    }
}

/* -- the layout, in pixels -- */

#define PADDING 6
#define HEAD 18    /* of a box that has text */
#define LETTER 6.6 /* width of one, a little more than the font's */
#define FONT_SIZE 11
#define BASE_LINE 13 /* of the text, below the upper edge */
#define ASPECT 1.7   /* width by height that boxes in a box are arranged towards */
#define EMPTY_COST 8 /* of the share left empty, against the logarithm of a wrong shape */

static double head_of(const struct box *box)
{
    double head = *box->text ? HEAD : PADDING;
    for (int kind = 0; kind < PROFILE_DEVICE_KINDS; kind++) {
        head += box->devices[kind] ? HEAD : 0;
    }
    return head;
}

/* Width of what stands in the box itself. */
static double width_inside(const struct box *box)
{
    size_t letters = strlen(box->text);
    for (int kind = 0; kind < PROFILE_DEVICE_KINDS; kind++) {
        size_t more = box->devices[kind] ? strlen(box->devices[kind]) : 0;
        letters = more > letters ? more : letters;
    }
    return LETTER * (double)letters;
}

/* In how many columns `count` cells look best. */
static size_t best_columns(size_t count, double width, double height)
{
    size_t best = 1;
    double least = INFINITY;
    for (size_t columns = 1; columns <= count; columns++) {
        size_t rows = (count + columns - 1) / columns;
        double shape = (double)columns * width / ((double)rows * height);
        double empty = (double)(rows * columns - count) / (double)(rows * columns);
        double cost = fabs(log(shape / ASPECT)) + EMPTY_COST * empty;
        if (cost < least) {
            least = cost;
            best = columns;
        }
    }
    return best;
}

/* Sizes from the inside out. All PUs are as wide as the one that has most to say, so that two cores
 * look the same wherever workers are. */
static void measure_box(struct box *box, double pu_width)
{
    size_t count = 0;
    double width = 0, height = 0;
    for (struct box *child = box->child; child; child = child->next, count++) {
        measure_box(child, pu_width);
        width = fmax(width, child->width);
        height = fmax(height, child->height);
    }
    double text = box->kind == PU ? pu_width : width_inside(box);
    box->columns = count ? best_columns(count, width, height) : 1;
    size_t rows = (count + box->columns - 1) / box->columns;
    double inside = fmax(text, (width + PADDING) * (double)box->columns - PADDING);
    box->cell_height = height;
    box->width = inside + 2 * PADDING;
    box->height = head_of(box) + (height + PADDING) * (double)rows + (count ? 0 : PADDING / 2.0);
}

/* From the outside in: the width that a box got is shared by what is in it. */
static void place_box(struct box *box)
{
    double columns = (double)box->columns, width = (box->width - PADDING) / columns - PADDING;
    size_t index = 0;
    for (struct box *child = box->child; child; child = child->next, index++) {
        child->x = box->x + PADDING + (width + PADDING) * (double)(index % box->columns);
        child->y =
            box->y + head_of(box) + (box->cell_height + PADDING) * (double)(index / box->columns);
        child->width = width;
        child->height = box->cell_height;
        place_box(child);
    }
}

static void boxes_free(struct boxes *boxes)
{
    for (size_t i = 0; i <= boxes->count; i++) {
        struct box *box = i < boxes->count ? &boxes->items[i] : &boxes->machine;
        for (int kind = 0; kind < PROFILE_DEVICE_KINDS; kind++) {
            free(box->devices[kind]);
        }
    }
    free(boxes->items);
    free(boxes->single);
}

/* The laid out tree, and how many groups cross others. It points into *boxes, which must not be
 * moved. */
static size_t lay_out_tree(const struct picture *picture, struct boxes *boxes)
{
    *boxes = (struct boxes){.picture = picture,
                            .machine = {.kind = MACHINE, .pus = &picture->node_class->pus}};
    collect_boxes(boxes);
    size_t left_out = 0, letters = 0;
    for (size_t i = 0; i < boxes->count; i++) {
        left_out += !insert(&boxes->machine, &boxes->items[i]);
    }
    name_box(&boxes->machine, picture);
    for (size_t i = 0; i < boxes->count; i++) {
        struct box *box = &boxes->items[i];
        name_box(box, picture);
        letters = box->kind == PU && strlen(box->text) > letters ? strlen(box->text) : letters;
    }
    add_device_boxes(&boxes->machine, picture->node_class);
    measure_box(&boxes->machine, LETTER * (double)letters);
    boxes->machine.x = boxes->machine.y = 0.5; /* lines in the middle of pixels */
    place_box(&boxes->machine);
    return left_out;
}

/* -- as SVG -- */

static void put_devices(FILE *out, const struct box *box)
{
    double y = box->y + (*box->text ? HEAD : 0) + BASE_LINE;
    for (int kind = 0; kind < PROFILE_DEVICE_KINDS; kind++) {
        if (box->devices[kind]) {
            fprintf(out, "<text class=\"device\" x=\"%g\" y=\"%g\">", box->x + PADDING, y);
            profile_xml_text(out, box->devices[kind]);
            fputs("</text>\n", out);
            y += HEAD;
        }
    }
}

static void put_svg(FILE *out, const struct box *box)
{
    const char *busy = box->busy ? " busy" : "";
    fprintf(out, "<rect class=\"%s%s\" x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\"/>\n",
            class_names[box->kind], busy, box->x, box->y, box->width, box->height);
    if (*box->text) {
        fprintf(out, "<text%s x=\"%g\" y=\"%g\">%s</text>\n", box->busy ? " class=\"busy\"" : "",
                box->x + PADDING, box->y + BASE_LINE, box->text);
    }
    put_devices(out, box);
    for (const struct box *child = box->child; child; child = child->next) {
        put_svg(out, child);
    }
}

/* Returns how many groups cannot be drawn as boxes, as they cross others. */
static size_t put_picture_svg(FILE *out, const struct picture *picture, const char *title)
{
    struct boxes boxes;
    const size_t left_out = lay_out_tree(picture, &boxes);
    double width = ceil(boxes.machine.width + 1), height = ceil(boxes.machine.height + 1);
    fprintf(out,
            "<svg role=\"img\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" "
            "font-size=\"%d\">\n<title>%s</title>\n",
            width, height, width, height, FONT_SIZE, title);
    put_svg(out, &boxes.machine);
    fputs("</svg>", out);
    boxes_free(&boxes);
    return left_out;
}

/* -- which pictures there are: one of each node class, and one of each class and priority with the
 * workers that are asked for -- */

/* With more PUs than this, a picture shows only caches that cores share: it has to fit a screen and
 * a slide. */
#define PUS_IN_FULL 32

/* A node class with more PUs is not drawn: no screen shows it. */
#define PICTURE_PUS 1024

/* The workers of the first node of the class that has any, on the PUs that were `chosen`: their
 * numbers by the position of the PU, and how many they are. */
static size_t workers_of_class(const struct report *report, size_t index, const uint32_t *chosen,
                               uint32_t *workers, uint32_t *node)
{
    const struct profile_set *pus = &report->profile->classes[index].pus;
    size_t found = 0;
    memset(workers, 0xff, pus->count * sizeof *workers);
    for (size_t i = 0; i < report->workers; i++) {
        struct profile_place place;
        if (profile_locate(report->profile, chosen[i], &place) && &place.node_class->pus == pus &&
            (!found || place.node == *node)) {
            uint32_t *worker = &workers[profile_set_position(pus, place.os_index)];
            *worker = *worker == MAP_NONE ? (uint32_t)i : *worker;
            *node = place.node;
            found++;
        }
    }
    return found;
}

#define SHOWN_WORKERS 64 /* of a mapping in words */

/* `workers` NULL: none. */
static void put_picture(FILE *out, const struct profile_class *node_class, const uint32_t *workers,
                        const char *id, const char *title)
{
    const size_t pus = node_class->pus.count;
    const struct picture picture = {node_class, workers, pus > PUS_IN_FULL};
    fprintf(out, "<figure id=\"%s\"%s>\n<h3>%s</h3>\n", id,
            picture.compact ? " class=\"wide\"" : "", title);
    if (pus > PICTURE_PUS) {
        fprintf(out,
                "<p class=\"note\">No picture: %zu PUs are more than the %d that are "
                "drawn.</p>\n</figure>\n",
                pus, PICTURE_PUS);
        return;
    }
    fprintf(out, "<div class=\"scroll picture%s\">", picture.compact ? " large" : "");
    const size_t left_out = put_picture_svg(out, &picture, title);
    fputs("</div>\n", out);
    if (picture.compact) {
        fputs("<figcaption>Caches and overhead levels that no two cores share are left out; ", out);
        fputs(workers ? "3:w7 is worker 7 on PU 3.</figcaption>\n"
                      : "numbers are PUs.</figcaption>\n",
              out);
    }
    if (left_out) {
        fprintf(out,
                "<figcaption>%zu measured groups cross others and cannot be drawn as "
                "boxes.</figcaption>\n",
                left_out);
    }
    fputs("</figure>\n", out);
}

static void put_topologies(FILE *out, const struct servet_profile *profile)
{
    for (size_t i = 0; i < profile->class_count; i++) {
        char id[32], title[64] = "The node";
        snprintf(id, sizeof id, "topology-%zu", i);
        if (profile->class_count > 1) {
            snprintf(title, sizeof title, "One node of class %zu", i);
        }
        put_picture(out, &profile->classes[i], NULL, id, title);
    }
}

static void put_chosen(FILE *out, const uint32_t *chosen, size_t count, const char *priority)
{
    fprintf(out, "<p>%s priority: workers 0, 1, … on PUs <strong>", priority);
    for (size_t i = 0; i < count && i < SHOWN_WORKERS; i++) {
        fprintf(out, "%s%u", i ? ", " : "", chosen[i]);
    }
    fprintf(out, "%s</strong></p>\n", count > SHOWN_WORKERS ? " …" : "");
}

static void put_mapping(FILE *out, const struct report *report, enum map_priority priority)
{
    struct servet_error error;
    const struct servet_profile *profile = report->profile;
    const struct map_request request = map_request_of(priority, report->workers);
    const bool memory = priority == MAP_MEMORY;
    const char *name = memory ? "Memory" : "Communication";
    FREED uint32_t *chosen = cli_needed(calloc(report->workers, sizeof *chosen));
    cli_check(map_workers(profile, &request, chosen, NULL, &error), &error);
    put_chosen(out, chosen, report->workers, name);
    for (size_t i = 0; i < profile->class_count; i++) {
        char id[64], title[160];
        uint32_t node = 0;
        FREED uint32_t *workers =
            cli_needed(calloc(profile->classes[i].pus.count, sizeof *workers));
        const size_t count = workers_of_class(report, i, chosen, workers, &node);
        snprintf(id, sizeof id, "map-%s-%zu", memory ? "memory" : "communication", i);
        snprintf(title, sizeof title, "%s priority: %zu of %zu workers on node %u", name, count,
                 report->workers, node);
        if (count) {
            put_picture(out, &profile->classes[i], workers, id, title);
        }
    }
}

void report_html_topology(const struct report *report, FILE *out)
{
    fputs("<section id=\"topology\">\n<h2>Topology</h2>\n<p class=\"note\">Boxes are what the "
          "profile holds: caches with "
          "their effective sizes and groups, memory overhead levels, NUMA domains, "
          "packages.</p>\n<div class=\"grid\">\n",
          out);
    put_topologies(out, report->profile);
    fputs("</div>\n", out);
    if (report->workers) {
        fprintf(out, "<h2 id=\"mapping\">Where %zu worker%s would go</h2>\n", report->workers,
                report->workers == 1 ? "" : "s");
        put_mapping(out, report, MAP_MEMORY);
        put_mapping(out, report, MAP_COMMUNICATION);
    }
    fputs("</section>\n", out);
}
