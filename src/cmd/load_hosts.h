/* SPDX-License-Identifier: Apache-2.0 */
/* On which hosts a job's ranks are, before the first of their traces is summarized. */
#pragma once

#include "cmd/cmd.h"
#include "format/sidecar/sidecar.h"
#include "summarize/reach.h"

struct load_hosts {
	VEC(struct rank_host) list; /* ascending by rank, distinct */
	VEC(char *) names;	    /* that it borrows */
	bool complete;		    /* who isn't listed is on none of these hosts */
};

/*
 * As the traces among several paths say before their first event; what can't be read says
 * nothing. Returns 0 or -ENOMEM; load_hosts_done() is fine after either.
 */
_must_check_ int load_hosts_of_traces(const path_list *paths, struct load_hosts *ret);

/* The workers beside its own that a sidecar lists. The same. */
_must_check_ int load_hosts_of_sidecar(const struct sidecar *sidecar, struct load_hosts *ret);

/* "0-7": all ranks of one host. Returns 0, -EINVAL with a line in err, or -ENOMEM. */
_must_check_ int load_hosts_of_set(const char *text, struct load_hosts *ret, struct err *err);

/* For summarize(): borrows hosts and here, the worker's own, which counts when some are listed. */
struct rank_hosts load_hosts_view(const struct load_hosts *hosts, const char *here);
void load_hosts_done(struct load_hosts *hosts);
