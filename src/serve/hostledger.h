/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts that findings accused, over all jobs: how often, in how many jobs, of what. A host that is
 * accused in one job may have had bad luck; one that is accused in three deserves a look at its
 * hardware. Of a report in a folder the first finding counts, of a job in the store each.
 */
#pragma once

#include "base/vec.h"
#include "serve/archive.h"

#define HOSTLEDGER_HOSTS_MAX 10000u
#define HOSTLEDGER_KINDS_MAX 32u
#define HOSTLEDGER_SHOWN_MAX 20u /* accusations of a host that are kept: the latest */

struct hostledger_accusation {
	char report[ARCHIVE_ID_BYTES];
	char *job, *title, *cause; /* job: its name, else its folder */
	int64_t made_ns;
	char made[40]; /* "2026-11-23T12:03:41Z"; "": unknown */
	double gain_ms;
};

typedef VEC(char *) hostledger_names;

struct hostledger_kind {
	char cause[32];
	size_t cnt;
};

struct hostledger_host {
	char *name;
	size_t finding_cnt, job_cnt;
	hostledger_names
		machine_jobs; /* those with a cause that lies in the machine (machinecause.h) */
	struct hostledger_kind kinds[HOSTLEDGER_KINDS_MAX]; /* the most frequent first */
	size_t kind_cnt;
	size_t charge;	       /* the number of the last one: a finding may name a host twice */
	hostledger_names jobs; /* distinct: keys, or folders */
	VEC(struct hostledger_accusation) accusations; /* the latest first */
};

struct hostledger {
	VEC(struct hostledger_host) hosts; /* most jobs first, then most findings, then by name */
	size_t left_out, charge_cnt;	   /* left_out: hosts beyond the limit */
};

/*
 * Reads store and folders; a folder that belongs to a job of the store is left out. Returns 0 or
 * -errno with a line in err; the caller ends with hostledger_done() in either case.
 */
_must_check_ int hostledger_read(struct archive *archive, struct hostledger *ret, struct err *err);
void hostledger_done(struct hostledger *ledger);
