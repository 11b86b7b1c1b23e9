/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the worker whose link slows a ring down, from the utilization of the ring's links
 * (fabric.h), and the cost: the critical part of the transfers of all affected workers, less
 * their waiting for late workers, times the unused share of the free rate. Accuses links that are
 * slower than their peers', GPUs whose traffic takes PCIe where that of their peers takes NVLink,
 * and the network as a whole where the links wait by turns and none is the slowest. One accusation
 * for all functions that a link carries. O(functions * workers + collectives).
 * Source: PerfTracker section 3, figures 3-5; section 6.1, figure 13.
 */
#include "base/stats.h"
#include "localize/witness/fabric.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static size_t count_role(const struct fabric *b, enum link_role role)
{
	size_t cnt = 0;

	for (size_t w = 0; w < b->job->worker_cnt; w++)
		cnt += b->links[w].role == role;
	return cnt;
}

static size_t count_used(const struct fabric *b)
{
	size_t cnt = 0;

	for (size_t w = 0; w < b->job->worker_cnt; w++)
		cnt += link_is_used(&b->links[w]);
	return cnt;
}

/* --- which workers wait for which --- */

/* A group of workers: on how many hosts it has members. */
struct reach {
	size_t last; /* the member that was looked at last, plus one */
	size_t host_cnt;
};

typedef VEC(struct reach) reach_vec;

static int reach_add(const struct fabric *b, size_t w, uint64_t group, struct idmap *reach_of,
		     reach_vec *reaches)
{
	uint32_t idx = idmap_get(reach_of, group);
	struct reach *reach;

	if (idx == IDMAP_NONE) {
		idx = (uint32_t)reaches->cnt;
		if (vec_push(reaches, (struct reach){ 0 }) < 0 ||
		    idmap_set(reach_of, group, idx) < 0)
			return -ENOMEM;
	}
	reach = &reaches->data[idx];
	/* Ranks of a host follow each other. */
	reach->host_cnt += reach->last == 0 ||
			   (reach->last != w + 1 &&
			    b->job->workers[w].host != b->job->workers[reach->last - 1].host);
	reach->last = w + 1;
	return 0;
}

/* Groups of all workers, and on how many hosts each has members. */
static int find_reaches(const struct fabric *b, struct idmap *reach_of, reach_vec *reaches)
{
	int error = 0;

	for (size_t w = 0; w < b->job->worker_cnt; w++) {
		const struct fingerprint *fp = b->job->workers[w].fp;

		for (size_t i = 0; i < fp->collective_cnt && error == 0; i++)
			error = reach_add(b, w, fp->collectives[i].group, reach_of, reaches);
	}
	return error;
}

/* Hosts of the largest of a worker's groups; all_hosts if it has none. */
static size_t count_reached(const struct fabric *b, size_t w, const struct idmap *reach_of,
			    const reach_vec *reaches, size_t all_hosts)
{
	const struct fingerprint *fp = b->job->workers[w].fp;
	size_t most = 1;

	for (size_t i = 0; i < fp->collective_cnt; i++) {
		uint32_t idx = idmap_get(reach_of, fp->collectives[i].group);

		most = MAX(most, reaches->data[idx].host_cnt);
	}
	return fp->collective_cnt > 0 ? most : all_hosts;
}

/*
 * Groups of the culprits. Those for a slow link of the network are groups of several hosts, if there
 * are any: those inside of a host do not use it.
 */
static int note_groups(const struct fabric *b, enum link_role culprits, struct idmap *groups)
{
	const bool inside = culprits != ROLE_SLOW || b->resource == RESOURCE_NVLINK_TX;
	struct idmap reach_of = { 0 };
	reach_vec reaches = { 0 };
	int error = find_reaches(b, &reach_of, &reaches);

	for (size_t w = 0; w < b->job->worker_cnt && error == 0; w++) {
		const struct fingerprint *fp = b->job->workers[w].fp;
		const bool leaves = !inside && count_reached(b, w, &reach_of, &reaches, 1) > 1;

		if (b->links[w].role != culprits)
			continue;
		for (size_t i = 0; i < fp->collective_cnt && error == 0; i++) {
			const uint64_t group = fp->collectives[i].group;

			if (!leaves || reaches.data[idmap_get(&reach_of, group)].host_cnt > 1)
				error = idmap_set(groups, group, 1);
		}
	}
	idmap_done(&reach_of);
	vec_done(&reaches);
	return error;
}

/* Marks workers that share a group with a culprit: all where groups are not known. */
static int find_mates(struct fabric *b, enum link_role culprits)
{
	struct idmap groups = { 0 };
	int error = note_groups(b, culprits, &groups);

	for (size_t w = 0; w < b->job->worker_cnt; w++) {
		const struct fingerprint *fp = b->job->workers[w].fp;

		b->mate[w] = fp->collective_cnt == 0;
		for (size_t i = 0; i < fp->collective_cnt && !b->mate[w]; i++)
			b->mate[w] = idmap_get(&groups, fp->collectives[i].group) != IDMAP_NONE;
	}
	idmap_done(&groups);
	return error;
}

static size_t count_waiting_mates(const struct fabric *b)
{
	size_t cnt = 0;

	for (size_t w = 0; w < b->job->worker_cnt; w++)
		cnt += b->mate[w] && b->links[w].role == ROLE_WAITING;
	return cnt;
}

/* Hosts with workers of a role; ROLE_NONE: of any. */
static size_t count_hosts(struct fabric *b, enum link_role role)
{
	size_t cnt = 0;

	memset(b->seen_host, 0, b->job->worker_cnt * sizeof(*b->seen_host));
	for (size_t w = 0; w < b->job->worker_cnt; w++) {
		uint32_t host = b->job->workers[w].host;

		if (role != ROLE_NONE && b->links[w].role != role)
			continue;
		cnt += !b->seen_host[host];
		b->seen_host[host] = true;
	}
	return cnt;
}

/*
 * Links that slow ones may hold up, at most: a ring leaves each host of its group by one link,
 * and goes over NVLink inside.
 */
static int count_held_up(struct fabric *b, size_t *ret)
{
	struct idmap reach_of = { 0 };
	reach_vec reaches = { 0 };
	size_t held_up = 0, all_hosts = count_hosts(b, ROLE_NONE);
	int error = find_reaches(b, &reach_of, &reaches);

	for (size_t w = 0; w < b->job->worker_cnt && error == 0; w++) {
		if (b->links[w].role == ROLE_SLOW)
			held_up += count_reached(b, w, &reach_of, &reaches, all_hosts) - 1;
	}
	idmap_done(&reach_of);
	vec_done(&reaches);
	*ret = b->resource == RESOURCE_NVLINK_TX ? b->job->worker_cnt : held_up;
	return error;
}

/* --- what it costs --- */

/* Median over the workers of a role, in a function and group, of the share of a rate used. */
static double share_used(struct fabric *b, size_t function, uint32_t group, enum link_role role,
			 double rate)
{
	const struct job_function *f = &b->job->functions.data[function];
	size_t cnt = 0;

	for (size_t w = 0; w < b->job->worker_cnt; w++) {
		const struct fp_function *own = fabric_measured(b, f, w, group);

		if (own != NULL && b->links[w].role == role && own->resource == b->resource)
			b->scratch[cnt++] = own->mu_frac / rate;
	}
	return cnt > 0 ? stats_median(b->scratch, cnt) : (double)NAN;
}

/* Share of a function's transfer time that would go away. */
static double saved_frac(struct fabric *b, size_t function, uint32_t group, enum link_role culprits)
{
	double rate = fabric_pace(b, function, group)->free, used;

	if (rate <= 0)
		return 0;
	used = share_used(b, function, group, culprits == ROLE_SLOW ? ROLE_SLOW : ROLE_WAITING,
			  rate);
	return isnan(used) ? 0 : fmax(0, 1 - used);
}

static bool is_affected(const struct fabric *b, size_t w, enum link_role culprits)
{
	return b->links[w].role == culprits || (b->links[w].role == ROLE_WAITING && b->mate[w]);
}

/* Of the affected workers, the least time in an execution: that of its transfer. */
static double least_ns(const struct fabric *b, const struct job_function *f,
		       enum link_role culprits)
{
	double least = (double)INFINITY;

	for (size_t w = 0; w < b->job->worker_cnt; w++) {
		const struct fp_function *own = f->of[w];

		if (own != NULL && own->executions > 0 && is_affected(b, w, culprits))
			least = fmin(least, (double)own->total_ns / (double)own->executions);
	}
	return least;
}

/* The part of a function on a worker's critical path that is no waiting, ns an iteration. */
static double exposed_ns(const struct job *job, const struct fp_function *f, size_t w, double least)
{
	double waited = (double)f->total_ns - least * (double)f->executions;

	return fmax(0, (double)f->critical_ns - fmax(waited, 0)) / job->workers[w].iterations;
}

/* A loss by function and its largest part. */
struct loss {
	double ns, main_ns;
	uint32_t main;
};

/* What the links of a role cost in one function: as long as the typical one affected lost. */
static double function_loss(struct fabric *b, uint32_t function, enum link_role culprits)
{
	const struct job_function *f = &b->job->functions.data[function];
	double least = least_ns(b, f, culprits), *lost = b->scratch + b->job->worker_cnt;
	size_t cnt = 0;

	for (uint32_t g = 0; g < b->job->group_cnt; g++) {
		double saved = saved_frac(b, function, g, culprits);

		for (size_t w = 0; w < b->job->worker_cnt && saved > 0; w++) {
			if (b->job->workers[w].group == g && f->of[w] != NULL &&
			    is_affected(b, w, culprits))
				lost[cnt++] = saved * exposed_ns(b->job, f->of[w], w, least);
		}
	}
	return stats_median(lost, cnt);
}

/* By how much longer the culprits are in a function than the others, by beta. */
static double function_excess(struct fabric *b, uint32_t function, enum link_role culprits)
{
	const struct job_function *f = &b->job->functions.data[function];
	double longest = 0;
	size_t cnt = 0;

	for (size_t w = 0; w < b->job->worker_cnt; w++) {
		double beta = f->of[w] != NULL ? f->of[w]->beta_frac : 0;

		if (b->links[w].role == culprits)
			longest = fmax(longest, beta);
		else
			b->scratch[cnt++] = beta;
	}
	return fmax(0, longest - stats_median(b->scratch, cnt)) * b->job->iteration_ns;
}

static bool carries(const struct fabric *b, uint32_t function)
{
	for (uint32_t g = 0; g < b->job->group_cnt; g++) {
		if (fabric_pace(b, function, g)->usual > 0)
			return true;
	}
	return false;
}

static struct loss find_loss(struct fabric *b, enum link_role culprits,
			     double (*loss_in)(struct fabric *, uint32_t, enum link_role))
{
	struct loss loss = { .main = FRAME_NONE };

	for (uint32_t f = 0; f < b->job->functions.cnt; f++) {
		double ns = carries(b, f) ? loss_in(b, f, culprits) : 0;

		loss.ns += ns;
		if (ns <= loss.main_ns)
			continue;
		loss.main_ns = ns;
		loss.main = f;
	}
	return loss;
}

/* --- accusations --- */

/* How unlike its peers the worst of the accused is in the main function: eq. 9 and 11. */
static int set_distance(const struct fabric *b, struct accusation *a)
{
	const struct job_function *f = &b->job->functions.data[a->function];
	size_t cnt = b->job->worker_cnt;
	_cleanup_free_ struct differ_point *points = calloc(cnt + 1, sizeof(*points));

	if (points == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < cnt; w++) {
		points[w] = (struct differ_point){ 0, (double)NAN, (double)NAN };
		if (f->of[w] != NULL)
			points[w] = (struct differ_point){ f->of[w]->beta_frac, f->of[w]->mu_frac,
							   f->of[w]->sigma_frac };
	}
	if (differ_find(points, cnt, &b->options->differ, b->scratch, &a->threshold) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < a->worker_cnt; i++)
		a->differential_distance =
			fmax(a->differential_distance, b->scratch[a->workers[i]]);
	return 0;
}

/* Mean use of the link in a function by the typical worker of a role, or of none of that role. */
static double typical_use(struct fabric *b, uint32_t function, enum link_role role, bool has_role)
{
	const struct job_function *f = &b->job->functions.data[function];
	size_t cnt = 0;

	for (size_t w = 0; w < b->job->worker_cnt; w++) {
		if (f->of[w] != NULL && !isnan(f->of[w]->mu_frac) &&
		    (b->links[w].role == role) == has_role)
			b->scratch[cnt++] = f->of[w]->mu_frac;
	}
	return cnt > 0 ? stats_median(b->scratch, cnt) : (double)NAN;
}

/* Links that carry more than the others are not slow, however steadily they send. */
static bool carry_more(struct fabric *b, uint32_t function, enum link_role role)
{
	return typical_use(b, function, role, true) > typical_use(b, function, role, false);
}

/* Time in a function, waiting included, of the typical worker of a role, or of none of that role. */
static double typical_time(struct fabric *b, uint32_t function, enum link_role role, bool has_role)
{
	const struct job_function *f = &b->job->functions.data[function];
	size_t cnt = 0;

	for (size_t w = 0; w < b->job->worker_cnt; w++) {
		if (f->of[w] != NULL && (b->links[w].role == role) == has_role)
			b->scratch[cnt++] = job_time_ns(b->job, f, w);
	}
	return stats_median(b->scratch, cnt);
}

/* Late ranks are in collectives for less than those that wait for them; over a slow link for as long. */
static bool spend_less(struct fabric *b, uint32_t function, enum link_role role)
{
	return typical_time(b, function, role, true) <
	       FABRIC_AS_LONG * typical_time(b, function, role, false);
}

/*
 * A collective over a slow link lasts longer than the same of workers in no group with a culprit:
 * whatever few samples say of its rate. Without the groups of the others it is not known.
 */
static bool last_longer(const struct fabric *b, uint32_t function, enum link_role culprits)
{
	const struct job_function *f = &b->job->functions.data[function];
	double affected = least_ns(b, f, culprits), others = (double)INFINITY;

	for (size_t w = 0; w < b->job->worker_cnt; w++) {
		const struct fp_function *own = f->of[w];

		if (own != NULL && own->executions > 0 && b->links[w].role != culprits &&
		    !b->mate[w] && b->job->workers[w].fp->collective_cnt > 0)
			others = fmin(others, (double)own->total_ns / (double)own->executions);
	}
	return isinf(others) || affected >= FABRIC_LONGER * others;
}

static int push_links(struct fabric *b, enum link_role culprits, const struct loss *loss,
		      accusations *out)
{
	uint32_t *workers = arena_calloc(b->arena, b->job->worker_cnt + 1, sizeof(*workers));
	bool all = culprits == ROLE_WAITING;
	struct accusation a = { .witness = all ? WITNESS_EXPECTATION : WITNESS_DIFFERENCE,
				.workers = workers,
				.function = loss->main,
				.class = CLASS_COMM,
				.main_ns = loss->main_ns,
				.own_ns = loss->ns,
				.gain_ns = loss->ns };

	if (workers == NULL)
		return -ENOMEM;
	a.frame = b->job->functions.data[loss->main].frame;
	for (uint32_t w = 0; w < b->job->worker_cnt; w++) {
		if (all ? link_is_used(&b->links[w]) : b->links[w].role == culprits)
			workers[a.worker_cnt++] = w;
	}
	if (!all && set_distance(b, &a) < 0)
		return -ENOMEM;
	return vec_push(out, a);
}

static int accuse_role(struct fabric *b, enum link_role culprits, accusations *out)
{
	struct loss loss = find_loss(b, culprits, function_loss);

	/* Figure 13: only its length shows that a group is held up. */
	if (culprits == ROLE_DETOUR && loss.ns <= 0)
		loss = find_loss(b, culprits, function_excess);
	if (loss.main == FRAME_NONE || loss.ns < b->options->min_gain_frac * b->job->iteration_ns)
		return 0;
	if (culprits != ROLE_WAITING && spend_less(b, loss.main, culprits))
		return 0;
	if (culprits == ROLE_SLOW &&
	    (carry_more(b, loss.main, culprits) || !last_longer(b, loss.main, culprits)))
		return 0;
	return push_links(b, culprits, &loss, out);
}

/*
 * Flows that meet on the same paths slow each other down, now here, now there: nearly all
 * links wait by turns, and no one of them is the slow one. A worker that was not analyzed may be.
 * The links of workers that wait for late ranks are not known: those of most workers must be.
 */
static bool no_link_is_slow(const struct fabric *b, size_t explained)
{
	size_t waiting = count_role(b, ROLE_WAITING);

	return b->options->all_present && 2 * count_used(b) >= b->job->worker_cnt &&
	       (b->resource == RESOURCE_PCIE_TX || b->resource == RESOURCE_NIC_TX) &&
	       waiting > explained &&
	       (double)(waiting - explained) >= FABRIC_MOST * (double)count_used(b);
}

static int accuse_network(struct fabric *b, accusations *out)
{
	for (size_t w = 0; w < b->job->worker_cnt; w++)
		b->mate[w] = true;
	return accuse_role(b, ROLE_WAITING, out);
}

/* Links that are slow on most hosts are held up by what lies between these. */
static void settle_slow(struct fabric *b)
{
	size_t hosts = count_hosts(b, ROLE_NONE);

	if (b->resource == RESOURCE_NVLINK_TX || hosts < FABRIC_MIN_PEERS ||
	    (double)count_hosts(b, ROLE_SLOW) <= FABRIC_MOST * (double)hosts)
		return;
	for (size_t w = 0; w < b->job->worker_cnt; w++) {
		if (b->links[w].role == ROLE_SLOW)
			b->links[w].role = ROLE_WAITING;
	}
}

/* How many of those that wait do so for a link that is known. */
static int count_explained(struct fabric *b, size_t *ret)
{
	size_t slow_cnt = count_role(b, ROLE_SLOW), held_up;

	*ret = 0;
	if (count_role(b, ROLE_DETOUR) > 0) {
		if (find_mates(b, ROLE_DETOUR) < 0)
			return -ENOMEM;
		*ret += count_waiting_mates(b);
	}
	if (slow_cnt > 0) {
		if (find_mates(b, ROLE_SLOW) < 0 || count_held_up(b, &held_up) < 0)
			return -ENOMEM;
		*ret += MIN(count_waiting_mates(b), held_up);
	}
	return 0;
}

static int accuse_culprits(struct fabric *b, enum link_role culprits, accusations *out)
{
	if (count_role(b, culprits) == 0)
		return 0;
	if (find_mates(b, culprits) < 0)
		return -ENOMEM;
	return accuse_role(b, culprits, out);
}

/*
 * The network is accused where most links wait for none that is known, and it costs something: of
 * transfers that last a few samples all links seem to wait. *ret: whether it was.
 */
static int judge_network(struct fabric *b, bool *ret, accusations *out)
{
	size_t explained, before = out->cnt;
	int error = count_explained(b, &explained);

	if (error == 0 && no_link_is_slow(b, explained))
		error = accuse_network(b, out);
	*ret = out->cnt > before;
	return error;
}

/* Flows that meet but seldom: no link waits for long, yet most are held up now and then. */
static void settle_pausing(struct fabric *b)
{
	for (size_t w = 0; w < b->job->worker_cnt; w++) {
		struct link *link = &b->links[w];

		if (link->role == ROLE_NONE && link->weight > 0 && link->level < LINK_PAUSES)
			link->role = ROLE_WAITING;
	}
}

static int accuse_fabric(struct fabric *b, accusations *out)
{
	bool network = false;
	int error = accuse_culprits(b, ROLE_DETOUR, out);

	if (error < 0)
		return error;
	settle_slow(b);
	error = judge_network(b, &network, out);
	if (error < 0 || network)
		return error;
	error = accuse_culprits(b, ROLE_SLOW, out);
	settle_pausing(b);
	return error == 0 ? judge_network(b, &network, out) : error;
}

int accuse_by_link(const struct job *job, const struct blame *blame,
		   const struct accuse_options *options, struct arena *arena, accusations *out)
{
	static const enum resource resources[] = { RESOURCE_NVLINK_TX, RESOURCE_PCIE_TX,
						   RESOURCE_NIC_TX, RESOURCE_SOCKET_TX };
	bool *detours = arena_calloc(arena, job->worker_cnt + 1, sizeof(*detours));
	int error = detours != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; i < ARRAY_SIZE(resources) && error == 0; i++) {
		struct fabric b = { .job = job,
				    .blame = blame,
				    .options = options,
				    .arena = arena,
				    .resource = resources[i],
				    .detours = detours };

		error = fabric_init(&b);
		if (error == 0)
			error = accuse_fabric(&b, out);
		arena_done(&b.own);
	}
	return error;
}
