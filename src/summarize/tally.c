/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/pass.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define KEEP_FRAC 0.001
#define HIDDEN_FRAC 0.01
#define CARRIES 0.02   /* of a link's capacity: less is not the collective's traffic */
#define THROUGHOUT 0.5 /* of the time in which data moves: a message is sent at once */
#define ALWAYS 0.8     /* of the executions: otherwise it is concurrent other traffic */

struct tally *tally_get(struct pass *p, uint32_t node, uint8_t class)
{
	uint32_t idx = nodemap_get(&p->tally_of, node, class);

	if (idx != NODEMAP_NONE)
		return &p->tallies.data[idx];
	idx = (uint32_t)p->tallies.cnt;
	if (vec_push(&p->tallies,
		     (struct tally){ .node = node, .class = class, .resource = RESOURCE_CNT }) <
		    0 ||
	    nodemap_set(&p->tally_of, node, class, idx) < 0)
		return NULL;
	return &p->tallies.data[idx];
}

static int tally_path(struct pass *p)
{
	/* Folding adds some. Unused pages cost nothing, growing would leave holes in the heap. */
	if (vec_reserve(&p->tallies, p->path.times.cnt + p->path.times.cnt / 2) < 0)
		return -ENOMEM;
	vec_foreach(t, &p->path.times) {
		struct tally *tally = tally_get(p, t->node, t->class);

		if (tally == NULL)
			return -ENOMEM;
		tally->critical_ns = t->critical_ns;
		tally->share_ns = t->share_ns;
		tally->thread_ns = t->thread_ns;
	}
	vec_done(&p->path.times); /* not used after this */
	return 0;
}

static void tally_args(struct tally *tally, const struct event_args *args)
{
	if (args == NULL)
		return;
	if (args->elements >= 0) {
		tally->elements += (double)args->elements;
		tally->elements_cnt++;
	}
	if (args->bytes >= 0) {
		tally->bytes += (double)args->bytes;
		tally->bytes_cnt++;
	}
}

/* By node: its tally of the lowest class except idle; NODEMAP_NONE. The caller frees it. */
static uint32_t *first_tallies(const struct pass *p)
{
	uint32_t *first = malloc((p->cct.nodes.cnt + 1) * sizeof(*first));

	if (first == NULL)
		return NULL;
	memset(first, 0xff, (p->cct.nodes.cnt + 1) * sizeof(*first));
	for (uint32_t i = 0; i < p->tallies.cnt; i++) {
		const struct tally *t = &p->tallies.data[i];

		if (t->node != CCT_ROOT && t->class != CLASS_IDLE &&
		    (first[t->node] == NODEMAP_NONE ||
		     t->class < p->tallies.data[first[t->node]].class))
			first[t->node] = i;
	}
	return first;
}

/* Counts executions of the functions that have a tally. */
static int tally_executions(struct pass *p)
{
	_cleanup_free_ uint32_t *first = first_tallies(p);

	if (first == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->trace->event_cnt; i++) {
		const struct event *e = &p->trace->events[i];

		struct tally *tally;

		if (p->node_of[i] == FRAME_NONE || first[p->node_of[i]] == NODEMAP_NONE ||
		    e->start_ns < p->window.start_ns || e->start_ns >= p->window.end_ns)
			continue;
		tally = &p->tallies.data[first[p->node_of[i]]];
		tally->executions++;
		tally->total_ns = add_saturated(tally->total_ns, e->dur_ns);
		tally_args(tally, event_args_borrow(p->trace, e));
	}
	return 0;
}

static const struct {
	uint8_t resource;
	bool of_host;	  /* network counters belong to the host, the others to a device */
	bool leaves;	  /* leads to other hosts, or to the NICs */
	enum reach never; /* the reach that this link never limits */
} links[LINK_CNT] = {
	{ RESOURCE_NIC_TX, true, true, REACH_INSIDE },
	{ RESOURCE_NVLINK_TX, false, false, REACH_ACROSS },
	{ RESOURCE_PCIE_TX, false, true, REACH_CNT },
	{ RESOURCE_SOCKET_TX, true, false, REACH_CNT },
};

static int64_t device_of(const struct pass *p, const struct crit_exec *exec)
{
	const struct event *e = &p->trace->events[exec->event];

	return is_device_exec(e) ? p->trace->lanes[e->lane].pid : -1;
}

static int utilize_tally(struct pass *p, const struct track *track, uint32_t node, uint8_t class,
			 int64_t start_ns, int64_t end_ns)
{
	struct tally *tally;

	if (track == NULL)
		return 0;
	tally = tally_get(p, node, class);
	if (tally == NULL)
		return -ENOMEM;
	tally->resource = track->resource;
	return utilize_add(track, start_ns, end_ns, &p->scratch, &tally->sum);
}

static struct link_sums *links_of(struct pass *p, struct tally *tally, enum reach reach)
{
	if (tally->links == 0) {
		if (vec_push(&p->links, (struct reach_sums){ 0 }) < 0)
			return NULL;
		tally->links = (uint32_t)p->links.cnt;
	}
	return &p->links.data[tally->links - 1].of[reach];
}

/* A message has one peer: the hosts of the group's other members do not matter. */
static enum reach find_reach(const struct pass *p, const struct event_args *args, bool message)
{
	struct rank_hosts hosts = p->options->hosts;
	const struct reach_group group = {
		.ranks = args != NULL ? strtab_text(&p->trace->strings, args->group_ranks) : "",
		.size = args != NULL ? args->group_size : 0,
		.world_size = p->trace->meta.world_size,
	};
	enum reach reach;

	if (hosts.here == NULL)
		hosts.here = p->trace->meta.host;
	reach = reach_of(&hosts, &group);
	return message && group.size != 2 && reach == REACH_ACROSS ? REACH_UNKNOWN : reach;
}

/*
 * Cached: groups are few, their collectives many. Processes without a device communicate over TCP,
 * even within a host. Returns -ENOMEM or an enum reach.
 */
static int reach_of_exec(struct pass *p, const struct crit_exec *exec)
{
	const struct event_args *args = event_args_borrow(p->trace, &p->trace->events[exec->event]);
	bool message = collective_is_message(p->trace, &p->trace->events[exec->event], args);
	uint64_t size = args != NULL && args->group_size > 0 ? (uint64_t)args->group_size : 0;
	uint64_t key = (args != NULL ? (uint64_t)args->group_ranks << 32 : 0) | size << 1 | message;
	uint32_t known = idmap_get(&p->reaches, key);

	if (!is_device_exec(&p->trace->events[exec->event]))
		return REACH_UNKNOWN;
	if (known == IDMAP_NONE) {
		known = find_reach(p, args, message);
		if (idmap_set(&p->reaches, key, known) < 0)
			return -ENOMEM;
	}
	return (int)known;
}

/* Share of the samples added last from the first to the last one with traffic. */
static double carried_frac(const struct pass *p)
{
	size_t cnt = p->scratch.values.cnt, first = 0, end = cnt;

	while (first < cnt && p->scratch.values.data[first] < CARRIES)
		first++;
	while (end > first && p->scratch.values.data[end - 1] < CARRIES)
		end--;
	return cnt > 0 ? (double)(end - first) / (double)cnt : 0;
}

/* Records which links were in use as long as data moved. */
static void record_carriers(struct link_sums *sums, const double fracs[static LINK_CNT], double ns)
{
	double longest = 0;

	for (size_t i = 0; i < LINK_CNT; i++)
		longest = fmax(longest, fracs[i]);
	if (longest <= 0)
		return;
	sums->moving_ns += ns;
	for (size_t i = 0; i < LINK_CNT; i++)
		sums->carried_ns[i] += fracs[i] >= THROUGHOUT * longest ? ns : 0;
}

/* Measures all links that the group's members may use. */
static int utilize_links(struct pass *p, const struct crit_exec *exec)
{
	int reach = reach_of_exec(p, exec);
	struct tally *tally = reach >= 0 ? tally_get(p, exec->node, exec->class) : NULL;
	struct link_sums *sums = tally != NULL ? links_of(p, tally, (enum reach)reach) : NULL;
	double fracs[LINK_CNT] = { 0 };

	if (sums == NULL)
		return -ENOMEM;
	sums->critical_ns += exec->critical_ns;
	for (size_t i = 0; i < LINK_CNT; i++) {
		const struct track *t =
			utilize_find_track(p->trace, links[i].resource,
					   links[i].of_host ? -1 : device_of(p, exec), -1);
		int error;

		if (t == NULL || (int)links[i].never == reach)
			continue;
		error = utilize_add(t, exec->start_ns, exec->end_ns, &p->scratch, &sums->of[i]);
		if (error < 0)
			return error;
		fracs[i] = carried_frac(p);
	}
	record_carriers(sums, fracs, (double)exec->end_ns - (double)exec->start_ns);
	return 0;
}

/*
 * A ring over several hosts also passes all members within a host: its data may be there most of
 * the time, but the link between the hosts limits it.
 */
static bool sets_pace(const struct link_sums *sums, enum reach reach, size_t link)
{
	/* Within a host PCIe serves GPUs without NVLink, else the way to the NICs. */
	bool ahead = reach == REACH_INSIDE ? links[link].never == REACH_ACROSS : links[link].leaves;

	return ahead && sums->moving_ns > 0 && sums->carried_ns[link] >= ALWAYS * sums->moving_ns;
}

/* The reach with most of the time: utilizations of different links have no common mean. */
static enum reach usual_reach(const struct reach_sums *all)
{
	enum reach usual = REACH_UNKNOWN;

	for (enum reach i = REACH_UNKNOWN; i < REACH_CNT; i++) {
		if (all->of[i].critical_ns > all->of[usual].critical_ns)
			usual = i;
	}
	return usual;
}

/*
 * The limiting link of a collective: the link that leaves its host, or NVLink for a group within
 * one host, if it was in use; otherwise the link used most; among idle links the preferred one.
 */
static void choose_link(const struct reach_sums *all, struct tally *tally)
{
	enum reach reach = usual_reach(all);
	const struct link_sums *sums = &all->of[reach];
	bool best_leaves = false;
	double best = -1;

	for (size_t i = 0; i < LINK_CNT; i++) {
		double mu = utilize_mu(&sums->of[i]);
		bool leaves = sets_pace(sums, reach, i);

		if (sums->of[i].weight_ns <= 0 || leaves < best_leaves ||
		    (leaves == best_leaves && mu <= best))
			continue;
		best = mu;
		best_leaves = leaves;
		tally->resource = links[i].resource;
		tally->sum = sums->of[i];
	}
}

static void choose_links(struct pass *p)
{
	vec_foreach(tally, &p->tallies) {
		if (tally->links > 0)
			choose_link(&p->links.data[tally->links - 1], tally);
	}
}

/*
 * The link between the two ends of a copy, which "Memcpy HtoD (...)" names: the host, this device,
 * a peer, arrays in its memory. RESOURCE_CNT: unknown, or within the host.
 */
static enum resource way_of_copy(const char *name)
{
	char from, to;

	if (sscanf(name, "Memcpy %cto%c", &from, &to) != 2 || (from == 'H' && to == 'H'))
		return RESOURCE_CNT;
	if (from == 'H' || to == 'H')
		return from == 'H' ? RESOURCE_PCIE_RX : RESOURCE_PCIE_TX;
	return from == 'P' ? RESOURCE_NVLINK_TX : RESOURCE_DRAM;
}

static enum resource resource_of(const struct pass *p, const struct crit_exec *exec)
{
	const struct event *e = &p->trace->events[exec->event];
	const char *name = strtab_text(&p->trace->strings, e->name);

	if (exec->class == CLASS_COMPUTE)
		return RESOURCE_SM_ACTIVE;
	return e->kind == KIND_GPU_MEMOP && strncmp(name, "Memset", strlen("Memset")) != 0
		       ? way_of_copy(name)
		       : RESOURCE_DRAM;
}

static int utilize_exec(struct pass *p, const struct crit_exec *exec)
{
	if (exec->class != CLASS_COMPUTE && exec->class != CLASS_MEMORY)
		return utilize_links(p, exec);
	return utilize_tally(
		p, utilize_find_track(p->trace, resource_of(p, exec), device_of(p, exec), -1),
		exec->node, exec->class, exec->start_ns, exec->end_ns);
}

static int utilize_execs(struct pass *p)
{
	vec_foreach(exec, &p->execs) {
		int error = exec->critical_ns > 0 ? utilize_exec(p, exec) : 0;

		if (error < 0)
			return error;
	}
	choose_links(p);
	return 0;
}

/* The CPU track of one thread at a time. */
struct thread_track {
	int64_t tid;
	const struct track *track;
};

static int utilize_segment(struct pass *p, const struct host_segment *seg,
			   struct thread_track *thread)
{
	int64_t tid;

	if (seg->class == CLASS_IDLE || seg->event == EVENT_NONE)
		return 0;
	tid = p->trace->lanes[p->trace->events[seg->event].lane].tid;
	if (tid != thread->tid)
		*thread = (struct thread_track){
			tid, utilize_find_track(p->trace, RESOURCE_CPU_THREAD, -1, tid)
		};
	return utilize_tally(p, thread->track, seg->node, seg->class, seg->start_ns, seg->end_ns);
}

/* Host work and, without a device, computing leaves use the CPU of their thread. */
static int utilize_host(struct pass *p)
{
	struct thread_track thread = { .tid = -1 };
	struct host_segment seg;
	struct host_line line;
	int error, found;

	if (utilize_find_track(p->trace, RESOURCE_CPU_THREAD, -1, -1) == NULL)
		return 0;
	error = host_line_init(p, &line);
	while (error == 0 && (found = line.source.next(line.source.from, &seg)) != 0)
		error = found > 0 ? utilize_segment(p, &seg, &thread) : found;
	host_line_done(&line);
	return error;
}

static void tally_merge(struct tally *into, const struct tally *from)
{
	into->critical_ns += from->critical_ns;
	into->share_ns += from->share_ns;
	into->thread_ns += from->thread_ns;
	if (into->resource == RESOURCE_CNT)
		into->resource = from->resource;
	if (into->resource != from->resource)
		return; /* shares of different resources have no common mean */
	into->sum.weight_ns += from->sum.weight_ns;
	into->sum.mean_ns += from->sum.mean_ns;
	into->sum.resolved_ns += from->sum.resolved_ns;
	into->sum.std_ns += from->sum.std_ns;
}

/*
 * Folds tallies that are too small to list into their callers, so that subtree times stay correct:
 * callers precede callees in the tree, so one pass from the leaves suffices. Time without a caller
 * goes to the rest.
 */
static int fold_small(struct pass *p)
{
	double keep = p->options->keep_frac > 0 ? p->options->keep_frac : KEEP_FRAC;
	double window_ns = (double)(p->window.end_ns - p->window.start_ns);
	int64_t limit = (int64_t)(keep * window_ns), hidden = (int64_t)(HIDDEN_FRAC * window_ns);

	for (size_t node = p->cct.nodes.cnt; node > 0; node--) {
		uint32_t parent = p->cct.nodes.data[node - 1].parent;

		for (int class = CLASS_IDLE; class < CLASS_CNT; class ++) {
			uint32_t idx =
				nodemap_get(&p->tally_of, (uint32_t)(node - 1), (uint8_t) class);
			struct tally small, *up;

			if (idx == NODEMAP_NONE || p->tallies.data[idx].share_ns >= limit ||
			    p->tallies.data[idx].thread_ns >= hidden)
				continue;
			small = p->tallies.data[idx];
			p->tallies.data[idx].share_ns = p->tallies.data[idx].thread_ns = 0;
			if (parent == CCT_ROOT) {
				p->rest_ns += small.share_ns;
				continue;
			}
			up = tally_get(p, parent, (uint8_t) class);
			if (up == NULL)
				return -ENOMEM;
			tally_merge(up, &small);
		}
	}
	return 0;
}

int tally_all(struct pass *p)
{
	int error = tally_path(p);

	if (error == 0)
		error = utilize_execs(p);
	if (error == 0)
		error = utilize_host(p);
	if (error == 0)
		error = tally_executions(p);
	return error == 0 ? fold_small(p) : error;
}
