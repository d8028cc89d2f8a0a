/* The second look at the last level. It has a search of its own because its shapes (slices,
 * victims) would multiply every other level's. To see it: `accuracy --list`. */
#include "probes/cache/cache.h"

#include <math.h>
#include <stdlib.h>

/* Chosen on simulated machines (the part "train" of benchmarks/probes/machines.py), in units of the
 * objective. A power of two counts little: where sets, ways and slices make a size, it is built
 * about as often as any other. */
static const double size_weight = 1;  /* of the catalogue's prior; the search's own is 10 */
static const double unusual_ways = 2; /* those that last levels are seldom built with */
static const double victims = 1;      /* a cache that holds what another evicted */
/* Of last levels random replacement is as usual as LRU, with or without victims (Arm's and Apple's
 * system level caches), and a price on it makes its slow rise pass for that of a cache a quarter
 * larger, of fewer ways. Leaky ones and those of four ages are seldom so large. */
static const double policy_price[CACHE_POLICIES] = {
    [CACHE_LEAKY] = 5, [CACHE_AGED] = 4, [CACHE_ADAPTIVE] = 3};

/* What is off a shape is off all along a knee: differences of the objective say less than as many
 * points that are off by chance would, by so many times. The doubt that told.c finds at the knees
 * of other levels is 2 to 4. */
static const double doubt = 2;
/* A last level is asked for to 10 % (accuracy.c), and what is listed stands for sizes up to half
 * way to the next. So a size is as good as the true one within the first of these, and then the
 * less so the farther off, to nothing at the second. A step from one to nothing would tell of a
 * likely size and a less likely one 20 % larger one in the middle, 9 % off both. */
static const double as_good = 1.05;
static const double no_good = 1.12;
/* Told is the likeliest size of those whose use to be expected is this part of the best's, or
 * more. */
static const double as_useful = 0.9;

/* Shapes are known to less than the 2 % of the first search. But what one is off, it is off all
 * along a knee: points that lie closer together than those of the even grid count the less. Points
 * of the levels before say little of this one, and what their shapes are off would hide it. */
static const double relative_floor = 0.01;
static const double earlier_up_to =
    4; /* times the level before, but no further than half way to this level */
static const double earlier_weight = 0.2;

static const uint64_t smallest_last =
    2u << 20; /* bytes; smaller caches are neither sliced nor shared by many */
static const double size_reach = 1.6;   /* sizes up to so many times smaller or larger are tried */
static const double least_distance = 2; /* from the level before */

/* To how many parts of a set's reach a line may go at random: slices, of which a hash chooses, or
 * as many pages as lie side by side in a way. More than the last cannot be told from it. */
static const struct {
    uint32_t count;
    bool of_victims; /* tried of caches of victims as well, each of which takes long */
} parts[] = {{1, true},   {2, true},  {3, false},  {4, true},   {6, false}, {8, true},
             {12, false}, {16, true}, {24, false}, {48, false}, {256, true}};
enum { PARTS = sizeof parts / sizeof *parts };

/* Miss shares by working set over size, of which alone those of a shape depend (but for what the
 * level before holds): 1/4, a smaller one never misses, to 4. */
enum { TABLE_STEPS = 32, TABLE_OCTAVES = 4, TABLE_COUNT = TABLE_STEPS * TABLE_OCTAVES + 1 };
static const double table_from = 0.25;

/* What is known of one size, of all shapes that were tried in it. */
struct of_size {
    uint64_t bytes;
    double prior;
    double likely;                /* relative to the others: the sum over all shapes */
    double least;                 /* objective, how often the size is built aside */
    struct cache_last_found best; /* range not set */
};

/* All columns are weighted. */
struct search {
    const struct cache_last *last;
    double gram[CACHE_COLUMNS_MAX][CACHE_COLUMNS_MAX], right[CACHE_COLUMNS_MAX], total;
    double count;    /* of the points, by what they count */
    double *weights; /* 1 / error in units of `relative_floor` */
    double *fixed,
        *latencies; /* columns: the terms that stay, one after the other, and what was measured */
    double *column;
    double table[TABLE_COUNT]; /* of the shape that is tried */
    struct of_size *sizes;
    size_t size_count;
    double first; /* objective, that the others are likely relative to */
};

static void fill_table(struct search *search, struct cache_shape shape)
{
    shape.bytes = UINT64_C(1) << 30; /* any: large enough for whole bytes */
    shape.behind_bytes = 0;
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        double ratio = table_from * exp2((double)i / TABLE_STEPS);
        search->table[i] = probe_cache_miss_share(&shape, (uint64_t)(ratio * (double)shape.bytes),
                                                  search->last->curve->page_bytes);
    }
}

/* Whether the table has it: lines that nothing scatters make corners, and where what the level
 * before holds counts it is not the ratio alone. */
static bool is_in_table(const struct cache_shape *shape, double ratio)
{
    const bool holds =
        shape->behind_bytes && (shape->policy == CACHE_PLRU || shape->policy == CACHE_RANDOM);
    return shape->slices > 1 && !holds && ratio < table_from * (1 << TABLE_OCTAVES);
}

static double from_table(const struct search *search, double ratio)
{
    const double at = log2(ratio / table_from) * TABLE_STEPS;
    const size_t i = (size_t)at;
    return search->table[i] + (at - (double)i) * (search->table[i + 1] - search->table[i]);
}

static double miss_share(const struct search *search, const struct cache_shape *shape, double bytes)
{
    const double ratio = (bytes - (double)shape->behind_bytes) / (double)shape->bytes;
    if (ratio <= table_from) {
        return 0;
    }
    return is_in_table(shape, ratio)
               ? from_table(search, ratio)
               : probe_cache_miss_share(shape, (uint64_t)bytes, search->last->curve->page_bytes);
}

static void note(struct search *search, struct of_size *size, const struct cache_last_found *found,
                 double without_size)
{
    if (search->first == INFINITY) {
        search->first = found->objective;
    }
    /* within what a double holds, however far the first was off */
    const double better = (search->first - found->objective) / (2 * doubt);
    size->likely += exp(fmin(better, 600));
    size->least = fmin(size->least, without_size);
    if (found->objective < size->best.objective) {
        size->best = *found;
    }
}

static void try_shape(struct search *search, const struct cache_shape *shape, double price,
                      struct of_size *size)
{
    const struct cache_curve *curve = search->last->curve;
    const size_t n = search->last->fixed_count, points = curve->count;
    struct cache_last_found found = {.shape = *shape};
    for (size_t i = 0; i < points; i++) {
        search->column[i] = search->weights[i] * miss_share(search, shape, curve->bytes[i]);
    }
    for (size_t i = 0; i < n; i++) {
        search->gram[i][n] = search->gram[n][i] =
            probe_cache_dot(search->fixed + i * points, search->column, points);
    }
    search->gram[n][n] = probe_cache_dot(search->column, search->column, points);
    search->right[n] = probe_cache_dot(search->latencies, search->column, points);
    double rss = probe_cache_solve_positive(search->gram, search->right, search->total, n + 1,
                                            found.coefficients);
    double without_size =
        search->count * log(rss / search->count + relative_floor * relative_floor) + price;
    found.objective = without_size + size_weight * size->prior;
    note(search, size, &found, without_size);
}

static void try_sizes(struct search *search, struct cache_shape shape, double price)
{
    if (shape.slices > 1) {
        fill_table(search, shape);
    }
    for (size_t i = 0; i < search->size_count; i++) {
        shape.bytes = search->sizes[i].bytes;
        try_shape(search, &shape, price, &search->sizes[i]);
    }
}

static void try_policy(struct search *search, struct cache_shape shape, bool unusual)
{
    const double price = policy_price[shape.policy] + (unusual ? unusual_ways : 0);
    for (size_t i = 0; i < PARTS; i++) {
        shape.slices = parts[i].count;
        shape.behind_bytes = 0;
        try_sizes(search, shape, price);
        if (shape.policy != CACHE_ADAPTIVE && !unusual && parts[i].of_victims) {
            shape.behind_bytes = search->last->before_bytes;
            try_sizes(search, shape, price + (shape.policy == CACHE_RANDOM ? 0 : victims));
        }
    }
}

static void try_all(struct search *search)
{
    static const struct {
        uint32_t ways;
        bool unusual;
    } kinds[] = {{8, true},   {9, true},   {10, true},  {11, false}, {12, false}, {13, true},
                 {14, true},  {15, false}, {16, false}, {17, true},  {18, true},  {19, true},
                 {20, false}, {21, true},  {22, true},  {23, true},  {24, true},  {32, true}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        for (int policy = 0; policy < CACHE_POLICIES; policy++) {
            try_policy(
                search,
                (struct cache_shape){.ways = kinds[i].ways, .policy = (enum cache_policy)policy},
                kinds[i].unusual);
        }
    }
}

/* Columns in units of this search, and what is the same for all shapes. */
static void set_fixed(struct search *search)
{
    const struct cache_last *last = search->last;
    const size_t points = last->curve->count;
    const double before = (double)last->before_bytes, found = (double)last->found_bytes;
    const double earlier = last->earlier_bytes > 0
                               ? last->earlier_bytes
                               : fmin(earlier_up_to * before, sqrt(before * found));
    for (size_t i = 0; i < points; i++) {
        double own = last->curve->error_s ? last->curve->error_s[i] / relative_floor : 0;
        const double bytes = last->curve->bytes[i];
        double counts = bytes < earlier || (last->later_bytes > 0 && bytes > last->later_bytes)
                            ? earlier_weight
                            : sqrt(probe_cache_point_share(last->curve, i));
        search->weights[i] = counts / hypot(last->curve->seconds[i], own);
        search->count += counts * counts;
        search->latencies[i] = search->weights[i] * last->curve->seconds[i];
        for (size_t j = 0; j < last->fixed_count; j++) {
            search->fixed[j * points + i] = last->fixed[j][i] * search->weights[i];
        }
    }
    search->total = probe_cache_dot(search->latencies, search->latencies, points);
    for (size_t i = 0; i < last->fixed_count; i++) {
        for (size_t j = 0; j < last->fixed_count; j++) {
            search->gram[i][j] =
                probe_cache_dot(search->fixed + i * points, search->fixed + j * points, points);
        }
        search->right[i] = probe_cache_dot(search->fixed + i * points, search->latencies, points);
    }
}

/* The sizes that are tried. */
static void list_sizes(struct search *search, const struct cache_size *sizes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const double bytes = (double)sizes[i].bytes;
        const struct cache_last *last = search->last;
        if (bytes < size_reach * fmax((double)last->found_bytes, (double)last->joined_bytes) &&
            bytes > (double)last->found_bytes / size_reach &&
            bytes >= least_distance * (double)last->before_bytes) {
            search->sizes[search->size_count++] = (struct of_size){
                .bytes = sizes[i].bytes,
                .prior = sizes[i].prior,
                .least = INFINITY,
                .best = {.objective = INFINITY},
            };
        }
    }
}

/* What telling this size is worth, by how good it is should another be the true one. */
static double use_of(const struct search *search, const struct of_size *told)
{
    double sum = 0;
    for (size_t i = 0; i < search->size_count; i++) {
        const struct of_size *size = &search->sizes[i];
        const double off = fabs(log((double)told->bytes / (double)size->bytes));
        const double good = (log(no_good) - off) / (log(no_good) - log(as_good));
        sum += size->likely * fmin(1, fmax(0, good));
    }
    return sum;
}

/* Of few ways a smaller cache misses as a larger one of more does: many shapes of many sizes
 * explain a curve, and which does best is chance. So told is a size near which most of what is
 * likely lies, and of several such the likeliest. */
static const struct of_size *likeliest(const struct search *search)
{
    const struct of_size *best = NULL;
    double most = 0;
    for (size_t i = 0; i < search->size_count; i++) {
        most = fmax(most, use_of(search, &search->sizes[i]));
    }
    for (size_t i = 0; i < search->size_count; i++) {
        const struct of_size *size = &search->sizes[i];
        if (use_of(search, size) >= as_useful * most && (!best || size->likely > best->likely)) {
            best = size;
        }
    }
    return best;
}

/* Sizes that explain the curve about as well as the best does, how often they are built aside; and
 * since not every size is listed, half way to the next ones. */
static void set_range(const struct search *search, struct cache_last_found *found)
{
    const struct of_size *sizes = search->sizes;
    const size_t count = search->size_count;
    size_t low = count, high = 0;
    double best = INFINITY;
    for (size_t i = 0; i < count; i++) {
        best = fmin(best, sizes[i].least);
        found->objective = fmin(found->objective, sizes[i].best.objective);
    }
    for (size_t i = 0; i < count; i++) {
        if (sizes[i].least <= best + search->last->margin || sizes[i].bytes == found->shape.bytes) {
            low = low == count ? i : low;
            high = i;
        }
    }
    found->low_bytes = (sizes[low].bytes + sizes[low > 0 ? low - 1 : low].bytes) / 2;
    found->high_bytes = (sizes[high].bytes + sizes[high + 1 < count ? high + 1 : high].bytes) / 2;
}

bool probe_cache_last_refine(const struct cache_last *last, struct cache_last_found *out)
{
    size_t count;
    const struct cache_size *sizes = probe_cache_sizes(&count);
    struct search search = {.last = last, .first = INFINITY};
    if (last->found_bytes < smallest_last) {
        return false;
    }
    const size_t points = last->curve->count;
    search.sizes = malloc(count * sizeof *search.sizes);
    search.column = malloc(points * (3 + last->fixed_count) * sizeof *search.column);
    if (search.sizes && search.column) {
        search.weights = search.column + points;
        search.latencies = search.weights + points;
        search.fixed = search.latencies + points;
        set_fixed(&search);
        list_sizes(&search, sizes, count);
        try_all(&search);
    }
    const struct of_size *chosen = likeliest(&search);
    if (chosen) {
        *out = chosen->best;
        set_range(&search, out);
    }
    free(search.sizes);
    free(search.column);
    return chosen != NULL;
}
