/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dumps of a whole job that hangs, with some bytes changed, become a report: what ranks wait for, who is
 * accused, what is written. A libFuzzer target: of the input the first five bytes choose a simulated job, each four
 * that follow a rank, a place and a byte. With FUZZ_REPLAY a program that plays some inputs of each kind,
 * always the same ones; without a change none of the files may be refused.
 */
#include "base/splitmix.h"
#include "hang/hangdiagnosis.h"
#include "read/dumps/dumps.h"
#include "simulate/hang/hangjob.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { HEAD = 5, EDIT = 4, WORKERS_MAX = 16 };

static size_t count_scenarios(void)
{
	const char *help;
	size_t cnt = 0;

	while (hangjob_name(cnt, &help) != NULL)
		cnt++;
	return cnt;
}

/* The bytes of one rank's dump that the input changes. */
static void change(const uint8_t *edits, size_t len, int rank, struct str *text)
{
	for (size_t i = 0; i + EDIT <= len; i += EDIT) {
		const size_t at = (size_t)edits[i + 1] << 8 | edits[i + 2];

		if (edits[i] % WORKERS_MAX == rank && text->len > 0)
			text->data[at % text->len] = (char)edits[i + 3];
	}
}

typedef void write_dump(const struct hangjob *job, int rank, struct str *out);

static void add_dump(const struct hangjob *job, int rank, write_dump *write, const uint8_t *edits,
		     size_t len, struct dumps *dumps)
{
	struct str text = { 0 };
	struct err err = { "" };
	char path[32];

	(void)snprintf(path, sizeof(path), "dump_rank_%d", rank);
	write(job, rank, &text);
	change(edits, len, rank, &text);
	if (str_error(&text) < 0)
		abort();
	if (dumps_parse(path, str_borrow(&text), text.len, dumps, &err) < 0 &&
	    (err.text[0] == '\0' || len < EDIT))
		abort();
	str_done(&text);
}

static void diagnose(struct dumps *dumps)
{
	struct report report;
	struct hang_facts facts;

	memset(&report, 0, sizeof(report));
	arena_init(&report.arena);
	dumps_join(dumps);
	facts = (struct hang_facts){ .records = dumps->records.data, .cnt = dumps->records.cnt };
	if (hangdiagnosis_make(&facts, &report) < 0)
		abort();
	for (size_t i = 0; i < report.finding_cnt; i++) {
		const struct finding *finding = &report.findings[i];

		if (finding->rank_cnt == 0 || finding->id == NULL || finding->name == NULL)
			abort();
		for (size_t k = 1; k < finding->rank_cnt; k++)
			if (finding->ranks[k] <= finding->ranks[k - 1])
				abort();
	}
	arena_done(&report.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const char *help;
	struct hangjob_options options = { .dumps = HANGJOB_RECORDER };
	struct err err = { "" };
	struct hangjob *job;
	struct dumps dumps;

	if (len < HEAD)
		return 0;
	options.scenario = hangjob_name(data[0] % count_scenarios(), &help);
	options.seed = data[1];
	options.worker_cnt = 2 + data[2] % (WORKERS_MAX - 1);
	options.tp = data[3] % 5;
	if (hangjob_open(&options, &job, &err) < 0)
		abort();
	dumps_init(&dumps);
	for (int rank = 0; rank < options.worker_cnt; rank++) {
		if (!hangjob_has_worker(job, rank))
			continue;
		add_dump(job, rank, hangjob_recorder, data + HEAD, len - HEAD, &dumps);
		if (data[4] % 3 == 1)
			add_dump(job, rank, hangjob_stacks, data + HEAD, len - HEAD, &dumps);
		if (data[4] % 3 == 2)
			add_dump(job, rank, hangjob_pyspy, data + HEAD, len - HEAD, &dumps);
	}
	diagnose(&dumps);
	dumps_done(&dumps);
	hangjob_close(job);
	return 0;
}

#ifdef FUZZ_REPLAY
int main(void)
{
	enum { ROUNDS = 40, EDITS_MAX = 12 };
	uint8_t input[HEAD + EDITS_MAX * EDIT];
	const size_t scenarios = count_scenarios();
	uint64_t state = 17;

	for (size_t round = 0; round < scenarios * ROUNDS; round++) {
		const size_t edits = round % 4 == 0 ? 0 : splitmix_next(&state) % (EDITS_MAX + 1);

		for (size_t i = 0; i < sizeof(input); i++)
			input[i] = (uint8_t)splitmix_next(&state);
		input[0] = (uint8_t)(round % scenarios);
		(void)LLVMFuzzerTestOneInput(input, HEAD + edits * EDIT);
	}
	return 0;
}
#endif
