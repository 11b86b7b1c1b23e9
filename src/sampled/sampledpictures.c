/* SPDX-License-Identifier: Apache-2.0 */
#include "sampled/sampled_parts.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define NODE_LEAST 0.003 /* of the samples: what is drawn */
#define SHARE_LEAST 0.01

enum { SHARES_MAX = 20, NODES_MAX = 600 };

/* --- workers, and who waits for whom --- */

static void count_classes(const struct sampledcase *c, size_t index, struct report_worker *ret)
{
	const struct sampled_rank *rank = &c->job->ranks[index];
	double seen = 0;

	for (size_t i = 0; i < rank->moment_cnt; i++) {
		const struct sampled_moment *moment = &rank->moments[i];
		enum event_class class = moment->state == 'R' ? CLASS_HOST : CLASS_IDLE;

		if (moment->stack != SAMPLED_NONE &&
		    c->view.stacks[index][moment->stack].phase == PHASE_PEERS)
			class = CLASS_COMM;
		ret->class_frac[class]++;
		seen++;
	}
	for (size_t i = 0; i < CLASS_CNT; i++)
		ret->class_frac[i] /= MAX(seen, 1.0);
}

static int fill_workers(struct sampledcase *c)
{
	struct report_worker *workers = arena_calloc(c->arena, c->job->cnt + 1, sizeof(*workers));

	if (workers == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < c->job->cnt; i++) {
		workers[i] = (struct report_worker){
			.rank = c->job->ranks[i].rank,
			.host = "",
			.source = "live",
			.window_ms = c->window_s * 1e3,
			.comm_hidden_frac = (double)NAN,
			.first_step = -1,
		};
		count_classes(c, i, &workers[i]);
	}
	c->report->workers = workers;
	c->report->worker_cnt = c->job->cnt;
	return 0;
}

static int by_wait(const void *a, const void *b)
{
	const struct report_wait *x = a, *y = b;

	if (x->wait_ms != y->wait_ms)
		return x->wait_ms < y->wait_ms ? 1 : -1;
	return x->from != y->from ? (x->from > y->from) - (x->from < y->from)
				  : (x->to > y->to) - (x->to < y->to);
}

/* Each round stands for one period; waits in a row are one collective, or some. */
static int fill_waits(struct sampledcase *c)
{
	const size_t cnt = c->job->cnt;
	struct report_wait *waits = arena_calloc(c->arena, cnt * cnt + 1, sizeof(*waits));
	size_t wait_cnt = 0;

	if (waits == NULL)
		return -ENOMEM;
	for (size_t from = 0; from < cnt; from++) {
		for (size_t to = 0; to < cnt; to++) {
			struct report_wait wait = { .from = c->job->ranks[from].rank,
						    .to = c->job->ranks[to].rank };
			bool was = false;

			for (size_t round = 0; from != to && round < c->job->round_cnt; round++) {
				const bool is = sampledblame_waits(&c->view, round, from, to);

				wait.wait_ms += is ? (double)c->job->period_ns / NSEC_PER_MSEC : 0;
				wait.collective_cnt += is && !was;
				was = is;
			}
			if (wait.wait_ms > 0)
				waits[wait_cnt++] = wait;
		}
	}
	if (wait_cnt > 0)
		qsort(waits, wait_cnt, sizeof(*waits), by_wait);
	c->report->waits = waits;
	c->report->wait_cnt = wait_cnt;
	return 0;
}

/* --- functions --- */

/* Samples of some ranks by node, as shares: with what the function calls, and alone. */
struct shares {
	double *total, *self, *waits; /* waits: of self, for other ranks */
	double *blocked;
};

static int shares_new(const struct sampledcase *c, struct shares *ret)
{
	const size_t cnt = c->view.nodes.cnt;

	*ret = (struct shares){
		.total = arena_calloc(c->arena, cnt, sizeof(double)),
		.self = arena_calloc(c->arena, cnt, sizeof(double)),
		.waits = arena_calloc(c->arena, cnt, sizeof(double)),
		.blocked = arena_calloc(c->arena, cnt, sizeof(double)),
	};
	return ret->total != NULL && ret->self != NULL && ret->waits != NULL && ret->blocked != NULL
		       ? 0
		       : -ENOMEM;
}

static void shares_add(const struct sampledcase *c, size_t index, double weight, struct shares *ret)
{
	const struct sampled_rank *rank = &c->job->ranks[index];
	const double each = weight / (double)MAX(rank->moment_cnt, (size_t)1);

	for (size_t i = 0; i < rank->moment_cnt; i++) {
		const struct sampledview_stack *stack;

		if (rank->moments[i].stack == SAMPLED_NONE)
			continue;
		stack = &c->view.stacks[index][rank->moments[i].stack];
		ret->self[stack->leaf] += each;
		ret->waits[stack->leaf] += stack->phase == PHASE_PEERS ? each : 0;
		ret->blocked[stack->leaf] += rank->moments[i].state != 'R' ? each : 0;
		for (uint32_t node = stack->leaf; node != SAMPLEDVIEW_ROOT;
		     node = c->view.nodes.data[node].parent)
			ret->total[node] += each;
	}
}

static enum event_class class_of(const struct shares *shares, uint32_t node)
{
	if (shares->waits[node] > shares->self[node] / 2)
		return CLASS_COMM;
	return shares->blocked[node] > shares->self[node] / 2 && shares->self[node] > 0
		       ? CLASS_IDLE
		       : CLASS_HOST;
}

static int by_frac(const void *a, const void *b)
{
	const struct report_share *x = a, *y = b;

	if (x->frac != y->frac)
		return x->frac < y->frac ? 1 : -1;
	return strcmp(x->name, y->name);
}

static int fill_functions(struct sampledcase *c)
{
	struct report_share *ret = arena_calloc(c->arena, c->view.nodes.cnt, sizeof(*ret));
	struct shares shares;
	size_t cnt = 0;

	if (ret == NULL || shares_new(c, &shares) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < c->job->cnt; i++)
		shares_add(c, i, 1.0 / (double)c->job->cnt, &shares);
	for (uint32_t node = 1; node < c->view.nodes.cnt; node++) {
		struct report_share *share = &ret[cnt];

		if (shares.self[node] < SHARE_LEAST)
			continue;
		*share = (struct report_share){
			.name = sampledview_name(&c->view, node),
			.caller = sampledview_name(&c->view, c->view.nodes.data[node].parent),
			.place_cnt = 1,
			.class = class_of(&shares, node),
			.frac = shares.self[node],
			.ms_per_iteration = shares.self[node] * c->pace.iteration_ms,
		};
		if (share->name == NULL || share->caller == NULL)
			return -ENOMEM;
		cnt++;
	}
	if (cnt > 0)
		qsort(ret, cnt, sizeof(*ret), by_frac);
	c->report->shares = ret;
	c->report->share_cnt = MIN(cnt, (size_t)SHARES_MAX);
	return 0;
}

/* --- the flame graph --- */

static size_t rank_drawn(const struct sampledcase *c)
{
	for (size_t i = 0; i < c->job->cnt && c->report->finding_cnt > 0; i++)
		if (finding_names_rank(&c->report->findings[0], c->job->ranks[i].rank))
			return i;
	return 0;
}

/* Time in one second, or in an iteration where that is known. */
static double scale_of(const struct sampledcase *c)
{
	return c->pace.iteration_cnt > 0 ? c->pace.iteration_ms : 1000.0;
}

static int draw(struct sampledcase *c, const struct shares *own, const struct shares *peers,
		struct report_flame_node *nodes)
{
	int *index = arena_calloc(c->arena, c->view.nodes.cnt, sizeof(*index));
	const double scale = scale_of(c);
	size_t cnt = 0;

	if (index == NULL)
		return -ENOMEM;
	index[SAMPLEDVIEW_ROOT] = -1;
	for (uint32_t node = 1; node < c->view.nodes.cnt; node++) {
		const uint32_t parent = c->view.nodes.data[node].parent;

		index[node] = -2;
		if (MAX(own->total[node], peers->total[node]) < NODE_LEAST || index[parent] == -2 ||
		    cnt == NODES_MAX)
			continue;
		nodes[cnt] = (struct report_flame_node){
			.name = sampledview_name(&c->view, node),
			.parent = index[parent],
			.class = class_of(own, node),
			.ms = own->total[node] * scale,
			.peers_ms = peers->total[node] * scale,
		};
		if (nodes[cnt].name == NULL)
			return -ENOMEM;
		index[node] = (int)cnt++;
	}
	c->report->flame.nodes = nodes;
	c->report->flame.node_cnt = cnt;
	return 0;
}

static int fill_flame(struct sampledcase *c)
{
	struct report_flame_node *nodes = arena_calloc(c->arena, NODES_MAX, sizeof(*nodes));
	const size_t drawn = rank_drawn(c);
	struct shares own, peers;

	if (nodes == NULL || shares_new(c, &own) < 0 || shares_new(c, &peers) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < c->job->cnt; i++) {
		if (i == drawn)
			shares_add(c, i, 1.0, &own);
		else
			shares_add(c, i, 1.0 / (double)(c->job->cnt - 1), &peers);
	}
	c->report->flame = (struct report_flame){
		.rank = c->job->ranks[drawn].rank,
		.culprit = c->report->finding_cnt > 0,
		.sampled = true,
		.peer_cnt = c->job->cnt - 1,
		.iteration_ms = scale_of(c),
	};
	return draw(c, &own, &peers, nodes);
}

int sampledpictures_fill(struct sampledcase *c)
{
	int error = fill_workers(c);

	if (error == 0)
		error = fill_waits(c);
	if (error == 0)
		error = fill_functions(c);
	return error == 0 ? fill_flame(c) : error;
}
