/* What the files of preload/place/ promise one another and the rest of the room. */
#ifndef SERVET_PRELOAD_PLACE_PLACE_H
#define SERVET_PRELOAD_PLACE_PLACE_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "preload/node/node.h"
#include "preload/place/options.h"
#include "profile/base/mask.h"
#include "profile/model.h"

/* -- nodes of memory -- */

/* MAX_NUMNODES is at most 1 << 10 in every configuration of the kernel. */
#define PIN_NODES 1024u
#define PIN_NODE_WORD_BITS (8u * (unsigned)sizeof(unsigned long))

struct pin_nodes {
    unsigned long word[PIN_NODES / PIN_NODE_WORD_BITS];
};

/* -- pages -- */

/* What `*at` points to, mapped by the first of all threads that ask; never given back. NULL: there
 * is no memory. */
void *pin_pages_map_once(_Atomic(void *) *at, size_t bytes);

/* Called once in the thread that the process began with, on its stack. */
void pin_pages_start(void);

/* Calls `work`, on a stack of our own if the calling thread has little left of its own, or runs on
 * one that the program has made for a coroutine. `is_first` is for the thread that the process
 * began with, whose stack grows. 0 or -ENOMEM, and it has not been called. Keeps errno. */
int pin_pages_with_stack(bool is_first, void (*work)(void));

/* -- owner -- */

/* Who owns a thread: the DSO (shared object or program) whose code the thread was made to run.
 *
 * Position says nothing: Open MPI starts two threads of its own before any OpenMP worker, MPICH
 * one, a singleton none.
 */

enum pin_owner {
    PIN_APPLICATION, /* the program, its libraries, and everything that no list names */
    PIN_RUNTIME,     /* a worker of an OpenMP runtime */
    PIN_POOL,        /* a worker of a numeric library's or task library's own pool */
    PIN_HELPER,      /* progress, event and management threads: they never take a worker's place */
};

/* Lists that go before the built-in one: "pattern,…", where a pattern is the beginning of a file
 * name, or matches all of it with the wildcards of a shell. The texts must stay. */
void pin_owner_extend(const char *helpers, const char *workers);

/* Class of the DSO at `path` (by its file name alone). "" is the main program, which patterns know
 * by its name. */
enum pin_owner pin_owner_of_name(const char *path);

/* Class of the thread that pthread_create(…, start, argument) makes, and in `*dso` (may be NULL)
 * the file name without folder of the DSO, "" for the main program; valid while that DSO is loaded.
 * For std::thread, whose start routine is always in libstdc++, the DSO of the state object's
 * virtual table counts. Takes no lock where glibc >= 2.35. */
enum pin_owner pin_owner_of_thread(const void *start, const void *argument, const char **dso);

/* Class of the code at `address`, for answering by caller. */
enum pin_owner pin_owner_of_code(const void *address, const char **dso);

/* Is the DSO with this file name a library by which programs look where they are (hwloc,
 * libnuma)? */
bool pin_owner_looks(const char *name);

/* Is this the program of a managed runtime (Java, Node, Ruby, .NET, Go, Erlang …), which sizes its
 * pools by the processors it counts and schedules its own threads on them? Then it is left alone,
 * unless SERVET_WORKERS names the program. Looked up once. */
bool pin_owner_program_is_managed(void);

/* Is an OpenMP runtime among the loaded DSOs? */
bool pin_owner_runtime_loaded(void);

/* -- launcher -- */

/* What the launcher of a parallel program says in the environment: which of the node's ranks this
 * process is, and who chose the mask it was started with. No MPI library is asked, so one shim
 * serves all of them.
 */

struct pin_plan;

/* Ranks of one node at most; a variable that says more is not believed. */
#define PIN_MOST_RANKS PROFILE_MASK_PUS

enum pin_binding {
    PIN_SHARED_MASK, /* nobody bound the ranks one by one: all of the node have the same mask */
    PIN_LAUNCHERS_CHOICE, /* the launcher bound this rank by its own default */
    PIN_USERS_CHOICE, /* bound because the user asked (--bind-to, --cpu-bind), or as far as one can
                         tell */
};

struct pin_launcher {
    /* "Open MPI", …; NULL: not started by a launcher we know, the rest is then 0 */
    const char *name;
    uint32_t local_rank;
    uint32_t local_size; /* ranks on this node, > local_rank; 1 where a user's binding gives the
                            rank PUs of its own */
    uint32_t node_rank, node_ranks; /* the same whoever has bound them: which of how many on this
                                       node */
    enum pin_binding binding;
    uint64_t job; /* the same for all ranks of a job on this node, and for no other job that runs;
                     0: not known */
};

/* Reads the launcher's variables. With `rebind`, a binding by Slurm counts as the launcher's
 * choice. */
void pin_launcher_read(bool rebind, struct pin_launcher *out);

/* The PUs that the job may use on this node, given the mask this process was started with.
 *
 * A binding chosen by the launcher on its own is not a user's choice: then it is the mask of the
 * launcher's daemon on this node (the nearest ancestor of that kind: mpirun, orted …), which has
 * what the user, the batch system or the container gave to it (`taskset -c 1 mpirun …` gives 1).
 * Slurm's daemons may use the whole node; there it is what Slurm gave to all tasks of the step on
 * this node. In every other case it is `start` itself. */
void pin_launcher_allowed(const struct pin_launcher *launcher, const struct profile_mask *start,
                          struct profile_mask *out);

/* The nearest ancestor that is a launcher or its daemon; 0: none is near. */
pid_t pin_launcher_process(void);

/* Has this node more ranks of the job than PUs that the job may use here? False where no launcher
 * tells. */
bool pin_launcher_oversubscribed(const struct pin_launcher *launcher,
                                 const struct profile_mask *start);

/* The places that servet-pin exports for the rank it becomes, for OpenMP runtimes and for the shim.
 *
 * A rank's region is exported as OMP_PLACES (one PU for each thread, in the order of the slots) and
 * OMP_PROC_BIND=close, and the rank starts on the whole region, so that a runtime counts its PUs
 * and no others. SERVET_RANK tells the shim that these two are not the user's choice, for which
 * rank they were made, and the mask that was there before: from that the shim makes the same plan,
 * and it is the mask that children of the rank get back. As soon as one of the variables is
 * changed, or the process is another rank (mpirun inside a rank), they count as the user's again.
 */

/* Has the user placed OpenMP threads by OMP_PLACES and the like? What was exported for any rank
 * exported counts too. */
bool pin_users_places_set(void);

/* Sets OMP_PLACES, OMP_PROC_BIND and SERVET_RANK in the environment of this process, which may use
 * `before`. 0 or -ENOMEM. */
int pin_places_export(const struct pin_launcher *launcher, const struct profile_mask *before,
                      const struct pin_plan *plan);

/* Is the environment still what pin_places_export() made of it for this very rank? Then `before`
 * is set. */
bool pin_places_read(const struct pin_launcher *launcher, struct profile_mask *before);

/* -- plan -- */

/* Where this process's threads go: the mapper's answer for the profile of this machine, as a list
 * of slots.
 *
 * A process by itself has one slot for every PU that it may use, in the order of `servet-map -n N`.
 * The ranks of one node deal these slots out among themselves: with OMP_NUM_THREADS = T > 1 each
 * rank has its region of T PUs (map_domains); otherwise rank r of L has slots r, r + L, r + 2L …,
 * so that the first L are the ranks' main threads as `servet-map -n L` orders them and threads that
 * a rank makes without having said so find PUs that no other rank has.
 */

struct pin_plan {
    uint32_t *pus; /* PU of each slot, by OS index; slot 0 is the main thread's */
    size_t count;  /* at least 1 */
    /* what the process, and all ranks of its job on this node, are sure to use */
    struct profile_mask held;
    struct pin_nodes nodes;  /* NUMA nodes of the PUs of `own` */
    struct profile_mask own; /* those PUs: what OpenMP runtimes are told that they have */
    char source[256];        /* what it was made from, in words */
};

/* First number of OMP_NUM_THREADS ("4,2" has one for each level of nesting), 0 without one. */
uint32_t pin_plan_threads(void);

/* Makes the plan for a process that may use `allowed`, around what other programs hold, and enters
 * what it is sure to use into the registry (`claims`). `threads` is what OMP_NUM_THREADS says, 0 if
 * it says nothing. A profile that cannot be used is one line on stderr, said by the first of a
 * node's ranks, and the plan is made from the declared topology. 0 or -errno (said on stderr). */
int pin_plan_make(const struct pin_options *options, const struct pin_launcher *launcher,
                  uint32_t threads, const struct profile_mask *allowed, struct pin_claims *claims,
                  struct pin_plan *out);

/* The PU that the weights give to one more worker where `taken` is taken. 0, -errno. */
int pin_plan_next(const struct pin_options *options, const struct pin_launcher *launcher,
                  const struct profile_mask *allowed, const struct profile_mask *taken,
                  uint32_t *out);

void pin_plan_free(struct pin_plan *plan);

/* -- kept -- */

/* Plans that the next program of this user takes over, in place of making the same again.
 *
 * A plan is a function of the profile or topology, of what may be used and what is taken, of the
 * rank and of few options. Whoever has made one keeps it in the registry under all of these; who
 * finds it there does not read the profile at all.
 */

/* What a plan depends on besides the PUs allowed and taken. */
#define PIN_BASIS_WORDS 16
struct pin_basis {
    uint64_t word[PIN_BASIS_WORDS];
};

/* `path`: of the profile, "" where there is none. False: plans of this one are not kept. */
bool pin_kept_basis(const struct pin_options *options, const struct pin_launcher *launcher,
                    uint32_t threads, const char *path, struct pin_basis *out);

struct pin_around {
    const struct profile_mask *allowed, *taken;
};

/* The plan that is kept, between begin and commit; `plan` is left as it is where none is. */
bool pin_kept_recall(const struct pin_basis *basis, const struct pin_around *around,
                     const struct pin_claims *claims, struct pin_plan *plan);

/* Keeps a plan; the registry is open. */
void pin_kept_keep(const struct pin_basis *basis, const struct pin_around *around,
                   struct pin_claims *claims, const struct pin_plan *plan);

/* -- build -- */

/* Which build this code is of; 0: not known. */
uint64_t pin_build_here(void);

/* -- slots -- */

/* One record for each thread that the shim has a hand in, from before its creation until it ends.
 *
 * Records come from the shim's own memory (mapped in blocks, never given back, reused), because the
 * program's malloc may be its own, may create threads, and may be the thing that is being set up.
 * Lock-free.
 */

/* What the watch knows of a thread. */
struct pin_watched {
    atomic_int tid;                 /* 0: not watched */
    atomic_bool away;               /* on the mask of children for a moment */
    pid_t seen_tid;                 /* of the thread that the figures are of */
    uint64_t seen_at_ns, waited_ns; /* when it was looked at last; how long it had waited, in all */
    uint64_t moved_at_ns;           /* 0: never */
};

/* In place of a PU: strangers are everywhere, and the kernel places the thread. */
#define PIN_LOOSE (-2)

struct pin_thread {
    _Atomic(uint32_t) next; /* of a free record: the next free one's number, 0: none */
    uint32_t number;        /* 1, 2, … */
    uint32_t slot, pool;
    atomic_bool runs; /* settled on its PU, and not ended */
    int32_t tid;      /* only where a sandbox of all threads is made; 0: not known */
    atomic_int pu;    /* -1: no PU of its own but all of the plan; PIN_LOOSE */
    bool has_slot;
    struct pin_watched watched;
    uint32_t report_line; /* 0: none */
    const char *dso, *role, *decided_by;
    void *start, *argument;
};

/* A free record, or NULL when memory is short or 65,535 are in use. */
struct pin_thread *pin_record_take(void);
void pin_record_give_back(struct pin_thread *record);
/* All records, those of threads that do not run too. */
void pin_records_each(void (*visit)(struct pin_thread *record));
/* How many there are, and each by its number (1 …). */
uint32_t pin_record_count(void);
struct pin_thread *pin_record_at(uint32_t number);
/* In the child of a fork, where none of those threads is: they hold nothing any more. */
void pin_records_reset(void);

/* Which slot of the plan a new thread takes, and how many threads are on each.
 *
 * Threads are counted per pool (an OpenMP runtime, a numeric library's pool, the application's own
 * threads), because a pool that sleeps must not push the workers of another one together: a new
 * thread takes the slot that has the fewest threads of its own pool (the main thread counts in
 * every pool, for it works in all of them), then the fewest in all, then the first in the plan.
 * Slots are owned and given back, so a pool that shrinks and grows keeps every PU used.
 *
 * Lock-free: a claim reads the counts and takes the slot by compare-and-swap.
 */

/* Different pools in one process that are told apart; any further ones share the last. */
#define PIN_POOLS 8u

struct pin_slots {
    size_t count;
    atomic_uint *total; /* threads on each slot */
    atomic_uint *own;   /* PIN_POOLS * count: threads of each pool on each slot */
    atomic_uint *state; /* of each slot: SLOT_NEW, SLOT_USED, SLOT_AVOID */
    _Atomic(uint64_t) pool_key[PIN_POOLS];
};

/* 0 or -ENOMEM. The main thread holds slot 0 from the beginning. */
int pin_slots_make(size_t count, struct pin_slots *out);

/* The pool of the DSO called `name`. */
unsigned pin_slots_pool(struct pin_slots *slots, const char *name);

/* Takes a slot for a thread of `pool`; never fails. */
size_t pin_slots_take(struct pin_slots *slots, unsigned pool);
/* Takes this slot, whoever else is on it. */
void pin_slots_take_this(struct pin_slots *slots, unsigned pool, size_t slot);
/* Threads of the pool now, and main. */
size_t pin_slots_of_pool(const struct pin_slots *slots, unsigned pool);
/* Threads on a slot now. */
unsigned pin_slots_threads(const struct pin_slots *slots, size_t slot);

/* Has this slot never been used? Says so once: afterwards it counts as used. */
bool pin_slots_is_new(struct pin_slots *slots, size_t slot);
/* Another program is there: the slot comes after all others that have as many threads. */
void pin_slots_avoid(struct pin_slots *slots, size_t slot);

void pin_slots_give_back(struct pin_slots *slots, unsigned pool, size_t slot);

/* pin_slots_take() of a plan's `pus`, each entered in the registry when it is used for the first
 * time; one that another program holds only where there is no other. */
size_t pin_slots_take_free(struct pin_slots *slots, unsigned pool, struct pin_claims *claims,
                           const uint32_t *pus);

/* -- remembered -- */

/* Where the user's cache keeps what is of that kind for `of`: $XDG_CACHE_HOME/servet/KIND/ and a
 * hash (~/.cache without the variable). 0, -ENOENT (neither it nor $HOME is an absolute path),
 * -ENAMETOOLONG. */
int pin_cache_path(const char *kind, const char *of, char out[PATH_MAX]);
/* Makes the folders above the last part of `path`, for the user alone. 0, -errno. */
int pin_cache_make_folders(char *path);

/* What SERVET_AUTO remembers of a program: whether its last run was communication intensive.
 *
 * One small file for each path of an executable in $XDG_CACHE_HOME/servet/auto (or
 * ~/.cache/servet/auto). It counts only for the same build: the same build ID, or size and time of
 * modification where there is none. An interpreter's scripts share its entry.
 */

struct pin_remembered {
    bool communication; /* communication intensive, else memory bound or computing */
    double share;       /* of the time after MPI_Init in MPI: of the rank for which it is least */
    int32_t ranks;
};

/* What is remembered of the executable at `path` (NULL: the calling process's). 0; -ENOENT:
 * nothing, or of another build; -EPERM: the file is somebody else's; -errno. */
int pin_remembered_recall(const char *path, struct pin_remembered *out);

/* Remembers. 0, -errno. */
int pin_remembered_keep(const char *path, const struct pin_remembered *what);

/* With SERVET_AUTO and no priority set, sets the one that the memory of `path` speaks for. True: it
 * did, and `out` is what is remembered. */
bool pin_remembered_apply(struct pin_options *options, const char *path,
                          struct pin_remembered *out);

/* -- process -- */

/* The process that the shim lives in: what the environment asks for, what mask it was started with,
 * the plan that is made at its first application thread or MPI_Init, the main thread's place, and
 * what each thread may be told of its mask.
 */

struct pin_process {
    struct profile_mask allowed; /* what its threads may use; valid with the plan */
    struct pin_launcher launcher;
    struct pin_plan plan;
    struct pin_slots slots;
    struct pin_claims claims;
    struct profile_mask children; /* what its children get: `start`, or what was there before
                                     servet-pin exported places; as above */
    bool recalled_priority;       /* SERVET_AUTO has chosen the priority, by `recalled` */
    struct pin_remembered recalled;
    bool places_exported; /* the environment's OpenMP places are servet-pin's, made from the same
                             plan */
    atomic_bool worker_comes; /* the plan is made for a thread that is to have its second slot */
    bool users_choice;        /* OMP_PLACES and the like: OpenMP threads are left alone */
    /* At the end: most pages of the options are never touched, and of the others only these at the
     * start of a program. */
    struct profile_mask start; /* what the process was started with */
    struct pin_options options;
};

/* False when there is nothing to do: switched off, retired, or inside the shim's own work (a
 * parser's allocation can end in an allocator that creates a thread), or in a thread that has shut
 * itself in. */
bool pin_process_active(void);

/* The calling thread is about to shut itself in a sandbox (seccomp), with `everybody` all threads
 * of the process. A sandbox kills the program for a call that is not on its list, so no call of
 * ours comes after it from a thread that is in it, not even at exit; whoever is pinned is unpinned
 * before. False: nothing was done. */
bool pin_process_shut_begin(bool everybody);
/* The kernel has refused the sandbox: all is as it was. */
void pin_process_shut_failed(bool everybody);

/* Nothing is placed from now on, and whoever is gets the mask of children: as without the shim. */
void pin_process_give_up(void);
/* For a thread that has just begun, and was to be placed when that was given up. */
void pin_process_settle_late(void);

/* The options and the start mask, which are there when an interposer has been called. */
const struct pin_process *pin_process_get(void);

/* Makes the plan if there is none yet. `worker_comes`: for a thread that is being created and has
 * no mask of its own, whose PU the registry is then asked for at once. NULL when it cannot be made
 * (said once on stderr): the program runs unpinned. */
struct pin_process *pin_process_plan(bool worker_comes);

/* An OpenMP runtime is at work in this process. */
void pin_process_openmp_found(void);
bool pin_process_has_openmp(void);
/* Has the user placed this process's threads by OMP_PLACES and the like? */
bool pin_process_left_to_user(const struct pin_process *process);
/* Does the calling thread run on a mask that the program, or somebody outside, has given to it?
 * What it makes inherits that mask, as without the shim. */
bool pin_process_thread_is_bound(const struct pin_process *process);

/* Puts the main thread on slot 0 if that has not been done, unless the user or the program has
 * bound it. */
void pin_process_pin_main(const struct pin_process *process);

/* The same in two steps around MPI_Init: first the whole plan, which the MPI library's own threads
 * inherit, then slot 0. False when the main thread has its place already or is left alone: then
 * there is no second step. */
bool pin_process_widen_main(const struct pin_process *process);
void pin_process_narrow_main(const struct pin_process *process);

/* The calling thread, which has just begun, gets its record's PU, or all PUs of the plan. 0,
 * -ECANCELED: a sandbox has come meanwhile; as sched_setaffinity(2). */
int pin_process_settle_thread(struct pin_thread *record);
/* The calling thread, which we have pinned, gets its PU again. */
int pin_process_keep_pu(void);

/* A pinned thread of this process, NULL: the main thread, gets `pu`, with PIN_LOOSE all that the
 * process may use, if it is still where we put it. False: nothing was changed. */
bool pin_process_move(struct pin_thread *record, int32_t pu);
/* The main thread's PU, PIN_LOOSE, or another number below 0. */
int32_t pin_process_main_pu(void);
/* The calling thread's mask is no longer ours: it ends, or the program has bound it. */
void pin_process_forget_thread(void);
/* The program is about to be told the true mask of the calling thread, which we have pinned. */
void pin_process_told_pu(void);
/* The program has given the calling thread this mask, which is its own choice, unless it is the one
 * that it was told the thread had: then the thread is ours as it was. */
void pin_process_bound_by_program(const struct profile_mask *mask);

/* A thread or process that is about to be made by the calling thread and is not ours to place:
 * gives the calling thread the mask that children get, if its mask is (still) one that we gave it.
 * False: nothing was changed. */
bool pin_process_unpin_thread(void);
/* And its place back, where the calling thread goes on, unless it has been bound meanwhile. */
void pin_process_repin_thread(void);

/* What the calling thread would be told of its mask without the shim if we have pinned it to one
 * PU, else NULL. */
const struct profile_mask *pin_process_view(void);

/* The calling thread's PU if we pinned it, else -1. */
int32_t pin_process_thread_pu(void);

/* -- watch -- */

/* While the program runs (SERVET_WATCH): a thread of ours looks twice a second whether pinned
 * threads wait for their PU, and moves them; see watch.c. */

/* The name of that thread. */
#define PIN_WATCH_NAME "servet-watch"

/* What it did. */
struct pin_watch_counts {
    unsigned moved, loosened, tightened;
};

/* Starts it for a process with a plan. 0, -errno: nobody watches. */
int pin_watch_start(struct pin_process *process);
/* Ends it before a sandbox of all threads is made. */
void pin_watch_stop(void);
/* In the child of a fork, where it is not. */
void pin_watch_forget(void);
/* False: nobody watches. */
bool pin_watch_get(struct pin_watch_counts *out);

/* -- report -- */

/* What SERVET_REPORT asks for: at exit one line for every thread that ran, with what it was, where
 * it was put and where it last ran, and whether two workers ever shared a PU.
 *
 * Without SERVET_REPORT nothing is kept. A process that ends by _exit(), exec or a signal reports
 * nothing.
 */

/* Threads that are remembered; of any further ones only the number is told. */
#define PIN_REPORT_THREADS 4096u

/* The main thread has been put on `pu` (-1: left where it was). `role` and `decided_by` are texts
 * that stay. */
void pin_report_main(const struct pin_options *options, int32_t pu, const char *decided_by);

/* The calling thread begins: the number of its line, to be given to pin_report_end(); 0: none is
 * kept. */
uint32_t pin_report_begin(const struct pin_options *options, const char *role, int32_t pu,
                          const char *decided_by);
void pin_report_end(uint32_t line);
/* The thread of a line, 0: the main thread, is on `pu` from now on (PIN_LOOSE: the kernel's
 * choice). */
void pin_report_moved(uint32_t line, int32_t pu);

/* A worker was put on a PU on which another one lives. */
void pin_report_shared(uint32_t pu);

/* Forgets everything: for the child of a fork. */
void pin_report_reset(void);

/* Writes the report. Called once, when the process ends. `recalled`: what the priority was chosen
 * by, or NULL. `sharing`: what the registry knows of other processes on this one's PUs. */
void pin_report_write(const struct pin_options *options, const struct pin_launcher *launcher,
                      const struct pin_remembered *recalled, const struct pin_sharing *sharing);

#endif
