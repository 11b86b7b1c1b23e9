/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/pictures/flame.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#define LEAST_FRAC 0.004 /* of an iteration; less is too narrow to draw */
#define NODES_MAX 400u
#define PEERS_MAX 64u /* of many, so many are a fair sample */

struct tally {
	const struct job *job;
	double *ns, *peers_ns; /* by frame, with what it calls */
	uint8_t *class;	       /* by frame: that of most of its own time */
	double *own_ns;	       /* by frame: the time of that class */
	uint64_t *peers_with;  /* by frame: bit i: it ran on peer i, or what it calls */
	size_t worker, peers[PEERS_MAX], peer_cnt;
};

static void tally_done(struct tally *t)
{
	free(t->ns);
	free(t->peers_ns);
	free(t->class);
	free(t->own_ns);
	free(t->peers_with);
}

static int tally_init(struct tally *t, const struct job *job)
{
	size_t cnt = job->frames.cnt + 1;

	*t = (struct tally){ .job = job };
	t->ns = calloc(cnt, sizeof(*t->ns));
	t->peers_ns = calloc(cnt, sizeof(*t->peers_ns));
	t->class = calloc(cnt, sizeof(*t->class));
	t->own_ns = calloc(cnt, sizeof(*t->own_ns));
	t->peers_with = calloc(cnt, sizeof(*t->peers_with));
	return t->ns == NULL || t->peers_ns == NULL || t->class == NULL || t->own_ns == NULL ||
			       t->peers_with == NULL
		       ? -ENOMEM
		       : 0;
}

/* Whether worker w is another one and no finding flags it. */
static bool is_peer(const struct job *job, const struct report *report, size_t w, size_t than)
{
	if (w == than)
		return false;
	for (size_t i = 0; i < report->finding_cnt; i++) {
		const struct finding *finding = &report->findings[i];

		if (!finding->all_workers && finding_names_rank(finding, job->workers[w].fp->rank))
			return false;
	}
	return true;
}

/* Every n-th of the workers of its group, so that no more than PEERS_MAX are asked. */
static size_t choose_peers(const struct job *job, const struct report *report, size_t worker,
			   size_t ret[static PEERS_MAX])
{
	size_t alike = 0, step, cnt = 0;

	for (size_t w = 0; w < job->worker_cnt; w++)
		alike += job->workers[w].group == job->workers[worker].group;
	step = alike / PEERS_MAX + 1;
	alike = 0;
	for (size_t w = 0; w < job->worker_cnt && cnt < PEERS_MAX; w++) {
		if (job->workers[w].group != job->workers[worker].group || alike++ % step != 0)
			continue;
		if (is_peer(job, report, w, worker))
			ret[cnt++] = w;
	}
	return cnt;
}

static void add_functions(struct tally *t)
{
	vec_foreach(f, &t->job->functions) {
		double mine, theirs = 0;

		if (f->frame == FRAME_NONE)
			continue;
		mine = job_time_ns(t->job, f, t->worker);
		for (size_t i = 0; i < t->peer_cnt; i++) {
			double ns = job_time_ns(t->job, f, t->peers[i]);

			theirs += ns / (double)t->peer_cnt;
			t->peers_with[f->frame] |= (uint64_t)(ns > 0) << i;
		}
		t->ns[f->frame] += mine;
		t->peers_ns[f->frame] += theirs;
		if (fmax(mine, theirs) > t->own_ns[f->frame]) {
			t->own_ns[f->frame] = fmax(mine, theirs);
			t->class[f->frame] = f->class;
		}
	}
}

/* Callers come before callees: the last frames first. */
static void add_to_callers(struct tally *t)
{
	for (size_t i = t->job->frames.cnt; i > 0; i--) {
		uint32_t parent = t->job->frames.data[i - 1].parent;

		if (parent == FRAME_NONE)
			continue;
		t->ns[parent] += t->ns[i - 1];
		t->peers_ns[parent] += t->peers_ns[i - 1];
		t->peers_with[parent] |= t->peers_with[i - 1];
		if (t->own_ns[parent] <= 0)
			t->class[parent] = CLASS_HOST;
	}
}

static int order_ranks(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The ranks of worker (own) and of the peers whose bits are set. NULL: out of memory. */
static const int *copy_ranks(const struct tally *t, bool own, uint64_t with, struct report *out,
			     size_t *ret_cnt)
{
	int *ret = arena_calloc(&out->arena, t->peer_cnt + 1, sizeof(*ret));
	size_t cnt = 0;

	if (ret == NULL)
		return NULL;
	if (own)
		ret[cnt++] = t->job->workers[t->worker].fp->rank;
	for (size_t i = 0; i < t->peer_cnt; i++) {
		if ((with >> i & 1) != 0)
			ret[cnt++] = t->job->workers[t->peers[i]].fp->rank;
	}
	qsort(ret, cnt, sizeof(*ret), order_ranks);
	*ret_cnt = cnt;
	return ret;
}

static uint64_t all_peers(const struct tally *t)
{
	return t->peer_cnt < 64 ? (UINT64_C(1) << t->peer_cnt) - 1 : UINT64_MAX;
}

/* Of a function that not all of the compared ranks have. */
static int set_ranks(const struct tally *t, uint32_t frame, struct report *out,
		     struct report_flame_node *node)
{
	bool own = t->ns[frame] > 0;

	if (t->peer_cnt == 0 || (own && t->peers_with[frame] == all_peers(t)))
		return 0;
	node->ranks = copy_ranks(t, own, t->peers_with[frame], out, &node->rank_cnt);
	return node->ranks == NULL ? -ENOMEM : 0;
}

static int copy_node(const struct tally *t, uint32_t frame, const int *index_of, struct report *out,
		     struct report_flame_node *ret)
{
	const struct job_frame *f = &t->job->frames.data[frame];

	*ret = (struct report_flame_node){
		.name = arena_strdup(&out->arena, f->name),
		.parent = f->parent != FRAME_NONE ? index_of[f->parent] : -1,
		.class = (enum event_class)t->class[frame],
		.ms = t->ns[frame] / 1e6,
		.peers_ms = t->peers_ns[frame] / 1e6,
	};
	return ret->name == NULL ? -ENOMEM : set_ranks(t, frame, out, ret);
}

/* The least time of a node so that no more than NODES_MAX are kept. */
static double find_least_ns(const struct tally *t)
{
	double least = LEAST_FRAC * t->job->iteration_ns;
	size_t cnt;

	do {
		cnt = 0;
		for (size_t i = 0; i < t->job->frames.cnt; i++)
			cnt += fmax(t->ns[i], t->peers_ns[i]) >= least;
		least *= cnt > NODES_MAX ? 1.5 : 1;
	} while (cnt > NODES_MAX);
	return least;
}

static int copy_nodes(const struct tally *t, struct report *out, bool *ret_deep)
{
	struct report_flame_node *nodes = arena_calloc(&out->arena, NODES_MAX + 1, sizeof(*nodes));
	_cleanup_free_ int *index_of = calloc(t->job->frames.cnt + 1, sizeof(*index_of));
	double least = find_least_ns(t);
	size_t cnt = 0;

	if (nodes == NULL || index_of == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->job->frames.cnt; i++) {
		index_of[i] = -1;
		if (!(least > 0) || fmax(t->ns[i], t->peers_ns[i]) < least)
			continue;
		if (copy_node(t, i, index_of, out, &nodes[cnt]) < 0)
			return -ENOMEM;
		*ret_deep |= nodes[cnt].parent >= 0;
		index_of[i] = (int)cnt++;
	}
	out->flame.nodes = nodes;
	out->flame.node_cnt = cnt;
	return 0;
}

int flame_fill(const struct job *job, size_t culprit, struct report *out)
{
	_cleanup_(tally_done) struct tally t = { 0 };
	size_t worker = culprit != SIZE_MAX ? culprit : 0;
	bool deep = false;

	if (tally_init(&t, job) < 0)
		return -ENOMEM;
	t.worker = worker;
	t.peer_cnt = choose_peers(job, out, worker, t.peers);
	add_functions(&t);
	add_to_callers(&t);
	if (copy_nodes(&t, out, &deep) < 0)
		return -ENOMEM;
	out->flame.rank = job->workers[worker].fp->rank;
	out->flame.culprit = culprit != SIZE_MAX;
	out->flame.peer_cnt = t.peer_cnt;
	out->flame.compared = copy_ranks(&t, true, all_peers(&t), out, &out->flame.compared_cnt);
	if (out->flame.compared == NULL)
		return -ENOMEM;
	out->flame.iteration_ms = job->iteration_ns / 1e6;
	/* Without callers it would be a bar chart of functions, which the report has. */
	if (!deep)
		out->flame = (struct report_flame){ 0 };
	return 0;
}
