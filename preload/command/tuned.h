/* The findings of servet-bench --tune about a program, kept beside the profile: which ranks,
 * threads and placement were the fastest on this machine. servet-bench writes it, servet-pin
 * --tuned reads it.
 *
 * One file for each program and size, HOST.tuned/NAME-HASH.json beside the profile HOST.json: NAME
 * is that of the program's file, HASH one of its arguments as they were given, {threads} among
 * them. The program's folder is not in it: a program that was built anew somewhere else is as
 * fast. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "profile/base/error.h"

enum pin_tuned_placement {
    PIN_TUNED_MEMORY,
    PIN_TUNED_COMMUNICATION,
    PIN_TUNED_DEFAULT, /* as the system, or the launcher, places it */
    PIN_TUNED_PLACEMENTS,
};

/* "memory", "communication", "default", as the file has them; NULL ends them. */
extern const char *const pin_tuned_names[PIN_TUNED_PLACEMENTS + 1];

/* Policies of memory that are tried where it has tiers: what the capacity tier gives is less than
 * one of these. */
enum pin_tuned_memory {
    PIN_TUNED_FIRST_TOUCH,
    PIN_TUNED_FAST,
    PIN_TUNED_WEIGHTED,
    PIN_TUNED_MEMORIES
};

/* "none", "fast", "weighted", as SERVET_MEMBIND and the file have them; NULL ends them. */
extern const char *const pin_tuned_memories[PIN_TUNED_MEMORIES + 1];

struct pin_tuned {
    uint32_t ranks; /* on the node; 0: not started by a launcher */
    uint32_t threads;
    enum pin_tuned_placement placement;
    enum pin_tuned_memory memory; /* first touch where the shim does not place */
    uint32_t pus; /* that the process may use, where they must be as many; 0: they need not */
};

/* Keys of the file that the reader needs; the rest is for people. */
#define PIN_TUNED_SIGNATURE "topology_signature"
#define PIN_TUNED_MACHINE "machine" /* "pus": that the tuner might use */
#define PIN_TUNED_ROWS "candidates"
#define PIN_TUNED_MEMBIND "membind" /* of a row */
#define PIN_TUNED_ROUNDS "rounds"   /* of a row */

/* Where the entry lies beside that profile. `arguments` begins behind the program and ends with
 * NULL. 0; -ENAMETOOLONG. */
int pin_tuned_path(const char *profile, const char *program, char *const *arguments,
                   char out[PATH_MAX]);

/* Reads the entry of the program: beside the profile that the user would write, else beside the one
 * that is found. `out` gives the ranks, the PUs, and the threads where these are given too (else
 * 0), and gets the fastest of these; `path` the file's path. 0; -ENOENT (there is no file, of this
 * machine none, or it has no such ranks and threads), -EINVAL (no such file as servet-bench
 * writes): the text says so. */
int pin_tuned_find(const char *program, char *const *arguments, struct pin_tuned *out,
                   char path[PATH_MAX], struct servet_error *error);

/* How well an entry is founded. */
struct pin_tuned_search {
    uint32_t rounds; /* of its first row */
    uint32_t pus;    /* that the tuner might use */
};

/* 0; -ENOENT: there is no entry of this machine in that file. */
int pin_tuned_read_search(const char *path, const char *signature, struct pin_tuned_search *out);

/* In the words of a line they stand for the numbers that are tried. */
#define PIN_TUNED_RANKS "{ranks}"
#define PIN_TUNED_THREADS "{threads}"

/* Does one of them stand in the word? */
bool pin_tuned_is_open(const char *word);
/* The word with the numbers in their places, a new string. NULL: no memory. */
char *pin_tuned_fill(const char *word, const struct pin_tuned *with);
