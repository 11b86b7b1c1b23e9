/* SPDX-License-Identifier: Apache-2.0 */
/* What the judgement of one recording shares. For this folder alone. */
#pragma once

#include "stalls/cpuruns.h"
#include "stalls/threadgaps.h"

struct judge {
	const struct stall_recording *recording;
	struct stall_verdict *verdict;
	stall_gap_vec gaps;
	struct cpuruns runs;
};

/* How culprits of a class are known. */
enum culprits_by { BY_NOTHING, BY_CPUS, BY_SIGNALS, BY_WAKING_THREADS, BY_WAKING_PROCESSES };

/* By what parts of a class are told apart, and their culprits known. */
struct class_traits {
	bool function, culprit, file;
	enum culprits_by by;
};

const struct class_traits *judge_traits(enum stall_class class);

static inline const char *judge_text(const struct judge *judge, uint32_t id)
{
	return strtab_text(&judge->recording->texts, id);
}

/* The part with the thread and begin of key; NULL: there is none. */
const struct stall_part *judge_find_part(const struct judge *judge, const struct stall_part *key);

/* stallparts.c: fills verdict->parts, and running, runnable, blocked of the accounts. */
_must_check_ int judge_parts(struct judge *judge);

/* stallfindings.c: findings of the parts. */
_must_check_ int judge_findings(struct judge *judge);

/* stallculprits.c: who did it, of a finding whose parts are there; fills holder and did, too. */
_must_check_ int judge_culprits(struct judge *judge, uint32_t finding);

/* stallkernel.c: findings of the samples and of the host's counters. */
_must_check_ int judge_kernel(struct judge *judge);

/* stallrhythm.c: counts, lengths, period and turns of a finding. */
_must_check_ int judge_rhythm(struct judge *judge, uint32_t finding);

/*
 * The period of its first culprit, by the times in which that one had a CPU: victims are hit at any
 * moment of these. Leaves a period that is known.
 */
_must_check_ int judge_culprit_rhythm(struct judge *judge, uint32_t finding);
