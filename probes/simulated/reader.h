/* Fields of a machine description (load.c, load_caches.c), each with the range that it must
 * be in. The first error sticks; what is read after it means nothing. */
#ifndef SERVET_PROBES_SIMULATED_READER_H
#define SERVET_PROBES_SIMULATED_READER_H

#include <jansson.h>

#include "profile/model.h"

/* Where we are in the file, for messages; the first error sticks. */
struct sim_reader {
    const char *path;
    struct servet_error *error;
    int failed;
};

/* "FILE: …" */
void probe_sim_refuse(struct sim_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A missing field takes `missing`; NAN there makes it required. */
double probe_sim_number(struct sim_reader *reader, const json_t *object, const char *where,
                        const char *key, double missing, double low, double high);
uint64_t probe_sim_whole(struct sim_reader *reader, const json_t *object, const char *where,
                         const char *key, double missing, double low, double high);
/* Position among `names`, which ends with NULL. */
int probe_sim_choice(struct sim_reader *reader, const json_t *object, const char *where,
                     const char *key, const char *const *names, int missing);
void probe_sim_known_keys(struct sim_reader *reader, const json_t *object, const char *where,
                          const char *const *keys);
/* A list of PUs out of `within` (NULL: any); to be freed. */
struct profile_set probe_sim_pu_list(struct sim_reader *reader, const json_t *value,
                                     const char *where, const struct profile_set *within);
/* An array of disjoint lists, to be freed one by one; a missing one is empty. */
struct profile_set *probe_sim_groups(struct sim_reader *reader, const json_t *object,
                                     const char *where, const char *key,
                                     const struct profile_set *within, size_t *count);

/* -- load_caches.c: the caches and TLBs of a machine with these PUs, and which of them each PU
 * has -- */
struct sim;
void probe_sim_load_caches(struct sim_reader *reader, const json_t *root,
                           const struct profile_set *pus, struct sim *sim);

/* -- load_matrix.c: the exchange matrix of a machine whose PUs are known; none where `object` is
 * missing -- */
void probe_sim_load_matrix(struct sim_reader *reader, const json_t *object, struct sim *sim);

#endif
