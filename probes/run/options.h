/* Options that a run of servet-probe has on one machine and, with --cluster, on many. */
#ifndef SERVET_PROBES_RUN_OPTIONS_H
#define SERVET_PROBES_RUN_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

struct run_options {
    const char *output; /* NULL: the default place; "-": standard output */
    uint64_t seed;
    double budget_s; /* 0: none */
    bool quiet, json, exhaustive, force;
};

/* A child parser; its input is a struct run_options. */
extern const struct argp probe_options_argp;

#endif
