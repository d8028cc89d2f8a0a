#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/picture.h"

/* From the outside in, where two boxes hold the same PUs. */
enum kind { MACHINE, PACKAGE, MEMORY, NUMA, CACHE, CORE, PU };

struct box {
    enum kind kind;
    const struct profile_set *pus;
    const void *what; /* the cache, the NUMA node, the overhead level */
    uint32_t number;
    struct box *child, *next; /* by lowest PU */
};

struct boxes {
    struct box *items;
    size_t count, room;
    struct profile_set *single; /* one per PU */
};

static bool overlap(const struct profile_set *a, const struct profile_set *b)
{
    for (size_t i = 0, k = 0; i < a->count && k < b->count;) {
        if (a->ids[i] == b->ids[k]) {
            return true;
        }
        if (a->ids[i] < b->ids[k]) {
            i++;
        } else {
            k++;
        }
    }
    return false;
}

/* Boxes come largest first, so that a new one goes into a box or beside its children. */
static bool insert(struct box *parent, struct box *box)
{
    for (struct box *child = parent->child; child; child = child->next) {
        if (profile_set_subset(box->pus, child->pus)) {
            return insert(child, box);
        }
        if (overlap(box->pus, child->pus)) {
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

static void add(struct boxes *boxes, enum kind kind, const struct profile_set *pus,
                const void *what, uint32_t number)
{
    if (pus->count && boxes->count < boxes->room) {
        boxes->items[boxes->count++] =
            (struct box){.kind = kind, .pus = pus, .what = what, .number = number};
    }
}

/* The groups of a relation, and each PU that is in none of them alone. */
static void add_relation(struct boxes *boxes, enum kind kind,
                         const struct profile_relation *relation, const struct profile_set *holders,
                         const struct profile_class *node_class, const void *what, uint32_t number)
{
    for (size_t i = 0; i < relation->group_count; i++) {
        add(boxes, kind, &relation->groups[i], what, number);
    }
    for (size_t i = 0; i < node_class->pus.count; i++) {
        uint32_t pu = node_class->pus.ids[i];
        bool held = !holders || !holders->count || profile_set_has(holders, pu);
        for (size_t g = 0; held && g < relation->group_count; g++) {
            held = !profile_set_has(&relation->groups[g], pu);
        }
        if (held) {
            add(boxes, kind, &boxes->single[i], what, number);
        }
    }
}

/* Whether all of a set lies within one core. */
static bool within_core(const struct profile_class *node_class, const struct profile_set *pus)
{
    bool within = pus->count == 1;
    for (size_t i = 0; !within && i < node_class->cores.group_count; i++) {
        within = profile_set_subset(pus, &node_class->cores.groups[i]);
    }
    return within;
}

/* Takes out caches and overhead levels that no two cores share: what is left is what a mapping goes
 * by. */
static void leave_out_private(const struct profile_class *node_class, struct boxes *boxes)
{
    size_t kept = 0;
    for (size_t i = 0; i < boxes->count; i++) {
        const struct box *box = &boxes->items[i];
        bool shared_kind = box->kind == CACHE || box->kind == MEMORY;
        if (!shared_kind || !within_core(node_class, box->pus)) {
            boxes->items[kept++] = *box;
        }
    }
    boxes->count = kept;
}

static int collect(const struct profile_class *node_class, struct boxes *boxes)
{
    size_t pus = node_class->pus.count,
           relations = 3 + node_class->cache_count + node_class->memory.level_count;
    boxes->room = 2 * pus * relations + node_class->numa_count + 1;
    boxes->items = calloc(boxes->room, sizeof *boxes->items);
    boxes->single = calloc(pus, sizeof *boxes->single);
    if (!boxes->items || !boxes->single) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < pus; i++) {
        boxes->single[i] = (struct profile_set){&node_class->pus.ids[i], 1};
        add(boxes, PU, &boxes->single[i], NULL, node_class->pus.ids[i]);
    }
    for (size_t i = 0; i < node_class->packages.group_count; i++) {
        add(boxes, PACKAGE, &node_class->packages.groups[i], NULL, (uint32_t)i);
    }
    for (size_t i = 0; i < node_class->numa_count; i++) {
        add(boxes, NUMA, &node_class->numa[i].pus, &node_class->numa[i],
            node_class->numa[i].os_index);
    }
    add_relation(boxes, CORE, &node_class->cores, NULL, node_class, NULL, 0);
    for (size_t i = 0; i < node_class->cache_count; i++) {
        const struct profile_cache *cache = &node_class->caches[i];
        add_relation(boxes, CACHE, &cache->sharing, &cache->pus, node_class, cache, cache->level);
    }
    for (size_t i = 0; i < node_class->memory.level_count; i++) {
        const struct profile_memory_level *level = &node_class->memory.levels[i];
        for (size_t g = 0; g < level->collisions.group_count; g++) {
            add(boxes, MEMORY, &level->collisions.groups[g], level, (uint32_t)i);
        }
    }
    qsort(boxes->items, boxes->count, sizeof *boxes->items, outside_in);
    return 0;
}

/* -- as XML -- */

struct writer {
    FILE *out;
    const struct profile_class *node_class;
    const struct picture_workers *workers;
    bool compact;
    unsigned objects, cores;
};

/* hwloc's form of a bitmap: 32-bit words, the most significant one first. */
static void put_mask(FILE *out, const char *name, const uint32_t *ids, size_t count)
{
    uint32_t word = count ? ids[count - 1] / 32 : 0;
    fprintf(out, " %s=\"", name);
    for (uint32_t left = word + 1; left-- > 0;) {
        uint32_t bits = 0;
        for (size_t i = 0; i < count; i++) {
            bits |= ids[i] / 32 == left ? UINT32_C(1) << ids[i] % 32 : 0;
        }
        fprintf(out, "%s0x%08x", left == word ? "" : ",", bits);
    }
    fputc('"', out);
}

static void put_sets(struct writer *writer, const struct profile_set *pus, const char *prefix)
{
    uint32_t nodes[1024] = {0};
    size_t count = 0;
    for (size_t i = 0; i < writer->node_class->numa_count && count < 1024; i++) {
        if (overlap(&writer->node_class->numa[i].pus, pus)) {
            nodes[count++] = writer->node_class->numa[i].os_index;
        }
    }
    char name[32];
    snprintf(name, sizeof name, "%scpuset", prefix);
    put_mask(writer->out, name, pus->ids, pus->count);
    snprintf(name, sizeof name, "%snodeset", prefix);
    put_mask(writer->out, name, nodes,
             count ? count : 1); /* without a NUMA node, node 0 is made up */
}

static void open_object(struct writer *writer, const char *type, const struct profile_set *pus)
{
    fprintf(writer->out, "<object type=\"%s\" gp_index=\"%u\"", type, ++writer->objects);
    put_sets(writer, pus, "");
    put_sets(writer, pus, "complete_");
}

static void put_numa(struct writer *writer, const struct profile_set *pus, uint32_t number,
                     uint64_t bytes)
{
    fprintf(writer->out, "<object type=\"NUMANode\" gp_index=\"%u\" os_index=\"%u\"",
            ++writer->objects, number);
    put_mask(writer->out, "cpuset", pus->ids, pus->count);
    put_mask(writer->out, "complete_cpuset", pus->ids, pus->count);
    put_mask(writer->out, "nodeset", &number, 1);
    put_mask(writer->out, "complete_nodeset", &number, 1);
    fprintf(writer->out, " local_memory=\"%llu\"/>\n", (unsigned long long)bytes);
}

/* Fill and text of a PU that has a worker; strong enough on both grounds. */
#define WORKER_STYLE "Background=#b84e00;Text=#ffffff"

/* The worker on a PU, or NULL. */
static const uint32_t *worker_on(const struct writer *writer, uint32_t pu)
{
    for (size_t i = 0; writer->workers && i < writer->workers->count; i++) {
        if (writer->workers->pus[i] == pu) {
            return &writer->workers->labels[i];
        }
    }
    return NULL;
}

static void open_pu(struct writer *writer, const struct box *box)
{
    FILE *out = writer->out;
    const uint32_t *worker = worker_on(writer, box->number);
    open_object(writer, "PU", box->pus);
    fprintf(out, " os_index=\"%u\"", box->number);
    if (writer->compact) {
        fprintf(out, worker ? " subtype=\"%u:w%u\"" : " subtype=\"%u\"", box->number,
                worker ? *worker : 0);
    } else if (worker) {
        fprintf(out, " subtype=\"worker %u\"", *worker);
    }
    fprintf(out, "%s\n", worker ? "><info name=\"lstopoStyle\" value=\"" WORKER_STYLE "\"/>" : ">");
}

static void open_box(struct writer *writer, const struct box *box)
{
    FILE *out = writer->out;
    const struct profile_cache *cache = box->what;
    char type[32];
    switch (box->kind) {
    case MACHINE:
        open_object(writer, "Machine", box->pus);
        put_sets(writer, box->pus, "allowed_");
        fputs(" os_index=\"0\">\n", out);
        break;
    case PACKAGE:
        open_object(writer, "Package", box->pus);
        fprintf(out, " os_index=\"%u\">\n", box->number);
        break;
    case CACHE:
        snprintf(type, sizeof type, "L%uCache", cache->level < 5 ? cache->level : 5);
        open_object(writer, type, box->pus);
        fprintf(out,
                " cache_size=\"%llu\" depth=\"%u\" cache_linesize=\"%u\" cache_associativity=\"0\" "
                "cache_type=\"%d\">\n",
                (unsigned long long)cache->size_bytes, cache->level, cache->line_bytes,
                cache->level == 1);
        break;
    case CORE:
        open_object(writer, "Core", box->pus);
        fprintf(out, " os_index=\"%u\">\n", writer->cores++);
        break;
    case PU:
        open_pu(writer, box);
        break;
    case MEMORY:
    case NUMA:
        open_object(writer, "Group", box->pus);
        if (box->kind == MEMORY) {
            fprintf(out, " subtype=\"memory overhead level %u\"", box->number);
        } else {
            fprintf(out, " subtype=\"NUMA domain\"");
        }
        fprintf(out, " kind=\"1001\" subkind=\"%u\" dont_merge=\"1\">\n", writer->objects);
        break;
    }
    if (box->kind == NUMA) {
        const struct profile_numa *numa = box->what;
        put_numa(writer, box->pus, box->number, numa->memory_bytes);
    }
}

static void put_box(struct writer *writer, const struct box *box)
{
    open_box(writer, box);
    if (box->kind == MACHINE && !writer->node_class->numa_count) {
        put_numa(writer, box->pus, 0, 0);
    }
    for (const struct box *child = box->child; child; child = child->next) {
        put_box(writer, child);
    }
    fputs("</object>\n", writer->out);
}

int report_picture_xml(const struct picture *picture, char **out, size_t *left_out)
{
    const struct profile_class *node_class = picture->node_class;
    struct boxes boxes = {0};
    struct box machine = {.kind = MACHINE, .pus = &node_class->pus};
    size_t length, crossing = 0;
    int rc = collect(node_class, &boxes);
    if (rc == 0 && picture->compact) {
        leave_out_private(node_class, &boxes);
    }
    for (size_t i = 0; rc == 0 && i < boxes.count; i++) {
        crossing += !insert(&machine, &boxes.items[i]);
    }
    char *text = NULL;
    struct writer writer = {
        .node_class = node_class, .workers = picture->workers, .compact = picture->compact};
    writer.out = rc == 0 ? open_memstream(&text, &length) : NULL;
    if (writer.out) {
        fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM "
              "\"hwloc2.dtd\">\n"
              "<topology version=\"2.0\">\n",
              writer.out);
        put_box(&writer, &machine);
        fputs("</topology>\n", writer.out);
        rc = fclose(writer.out) != 0 ? -ENOMEM : 0;
    } else {
        rc = -ENOMEM;
    }
    free(boxes.items);
    free(boxes.single);
    if (rc < 0) {
        free(text);
        return rc;
    }
    *out = text;
    *left_out = crossing;
    return 0;
}
