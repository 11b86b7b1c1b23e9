/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes parse as a fingerprint or return an error with a place. A parsed fingerprint keeps the
 * invariants of its header: indices point into their arrays, callers come first, shares of the
 * window are numbers. Built with libFuzzer (option fuzz).
 */
#include "format/fingerprint/fingerprint.h"

#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "fingerprint_fuzz: %s\n", what);
	abort();
}

static void check_functions(const struct fingerprint *fp)
{
	for (size_t i = 0; i < fp->frame_cnt; i++) {
		check(fp->frames[i].parent == FRAME_NONE || fp->frames[i].parent < i, "caller");
		check(fp->frames[i].kind < KIND_CNT, "kind");
		check(fp->frames[i].name[strlen(fp->frames[i].name)] == '\0', "name");
	}
	for (size_t i = 0; i < fp->function_cnt; i++) {
		const struct fp_function *f = &fp->functions[i];

		check(f->frame == FRAME_NONE || f->frame < fp->frame_cnt, "frame");
		check(f->class < CLASS_CNT && f->resource <= RESOURCE_CNT, "class or resource");
		check(f->beta_frac >= 0 && f->beta_frac <= 1, "beta");
	}
}

static void check_collectives(const struct fingerprint *fp)
{
	for (size_t i = 0; i < fp->share_cnt; i++)
		check(fp->shares[i].function == FRAME_NONE ||
			      fp->shares[i].function < fp->function_cnt,
		      "function of a share");
	for (size_t i = 0; i < fp->collective_cnt; i++) {
		const struct fp_collective *c = &fp->collectives[i];

		check((uint64_t)c->lead_first + c->lead_cnt <= fp->share_cnt, "lead");
		check((uint64_t)c->host_first + c->host_cnt <= fp->share_cnt, "host lead");
		check(c->dur_ns >= 0 && c->lead_ns >= 0, "negative time");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fingerprint fp;
	struct err err;
	int error = fingerprint_read_memory(data, len, "fuzz", &fp, &err);

	if (error < 0) {
		check(strncmp(err.text, "fuzz:", 5) == 0, "an error without a place");
		return 0;
	}
	check(error == 0 && fp.window_ns >= 1, "result or window");
	check_functions(&fp);
	check_collectives(&fp);
	fingerprint_done(&fp);
	return 0;
}
