/* Folders and files of a small machine, for one test. */
#pragma once

#include "tests/base/scratch.h"

/* Writes `text` to scratch_folder() + path, making the folders on the way. */
void put_file(const char *path, const char *text);

/* A captured /sys and /proc: 2 packages = 2 NUMA nodes, 2 cores each, SMT; PUs 0-3 first threads,
 * 4-7 their siblings; L1d 32K and L2 256K per core, L3 8M per package. */
void put_smt_machine(void);
