/* What --worth prints: how many workers get nearly all of a memory's bandwidth, and where they
 * sit. Nodes of a class are alike, so a class is told once; groups of a level that give the same
 * answer are one line, with the places of the first. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/command/command.h"
#include "mapper/worth/worth.h"
#include "profile/base/file.h"

#define GIGA 1e9

/* One node, and what of it may be used. */
struct node {
    const struct profile_class *of;
    uint32_t first_pu;
    struct profile_set allowed; /* OS indices */
};

/* Lines of one scope that say the same. */
struct line {
    char scope[64];
    size_t groups, pus; /* so many groups, of so many PUs each */
    struct map_worth worth;
    bool measured;
    char *places; /* of the first */
};

struct table {
    FILE *out;
    const struct node *node;
    struct line line; /* waits for more that are alike; groups 0: none */
    size_t told;      /* lines with figures */
    struct servet_error *error;
    int why; /* the first -ENODATA, whose text is in `error` */
};

static int allowed_of(const struct servet_profile *profile, uint32_t number,
                      const struct profile_set *allowed, struct node *out)
{
    out->of = profile_node_class(profile, number);
    out->first_pu = profile_node_first_pu(profile, number);
    uint32_t *ids = calloc(out->of->pus.count, sizeof *ids);
    size_t count = 0;
    if (!ids) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < out->of->pus.count; i++) {
        if (profile_set_has(allowed, out->first_pu + out->of->pus.ids[i])) {
            ids[count++] = out->of->pus.ids[i];
        }
    }
    int rc = profile_set_from_array(ids, count, &out->allowed);
    free(ids);
    return rc;
}

/* -- workers -- */

static void flush(struct table *table)
{
    struct line *line = &table->line;
    char name[96];
    if (!line->groups) {
        return;
    }
    snprintf(name, sizeof name, line->groups > 1 ? "%s, %zu of them" : "%s", line->scope,
             line->groups);
    if (line->measured) {
        char most[16];
        snprintf(most, sizeof most, line->worth.measured_workers ? "%u" : "-",
                 line->worth.measured_workers);
        fprintf(table->out, "%-32s %6zu %6zu %9.2f %9.2f %9s  %s\n", name, line->pus,
                line->worth.workers, line->worth.bytes_per_s / GIGA,
                line->worth.most_bytes_per_s / GIGA, most, line->places);
        table->told++;
    } else {
        fprintf(table->out, "%-32s %6zu %6s\n", name, line->pus, "-");
    }
    free(line->places);
    *line = (struct line){0};
}

static bool same_answer(const struct line *a, const struct line *b)
{
    return strcmp(a->scope, b->scope) == 0 && a->pus == b->pus && a->measured == b->measured &&
           a->worth.workers == b->worth.workers &&
           a->worth.measured_workers == b->worth.measured_workers &&
           !(a->worth.bytes_per_s < b->worth.bytes_per_s) &&
           !(a->worth.bytes_per_s > b->worth.bytes_per_s);
}

static int add_line(struct table *table, struct line *line)
{
    if (table->line.groups && same_answer(&table->line, line)) {
        table->line.groups++;
        free(line->places);
        return 0;
    }
    flush(table);
    table->line = *line;
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

/* What of `group` may be used, as one line. */
static int add_scope(struct table *table, const char *scope, const struct profile_set *group)
{
    struct line line = {.groups = 1};
    struct profile_set pus;
    snprintf(line.scope, sizeof line.scope, "%s", scope);
    if (profile_set_intersect(group, &table->node->allowed, &pus) < 0) {
        return -ENOMEM;
    }
    line.pus = pus.count;
    uint32_t *places = calloc(pus.count + 1, sizeof *places);
    struct servet_error why;
    int rc = !places      ? -ENOMEM
             : !pus.count ? 0
                          : map_worth(table->node->of, &pus, places, &line.worth, &why);
    line.measured = rc == 0;
    if (rc == -ENODATA && !table->why) {
        table->why = rc;
        *table->error = why;
    }
    if (rc == 0 && pus.count) {
        line.places = list_of(places, line.worth.workers);
        rc = line.places ? 0 : -ENOMEM;
    }
    bool shows = pus.count > 0 && (rc == 0 || rc == -ENODATA);
    free(places);
    profile_set_free(&pus);
    return shows ? add_line(table, &line) : rc;
}

static int add_groups(struct table *table, const char *scope,
                      const struct profile_relation *relation)
{
    int rc = 0;
    for (size_t g = 0; rc == 0 && g < relation->group_count; g++) {
        rc = add_scope(table, scope, &relation->groups[g]);
    }
    return rc;
}

static int add_node(struct table *table, const char *name)
{
    const struct profile_class *of = table->node->of;
    int rc = add_scope(table, name, &of->pus);
    if (rc == 0) {
        rc = add_groups(table, "package", &of->packages);
    }
    for (size_t l = of->memory.level_count; rc == 0 && l-- > 0;) {
        char scope[48];
        snprintf(scope, sizeof scope, "overhead level %zu", l);
        rc = add_groups(table, scope, &of->memory.levels[l].collisions);
    }
    flush(table);
    return rc;
}

/* -- messages -- */

static size_t print_layers(FILE *out, const struct profile_communication *in, const char *where)
{
    size_t told = 0;
    for (size_t i = 0; i < in->layer_count; i++) {
        uint32_t most, worth = map_messages_worth(&in->layers[i], &most);
        if (worth) {
            const char *name = in->layers[i].name ? in->layers[i].name : "layer";
            char text[96];
            snprintf(text, sizeof text, "%s%s%s", where, *where ? ": " : "", name);
            fprintf(out, "%-32s %6u %9u\n", text, worth, most);
            told++;
        }
    }
    return told;
}

/* How many layers have something to say into *count. 0 or -ENOMEM. */
static int print_messages(FILE *out, const struct servet_profile *profile, size_t *count)
{
    char *text = NULL;
    size_t size = 0, told = 0;
    FILE *lines = profile_stream_open(&text, &size);
    if (!lines) {
        return -ENOMEM;
    }
    for (size_t c = 0; c < profile->class_count; c++) {
        const char *name = profile->classes[c].name;
        told += print_layers(lines, &profile->classes[c].communication,
                             profile->class_count > 1 && name ? name : "");
    }
    told += print_layers(lines, &profile->network, "");
    if (fclose(lines) != 0) {
        return -ENOMEM;
    }
    if (told) {
        fprintf(out, "\nmessages at a time beyond which a layer only queues\n%-32s %6s %9s\n%s",
                "layer", "worth", "curve to", text);
    }
    free(text);
    *count = told;
    return 0;
}

/* -- the whole -- */

int map_worth_table(FILE *out, const struct servet_profile *profile,
                    const struct profile_set *allowed, struct servet_error *error)
{
    struct table table = {.out = out, .error = error};
    uint32_t nodes = profile_node_count(profile);
    int rc = 0;
    fprintf(out,
            "the fewest workers that get %.0f %% of what any number gets, predicted from what was "
            "measured\n%-32s %6s %6s %9s %9s %9s  %s\n",
            MAP_WORTH_SHARE * 100, "", "PUs", "worth", "GB/s", "at most", "curve to", "places");
    for (size_t c = 0; rc == 0 && c < profile->class_count; c++) {
        struct node node = {0};
        const char *name = profile->classes[c].name;
        for (uint32_t n = 0; rc == 0 && n < nodes && !node.allowed.count; n++) {
            if (profile_node_class(profile, n) == &profile->classes[c]) {
                rc = allowed_of(profile, n, allowed, &node);
            }
        }
        table.node = &node;
        if (rc == 0 && node.allowed.count) {
            rc = add_node(&table, profile->class_count > 1 && name ? name : "node");
        }
        profile_set_free(&node.allowed);
    }
    size_t told = 0;
    rc = rc < 0 ? rc : print_messages(out, profile, &told);
    if (rc == -ENOMEM) {
        return profile_error(error, rc, "out of memory");
    }
    return rc == 0 && !table.told && !told ? table.why : rc;
}

/* The places of one node; those of the node before it where it is alike. */
static int places_of(const struct node *node, const struct node *before, uint32_t *places,
                     size_t *count, struct servet_error *error)
{
    if (before->of == node->of && profile_set_equal(&before->allowed, &node->allowed)) {
        return 0;
    }
    struct map_worth worth;
    int rc = map_worth(node->of, &node->allowed, places, &worth, error);
    *count = rc == 0 ? worth.workers : *count;
    return rc;
}

int map_worth_places(const struct servet_profile *profile, const struct profile_set *allowed,
                     uint32_t **pus, size_t *count, struct servet_error *error)
{
    struct node before = {0};
    uint32_t *found = calloc(allowed->count + 1, sizeof *found);
    uint32_t *places = calloc(allowed->count + 1, sizeof *places);
    size_t used = 0, of_node = 0;
    int rc = found && places ? 0 : profile_error(error, -ENOMEM, "out of memory");
    for (uint32_t n = 0; rc == 0 && n < profile_node_count(profile); n++) {
        struct node node = {0};
        rc = allowed_of(profile, n, allowed, &node);
        if (rc < 0) {
            profile_error(error, rc, "out of memory");
        } else if (node.allowed.count) {
            rc = places_of(&node, &before, places, &of_node, error);
            for (size_t i = 0; rc == 0 && i < of_node; i++) {
                found[used++] = node.first_pu + places[i];
            }
        }
        profile_set_free(&before.allowed);
        before = node;
    }
    profile_set_free(&before.allowed);
    free(places);
    if (rc < 0) {
        free(found);
        return rc;
    }
    *pus = found;
    *count = used;
    return 0;
}
