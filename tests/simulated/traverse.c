/* A traversal played through the caches of a simulated machine, line by line. Only a sample of the
 * sets is played where sets cannot disturb one another: that keeps a working set of hundreds of
 * MiB within milliseconds. */
#include <math.h>
#include <stdlib.h>

#include "profile/base/cli.h"
#include "tests/simulated/simulated.h"

/* A turn through the working set is simulated until one gives what the last one gave (the steady
 * state that warm passes are for). Lines whose addresses differ modulo every cache's way never meet
 * in a set, so a few of these classes, which behave all alike, stand for all: `NODES_WANTED` nodes
 * make the share of misses exact to a percent or two. */
enum {
    NODES_WANTED = 2000,
    PASSES_MIN = 2,
    FRAMES = 1 << 27 /* so many that two pages of a working set hardly ever share one */
};
static const double steady = 0.004; /* change of the mean latency from turn to turn */

/* Where a node's line is kept in one cache. */
struct sim_place {
    uint64_t line;
    uint32_t slot;
};

/* Addresses. */
struct node {
    uint64_t virtual, physical;
};

struct sim_stream {
    size_t position;    /* of the PU */
    struct node *nodes; /* in the order of the visits */
    const struct sim_path *path;
    struct sim_place *places; /* by node, then cache of the path */
    size_t count;
    double memory_seconds; /* of a load that misses every cache */
    double tlb_seconds;    /* that misses of the TLBs add to each */
};

struct stage {
    struct sim *sim;
    bool neighbour, sibling;
    double owed; /* fractions of intruders' lines */
    struct random random;
};

/* -- addresses -- */

static uint64_t sim_gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Addresses that differ modulo this never share a set. */
static uint64_t class_span(const struct sim *sim)
{
    uint64_t span = sim->page_bytes;
    for (size_t i = 0; i < sim->cache_count; i++) {
        span = sim_gcd(span, sim->caches[i].sets * sim->caches[i].line_bytes);
    }
    return span;
}

static uint64_t frame_of(const struct sim *sim, struct random *random, uint64_t page,
                         size_t page_bytes)
{
    /* Bytes after which colours repeat: larger than any cache's way. */
    enum { COLOURS = 64 << 20 };
    const uint64_t frame = random_below(random, FRAMES);
    const uint64_t colours = page_bytes < COLOURS ? COLOURS / page_bytes : 1;
    return sim->mapping == SIM_PAGES_COLOURED ? frame * colours + page % colours : frame;
}

/* Pages side by side begin anywhere, too: a hash spreads them over slices in another way at each
 * place, and the mean of several places is what a model can tell. */
static void choose_frames(const struct sim *sim, struct random *random, size_t page_bytes,
                          uint64_t *frames, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        frames[i] = i > 0 && sim->mapping == SIM_PAGES_CONTIGUOUS
                        ? frames[i - 1] + 1
                        : frame_of(sim, random, i, page_bytes);
    }
}

/* Which nodes are simulated: of every `span` bytes the first `kept`. */
struct sim_sample {
    uint64_t span, kept;
};

static struct sim_sample choose_sample(const struct sim *sim, const struct machine_traversal *what)
{
    uint64_t span = class_span(sim),
             classes = span > what->stride_bytes ? span / what->stride_bytes : 1;
    uint64_t nodes = what->bytes / what->stride_bytes, kept = 1;
    while (kept < classes && nodes / classes * kept < NODES_WANTED) {
        kept *= 2;
    }
    if (what->order == MACHINE_SPREAD || kept >= classes) {
        return (struct sim_sample){what->bytes, what->bytes};
    }
    return (struct sim_sample){span, kept * what->stride_bytes};
}

/* Where the pages of a working set lie. */
struct memory {
    const uint64_t *frames;
    size_t page;
    uint64_t base;
};

static void add_node(const struct machine_traversal *what, const struct memory *memory,
                     uint64_t node, size_t i, struct sim_stream *stream)
{
    const unsigned page_shift = (unsigned)__builtin_ctzll(memory->page);
    uint64_t at =
        node + (what->order == MACHINE_SPREAD ? machine_spread_offset(i, what->stride_bytes) : 0);
    stream->nodes[stream->count++] = (struct node){
        memory->base + at, memory->base + (memory->frames[at >> page_shift] << page_shift) +
                               (at & (memory->page - 1))};
}

static void add_nodes(const struct machine_traversal *what, const struct sim_sample *sample,
                      const struct memory *memory, struct sim_stream *stream)
{
    for (uint64_t start = 0, i = 0; start < what->bytes; start += sample->span) {
        uint64_t end = start + sample->kept < what->bytes ? start + sample->kept : what->bytes;
        for (uint64_t node = start; node + what->stride_bytes <= end;
             node += what->stride_bytes, i++) {
            add_node(what, memory, node, i, stream);
        }
    }
}

static void make_stream(struct sim *sim, const struct machine_traversal *what, size_t index,
                        struct sim_stream *stream)
{
    struct random random = {what->seed * 977 + stream->position};
    bool huge = what->pages == MACHINE_PAGES_HUGE && sim->huge_page_bytes;
    size_t page = huge ? sim->huge_page_bytes : sim->page_bytes, pages = what->bytes / page + 2;
    struct sim_sample sample = choose_sample(sim, what);
    size_t nodes = (what->bytes / sample.span + 1) * (sample.kept / what->stride_bytes);
    FREED uint64_t *frames = cli_needed(malloc(pages * sizeof *frames));
    stream->nodes = cli_needed(malloc((nodes + 1) * sizeof *stream->nodes));
    uint64_t base = (index + 1) << 44; /* every PU's set is its own memory */
    choose_frames(sim, &random, page, frames, pages);
    add_nodes(what, &sample, &(struct memory){frames, page, base}, stream);
    if (what->order != MACHINE_STRIDE) {
        random_shuffle(&random, stream->nodes, stream->count, sizeof *stream->nodes);
    }
}

/* -- caches -- */

static uint64_t line_at(const struct sim_cache *cache, uint64_t address)
{
    return address / cache->line_bytes + 1;
}

/* The cache of a PU at this depth of its path, and its content. */
static struct sim_cache *cache_of(const struct stage *stage, size_t depth, size_t position)
{
    return &stage->sim->caches[stage->sim->paths[position].caches[depth]];
}

static struct sim_ways *ways_of(const struct stage *stage, size_t depth, size_t position)
{
    struct sim *sim = stage->sim;
    size_t cache = sim->paths[position].caches[depth];
    return &sim->ways[cache][sim->caches[cache].instance_of[position]];
}

/* Looks up once where each line goes, instead of at each visit. Whatever chooses its set, a line is
 * known by its physical address: what a virtually indexed level evicts goes to a cache of victims.
 */
static void find_places(const struct stage *stage, struct sim_stream *stream)
{
    const size_t depth = stream->path->depth;
    stream->places = cli_needed(malloc((stream->count * depth + 1) * sizeof *stream->places));
    for (size_t i = 0; i < stream->count; i++) {
        for (size_t level = 0; level < depth; level++) {
            const struct sim_cache *cache = cache_of(stage, level, stream->position);
            const uint64_t by = cache->indexing == SIM_VIRTUAL ? stream->nodes[i].virtual
                                                               : stream->nodes[i].physical;
            const uint64_t line = line_at(cache, stream->nodes[i].physical);
            uint32_t slot =
                probe_sim_ways_reserve(ways_of(stage, level, stream->position), line_at(cache, by));
            stream->places[i * depth + level] = (struct sim_place){line, slot};
        }
    }
}

/* A line that an inclusive cache evicts leaves the caches before it. A virtually indexed one is
 * found by its physical line: simulated L1s whose ways are larger than a page are not followed
 * here. */
static void leave_earlier(struct stage *stage, size_t level, size_t position, uint64_t line)
{
    const uint32_t line_bytes = cache_of(stage, level, position)->line_bytes;
    for (size_t i = 0; i < level; i++) {
        const struct sim_cache *cache = cache_of(stage, i, position);
        struct sim_ways *ways = ways_of(stage, i, position);
        uint32_t slot = probe_sim_ways_slot(ways, line);
        if (cache->indexing != SIM_VIRTUAL && cache->line_bytes == line_bytes &&
            slot != SIM_NO_SLOT) {
            probe_sim_ways_remove(ways, slot, line);
        }
    }
}

static void fill(struct stage *stage, size_t level, size_t position, uint64_t line, uint32_t slot)
{
    const size_t next_level = level + 1, depth = stage->sim->paths[position].depth;
    uint64_t evicted = probe_sim_ways_fill(ways_of(stage, level, position), slot, line);
    if (evicted == 0) {
        return;
    }
    if (cache_of(stage, level, position)->inclusion == SIM_INCLUSIVE) {
        leave_earlier(stage, level, position, evicted);
    }
    if (next_level < depth && cache_of(stage, next_level, position)->inclusion == SIM_VICTIM) {
        uint32_t next = probe_sim_ways_slot(ways_of(stage, next_level, position), evicted);
        if (next != SIM_NO_SLOT) { /* an intruder's line goes where ours do not */
            fill(stage, next_level, position, evicted, next);
        }
    }
}

/* One load; its latency. */
static double load_line(struct stage *stage, const struct sim_stream *stream, size_t i)
{
    const size_t position = stream->position, depth = stream->path->depth;
    const struct sim_place *places = &stream->places[i * depth];
    size_t hit = 0;
    for (; hit < depth; hit++) {
        struct sim_ways *ways = ways_of(stage, hit, position);
        if (probe_sim_ways_hit(ways, places[hit].slot, places[hit].line)) {
            if (cache_of(stage, hit, position)->inclusion == SIM_VICTIM) {
                probe_sim_ways_remove(ways, places[hit].slot, places[hit].line);
            }
            break;
        }
    }
    for (size_t level = hit; level-- > 0;) {
        if (cache_of(stage, level, position)->inclusion != SIM_VICTIM) {
            fill(stage, level, position, places[level].line, places[level].slot);
        }
    }
    return hit < depth ? cache_of(stage, hit, position)->seconds : stream->memory_seconds;
}

static void intrude(struct stage *stage, size_t position)
{
    struct sim *sim = stage->sim;
    size_t level = stage->sibling ? 0 : sim->paths[position].depth - 1u;
    struct sim_ways *ways = ways_of(stage, level, position);
    stage->owed += stage->sibling ? sim->noise.sibling_lines : sim->noise.neighbour_lines;
    for (; stage->owed >= 1; stage->owed--) {
        uint64_t line = (random_next(&stage->random) >> 20) | (UINT64_C(1) << 45);
        uint32_t slot = probe_sim_ways_slot(ways, line);
        if (slot != SIM_NO_SLOT) {
            probe_sim_ways_fill(ways, slot, line);
        }
    }
}

/* -- one traversal -- */

static double one_turn(struct stage *stage, struct sim_stream *streams, size_t count, double *mean)
{
    size_t longest = 0;
    double sum = 0;
    for (size_t s = 0; s < count; s++) {
        mean[s] = 0;
        longest = streams[s].count > longest ? streams[s].count : longest;
    }
    for (size_t i = 0; i < longest; i++) {
        for (size_t s = 0; s < count; s++) {
            if (i < streams[s].count) {
                mean[s] += load_line(stage, &streams[s], i);
            }
        }
        if (stage->neighbour || stage->sibling) {
            intrude(stage, streams[0].position);
        }
    }
    for (size_t s = 0; s < count; s++) {
        mean[s] /= (double)streams[s].count;
        sum += mean[s];
    }
    return sum;
}

/* TLBs by formula: in a chase every page is visited several times a turn in random order, in
 * MACHINE_SPREAD once. A page more than
 * fits into a set makes all of that set miss then: the least recently used entry is always the one
 * needed next. A stride goes through one page after the other, and only the first load in each can
 * miss. */
static double tlb_seconds(const struct sim *sim, const struct machine_traversal *what, uint32_t pu)
{
    bool huge = what->pages == MACHINE_PAGES_HUGE && sim->huge_page_bytes;
    double page = (double)(huge ? sim->huge_page_bytes : sim->page_bytes), seconds = 0;
    /* Nodes further apart than a page leave pages out. */
    double apart = fmax(page, (double)what->stride_bytes);
    double pages = ceil((double)what->bytes / apart);
    for (size_t i = 0; i < sim->tlb_count; i++) {
        if (!profile_set_has(&sim->tlbs[i].pus, pu)) {
            continue;
        }
        double entries = (double)sim->tlbs[i].entries;
        double miss = pages > entries ? 1 - entries / pages : 0;
        if (what->order != MACHINE_CHASE) {
            miss = fmin(1, (sim->tlbs[i].ways + 1) * miss);
        }
        if (what->order == MACHINE_STRIDE) {
            miss *= (double)what->stride_bytes / apart;
        }
        seconds += miss * sim->tlbs[i].seconds;
    }
    return seconds;
}

static struct stage make_stage(struct sim *sim)
{
    struct stage stage = {.sim = sim, .random = {random_next(&sim->random)}};
    stage.neighbour = random_unit(&sim->random) < sim->noise.neighbour_probability;
    stage.sibling = !stage.neighbour && random_unit(&sim->random) < sim->noise.sibling_probability;
    for (size_t i = 0; i < sim->cache_count; i++) {
        if (!sim->ways[i]) {
            sim->ways[i] = cli_needed(calloc(sim->caches[i].instances, sizeof **sim->ways));
        }
    }
    return stage;
}

/* Empties the caches in front of the PU. */
static void clear_caches(struct stage *stage, size_t position)
{
    for (size_t i = 0; i < stage->sim->paths[position].depth; i++) {
        probe_sim_ways_clear(ways_of(stage, i, position), cache_of(stage, i, position),
                             (uint32_t)random_next(&stage->random));
    }
}

/* Turns in succession that are to give what the one before gave. A policy of ages overshoots, and
 * stands still for a turn where it comes back. */
static uint32_t turns_alike(const struct stage *stage, const struct sim_stream *streams,
                            size_t count)
{
    for (size_t s = 0; s < count; s++) {
        for (size_t level = 0; level < streams[s].path->depth; level++) {
            if (cache_of(stage, level, streams[s].position)->policy == SIM_AGED) {
                return 3;
            }
        }
    }
    return 1;
}

static void run(struct stage *stage, const struct machine_traversal *what,
                struct sim_stream *streams, size_t count, double *seconds)
{
    double before = 0;
    uint32_t alike = 0;
    for (uint32_t turn = 0; turn <= what->warm_passes || turn < 2; turn++) {
        double now = one_turn(stage, streams, count, seconds);
        alike = fabs(now - before) < steady * now ? alike + 1 : 0;
        if (turn >= PASSES_MIN && alike >= turns_alike(stage, streams, count)) {
            break;
        }
        before = now;
    }
    bool ahead =
        what->order == MACHINE_STRIDE && what->stride_bytes <= stage->sim->prefetched_stride_bytes;
    for (size_t s = 0; s < count; s++) {
        double first = cache_of(stage, 0, streams[s].position)->seconds;
        /* A stride prefetcher hides most of what lies beyond the first level. */
        seconds[s] = ahead ? first + 0.1 * (seconds[s] - first) : seconds[s];
        seconds[s] += ahead ? 0 : streams[s].tlb_seconds;
    }
}

int probe_sim_traverse(struct sim *sim, const struct machine_traversal *what, const uint32_t *pus,
                       size_t count, double *seconds_per_access)
{
    FREED struct sim_stream *streams = cli_needed(calloc(count, sizeof *streams));
    struct stage stage = make_stage(sim);
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        const size_t position = profile_set_position(&sim->pus, pus[i]);
        double rate;
        streams[i].position = position;
        streams[i].path = &sim->paths[position];
        streams[i].tlb_seconds = tlb_seconds(sim, what, pus[i]);
        rc = probe_sim_memory_of(sim, what->on_node ? what->numa : -1, pus[i],
                                 &streams[i].memory_seconds, &rate);
        make_stream(sim, what, i, &streams[i]);
        clear_caches(&stage, position);
    }
    for (size_t i = 0; i < count && rc == 0; i++) {
        find_places(&stage, &streams[i]);
    }
    if (rc == 0) {
        run(&stage, what, streams, count, seconds_per_access);
    }
    for (size_t i = 0; i < count; i++) {
        free(streams[i].nodes);
        free(streams[i].places);
    }
    return rc;
}
