/* The nodes that a job will run on, before it starts: from a file or from the batch system. */
#ifndef SERVET_MAPPER_COMMAND_CLUSTER_JOB_H
#define SERVET_MAPPER_COMMAND_CLUSTER_JOB_H

#include "profile/model.h"

/* PU numbers of the nodes that the file lists, one to a line as launchers write them: "node1",
 * "node1 slots=4", "node1:4"; the name may be a hostlist (node[1-4]); comments after '#', empty
 * lines and repeats do not matter. 0; -errno of the file; -EINVAL (a name that the profile does not
 * have, with file and line; no node; not the profile of a cluster); -ENOMEM. */
int cluster_job_from_file(const struct servet_profile *profile, const char *path,
                          struct profile_set *pus, struct servet_error *error);

/* The same of the Slurm job that this process is part of ($SLURM_JOB_NODELIST). -EINVAL also
 * outside of a job. */
int cluster_job_from_slurm(const struct servet_profile *profile, struct profile_set *pus,
                           struct servet_error *error);

#endif
