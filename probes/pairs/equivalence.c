/* Who belongs together, where each answer is yes or no, and with whom one PU does all that are with
 * it do too: who shares a cache, where nothing says which pairs are alike.
 *
 * All pairs of 512 PUs are 130,816, and minutes. But one pair speaks for all of two groups, and
 * numbers of PUs mostly repeat: as far apart as two that belong together others are that do too. So
 * pairs that lie so far apart are asked first, then one of each two groups that are left. Where
 * numbers repeat that is n pairs and one of each two groups; where they do not, each PU asks half
 * of the groups. */
#include "probes/pairs/pairs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    SURPRISED = 2 /* answers that part two groups whose numbers say that they are one */
};

/* All by position of the PU, or of two of them, row by row. */
struct view {
    const struct equivalence_question *question;
    size_t n;
    uint32_t *group_of; /* the first PU of the group */
    uint8_t *noes;      /* by two groups, the lower first */
    bool *likely;       /* by distance: PUs so far apart were found to belong together */
    bool *busy;         /* by group: one of its pairs is chosen */
};

static uint8_t *noes_of(const struct view *view, size_t i, size_t j)
{
    const size_t a = view->group_of[i], b = view->group_of[j];
    return &view->noes[a < b ? a * view->n + b : b * view->n + a];
}

/* Is the pair's answer there, and does it say something? Pairs of closer classes have theirs. */
static bool is_known(const struct equivalence_question *question, size_t pair)
{
    const struct schedule *schedule = question->schedule;
    return question->outcome->measured[pair] ? probe_schedule_says(schedule, pair)
                                             : schedule->class_of[pair] < question->class;
}

static void join(struct view *view)
{
    const struct equivalence_question *question = view->question;
    for (size_t i = 0, k = 0; i < view->n; i++) {
        for (size_t j = i + 1; j < view->n; j++, k++) {
            const uint32_t a = view->group_of[i], b = view->group_of[j], first = a < b ? a : b;
            if (!is_known(question, k) || question->outcome->values[k] <= 0) {
                continue;
            }
            view->likely[j - i] = true;
            for (size_t pu = 0; a != b && pu < view->n; pu++) {
                const bool one_of = view->group_of[pu] == a || view->group_of[pu] == b;
                view->group_of[pu] = one_of ? first : view->group_of[pu];
            }
        }
    }
}

static void part(struct view *view)
{
    const struct equivalence_question *question = view->question;
    for (size_t i = 0, k = 0; i < view->n; i++) {
        for (size_t j = i + 1; j < view->n; j++, k++) {
            uint8_t *noes = noes_of(view, i, j);
            *noes = (uint8_t)(*noes + (*noes < SURPRISED && is_known(question, k) &&
                                       question->outcome->values[k] <= 0));
        }
    }
}

static void view_free(struct view *view)
{
    free(view->group_of);
    free(view->noes);
    free(view->likely);
    free(view->busy);
}

static int view_make(struct view *view, const struct equivalence_question *question)
{
    const size_t n = question->schedule->pus->count;
    *view = (struct view){.question = question,
                          .n = n,
                          .group_of = malloc((n + 1) * sizeof *view->group_of),
                          .noes = calloc(n * n + 1, sizeof *view->noes),
                          .likely = calloc(n + 1, sizeof *view->likely),
                          .busy = calloc(n + 1, sizeof *view->busy)};
    if (!view->group_of || !view->noes || !view->likely || !view->busy) {
        view_free(view);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        view->group_of[i] = i;
    }
    join(view);
    part(view);
    return 0;
}

/* Pairs whose numbers say that they belong together: of each group one at a time, since most of
 * them join two. */
static bool take_likely(struct view *view, const struct pair_position *pair)
{
    bool *a = &view->busy[view->group_of[pair->i]], *b = &view->busy[view->group_of[pair->j]];
    const bool taken = view->likely[pair->j - pair->i] && a != b && !*a && !*b &&
                       *noes_of(view, pair->i, pair->j) < SURPRISED;
    *a |= taken;
    *b |= taken;
    return taken;
}

/* One of each two groups; most of them part them. */
static bool take_open(struct view *view, const struct pair_position *pair)
{
    uint8_t *noes = noes_of(view, pair->i, pair->j);
    const bool taken = view->group_of[pair->i] != view->group_of[pair->j] && *noes == 0;
    *noes = (uint8_t)(*noes + taken);
    return taken;
}

/* Brings those that are taken to the front, at most one a PU: more is known after them. */
static size_t choose(struct view *view, bool (*take)(struct view *, const struct pair_position *),
                     struct pair_position *pairs, size_t count)
{
    size_t chosen = 0;
    for (size_t k = 0; k < count && chosen < view->n; k++) {
        const struct pair_position pair = pairs[k];
        if (take(view, &pair)) {
            pairs[k] = pairs[chosen];
            pairs[chosen++] = pair;
        }
    }
    return chosen;
}

/* What others say of it; its own answer, if it says nothing, gives way to theirs. */
static void tell(const struct view *view, const struct pair_position *position)
{
    struct schedule_outcome *outcome = view->question->outcome;
    const size_t pair = probe_pair_index(view->n, position->i, position->j);
    const bool together = view->group_of[position->i] == view->group_of[position->j];
    if (!is_known(view->question, pair) &&
        (together || *noes_of(view, position->i, position->j) > 0)) {
        outcome->values[pair] = together;
        outcome->measured_count -= outcome->measured[pair];
        outcome->measured[pair] = false;
    }
}

int probe_equivalence_next(const struct equivalence_question *question, struct pair_position *pairs,
                           size_t count, size_t asked, size_t *chosen)
{
    struct view view;
    int rc = view_make(&view, question);
    if (rc < 0) {
        return rc;
    }
    *chosen = choose(&view, take_likely, pairs + asked, count - asked);
    *chosen = *chosen ? *chosen : choose(&view, take_open, pairs + asked, count - asked);
    for (size_t k = 0; k < count && *chosen == 0; k++) {
        tell(&view, &pairs[k]);
    }
    view_free(&view);
    return 0;
}
