/* State that the processes of a node share: locks on PUs, foreign load, files of the user, and
 * output. */
#ifndef SERVET_PRELOAD_NODE_NODE_H
#define SERVET_PRELOAD_NODE_NODE_H

#include <limits.h>
#include <stdatomic.h>
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

/* One line of SERVET_REPORT about this process: `format` behind the host and the process, or, where
 * JSON is asked for, the members of an object. */
void pin_file_report(const char *where, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Reads at most `size` - 1 bytes of a regular file of the calling user that no other user can write
 * to, not through a link in its last part. 0; -EPERM: another user's; -EFBIG; -errno. */
int pin_file_get_own(const char *path, char *text, size_t size);

/* -- busy -- */

/* PUs of `allowed` without an idle moment now, the load of the calling thread and of `launcher` and
 * its descendants (0: no launcher) not counted. Returns at once where nothing else is runnable,
 * else after 11 ms. Empty where the job's own load is not known. */
void pin_foreign_load_pus(const struct profile_mask *allowed, pid_t launcher,
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
 * It is one empty file; its content is the locks on its byte ranges. The locks are the process's
 * (fcntl, F_SETLK): the kernel drops them when it ends, however it ends, and when it becomes
 * another program, and no child of a fork inherits them. Taking a lock is the choice, so no process
 * waits for another. A process that closes the file, as programs do that close all descriptors,
 * holds nothing any more.
 *
 * Each PU has some lanes. A job takes the first; jobs that are laid over it take the next ones, and
 * so do other processes of the same job, so that the PU stays held until the last of them ends. The
 * lock's length encodes the job and the purpose. Beyond the last lane a place is not recorded.
 *
 * Ranks of one job plan together: the first one here takes what all of them are sure to use, and
 * publishes what it counted as taken by others; the rest starts from that. */

struct pin_registry {
    atomic_bool on; /* false: every PU is free, and no call does anything */
    bool leads;     /* from lead() to publish(): what is taken is for the whole job */
    int file;
    uint64_t job; /* of 40 bits */
    dev_t device;
    ino_t inode;                            /* of the file: the program may close it, and have
                                                   one of its own with that number */
    atomic_uchar purpose[PROFILE_MASK_PUS]; /* what this process has taken each PU for, 0: not */
    char path[PATH_MAX];                    /* where it is, or was looked for */
};

/* Opens the file that the locks are on; only fcntl() makes anything of it. `path`: an absolute
 * file, made if there is none, used if it is this user's and writable by no other user; "": the one
 * for all users, where there is one, else this user's own in memory. 0; -EPERM, -EINVAL (another's,
 * or no ordinary file); -ENOLCK and the like: the kernel or the file system has no such locks; what
 * open(2) answers. */
int pin_registry_file(const char *path, char where[PATH_MAX]);

/* fstat(2), of the kernel: fakeroot and its like answer for libc's. 0, -errno. */
int pin_registry_stat(int file, struct stat *out);

/* Begins this process's side. `path`: as above. `job`: the launcher's number of the job, 0: this
 * process is a job of its own. 0; as pin_registry_file(), and then it is not on. */
int pin_registry_open(struct pin_registry *out, const char *path, uint64_t job);

/* `held`: PUs of `allowed` that another job holds. True: some job holds a PU. */
bool pin_registry_look(struct pin_registry *registry, const struct profile_mask *allowed,
                       struct profile_mask *held);

/* How many other jobs hold `pu`, and how many of them have their main thread there. */
void pin_registry_count(struct pin_registry *registry, uint32_t pu, unsigned *jobs,
                        unsigned *mains);

/* Takes `pu`; with `beside` in the next free lane where other jobs hold it. False: another job
 * holds it (never where `beside`). A PU that this job holds already is success. */
bool pin_registry_take(struct pin_registry *registry, uint32_t pu, bool is_main, bool beside);
void pin_registry_give_back(struct pin_registry *registry, uint32_t pu);

/* True: this process is the first of its job here, `taken` is what of `allowed` others hold, and it
 * is to take what the whole job is sure to use, and then to call publish(). False: `taken` is what
 * the first one counted as taken, or what is held, where that one does not say it in time. */
bool pin_registry_lead(struct pin_registry *registry, const struct profile_mask *allowed,
                       struct profile_mask *taken);
void pin_registry_publish(struct pin_registry *registry, const struct profile_mask *taken);

/* The file, and the locks with it, stay when this process becomes another program (servet-pin);
 * that program's children do not get it. */
void pin_registry_keep(struct pin_registry *registry);

/* A PU of `used` that another process holds too at this moment: of another job, or a fellow that
 * has a thread there; -1: none. */
int32_t pin_registry_shared(struct pin_registry *registry, const struct profile_mask *used);

/* Closes the file, and with it gives everything back; in the child of a fork, which has nothing,
 * the parent's locks stay. */
void pin_registry_forget(struct pin_registry *registry);

#endif
