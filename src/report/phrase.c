/* SPDX-License-Identifier: Apache-2.0 */
#include "report/phrase.h"

#include "base/str.h"
#include "base/text/clean.h"
#include "model/rankset.h"
#include "model/reported/slowdown.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define NAME_CELLS 100	 /* of a function in a sentence */
#define SUBJECT_CELLS 36 /* of a set of ranks in a sentence */
#define FAR_LARGER 3	 /* times the loss of the first finding */

static int decimals(double value)
{
	value = fabs(value);
	if (value == 0.0 || value >= 99.95)
		return 0;
	return value >= 9.995 ? 1 : value >= 0.0995 ? 2 : 3;
}

void phrase_ms(struct str *out, double ms)
{
	if (!isfinite(ms))
		str_append(out, "-");
	else if (fabs(ms) >= 9999.5)
		str_printf(out, "%.*f s", fabs(ms) < 99950.0 ? 1 : 0, ms / 1000.0);
	else
		str_printf(out, "%.*f ms", decimals(ms), ms);
}

/* Less than this of the time now is none before: samples of a place that was not on the path. */
#define NEW_FRAC 0.01

void phrase_growth(struct str *out, const struct report_growth *growth)
{
	bool is_new = growth->before_ms < NEW_FRAC * growth->now_ms;

	if (!is_new) {
		phrase_ms(out, growth->before_ms);
		str_append(out, " -> ");
	}
	phrase_ms(out, growth->now_ms);
	str_append(out, is_new ? " per iteration, none before" : " per iteration");
}

static void signed_ms(struct str *out, double ms)
{
	str_append(out, ms > 0.0 ? "+" : "");
	phrase_ms(out, ms);
}

void phrase_time(struct str *out, const struct finding *finding)
{
	double delta = finding->delta_ms_per_iteration;

	phrase_ms(out, finding->time_ms_per_iteration);
	if (!isfinite(finding->time_ms_per_iteration) || !isfinite(delta) || fabs(delta) < 0.0005)
		return;
	str_append(out, " (");
	signed_ms(out, delta);
	str_append(out, ")");
}

void phrase_pct(struct str *out, double pct)
{
	if (!isfinite(pct))
		str_append(out, "-");
	else if (fabs(pct) < 0.005 || fabs(pct) >= 9.95)
		str_printf(out, "%.0f %%", fabs(pct) < 0.005 ? 0.0 : pct);
	else
		str_printf(out, "%.2g %%", pct);
}

void phrase_resource(struct str *out, const char *resource)
{
	static const struct {
		const char *id, *name;
	} names[] = {
		{ "sm_active", "GPU SM" },    { "dram", "GPU DRAM" },
		{ "nvlink_tx", "NVLink Tx" }, { "pcie_tx", "PCIe Tx" },
		{ "nic_tx", "NIC Tx" },	      { "cpu_thread", "CPU" },
		{ "cpu_process", "CPUs" },    { "run_delay", "run delay" },
		{ "socket_tx", "TCP Tx" },    { "pcie_rx", "PCIe Rx" },
	};

	for (size_t i = 0; resource != NULL && i < ARRAY_SIZE(names); i++) {
		if (strcmp(resource, names[i].id) == 0) {
			str_append(out, names[i].name);
			return;
		}
	}
	clean_append_short(out, resource, 10);
}

void phrase_utilization(struct str *out, const struct finding *finding)
{
	const struct finding_value *mu = &finding->mu;
	double diff = (mu->value - mu->reference) * 100.0;

	if (!mu->present || !isfinite(mu->value)) {
		str_append(out, "-");
		return;
	}
	phrase_pct(out, mu->value * 100.0);
	if (finding->resource != NULL && finding->resource[0] != '\0') {
		str_append(out, " ");
		phrase_resource(out, finding->resource);
	}
	if (isfinite(diff) && fabs(diff) >= 0.5)
		str_printf(out, " (%+.0f %%)", diff);
}

bool phrase_any_utilization(const struct report *report)
{
	for (size_t i = 0; i < report->finding_cnt; i++) {
		if (report->findings[i].mu.present || report->findings[i].sigma.present)
			return true;
	}
	return false;
}

void phrase_value(struct str *out, const struct finding_value *value)
{
	if (!value->present || !isfinite(value->value)) {
		str_append(out, "-");
		return;
	}
	phrase_pct(out, value->value * 100.0);
	if (!isfinite(value->reference))
		return;
	str_printf(out, ", %s ", reference_name(value->reference_kind));
	phrase_pct(out, value->reference * 100.0);
}

/* Length of the longest head of the list of at most max bytes that ends before a comma, or 0. */
static size_t list_head(const struct str *list, size_t max)
{
	while (max > 0 && list->data[max] != ',')
		max--;
	return max;
}

void phrase_rank_list(struct str *out, const int *ranks, size_t cnt, size_t max_cells)
{
	_cleanup_(str_done) struct str list = { 0 };
	size_t head = 0;

	rankset_format(&list, ranks, cnt);
	if (str_error(&list) < 0) {
		out->error = str_error(&list);
		return;
	}
	if (list.len <= max_cells) {
		str_append(out, str_borrow(&list));
		return;
	}
	if (max_cells >= 24)
		head = list_head(&list, max_cells - 16);
	str_append_len(out, list.data, head);
	str_printf(out, head > 0 ? ",... (%zu ranks)" : "%zu ranks", cnt);
}

void phrase_ranks(struct str *out, const struct finding *finding, size_t max_cells)
{
	if (finding->all_workers && finding->rank_cnt != 1)
		str_append(out, "all");
	else if (finding->rank_cnt == 0)
		str_append(out, "-");
	else
		phrase_rank_list(out, finding->ranks, finding->rank_cnt, max_cells);
}

/* "rank 2", "ranks 0-3", "300 ranks (5,14,23,...)" */
static void ranks_subject(struct str *out, const int *ranks, size_t cnt)
{
	_cleanup_(str_done) struct str list = { 0 };

	rankset_format(&list, ranks, cnt);
	if (str_error(&list) < 0) {
		out->error = str_error(&list);
	} else if (list.len <= SUBJECT_CELLS) {
		str_append(out, cnt > 1 ? "ranks " : "rank ");
		str_append(out, str_borrow(&list));
	} else {
		str_printf(out, "%zu ranks (", cnt);
		str_append_len(out, list.data, list_head(&list, SUBJECT_CELLS / 2));
		str_append(out, ",...)");
	}
}

size_t phrase_caller_cnt(const struct finding *finding)
{
	size_t cnt = finding->stack_cnt;

	return cnt > 0 && strcmp(finding->stack[cnt - 1], finding->name) == 0 ? cnt - 1 : cnt;
}

void phrase_subject(struct str *out, const struct finding *finding)
{
	if (finding->all_workers && finding->rank_cnt > 1) {
		str_printf(out, "all %zu workers", finding->rank_cnt);
	} else if (finding->all_workers && finding->rank_cnt == 0) {
		str_append(out, "every worker");
	} else if (finding->rank_cnt == 0) {
		str_append(out, "the job");
	} else {
		ranks_subject(out, finding->ranks, finding->rank_cnt);
	}
}

/* All findings of such a report are hangs, also PT-107 (a stopped process). */
static bool is_of_blocked_job(const struct report *report)
{
	return report->trigger.present && strcmp(report->trigger.kind, "blocked") == 0;
}

/* "costs the job 1001 ms per iteration (92 %)": the gain of a repair, else the difference. */
static void phrase_loss(struct str *out, const struct finding *finding)
{
	double gain = finding->gain_ms_per_iteration, pct = finding->gain_pct;
	double delta = finding->delta_ms_per_iteration;
	bool plural = finding->rank_cnt > 1;

	if (isfinite(gain) && gain > 0.0) {
		if (finding->all_workers || finding->apart)
			str_append(out, plural ? " lose " : " loses ");
		else
			str_append(out, plural ? " cost the job " : " costs the job ");
		str_append(out, finding->gain_at_most ? "at most " : "");
		phrase_ms(out, gain);
		str_append(out, " per iteration");
		if (isfinite(pct) && pct > 0.0) {
			str_append(out, " (");
			phrase_pct(out, pct);
			str_append(out, ")");
		}
	} else if (finding->gain_at_most && isfinite(pct) && pct > 0.0) {
		str_append(out, finding->all_workers ? (plural ? " lose" : " loses")
				: plural	     ? " cost the job"
						     : " costs the job");
		str_append(out, " at most ");
		phrase_pct(out, pct);
		str_append(out, " of the time");
	} else if (isfinite(delta) && delta > 0.0) {
		str_append(out, plural ? " lose " : " loses ");
		phrase_ms(out, delta);
		str_append(out, " per iteration");
	} else {
		str_append(out, plural ? " behave differently" : " behaves differently");
	}
}

/* " is blocked in f"; without a stack the name is a state: " is blocked: process ended". */
static void phrase_hang(struct str *out, const struct finding *finding)
{
	/* It need not be blocked itself: its iterations may go on. */
	if (strcmp(finding->cause, "collective-not-entered") == 0 && finding->class == CLASS_COMM) {
		str_append(out, " did not enter ");
		clean_append_short(out, finding->name, NAME_CELLS);
		return;
	}
	str_append(out, finding->rank_cnt > 1 ? " are blocked" : " is blocked");
	if (finding->name != NULL && finding->name[0] != '\0') {
		str_append(out, finding->stack_cnt > 0 ? " in " : ": ");
		clean_append_short(out, finding->name, NAME_CELLS);
	}
}

/* " costs the job 1001 ms per iteration (92 %) in f" */
static void phrase_slow(struct str *out, const struct finding *finding)
{
	bool idle = finding->name != NULL && strncmp(finding->name, "idle", 4) == 0;

	phrase_loss(out, finding);
	if (finding->name != NULL && finding->name[0] != '\0') {
		str_append(out, idle ? " " : " in ");
		clean_append_short(out, finding->name, NAME_CELLS);
	}
}

void phrase_share(struct str *out, const struct report_share *share)
{
	clean_append_short(out, share->name, NAME_CELLS);
	str_printf(out, " (%s)", event_class_name(share->class));
	if (share->place_cnt > 1)
		str_printf(out, ", in %zu places", share->place_cnt);
	if (share->caller[0] != '\0') {
		str_append(out, share->place_cnt > 1 ? ", most called by " : ", called by ");
		clean_append_short(out, share->caller, NAME_CELLS);
	}
}

/* "; that explains little of the 21.0 ms by which iterations became longer" */
static void phrase_unexplained(struct str *out, const struct report *report)
{
	double slower_ms = slowdown_unexplained_ms(report);

	if (slower_ms <= 0)
		return;
	str_append(out, "; that explains little of the ");
	phrase_ms(out, slower_ms);
	str_append(out, " by which iterations became longer");
}

/*
 * A weaker finding of a far larger loss: the first sentence may not hide it behind a small loss that
 * is sure. NULL: none.
 */
static const struct finding *larger_weak(const struct report *report)
{
	const struct finding *first = report->findings, *found = NULL;

	for (size_t i = 1; i < report->finding_cnt; i++) {
		const struct finding *f = &report->findings[i];

		if (f->confidence == CONFIDENCE_LOW && first->confidence != CONFIDENCE_LOW &&
		    f->gain_ms_per_iteration >= FAR_LARGER * first->gain_ms_per_iteration &&
		    (found == NULL || f->gain_ms_per_iteration > found->gain_ms_per_iteration))
			found = f;
	}
	return found;
}

/* "; 2 more findings below", and the far larger loss that is less sure. */
static void phrase_more(struct str *out, const struct report *report)
{
	const struct finding *larger = is_of_blocked_job(report) ? NULL : larger_weak(report);

	if (report->finding_cnt < 2)
		return;
	if (larger != NULL) {
		str_append(out, "; weaker evidence of a larger loss: ");
		phrase_subject(out, larger);
		phrase_slow(out, larger);
	}
	if (report->finding_cnt > 2 || larger == NULL)
		str_printf(out, "; %zu more finding%s below",
			   report->finding_cnt - 1 - (larger != NULL),
			   plural((double)(report->finding_cnt - 1 - (larger != NULL))));
}

void phrase_verdict(struct str *out, const struct report *report)
{
	const struct finding *first = report->findings;

	if (report->verdict != VERDICT_ABNORMAL || report->finding_cnt == 0) {
		clean_append_short(out, report->reason, 1000);
		return;
	}
	phrase_subject(out, first);
	if (is_of_blocked_job(report))
		phrase_hang(out, first);
	else
		phrase_slow(out, first);
	phrase_more(out, report);
	if (!is_of_blocked_job(report))
		phrase_unexplained(out, report);
}

void phrase_coverage(struct str *out, const struct report *report)
{
	str_printf(out, "%d of %d worker%s analyzed", report->workers_analyzed,
		   report->workers_expected, plural(report->workers_expected));
	if (report->rank_source != NULL && report->rank_source[0] != '\0') {
		str_append(out, ", ranks from ");
		clean_append_short(out, report->rank_source, 80);
	}
}

void phrase_trigger(struct str *out, const struct report_trigger *trigger)
{
	clean_append_short(out, trigger->kind, 32);
	if (trigger->step >= 0)
		str_printf(out, " at step %lld", (long long)trigger->step);
}

void phrase_slowdown(struct str *out, const struct report_trigger *trigger)
{
	double before = trigger->baseline_iteration_ms, now = trigger->current_iteration_ms;

	if (!isfinite(before) || !isfinite(now) || before <= 0.0 || now <= 0.0)
		return;
	str_append(out, "iterations went from ");
	phrase_ms(out, before);
	str_append(out, " to ");
	phrase_ms(out, now);
	trigger_append_factor(out, before, now);
}

void phrase_job(struct str *out, const struct report *report)
{
	double cnt = report->iterations;

	str_printf(out, "%d worker%s", report->world_size, plural(report->world_size));
	if (!isfinite(cnt) || cnt <= 0.0)
		return;
	str_printf(out, ", %g iteration%s of ", cnt, plural(cnt));
	phrase_ms(out, report->iteration_ms);
}

void phrase_loop(struct str *out, const struct report_loop *loop)
{
	if (loop->marks[0] == '\0')
		return;
	clean_append_short(out, loop->marks, REPORT_LOOP_TEXT);
	str_printf(out, " (since step %" PRIu64, loop->since_step);
	if (loop->worker_cnt < loop->known_cnt)
		str_printf(out, ", on %zu of %zu ranks", loop->worker_cnt, loop->known_cnt);
	str_append_char(out, ')');
}
