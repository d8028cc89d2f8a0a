/* Which thread of this process has which PU. The rules are drawn in pools.h. */
#include "preload/place/pools.h"

#include "preload/base/pages.h"
#include "preload/node/registry_file.h"
#include "preload/place/process.h"
#include "profile/base/format_safe.h"
#include "profile/base/hash.h"

/* -- records -- */

#define BLOCK_RECORDS 256u
#define BLOCKS 256u

static _Atomic(void *) block[BLOCKS];
static atomic_uint used; /* records ever handed out */
static struct pin_thread *free_records;

struct pin_thread *pin_record_at(uint32_t number)
{
    uint32_t index = number - 1;
    struct pin_thread *records =
        atomic_load_explicit(&block[index / BLOCK_RECORDS], memory_order_acquire);
    return &records[index % BLOCK_RECORDS];
}

uint32_t pin_record_count(void)
{
    return atomic_load_explicit(&used, memory_order_acquire);
}

static struct pin_thread *fresh_record(void)
{
    uint32_t index = pin_record_count();
    if (index >= BLOCKS * BLOCK_RECORDS - 1 ||
        !pin_pages_map_once(&block[index / BLOCK_RECORDS],
                            BLOCK_RECORDS * sizeof(struct pin_thread))) {
        return NULL;
    }
    atomic_store_explicit(&used, index + 1, memory_order_release);
    return pin_record_at(index + 1);
}

static void clear_record(struct pin_thread *record)
{
    record->pool = PIN_POOLS;
    record->place = PIN_NO_PLACE;
    atomic_store_explicit(&record->tid, 0, memory_order_relaxed);
    atomic_store_explicit(&record->away, false, memory_order_relaxed);
    atomic_store_explicit(&record->bound, false, memory_order_relaxed);
    atomic_store_explicit(&record->report_line, 0, memory_order_relaxed);
    atomic_store_explicit(&record->pu, PIN_LEFT, memory_order_relaxed);
}

struct pin_thread *pin_record_take(void)
{
    PIN_NEEDS_LOCK();
    struct pin_thread *record = free_records;
    if (record) {
        free_records = record->next_free;
    } else if (!(record = fresh_record())) {
        return NULL;
    }
    clear_record(record);
    return record;
}

void pin_record_give_back(struct pin_thread *record)
{
    PIN_NEEDS_LOCK();
    atomic_store(&record->tid, 0);
    record->next_free = free_records;
    free_records = record;
}

/* They are not given back: the calling thread's own is, when that ends. */
void pin_records_reset(void)
{
    for (uint32_t number = pin_record_count(); number > 0; number--) {
        clear_record(pin_record_at(number));
    }
}

/* -- threads that live briefly -- */

/* A thread that another PU is to run costs some 40 us more than one beside its creator, and what it
 * touches is cold there. With std::async in steps of 2 tasks (fork_join_async in
 * benchmarks/laboratory/preload/programs) placed threads lose where they live less than this, and
 * gain beyond twice as much. */
#define BRIEF_NS 300000u
/* The last so many of a routine's threads decide, of which one may have waited for its PU. */
#define BRIEF_LAST 4u
#define BRIEF_LONGER 1u
/* One in so many threads of a brief routine is looked at. The others are not touched at all: what
 * the shim keeps of a thread would go from PU to PU for each. */
#define BRIEF_SAMPLE 16u
/* Routines that are counted separately. */
#define BRIEF_ROUTINES 64u

static struct routine {
    const void *start;
    unsigned ended, asked;
    uint64_t lived_ns[BRIEF_LAST];
} routines[BRIEF_ROUTINES];

static struct routine *find_routine(const void *start)
{
    struct routine *at = routines;
    while (at < routines + BRIEF_ROUTINES && at->start && at->start != start) {
        at++;
    }
    return at < routines + BRIEF_ROUTINES ? at : NULL;
}

bool pin_brief_is_sampled(const void *start)
{
    struct routine *routine = find_routine(start);
    return routine && ++routine->asked % BRIEF_SAMPLE == 0;
}

bool pin_brief(const void *start)
{
    const struct routine *routine = find_routine(start);
    unsigned longer = 0;
    for (unsigned i = 0; routine && i < BRIEF_LAST && i < routine->ended; i++) {
        longer += routine->lived_ns[i] >= BRIEF_NS;
    }
    return routine && longer < routine->ended && longer <= BRIEF_LONGER;
}

bool pin_brief_ended(const void *start, uint64_t lived_ns)
{
    struct routine *routine = find_routine(start);
    if (routine) {
        routine->start = start;
        routine->lived_ns[routine->ended++ % BRIEF_LAST] = lived_ns;
    }
    return lived_ns < BRIEF_NS;
}

/* -- places -- */

static bool is_free(const struct pin_place *place)
{
    return place->threads == 0 && !place->avoided;
}

/* Tells the registry, unless it knows. False: another job was there first. */
static bool take_place(struct pin_pools *pools, struct pin_place *place, bool is_main, bool beside)
{
    if (!place->ours || !pin_registry_is_kept(pools->registry)) {
        place->ours = pin_registry_take(pools->registry, place->pu, is_main, beside);
        place->avoided = !place->ours;
    }
    return place->ours;
}

static size_t hold(struct pin_pools *pools, size_t at, unsigned pool)
{
    PIN_NEEDS_LOCK();
    pools->places[at].threads++;
    pools->places[at].pool = pool;
    return at;
}

/* The first free place. A main thread without a place mostly waits on the first one: the rest gets
 * that one last. */
static size_t take_free(struct pin_pools *pools, bool is_main, bool is_rest)
{
    const size_t from = is_rest && pools->main_place == PIN_NO_PLACE ? 1 : 0;
    for (size_t i = 0; i < pools->count; i++) {
        const size_t at = (from + i) % pools->count;
        if (is_free(&pools->places[at]) && take_place(pools, &pools->places[at], is_main, false)) {
            return at;
        }
    }
    return PIN_NO_PLACE;
}

/* The place without a thread of this process that has the fewest main threads of other jobs, then
 * the fewest jobs. */
static size_t take_beside_others(struct pin_pools *pools, bool is_main)
{
    size_t best = PIN_NO_PLACE;
    struct pin_company here, least = {0};
    for (size_t at = 0; at < pools->count; at++) {
        if (pools->places[at].threads > 0) {
            continue;
        }
        pin_registry_count(pools->registry, &pools->places[at].pu, 1, &here);
        if (best == PIN_NO_PLACE || here.mains < least.mains ||
            (here.mains == least.mains && here.jobs < least.jobs)) {
            best = at, least = here;
        }
    }
    if (best != PIN_NO_PLACE) {
        take_place(pools, &pools->places[best], is_main, true);
    }
    return best;
}

static void give_place_back(struct pin_pools *pools, size_t place)
{
    PIN_NEEDS_LOCK();
    if (place != PIN_NO_PLACE) {
        pools->places[place].threads--;
    }
}

size_t pin_pools_place_of(const struct pin_pools *pools, uint32_t pu)
{
    size_t at = 0;
    while (at < pools->count && pools->places[at].pu != pu) {
        at++;
    }
    return at < pools->count ? at : PIN_NO_PLACE;
}

int32_t pin_pools_nearest(const struct pin_pools *pools, uint32_t from,
                          const struct profile_mask *among)
{
    const size_t at = pin_pools_place_of(pools, from);
    for (int near = at != PIN_NO_PLACE; near >= 0; near--) {
        for (const struct pin_place *it = pools->places; it < pools->places + pools->count; it++) {
            if (profile_mask_has(among, it->pu) &&
                (!near || it->domain == pools->places[at].domain)) {
                return (int32_t)it->pu;
            }
        }
    }
    return PIN_LEFT;
}

void pin_pools_plan(struct pin_pools *pools, const struct pin_plan *plan)
{
    const struct pin_pools before = *pools;
    struct pin_place *places = plan->places;
    struct profile_mask seen = {0};
    pools->places = places;
    pools->count = 0;
    for (size_t k = 0; k < plan->count; k++) {
        const uint32_t pu = plan->pus[k], domain = places[k].domain;
        if (profile_mask_has(&seen, pu)) {
            continue; /* of a rank with more threads than PUs */
        }
        const size_t i = pools->count++, old = pin_pools_place_of(&before, pu);
        profile_mask_add(&seen, pu);
        places[i] = old != PIN_NO_PLACE ? before.places[old] : (struct pin_place){0};
        places[i].pu = pu;
        places[i].domain = domain;
        places[i].ours = places[i].ours || profile_mask_has(&plan->ours, pu);
        places[i].avoided = !places[i].ours && profile_mask_has(&plan->avoid, pu);
    }
    for (uint32_t number = pin_record_count(); number > 0; number--) {
        struct pin_thread *thread = pin_record_at(number);
        if (thread->place != PIN_NO_PLACE) {
            thread->place = pin_pools_place_of(pools, before.places[thread->place].pu);
        }
    }
}

/* -- pools -- */

unsigned pin_pools_find(struct pin_pools *pools, const char *name)
{
    PIN_NEEDS_LOCK();
    const uint64_t key = profile_hash_text(PROFILE_HASH_BEGIN, name) | 1; /* 0 is free */
    unsigned pool = 0;
    while (pool < PIN_POOLS - 1 && pools->pool[pool].key != 0 && pools->pool[pool].key != key) {
        pool++;
    }
    if (pools->pool[pool].key != key) {
        profile_format_text(pools->pool[pool].name,
                            pools->pool[pool].name + sizeof pools->pool[pool].name, name);
    }
    pools->pool[pool].key = key;
    return pool;
}

static bool is_rest(const struct pin_pools *pools, unsigned pool)
{
    return pool < PIN_POOLS && pool != pools->team;
}

/* All threads of the rest; `several`: of more than one pool. */
static size_t count_rest(const struct pin_pools *pools, bool *several)
{
    size_t threads = 0, with_threads = 0;
    for (unsigned pool = 0; pool < PIN_POOLS; pool++) {
        if (is_rest(pools, pool)) {
            threads += pools->pool[pool].threads;
            with_threads += pools->pool[pool].threads > 0;
        }
    }
    *several = with_threads > 1;
    return threads;
}

size_t pin_pools_place_main(struct pin_pools *pools)
{
    size_t at = 0;
    if (pools->rank) {
        take_place(pools, &pools->places[0], true, true);
    } else {
        at = take_free(pools, true, false);
        at = at != PIN_NO_PLACE ? at : take_beside_others(pools, true);
    }
    pools->main_place = at;
    return at == PIN_NO_PLACE ? at : hold(pools, at, PIN_POOLS);
}

static size_t needs_of_team(const struct pin_pools *pools, size_t threads)
{
    return pools->team_size > threads + 1 ? pools->team_size : threads + 1; /* the main thread */
}

static bool team_fits(const struct pin_pools *pools, size_t threads)
{
    return needs_of_team(pools, threads) <= pools->count;
}

/* When they ended is not known, so the pool may never have been as large as it seemed. */
bool pin_pools_bury(struct pin_pools *pools)
{
    bool any = false;
    for (uint32_t number = pin_record_count(); number > 0; number--) {
        struct pin_thread *thread = pin_record_at(number);
        if (pin_process_thread_is_gone(thread)) {
            pin_pools_end(pools, thread, true);
            pin_record_give_back(thread);
            any = true;
        }
    }
    return any;
}

bool pin_pools_team_fits(struct pin_pools *pools)
{
    const struct pin_pool *team = &pools->pool[pools->team];
    return team_fits(pools, team->threads + 1) ||
           (!team->left && pin_pools_bury(pools) && team_fits(pools, team->threads + 1));
}

/* `pool`: one of whose threads has just come. */
static size_t needs_of_rest(const struct pin_pools *pools, unsigned pool)
{
    bool several;
    const size_t needs = count_rest(pools, &several);
    return needs + pools->pool[pool].most - pools->pool[pool].threads +
           (several && pools->main_place == PIN_NO_PLACE);
}

/* Do all threads of the rest have places? */
static bool rest_fits(const struct pin_pools *pools, unsigned pool)
{
    size_t places = 0;
    const size_t needs = needs_of_rest(pools, pool);
    for (size_t at = 0; at < pools->count; at++) {
        const struct pin_place *place = &pools->places[at];
        places += is_free(place) || (place->threads > 0 && is_rest(pools, place->pool));
    }
    return needs <= places;
}

void pin_pools_note_cause(struct pin_pools *pools, unsigned number)
{
    struct pin_pool *pool = &pools->pool[number];
    size_t avoided = 0;
    for (size_t at = 0; at < pools->count; at++) {
        avoided += pools->places[at].avoided && pools->places[at].threads == 0;
    }
    pool->needs =
        is_rest(pools, number) ? needs_of_rest(pools, number) : needs_of_team(pools, pool->threads);
    pool->cause = pool->needs > pools->count             ? PIN_CAUSE_TOO_MANY
                  : pool->needs > pools->count - avoided ? PIN_CAUSE_HELD
                                                         : PIN_CAUSE_TEAM;
}

static void leave_pool(struct pin_pools *pools, unsigned pool)
{
    pools->pool[pool].left = true;
    for (uint32_t number = pin_record_count(); number > 0; number--) {
        struct pin_thread *thread = pin_record_at(number);
        if (thread->pool == pool && thread->place != PIN_NO_PLACE) {
            give_place_back(pools, thread->place);
            thread->place = PIN_NO_PLACE;
            pin_process_leave(thread);
        }
    }
}

/* The watch takes places that become free, by this descriptor: files that are opened later it does
 * not have (watch.c). */
static void keep_registry_open(struct pin_pools *pools)
{
    const struct pin_file file = pin_registry_begin(pools->registry);
    (void)pin_registry_keep(pools->registry, file);
    pin_registry_end(file);
}

static void leave_pools(struct pin_pools *pools, bool team)
{
    for (unsigned pool = 0; pool < PIN_POOLS; pool++) {
        if (pools->pool[pool].threads > 0 && is_rest(pools, pool) == !team) {
            pin_pools_note_cause(pools, pool);
            leave_pool(pools, pool);
        }
    }
    keep_registry_open(pools);
    if (team && pools->main_place != PIN_NO_PLACE && !pools->rank) {
        give_place_back(pools, pools->main_place);
        pools->main_place = PIN_NO_PLACE;
        pin_process_leave(NULL);
    }
}

bool pin_pools_loosen(struct pin_pools *pools, unsigned number)
{
    struct pin_pool *pool = &pools->pool[number];
    if (!is_rest(pools, number) || pool->left) {
        return false;
    }
    pool->needs = needs_of_rest(pools, number);
    pool->cause = PIN_CAUSE_STRANGERS;
    leave_pool(pools, number);
    return true;
}

static size_t admit_to_team(struct pin_pools *pools)
{
    size_t at = PIN_NO_PLACE;
    bool several;
    if (team_fits(pools, pools->pool[pools->team].threads)) {
        at = take_free(pools, false, false);
        if (at == PIN_NO_PLACE && count_rest(pools, &several) > 0) {
            leave_pools(pools, false);
            at = take_free(pools, false, false);
        }
        at = at != PIN_NO_PLACE ? at : take_beside_others(pools, false);
    }
    if (at == PIN_NO_PLACE) {
        leave_pools(pools, true);
    }
    return at;
}

static size_t admit_to_rest(struct pin_pools *pools, unsigned pool)
{
    size_t at = rest_fits(pools, pool) ? take_free(pools, false, true) : PIN_NO_PLACE;
    if (at == PIN_NO_PLACE && pin_pools_bury(pools) && rest_fits(pools, pool)) {
        at = take_free(pools, false, true);
    }
    if (at == PIN_NO_PLACE) {
        leave_pools(pools, false);
    }
    return at;
}

size_t pin_pools_admit(struct pin_pools *pools, unsigned pool, size_t wanted)
{
    struct pin_pool *mine = &pools->pool[pool];
    mine->left = mine->left && mine->threads > 0;
    mine->threads++;
    mine->most = mine->threads > mine->most ? mine->threads : mine->most;
    size_t at = wanted;
    if (mine->left && mine->cause != PIN_CAUSE_STRANGERS) {
        pin_pools_note_cause(pools, pool);
    }
    if (wanted != PIN_NO_PLACE) {
        take_place(pools, &pools->places[at], false, true);
    } else if (!mine->left) {
        at = is_rest(pools, pool) ? admit_to_rest(pools, pool) : admit_to_team(pools);
    }
    return at == PIN_NO_PLACE ? at : hold(pools, at, pool);
}

size_t pin_pools_threads(const struct pin_pools *pools)
{
    size_t threads = 0;
    for (unsigned pool = 0; pool < PIN_POOLS; pool++) {
        threads += pools->pool[pool].threads;
    }
    return threads;
}

void pin_pools_avoid(struct pin_pools *pools, const struct profile_mask *pus)
{
    for (size_t at = 0; at < pools->count; at++) {
        struct pin_place *place = &pools->places[at];
        place->avoided = !place->ours && profile_mask_has(pus, place->pu);
    }
}

bool pin_pools_are_left(const struct pin_pools *pools)
{
    bool left = false;
    for (unsigned pool = 0; pool < PIN_POOLS; pool++) {
        const struct pin_pool *it = &pools->pool[pool];
        left |=
            it->left && it->threads > 0 && is_rest(pools, pool) && it->cause != PIN_CAUSE_TOO_MANY;
    }
    return left;
}

size_t pin_pools_place_rest(struct pin_pools *pools, bool is_calm)
{
    size_t count = 0;
    for (unsigned pool = 0; pool < PIN_POOLS; pool++) {
        struct pin_pool *it = &pools->pool[pool];
        if (is_rest(pools, pool) && it->left && it->threads > 0 &&
            (is_calm || it->cause != PIN_CAUSE_STRANGERS) && rest_fits(pools, pool)) {
            it->left = false;
            it->cause = PIN_CAUSE_NONE;
        }
    }
    for (uint32_t number = 1; number <= pin_record_count(); number++) {
        struct pin_thread *thread = pin_record_at(number);
        if (atomic_load(&thread->tid) == 0 || thread->place != PIN_NO_PLACE ||
            !is_rest(pools, thread->pool) || pools->pool[thread->pool].left ||
            atomic_load(&thread->bound)) {
            continue;
        }
        const size_t at = take_free(pools, false, true);
        if (at == PIN_NO_PLACE) {
            break;
        }
        thread->place = hold(pools, at, thread->pool);
        pin_process_put(thread, (int32_t)pools->places[at].pu);
        count++;
    }
    return count;
}

void pin_pools_lose(struct pin_pools *pools, struct pin_thread *thread)
{
    give_place_back(pools, thread->place);
    thread->place = PIN_NO_PLACE;
    atomic_store(&thread->pu, PIN_LEFT);
}

void pin_pools_end(struct pin_pools *pools, struct pin_thread *thread, bool was_brief)
{
    if (thread->pool < PIN_POOLS) {
        struct pin_pool *pool = &pools->pool[thread->pool];
        pool->threads--;
        pool->most = was_brief ? pool->threads : pool->most;
    }
    pin_pools_lose(pools, thread);
    thread->pool = PIN_POOLS;
}

bool pin_pools_move(struct pin_pools *pools, struct pin_thread *thread, int32_t pu)
{
    size_t *held = thread ? &thread->place : &pools->main_place, at = PIN_NO_PLACE;
    if (pu >= 0) {
        at = pin_pools_place_of(pools, (uint32_t)pu);
        if (at == PIN_NO_PLACE || pools->places[at].threads > 0 ||
            !take_place(pools, &pools->places[at], !thread, false)) {
            return false;
        }
        hold(pools, at, thread ? thread->pool : PIN_POOLS);
    }
    give_place_back(pools, *held);
    *held = at;
    return true;
}
