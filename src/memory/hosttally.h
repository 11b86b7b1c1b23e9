/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts that findings of other jobs accused of something that lies in the machine
 * (machinecause.h): in how many jobs, of what, when last.
 */
#pragma once

#include "base/vec.h"
#include "store/storelist.h"

#define HOSTTALLY_HOSTS_MAX 4096u
#define HOSTTALLY_KINDS_MAX 8u
/* In fewer other jobs a host may have had bad luck: a report does not mention them. */
#define HOSTTALLY_JOBS_MIN 2u

struct hosttally_host {
	char *name;
	VEC(char *) jobs; /* distinct keys */
	struct {
		char cause[32];
		size_t cnt;
	} kinds[HOSTTALLY_KINDS_MAX];
	size_t kind_cnt;
	int64_t last_ns;
};

struct hosttally {
	VEC(struct hosttally_host) hosts;
	const char *except; /* a job that does not count; borrowed */
};

/* except: this job. The caller ends with hosttally_done() in either case. */
_must_check_ int hosttally_read(struct store *store, const char *except, struct hosttally *ret,
				struct err *err);
void hosttally_done(struct hosttally *tally);

/* NULL: never accused. */
const struct hosttally_host *hosttally_find(const struct hosttally *tally, const char *name);
