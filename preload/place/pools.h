/* Threads, pools and places: which thread of this process has which PU.
 *
 * A *place* is one PU of the process's plan, in the order of the weights. At most one thread of the
 * process has it; what finds no place is left to the kernel, within the process's own set.
 *
 * A *pool* is the threads of one library, or of the program itself. The *team* is the pool of the
 * first OpenMP runtime whose threads the main thread makes: its threads depend on one another, and
 * the main thread is the first of them. All other pools are the *rest*: they are placed whole or
 * left whole, and give their places back when the team needs them.
 *
 *   team    places that are free; else those of the rest; else, where other jobs hold every PU, it
 *           is laid over them, main threads apart. More threads than PUs: left.
 *   rest    places that no other thread, job or busy program has. A main thread that is in no team
 *           waits in most programs with one pool and is not counted; with several pools it works.
 *
 * The lock of the process guards all of it. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/node/registry.h"
#include "preload/place/plan.h"
#include "profile/base/mask.h"
#include "profile/processes/threads.h"

/* In place of a PU: the kernel places the thread, within the set that the process may use. */
#define PIN_LEFT (-2)
#define PIN_NO_PLACE SIZE_MAX

/* -- threads -- */

/* The figures that the watch keeps of a thread, for itself. */
struct pin_watched {
    uint64_t born_ns;           /* when that one was made: the record may be another's by now */
    uint64_t seen_at_ns;        /* the last look (0: none) */
    uint64_t ran_ns, waited_ns; /* in all, until then */
    uint64_t lately_ns;         /* of `ran_ns`, since the look before */
    int32_t home;               /* 1 + the PU that the watch took it from; 0: it is there */
    unsigned char home_idled;   /* so many looks in turn */
    bool waits;
};

/* One record for each thread that the shim has a hand in, from before its creation until it
 * ends. */
struct pin_thread {
    const void *routine; /* the code that it was made to run; its lifetime is counted there */
    atomic_int pu;       /* or PIN_LEFT; these two are a profile_thread_record */
    struct pin_thread *next_free;
    unsigned pool;    /* PIN_POOLS: none, a helper or a thread that lives briefly */
    size_t place;     /* or PIN_NO_PLACE */
    int32_t made_on;  /* the PU that it was made on; PIN_LEFT: any of the process; else not known */
    atomic_int tid;   /* the kernel's number of it; 0: it has not begun, or has ended */
    atomic_bool away; /* on the mask of children for a moment */
    atomic_bool bound; /* by the program since */
    bool is_c11;       /* its start routine returns an int */
    uint64_t born_ns;
    struct pin_watched watched;
    atomic_uint report_line; /* 0: none */
    enum profile_role role;
    atomic_int decider; /* enum profile_decider */
    const char *dso;
    void *start, *argument;
};

/* Records come from memory of the shim's own (mapped in blocks, never given back, reused): the
 * program's malloc may be its own, may create threads, and may be what is being set up. NULL:
 * memory is short, or 65,535 are in use. The lock is held. */
struct pin_thread *pin_record_take(void);
void pin_record_give_back(struct pin_thread *record);
/* How many there are, also of threads that do not run, and each by its number (1 …). */
uint32_t pin_record_count(void);
struct pin_thread *pin_record_at(uint32_t number);
/* In the child of a fork, where none of those threads is. */
void pin_records_reset(void);

/* -- threads that live briefly -- */

/* Does `routine` make threads that end before a move to another PU has paid? */
bool pin_brief(const void *routine);
/* Is the next one of its threads to be looked at? */
bool pin_brief_is_sampled(const void *routine);
/* One of its threads has ended after `lived_ns`. Was that brief? */
bool pin_brief_ended(const void *routine, uint64_t lived_ns);

/* -- pools and places -- */

/* Pools that are counted separately; further ones share the last. */
#define PIN_POOLS 8u

/* Why threads of a pool have no places. */
enum pin_cause {
    PIN_CAUSE_NONE,
    PIN_CAUSE_TOO_MANY,  /* more threads than PUs */
    PIN_CAUSE_HELD,      /* other jobs, or busy programs, have too many of the PUs */
    PIN_CAUSE_STRANGERS, /* its threads waited beside other programs, and no PU idled */
    PIN_CAUSE_TEAM,      /* the team has too many of the PUs */
    PIN_CAUSE_MASK,      /* the program gave one */
};

struct pin_pool {
    uint64_t key;  /* 0: free */
    char name[32]; /* of its DSO; "": the program */
    size_t threads, most;
    bool left;
    enum pin_cause cause;
    size_t needs; /* threads that were to have places when it was left */
};

struct pin_pools {
    size_t count;
    struct pin_place *places; /* the plan's, each PU once */
    struct pin_pool pool[PIN_POOLS];
    unsigned team;     /* a pool's number, PIN_POOLS: there is none */
    size_t main_place; /* or PIN_NO_PLACE */
    size_t team_size;  /* the main thread included, as OMP_NUM_THREADS says; 0: unknown */
    bool rank;         /* the plan is this rank's part of the node */
    struct pin_registry *registry;
};

/* The places of a plan, in place of those of an earlier one: threads that have a place keep it. */
void pin_pools_plan(struct pin_pools *pools, const struct pin_plan *plan);

/* The place of a PU, or PIN_NO_PLACE. */
size_t pin_pools_place_of(const struct pin_pools *pools, uint32_t pu);
/* The first PU of `among`, in the memory domain of `from` if one is there; PIN_LEFT: none. */
int32_t pin_pools_nearest(const struct pin_pools *pools, uint32_t from,
                          const struct profile_mask *among);
/* The pool of the DSO called `name`. */
unsigned pin_pools_find(struct pin_pools *pools, const char *name);

/* A place for the main thread; PIN_NO_PLACE: none. A rank gets the first of its part. */
size_t pin_pools_place_main(struct pin_pools *pools);
/* Does the team have room with one thread more? */
bool pin_pools_team_fits(struct pin_pools *pools);
/* A place for one more thread of the pool, which counts from now on; `wanted`: this very one, or
 * PIN_NO_PLACE. PIN_NO_PLACE: it is left to the kernel, and with it its pool or others. */
size_t pin_pools_admit(struct pin_pools *pools, unsigned pool, size_t wanted);
/* Notes why the pool has no places. */
void pin_pools_note_cause(struct pin_pools *pools, unsigned pool);
/* Threads of all pools. */
size_t pin_pools_threads(const struct pin_pools *pools);
/* Other jobs, or busy programs, have `pus`, and no other ones. */
void pin_pools_avoid(struct pin_pools *pools, const struct profile_mask *pus);
/* Leaves a pool of the rest whole, since other programs compute on its PUs. False: it was left
 * before, or is the team. */
bool pin_pools_loosen(struct pin_pools *pools, unsigned pool);
/* Is a pool of the rest left for which there may be room later? */
bool pin_pools_are_left(const struct pin_pools *pools);
/* Such pools get places if all of their threads have one; those that were loosened where it is
 * calm. The number of threads. */
size_t pin_pools_place_rest(struct pin_pools *pools, bool is_calm);
/* Threads that have ended without a word give back what they had. True: there were any. */
bool pin_pools_bury(struct pin_pools *pools);
/* The thread has no place any more, and counts on. */
void pin_pools_lose(struct pin_pools *pools, struct pin_thread *thread);
/* The thread has ended, or could not be made. A pool is as large as it ever was, but for threads
 * that live briefly. */
void pin_pools_end(struct pin_pools *pools, struct pin_thread *thread, bool was_brief);
/* Gives the thread (NULL: the main thread) the place of `pu`, if no thread of this process has it
 * and no other job; PIN_LEFT: takes its place from it. False: nothing was changed. */
bool pin_pools_move(struct pin_pools *pools, struct pin_thread *thread, int32_t pu);
