/* The registry: which job holds which PUs of this node. It keeps two unrelated programs from both
 * starting on core 0. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "profile/base/mask.h"

/* It is the locks on one file that every program of the node can read and that none writes: the
 * kernel's first time namespace (registry_file.c). A process takes read locks on bytes whose place
 * says which PU, and for whom. They belong to an open file (F_OFD_SETLK), which a descriptor keeps:
 * the kernel drops them when the process ends, however it ends, and when it becomes another
 * program. Taking a lock is the choice, and no process waits for another for longer than a moment.
 *
 * Ranks of one job plan together: the first one here takes what all of them are sure to use, and
 * publishes what it counted as taken by others; the rest starts from that. */

struct pin_registry {
    bool on;          /* false: every PU is free, and no call does anything */
    bool has_fellows; /* the job may have other processes */
    bool over_exec;   /* what is kept stays when this process becomes another program, which adopts
                         it */
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

/* Begins this process's side, in memory that was zeros before the first time. `path`: the file that
 * programs of the node share, NULL: where all look for it. `job`: the launcher's number of the job,
 * 0: this process is a job of its own. 0; what open(2) answers; -ENOLCK, -EINVAL and the like: the
 * kernel or the file system has no such locks; -EMFILE: nothing can be kept; then it is not on. */
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

/* Other jobs on a PU, and those of them with their main threads there. */
struct pin_company {
    unsigned jobs, mains;
};

/* One for each of `count` PUs. */
void pin_registry_count(struct pin_registry *registry, const uint32_t *pus, size_t count,
                        struct pin_company *out);

/* Takes `pu`, also where other jobs hold it if `beside`. False: another job holds it (never where
 * `beside`). A PU that this job holds already is success. */
bool pin_registry_take(struct pin_registry *registry, uint32_t pu, bool is_main, bool beside);
/* The same of several PUs, `mains` for main threads: all, or none. */
bool pin_registry_take_all(struct pin_registry *registry, const struct profile_mask *pus,
                           const struct profile_mask *mains, bool beside);

/* Those that choose among the same PUs at one moment do so in turn: waits for this process's, not
 * for long. With `together`, the first process of the job chooses for all. True: it is this one: it
 * takes what the whole job is sure to use, calls publish(), and ends its turn. False: its turn is
 * over, and `taken` is what the first one counted, or what others hold now. */
bool pin_registry_begin_turn(struct pin_registry *registry, const struct profile_mask *allowed,
                             bool together, struct profile_mask *taken);
void pin_registry_end_turn(struct pin_registry *registry);
void pin_registry_publish(struct pin_registry *registry, const struct profile_mask *taken);
