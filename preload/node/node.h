/* What the files of preload/node/ promise one another and the rest of the room. */
#ifndef SERVET_PRELOAD_NODE_NODE_H
#define SERVET_PRELOAD_NODE_NODE_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profile/base/mask.h"

/* -- note -- */

/* Writing without the signals that a write can raise.
 *
 * A line to a pipe that nobody reads raises SIGPIPE, a file beyond `ulimit -f` SIGXFSZ, a terminal
 * in the background SIGTTOU: each would end or stop the program for something that it has not
 * written.
 */

/* Sets of signals as the kernel takes them: signal n is bit n - 1. */
struct pin_signals {
    uint64_t mask, pending;
};

/* Holds those signals back in the calling thread. */
void pin_signals_hold(struct pin_signals *before);
/* Drops those that have been raised since, and restores the mask. */
void pin_signals_release(const struct pin_signals *before);

/* What the shim says, always on stderr and never on stdout, each in one write of one line that
 * begins with "servet: ". A line that would have to wait for a reader is dropped, and none raises a
 * signal.
 */

/* Remembers what stderr is. A program that closes it and opens a file of its own next, or puts
 * something else in its place, gets no line of ours there. Without this call everything is said. */
void pin_note_start(void);
bool pin_note_stderr_is_ours(void);

/* A failure. No more than PIN_FAILURE_CAP of them in one process: the program that runs is the
 * user's, not ours. */
#define PIN_FAILURE_CAP 4
void pin_failure(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What SERVET_VERBOSE asks for; the caller has looked whether it is on. */
void pin_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* -- small files -- */

/* Small files of the shim and the tracer: written whole, read with suspicion. */

/* Writes beside `path` and renames over it: a reader sees the old file or the new one. Unlike
 * profile_save_text() it does not ask for the umask, which would change it for other threads of the
 * program. 0; -EINVAL: there is something that is not a regular file; -errno. */
int pin_file_put(const char *path, const char *text, size_t length);

/* Whether pin_file_put() could: its folder can be written to. 0, -EINVAL, -errno. */
int pin_file_can_put(const char *path);

/* One write to the end of a file, or to stderr for "stderr", so that processes can share it. A
 * failure is said once, with the name of the `variable` that names the file. */
void pin_file_append(const char *variable, const char *where, const char *text, size_t length);

/* Does the name of a report ask for JSON lines? */
bool pin_file_is_json(const char *where);

/* Reads at most `size` - 1 bytes of a regular file of the calling user that nobody else can write
 * to, not through a link in its last part. 0; -EPERM: somebody else's; -EFBIG; -errno. */
int pin_file_get_own(const char *path, char *text, size_t size);

/* -- busy -- */

/* Ticks of 10 ms that each PU below `pus` has been idle since the system started; those that it
 * does not know are left alone. 0, -errno. */
int pin_busy_idle(uint32_t *ticks, size_t pus);

/* Are there so many that each PU has a queue? */
bool pin_busy_is_crowd(uint32_t running, const struct profile_mask *allowed);

/* PUs of `allowed` that have no idle moment now, and that not of the calling thread's making, nor
 * of `launcher` and its descendants (0: there is none). At once where nothing else is runnable,
 * else in at most 20 ms. Where fellows cannot be told from strangers there are none. */
void pin_busy_pus(const struct profile_mask *allowed, pid_t launcher, struct profile_mask *out);

/* -- registry -- */

/* Who holds which PUs of this node: what keeps two programs that know nothing of each other from
 * both starting on core 0.
 *
 * One file for each user, in memory (/dev/shm/servet-UID), mode 0600. Every process that has made a
 * plan has an entry: its pid and start time (a pid alone is used again), the job it belongs to, the
 * PUs it holds (what all ranks of its job are sure to use here, and what it took later), those that
 * it uses itself, and the PUs that were taken when the first process of its job came. Ranks of one
 * job plan together, so they all start from that same set and are not foreigners to each other.
 *
 * Entries of processes that are gone (kill -9 included) are dropped by whoever comes next. The file
 * is read and written, not mapped: it may be cut short at any moment. Who comes or takes a PU does
 * so under a lock of fcntl(), which the kernel drops with its holder and which no child of a fork
 * inherits, reads what is counted of the entries and writes its own; who leaves frees its place
 * without the lock. The file is not followed through links, and used only when it is an ordinary
 * file of this user that nobody else may write, and a registry or empty. Nothing in it can make a
 * reader do more than choose another PU.
 *
 * It also keeps the last look for strangers, so that of many programs which start at once only the
 * first waits for one.
 */

/* Processes that are remembered at one time; further ones run without an entry. */
#define PIN_REGISTRY_ENTRIES 512u
#define PIN_REGISTRY_NO_PLACE UINT32_MAX

/* A job that no launcher has made; no launcher's number of a job has this bit. */
#define PIN_JOB_OF_ONE_PROCESS (UINT64_C(1) << 63)

struct pin_registry {
    int file;               /* open and locked between open and close, else -1 */
    char *bytes;            /* of the file, up to the entries, and this process's own */
    char *entries;          /* NULL: nobody has asked what is in them */
    uint32_t places, count; /* up to the last that is taken, and of processes */
    uint32_t own;           /* this process's place, or NO_PLACE */
    uint32_t words;         /* of 64 bits, of each mask */
    bool changed;           /* its own entry is to be written */
    bool looked_after;      /* what is said of that, too */
    bool is_new;
};

/* Where it is when SERVET_REGISTRY does not say. True: in a user namespace that is not the system's
 * own, and passes. */
bool pin_registry_default_path(char *path, size_t size);

/* Opens the file that the registry is in; with `make`, where there is none, begins it. It is not
 * locked. The file; -ENOENT; else as pin_registry_open(). */
int pin_registry_file(const char *path, bool make);
/* 0; -ESTALE: whoever had the lock has removed the file; -EAGAIN; -errno. */
int pin_registry_lock(int file);
/* When an entry is written, since the system started: another process with its pid began later.
 * (When its own did would be to be looked up in /proc, by every program.) */
uint64_t pin_registry_now(void);
/* Is there a process of this number, with `entered`, of pin_registry_now(), one that began before
 * that, as far as /proc tells? */
bool pin_registry_lives(uint32_t pid, const uint64_t *entered);

/* Words of 64 bits of the kernel's masks on this machine. */
uint32_t pin_registry_words(void);
/* Where the last entry would end: what is kept for other programs begins there. */
off_t pin_registry_end(void);
/* Writes without the signals of a full disk or of `ulimit -f`. False: not all of it. */
bool pin_registry_write(int file, const void *bytes, size_t count, off_t offset);

/* Opens, locks and reads the registry, without the processes that are gone. 0; -ELOOP, -EPERM,
 * -EINVAL (not a file of ours, or no registry: it is left as it is); -EAGAIN (somebody has held the
 * lock for too long: a stopped process); -ENOMEM; what open(2) answers. */
int pin_registry_open(const char *path, struct pin_registry *out);
/* The same of the file that pin_registry_file() has opened, which is closed where it fails; also
 * -ESTALE. */
int pin_registry_begin(int file, struct pin_registry *out);
/* Writes back what has changed, unlocks and closes. */
void pin_registry_close(struct pin_registry *registry);

bool pin_registry_knows(struct pin_registry *registry, uint64_t job);

/* PUs of `allowed` that a new process of `job` is to count as taken: those held by more jobs than
 * the least held PU of `allowed` is, or what the job's first process found. */
void pin_registry_taken(struct pin_registry *registry, uint64_t job,
                        const struct profile_mask *allowed, struct profile_mask *taken);

/* Enters this process, in place of any older entry of the same pid. -ENOSPC when there is no
 * room. */
int pin_registry_enter(struct pin_registry *registry, uint64_t job,
                       const struct profile_mask *taken, const struct profile_mask *held);

/* Adds `pu` to what this process holds. False, and nothing is changed, when another job holds
 * it. */
bool pin_registry_claim(struct pin_registry *registry, uint64_t job, uint32_t pu);

/* This process has a thread on `pu`; others that have one there are told. */
void pin_registry_use(struct pin_registry *registry, uint32_t pu);
/* Removes this process. The PU that it and another one have used at one time, of whatever job; -1:
 * none. */
int32_t pin_registry_leave(struct pin_registry *registry);
/* The same without opening it, for the process that has `place` in it. */
int32_t pin_registry_leave_place(const char *path, uint32_t place);

/* What another program's look for strangers among the PUs of `allowed` has found, or with `crowd`
 * nothing where one is just looking. False: there is none that is young enough. */
bool pin_registry_looked(int file, bool crowd, const struct profile_mask *allowed,
                         struct profile_mask *busy);
/* A look at `allowed` that began at `begun_ns` has found these PUs busy; NULL: it begins. */
void pin_registry_look(struct pin_registry *registry, uint64_t begun_ns,
                       const struct profile_mask *allowed, const struct profile_mask *busy);

/* -- kept -- */

struct pin_kept {
    void *key;
    size_t key_bytes;
    void *value;
    size_t size; /* of the value, or room for it */
};

/* Finds in the registry that is open as `file` what a program of this user has put there under the
 * very same key. Bytes of the value; 0: there is nothing, or not whole, or more than there is room
 * for. */
size_t pin_kept_get(int file, const struct pin_kept *what);
/* Puts it there, in place of any other that has this place; not into a file that outlives the
 * system, and not what is too long for a place. */
void pin_kept_put(int file, const struct pin_kept *what);

/* -- claims -- */

/* This process's side of the registry: what others hold when the plan is made, and what it takes
 * itself. Without a registry that can be used every call does nothing and every PU is free. */
/* Does a PU of this process have a worker of another process? */
struct pin_sharing {
    bool whole_node; /* the registry was there to tell */
    int32_t pu;      /* -1: none is shared */
};

struct pin_claims {
    bool worker_comes; /* set before begin: the plan is made for a thread that is being created, so
                          its PU is asked for together with the main thread's */
    struct profile_mask asked_ahead; /* PUs that others held then, and the one that it took */
    uint32_t ahead;                  /* that one; the main thread's: there was none */
    bool passing; /* the last program takes the file away, for nobody would again */
    bool on;
    bool first; /* of its job: what it counts as taken counts for all of them */
    uint64_t job;
    uint32_t place;               /* of its entry */
    struct pin_registry registry; /* open between begin and commit: two programs that start at once
                                     choose one after the other */
    struct profile_mask taken;
    struct pin_sharing sharing;
    pthread_mutex_t lock;
    bool peeks; /* `file` is the registry, open without the lock, until begin takes that */
    int file;
    char path[PATH_MAX];
};

/* Looks what of `allowed` is taken; `taken` holds what else counts as taken for a job that is not
 * known yet. `path`: the registry's, "" where it is by default, NULL: there
 * is none. `job`: 0, this process is a job of its own. A registry that cannot be used is said where
 * `verbose` asks for it. */
void pin_claims_begin(struct pin_claims *claims, const char *path, bool verbose, uint64_t job,
                      const struct profile_mask *allowed, struct profile_mask *taken);

/* PUs of `allowed` that strangers keep busy, as a recent look of another program says, or as this
 * one finds for itself (pin_busy_pus(), without a launcher) and tells the others; nothing where
 * nobody can be told and there is a queue for every PU. `path` as above. */
void pin_claims_strangers(struct pin_claims *claims, const char *path,
                          const struct profile_mask *allowed, struct profile_mask *busy);

/* Adds `besides` to what is taken, for the job's first process; not where that would leave nothing
 * of `allowed`: on a node that is busy everywhere what others hold still tells PUs apart. */
void pin_claims_avoid(struct pin_claims *claims, const struct profile_mask *allowed,
                      const struct profile_mask *besides, struct profile_mask *taken);

/* Ends what pin_claims_begin() began, without having entered anything: it can begin again. */
void pin_claims_release(struct pin_claims *claims);

/* pin_kept_get() and pin_kept_put() from and into the registry between begin and commit. */
size_t pin_claims_recall(const struct pin_claims *claims, const struct pin_kept *what);
void pin_claims_keep(struct pin_claims *claims, const struct pin_kept *what);

/* Enters what the plan is sure to use, and the main thread's PU, the first of `pus`; takes the
 * first of the others that no other program holds as well where a worker comes. `count` 0: there is
 * no plan. */
void pin_claims_commit(struct pin_claims *claims, const struct profile_mask *held,
                       const uint32_t *pus, size_t count);

/* Takes one PU more; false when another program holds it. */
bool pin_claims_try(struct pin_claims *claims, uint32_t pu);

/* The same for one place of the plan after the other, and not twice for what the first worker was
 * asked for. With the first that was not, `*visits` becomes true: the registry is open until
 * pin_claims_leave(), so that a place behind many that are held costs one visit. */
bool pin_claims_try_next(struct pin_claims *claims, bool *visits, uint32_t pu);
void pin_claims_leave(struct pin_claims *claims, bool visits);

/* Gives everything back; what is shared until then. */
struct pin_sharing pin_claims_end(struct pin_claims *claims);

/* In the child of a fork: the entry is the parent's. */
void pin_claims_forget(struct pin_claims *claims);

#endif
