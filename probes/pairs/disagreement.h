/* Why the measured size of a cache is not the declared one, as far as there is evidence for it.
 *
 * Each explanation is a rule with its condition (disagreement.c, one table); the condition asks for
 * evidence: what resctrl allocates, whose groups were measured, which sizes were tried, what the
 * machine says of itself. A rule that accounts for the difference ends the list. One that only
 * makes it possible says "may", and others are said as well.
 */
#ifndef SERVET_PROBES_PAIRS_DISAGREEMENT_H
#define SERVET_PROBES_PAIRS_DISAGREEMENT_H

#include <stdbool.h>
#include <stdio.h>

#include "probes/run/resctrl.h"

/* What is known of the machine, the same for all caches. */
struct disagreement_machine {
    const char *root; /* of /sys: "" or a captured tree; NULL: not this machine, nothing is read */
    long task;        /* in whose resctrl group the measurement ran */
    uint32_t pu;      /* that it ran on */
    bool virtual;     /* a hypervisor says so */
    bool busy;        /* other programs ran before or while it was measured */
};

struct disagreement {
    uint32_t level;
    uint64_t measured_bytes, declared_bytes;
    uint64_t low_bytes, high_bytes; /* sizes that explain the measurement about as well */
    uint64_t next_bytes;       /* the next larger size of a working set that was tried; 0: none */
    uint32_t line_bytes, ways; /* declared; 0: not said */
    uint64_t before_bytes;     /* measured size of the level before; 0: none */
    size_t parts;  /* measured caches that the declared one was found to be; 0: not measured */
    size_t merged; /* declared caches that were found to be one; 0: not measured */
    bool shared;   /* by several PUs, measured or declared */
    struct resctrl_share share; /* of 0: nothing is known */
    bool virtual, busy;         /* as above */
};

/* Do the two sizes differ by more than such measurements err? Not if one of them is 0. */
bool probe_disagreement_is_one(uint64_t measured_bytes, uint64_t declared_bytes);

/* "measured 24 MiB, declared 35.75 MiB: " and the explanations, separated by semicolons; where
 * there is none it says so. */
void probe_disagreement_explain(const struct disagreement *disagreement, FILE *stream);

#endif
