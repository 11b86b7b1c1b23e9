/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws the hosts' records in sidecars while a window was open: a process for each host, with
 * curves of its GPUs, its network cards, its pressure, and the resources of each worker. The
 * sidecars of one host's workers repeat shared records, which are drawn once.
 */
#include "base/str.h"
#include "model/gpumetric.h"
#include "report/timeline/curve.h"
#include "report/timeline/timeline_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#define CLOCK_SLACK_NS (10.0 * NSEC_PER_SEC) /* wall clocks are set; other boots are further off */

/* Until when a curve was drawn. */
struct drawn {
	char *name;
	int64_t until_ns;
};

struct host {
	struct place to;
	struct rank_view view; /* of one of its ranks */
	struct timeline_rank result;
	const struct sidecar *side;
	VEC(struct drawn) drawn;
	VEC(int32_t) ranks; /* rows: when each was sampled */
	curve_sample_vec samples;
	bool failed; /* out of memory */
};

static bool is_time(int64_t time_ns)
{
	return time_ns >= 0 && time_ns <= FLIGHT_TIME_MAX_NS;
}

/* --- one curve --- */

static void add_sample(struct host *host, int64_t time_ns, double value)
{
	if (is_time(time_ns) && isfinite(value) &&
	    vec_push(&host->samples, ((struct curve_sample){ time_ns, value })) < 0)
		host->failed = true;
}

static struct drawn *find_drawn(struct host *host, const char *name)
{
	struct drawn fresh = { .until_ns = host->side->header.start_ns };

	vec_foreach(drawn, &host->drawn) {
		if (strcmp(drawn->name, name) == 0)
			return drawn;
	}
	fresh.name = strdup(name);
	if (fresh.name != NULL && vec_push(&host->drawn, fresh) == 0)
		return &host->drawn.data[host->drawn.cnt - 1];
	free(fresh.name);
	host->failed = true;
	return NULL;
}

/* Draws host->samples and lets them go. What counts and never grew has no curve. */
static void put_curve(struct host *host, enum curve_meaning meaning, double scale, const char *name)
{
	const curve_sample_vec *samples = &host->samples;
	bool grew =
		samples->cnt > 0 && samples->data[samples->cnt - 1].value > samples->data[0].value;
	struct drawn *drawn = NULL;
	struct curve curve = { name, meaning, scale, 0 };

	if (samples->cnt > 0 && (meaning != CURVE_COUNTER || grew))
		drawn = find_drawn(host, name);
	if (drawn != NULL) {
		curve.from_ns = MAX(drawn->until_ns, host->side->header.start_ns);
		drawn->until_ns = timeline_curve(&host->to, &curve, samples);
	}
	host->samples.cnt = 0;
}

/* --- GPUs --- */

/* How a metric is drawn, by its unit. */
struct unit {
	const char *unit, *drawn;
	bool counter;
	enum curve_meaning meaning;
	double scale;
};

static const struct unit *unit_of(uint32_t metric)
{
	static const struct unit units[] = {
		{ "Hz", "MHz", false, CURVE_NOW, 1e-6 },
		{ "W", "W", false, CURVE_NOW, 1 },
		{ "C", "C", false, CURVE_NOW, 1 },
		{ "1", "%", false, CURVE_MEAN, 100 },
		{ "B/s", "MB/s", false, CURVE_MEAN, 1e-6 },
		{ "B", "MB/s", true, CURVE_COUNTER, 1e-6 },
		{ "J", "W", true, CURVE_COUNTER, 1 },
		{ "s", "% of time", true, CURVE_COUNTER, 100 },
		{ "1", "per second", true, CURVE_COUNTER, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (units[i].counter == gpu_metric_is_counter(metric) &&
		    strcmp(units[i].unit, gpu_metric_unit(metric)) == 0)
			return &units[i];
	}
	return NULL;
}

static void put_metric(struct host *host, uint32_t gpu, uint32_t metric)
{
	const struct unit *unit = unit_of(metric);
	char name[96];

	if (unit == NULL)
		return;
	vec_foreach(sample, &host->side->gpu_samples) {
		if (sample->gpu == gpu && sample->metric == metric)
			add_sample(host, sample->time_ns, sample->value);
	}
	(void)snprintf(name, sizeof(name), "GPU %u: %s, %s", host->side->gpus.data[gpu].index,
		       gpu_metric_name(metric), unit->drawn);
	for (char *p = name; *p != '\0'; p++)
		*p = *p == '_' ? ' ' : *p;
	put_curve(host, unit->meaning, unit->scale, name);
}

static void put_faults(struct host *host, uint32_t gpu)
{
	struct writer *w = host->to.writer;
	char name[64];
	struct drawn *drawn;

	(void)snprintf(name, sizeof(name), "GPU %u: fault", host->side->gpus.data[gpu].index);
	drawn = find_drawn(host, name);
	vec_foreach(sample, &host->side->gpu_samples) {
		if (drawn == NULL || sample->gpu != gpu || sample->metric != GPU_METRIC_FAULT ||
		    !is_time(sample->time_ns) || sample->time_ns <= drawn->until_ns ||
		    !(fabs(sample->value) < INT32_MAX))
			continue;
		drawn->until_ns = sample->time_ns;
		if (sample->time_ns < host->view.from_ns)
			continue;
		writer_begin(&host->to, 'i', host->to.first_tid, sample->time_ns);
		(void)fprintf(w->out, ",\"s\":\"p\",\"cat\":\"fault\",\"name\":\"%s %.0f\"}", name,
			      sample->value);
	}
}

static void put_gpus(struct host *host)
{
	const struct sidecar *side = host->side;
	uint64_t seen[SIDECAR_GPUS_MAX] = { 0 }; /* metrics of each */

	vec_foreach(sample, &side->gpu_samples) {
		if (sample->gpu < MIN(side->gpus.cnt, (size_t)SIDECAR_GPUS_MAX) &&
		    sample->metric < GPU_METRIC_CNT)
			seen[sample->gpu] |= UINT64_C(1) << sample->metric;
	}
	for (uint32_t gpu = 0; gpu < SIDECAR_GPUS_MAX; gpu++) {
		for (uint32_t metric = 0; metric < GPU_METRIC_CNT; metric++) {
			if ((seen[gpu] >> metric & 1) == 0)
				continue;
			if (metric == GPU_METRIC_FAULT)
				put_faults(host, gpu);
			else
				put_metric(host, gpu, metric);
		}
	}
}

/* --- network cards, pressure, what the worker used --- */

static void put_nics(struct host *host)
{
	const struct sidecar *side = host->side;
	char name[64];

	for (size_t i = 0; i < side->nics.cnt; i++) {
		for (int received = 0; received < 2; received++) {
			vec_foreach(sample, &side->nic_samples) {
				if (sample->nic == i)
					add_sample(host, sample->time_ns,
						   (double)(received ? sample->rx_bytes
								     : sample->tx_bytes));
			}
			(void)snprintf(name, sizeof(name), "%s: %s, MB/s", side->nics.data[i].name,
				       received ? "received" : "sent");
			put_curve(host, CURVE_COUNTER, 1e-6, name);
		}
	}
}

static void put_pressure(struct host *host)
{
	static const char *const names[] = { "pressure: CPU, % of time", "pressure: io, % of time",
					     "pressure: memory, % of time" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		vec_foreach(sample, &host->side->pressures) {
			if (sample->some_us[i] != SIDECAR_PRESSURE_UNKNOWN)
				add_sample(host, sample->time_ns, (double)sample->some_us[i]);
		}
		put_curve(host, CURVE_COUNTER, 1e-6 * 100, names[i]);
	}
}

static void put_worker(struct host *host)
{
	const struct sidecar *side = host->side;
	char name[64];

	vec_foreach(sample, &side->process_samples)
		add_sample(host, sample->time_ns, (double)sample->cpu_ns);
	(void)snprintf(name, sizeof(name), "rank %d: CPUs in use", side->header.rank);
	put_curve(host, CURVE_COUNTER, 1e-9, name);
	vec_foreach(sample, &side->socket_samples)
		add_sample(host, sample->time_ns, (double)sample->tx_bytes);
	(void)snprintf(name, sizeof(name), "rank %d: TCP sent, MB/s", side->header.rank);
	put_curve(host, CURVE_COUNTER, 1e-6, name);
	vec_foreach(sample, &side->socket_samples)
		add_sample(host, sample->time_ns, (double)sample->rx_bytes);
	(void)snprintf(name, sizeof(name), "rank %d: TCP received, MB/s", side->header.rank);
	put_curve(host, CURVE_COUNTER, 1e-6, name);
}

/* --- when hosts were sampled, and what was not --- */

static void put_gpu_args(struct host *host, struct str *text, bool *first)
{
	vec_foreach(gpu, &host->side->gpus) {
		const char *why = gpu->why[0] != '\0' ? gpu->why : "sampled";
		char key[32] = "GPUs";

		if (gpu->index != SIDECAR_GPU_NONE)
			(void)snprintf(key, sizeof(key), "GPU %u", gpu->index);
		text->len = 0;
		str_printf(text, "%s%s%s", gpu->name, gpu->name[0] != '\0' ? ": " : "", why);
		writer_string(host->to.writer, first, key, str_borrow(text));
		if (gpu - host->side->gpus.data + 1 == SIDECAR_GPUS_MAX)
			break;
	}
}

/* Errors of network cards have no time of their own. */
static void put_nic_args(struct host *host, struct str *text, bool *first)
{
	static const char *const files[] = {
#define X(id, file, folder, help) file,
		SIDECAR_NIC_COUNTER_LIST(X)
#undef X
	};

	vec_foreach(count, &host->side->nic_counters) {
		if (count->nic >= host->side->nics.cnt || count->counter >= ARRAY_SIZE(files))
			continue;
		text->len = 0;
		str_printf(text, "%s %s", host->side->nics.data[count->nic].name,
			   files[count->counter]);
		writer_number(host->to.writer, first, str_borrow(text),
			      (int64_t)MIN(count->grown, (uint64_t)INT64_MAX));
	}
}

/* The row of the sidecar's rank, which it names when that is new. */
static uint32_t row_of_rank(struct host *host)
{
	int32_t rank = host->side->header.rank;
	uint32_t row = 0;
	char name[64];

	while (row < host->ranks.cnt && host->ranks.data[row] != rank)
		row++;
	if (row == host->ranks.cnt) {
		(void)snprintf(name, sizeof(name), "rank %d was sampled", rank);
		writer_name(host->to.writer, "thread_name", host->to.pid, host->to.first_tid + row,
			    "name", name);
		host->failed |= vec_push(&host->ranks, rank) < 0;
	}
	return host->to.first_tid + row;
}

static void put_window(struct host *host)
{
	const struct sidecar_header *header = &host->side->header;
	struct str text = { 0 };
	bool first = true;
	char name[64];
	struct drawn *drawn;
	int64_t start_ns;

	(void)snprintf(name, sizeof(name), "window of rank %d", header->rank);
	drawn = find_drawn(host, name);
	if (drawn == NULL)
		return;
	start_ns = MAX(header->start_ns, drawn->until_ns);
	start_ns = MAX(start_ns, host->view.from_ns);
	if (header->end_ns <= start_ns)
		return;
	drawn->until_ns = header->end_ns;
	writer_slice(&host->to, row_of_rank(host), start_ns, header->end_ns);
	(void)fputs(",\"cat\":\"window\",\"name\":\"hardware was sampled\"", host->to.writer->out);
	put_gpu_args(host, &text, &first);
	put_nic_args(host, &text, &first);
	(void)fputs(first ? "}" : "}}", host->to.writer->out);
	host->failed |= str_error(&text) < 0;
	str_done(&text);
}

static void put_side(struct host *host, const struct sidecar *side)
{
	host->side = side;
	put_window(host);
	put_gpus(host);
	put_nics(host);
	put_pressure(host);
	put_worker(host);
}

/* --- hosts --- */

/* A sidecar and a rank of its host. */
struct seen {
	const struct sidecar *side;
	size_t view_idx;
};

typedef VEC(struct seen) seen_vec;

/* One boot of one host has one such difference. */
static bool same_clock(const struct sidecar_header *header, const struct flightlog *log)
{
	double a = (double)header->wall_ns - (double)header->mono_ns;
	double b = (double)log->wall_ns - (double)log->mono_ns;

	return fabs(a - b) < CLOCK_SLACK_NS;
}

static bool is_usable(const struct sidecar_header *header)
{
	return is_time(header->start_ns) && is_time(header->end_ns) &&
	       header->end_ns > header->start_ns;
}

/* Those of no rank's host are left out. */
static int place_sides(const struct rank_view *views, size_t cnt,
		       const struct timeline_options *options, seen_vec *ret)
{
	for (size_t i = 0; i < options->side_cnt; i++) {
		const struct sidecar *side = &options->sides[i];
		size_t k = 0;

		while (k < cnt && (strcmp(views[k].log->host, side->header.host) != 0 ||
				   !same_clock(&side->header, views[k].log)))
			k++;
		if (k < cnt && is_usable(&side->header) &&
		    vec_push(ret, ((struct seen){ side, k })) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int by_host_and_time(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;
	const struct sidecar_header *p = &x->side->header, *q = &y->side->header;

	if (x->view_idx != y->view_idx)
		return x->view_idx < y->view_idx ? -1 : 1;
	if (p->start_ns != q->start_ns)
		return p->start_ns < q->start_ns ? -1 : 1;
	return (p->rank > q->rank) - (p->rank < q->rank);
}

static void name_host(const struct host *host)
{
	struct writer *w = host->to.writer;
	char name[96];

	(void)snprintf(name, sizeof(name), "hardware \xc2\xb7 %s", host->view.log->host);
	writer_name(w, "process_name", host->to.pid, 0, "name", name);
	writer_index(w, "process_sort_index", host->to.pid, 0, host->to.pid);
}

static int put_host(struct writer *w, uint32_t pid, const struct rank_view *view,
		    const struct seen *seen, size_t cnt)
{
	struct host host = { .to = { .writer = w, .pid = pid, .first_tid = pid * PID_TIDS + 1 },
			     .view = *view,
			     .result = *view->result };

	host.view.result = &host.result;
	host.to.view = &host.view;
	name_host(&host);
	for (size_t i = 0; i < cnt && !host.failed; i++)
		put_side(&host, seen[i].side);
	vec_foreach(drawn, &host.drawn)
		free(drawn->name);
	vec_done(&host.drawn);
	vec_done(&host.ranks);
	vec_done(&host.samples);
	return host.failed ? -ENOMEM : 0;
}

int timeline_hardware(struct writer *w, const struct rank_view *views, size_t cnt,
		      const struct timeline_options *options)
{
	uint32_t pid = (uint32_t)cnt + 1;
	seen_vec seen = { 0 };
	int ret = place_sides(views, cnt, options, &seen);

	if (seen.cnt > 0)
		qsort(seen.data, seen.cnt, sizeof(*seen.data), by_host_and_time);
	for (size_t i = 0, end; i < seen.cnt && ret == 0; i = end) {
		for (end = i; end < seen.cnt && seen.data[end].view_idx == seen.data[i].view_idx;)
			end++;
		ret = put_host(w, pid++, &views[seen.data[i].view_idx], &seen.data[i], end - i);
	}
	vec_done(&seen);
	return ret;
}
