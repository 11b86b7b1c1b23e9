/* SPDX-License-Identifier: Apache-2.0 */
/* On which hosts a job's ranks are, before the first of their traces is summarized. */
#pragma once

#include "cmd/cmd.h"
#include "format/sidecar/sidecar.h"
#include "summarize/collectives/reach.h"

struct load_hosts {
	VEC(struct rank_host) list; /* ascending by rank, distinct */
	VEC(char *) names;	    /* owns the host names in list */
	bool complete;		    /* ranks that are not listed are on none of these hosts */
};

/*
 * From the metadata before the first event of each trace; other files are skipped, and so is
 * a single path. Returns 0 or -ENOMEM; call load_hosts_done() in either case.
 */
_must_check_ int load_hosts_of_traces(const path_list *paths, struct load_hosts *ret);

/* From the list of ranks in the sidecar: those on its host. Returns as above. */
_must_check_ int load_hosts_of_sidecar(const struct sidecar *sidecar, struct load_hosts *ret);

/* "0-7": all ranks of one host. Returns 0, -EINVAL with a line in err, or -ENOMEM. */
_must_check_ int load_hosts_of_set(const char *text, struct load_hosts *ret, struct err *err);

/* For summarize(): borrows hosts and here, the worker's host, which is used if any are listed. */
struct rank_hosts load_hosts_view(const struct load_hosts *hosts, const char *here);
void load_hosts_done(struct load_hosts *hosts);
