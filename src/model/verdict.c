/* SPDX-License-Identifier: Apache-2.0 */
#include "model/verdict.h"

static const struct {
	const char *name, *words;
	bool bad, open;
} verdicts[VERDICT_CNT] = {
	[VERDICT_HEALTHY] = { "healthy", "HEALTHY", false, false },
	[VERDICT_ABNORMAL] = { "abnormal", "ABNORMAL", true, false },
	[VERDICT_INCONCLUSIVE] = { "inconclusive", "INCONCLUSIVE", false, true },
	[VERDICT_SLOW] = { "slow", "SLOW, CAUSE NOT FOUND", true, false },
	[VERDICT_FAILED] = { "failed", "JOB FAILED", true, false },
	[VERDICT_STUCK] = { "stuck", "STUCK", true, false },
	[VERDICT_INCOMPLETE] = { "incomplete", "INCOMPLETE", false, true },
	[VERDICT_NOTHING_FOUND] = { "nothing_found", "NOTHING FOUND BY SAMPLING", false, true },
};

static bool is_known(enum verdict verdict)
{
	return (unsigned int)verdict < VERDICT_CNT;
}

const char *verdict_name(enum verdict verdict)
{
	return is_known(verdict) ? verdicts[verdict].name : "unknown";
}

const char *verdict_words(enum verdict verdict)
{
	return is_known(verdict) ? verdicts[verdict].words : "UNKNOWN";
}

bool verdict_is_bad(enum verdict verdict)
{
	return is_known(verdict) && verdicts[verdict].bad;
}

bool verdict_is_open(enum verdict verdict)
{
	return is_known(verdict) && verdicts[verdict].open;
}
