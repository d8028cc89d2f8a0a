/* Why a mapping is what it is, where the table would be too large: how many workers every kind of
 * group got. */
#include "mapper/command/command.h"

#include <stdlib.h>
#include <string.h>

#include "mapper/weights/weights.h"
#include "profile/base/cli.h"
#include "profile/scope.h"

/* More workers in one group than this are counted together. */
#define MOST_COUNTED 1024

struct summing {
    FILE *out;
    struct map_view *view;
    const struct map_mapping *plan;
    uint32_t *count;     /* by leaf: workers in the group that it is the lowest of; or the last
                            count_groups() that found the group */
    uint32_t *histogram; /* by number of workers: groups */
    uint32_t counted;    /* how often count_groups() has counted */
};

/* A relation without groups has nothing to say. */
static bool says_something(const struct map_view *view, int which)
{
    for (size_t c = 0; c < view->class_count; c++) {
        const struct map_groups *groups = map_class_groups(&view->classes[c], which);
        if (!groups || groups->group_count) {
            return true;
        }
    }
    return false;
}

/* In how many groups of the relation the rank is. */
static uint32_t count_groups(struct summing *s, size_t rank, int which)
{
    const struct map_mapping *plan = s->plan;
    const uint32_t counted = ++s->counted;
    uint32_t groups = 0;
    for (size_t i = plan->first[rank]; i < plan->first[rank + 1]; i++) {
        uint32_t leaf = map_view_leaf(s->view, plan->places[i].pu);
        uint32_t *last = &s->count[map_lowest_leaf(s->view, leaf, which)];
        groups += *last != counted;
        *last = counted;
    }
    return groups;
}

/* The ranks in more groups than their cores need. Cores themselves, and all that is no larger, are
 * no boundary. */
static void print_crossing(struct summing *s, int which)
{
    const struct map_view *view = s->view;
    uint32_t most = 0;
    memset(s->count, 0, view->leaf_count * sizeof *s->count);
    for (uint32_t leaf = 0; leaf < view->leaf_count; leaf++) {
        if (map_lowest_leaf(view, leaf, MAP_CORES) == leaf) {
            uint32_t cores = ++s->count[map_lowest_leaf(view, leaf, which)];
            most = cores > most ? cores : most;
        }
    }
    memset(s->count, 0, view->leaf_count * sizeof *s->count);
    FREED_BY(profile_set_free)
    struct profile_set ranks = {cli_needed(calloc(s->plan->rank_count, sizeof *ranks.ids)), 0};
    for (size_t r = 0; most > 1 && r < s->plan->rank_count; r++) {
        uint32_t cores = count_groups(s, r, MAP_CORES);
        if (count_groups(s, r, which) > (cores + most - 1) / most) {
            ranks.ids[ranks.count++] = (uint32_t)r;
        }
    }
    if (ranks.count) {
        FREED char *text = cli_needed(profile_set_text(&ranks));
        fprintf(s->out, "; crossed by rank%s %s", ranks.count > 1 ? "s" : "", text);
    }
}

static void print_groups(struct summing *s, const char *name, int which)
{
    const struct map_view *view = s->view;
    uint32_t groups = 0;
    if (!says_something(view, which)) {
        return;
    }
    memset(s->count, 0, view->leaf_count * sizeof *s->count);
    memset(s->histogram, 0, (MOST_COUNTED + 1) * sizeof *s->histogram);
    for (size_t i = 0; i < s->plan->place_count; i++) {
        s->count[map_lowest_leaf(view, map_view_leaf(view, s->plan->places[i].pu), which)]++;
    }
    for (uint32_t leaf = 0; leaf < view->leaf_count; leaf++) {
        if (map_lowest_leaf(view, leaf, which) == leaf) {
            groups++;
            s->histogram[s->count[leaf] < MOST_COUNTED ? s->count[leaf] : MOST_COUNTED]++;
        }
    }
    fprintf(s->out, "%-26s %8u:", name, groups);
    const char *separator = " ";
    for (uint32_t workers = MOST_COUNTED + 1; workers-- > 0;) {
        if (s->histogram[workers]) {
            fprintf(s->out, "%s%u with %u%s", separator, s->histogram[workers], workers,
                    workers == MOST_COUNTED ? " or more" : "");
            separator = ", ";
        }
    }
    print_crossing(s, which);
    fputc('\n', s->out);
}

static void print_class(struct summing *s, const struct map_class *class)
{
    const struct profile_class *of = class->of;
    char name[64];
    for (size_t f = class->family_count; f-- > 0;) {
        size_t level = f - of->cache_count, layer = level - of->memory.level_count - 1;
        if (class->families[f].rule == MAP_TIE_PACKAGE) {
            continue; /* said before the classes */
        }
        if (class->families[f].rule == MAP_RULE_CACHE) {
            snprintf(name, sizeof name, "L%u caches", of->caches[f].level);
        } else if (class->families[f].rule == MAP_RULE_MEMORY) {
            snprintf(name, sizeof name, "memory domains, level %zu", level + 1);
        } else {
            const char *known = of->communication.layers[layer].name;
            snprintf(name, sizeof name, "layer %zu%s%.20s", layer + 1, known ? " " : "",
                     known ? known : "");
        }
        print_groups(s, name, (int)f);
    }
}

/* How many ranks every GPU and network card of the nodes that are used has; how many of them lie
 * elsewhere. */
static void print_held(FILE *out, const struct map_mapping *plan)
{
    static const char *const names[] = {[PROFILE_GPU] = "GPUs", [PROFILE_NIC] = "network cards"};
    const struct map_devices *devices = plan->devices;
    for (size_t kind = PROFILE_GPU; devices && kind <= PROFILE_NIC; kind++) {
        size_t held = 0, far = 0;
        for (size_t i = 0; i < devices->count; i++) {
            bool ours = (size_t)devices->held[i].device->kind == kind;
            held += ours;
            far += ours && devices->held[i].far;
        }
        if (held) {
            fprintf(out, "%-26s %8zu given to %zu ranks, %zu of them to ranks elsewhere\n",
                    names[kind], held, plan->rank_count, far);
        }
    }
}

/* The ranks that have some of their PUs near their GPUs. */
static void print_partly_near(FILE *out, const struct map_mapping *plan)
{
    const char *between = "partly near their GPUs     rank ";
    for (size_t r = 0; r < plan->rank_count; r++) {
        const size_t count = plan->first[r + 1] - plan->first[r];
        const size_t near = map_mapping_near(plan, r);
        if (near && near < count) {
            fprintf(out, "%s%zu (%zu of %zu)", between, r, near, count);
            between = ", rank ";
        }
    }
    fputs(*between == ',' ? "\n" : "", out);
}

void map_explain_summary(FILE *out, const struct map_mapping *plan)
{
    FREED_BY(map_view_free) struct map_view view;
    struct servet_error error;
    cli_check(map_view_make(plan->profile, plan->priority, plan->place_count, &view, &error),
              &error);
    struct summing s = {.out = out, .view = &view, .plan = plan};
    s.count = cli_needed(map_arena_get(&view.arena, view.leaf_count, sizeof *s.count));
    s.histogram = cli_needed(map_arena_get(&view.arena, MOST_COUNTED + 1, sizeof *s.histogram));
    fprintf(
        out,
        "%zu workers on %u PUs of %u nodes, %s priority; groups of each kind by their workers\n",
        plan->place_count, view.leaf_count, view.node_count,
        plan->priority == MAP_MEMORY ? "memory" : "communication");
    print_groups(&s, "nodes", MAP_NODES);
    print_groups(&s, "packages", MAP_PACKAGES);
    if (view.class_count == 1) {
        print_class(&s, &view.classes[0]);
    }
    print_groups(&s, "cores", MAP_CORES);
    print_held(out, plan);
    print_partly_near(out, plan);
}

/* Width of a column: "-123.45*" and a space. */
#define COLUMN 7

/* A weight as the paper writes it where it is whole, else with two digits (it is exact only as a
 * fraction). */
static void print_weight(FILE *out, int64_t value, int64_t denominator, bool chosen)
{
    char text[32];
    if (value % denominator == 0) {
        snprintf(text, sizeof text, "%ld%s", (long)(value / denominator), chosen ? "*" : "");
    } else {
        snprintf(text, sizeof text, "%.2f%s", (double)value / (double)denominator,
                 chosen ? "*" : "");
    }
    fprintf(out, "%*s", COLUMN, text);
}

static void print_explained(FILE *out, const struct map_row *row, const int64_t *values, bool mark)
{
    for (size_t i = 0; i < row->pu_count; i++) {
        if (row->taken[i]) {
            fprintf(out, "%*s", COLUMN, "-");
        } else {
            print_weight(out, values[i], row->denominator, mark && row->pus[i] == row->chosen);
        }
    }
    fputc('\n', out);
}

void map_explain_row(void *context, const struct map_row *row)
{
    FILE *out = context;
    if (row->worker == 0) {
        fprintf(out, "%5s %-7s", "Iter.", "Core");
        for (size_t i = 0; i < row->pu_count; i++) {
            fprintf(out, "%*u", COLUMN, row->pus[i]);
        }
        fputc('\n', out);
    }
    bool nothing_before = true;
    for (size_t i = 0; i < row->pu_count; i++) {
        nothing_before =
            nothing_before && !row->taken[i] && !row->rule1[i] && !row->rule2[i] && !row->rule3[i];
    }
    const int64_t *rules[] = {row->rule1, row->rule2, row->rule3};
    fprintf(out, "%5zu ", row->worker + 1);
    for (int rule = 0; rule < 3 && (row->worker > 0 || !nothing_before); rule++) {
        fprintf(out, "Rule %d ", rule + 1);
        print_explained(out, row, rules[rule], false);
        fprintf(out, "%6s", "");
    }
    fprintf(out, "%-7s", "Total");
    print_explained(out, row, row->total, true);
    if (row->by_sum != row->chosen) {
        fprintf(out, "%6s%-7s %u, not %u: the rules are compared in order, not added\n", "",
                "Order", row->chosen, row->by_sum);
    }
}
