/* Was the run communication intensive? The evidence for SERVET_AUTO.
 *
 * The time in MPI holds the messages' time and the waiting for ranks that compute longer, which no
 * placement of the ranks' messages mends. The rank that is in MPI for the least part of its time
 * waits least, so its share is taken. The verdict is "communication intensive" when this share is
 * at least half: then messages cost more than everything else, and what the two priorities can win
 * is of the same order (the time of a message, or of an access to memory, differs between the
 * levels of a machine by factors of two to four). What is not communication intensive is taken for
 * memory bound; computing without memory is not told from it, for no hardware counter is read, and
 * it does not care. A program that has run under communication priority must fall clearly below one
 * half before it loses it, or the priority would change from run to run.
 */
#ifndef SERVET_PRELOAD_TRACE_VERDICT_H
#define SERVET_PRELOAD_TRACE_VERDICT_H

#include "preload/trace/gather.h"
#include "preload/trace/remembered.h"

/* Share of the time in MPI from which communication priority is chosen, and below which it is given
 * up again. */
#define TRACE_AUTO_LIMIT 0.5
#define TRACE_AUTO_GIVEN_UP 0.35
/* A shorter run is mostly start-up: nothing is remembered of it. */
#define TRACE_AUTO_LEAST_S 0.1

enum trace_judged {
    TRACE_JUDGED,
    TRACE_NOT_GATHERED,
    TRACE_TOO_FEW_RANKS,
    TRACE_TOO_SHORT,
    TRACE_OVERSUBSCRIBED
};

struct trace_verdict {
    enum trace_judged judged;
    double seconds, limit;
    struct pin_remembered what;
};

/* `before`: what was remembered, NULL: nothing. `oversubscribed`: more ranks than PUs on a node. */
void pin_trace_verdict_judge(const struct trace_sum *sum, const struct pin_remembered *before,
                             bool oversubscribed, struct trace_verdict *out);

/* Remembers the verdict for this executable; says in SERVET_REPORT what it is and what it rests
 * on. `node_rank`: which of its node's ranks this one is. */
void pin_trace_verdict_conclude(const struct trace_verdict *verdict, uint32_t node_rank);

/* The calling rank's line of SERVET_REPORT. */
void pin_trace_report_rank(void);

#endif
