/* State that the processes of a node share: locks on PUs, foreign load, files of the user, and
 * output. */
#ifndef SERVET_PRELOAD_NODE_NODE_H
#define SERVET_PRELOAD_NODE_NODE_H

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "profile/base/mask.h"

/* -- note -- */

/* Messages of the shim: on stderr, one line in one write, beginning with "servet: ". A line that
 * would have to wait for a reader is dropped, and none raises a signal. */

/* Remembers what stderr is. A program that closes it and opens a file of its own next, or puts
 * something else in its place, gets no line of ours there. Without this call everything is said. */
void pin_log_start(void);

/* A failure. No more than PIN_FAILURE_CAP of them in one process: the program that runs is the
 * user's, not ours. */
#define PIN_FAILURE_CAP 4
void pin_failure(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What SERVET_VERBOSE asks for, if `verbose`; the line begins with the process's number. */
void pin_log(bool verbose, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The signals that a write can raise, as the kernel takes sets of them: signal n is bit n - 1. */
struct pin_signals {
    uint64_t mask, pending;
};
/* Holds them back in the calling thread. */
void pin_signals_hold(struct pin_signals *before);
/* Drops those that have been raised since, and restores the mask. */
void pin_signals_release(const struct pin_signals *before);

/* -- small files -- */

/* One write to the end of a file, or to stderr for "stderr", so that processes can share it. A
 * failure is said once, with the name of the `variable` that names the file. */
void pin_file_append(const char *variable, const char *where, const char *text, size_t length);

/* Does the name of a report ask for JSON lines? */
bool pin_file_is_json(const char *where);

/* A record about this process (profile/text/record.h): in the report `where`, NULL: none, and with
 * `verbose` on stderr. */
struct profile_fact;
void pin_record(const char *where, bool verbose, const char *sentence,
                const struct profile_fact *facts);

/* Reads at most `size` - 1 bytes of a regular file of the calling user that no other user can write
 * to, not through a link in its last part. 0; -EPERM: another user's; -EFBIG; -errno. */
int pin_file_get_own(const char *path, char *text, size_t size);

/* -- busy -- */

/* PUs of `allowed` without an idle moment now, the load of the calling thread and of `launcher` and
 * its descendants (0: no launcher) not counted. Returns at once where nothing else is runnable,
 * else after 11 ms. False, and empty: not known, or the job's own load is not. */
bool pin_foreign_load_pus(const struct profile_mask *allowed, pid_t launcher,
                          struct profile_mask *out);

/* -- neighbours -- */

/* Pairs of a PU and another process; further ones are not kept. */
#define PIN_NEIGHBOURS 256u
#define PIN_NEIGHBOUR_NAME 16

/* Another process that has a thread on a PU (profile_thread_pu()). */
struct pin_neighbour {
    uint32_t pu;
    pid_t pid;
    bool fellow; /* of this rank's job */
    bool bound;  /* that thread may run nowhere else */
    char name[PIN_NEIGHBOUR_NAME];
};

struct pin_neighbours {
    size_t count;
    struct pin_neighbour each[PIN_NEIGHBOURS];
};

/* Those on `pus` at this moment. `launcher`: of this rank's job, 0: none. */
void pin_neighbours_find(const struct profile_mask *pus, pid_t launcher,
                         struct pin_neighbours *out);

/* -- registry -- */

/* The registry: which job holds which PUs of this node. It keeps two unrelated programs from both
 * starting on core 0.
 *
 * It is the locks on one file that every program of the node can read and that none writes: the
 * kernel's first time namespace (registry_file.c). A process takes read locks on bytes whose place
 * says which PU, and for whom. They belong to an open file (F_OFD_SETLK), which a descriptor keeps:
 * the kernel drops them when the process ends, however it ends, and when it becomes another
 * program. Taking a lock is the choice, and no process waits for another for longer than a moment.
 *
 * Ranks of one job plan together: the first one here takes what all of them are sure to use, and
 * publishes what it counted as taken by others; the rest starts from that. */

struct pin_registry {
    bool on;          /* false: every PU is free, and no call does anything */
    bool leads;       /* from lead() to publish(): what is taken is for the
                                                whole job */
    bool has_fellows; /* the job may have other processes */
    bool over_exec;   /* what is kept stays when this process becomes another
                                                program, which adopts it */
    uint64_t job;     /* of 34 bits */
    uint32_t process; /* of 12 bits: this one of the job */
    int kept;         /* a descriptor that keeps what was taken; below 1: none */
    pid_t pid;        /* who keeps it */
    dev_t device;     /* of the file, with the next */
    ino_t inode;
    bool alone; /* it does not see others, or is not seen: a container that shares nothing, no
                   such file, no number for what is kept */
    unsigned char purpose[PROFILE_MASK_PUS]; /* what this process has taken each PU for, 0: not */
    char path[PATH_MAX];                     /* where it is, or was looked for */
};

/* -- its file -- */

/* The file, opened for reading; only fcntl() makes anything of it. `path`: one that the user names,
 * made if there is none; NULL: the node's. Sets what is known of it. -errno. */
int pin_registry_find(const char *path, struct pin_registry *out);

/* fcntl(2) with a lock on these bytes. 0, -errno. */
int pin_registry_lock(int file, int command, short type, uint64_t start, uint64_t bytes,
                      struct flock *lock);

/* The file, open for a moment. */
struct pin_file {
    const struct pin_registry *of;
    int number; /* below 0: it could not be opened */
    bool is_kept;
};

/* Opens it, and closes it again. Locks that were taken meanwhile last as long as the process after
 * keep(). False: there is no number for it. */
struct pin_file pin_registry_begin(const struct pin_registry *registry);
bool pin_registry_keep(struct pin_registry *registry, struct pin_file file);
void pin_registry_end(struct pin_file file);

/* Keeps what the program before this one had kept `over_exec`. */
void pin_registry_adopt(struct pin_registry *registry);

/* -- what is in it -- */

/* Begins this process's side, in memory that was zeros before the first time. `path`: as above.
 * `job`: the launcher's number of the job, 0: this process is a job of its own. 0; what open(2)
 * answers; -ENOLCK, -EINVAL and the like: the kernel or the file system has no such locks; -EMFILE:
 * nothing can be kept; then it is not on. */
int pin_registry_open(struct pin_registry *out, const char *path, uint64_t job);

/* False: the program has closed what was kept, or put another file there. */
bool pin_registry_is_kept(const struct pin_registry *registry);

/* In the child of a fork, which has nothing of what its parent holds. */
void pin_registry_forget(struct pin_registry *registry);

/* Gives back what the program before this one had kept, also where others have inherited it. */
void pin_registry_release(struct pin_registry *registry);

/* `held`: PUs of `allowed` that another job holds. */
void pin_registry_look(struct pin_registry *registry, const struct profile_mask *allowed,
                       struct profile_mask *held);

/* How many other jobs hold `pu`, and how many of them have their main thread there. */
void pin_registry_count(struct pin_registry *registry, uint32_t pu, unsigned *jobs,
                        unsigned *mains);

/* Takes `pu`, also where other jobs hold it if `beside`. False: another job holds it (never where
 * `beside`). A PU that this job holds already is success. */
bool pin_registry_take(struct pin_registry *registry, uint32_t pu, bool is_main, bool beside);
/* The same of several PUs: all, or none. */
bool pin_registry_take_all(struct pin_registry *registry, const struct profile_mask *pus,
                           uint32_t main_pu, bool beside);

/* True: this process is the first of its job here, `taken` is what of `allowed` others hold, and it
 * is to take what the whole job is sure to use, and then to call publish(). False: `taken` is what
 * the first one counted as taken, or what is held, where that one does not say it in time. */
bool pin_registry_lead(struct pin_registry *registry, const struct profile_mask *allowed,
                       struct profile_mask *taken);
void pin_registry_publish(struct pin_registry *registry, const struct profile_mask *taken);

#endif
