/* A profile in words: figures, tables, and the sections of servet-show. Where memory is short, the
 * command ends (cli_needed()). */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "profile/model.h"

/* -- figures -- */

/* Figures as people read them. */

/* Long enough for every figure below. */
#define FIGURE_SIZE 64
/* Groups beyond this many columns are only counted. */
#define GROUPS_WIDTH 60

struct figure {
    char text[FIGURE_SIZE + GROUPS_WIDTH];
};

/* 32 KiB, 1.25 MiB; "-" for 0. */
struct figure profile_figure_bytes(uint64_t bytes);
/* Effective size of a cache: "32 MiB"; "32 MiB, measured once"; "not settled" where repetitions
 * disagree; "not measured". */
struct figure profile_figure_size(const struct profile_cache *cache);
/* The same with its interval, "32 MiB (28 MiB to 40 MiB)" where others explain it about
 * as well. */
struct figure profile_figure_cache(const struct profile_cache *cache);
/* 48.2 ns, 1.3 us; "-" for 0. */
struct figure profile_figure_seconds(double seconds);
/* 9.31 GB/s; "-" for 0. */
struct figure profile_figure_bandwidth(double bytes_per_s);
/* "0,2 1,3" or "0,2 … (48 groups)"; "-" when there are no groups and no pairs. */
struct figure profile_figure_relation(const struct profile_relation *relation);
/* The same of one group. */
struct figure profile_figure_group(const struct profile_set *group);
/* As profile_figure_relation(), for PUs that share something; no PUs are a word of their own. */
struct figure profile_figure_sharers(const struct profile_relation *relation);
/* "3 %": two digits, of hundred and more whole per cent, up to tenfold. */
struct figure profile_figure_spread(double spread);
/* "measured 7 times, spread 3 %" */
struct figure profile_figure_quality(const struct profile_quality *quality);

/* "0,2 1,3": all groups and pairs of a relation, a new string. */
char *profile_relation_text(const struct profile_relation *relation);

/* -- tables -- */

/* The first row has the names of the columns; a table of names alone is empty. */
struct table {
    char **rows; /* cells with tabs between them; behind a cell, after a '\v', what it leaves out */
    size_t row_count;
    size_t chosen; /* the row that is proposed; 0: none */
    bool numbers;  /* all cells but the last of a row are, and stand to the right in the text */
};

/* Most columns of a table that is printed as text. */
#define TABLE_COLUMNS 8

/* Adds a row: a text with a tab between two cells. */
void profile_table_row(struct table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds a cell to the last row; `all`: what it leaves out, or NULL. */
void profile_table_cell(struct table *table, const char *shown, const char *all);

void profile_table_free(struct table *table);

/* Prints the rows, indented, in columns that are as wide as their widest cell, then what their last
 * cells leave out, and empties the table. */
void profile_table_print(struct table *table, FILE *stream, int indent);

/* The tables of a profile; empty where nothing is known. */
void profile_table_caches(struct table *table, const struct profile_class *node_class);
void profile_table_tlb(struct table *table, const struct profile_class *node_class);
void profile_table_access(struct table *table, const struct profile_class *node_class);
void profile_table_kernels(struct table *table, const struct profile_class *node_class);
void profile_table_levels(struct table *table, const struct profile_memory *memory,
                          bool only_disturbing);
void profile_table_devices(struct table *table, const struct profile_class *node_class);
void profile_table_transfers(struct table *table, const struct profile_class *node_class);
/* `latency` and `members` name their columns. */
void profile_table_layers(struct table *table, const struct profile_communication *communication,
                          const char *latency, const char *members);

/* In flops, p, g, l and T(0) first as Bisseling's slides have them. */
void profile_table_bsp(struct table *table, const struct servet_profile *profile);

/* Does any PU on this overhead level get less than alone? Two workers that keep 95 % of it, as the
 * whole group does where it was measured, do not disturb one another. */
bool profile_level_disturbs(const struct profile_memory *memory, size_t level);

/* -- show -- */

/* The BSP parameters alone. */
void profile_show_bsp(const struct servet_profile *profile, FILE *stream);

/* A profile in words and tables. */

/* `source`: the file it is from, or NULL: what the operating system declares of this machine.
 * `quota`: CPUs that this machine's control groups let run at a time; 0: none, or it is another
 * machine. */
void profile_show_text(const struct servet_profile *profile, const char *source, double quota,
                       FILE *stream);
