/* How many ranks with how many threads: what a profile proposes for a hybrid program, before it
 * runs. */
#ifndef SERVET_MAPPER_WORTH_SUGGEST_H
#define SERVET_MAPPER_WORTH_SUGGEST_H

#include "mapper/worth/worth.h"

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

#endif
