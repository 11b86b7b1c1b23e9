/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/witness/fabric.h"

#include "base/stats.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Two states, sending and silent: E(x^2) / E(x) is the rate of the first. */
static double rate_of(const struct fp_function *f)
{
	double sigma = isnan(f->sigma_frac) ? 0 : f->sigma_frac;

	return f->mu_frac > 0 ? f->mu_frac + sigma * sigma / f->mu_frac : 0;
}

/* Whether a worker runs more communication than collectives: messages between two. */
bool fabric_sends_messages(const struct fingerprint *fp)
{
	uint64_t executions = 0;

	for (size_t i = 0; i < fp->function_cnt; i++)
		executions +=
			fp->functions[i].class == CLASS_COMM ? fp->functions[i].executions : 0;
	return (double)executions >
	       FABRIC_MESSAGES * (double)(fp->collective_cnt + fp->collective_dropped);
}

bool fabric_may_send(const struct job *job, const struct job_function *f)
{
	static const char *const words[] = { "SendRecv", ":send", ":recv" };

	for (size_t i = 0; i < ARRAY_SIZE(words) && f->frame != FRAME_NONE; i++) {
		if (f->class == CLASS_COMM &&
		    strstr(job->frames.data[f->frame].name, words[i]) != NULL)
			return true;
	}
	return false;
}

/* Messages form no ring: the receiver sends nothing. */
static bool may_be_message(const struct fabric *b, const struct job_function *f, size_t w)
{
	return b->messages[w] && fabric_may_send(b->job, f);
}

/* Time of worker w in collectives over the window, without messages, of which no waits are known. */
static double collectives_ns(const struct fabric *b, size_t w)
{
	double sum = 0;

	vec_foreach(f, &b->job->functions) {
		if (f->class == CLASS_COMM && f->of[w] != NULL && !may_be_message(b, f, w))
			sum += (double)f->of[w]->total_ns;
	}
	return sum;
}

/*
 * A link is idle until the last rank of a group has arrived. Samples that are further apart than a
 * transfer lasts include that time, so the rate of a worker that waits long is not known.
 */
static int find_waits(struct fabric *b)
{
	_cleanup_free_ double *waited = calloc(b->job->worker_cnt + 1, sizeof(*waited));
	_cleanup_free_ double *all = calloc(b->job->worker_cnt + 1, sizeof(*all));

	if (waited == NULL || all == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < b->job->worker_cnt; w++)
		all[w] = 1;
	blame_sum_waits(b->blame, all, waited);
	for (size_t w = 0; w < b->job->worker_cnt; w++)
		b->waits[w] = waited[w] > FABRIC_WAITED * collectives_ns(b, w);
	return 0;
}

static const struct fp_function *measured(const struct fabric *b, const struct job_function *f,
					  size_t w)
{
	const struct fp_function *own = f->of[w];

	return own != NULL && own->mu_frac > 0 && own->resource < RESOURCE_CNT &&
			       !may_be_message(b, f, w) && !b->waits[w]
		       ? own
		       : NULL;
}

const struct fp_function *fabric_measured(const struct fabric *b, const struct job_function *f,
					  size_t w, uint32_t group)
{
	return b->job->workers[w].group == group ? measured(b, f, w) : NULL;
}

/* Time in a function on a worker, waiting included, ns an iteration. */
static double whole_ns(const struct job *job, const struct fp_function *f, size_t w)
{
	return (double)(f->total_ns > 0 ? f->total_ns : f->critical_ns) /
	       job->workers[w].iterations;
}

/* --- what is usual --- */

struct pace *fabric_pace(const struct fabric *b, size_t function, uint32_t group)
{
	return &b->paces[function * b->job->group_cnt + group];
}

static void find_pace(struct fabric *b, size_t function, uint32_t group)
{
	const struct job_function *f = &b->job->functions.data[function];
	struct pace *pace = fabric_pace(b, function, group);
	size_t all = 0, cnt = 0;

	for (size_t w = 0; w < b->job->worker_cnt; w++) {
		const struct fp_function *own = fabric_measured(b, f, w, group);

		all += own != NULL;
		if (own != NULL && own->resource == b->resource)
			b->scratch[cnt++] = rate_of(own);
	}
	if (all < FABRIC_MIN_PEERS || 2 * cnt <= all ||
	    stats_quantile(b->scratch, cnt, FABRIC_FREE) < FABRIC_IN_USE)
		return;
	pace->usual = stats_median(b->scratch, cnt);
	pace->free = stats_quantile(b->scratch, cnt, FABRIC_FREE);
}

/* --- links --- */

/* The time of the member that waited least is the time of the transfers. */
static double transfer_ns(const struct fabric *b, const struct job_function *f, uint32_t group)
{
	double least = (double)INFINITY;

	for (size_t w = 0; w < b->job->worker_cnt; w++) {
		const struct fp_function *own = fabric_measured(b, f, w, group);

		if (own != NULL)
			least = fmin(least, whole_ns(b->job, own, w));
	}
	return least;
}

static void add_function(struct fabric *b, size_t function, uint32_t group)
{
	const struct job_function *f = &b->job->functions.data[function];
	const struct pace *pace = fabric_pace(b, function, group);
	double weight;

	if (pace->usual <= 0)
		return;
	weight = transfer_ns(b, f, group);
	for (size_t w = 0; w < b->job->worker_cnt; w++) {
		const struct fp_function *own = fabric_measured(b, f, w, group);
		struct link *link = &b->links[w];

		if (own == NULL)
			continue;
		if (own->resource == b->resource) {
			link->weight += weight;
			link->rate += weight * rate_of(own) / pace->usual;
			link->reach += weight * rate_of(own) / pace->free;
			link->level += weight * own->mu_frac / pace->free;
			link->busy += weight * own->mu_frac / rate_of(own);
		} else if (b->resource == RESOURCE_NVLINK_TX && own->resource == RESOURCE_PCIE_TX) {
			link->detour += weight;
		}
	}
}

/*
 * Whether a link sends all the time. Of a transfer that lasts a few samples the first and the last
 * are partly silent, on each link: a far slower one is steadier than the typical one all the same.
 */
static bool is_steady(const struct link *link, double usual_silence)
{
	return link->busy >= FABRIC_STEADY ||
	       (link->busy >= FABRIC_STEADY_COARSE && link->rate <= FABRIC_FAR_SLOWER &&
		1 - link->busy <= FABRIC_STEADIER * usual_silence);
}

/* Share of the time that the typical link is silent. */
static double find_usual_silence(struct fabric *b)
{
	size_t cnt = 0;

	for (size_t w = 0; w < b->job->worker_cnt; w++) {
		if (b->links[w].weight > 0)
			b->scratch[cnt++] = 1 - b->links[w].busy;
	}
	return cnt > 0 ? stats_median(b->scratch, cnt) : 0;
}

static enum link_role role_of(const struct fabric *b, size_t w, double usual_silence)
{
	const struct link *link = &b->links[w];

	if (b->detours[w] || link->detour > link->weight)
		return ROLE_DETOUR;
	if (link->weight <= 0)
		return ROLE_NONE;
	/* A socket's rate is a share of its own best: it cannot be compared with another's. */
	if (b->resource != RESOURCE_SOCKET_TX && is_steady(link, usual_silence) &&
	    link->rate <= FABRIC_SLOWER)
		return ROLE_SLOW;
	return link->level < FABRIC_WAITS ? ROLE_WAITING : ROLE_NONE;
}

static void settle_links(struct fabric *b)
{
	double usual_silence;

	for (size_t w = 0; w < b->job->worker_cnt; w++) {
		struct link *link = &b->links[w];

		if (link->weight > 0) {
			link->rate /= link->weight;
			link->reach /= link->weight;
			link->level /= link->weight;
			link->busy /= link->weight;
		}
	}
	usual_silence = find_usual_silence(b);
	for (size_t w = 0; w < b->job->worker_cnt; w++)
		b->links[w].role = role_of(b, w, usual_silence);
}

/*
 * A slow link stands apart from the others, which are alike. Where flows meet now here, now there, rates
 * differ by chance, and the least of them is none.
 */
static void settle_apart(struct fabric *b)
{
	double slow = 0, others = (double)INFINITY, reach = (double)INFINITY;

	for (size_t w = 0; w < b->job->worker_cnt; w++) {
		const struct link *link = &b->links[w];

		if (link->role == ROLE_SLOW) {
			slow = fmax(slow, link->rate);
		} else if (link->weight > 0) {
			others = fmin(others, link->rate);
			reach = fmin(reach, link->reach);
		}
	}
	if (slow <= FABRIC_APART * others && reach >= FABRIC_ALIKE)
		return;
	for (size_t w = 0; w < b->job->worker_cnt; w++) {
		if (b->links[w].role == ROLE_SLOW)
			b->links[w].role =
				b->links[w].level < FABRIC_WAITS ? ROLE_WAITING : ROLE_NONE;
	}
}

/* --- a ring as one of its links --- */

/* The members of one group of workers that use the resource. */
struct ring {
	uint32_t last; /* the worker that was counted last, plus one */
	size_t member_cnt, waiting_cnt;
	double level, reach; /* of those that wait: sums */
};

typedef VEC(struct ring) ring_vec;

/* NULL: none of its workers was added. */
static struct ring *ring_find(const struct idmap *ring_of, const ring_vec *rings, uint64_t group)
{
	uint32_t idx = idmap_get(ring_of, group);

	return idx == IDMAP_NONE ? NULL : &rings->data[idx];
}

static int ring_add(const struct fabric *b, uint32_t w, uint64_t group, struct idmap *ring_of,
		    ring_vec *rings)
{
	struct ring *ring = ring_find(ring_of, rings, group);

	if (ring == NULL) {
		if (vec_push(rings, (struct ring){ 0 }) < 0 ||
		    idmap_set(ring_of, group, (uint32_t)rings->cnt - 1) < 0)
			return -ENOMEM;
		ring = &rings->data[rings->cnt - 1];
	}
	if (ring->last == w + 1)
		return 0;
	ring->last = w + 1;
	ring->member_cnt++;
	if (b->links[w].role == ROLE_WAITING) {
		ring->waiting_cnt++;
		ring->level += b->links[w].level;
		ring->reach += b->links[w].reach;
	}
	return 0;
}

static int find_rings(const struct fabric *b, struct idmap *ring_of, ring_vec *rings)
{
	int error = 0;

	for (uint32_t w = 0; w < b->job->worker_cnt && error == 0; w++) {
		const struct fingerprint *fp = b->job->workers[w].fp;

		for (size_t i = 0; i < fp->collective_cnt && error == 0; i++) {
			if (link_is_used(&b->links[w]))
				error = ring_add(b, w, fp->collectives[i].group, ring_of, rings);
		}
	}
	return error;
}

/*
 * All members of a ring send as much. A member that sends more over PCIe while nearly all
 * others wait, though they could send at full rate, sends NVLink's traffic over PCIe.
 */
static bool sends_more(const struct ring *ring, const struct link *link)
{
	bool waits = link->role == ROLE_WAITING;
	double others = (double)(ring->waiting_cnt - waits);

	return ring->member_cnt >= FABRIC_MIN_PEERS && link->weight > 0 && others > 0 &&
	       others >= FABRIC_ALL_OTHERS * (double)(ring->member_cnt - 1) &&
	       ring->reach - waits * link->reach >= FABRIC_AT_FULL * others &&
	       link->level * others >= FABRIC_MORE * (ring->level - waits * link->level);
}

static int find_detours(struct fabric *b)
{
	struct idmap ring_of = { 0 };
	ring_vec rings = { 0 };
	int error = find_rings(b, &ring_of, &rings);

	for (size_t w = 0; w < b->job->worker_cnt && error == 0; w++) {
		const struct fingerprint *fp = b->job->workers[w].fp;

		for (size_t i = 0; i < fp->collective_cnt; i++) {
			const struct ring *ring =
				ring_find(&ring_of, &rings, fp->collectives[i].group);

			b->detours[w] |= ring != NULL && sends_more(ring, &b->links[w]);
		}
	}
	idmap_done(&ring_of);
	vec_done(&rings);
	return error;
}

/* Figure 13: where no ring shows it, there is far more on PCIe than the others send. */
static void find_far_more(struct fabric *b)
{
	for (size_t w = 0; w < b->job->worker_cnt; w++) {
		const struct link *link = &b->links[w];

		b->detours[w] |= link->weight > 0 && link->busy >= FABRIC_STEADY &&
				 link->rate >= FABRIC_FAR_MORE;
	}
}

static int settle_detours(struct fabric *b)
{
	if (b->resource == RESOURCE_PCIE_TX) {
		if (find_detours(b) < 0)
			return -ENOMEM;
		find_far_more(b);
	}
	for (size_t w = 0; w < b->job->worker_cnt; w++) {
		b->detours[w] |= b->links[w].role == ROLE_DETOUR;
		if (b->detours[w])
			b->links[w].role = ROLE_DETOUR;
	}
	return 0;
}

static int fabric_alloc(struct fabric *b)
{
	size_t cnt = b->job->worker_cnt + 1;
	size_t pace_cnt = (b->job->functions.cnt + 1) * (b->job->group_cnt + 1);

	b->messages = arena_calloc(&b->own, cnt, sizeof(*b->messages));
	b->waits = arena_calloc(&b->own, cnt, sizeof(*b->waits));
	b->links = arena_calloc(&b->own, cnt, sizeof(*b->links));
	b->paces = arena_calloc(&b->own, pace_cnt, sizeof(*b->paces));
	b->mate = arena_calloc(&b->own, cnt, sizeof(*b->mate));
	b->seen_host = arena_calloc(&b->own, cnt, sizeof(*b->seen_host));
	b->scratch = arena_calloc(&b->own, 2 * cnt, sizeof(*b->scratch));
	return b->messages == NULL || b->waits == NULL || b->links == NULL || b->paces == NULL ||
			       b->mate == NULL || b->seen_host == NULL || b->scratch == NULL
		       ? -ENOMEM
		       : 0;
}

int fabric_init(struct fabric *b)
{
	if (fabric_alloc(b) < 0)
		return -ENOMEM;
	for (size_t w = 0; w < b->job->worker_cnt; w++)
		b->messages[w] = fabric_sends_messages(b->job->workers[w].fp);
	if (find_waits(b) < 0)
		return -ENOMEM;
	for (size_t f = 0; f < b->job->functions.cnt; f++) {
		const struct job_function *fn = &b->job->functions.data[f];

		for (uint32_t g = 0; g < b->job->group_cnt; g++) {
			if (fn->class != CLASS_COMM || fn->frame == FRAME_NONE)
				continue;
			find_pace(b, f, g);
			add_function(b, f, g);
		}
	}
	settle_links(b);
	settle_apart(b);
	return settle_detours(b);
}
