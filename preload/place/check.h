/* The check of SERVET_REPORT: did a worker of this process share its PU, and with whom? */
#ifndef SERVET_PRELOAD_PLACE_CHECK_H
#define SERVET_PRELOAD_PLACE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A thread of this process that worked. */
struct pin_worker {
    pid_t tid;
    int32_t pu; /* it last ran on */
    bool runs;  /* at this moment */
    uint64_t from_ns, until_ns;
};

/* A worker has `pu`. Where that is another job's, it is said once whom the process is laid over,
 * and kept. The lock is not held: files are read. */
void pin_check_laid(int32_t pu);

/* One line for each process, or group of threads, that shared a PU with one of the workers. */
void pin_check_write(const struct pin_worker *workers, size_t count);

/* In the child of a fork. */
void pin_check_reset(void);

#endif
