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
	size_t peer_cnt;
};

static void tally_done(struct tally *t)
{
	free(t->ns);
	free(t->peers_ns);
	free(t->class);
	free(t->own_ns);
}

static int tally_init(struct tally *t, const struct job *job)
{
	size_t cnt = job->frames.cnt + 1;

	*t = (struct tally){ .job = job };
	t->ns = calloc(cnt, sizeof(*t->ns));
	t->peers_ns = calloc(cnt, sizeof(*t->peers_ns));
	t->class = calloc(cnt, sizeof(*t->class));
	t->own_ns = calloc(cnt, sizeof(*t->own_ns));
	return t->ns == NULL || t->peers_ns == NULL || t->class == NULL || t->own_ns == NULL
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

static void add_functions(struct tally *t, size_t worker, const size_t *peers, size_t peer_cnt)
{
	vec_foreach(f, &t->job->functions) {
		double mine, theirs = 0;

		if (f->frame == FRAME_NONE)
			continue;
		mine = job_time_ns(t->job, f, worker);
		for (size_t i = 0; i < peer_cnt; i++)
			theirs += job_time_ns(t->job, f, peers[i]) / (double)peer_cnt;
		t->ns[f->frame] += mine;
		t->peers_ns[f->frame] += theirs;
		if (fmax(mine, theirs) > t->own_ns[f->frame]) {
			t->own_ns[f->frame] = fmax(mine, theirs);
			t->class[f->frame] = f->class;
		}
	}
	t->peer_cnt = peer_cnt;
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
		if (t->own_ns[parent] <= 0)
			t->class[parent] = CLASS_HOST;
	}
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
	return ret->name == NULL ? -ENOMEM : 0;
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
	size_t worker = culprit != SIZE_MAX ? culprit : 0, peers[PEERS_MAX];
	bool deep = false;

	if (tally_init(&t, job) < 0)
		return -ENOMEM;
	add_functions(&t, worker, peers, choose_peers(job, out, worker, peers));
	add_to_callers(&t);
	if (copy_nodes(&t, out, &deep) < 0)
		return -ENOMEM;
	out->flame.rank = job->workers[worker].fp->rank;
	out->flame.culprit = culprit != SIZE_MAX;
	out->flame.peer_cnt = t.peer_cnt;
	out->flame.iteration_ms = job->iteration_ns / 1e6;
	/* Without callers it would be a bar chart of functions, which the report has. */
	if (!deep)
		out->flame = (struct report_flame){ 0 };
	return 0;
}
