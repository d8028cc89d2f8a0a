/* Prediction from the profile: the bandwidth and cache of each worker of a placement, and how many
 * workers are worth having. */
#pragma once

#include "mapper/weights/weights.h"

/* -- predict -- */

/* How many workers of a placement share each memory domain and cache, the bandwidth and cache that
 * this leaves to each, and how far neighbours in worker order are from each other. Predicted, not
 * measured. */

#define MAP_FIGURE_LEVELS 8 /* memory overhead levels, cache levels: more are not looked at */

struct map_figures {
    uint32_t core_most;                      /* most workers on one core */
    uint32_t memory_levels;                  /* most of any class in use */
    uint32_t memory_most[MAP_FIGURE_LEVELS]; /* by level, worst overhead first: most workers in one
                                                group */
    /* The worker with the least, and the average. Bandwidth by the scaling curves, or else by the
     * pair figure of each level; 0: nothing was measured. */
    double memory_worst_bytes_per_s, memory_mean_bytes_per_s;
    /* By cache level (index 0 is L1): the share of the worker with the least; 0: no worker has such
     * a cache. */
    double cache_worst_bytes[MAP_FIGURE_LEVELS], cache_mean_bytes[MAP_FIGURE_LEVELS];
    uint32_t cache_most[MAP_FIGURE_LEVELS]; /* most workers on one cache */
    /* Between worker i and i + 1; seconds, or ranks of layers where latencies are not known; 0
     * with one worker. */
    double neighbour_mean, neighbour_worst;
};

/* Leaf indices of the view in worker order. 0 or -ENOMEM. */
int map_figures_of(struct map_view *view, const uint32_t *leaves, size_t count,
                   struct map_figures *out);

/* What `workers` get whose loop is an ordinary copy (ordinary stores, pages as the system gives
 * them), where that of the levels gets `bytes_per_s`: the part of it that ordinary copies get where
 * all of a domain make them together, and none more than it gets alone. 0: no ordinary copy was
 * measured. The view is of one node. 0 or -ENOMEM. */
int map_ordinary_copies(struct map_view *view, size_t workers, double bytes_per_s, double *out);

/* The layer between two leaves: the first one that lists them, else the farthest of the profile.
 * NULL: the same leaf, and profiles without layers. */
const struct map_family *map_between(const struct map_view *view, uint32_t a, uint32_t b);
/* Its distance: seconds, or the layer's rank; 0 where there is none. */
double map_pair_distance(const struct map_view *view, uint32_t a, uint32_t b);

/* -- worth -- */

/* A number of workers, or of messages at a time, that reaches this part of the most that any number
 * reaches is worth having; more only wait for one another. The figure is ours: the 2010 paper
 * (Sections III-C, V) says that such a number should be looked for. */
#define MAP_WORTH_SHARE 0.95

struct map_worth {
    size_t workers;              /* the smallest number that gets MAP_WORTH_SHARE of the most */
    double bytes_per_s;          /* predicted of them together, as the levels were measured */
    double ordinary_bytes_per_s; /* the same of ordinary copies; 0: not measured */
    double most_bytes_per_s;     /* predicted of the number that gets most */
    /* Largest number of workers measured in one memory domain; where domains have more, the least
     * of such levels: more workers are assumed to get no more. 0: no level has two of the PUs. */
    uint32_t measured_workers;
};

/* How many of the `allowed` PUs (OS indices of one node of the class) are worth it, and which: one
 * worker after the other goes where memory priority puts it, and each number of them is predicted
 * as --compare does. out_pus (room for allowed->count) gets the places, numbered as map_workers()
 * numbers a known number of workers. 0; -ENODATA (no bandwidth was measured, or not that of a level
 * that two of the PUs share: the text says which); -EINVAL, -ENOMEM as map_workers(). */
int map_worth(const struct profile_class *node_class, const struct profile_set *allowed,
              uint32_t *out_pus, struct map_worth *out, struct servet_error *error);

/* Leaves of `allowed` the PUs where so many workers go: where a quota lets no more of them run.
 * 0; -ENOMEM; as map_workers(). */
int map_worth_keep(const struct servet_profile *profile, enum map_priority priority, size_t most,
                   struct profile_set *allowed, struct servet_error *error);

/* Messages at a time, from which on a layer only queues: the smallest number that moves
 * MAP_WORTH_SHARE of the most messages a second. *most (may be NULL) is the largest number that was
 * measured; as many are returned where none queued, and more may be worth it. 0: not measured. */
uint32_t map_messages_worth(const struct profile_layer *layer, uint32_t *most);

/* -- rows: both of a whole profile, as servet-map --worth and the page of servet-show print
 * them -- */

/* One node, and what of it may be used. */
struct map_part {
    const struct profile_class *of;
    uint32_t first_pu;
    struct profile_set allowed; /* OS indices; owned */
};

/* Node `number` and those of the `allowed` PUs (NULL: all) that are its own. 0 or -ENOMEM. */
int map_part_of_node(const struct servet_profile *profile, uint32_t number,
                     const struct profile_set *allowed, struct map_part *out);
void map_part_free(struct map_part *part);

/* Nodes of a class are equivalent, so one stands for them; groups of a scope that give the same
 * answer are one row. */
struct map_worth_row {
    char scope[64];     /* "node" or the name of its class, "package", "overhead level 0" */
    size_t groups, pus; /* so many groups, of so many PUs each */
    bool measured;
    struct map_worth worth;
    char *places; /* of the first group; NULL: not measured */
};

struct map_queue_row {
    char layer[96];
    uint32_t worth, most; /* map_messages_worth() */
};

struct map_worth_rows {
    struct map_worth_row *rows;
    struct map_queue_row *queues;
    size_t count, queue_count;
};

/* 0; -ENODATA: nothing that it takes was measured, the text says what. Commands alone ask: where
 * memory is short, it ends the program. */
int map_worth_rows_make(const struct servet_profile *profile, const struct profile_set *allowed,
                        struct map_worth_rows *out, struct servet_error *error);
void map_worth_rows_free(struct map_worth_rows *rows);

/* -- suggest: how many ranks with how many threads, what a profile proposes for a hybrid program,
 * before it runs -- */

struct map_suggest_request {
    enum map_priority priority;
    uint32_t nodes;                    /* that the job will have; 0: those of the profile */
    const struct profile_set *allowed; /* PU numbers; NULL: all */
    bool unsized;                      /* sizes of caches were not stated */
};

/* One way to divide a node. */
struct map_suggestion {
    uint32_t ranks, threads;     /* ranks of a node, threads of each */
    double bytes_per_s;          /* predicted of all of a node together; 0: not measured */
    double ordinary_bytes_per_s; /* the same of ordinary copies */
    double cache_bytes; /* of the last cache, what the thread with least has; 0: not known */
    bool chosen;        /* of one of them */
    char why[192];
};

/* Node, packages, one kind of cores, memory domains, the same with fewer threads, last caches,
 * cores, shares of 2 to 8 threads. */
#define MAP_SUGGESTIONS 14

struct map_suggestions {
    struct map_suggestion list[MAP_SUGGESTIONS];
    size_t count;
    enum map_priority priority;
    uint32_t nodes;
    uint32_t cores;       /* of a node: one PU of each counts */
    uint32_t cache_level; /* of cache_bytes; 0: there is no cache */
    bool fed;             /* the chosen one rests on measured bandwidth */
};

/* Divides one node (of the first class that has allowed PUs) along what it shares, and takes a rank
 * for each last cache where a memory domain has several, else ranks alone; memory priority no more
 * threads than the bandwidth feeds, where that was measured. Ends the program where no PU is
 * allowed. */
void map_suggest(const struct servet_profile *profile, const struct map_suggest_request *request,
                 struct map_suggestions *out);

/* The line that starts it. */
void map_suggest_launch(const struct map_suggestions *of, const struct map_suggestion *suggestion,
                        char *text, size_t size);
