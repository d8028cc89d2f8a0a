/* Nodes that are alike become one class; the others are named. A profile of a thousand equal
 * nodes is then one node's text. */
#include "probes/network/network.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/file.h"
#include "profile/base/statistics.h"
#include "profile/query.h"

/* -- agreement -- */

static bool within(double a, double b, double tolerance)
{
    return (a <= 0 && b <= 0) || (a > 0 && b > 0 && profile_same(a, b, tolerance));
}

static bool same_build(const struct profile_class *a, const struct profile_class *b,
                       struct servet_error *why)
{
    if (!profile_set_equal(&a->pus, &b->pus)) {
        return a->pus.count == b->pus.count
                   ? profile_error(why, false, "other PU numbers")
                   : profile_error(why, false, "%zu PUs, not %zu", b->pus.count, a->pus.count);
    }
    if (!profile_relation_equal(&a->cores, &b->cores) ||
        !profile_relation_equal(&a->packages, &b->packages)) {
        return profile_error(why, false, "other cores or packages");
    }
    if (a->numa_count != b->numa_count) {
        return profile_error(why, false, "%zu NUMA nodes, not %zu", b->numa_count, a->numa_count);
    }
    for (size_t i = 0; i < a->numa_count; i++) {
        if (!profile_set_equal(&a->numa[i].pus, &b->numa[i].pus)) {
            return profile_error(why, false, "NUMA node %u has other PUs", b->numa[i].os_index);
        }
    }
    return true;
}

static bool same_caches(const struct profile_class *a, const struct profile_class *b,
                        struct servet_error *why)
{
    if (a->cache_count != b->cache_count) {
        return profile_error(why, false, "%zu cache levels, not %zu", b->cache_count,
                             a->cache_count);
    }
    for (size_t i = 0; i < a->cache_count; i++) {
        const struct profile_cache *x = &a->caches[i], *y = &b->caches[i];
        bool last = i + 1 == a->cache_count && i > 0;
        if (x->level != y->level || !profile_relation_equal(&x->sharing, &y->sharing)) {
            return profile_error(why, false, "L%u is shared otherwise", y->level);
        }
        if (x->declared_size_bytes != y->declared_size_bytes ||
            !within((double)x->size_bytes, (double)y->size_bytes,
                    last ? PROBE_FURTHEST - 1 : RECHECK_SAME)) {
            return profile_error(why, false, "L%u of %llu KiB, not %llu", y->level,
                                 (unsigned long long)y->size_bytes >> 10,
                                 (unsigned long long)x->size_bytes >> 10);
        }
    }
    return true;
}

static bool same_memory(const struct profile_class *a, const struct profile_class *b,
                        struct servet_error *why)
{
    if (!within(a->memory.reference_bytes_per_s, b->memory.reference_bytes_per_s, RECHECK_SAME)) {
        return profile_error(why, false, "memory bandwidth %.3g GB/s, not %.3g",
                             b->memory.reference_bytes_per_s / 1e9,
                             a->memory.reference_bytes_per_s / 1e9);
    }
    if (a->memory.level_count != b->memory.level_count) {
        return profile_error(why, false, "%zu memory overhead levels, not %zu",
                             b->memory.level_count, a->memory.level_count);
    }
    for (size_t i = 0; i < a->memory.level_count; i++) {
        const struct profile_memory_level *x = &a->memory.levels[i], *y = &b->memory.levels[i];
        if (!profile_relation_equal(&x->collisions, &y->collisions) ||
            !within(x->bytes_per_s, y->bytes_per_s, RECHECK_SAME)) {
            return profile_error(why, false, "memory overhead level %zu is another", i);
        }
    }
    return true;
}

static bool same_layers(const struct profile_class *a, const struct profile_class *b,
                        struct servet_error *why)
{
    const struct profile_communication *x = &a->communication, *y = &b->communication;
    if (x->layer_count != y->layer_count) {
        return profile_error(why, false, "%zu communication layers, not %zu", y->layer_count,
                             x->layer_count);
    }
    for (size_t i = 0; i < x->layer_count; i++) {
        if (!profile_relation_equal(&x->layers[i].members, &y->layers[i].members) ||
            !within(x->layers[i].seconds, y->layers[i].seconds, RECHECK_SAME_MESSAGE)) {
            return profile_error(why, false, "messages inside take %.3g us, not %.3g",
                                 y->layers[i].seconds * 1e6, x->layers[i].seconds * 1e6);
        }
    }
    return true;
}

/* Do two nodes agree? Built alike (PUs, cores, caches' levels and sharing, memory levels, layers)
 * and measured alike (within the tolerances of RECHECK_SAME). Otherwise false and `why` names
 * the first difference, "b" seen from "a". */
static bool nodes_agree(const struct profile_class *a, const struct profile_class *b,
                        struct servet_error *why)
{
    return same_build(a, b, why) && same_caches(a, b, why) && same_memory(a, b, why) &&
           same_layers(a, b, why);
}

/* -- names -- */

enum { DIGITS_MAX = 9 }; /* what a hostlist allows in one number */

struct numbered {
    int prefix, digits; /* lengths; the rest is the suffix */
    unsigned long number;
};

/* The last number of a name. */
static bool take_apart(const char *name, struct numbered *out)
{
    int end = (int)strcspn(name, "."); /* a domain is suffix */
    while (end > 0 && !isdigit((unsigned char)name[end - 1])) {
        end--;
    }
    int begin = end;
    while (begin > 0 && isdigit((unsigned char)name[begin - 1]) && end - begin < DIGITS_MAX) {
        begin--;
    }
    *out = (struct numbered){begin, end - begin, strtoul(name + begin, NULL, 10)};
    return end > begin && !strpbrk(name, ",[]");
}

/* Does `next` follow `last` as in prefix[last-next]suffix? Numbers keep their width, so 9 and 10 do
 * where neither is written with leading zeros, as 09 and 10. */
static bool follows(const char *a, const struct numbered *x, const char *b,
                    const struct numbered *y)
{
    bool width = x->digits == y->digits || (y->digits == x->digits + 1 && a[x->prefix] != '0');
    return x->prefix == y->prefix && width && y->number == x->number + 1 &&
           strncmp(a, b, (size_t)x->prefix) == 0 &&
           strcmp(a + x->prefix + x->digits, b + y->prefix + y->digits) == 0;
}

char *probe_network_hostlist(char *const *names, uint32_t count)
{
    char *text = NULL;
    size_t size;
    FILE *out = profile_stream_open(&text, &size);
    for (uint32_t i = 0; out && i < count;) {
        struct numbered first, last, next;
        uint32_t end = i + 1;
        if (take_apart(names[i], &first)) {
            last = first;
            while (end < count && take_apart(names[end], &next) &&
                   follows(names[end - 1], &last, names[end], &next)) {
                last = next;
                end++;
            }
        }
        fputs(i ? "," : "", out);
        if (end == i + 1) {
            fputs(names[i], out);
        } else {
            fprintf(out, "%.*s[%.*s-%.*s]%s", first.prefix, names[i], first.digits,
                    names[i] + first.prefix, last.digits, names[end - 1] + last.prefix,
                    names[i] + first.prefix + first.digits);
        }
        i = end;
    }
    return out && fclose(out) == 0 ? text : NULL;
}

/* -- classes -- */

static void assign(struct servet_profile *const *nodes, uint32_t count,
                   struct cluster_classes *classes, uint32_t *members, size_t *class_count)
{
    struct servet_error why;
    for (uint32_t i = 0; i < count; i++) {
        const struct profile_class *mine = &nodes[i]->classes[0];
        size_t c = 0;
        while (c < *class_count &&
               !nodes_agree(&nodes[classes->representative[c]]->classes[0], mine, &why)) {
            c++;
        }
        if (c == *class_count) {
            classes->representative[(*class_count)++] = i;
        }
        classes->class_of[i] = (uint32_t)c;
        members[c]++;
    }
    for (uint32_t c = 0; c < *class_count; c++) {
        classes->largest = members[c] > members[classes->largest] ? c : classes->largest;
    }
}

static char *list_outliers(char *const *names, struct servet_profile *const *nodes, uint32_t count,
                           const struct cluster_classes *classes)
{
    char *text = NULL;
    size_t size;
    FILE *out = profile_stream_open(&text, &size);
    const uint32_t usual = classes->representative[classes->largest];
    for (uint32_t i = 0; out && i < count; i++) {
        struct servet_error why = {""};
        if (classes->class_of[i] != classes->largest) {
            nodes_agree(&nodes[usual]->classes[0], &nodes[i]->classes[0], &why);
            fprintf(out, "%s: %s as on %s\n", names[i], why.text[0] ? why.text : "not quite",
                    names[usual]);
        }
    }
    return out && fclose(out) == 0 ? text : NULL;
}

/* Runs of nodes of one class. */
static int make_ranges(char *const *names, uint32_t count, const uint32_t *class_of,
                       struct servet_profile *profile)
{
    profile->nodes = calloc(count, sizeof *profile->nodes);
    TRY(profile->nodes ? 0 : -ENOMEM);
    for (uint32_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && class_of[end] == class_of[i]; end++) {
        }
        char *const list = probe_network_hostlist(names + i, end - i);
        TRY(list ? 0 : -ENOMEM);
        profile->nodes[profile->node_range_count++] =
            (struct profile_node_range){list, end - i, class_of[i]};
    }
    return 0;
}

static int move_classes(struct servet_profile *const *nodes, struct cluster_classes *classes,
                        size_t class_count)
{
    struct servet_profile *profile = classes->profile;
    profile->classes = calloc(class_count, sizeof *profile->classes);
    TRY(profile->classes ? 0 : -ENOMEM);
    for (size_t c = 0; c < class_count; c++) {
        profile->classes[c] = TAKE(nodes[classes->representative[c]]->classes[0]);
        profile->class_count++;
        free(profile->classes[c].name);
        if (asprintf(&profile->classes[c].name, "class %zu", c + 1) < 0) {
            profile->classes[c].name = NULL;
            return -ENOMEM;
        }
    }
    return 0;
}

int probe_network_classes_make(char *const *names, struct servet_profile *const *nodes,
                               uint32_t count, struct cluster_classes *out)
{
    size_t class_count = 0;
    FREED_BY(probe_network_classes_free)
    struct cluster_classes made = {.profile = calloc(1, sizeof *made.profile),
                                   .representative = calloc(count, sizeof *made.representative),
                                   .class_of = calloc(count, sizeof *made.class_of)};
    FREED uint32_t *members = calloc(count, sizeof *members);
    TRY(made.profile && made.representative && made.class_of && members ? 0 : -ENOMEM);
    assign(nodes, count, &made, members, &class_count);
    made.outliers = list_outliers(names, nodes, count, &made);
    TRY(made.outliers ? 0 : -ENOMEM);
    TRY(make_ranges(names, count, made.class_of, made.profile));
    TRY(move_classes(nodes, &made, class_count));
    *out = TAKE(made);
    return 0;
}

void probe_network_classes_free(struct cluster_classes *classes)
{
    profile_free(classes->profile);
    free(classes->representative);
    free(classes->class_of);
    free(classes->outliers);
    memset(classes, 0, sizeof *classes);
}
