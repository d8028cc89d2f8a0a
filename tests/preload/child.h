/* Programs run as a user runs them, and what they printed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tests/base/command.h"

/* What LD_PRELOAD holds to load the shim: with a sanitizer, its runtime too. */
#ifdef SANITIZERS
#define CHILD_PRELOAD SERVET_SHIM ":" SANITIZERS
#else
#define CHILD_PRELOAD SERVET_SHIM
#endif

/* A command, and NAME=value in front of it, as child_run() takes them. */
#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})
#define CHANGES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Runs argv (ended by NULL) with the environment of the test without SERVET_*, OMP_* and any user's
 * profile, changed by `changes` ("NAME=value", ended by NULL; may be NULL). A child that cannot be
 * run fails the test. */
void child_run(struct run *of, const char *const *changes, const char *const *argv);

/* Most tests look at one program at a time: the last that ran, and the same without the shim. */
extern struct run child, plain;

/* Runs `child`, which must end with 0, without the shim and with it. `told` (NULL: nothing is
 * asked): the PUs of workers, RANK.THREAD=first, second (of order[]), both or all, and "silent"
 * where nothing may be on stderr. */
void run_plain(const char *const *changes, const char *const *argv, const char *told);
void run_preloaded(const char *const *changes, const char *const *argv, const char *told);

/* In front of the changes: a rank, whose main thread is a worker. */
#define RANK "OMPI_COMM_WORLD_LOCAL_RANK=0", "OMPI_COMM_WORLD_LOCAL_SIZE=1"

/* The same with the shim in LD_PRELOAD; what else runs on this machine is no stranger to it. */
void child_run_preloaded(struct run *of, const char *const *changes, const char *const *argv);

/* Changes for a registry and a report of the test's own; what gives them their values. */
extern char child_registry[96], child_report[96];
void child_setup(void);

/* Fails the test unless the program ended with 0. */
void child_succeeds(const struct run *of);
/* The PUs of "worker RANK THREAD" in the program's output; fails the test if there is no such
 * line. */
void child_worker(const struct run *of, int rank, int thread, char *pus, size_t size);
/* Fails the test unless this, as printf() makes it, is in what the program printed. */
void child_says(const struct run *of, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same of `child` and stderr. */
void child_err_says(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* How many lines of stdout / stderr begin with `beginning`. */
size_t child_lines(const char *text, const char *beginning);
/* Fails the test unless worker `thread` of `rank` may run on just these PUs. */
void child_expect_pus(const struct run *of, int rank, int thread, const char *pus);
/* Fails the test unless worker `thread` of `rank` has exactly `pu`. */
void child_expect(const struct run *of, int rank, int thread, uint32_t pu);
