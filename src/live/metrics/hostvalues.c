/* SPDX-License-Identifier: Apache-2.0 */
#include "live/metrics/hostvalues.h"

#include "base/clock.h"
#include "live/metrics/metrics_parts.h"
#include "model/verdict.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_NS (1 * NSEC_PER_SEC)

static void set(struct metrics_host *host, enum metric metric, const char *label, double value)
{
	metrics_set(host->metrics, metrics_series(host->metrics, metric, METRIC_VALUES(label)),
		    value);
}

/* Series that never change, and counters that begin at 0. */
static void set_begin(struct metrics_host *host, const struct run_options *options)
{
	set(host, METRIC_BUILD, PT_VERSION, 1);
	set(host, METRIC_PROCESS_START, NULL, (double)clock_wall_ns() / NSEC_PER_SEC);
	set(host, METRIC_BUDGET, "always", options->budget_always_frac);
	set(host, METRIC_BUDGET, "window", options->budget_window_frac);
	for (int i = 0; i < VERDICT_CNT; i++)
		(void)metrics_series(host->metrics, METRIC_REPORTS,
				     METRIC_VALUES(verdict_name((enum verdict)i)));
}

struct metrics_host *metrics_host_new(const struct run_options *options)
{
	struct metrics_host *host = calloc(1, sizeof(*host));

	if (host == NULL)
		return NULL;
	host->stream.done = metrics_settle;
	host->metrics = metrics_new();
	if (host->metrics == NULL)
		return metrics_host_free(host);
	if (options->metrics_xpu) {
		host->xpu = metrics_xpu_new(host->metrics);
		if (host->xpu == NULL)
			return metrics_host_free(host);
	}
	set_begin(host, options);
	return host;
}

struct metrics_host *metrics_host_free(struct metrics_host *host)
{
	if (host == NULL)
		return NULL;
	while (host->workers.cnt > 0)
		(void)metrics_worker_free(host->workers.data[0]);
	vec_done(&host->workers);
	host->xpu = metrics_xpu_free(host->xpu);
	host->metrics = metrics_free(host->metrics);
	free(host);
	return NULL;
}

struct metrics *metrics_host_borrow(struct metrics_host *host)
{
	return host->metrics;
}

/* --- the daemon itself --- */

static int64_t timeval_ns(const struct timeval *time)
{
	return time->tv_sec * NSEC_PER_SEC + time->tv_usec * NSEC_PER_USEC;
}

static void look_at_self(struct metrics_host *host)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long pages = 0;
	struct rusage usage;

	if (file != NULL && fscanf(file, "%*d %ld", &pages) == 1)
		set(host, METRIC_PROCESS_MEMORY, NULL,
		    (double)pages * (double)sysconf(_SC_PAGESIZE));
	if (file != NULL)
		(void)fclose(file);
	if (getrusage(RUSAGE_SELF, &usage) == 0)
		metrics_raise(
			host->metrics, metrics_series(host->metrics, METRIC_PROCESS_CPU, NULL),
			(uint64_t)(timeval_ns(&usage.ru_utime) + timeval_ns(&usage.ru_stime)));
}

void metrics_host_tick(struct metrics_host *host, size_t worker_cnt, int64_t now_ns)
{
	host->worker_cnt = worker_cnt;
	if (now_ns - host->looked_ns < LOOK_NS)
		return;
	host->looked_ns = now_ns;
	stream_expire(&host->stream, now_ns);
	vec_foreach(worker, &host->workers)
		metrics_worker_tick(*worker, now_ns);
	if (host->xpu != NULL)
		metrics_xpu_tick(host->xpu, now_ns);
	look_at_self(host);
}

void metrics_host_refused(struct metrics_host *host, uint64_t refused)
{
	metrics_raise(host->metrics, metrics_series(host->metrics, METRIC_REFUSED, NULL), refused);
}

void metrics_host_ended(struct metrics_host *host, int32_t rank, int wait_status)
{
	const char *how = WIFSIGNALED(wait_status) ? "signal" : wait_status == 0 ? "ok" : "error";
	char number[16];

	(void)snprintf(number, sizeof(number), "%" PRId32, rank);
	metrics_add(host->metrics,
		    metrics_series(host->metrics, METRIC_WORKER_ENDS, METRIC_VALUES(number, how)),
		    1);
}

/* --- the hub's messages --- */

static void set_bound(struct metrics_host *host, const char *mode, const char *bound, double value)
{
	metrics_set(
		host->metrics,
		metrics_series(host->metrics, METRIC_OVERHEAD_BOUND, METRIC_VALUES(mode, bound)),
		value);
}

static void set_cost(struct metrics_host *host, const char *mode, const struct wire_cost *cost)
{
	if (cost->pair_cnt == 0)
		return; /* not measured yet */
	set(host, METRIC_OVERHEAD, mode, cost->frac);
	set_bound(host, mode, "lower", cost->low_frac);
	set_bound(host, mode, "upper", cost->high_frac);
	set(host, METRIC_OVERHEAD_PAIRS, mode, cost->pair_cnt);
}

static void raise_to(struct metrics_host *host, enum metric metric, uint64_t value)
{
	metrics_raise(host->metrics, metrics_series(host->metrics, metric, NULL), value);
}

void metrics_host_restarts(struct metrics_host *host, uint32_t restarts)
{
	raise_to(host, METRIC_RESTARTS, restarts);
}

void metrics_host_overhead(struct metrics_host *host, const struct wire_overhead *overhead)
{
	set_cost(host, "effect", &overhead->effect);
	set_cost(host, "always", &overhead->always);
	set_cost(host, "window", &overhead->window);
	raise_to(host, METRIC_AUDITS, overhead->audits.cnt);
	raise_to(host, METRIC_AUDIT_TIME, (uint64_t)overhead->audits.total_ns);
	set(host, METRIC_LEFT_OUT, "samples", (overhead->backoff & BACKOFF_SAMPLES) != 0);
	set(host, METRIC_LEFT_OUT, "operators", (overhead->backoff & BACKOFF_OPERATORS) != 0);
	set(host, METRIC_LEFT_OUT, "collectives", (overhead->backoff & BACKOFF_COLLECTIVES) != 0);
	set(host, METRIC_LEFT_OUT, "all_but_marks", (overhead->backoff & BACKOFF_ALWAYS) != 0);
}

void metrics_host_own(struct metrics_host *host, const struct own_cpu *own)
{
	for (size_t i = 0; i < OWN_THREAD_CNT; i++) {
		const char *name = own_thread_name((enum own_thread)i);

		metrics_raise(host->metrics,
			      metrics_series(host->metrics, METRIC_OWN_CPU, METRIC_VALUES(name)),
			      (uint64_t)own->cpu_ns[i]);
	}
}

static void accuse(struct metrics_host *host, const struct wire_finding *finding)
{
	char rank[12];

	for (uint32_t i = 0; i < MIN(finding->rank_cnt, WIRE_FINDING_RANKS); i++) {
		(void)snprintf(rank, sizeof(rank), "%" PRId32, finding->ranks[i]);
		metrics_set(host->metrics,
			    metrics_series(host->metrics, METRIC_ACCUSED,
					   METRIC_VALUES(rank, finding->cause)),
			    1);
	}
	if (finding->rank_cnt > WIRE_FINDING_RANKS)
		metrics_set(host->metrics,
			    metrics_series(host->metrics, METRIC_ACCUSED,
					   METRIC_VALUES("more", finding->cause)),
			    finding->rank_cnt - WIRE_FINDING_RANKS);
}

/* Several findings may have one cause. */
static void set_cause(struct metrics_host *host, const struct wire_report *report, uint32_t first)
{
	const char *cause = report->findings[first].cause;
	int64_t gain_ns = 0;
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < MIN(report->finding_cnt, WIRE_REPORT_FINDINGS); i++) {
		if (strcmp(report->findings[i].cause, cause) != 0)
			continue;
		gain_ns += report->findings[i].gain_ns;
		cnt++;
	}
	set(host, METRIC_FINDINGS, cause, cnt);
	set(host, METRIC_GAIN, cause, (double)gain_ns / NSEC_PER_SEC);
}

void metrics_host_report(struct metrics_host *host, const struct wire_report *report,
			 int64_t wall_ns)
{
	if (report->verdict >= VERDICT_CNT)
		return;
	metrics_clear(host->metrics, METRIC_FINDINGS);
	metrics_clear(host->metrics, METRIC_GAIN);
	metrics_clear(host->metrics, METRIC_ACCUSED);
	for (uint32_t i = 0; i < VERDICT_CNT; i++)
		set(host, METRIC_REPORT_VERDICT, verdict_name((enum verdict)i),
		    report->verdict == i);
	for (uint32_t i = 0; i < MIN(report->finding_cnt, WIRE_REPORT_FINDINGS); i++) {
		set_cause(host, report, i);
		accuse(host, &report->findings[i]);
	}
	set(host, METRIC_REPORT_TIME, NULL, (double)wall_ns / NSEC_PER_SEC);
	metrics_add(host->metrics,
		    metrics_series(host->metrics, METRIC_REPORTS,
				   METRIC_VALUES(verdict_name((enum verdict)report->verdict))),
		    1);
}
