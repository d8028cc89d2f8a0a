/* What was measured so far, kept so that an interrupted run can go on.
 *
 * A probe's questions to a machine follow from its seed and from the answers it got. So a run that
 * is given the same answers asks the same questions: the journal holds the answers in order, one
 * line each, and a resumed run takes them from there as long as question and entry agree. From the
 * first that does not, it measures. An entry torn by the interruption ends the journal.
 */
#ifndef SERVET_PROBES_CHECKPOINT_H
#define SERVET_PROBES_CHECKPOINT_H

#include "probes/machine.h"

struct machine_journal;

/* Opens or makes the file. `run` is one line that says which run this is (machine, seed, options).
 * 0; -ESTALE: the journal is of another run; -EBUSY: one is writing it; -errno: it cannot be read
 * or written. */
int probe_checkpoint_open(const char *path, const char *run, struct machine_journal **out,
                          struct servet_error *error);
/* Closes; `finished`: nothing is left to resume, and the file goes. NULL allowed. */
void probe_checkpoint_close(struct machine_journal *journal, bool finished);

/* A question's key, from its kind and all that it says. */
uint64_t probe_checkpoint_key(const char *machine, const char *kind, const uint64_t *words,
                              size_t count);
/* True and the values if the next entry is the answer to this question. */
bool probe_checkpoint_take(struct machine_journal *journal, uint64_t key, double *values,
                           size_t count);
/* Appends an answer; a full disk ends the journal, not the run. */
void probe_checkpoint_put(struct machine_journal *journal, uint64_t key, const double *values,
                          size_t count);
/* Answers taken from it. */
size_t probe_checkpoint_taken(const struct machine_journal *journal);

#endif
