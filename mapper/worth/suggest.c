/* How many ranks with how many threads (2012 paper, Section 4.5, for one rank a node): the ways to
 * divide a node are those along which it shares something, a rank for each package, memory domain,
 * last cache or core. Each is mapped and predicted as --compare does; nothing is measured. */
#include "mapper/worth/worth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/map.h"
#include "profile/base/cli.h"
#include "profile/query.h"
#include "profile/scope.h"

/* Most threads of a rank that gets a share of a cache or of a memory domain. */
#define MOST_SHARED 8

/* One way to divide: so many parts, the smallest of so many cores. */
struct division {
    uint32_t parts, least, most;
    size_t covered; /* cores in all parts */
    char name[32];
};

struct suggesting {
    struct map_part node;
    struct profile_set cores; /* OS indices: one PU of each core that is counted */
    struct division memory, cache;
    struct map_suggestions *out;
};

/* -- the cores that count -- */

/* Is it the lowest allowed PU of its core? */
static bool stands_for_core(const struct map_part *node, uint32_t pu)
{
    const struct profile_set *core = profile_group_of(&node->of->cores, pu);
    for (size_t i = 0; core && i < core->count && core->ids[i] < pu; i++) {
        if (profile_set_has(&node->allowed, core->ids[i])) {
            return false;
        }
    }
    return true;
}

static void choose_cores(struct suggesting *s)
{
    const struct profile_set *allowed = &s->node.allowed;
    s->cores.ids = cli_needed(calloc(allowed->count + 1, sizeof *s->cores.ids));
    for (size_t i = 0; i < allowed->count; i++) {
        if (stands_for_core(&s->node, allowed->ids[i])) {
            s->cores.ids[s->cores.count++] = allowed->ids[i];
        }
    }
}

/* -- divisions -- */

static void count_part(struct division *d, const struct profile_set *group,
                       const struct profile_set *cores)
{
    uint32_t inside = 0;
    for (size_t i = 0; i < group->count; i++) {
        inside += profile_set_has(cores, group->ids[i]);
    }
    if (inside) {
        d->least = !d->parts || inside < d->least ? inside : d->least;
        d->most = inside > d->most ? inside : d->most;
        d->parts++;
        d->covered += inside;
    }
}

/* Groups that hold each core once. Parts 0: they do not. */
static struct division divide(const struct profile_relation *by, const struct profile_set *cores)
{
    struct division d = {0};
    for (size_t g = 0; g < by->group_count; g++) {
        count_part(&d, &by->groups[g], cores);
    }
    return d.covered == cores->count ? d : (struct division){0};
}

/* Memory domains of two cores and more, the smallest there are; those of SMT siblings are cores. */
static struct division by_memory(const struct suggesting *s)
{
    const struct profile_class *of = s->node.of;
    struct division best = {.name = "NUMA node"};
    for (size_t i = 0; i < of->numa_count; i++) {
        count_part(&best, &of->numa[i].pus, &s->cores);
    }
    if (best.covered != s->cores.count || best.least < 2) {
        best = (struct division){0};
    }
    for (size_t i = 0; i < of->memory.level_count; i++) {
        struct division d = divide(&of->memory.levels[i].collisions, &s->cores);
        snprintf(d.name, sizeof d.name, "memory domain");
        best = d.least >= 2 && d.parts > best.parts ? d : best;
    }
    return best;
}

/* The largest level that two cores share. */
static struct division by_cache(const struct suggesting *s)
{
    struct division last = {0};
    for (size_t i = 0; i < s->node.of->cache_count; i++) {
        const struct profile_cache *cache = &s->node.of->caches[i];
        struct division d = divide(&cache->sharing, &s->cores);
        snprintf(d.name, sizeof d.name, "L%u cache", cache->level);
        last = d.least >= 2 ? d : last;
    }
    return last;
}

/* -- suggestions -- */

/* Maps and predicts it. */
static void predict(struct suggesting *s, struct map_suggestion *suggestion)
{
    struct map_node_view one;
    FREED_BY(map_view_free) struct map_view view = {0};
    struct map_figures figures;
    struct servet_error error;
    const struct servet_profile *node = map_one_node(s->node.of, &one);
    const size_t count = (size_t)suggestion->ranks * suggestion->threads;
    const uint32_t level = s->out->cache_level;
    const struct map_request request = {.priority = s->out->priority,
                                        .workers = suggestion->ranks,
                                        .threads_each = suggestion->threads,
                                        .allowed = &s->cores};
    cli_check(map_view_make(node, s->out->priority, count, &view, &error), &error);
    uint32_t *pus = cli_needed(map_arena_get(&view.arena, count, sizeof *pus));
    cli_check(map_domains(node, &request, pus, &error), &error);
    for (size_t i = 0; i < count; i++) {
        pus[i] = map_view_leaf(&view, pus[i]);
    }
    cli_done(map_figures_of(&view, pus, count, &figures));
    suggestion->bytes_per_s = figures.memory_mean_bytes_per_s * (double)count;
    suggestion->cache_bytes =
        level && level <= MAP_FIGURE_LEVELS ? figures.cache_worst_bytes[level - 1] : 0;
    cli_done(map_ordinary_copies(&view, count, suggestion->bytes_per_s,
                                 &suggestion->ordinary_bytes_per_s));
}

/* The row of that many ranks and threads, which may be another division's as well; a new one has no
 * reason yet. */
static struct map_suggestion *find_or_add(struct map_suggestions *out, uint32_t ranks,
                                          uint32_t threads)
{
    struct map_suggestion *at = out->list, *last = &out->list[out->count];
    while (at < last && (at->ranks != ranks || at->threads != threads)) {
        at++;
    }
    out->count += at == last;
    at->ranks = ranks;
    at->threads = threads;
    return at;
}

static void say_why(struct map_suggestion *suggestion, const char *between, const char *words)
{
    size_t used = strlen(suggestion->why);
    snprintf(suggestion->why + used, sizeof suggestion->why - used, "%s%s", used ? between : "",
             words);
}

static struct map_suggestion *add_division(struct suggesting *s, const struct division *d)
{
    char words[96];
    if (!d->parts) {
        return NULL;
    }
    struct map_suggestion *at = find_or_add(s->out, d->parts, d->least);
    bool added = !at->why[0];
    if (d->parts == 1) {
        if (added) {
            say_why(at, "", "one rank, no messages inside the node");
        }
        return at;
    }
    snprintf(words, sizeof words, "%s%s%s", added ? "a rank for each " : "", d->name,
             d->least < d->most ? " (of the smallest)" : "");
    say_why(at, ", ", words);
    return at;
}

/* As many threads as the memory feeds; NULL: all of the division's, or not measured. */
static struct map_suggestion *add_fed(struct suggesting *s, const struct division *d)
{
    struct map_worth worth;
    struct servet_error why;
    FREED uint32_t *places = cli_needed(calloc(s->cores.count, sizeof *places));
    int rc = map_worth(s->node.of, &s->cores, places, &worth, &why);
    bool bends = rc == 0 &&
                 (double)worth.workers < MAP_WORTH_SHARE * MAP_WORTH_SHARE * (double)s->cores.count;
    uint32_t threads = bends ? ((uint32_t)worth.workers + d->parts - 1) / d->parts : d->least;
    if (threads >= d->least) {
        return NULL;
    }
    char words[96];
    struct map_suggestion *at = find_or_add(s->out, d->parts, threads);
    snprintf(words, sizeof words, "for programs that memory limits: %.0f %% of its bandwidth",
             MAP_WORTH_SHARE * 100);
    say_why(at, "; ", words);
    return at;
}

static const struct profile_kind *most_capable(const struct profile_class *of)
{
    const struct profile_kind *best = of->kind_count > 1 ? &of->kinds[0] : NULL;
    for (size_t i = 1; i < of->kind_count; i++) {
        best = of->kinds[i].efficiency > best->efficiency ? &of->kinds[i] : best;
    }
    return best;
}

/* Where work is shared out evenly, the others wait for a lesser core. */
static void add_lesser_kind(struct suggesting *s)
{
    const struct profile_kind *kind = most_capable(s->node.of);
    struct division fast = {0};
    if (!kind) {
        return;
    }
    count_part(&fast, &kind->pus, &s->cores);
    if (fast.parts && fast.covered < s->cores.count) {
        say_why(find_or_add(s->out, 1, fast.least), "; ",
                "the most capable kind of core alone, where even shares wait for the slowest");
    }
}

/* Equal shares of the parts that ranks should not cross, of 2 to 8 threads. */
static void add_shares(struct suggesting *s, const struct division *of)
{
    char words[96];
    snprintf(words, sizeof words, "equal shares of a %s", of->name);
    for (uint32_t threads = MOST_SHARED; threads > 1 && of->least == of->most; threads--) {
        if (of->least % threads == 0 && threads < of->least) {
            struct map_suggestion *at =
                find_or_add(s->out, of->parts * (of->least / threads), threads);
            say_why(at, "", at->why[0] ? "" : words);
        }
    }
}

/* A rank for each last cache where a memory domain has several, else ranks alone: the rule that
 * came nearest to the best of what others published (docs/EVIDENCE.md). Where memory was measured
 * and feeds fewer, memory priority takes these. */
static void add_all(struct suggesting *s)
{
    uint32_t count = (uint32_t)s->cores.count;
    struct division node = {.parts = 1, .least = count, .most = count, .name = "node"};
    struct division cores = {.parts = count, .least = 1, .most = 1, .name = "core"};
    struct division packages = divide(&s->node.of->packages, &s->cores);
    snprintf(packages.name, sizeof packages.name, "package");
    (void)add_division(s, &node);
    (void)add_division(s, &packages);
    const struct division *widest = packages.parts ? &packages : &node;
    const struct division *domains = s->memory.parts ? &s->memory : widest;
    const bool caches = s->cache.parts > domains->parts;
    add_lesser_kind(s);
    (void)add_division(s, &s->memory);
    struct map_suggestion *fed = s->out->priority == MAP_MEMORY ? add_fed(s, domains) : NULL;
    struct map_suggestion *taken = add_division(s, &s->cache);
    struct map_suggestion *alone = add_division(s, &cores);
    add_shares(s, caches ? &s->cache : domains);
    taken = fed ? fed : caches ? taken : alone;
    s->out->fed = fed;
    taken->chosen = true;
}

/* The first node with allowed PUs, and how many there are. */
static void find_first_node(const struct servet_profile *profile, const struct profile_set *allowed,
                            struct map_part *out, uint32_t *nodes)
{
    for (uint32_t n = 0; n < profile_node_count(profile); n++) {
        struct map_part part;
        cli_done(map_part_of_node(profile, n, allowed, &part));
        *nodes += part.allowed.count > 0;
        if (part.allowed.count && !out->allowed.count) {
            *out = part;
        } else {
            map_part_free(&part);
        }
    }
}

void map_suggest(const struct servet_profile *profile, const struct map_suggest_request *request,
                 struct map_suggestions *out)
{
    struct suggesting s = {.out = out};
    *out = (struct map_suggestions){.priority = request->priority};
    find_first_node(profile, request->allowed, &s.node, &out->nodes);
    if (!s.node.allowed.count) {
        cli_usage("expected at least one PU that may be used");
    }
    choose_cores(&s);
    const struct profile_class *of = s.node.of;
    out->cores = (uint32_t)s.cores.count;
    out->cache_level =
        of->cache_count && !request->unsized ? of->caches[of->cache_count - 1].level : 0;
    out->nodes = request->nodes ? request->nodes : out->nodes;
    s.memory = by_memory(&s);
    s.cache = by_cache(&s);
    add_all(&s);
    for (size_t i = 0; i < out->count; i++) {
        predict(&s, &out->list[i]);
    }
    map_part_free(&s.node);
    profile_set_free(&s.cores);
}

void map_suggest_launch(const struct map_suggestions *of, const struct map_suggestion *suggestion,
                        char *text, size_t size)
{
    char launcher[96] = "";
    uint64_t ranks = (uint64_t)suggestion->ranks * of->nodes;
    if (of->nodes > 1) {
        snprintf(launcher, sizeof launcher, "mpirun -n %lu --map-by ppr:%u:node ",
                 (unsigned long)ranks, suggestion->ranks);
    } else if (ranks > 1) {
        snprintf(launcher, sizeof launcher, "mpirun -n %u ", suggestion->ranks);
    }
    snprintf(text, size, "%senv OMP_NUM_THREADS=%u servet-pin --%s-prior -- ./app", launcher,
             suggestion->threads, of->priority == MAP_MEMORY ? "mem" : "comm");
}
