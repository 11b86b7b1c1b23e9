/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts to keep out of the next jobs, in the form that a scheduler takes. A suggestion for a person:
 * nothing is excluded by PerfTracker.
 * Source: slurm.schedmd.com, sbatch(1), --exclude and hostlist expressions; kubernetes.io, "Assigning
 * Pods to Nodes", node affinity.
 */
#pragma once

#include "base/str.h"

#define EXCLUDELIST_HOSTS_MAX 1000u

/* names[cnt], in any order, distinct. A name with a character that no host name has is left out. */

/* Appends "--exclude=node[03-05,12],login1"; nothing without a host. Returns 0 or -ENOMEM. */
_must_check_ int excludelist_slurm(const char *const *names, size_t cnt, struct str *out);

/* Appends the affinity of a pod as YAML; nothing without a host. Returns 0 or -ENOMEM. */
_must_check_ int excludelist_kubernetes(const char *const *names, size_t cnt, struct str *out);
