/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	wire_report FILE...
 *
 * Localizes fingerprints as they are and as they come from the wire, in its forms, and
 * prints what each accuses. Exits 1 when the complete form accuses others.
 */
#include "center/wire/fpwire.h"
#include "localize/localize.h"
#include "model/rankset.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	struct fpwire_options options;
} forms[] = {
	{ "complete", { .detail = FPWIRE_LEADS, .names = true } },
	{ "leads of 50 us", { .detail = FPWIRE_LEADS, .names = true, .lead_min_ns = 50000 } },
	{ "40 functions",
	  { .detail = FPWIRE_LEADS, .names = true, .lead_min_ns = 50000, .function_max = 40 } },
	{ "20 functions",
	  { .detail = FPWIRE_LEADS, .names = true, .lead_min_ns = 50000, .function_max = 20 } },
	{ "times", { .detail = FPWIRE_TIMES, .names = true } },
	{ "functions alone", { .detail = FPWIRE_FUNCTIONS, .names = true } },
};

static void die(const char *what)
{
	fprintf(stderr, "wire_report: %s\n", what);
	exit(2);
}

static void describe(const struct report *report, struct str *out)
{
	str_append(out, verdict_name(report->verdict));
	for (size_t i = 0; i < report->finding_cnt; i++) {
		const struct finding *f = &report->findings[i];

		str_printf(out, "; %s ranks ", f->cause);
		rankset_format(out, f->ranks, f->rank_cnt);
		str_printf(out, " in %s (%s)", f->name, f->key);
	}
}

static void judge(const struct fingerprint *const *fps, size_t cnt, struct str *out)
{
	struct localize_options options = localize_defaults();
	struct report report;
	struct err err;

	if (localize(fps, cnt, &options, &report, &err) < 0)
		die(err.text);
	describe(&report, out);
	report_done(&report);
}

static size_t judge_wired(const struct fingerprint *const *fps, size_t cnt,
			  const struct fpwire_options *options, struct str *out)
{
	struct fingerprint *copies = calloc(cnt + 1, sizeof(*copies));
	const struct fingerprint **list = calloc(cnt + 1, sizeof(*list));
	struct fpwire message = { 0 };
	struct fpnames names = { 0 };
	struct str bytes = { 0 };
	struct err err;
	size_t len;

	if (copies == NULL || list == NULL)
		die("out of memory");
	if (fpwire_encode(fps, cnt, options, &bytes, &err) < 0 ||
	    fpwire_decode(&message, bytes.data, bytes.len, &names, &err) < 0)
		die(err.text);
	for (size_t i = 0; i < cnt; i++) {
		if (fpwire_rebuild(&message, i, &names, &copies[i], NULL) < 0)
			die("out of memory");
		list[i] = &copies[i];
	}
	judge(list, cnt, out);
	for (size_t i = 0; i < cnt; i++)
		fingerprint_done(&copies[i]);
	len = bytes.len;
	str_done(&bytes);
	fpnames_done(&names);
	fpwire_done(&message);
	free(copies);
	free(list);
	return len;
}

/* Whether the complete form accuses as the original does. */
static bool compare(const struct fingerprint *const *fps, size_t cnt)
{
	struct str original = { 0 };
	bool same = true;

	judge(fps, cnt, &original);
	printf("%-16s %s\n", "original", str_borrow(&original));
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct str wired = { 0 };
		size_t bytes = judge_wired(fps, cnt, &forms[i].options, &wired);
		bool alike = strcmp(str_borrow(&original), str_borrow(&wired)) == 0;

		printf("%-16s %s (%zu bytes a worker)\n", forms[i].name,
		       alike ? "the same" : str_borrow(&wired), bytes / cnt);
		same &= alike || i > 0;
		str_done(&wired);
	}
	str_done(&original);
	return same;
}

int main(int argc, char **argv)
{
	size_t cnt = (size_t)argc - 1;
	struct fingerprint *fps = calloc(cnt + 1, sizeof(*fps));
	const struct fingerprint **list = calloc(cnt + 1, sizeof(*list));
	struct err err;
	bool same;

	if (fps == NULL || list == NULL || cnt == 0)
		die("usage: wire_report FILE...");
	for (size_t i = 0; i < cnt; i++) {
		if (fingerprint_read(argv[i + 1], &fps[i], &err) < 0)
			die(err.text);
		list[i] = &fps[i];
		/* Messages carry windows of running jobs, whose use of GPUs is not judged. */
		fps[i].usage.known = false;
		if (fps[i].rank == RANK_UNKNOWN)
			fps[i].rank = (int)i;
	}
	same = compare(list, cnt);
	for (size_t i = 0; i < cnt; i++)
		fingerprint_done(&fps[i]);
	free(fps);
	free(list);
	return same ? 0 : 1;
}
