#include "packing.h"

struct search {
    const uint32_t *sizes;
    size_t count, domains;
    uint32_t *room;
    size_t steps;
};

/* The smallest room above `last` (by room, then index) that holds `size`: tight domains first, equal ones once. */
static size_t next_tightest(const struct search *s, uint32_t size, uint32_t above)
{
    size_t best = s->domains;
    for (size_t d = 0; d < s->domains; d++) {
        bool fits = s->room[d] >= size && s->room[d] > above;
        if (fits && (best == s->domains || s->room[d] < s->room[best])) {
            best = d;
        }
    }
    return best;
}

static bool fits_from(struct search *s, size_t index)
{
    if (index == s->count) {
        return true;
    }
    uint32_t size = s->sizes[index], above = 0;
    for (;;) {
        size_t domain = next_tightest(s, size, above);
        if (domain == s->domains || ++s->steps > MAP_PACKING_STEPS) {
            return false;
        }
        above = s->room[domain];
        s->room[domain] -= size;
        bool fits = fits_from(s, index + 1);
        s->room[domain] += size;
        if (fits) {
            return true;
        }
    }
}

bool map_packing_fits(const uint32_t *sizes, size_t count, uint32_t *room, size_t domains)
{
    uint64_t need = 0, have = 0;
    for (size_t i = 0; i < count; i++) {
        need += sizes[i];
    }
    for (size_t d = 0; d < domains; d++) {
        have += room[d];
    }
    struct search search = {sizes, count, domains, room, 0};
    return need <= have && fits_from(&search, 0);
}
