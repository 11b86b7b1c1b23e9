/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/stalls/holder.h"

#include "base/text/pythoncode.h"
#include "model/place/place.h"
#include "model/place/pywait.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>

/* What one thread executes in Python. */
struct lane_look {
	struct pass *p;
	const gap_list *stalls;
	int64_t within_ns, between_ns; /* in stalls and between them */
	int64_t most_ns;	       /* in stalls, in node */
	uint32_t node;		       /* FRAME_NONE: nothing */
	struct idmap slot_of;	       /* node -> index in times_ns */
	VEC(int64_t) times_ns;	       /* in stalls */
};

static int add_to_node(struct lane_look *look, uint32_t node, int64_t ns)
{
	uint32_t slot = idmap_get(&look->slot_of, node);
	int error = 0;

	if (slot == IDMAP_NONE) {
		slot = (uint32_t)look->times_ns.cnt;
		error = vec_push(&look->times_ns, 0);
		if (error == 0)
			error = idmap_set(&look->slot_of, node, slot);
	}
	if (error < 0)
		return error;
	look->times_ns.data[slot] += ns;
	if (look->times_ns.data[slot] > look->most_ns) {
		look->most_ns = look->times_ns.data[slot];
		look->node = node;
	}
	return 0;
}

static int add_segment(struct lane_look *look, const struct host_segment *seg)
{
	const struct cct_node *node = &look->p->cct.nodes.data[seg->node];
	int64_t within_ns;

	if (seg->class == CLASS_IDLE || node->kind != KIND_PYTHON ||
	    pywait_is(strtab_text(&look->p->cct.names, node->name)))
		return 0;
	within_ns = gaps_within(look->stalls, seg->start_ns, seg->end_ns);
	look->within_ns += within_ns;
	look->between_ns += seg->end_ns - seg->start_ns - within_ns;
	return within_ns > 0 ? add_to_node(look, seg->node, within_ns) : 0;
}

static int look_at_lane(struct lane_look *look, uint32_t lane)
{
	struct pass *p = look->p;
	struct hostpath path = pass_hostpath(p);
	struct hostwalk *walk = hostwalk_new(&path, lane);
	struct host_segment seg;
	int error = walk != NULL ? 0 : -ENOMEM, found;

	while (error == 0 && (found = hostwalk_next(walk, &seg)) != 0)
		error = found > 0 ? add_segment(look, &seg) : found;
	(void)hostwalk_free(walk);
	return error;
}

/* The innermost caller that is the user's, itself included; FRAME_NONE: none is. */
static uint32_t users_caller(const struct pass *p, uint32_t node)
{
	for (; node != FRAME_NONE && p->cct.nodes.data[node].kind == KIND_PYTHON;
	     node = p->cct.nodes.data[node].parent) {
		if (pythoncode_is_users(strtab_text(&p->cct.names, p->cct.nodes.data[node].name)))
			return node;
	}
	return FRAME_NONE;
}

/* The function, after the user's function that calls it. NULL: out of memory. */
static const char *path_of(struct pass *p, uint32_t node, struct fingerprint *fp)
{
	const char *name = strtab_text(&p->cct.names, p->cct.nodes.data[node].name);
	uint32_t user = users_caller(p, node);

	if (user == FRAME_NONE || user == node)
		return arena_strdup(&fp->arena, name);
	return arena_printf(&fp->arena, "%s" PLACE_BELOW "%s",
			    strtab_text(&p->cct.names, p->cct.nodes.data[user].name), name);
}

static int64_t length_of(const gap_list *stalls)
{
	int64_t sum = 0;

	vec_foreach(stall, stalls)
		sum += stall->end_ns - stall->start_ns;
	return sum;
}

static bool is_holder(const struct lane_look *look, int64_t stalls_ns, int64_t window_ns)
{
	double within = (double)look->within_ns / (double)stalls_ns;
	double between = (double)look->between_ns / (double)MAX(window_ns - stalls_ns, 1);

	return look->node != FRAME_NONE && within >= HOLDER_WITHIN_FRAC &&
	       between <= HOLDER_BETWEEN_FACTOR * within;
}

static int judge_lane(struct pass *p, const gap_list *stalls, uint32_t lane, struct fingerprint *fp)
{
	struct lane_look look = { .p = p, .stalls = stalls, .node = FRAME_NONE };
	struct fp_host *host = &fp->host_stats;
	int error = look_at_lane(&look, lane);
	double frac = (double)(look.within_ns + look.between_ns) / (double)fp->window_ns;

	if (error == 0 && frac > host->other_cpu_frac &&
	    is_holder(&look, length_of(stalls), fp->window_ns)) {
		host->other_name = path_of(p, look.node, fp);
		host->other_cpu_frac = fmin(1, frac);
		error = host->other_name != NULL ? 0 : -ENOMEM;
	}
	idmap_done(&look.slot_of);
	vec_done(&look.times_ns);
	return error;
}

/* Whether the trace has measured the CPU time of threads. */
static bool has_cpu_times(const struct trace *t)
{
	for (size_t i = 0; i < t->track_cnt; i++) {
		if (t->tracks[i].resource == RESOURCE_CPU_THREAD)
			return true;
	}
	return false;
}

int holder_find(struct pass *p, const gap_list *stalls, struct fingerprint *fp)
{
	const struct trace *t = p->trace;
	int error = 0;

	if (has_cpu_times(t) ||
	    (double)length_of(stalls) < STALL_WORKER_FRAC * (double)fp->window_ns)
		return 0;
	for (uint32_t lane = 0; lane < t->lane_cnt && error == 0; lane++) {
		if (t->lanes[lane].type == LANE_THREAD && lane != p->window.training_lane &&
		    lane != p->window.backward_lane)
			error = judge_lane(p, stalls, lane, fp);
	}
	return error;
}
