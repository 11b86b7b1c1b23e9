/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes are a message or an error with a place, and the fingerprints of a message
 * keep the promises of fingerprint.h. The hash at the end is added here: what it
 * catches would otherwise hide all the rest. Built with libFuzzer (option fuzz).
 */
#include "center/wire/fpwire.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "fpwire_fuzz: %s\n", what);
	abort();
}

static void check_functions(const struct fingerprint *fp)
{
	for (size_t i = 0; i < fp->frame_cnt; i++) {
		check(fp->frames[i].parent == FRAME_NONE || fp->frames[i].parent < i, "caller");
		check(fp->frames[i].kind < KIND_CNT, "kind");
		check(strlen(fp->frames[i].name) <= FPNAMES_TEXT_MAX, "name");
	}
	for (size_t i = 0; i < fp->function_cnt; i++) {
		const struct fp_function *f = &fp->functions[i];

		check(f->frame == FRAME_NONE || f->frame < fp->frame_cnt, "frame");
		check(f->class < CLASS_CNT && f->resource <= RESOURCE_CNT, "class or resource");
		check(f->beta_frac >= 0 && f->beta_frac <= 1, "beta");
		check(!(f->mu_frac < 0 || f->mu_frac > 1), "mu");
		check(!(f->sigma_frac < 0 || f->sigma_frac > 1), "sigma");
		check(f->share_ns >= 0 && f->total_ns >= 0 && f->thread_ns >= 0, "negative time");
		check(i == 0 || f[-1].share_ns >= f->share_ns, "order");
	}
}

static void check_collectives(const struct fingerprint *fp)
{
	for (size_t i = 0; i < fp->share_cnt; i++) {
		check(fp->shares[i].function == FRAME_NONE ||
			      fp->shares[i].function < fp->function_cnt,
		      "function of a share");
		check(fp->shares[i].ns >= 0 && fp->shares[i].ns <= INT64_MAX / 4, "share");
	}
	for (size_t i = 0; i < fp->collective_cnt; i++) {
		const struct fp_collective *c = &fp->collectives[i];

		check((uint64_t)c->lead_first + c->lead_cnt <= fp->share_cnt, "lead");
		check((uint64_t)c->host_first + c->host_cnt <= fp->share_cnt, "host lead");
		check(c->dur_ns >= 0 && c->lead_ns >= 0 && c->host_ns >= 0, "negative time");
		check(c->start_ns + c->dur_ns >= c->start_ns, "end");
	}
	for (size_t i = 0; i < fp->iteration_cnt; i++)
		check(fp->iterations[i].dur_ns >= 0, "iteration");
}

/* A fingerprint from the wire can be sent on. */
static void check_again(const struct fingerprint *fp)
{
	struct fpwire_options options = { .detail = FPWIRE_LEADS, .names = true };
	struct str out = { 0 };
	struct err err = { "" };

	check(fpwire_encode(&fp, 1, &options, &out, &err) == 0, err.text);
	str_done(&out);
}

static void check_workers(const struct fpwire *m, const struct fpnames *names)
{
	for (size_t i = 0; i < m->workers.cnt && i < 4; i++) {
		struct fingerprint fp;

		check(fpwire_rebuild(m, i, names, &fp, NULL) == 0, "rebuild");
		check(fp.window_ns >= 1, "window");
		check_functions(&fp);
		check_collectives(&fp);
		check_again(&fp);
		fingerprint_done(&fp);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct fpwire m; /* reused: what a message leaves behind must not matter */
	struct fpnames names = { 0 };
	struct str message = { 0 }, question = { 0 };
	uint64_t hash = htole64(XXH3_64bits(data, len));
	struct err err;

	str_append_len(&message, (const char *)data, len);
	str_append_len(&message, (const char *)&hash, sizeof(hash));
	if (fpwire_decode(&m, message.data, message.len, &names, &err) < 0)
		check(strncmp(err.text, "message:", 8) == 0, "an error without a place");
	else
		check(fpwire_ask(&names, &m, 1, &question) >= 0, "question");
	check_workers(&m, &names);
	str_done(&message);
	str_done(&question);
	fpnames_done(&names);
	return 0;
}
