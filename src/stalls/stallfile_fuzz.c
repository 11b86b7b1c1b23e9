/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes are a recording or an error. What is a recording is the same after it was written and
 * read again, and is judged: times add up, and each finding has parts.
 */
#include "format/stallfile/stallfile.h"

#include "stalls/stalljudge.h"

#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "stallfile_fuzz: %s\n", what);
	abort();
}

static void check_verdict(const struct stall_recording *recording)
{
	struct stall_verdict verdict;

	check(stalljudge(recording, &verdict) == 0, "no memory");
	vec_foreach(part, &verdict.parts) {
		check(part->end_ns > part->begin_ns, "an empty part");
		check(part->thread < recording->threads.cnt, "a part of no thread");
		check(part->finding == UINT32_MAX || part->finding < verdict.findings.cnt,
		      "a part of no finding");
	}
	vec_foreach(account, &verdict.accounts) {
		check(account->explained_ns <= account->lost_ns, "more explained than lost");
		check(account->waited_ns <= account->blocked_ns, "more waited than blocked");
	}
	vec_foreach(finding, &verdict.findings)
		check(finding->culprit_cnt <= STALL_CULPRITS_MAX, "too many culprits");
	stallverdict_done(&verdict);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct stall_recording recording, again;
	struct str text = { 0 }, second = { 0 };
	struct err err;

	if (stallfile_parse("x", (const char *)data, len, &recording, &err) < 0)
		return 0;
	check(stallfile_write(&recording, &text) == 0, "no memory");
	check(stallfile_parse("x", text.data, text.len, &again, &err) == 0, err.text);
	check(stallfile_write(&again, &second) == 0, "no memory");
	check(text.len == second.len && memcmp(text.data, second.data, text.len) == 0,
	      "it changed when it was read again");
	check_verdict(&recording);
	str_done(&text);
	str_done(&second);
	stallrecording_done(&recording);
	stallrecording_done(&again);
	return 0;
}
