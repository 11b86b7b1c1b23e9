/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/status_overhead.h"

#include "report/costphrase.h"

#include <inttypes.h>
#include <stdio.h>

void status_overhead_lines(const struct report_overhead *overhead)
{
	struct str text = { 0 }, threads = { 0 };

	phrase_overhead(&text, overhead);
	phrase_threads(&threads, &overhead->own);
	(void)printf("overhead: %s\n", str_borrow(&text));
	if (threads.len > 0)
		(void)printf("threads: %s\n", str_borrow(&threads));
	str_done(&text);
	str_done(&threads);
}

static void print_cost(const char *name, const struct report_cost *cost)
{
	if (cost->pair_cnt == 0)
		(void)printf("\"%s\":null,", name);
	else
		(void)printf("\"%s\":{\"pct\":%.3f,\"low_pct\":%.3f,\"high_pct\":%.3f,"
			     "\"pairs\":%" PRIu32 "},",
			     name, cost->pct, cost->low_pct, cost->high_pct, cost->pair_cnt);
}

static void print_left_out(const struct report_overhead *overhead)
{
	const struct {
		bool left_out;
		const char *name;
	} parts[] = { { overhead->less_samples, "samples" },
		      { overhead->no_operators, "operators" },
		      { overhead->no_collectives, "collectives" },
		      { overhead->only_marks, "always" } };
	const char *comma = "";

	(void)printf("\"left_out\":[");
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (!parts[i].left_out)
			continue;
		(void)printf("%s\"%s\"", comma, parts[i].name);
		comma = ",";
	}
	(void)printf("]");
}

static void print_threads(const struct own_cpu *own)
{
	const char *comma = "";

	(void)printf(",\"threads\":[");
	for (size_t i = 0; i < OWN_THREAD_CNT && own->rank_ns > 0; i++) {
		(void)printf("%s{\"name\":\"%s\",\"cpu_s\":%.6f,\"ms_per_rank_s\":%.4f}", comma,
			     own_thread_name((enum own_thread)i),
			     (double)own->cpu_ns[i] / NSEC_PER_SEC,
			     own_cpu_ms_per_s(own, own->cpu_ns[i]));
		comma = ",";
	}
	(void)printf("]");
}

void status_overhead_json(const struct report_overhead *overhead)
{
	const struct report_audits *audits = &overhead->audits;

	(void)printf("{");
	print_cost("effect", &overhead->effect);
	print_cost("always", &overhead->always);
	print_cost("window", &overhead->window);
	(void)printf("\"audits\":{\"count\":%" PRIu32 ",\"total_s\":%.1f,\"job_s\":%.1f,"
		     "\"cost_pct\":%.4f},",
		     audits->cnt, audits->total_s, audits->job_s, audits->cost_pct);
	print_left_out(overhead);
	print_threads(&overhead->own);
	(void)printf("}");
}
