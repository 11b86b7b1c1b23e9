/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of a hang of a live job: what hostd says of its workers becomes records, which the stage
 * `hang` judges (hang/hangdiagnosis.h). Pure: facts in, report out.
 */
#pragma once

#include "live/link/wire.h"
#include "live/link/wire_hang.h"
#include "model/hang/hangrecord.h"
#include "model/report.h"

/*
 * Whether a worker with the most progress has ended its program normally. Then the job is
 * over: the workers still connected shut down, they do not hang (but see live/ending/leaver.h).
 */
bool hang_job_is_ending(const struct wire_state *states, size_t cnt);

struct hang_input {
	const struct wire_state *states; /* all workers of the job, including those that ended */
	size_t cnt;
	const struct wire_where *wheres; /* of the workers for which one is known, in any order */
	size_t where_cnt;
	int64_t now_ns; /* on the workers' clock */
	bool blind;	/* collectives may be unrecorded: overhead_is_blind() */
	/* Read from outside on this host, by rank; owned by the caller. May be none. */
	const struct hang_record *read;
	size_t read_cnt;
	const char *record_path; /* where the records are kept; NULL: nowhere */
};

/* Returns 0 or -ENOMEM; *ret is to be freed with arena_done(&ret->arena) on success only. */
_must_check_ int hang_report(const struct hang_input *input, struct report *ret);
