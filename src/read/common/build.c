/* SPDX-License-Identifier: Apache-2.0 */
#include "read/common/build.h"

#include "read/common/order.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MAX_LANES 65535u
#define MAX_TRACKS 4096u

void build_init(struct build *build, struct trace *trace)
{
	*build = (struct build){ .trace = trace };
}

void build_done(struct build *build)
{
	vec_done(&build->halves);
	vec_done(&build->labels);
	vec_done(&build->lane_tids);
	vec_done(&build->lane_pids);
	vec_done(&build->counters);
	idmap_done(&build->lane_map);
	idmap_done(&build->track_map);
	idmap_done(&build->wide_ids);
}

static uint64_t mix(uint64_t a, uint64_t b)
{
	a = (a ^ b) * 0x9e3779b97f4a7c15ULL;
	return a ^ a >> 29;
}

static bool is_lane(const struct build *build, size_t lane, struct ident pid, struct ident tid,
		    enum lane_type type)
{
	return lane < build->trace->lane_cnt && build->trace->lanes[lane].type == type &&
	       ident_same(build->lane_tids.data[lane], tid) &&
	       ident_same(build->lane_pids.data[lane], pid);
}

/* Index in the map whose keys were probed from key on, or IDMAP_NONE and the free key. */
static uint32_t lane_find(const struct build *build, struct ident pid, struct ident tid,
			  enum lane_type type, uint64_t *ret_key)
{
	uint64_t key = mix(mix(mix((uint64_t)pid.num, pid.text), mix((uint64_t)tid.num, tid.text)),
			   (uint64_t)type);

	for (;; key++) {
		uint32_t lane = idmap_get(&build->lane_map, key);

		*ret_key = key;
		if (lane == IDMAP_NONE || is_lane(build, lane, pid, tid, type))
			return lane;
	}
}

static int lane_add(struct build *build, struct ident pid, struct ident tid, enum lane_type type,
		    uint64_t key)
{
	struct trace *trace = build->trace;
	size_t lane = trace->lane_cnt;
	int ret;

	if (lane >= MAX_LANES)
		return -ENOSPC;
	ret = vec_reserve_bytes((void **)&trace->lanes, &trace->lane_cap, lane + 1,
				sizeof(*trace->lanes));
	if (ret == 0)
		ret = vec_reserve(&build->lane_tids, lane + 1);
	if (ret == 0)
		ret = vec_reserve(&build->lane_pids, lane + 1);
	if (ret == 0)
		ret = idmap_set(&build->lane_map, key, (uint32_t)lane);
	if (ret < 0)
		return ret;
	build->lane_tids.data[build->lane_tids.cnt++] = tid;
	build->lane_pids.data[build->lane_pids.cnt++] = pid;
	trace->lanes[trace->lane_cnt++] = (struct lane){
		.pid = pid.num,
		.tid = tid.num,
		.name = tid.text,
		.type = (uint8_t)type,
	};
	return (int)lane;
}

int build_lane_other(struct build *build, struct ident pid, struct ident tid, enum lane_type type)
{
	uint64_t key;
	uint32_t lane = lane_find(build, pid, tid, type, &key);
	int ret = lane != IDMAP_NONE ? (int)lane : lane_add(build, pid, tid, type, key);

	if (ret >= 0)
		build->last_lane[type] = (struct last_lane){ pid, tid, true, (uint16_t)ret };
	return ret;
}

int build_lane_find(const struct build *build, struct ident pid, struct ident tid,
		    enum lane_type type)
{
	uint64_t key;
	uint32_t lane = lane_find(build, pid, tid, type, &key);

	return lane != IDMAP_NONE ? (int)lane : -ENOENT;
}

int build_code_wide(struct build *build, uint64_t id, uint32_t *ret)
{
	uint32_t number = idmap_get(&build->wide_ids, id);
	int r;

	if (number == IDMAP_NONE) {
		number = (uint32_t)build->wide_ids.cnt;
		if (number >= CODE_NONE - BUILD_WIDE_BASE)
			return -ENOMEM;
		r = idmap_set(&build->wide_ids, id, number);
		if (r < 0)
			return r;
	}
	*ret = BUILD_WIDE_BASE + number;
	return 0;
}

int build_event(struct build *build, struct event event, const struct link *link)
{
	struct trace *trace = build->trace;
	int ret;

	event.parent = link != NULL ? link->parent : CODE_NONE;
	if (build_has_id(&event))
		event.args = link != NULL ? link->id : CODE_NONE;
	if (trace->event_cnt >= EVENT_NONE - 1)
		return -ENOMEM;
	if (trace->event_cnt == trace->event_cap) {
		ret = vec_reserve_bytes((void **)&trace->events, &trace->event_cap,
					trace->event_cnt + 1, sizeof(*trace->events));
		if (ret < 0)
			return ret;
	}
	trace->events[trace->event_cnt++] = event;
	return 0;
}

static uint32_t args_hash(const struct event_args *args)
{
	uint64_t hash = mix((uint64_t)args->bytes, (uint64_t)args->elements);

	hash = mix(hash, (uint64_t)args->seq << 32 ^ args->collective);
	hash = mix(hash, (uint64_t)args->group << 32 | args->group_ranks);
	return (uint32_t)(hash >> 32);
}

int build_args(struct build *build, const struct event_args *args, uint32_t *ret)
{
	struct trace *trace = build->trace;
	uint32_t *recent = &build->recent_args[args_hash(args) % ARRAY_SIZE(build->recent_args)];
	int r;

	/* Iterations repeat what the ones before did. */
	if (*recent != 0 && memcmp(&trace->args[*recent - 1], args, sizeof(*args)) == 0) {
		*ret = *recent;
		return 0;
	}
	r = vec_reserve_bytes((void **)&trace->args, &trace->args_cap, trace->args_cnt + 1,
			      sizeof(*trace->args));
	if (r < 0)
		return r;
	trace->args[trace->args_cnt++] = *args;
	*ret = *recent = (uint32_t)trace->args_cnt;
	return 0;
}

int build_half(struct build *build, struct half half)
{
	if (build->halves.cnt >= UINT32_MAX)
		return -ENOMEM;
	half.order = (uint32_t)build->halves.cnt;
	return vec_push(&build->halves, half);
}

/* The name a track gets: "counter", or "counter.key" when the series has a key. */
static int track_name(struct build *build, const struct series *series, uint32_t *ret)
{
	struct strtab *strings = &build->trace->strings;
	const char *name = strtab_text(strings, series->name);
	const char *key = strtab_text(strings, series->key);
	char text[512];
	int len;

	*ret = series->name;
	if (key[0] == '\0' || strcmp(key, name) == 0 || strcmp(key, "value") == 0)
		return 0;
	len = snprintf(text, sizeof(text), "%s.%s", name, key);
	if (len < 0)
		return 0;
	*ret = strtab_intern(strings, text, MIN((size_t)len, sizeof(text) - 1));
	return *ret == STRTAB_NONE ? -ENOMEM : 0;
}

/* --- names of counters ---
 *
 * They differ by tool and chip: CUPTI ("sm__cycles_active.avg.pct_of_peak_sustained_elapsed"),
 * Nsight ("SMs Active [Throughput %]"), the agent's collectors (resource_name()).
 */

struct metric {
	enum resource resource; /* RESOURCE_OTHER: unknown, values are kept unscaled */
	double scale;		/* factor to 0..1 */
};

/* All words must occur in the name; the first pattern that matches decides. */
struct pattern {
	const char *words[3];
	enum resource resource;
};

static const struct pattern patterns[] = {
	{ { "sm__cycles_active", "pct" }, RESOURCE_SM_ACTIVE },
	{ { "sm active" }, RESOURCE_SM_ACTIVE },
	{ { "sms active" }, RESOURCE_SM_ACTIVE },
	{ { "dram__", "pct" }, RESOURCE_DRAM },
	{ { "dram", "bandwidth" }, RESOURCE_DRAM },
	{ { "vram", "bandwidth" }, RESOURCE_DRAM },
	{ { "nvltx__", "pct" }, RESOURCE_NVLINK_TX },
	{ { "nvlink", "tx" }, RESOURCE_NVLINK_TX },
	{ { "nvlink", "transmit" }, RESOURCE_NVLINK_TX },
	{ { "pcie__write", "pct" }, RESOURCE_PCIE_TX },
	{ { "pcie", "tx" }, RESOURCE_PCIE_TX },
	{ { "pcie", "transmit" }, RESOURCE_PCIE_TX },
	{ { "pcie__read", "pct" }, RESOURCE_PCIE_RX },
	{ { "pcie", "rx" }, RESOURCE_PCIE_RX },
	{ { "pcie", "receive" }, RESOURCE_PCIE_RX },
};

static bool fits(const struct pattern *pattern, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(pattern->words) && pattern->words[i] != NULL; i++) {
		if (strcasestr(name, pattern->words[i]) == NULL)
			return false;
	}
	return true;
}

/* Case is ignored. A known name without a stated unit counts as percent. */
static struct metric find_metric(const char *name)
{
	for (unsigned int i = 0; i < RESOURCE_CNT; i++) {
		if (strcmp(name, resource_name((enum resource)i)) == 0)
			return (struct metric){ (enum resource)i, 1.0 };
	}
	/* A rate in bytes has no known peak. */
	if (strcasestr(name, "bytes") != NULL && strcasestr(name, "pct") == NULL)
		return (struct metric){ RESOURCE_OTHER, 1.0 };
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		if (fits(&patterns[i], name))
			return (struct metric){ patterns[i].resource, 0.01 };
	}
	return (struct metric){ RESOURCE_OTHER, 1.0 };
}

static int track_add(struct build *build, const struct series *series, uint64_t key)
{
	struct trace *trace = build->trace;
	struct metric metric;
	uint32_t name;
	int ret;

	if (trace->track_cnt >= MAX_TRACKS)
		return -ENOSPC;
	ret = track_name(build, series, &name);
	if (ret == 0)
		ret = vec_reserve(&build->counters, trace->track_cnt + 1);
	if (ret == 0)
		ret = vec_reserve_bytes((void **)&trace->tracks, &trace->track_cap,
					trace->track_cnt + 1, sizeof(*trace->tracks));
	if (ret == 0)
		ret = idmap_set(&build->track_map, key, (uint32_t)trace->track_cnt);
	if (ret < 0)
		return ret;
	metric = find_metric(strtab_text(&trace->strings, name));
	build->counters.data[build->counters.cnt++] =
		(struct counter){ .series = *series, .scale = metric.scale };
	trace->tracks[trace->track_cnt] = (struct track){
		.name = name,
		.resource = (uint8_t)metric.resource,
		.device = series->device,
		.tid = series->tid,
	};
	return (int)trace->track_cnt++;
}

static bool same_series(const struct series *a, const struct series *b)
{
	return a->name == b->name && a->key == b->key && a->device == b->device && a->tid == b->tid;
}

static int track_of(struct build *build, const struct series *series)
{
	uint64_t key =
		mix(mix((uint64_t)series->name << 32 | series->key, (uint64_t)series->device),
		    (uint64_t)series->tid);

	for (;; key++) {
		uint32_t track = idmap_get(&build->track_map, key);

		if (track == IDMAP_NONE)
			return track_add(build, series, key);
		if (same_series(&build->counters.data[track].series, series))
			return (int)track;
	}
}

int build_sample(struct build *build, const struct series *series, int64_t time_ns, double value)
{
	int idx = track_of(build, series), ret;
	struct track *track;

	if (idx < 0)
		return idx;
	track = &build->trace->tracks[idx];
	if (track->resource != RESOURCE_OTHER) {
		value *= build->counters.data[idx].scale;
		build->trace->drops.bad_value += value < 0 || value > 1.05;
		value = fmin(fmax(value, 0), 1);
	}
	ret = vec_reserve_bytes((void **)&track->samples, &track->cap, track->cnt + 1,
				sizeof(*track->samples));
	if (ret == 0) {
		track->samples[track->cnt++] = (struct sample){ time_ns, value };
		build->sample_cnt++;
	}
	return ret;
}

uint64_t build_bytes(const struct build *build)
{
	const struct trace *trace = build->trace;

	return trace->event_cnt * sizeof(struct event) +
	       trace->args_cnt * sizeof(struct event_args) +
	       build->halves.cnt * sizeof(struct half) + build->sample_cnt * sizeof(struct sample) +
	       trace->strings.arena.total_bytes + trace->strings.cnt * sizeof(struct strtab_entry);
}
