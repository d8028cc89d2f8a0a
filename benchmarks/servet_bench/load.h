/* A background job: processes that keep some PUs busy with memory traffic while programs are
 * compared. */
#ifndef SERVET_BENCH_LOAD_H
#define SERVET_BENCH_LOAD_H

#include <stddef.h>
#include <sys/types.h>

struct load {
    pid_t *pids;
    size_t count;
};

/* One process on each of the first `pus` allowed PUs, pinned there. They end with load_stop(), and
 * with this process whatever its end. */
void load_start(size_t pus, struct load *out);
void load_stop(struct load *load);

#endif
