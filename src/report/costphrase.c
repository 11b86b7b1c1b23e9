/* SPDX-License-Identifier: Apache-2.0 */
#include "report/costphrase.h"

#include <inttypes.h>
#include <math.h>

/* Two digits, rounded up: an upper bound must not become smaller. */
static double round_up(double value)
{
	double unit = pow(10.0, floor(log10(value)) - 1.0);

	return ceil(value / unit - 1e-9) * unit;
}

/* "0.5", "13", "130"; plus: also where it is positive. */
static void append_two_digits(struct str *out, double value, const char *plus)
{
	str_append(out, value > 0 ? plus : "");
	str_printf(out, fabs(value) < 99.5 ? "%.2g" : "%.0f", value);
}

static void append_count(struct str *out, uint32_t cnt)
{
	if (cnt >= 1000000)
		str_printf(out, "%" PRIu32 ",%03" PRIu32, cnt / 1000000, cnt / 1000 % 1000);
	else if (cnt >= 1000)
		str_printf(out, "%" PRIu32, cnt / 1000);
	if (cnt >= 1000)
		str_printf(out, ",%03" PRIu32, cnt % 1000);
	else
		str_printf(out, "%" PRIu32, cnt);
}

static void append_pairs(struct str *out, uint32_t cnt)
{
	str_append(out, ", 95 % sure, from ");
	append_count(out, cnt);
	str_append(out, cnt == 1 ? " pair)" : " pairs)");
}

/* Collectors cannot speed a job up: an interval below 0 has its width as the bound. */
static void append_cost(struct str *out, const struct report_cost *cost)
{
	double bound = fmax(cost->high_pct, (cost->high_pct - cost->low_pct) / 2.0);

	if (cost->low_pct <= 0.0) {
		str_append(out, "not measurable (< ");
		append_two_digits(out, round_up(fmax(bound, 1e-3)), "");
		str_append(out, " %");
		append_pairs(out, cost->pair_cnt);
		return;
	}
	append_two_digits(out, cost->pct, "+");
	str_append(out, " % (");
	append_two_digits(out, cost->low_pct, "");
	str_append(out, " to ");
	append_two_digits(out, cost->high_pct, "");
	append_pairs(out, cost->pair_cnt);
}

static void part(struct str *out, size_t begin)
{
	if (out->len > begin)
		str_append(out, "; ");
}

static void append_cpu(struct str *out, const struct own_cpu *own)
{
	double pct = own_cpu_ms_per_s(own, own_cpu_sum(own)) / 10.0;

	str_printf(out, "%.*f %% of a core per rank (exact)", pct < 0.995 ? 2 : 1, pct);
}

static void append_left_out(struct str *out, const struct report_overhead *overhead)
{
	const struct {
		bool left_out;
		const char *name;
	} parts[] = { { overhead->less_samples, "four of five samples" },
		      { overhead->no_operators, "operators" },
		      { overhead->no_collectives && !overhead->only_marks,
			"collectives between windows" },
		      { overhead->only_marks, "all but marks between windows" } };
	const char *comma = "; not recorded because of their overhead: ";

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (!parts[i].left_out)
			continue;
		str_printf(out, "%s%s", comma, parts[i].name);
		comma = ", ";
	}
}

void phrase_overhead(struct str *out, const struct report_overhead *overhead)
{
	const struct report_audits *audits = &overhead->audits;
	size_t begin = out->len;

	if (overhead->own.rank_ns > 0)
		append_cpu(out, &overhead->own);
	if (overhead->effect.pair_cnt > 0) {
		part(out, begin);
		str_append(out, "effect on iteration time ");
		append_cost(out, &overhead->effect);
	}
	if (overhead->window.pair_cnt > 0 && !overhead->torch) {
		part(out, begin);
		str_append(out, "in a window ");
		append_cost(out, &overhead->window);
	}
	if (audits->cnt > 0) {
		part(out, begin);
		str_printf(out, "%" PRIu32 " audit%s included (%.0f s of %.0f s)", audits->cnt,
			   audits->cnt == 1 ? "" : "s", audits->total_s, audits->job_s);
	}
	if (out->len == begin)
		str_append(out, "not measured yet");
	if (overhead->torch)
		str_append(out, "; in a window unknown (torch.profiler)");
	append_left_out(out, overhead);
}

void phrase_threads(struct str *out, const struct own_cpu *own)
{
	size_t begin = out->len;

	if (own->rank_ns == 0)
		return;
	for (size_t i = 0; i < OWN_THREAD_CNT; i++) {
		if (own->cpu_ns[i] == 0)
			continue;
		if (out->len > begin)
			str_append(out, ", ");
		str_printf(out, "%s %.2f", own_thread_name((enum own_thread)i),
			   own_cpu_ms_per_s(own, own->cpu_ns[i]));
	}
	if (out->len > begin)
		str_append(out, " ms/s per rank");
}
