/* SPDX-License-Identifier: Apache-2.0 */
/* What an export samples of the host: CPU time of threads, and network cards. */
#include "read/nsys/nsys_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- CPU time --- */

#define BIN_NS (10 * NSEC_PER_MSEC)
/* Silence longer than this is a trace that was cut, not a thread that ran on. */
#define MAX_BINS 1000000

/* A thread began or ceased to run. */
struct turn {
	int64_t time_ns, thread; /* globalTid */
	bool in;
};

typedef VEC(struct turn) turn_vec;

static int by_thread(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (int)x->in - (int)y->in;
}

static int read_turns(struct nsys_pass *pass, turn_vec *turns)
{
	static const struct nsys_column columns[] = { { "start", false },
						      { "isSchedIn", false },
						      { "globalTid", false } };
	struct nsys_query query;
	int ret = nsys_rows(pass, &query, "SCHED_EVENTS", columns, ARRAY_SIZE(columns),
			    NSYS_ROWS_OF_TID);

	while (ret > 0 && (ret = nsys_query_next(&query)) > 0) {
		int64_t time_ns, in, thread;

		if (!nsys_query_int(&query, 0, &time_ns) || !nsys_query_int(&query, 1, &in) ||
		    !nsys_query_int(&query, 2, &thread)) {
			pass->trace->drops.bad_event++;
			continue;
		}
		if (vec_push(turns, (struct turn){ time_ns, thread, in != 0 }) < 0) {
			ret = -ENOMEM;
			break;
		}
	}
	nsys_query_close(&query);
	return ret;
}

/* One sample for each whole bin between the first and the last turn of a thread. */
static int add_cpu(struct nsys_pass *pass, const struct turn *turns, size_t cnt,
		   const struct series *series)
{
	int64_t end_ns = turns[0].time_ns + BIN_NS, at_ns = turns[0].time_ns, busy_ns = 0;
	size_t bins = 0;
	int ret = 0;

	for (size_t i = 1; i < cnt && ret == 0; i++) {
		bool ran = turns[i - 1].in;

		while (turns[i].time_ns >= end_ns && ret == 0 && bins++ < MAX_BINS) {
			busy_ns += ran ? end_ns - at_ns : 0;
			ret = build_sample(&pass->build, series, end_ns,
					   (double)busy_ns / (double)BIN_NS);
			at_ns = end_ns;
			end_ns += BIN_NS;
			busy_ns = 0;
		}
		busy_ns += ran ? turns[i].time_ns - at_ns : 0;
		at_ns = turns[i].time_ns;
	}
	return ret == -ENOSPC ? 0 : ret;
}

/* Threads of which nothing else is known are left out. */
static bool has_lane(const struct nsys_pass *pass, int64_t thread)
{
	struct ident pid = { .num = thread >> 24 & 0xffffff }, tid = { .num = thread & 0xffffff };

	return build_lane_find(&pass->build, pid, tid, LANE_THREAD) >= 0;
}

static bool is_sane(const struct turn *turns, size_t cnt)
{
	int64_t length;

	return turns[0].time_ns >= 0 && turns[0].time_ns < INT64_MAX - 2 * BIN_NS &&
	       !__builtin_sub_overflow(turns[cnt - 1].time_ns, turns[0].time_ns, &length) &&
	       length < BIN_NS * (int64_t)MAX_BINS;
}

static int read_cpu(struct nsys_pass *pass)
{
	struct series series = { .device = -1 };
	turn_vec turns = { 0 };
	int ret = read_turns(pass, &turns);

	if (ret == 0)
		ret = nsys_intern(pass, "cpu_thread", strlen("cpu_thread"), &series.name);
	if (turns.cnt > 0)
		qsort(turns.data, turns.cnt, sizeof(*turns.data), by_thread);
	for (size_t i = 0, end; i < turns.cnt && ret == 0; i = end) {
		for (end = i; end < turns.cnt && turns.data[end].thread == turns.data[i].thread;
		     end++)
			;
		series.tid = turns.data[i].thread & 0xffffff;
		if (!is_sane(&turns.data[i], end - i))
			pass->trace->drops.bad_value += end - i;
		else if (has_lane(pass, turns.data[i].thread))
			ret = add_cpu(pass, &turns.data[i], end - i, &series);
	}
	vec_done(&turns);
	return ret;
}

/* --- network cards --- */

/* Names of the cards' metrics, by list and place in it; of the cards, by their packed ids. */
struct nics {
	struct idmap metrics, cards, ids;
};

static int put_text(struct nsys_pass *pass, struct nsys_query *query, int column, struct idmap *map,
		    uint64_t key)
{
	size_t len;
	const char *text = nsys_query_text(query, column, &len);
	uint32_t id;
	int ret = text != NULL ? nsys_intern(pass, text, len, &id) : 0;

	return text != NULL && ret == 0 ? idmap_set(map, key, id) : ret;
}

static uint64_t pair_key(int64_t list, int64_t at)
{
	return (uint64_t)list << 32 ^ (uint64_t)at;
}

/* Of the many metrics of a card: the bytes that it moved. */
static int read_nic_metrics(struct nsys_pass *pass, struct nics *nics)
{
	static const struct nsys_column columns[] = { { "metricsListId", true },
						      { "metricsIdx", true },
						      { "name", true } };
	struct nsys_query query;
	int ret = nsys_rows(pass, &query, "TARGET_INFO_NETWORK_METRICS", columns,
			    ARRAY_SIZE(columns), NSYS_ROWS_ALL);

	while (ret > 0 && (ret = nsys_query_next(&query)) > 0) {
		int64_t list, at;
		size_t len;
		const char *name = nsys_query_text(&query, 2, &len);

		if (name == NULL || strcasestr(name, "bytes") == NULL ||
		    !nsys_query_int(&query, 0, &list) || !nsys_query_int(&query, 1, &at))
			continue;
		ret = put_text(pass, &query, 2, &nics->metrics, pair_key(list, at));
		if (ret < 0)
			break;
		ret = 1;
	}
	nsys_query_close(&query);
	return ret;
}

static int read_nic_names(struct nsys_pass *pass, struct nics *nics)
{
	static const struct nsys_column names[] = { { "nicId", true }, { "name", true } };
	static const struct nsys_column ids[] = { { "nicId", true }, { "globalId", true } };
	struct nsys_query query;
	int64_t nic, global;
	int ret = nsys_rows(pass, &query, "TARGET_INFO_NIC_INFO", names, 2, NSYS_ROWS_ALL);

	while (ret > 0 && (ret = nsys_query_next(&query)) > 0) {
		if (nsys_query_int(&query, 0, &nic) &&
		    put_text(pass, &query, 1, &nics->cards, (uint64_t)nic) < 0)
			ret = -ENOMEM;
	}
	nsys_query_close(&query);
	if (ret == 0)
		ret = nsys_rows(pass, &query, "NIC_ID_MAP", ids, 2, NSYS_ROWS_ALL);
	while (ret > 0 && (ret = nsys_query_next(&query)) > 0) {
		uint32_t name = IDMAP_NONE;

		if (nsys_query_int(&query, 0, &nic))
			name = idmap_get(&nics->cards, (uint64_t)nic);
		if (name != IDMAP_NONE && nsys_query_int(&query, 1, &global) &&
		    idmap_set(&nics->ids, (uint64_t)global, name) < 0)
			ret = -ENOMEM;
	}
	nsys_query_close(&query);
	return ret;
}

static int read_nic_rows(struct nsys_pass *pass, const struct nics *nics)
{
	static const struct nsys_column columns[] = {
		{ "end", false },	 { "globalId", false }, { "metricsListId", false },
		{ "metricsIdx", false }, { "value", false },
	};
	struct nsys_query query;
	int ret = nsys_rows(pass, &query, "NET_NIC_METRIC", columns, ARRAY_SIZE(columns),
			    NSYS_ROWS_ALL);

	while (ret > 0 && (ret = nsys_query_next(&query)) > 0) {
		struct series series = { .device = -1, .tid = -1 };
		int64_t end_ns, id, list, at;
		double value;

		if (!nsys_query_int(&query, 0, &end_ns) || !nsys_query_int(&query, 1, &id) ||
		    !nsys_query_int(&query, 2, &list) || !nsys_query_int(&query, 3, &at) ||
		    !nsys_query_number(&query, 4, &value)) {
			pass->trace->drops.bad_value++;
			continue;
		}
		series.name = idmap_get(&nics->ids, (uint64_t)id);
		series.key = idmap_get(&nics->metrics, pair_key(list, at));
		if (series.name == IDMAP_NONE || series.key == IDMAP_NONE)
			continue;
		ret = build_sample(&pass->build, &series, end_ns, value);
		if (ret == -ENOSPC)
			pass->trace->drops.unsupported_overlap++;
		if (ret < 0 && ret != -ENOSPC)
			break;
		ret = 1;
	}
	nsys_query_close(&query);
	return ret;
}

static int read_nics(struct nsys_pass *pass)
{
	struct nics nics = { 0 };
	int ret = nsys_db_has(pass->db, "NET_NIC_METRIC");

	if (ret <= 0)
		return ret;
	ret = read_nic_metrics(pass, &nics);
	if (ret == 0)
		ret = read_nic_names(pass, &nics);
	if (ret == 0)
		ret = read_nic_rows(pass, &nics);
	idmap_done(&nics.metrics);
	idmap_done(&nics.cards);
	idmap_done(&nics.ids);
	return ret;
}

int nsys_read_host(struct nsys_pass *pass)
{
	int ret = read_cpu(pass);

	return ret == 0 ? read_nics(pass) : ret;
}
