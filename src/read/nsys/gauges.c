/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware metrics of the devices that the worker uses. */
#include "read/nsys/nsys_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- which GPU is which --- */

enum { MAX_GPUS = 256 };

/* TARGET_INFO_GPU: the metrics' number of a GPU, and its number for CUDA. */
struct gpu {
	int64_t id, metrics_id, cuda_id;
};

typedef VEC(struct gpu) gpu_vec;

static int read_gpus(struct nsys_pass *pass, gpu_vec *gpus)
{
	static const struct nsys_column columns[] = { { "id", true },
						      { "pwGpuId", true },
						      { "cuDevice", true } };
	struct nsys_query query;
	int ret = nsys_rows(pass, &query, "TARGET_INFO_GPU", columns, ARRAY_SIZE(columns),
			    NSYS_ROWS_ALL);

	while (ret > 0 && (ret = nsys_query_next(&query)) > 0) {
		struct gpu gpu = { -1, -1, -1 };

		if (!nsys_query_int(&query, 0, &gpu.id) || gpus->cnt >= MAX_GPUS)
			continue;
		if (!nsys_query_int(&query, 1, &gpu.metrics_id))
			gpu.metrics_id = gpu.id;
		(void)nsys_query_int(&query, 2, &gpu.cuda_id);
		if (vec_push(gpus, gpu) < 0) {
			ret = -ENOMEM;
			break;
		}
	}
	nsys_query_close(&query);
	return ret;
}

/* The GPU that the worker's process called by an ordinal; -1: unknown. */
static int find_gpu_of_process(struct nsys_pass *pass, int64_t ordinal, int64_t *ret_id)
{
	static const struct nsys_column columns[] = { { "gpuId", true },
						      { "cudaId", true },
						      { "pid", true } };
	struct nsys_query query;
	int ret = nsys_rows(pass, &query, "TARGET_INFO_CUDA_DEVICE", columns, ARRAY_SIZE(columns),
			    NSYS_ROWS_ALL);

	*ret_id = -1;
	while (ret > 0 && (ret = nsys_query_next(&query)) > 0) {
		int64_t gpu, cuda, pid;

		if (nsys_query_int(&query, 0, &gpu) && nsys_query_int(&query, 1, &cuda) &&
		    nsys_query_int(&query, 2, &pid) && cuda == ordinal && pid == pass->worker.pid)
			*ret_id = gpu;
	}
	nsys_query_close(&query);
	return ret;
}

/* *ret: the metrics' number of a device of the worker; -1: unknown. */
static int find_metrics_id(struct nsys_pass *pass, const gpu_vec *gpus, int64_t ordinal,
			   int64_t *ret)
{
	int64_t id;
	int r = find_gpu_of_process(pass, ordinal, &id);

	*ret = -1;
	vec_foreach(gpu, gpus) {
		if (id >= 0 ? gpu->id == id : !pass->worker.shares && gpu->cuda_id == ordinal)
			*ret = gpu->metrics_id;
	}
	if (*ret < 0 && gpus->cnt == 0 && !pass->worker.shares)
		*ret = ordinal;
	return r;
}

/* --- what a metric measures --- */

static bool has_word(const char *name, const char *word)
{
	return strcasestr(name, word) != NULL;
}

/*
 * The resource whose share of peak, or a part of it, a metric is: names as nsys gives them
 * ("SMs Active [Throughput %]", "DRAM Read Throughput", "NVLink TX Requests User Data").
 */
static enum resource resource_of(const char *name)
{
	/* Clocks, counts and bytes are no shares. */
	if (has_word(name, "frequency") || has_word(name, "bar1") || has_word(name, "warps") ||
	    has_word(name, "[b/s]") || has_word(name, "started"))
		return RESOURCE_OTHER;
	if (strncasecmp(name, "SM Active", 9) == 0 || strncasecmp(name, "SMs Active", 10) == 0)
		return RESOURCE_SM_ACTIVE;
	if ((has_word(name, "dram") || has_word(name, "vram")) &&
	    (has_word(name, "throughput") || has_word(name, "bandwidth")))
		return RESOURCE_DRAM;
	if (has_word(name, "nvlink") && (has_word(name, " tx") || has_word(name, "transmit")))
		return RESOURCE_NVLINK_TX;
	if (has_word(name, "pcie") && (has_word(name, " tx") || has_word(name, "transmit")))
		return RESOURCE_PCIE_TX;
	if (has_word(name, "pcie") && (has_word(name, " rx") || has_word(name, "receive")))
		return RESOURCE_PCIE_RX;
	return RESOURCE_OTHER;
}

/* --- GPU metrics --- */

typedef VEC(struct sample) sample_vec;

/* Parts of the resources of one device, in percent. */
struct gauge {
	int64_t device, metrics_id;
	sample_vec parts[RESOURCE_CNT];
};

struct gauges {
	VEC(struct gauge) list;
	struct idmap types;   /* typeId to its number */
	struct idmap metrics; /* number of a type << 32 | metricId to resource */
	struct idmap by_name; /* string id to resource */
	uint64_t bytes_left;
};

static void gauges_done(struct gauges *gauges)
{
	vec_foreach(gauge, &gauges->list) {
		for (size_t r = 0; r < RESOURCE_CNT; r++)
			vec_done(&gauge->parts[r]);
	}
	vec_done(&gauges->list);
	idmap_done(&gauges->types);
	idmap_done(&gauges->metrics);
	idmap_done(&gauges->by_name);
}

static int find_gauges(struct nsys_pass *pass, struct gauges *gauges)
{
	gpu_vec gpus = { 0 };
	int ret = read_gpus(pass, &gpus);

	for (size_t i = 0; i < pass->devices.cnt && ret == 0; i++) {
		struct gauge gauge = { .device = pass->devices.data[i] };

		ret = find_metrics_id(pass, &gpus, gauge.device, &gauge.metrics_id);
		if (ret == 0 && gauge.metrics_id >= 0)
			ret = vec_push(&gauges->list, gauge);
	}
	vec_done(&gpus);
	return ret;
}

/* The gauge of a type: its lowest byte is the GPU. */
static struct gauge *gauge_of(const struct gauges *gauges, int64_t type)
{
	vec_foreach(gauge, &gauges->list) {
		if (gauge->metrics_id == (type & 0xff))
			return gauge;
	}
	return NULL;
}

static int add_part(struct nsys_pass *pass, struct gauges *gauges, int64_t type,
		    enum resource resource, struct sample sample)
{
	struct gauge *gauge = gauge_of(gauges, type);

	if (gauge == NULL || resource == RESOURCE_OTHER)
		return 0;
	/* Before the session: a stamp that could not be converted. */
	if (sample.time_ns < 0) {
		pass->trace->drops.bad_value++;
		return 0;
	}
	if (gauges->bytes_left < sizeof(sample))
		return err_set(pass->db->err, EFBIG,
			       "%s: expected samples of at most %" PRIu64 " bytes, found more",
			       pass->db->name, pass->max_memory_bytes);
	gauges->bytes_left -= sizeof(sample);
	return vec_push(&gauge->parts[resource], sample);
}

/* A small number for each type, so that it fits a key beside the metric's. */
static int type_number(struct gauges *gauges, int64_t type, uint32_t *ret)
{
	*ret = idmap_get(&gauges->types, (uint64_t)type);
	if (*ret != IDMAP_NONE)
		return 0;
	*ret = (uint32_t)gauges->types.cnt;
	return idmap_set(&gauges->types, (uint64_t)type, *ret);
}

static int metric_key(struct gauges *gauges, int64_t type, int64_t metric, uint64_t *ret)
{
	uint32_t number;
	int r = type_number(gauges, type, &number);

	*ret = (uint64_t)number << 32 | (uint32_t)metric;
	return r;
}

static int read_metric_names(struct nsys_pass *pass, struct gauges *gauges)
{
	static const struct nsys_column columns[] = { { "typeId", false },
						      { "metricId", false },
						      { "metricName", false } };
	struct nsys_query query;
	int ret = nsys_rows(pass, &query, "TARGET_INFO_GPU_METRICS", columns, ARRAY_SIZE(columns),
			    NSYS_ROWS_ALL);

	while (ret > 0 && (ret = nsys_query_next(&query)) > 0) {
		size_t len;
		const char *name = nsys_query_text(&query, 2, &len);
		int64_t type, metric;
		uint64_t key;

		if (name == NULL || !nsys_query_int(&query, 0, &type) ||
		    !nsys_query_int(&query, 1, &metric))
			continue;
		if (metric_key(gauges, type, metric, &key) < 0 ||
		    idmap_set(&gauges->metrics, key, (uint32_t)resource_of(name)) < 0) {
			ret = -ENOMEM;
			break;
		}
	}
	nsys_query_close(&query);
	return ret;
}

/* Since 2023: one row a value. */
static int read_table(struct nsys_pass *pass, struct gauges *gauges)
{
	static const struct nsys_column columns[] = { { "timestamp", false },
						      { "typeId", false },
						      { "metricId", false },
						      { "value", false } };
	struct nsys_query query;
	int ret =
		nsys_rows(pass, &query, "GPU_METRICS", columns, ARRAY_SIZE(columns), NSYS_ROWS_ALL);

	while (ret > 0 && (ret = nsys_query_next(&query)) > 0) {
		struct sample sample;
		int64_t type, metric;
		uint32_t resource;
		uint64_t key;

		if (!nsys_query_int(&query, 0, &sample.time_ns) ||
		    !nsys_query_int(&query, 1, &type) || !nsys_query_int(&query, 2, &metric) ||
		    !nsys_query_number(&query, 3, &sample.value)) {
			pass->trace->drops.bad_value++;
			continue;
		}
		ret = metric_key(gauges, type, metric, &key);
		resource = idmap_get(&gauges->metrics, key);
		if (ret == 0 && resource != IDMAP_NONE)
			ret = add_part(pass, gauges, type, (enum resource)resource, sample);
		if (ret < 0)
			break;
		ret = 1;
	}
	nsys_query_close(&query);
	return ret;
}

static int resource_by_name(struct nsys_pass *pass, struct gauges *gauges, const char *name,
			    size_t len, uint32_t *ret)
{
	uint32_t id;
	int r = nsys_intern(pass, name, len, &id);

	if (r < 0)
		return r;
	*ret = idmap_get(&gauges->by_name, id);
	if (*ret != IDMAP_NONE)
		return 0;
	*ret = (uint32_t)resource_of(strtab_text(&pass->trace->strings, id));
	return idmap_set(&gauges->by_name, id, *ret);
}

/* A number that may have been written as text. */
static bool read_value(struct nsys_query *query, int column, double *ret)
{
	size_t len = 0;
	const char *text;
	char *end;

	if (sqlite3_column_type(query->statement, column) != SQLITE_TEXT)
		return nsys_query_number(query, column, ret);
	text = nsys_query_text(query, column, &len);
	*ret = text != NULL ? strtod(text, &end) : 0;
	return text != NULL && end > text && isfinite(*ret);
}

/* Before: one row a moment, with an object whose keys are the metrics' names. */
static int read_generic(struct nsys_pass *pass, struct gauges *gauges)
{
	static const char select[] =
		"SELECT g.timestamp, g.typeId, j.key, j.value FROM GENERIC_EVENTS AS g, "
		"json_each(CASE WHEN json_valid(g.data) THEN g.data ELSE '{}' END) AS j";
	struct nsys_query query = { .db = pass->db };
	int ret = nsys_query_open_text(&query, pass->db, "GENERIC_EVENTS", select, 0);

	query.bad_cnt = NULL; /* events of other kinds are in this table, too */
	while (ret == 0 && (ret = nsys_query_next(&query)) > 0) {
		struct sample sample;
		size_t len;
		const char *name = nsys_query_text(&query, 2, &len);
		uint32_t resource = RESOURCE_OTHER;
		int64_t type;

		ret = 0;
		if (name == NULL || !nsys_query_int(&query, 0, &sample.time_ns) ||
		    !nsys_query_int(&query, 1, &type))
			continue;
		ret = resource_by_name(pass, gauges, name, len, &resource);
		if (ret < 0 || resource == RESOURCE_OTHER)
			continue;
		if (read_value(&query, 3, &sample.value))
			ret = add_part(pass, gauges, type, (enum resource)resource, sample);
		else
			pass->trace->drops.bad_value++;
	}
	nsys_query_close(&query);
	return ret;
}

static int by_time(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

/* Adds up the parts of each moment. */
static int add_sums(struct nsys_pass *pass, int64_t device, enum resource resource,
		    sample_vec *parts)
{
	const char *name = resource_name(resource);
	struct series series = { .device = device, .tid = -1 };
	int ret = nsys_intern(pass, name, strlen(name), &series.name);

	if (parts->cnt > 0)
		qsort(parts->data, parts->cnt, sizeof(*parts->data), by_time);
	for (size_t i = 0, end; i < parts->cnt && ret == 0; i = end) {
		double sum = 0;

		for (end = i;
		     end < parts->cnt && parts->data[end].time_ns == parts->data[i].time_ns; end++)
			sum += parts->data[end].value;
		ret = build_sample(&pass->build, &series, parts->data[i].time_ns, sum / 100);
	}
	vec_done(parts);
	return ret == -ENOSPC ? 0 : ret;
}

int nsys_read_gauges(struct nsys_pass *pass)
{
	struct gauges gauges = { .bytes_left = pass->max_memory_bytes };
	int ret = find_gauges(pass, &gauges);

	if (ret == 0 && gauges.list.cnt > 0) {
		ret = read_metric_names(pass, &gauges);
		if (ret == 0)
			ret = read_table(pass, &gauges);
		if (ret == 0)
			ret = nsys_db_has(pass->db, "GENERIC_EVENTS");
		if (ret > 0)
			ret = read_generic(pass, &gauges);
	}
	for (size_t i = 0; i < gauges.list.cnt && ret == 0; i++) {
		struct gauge *gauge = &gauges.list.data[i];

		for (size_t r = 0; r < RESOURCE_CNT && ret == 0; r++)
			ret = add_sums(pass, gauge->device, (enum resource)r, &gauge->parts[r]);
	}
	gauges_done(&gauges);
	return ret;
}
