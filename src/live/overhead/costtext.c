/* SPDX-License-Identifier: Apache-2.0 */
#include "live/overhead/costtext.h"

#include "base/log.h"
#include "format/shared/block.h"
#include "report/costphrase.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define BACKOFF_ALL (BACKOFF_SAMPLES | BACKOFF_OPERATORS | BACKOFF_ALWAYS | BACKOFF_COLLECTIVES)

static struct report_cost cost_of(const struct wire_cost *cost)
{
	return (struct report_cost){ .pair_cnt = cost->pair_cnt,
				     .pct = cost->frac * 100.0,
				     .low_pct = cost->low_frac * 100.0,
				     .high_pct = cost->high_frac * 100.0 };
}

static void set_left_out(struct report_overhead *overhead, uint32_t backoff)
{
	overhead->less_samples = (backoff & BACKOFF_SAMPLES) != 0;
	overhead->no_operators = (backoff & BACKOFF_OPERATORS) != 0;
	overhead->no_collectives = (backoff & BACKOFF_COLLECTIVES) != 0;
	overhead->only_marks = (backoff & BACKOFF_ALWAYS) != 0;
}

void costtext_of(const struct wire_overhead *overhead, const struct own_cpu *own, bool torch,
		 struct report_overhead *ret)
{
	*ret = (struct report_overhead){
		.present = true,
		.torch = torch,
		.effect = cost_of(&overhead->effect),
		.always = cost_of(&overhead->always),
		.window = cost_of(&overhead->window),
		.audits = { .cnt = overhead->audits.cnt,
			    .total_s = (double)overhead->audits.total_ns / NSEC_PER_SEC,
			    .job_s = (double)overhead->audits.job_ns / NSEC_PER_SEC,
			    .cost_pct = overhead->audits.cost_frac * 100.0 },
		.own = *own,
	};
	set_left_out(ret, overhead->backoff);
}

static void write_cost(const char *name, const struct report_cost *cost, struct str *text)
{
	if (cost->pair_cnt > 0)
		str_printf(text, "%s=%.4f,%.4f,%.4f,%" PRIu32 " ", name, cost->pct, cost->low_pct,
			   cost->high_pct, cost->pair_cnt);
}

static uint32_t left_out(const struct report_overhead *overhead)
{
	return (overhead->less_samples ? BACKOFF_SAMPLES : 0u) |
	       (overhead->no_operators ? BACKOFF_OPERATORS : 0u) |
	       (overhead->no_collectives ? BACKOFF_COLLECTIVES : 0u) |
	       (overhead->only_marks ? BACKOFF_ALWAYS : 0u);
}

void costtext_write(const struct report_overhead *overhead, struct str *text)
{
	const struct report_audits *audits = &overhead->audits;
	const struct own_cpu *own = &overhead->own;

	write_cost("effect", &overhead->effect, text);
	write_cost("always", &overhead->always, text);
	write_cost("window", &overhead->window, text);
	if (audits->cnt > 0)
		str_printf(text, "audits=%" PRIu32 ",%.1f,%.1f,%.5f ", audits->cnt, audits->total_s,
			   audits->job_s, audits->cost_pct);
	str_printf(text, "left_out=%" PRIu32, left_out(overhead));
	if (own->rank_ns == 0)
		return;
	str_printf(text, " own=%.3f", (double)own->rank_ns / NSEC_PER_SEC);
	for (size_t i = 0; i < OWN_THREAD_CNT; i++)
		str_printf(text, ",%.6f", (double)own->cpu_ns[i] / NSEC_PER_SEC);
}

void costtext_log(const char *event, const struct report_overhead *overhead)
{
	struct str text = { 0 };

	phrase_overhead(&text, overhead);
	log_line(LOG_INFO, "event=%s cost=\"%s\"", event, str_borrow(&text));
	str_done(&text);
}

/* Up to cap numbers behind "name="; returns how many. */
static size_t read_numbers(const char *text, const char *name, double *ret, size_t cap)
{
	size_t len = strlen(name), cnt = 0;
	const char *at = strstr(text, name);
	char *end;

	if (at == NULL || at[len] != '=')
		return 0;
	for (at += len; cnt < cap && (*at == '=' || *at == ','); at = end) {
		double value = strtod(at + 1, &end);

		if (end == at + 1 || !isfinite(value))
			break;
		ret[cnt++] = value;
	}
	return cnt;
}

static void read_cost(const char *text, const char *name, struct report_cost *ret)
{
	double numbers[4];

	if (read_numbers(text, name, numbers, 4) == 4 && numbers[3] >= 1 && numbers[3] < 1e9)
		*ret = (struct report_cost){ .pct = numbers[0],
					     .low_pct = numbers[1],
					     .high_pct = numbers[2],
					     .pair_cnt = (uint32_t)numbers[3] };
}

static int64_t ns_of(double seconds)
{
	return seconds > 0.0 && seconds < 1e9 ? (int64_t)(seconds * NSEC_PER_SEC) : 0;
}

static void read_own(const char *text, struct own_cpu *ret)
{
	double numbers[1 + OWN_THREAD_CNT];

	if (read_numbers(text, "own", numbers, ARRAY_SIZE(numbers)) != ARRAY_SIZE(numbers))
		return;
	ret->rank_ns = ns_of(numbers[0]);
	for (size_t i = 0; i < OWN_THREAD_CNT; i++)
		ret->cpu_ns[i] = ns_of(numbers[1 + i]);
}

void costtext_read(const char *text, struct report_overhead *ret)
{
	double numbers[4];

	*ret = (struct report_overhead){ .present = true };
	read_cost(text, "effect", &ret->effect);
	read_cost(text, "always", &ret->always);
	read_cost(text, "window", &ret->window);
	if (read_numbers(text, "audits", numbers, 4) == 4 && numbers[0] >= 0 && numbers[0] < 1e9)
		ret->audits = (struct report_audits){ (uint32_t)numbers[0], numbers[1], numbers[2],
						      numbers[3] };
	if (read_numbers(text, "left_out", numbers, 1) == 1 && numbers[0] >= 0 &&
	    numbers[0] <= BACKOFF_ALL)
		set_left_out(ret, (uint32_t)numbers[0]);
	read_own(text, &ret->own);
}
