/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/network.h"

#include "simulate/random.h"

#include <string.h>

#define STEP_MS 0.4 /* of a chunk on a healthy link; short collectives have shorter ones */
#define STEPS_MIN 16
#define LENGTH_JITTER 0.01 /* of a whole collective, by the closed form */
#define BURST_JITTER 0.02  /* deviation of the utilization of a link that sends continuously */
#define COLLIDE 0.3	   /* share of flows that collide with another, without flow scheduling */
#define NODES_MAX SIMULATE_EVENTS_MAX

bool network_crosses(const struct simulation *sim, const struct group *group)
{
	int last = group->first + (group->size - 1) * group->stride;

	return layout_host(&sim->layout, group->first) != layout_host(&sim->layout, last);
}

int network_ring_cnt(const struct simulation *sim, const struct group *group)
{
	int inside = (sim->layout.host_gpus + group->stride - 1) / group->stride;

	return network_crosses(sim, group) ? MIN(inside, group->size) : 1;
}

static int member_rank(const struct group *group, int member)
{
	return group->first + member * group->stride;
}

/* The member's index on its host: the number of the ring that leaves the host through it. */
static int ring_of(const struct simulation *sim, const struct group *group, int member)
{
	int host_first =
		layout_host(&sim->layout, member_rank(group, member)) * sim->layout.host_gpus;
	int before = MAX(host_first - group->first, 0);

	return member - (before + group->stride - 1) / group->stride;
}

static double fault_of(const struct simulation *sim, enum fault_kind kind, int rank,
		       uint32_t iteration)
{
	struct fault_place place = { .layout = &sim->layout,
				     .seed = sim->options.seed,
				     .rank = rank,
				     .iteration = iteration };

	return fault_size(sim->faults, sim->fault_cnt, kind, &place);
}

static double times_of_loss(double loss)
{
	return 1 / (1 - fmin(loss, 0.95));
}

/* Slowness of the link by which a member sends to the next host, or to the next member. */
static double own_slow(const struct simulation *sim, const struct meeting_id *id, int rank,
		       bool crosses)
{
	double affinity, slow;
	uint64_t place = (uint64_t)meeting_index(sim, id) << 4 | (uint64_t)id->kind;

	if (!sim->links_differ)
		return 1;
	if (!crosses)
		return 1 + fault_of(sim, FAULT_NVLINK, rank, id->iteration);
	slow = times_of_loss(fault_of(sim, FAULT_NIC, rank, id->iteration));
	affinity = fault_of(sim, FAULT_AFFINITY, rank, id->iteration);
	if (affinity > 0 && random_uniform(random_at(sim->options.seed, RANDOM_NETWORK, place, 1,
						     (uint64_t)rank)) < COLLIDE)
		slow *= times_of_loss(affinity);
	return slow;
}

/* Slowness of relaying: all rings pass each member, so PCIe is slower than the NICs. */
static double relay_slow(const struct simulation *sim, const struct meeting_id *id, int rank,
			 int ring_cnt)
{
	double extra = sim->links_differ && ring_cnt > 1
			       ? fault_of(sim, FAULT_NVLINK, rank, id->iteration)
			       : 0;

	if (extra <= 0)
		return 1;
	return fmax(1, (1 + extra) * ring_cnt * NIC_BYTES_PER_SEC / NVLINK_BYTES_PER_SEC);
}

static unsigned int step_cnt_of(double ms)
{
	return (unsigned int)fmin(fmax(round(ms / STEP_MS), STEPS_MIN), STEPS_MAX);
}

static uint64_t ring_seed(const struct simulation *sim, const struct meeting_id *id, int ring)
{
	return random_at(sim->options.seed, RANDOM_NETWORK, (uint64_t)id->kind,
			 meeting_index(sim, id), (uint64_t)ring);
}

/* The nodes of one ring: hosts if it crosses them, else members. */
struct nodes {
	double slow[NODES_MAX], relay[NODES_MAX];
	int64_t ready_ns[NODES_MAX];
	int rank[NODES_MAX]; /* rank whose link leaves the node */
	size_t cnt;
};

static void add_member(const struct simulation *sim, const struct meeting_id *id, int ring,
		       int member, int64_t ready_ns, struct nodes *nodes)
{
	bool crosses = network_crosses(sim, &id->group);
	int rank = member_rank(&id->group, member), own = ring_of(sim, &id->group, member);
	size_t at = nodes->cnt - 1;

	if (!crosses || own == 0) {
		at = nodes->cnt++;
		nodes->relay[at] = 1;
		nodes->ready_ns[at] = ready_ns;
	}
	/* A host with fewer members than rings: its last member serves several. */
	if (!crosses || own <= ring) {
		nodes->rank[at] = rank;
		nodes->slow[at] = own_slow(sim, id, rank, crosses);
	}
	if (crosses)
		nodes->relay[at] =
			fmax(nodes->relay[at],
			     relay_slow(sim, id, rank, network_ring_cnt(sim, &id->group)));
	nodes->ready_ns[at] = MAX(nodes->ready_ns[at], ready_ns);
}

/* bursts: room for NODES_MAX * STEPS_MAX. Returns the end of the ring. */
static int64_t play(const struct simulation *sim, const struct meeting_id *id, int ring, double ms,
		    const int64_t *ready_ns, struct nodes *nodes, struct ring_burst *bursts)
{
	struct ring r = { .step_cnt = step_cnt_of(ms), .seed = ring_seed(sim, id, ring) };

	nodes->cnt = 0;
	for (int m = 0; m < id->group.size; m++)
		add_member(sim, id, ring, m, ready_ns[m], nodes);
	for (size_t n = 0; n < nodes->cnt; n++)
		nodes->slow[n] = fmax(nodes->slow[n], nodes->relay[n]);
	r.node_cnt = nodes->cnt;
	r.step_ns = ms * 1e6 / r.step_cnt;
	r.slow = nodes->slow;
	r.ready_ns = nodes->ready_ns;
	return ring_play(&r, bursts);
}

/* By ring, the slowest link. */
static void find_slow(const struct simulation *sim, const struct meeting_id *id, float *ret_slow)
{
	int ring_cnt = network_ring_cnt(sim, &id->group);
	bool crosses = network_crosses(sim, &id->group);
	double relay = 1;

	for (int j = 0; j < ring_cnt; j++)
		ret_slow[j] = 1;
	for (int m = 0; m < id->group.size && sim->links_differ; m++) {
		int rank = member_rank(&id->group, m);
		int j = crosses ? MIN(ring_of(sim, &id->group, m), ring_cnt - 1) : 0;

		ret_slow[j] = fmaxf(ret_slow[j], (float)own_slow(sim, id, rank, crosses));
		if (crosses)
			relay = fmax(relay, relay_slow(sim, id, rank, ring_cnt));
	}
	for (int j = 0; j < ring_cnt; j++)
		ret_slow[j] = fmaxf(ret_slow[j], (float)relay);
}

int64_t network_end_ns(const struct simulation *sim, const struct meeting_id *id, double ms,
		       int64_t last_ns, const int64_t *ready_ns, float *ret_slow)
{
	int ring_cnt = network_ring_cnt(sim, &id->group);
	double slowest = 1, jitter = random_gauss(ring_seed(sim, id, -1));
	struct ring_burst bursts[NODES_MAX * STEPS_MAX];
	struct nodes nodes;
	int64_t end_ns = last_ns;

	find_slow(sim, id, ret_slow);
	for (int j = 0; j < ring_cnt; j++) {
		slowest = fmax(slowest, (double)ret_slow[j]);
		if (ready_ns != NULL)
			end_ns = MAX(end_ns, play(sim, id, j, ms, ready_ns, &nodes, bursts));
	}
	if (ready_ns != NULL)
		return end_ns;
	return last_ns + (int64_t)(ms * 1e6 * slowest * (1 + LENGTH_JITTER * jitter));
}

/* The traffic of the link within the host, while all rings pass the member at their rates. */
static void set_relay(const struct simulation *sim, const struct meeting_id *id, int rank,
		      struct traffic *ret)
{
	int ring_cnt = network_ring_cnt(sim, &id->group);
	const struct meetings *all = &sim->meetings[id->kind];
	const float *slow = &all->slow[meeting_index(sim, id) * (size_t)all->ring_cnt];
	double rate = 0;

	if (!network_crosses(sim, &id->group) || ring_cnt < 2)
		return;
	for (int j = 0; j < ring_cnt; j++)
		rate += NIC_BYTES_PER_SEC / (double)slow[j];
	if (fault_of(sim, FAULT_NVLINK, rank, id->iteration) > 0) {
		ret->relay = RESOURCE_PCIE_TX;
		ret->relay_frac = fmin(rate / PCIE_BYTES_PER_SEC, 0.9);
	} else {
		ret->relay = RESOURCE_NVLINK_TX;
		ret->relay_frac = fmin(rate / NVLINK_BYTES_PER_SEC, 0.9);
	}
}

/* The resource of a rank's own link, and its utilization while it sends at full rate. */
static double own_link(const struct simulation *sim, const struct meeting_id *id, int rank,
		       enum resource *ret)
{
	*ret = RESOURCE_PCIE_TX;
	if (network_crosses(sim, &id->group))
		return NIC_BYTES_PER_SEC / PCIE_BYTES_PER_SEC;
	if (fault_of(sim, FAULT_NVLINK, rank, id->iteration) > 0)
		return 0.9;
	*ret = RESOURCE_NVLINK_TX;
	return 0.75;
}

static void shorten(struct traffic *traffic, double busy_frac)
{
	for (size_t i = 0; i < traffic->burst_cnt; i++) {
		struct ring_burst *b = &traffic->bursts[i];

		b->end_ns = b->start_ns + (int64_t)((double)(b->end_ns - b->start_ns) * busy_frac);
	}
}

void network_traffic(const struct simulation *sim, const struct meeting_id *id, double ms, int rank,
		     struct traffic *ret)
{
	const struct meetings *all = &sim->meetings[id->kind];
	int member = (rank - id->group.first) / id->group.stride;
	bool crosses = network_crosses(sim, &id->group);
	struct ring_burst bursts[NODES_MAX * STEPS_MAX];
	struct nodes nodes;
	unsigned int steps = step_cnt_of(ms);
	double own;

	*ret = (struct traffic){ .burst_cnt = 0 };
	ret->util_frac = own_link(sim, id, rank, &ret->resource);
	own = own_slow(sim, id, rank, crosses);
	if (crosses)
		ret->util_frac /= own;
	set_relay(sim, id, rank, ret);
	(void)play(sim, id, crosses ? ring_of(sim, &id->group, member) : 0, ms,
		   &all->ready_ns[meeting_index(sim, id) * (size_t)all->size], &nodes, bursts);
	for (size_t n = 0; n < nodes.cnt; n++) {
		if (nodes.rank[n] != rank)
			continue;
		memcpy(ret->bursts, &bursts[n * steps], steps * sizeof(*bursts));
		ret->burst_cnt = steps;
		/* Where the link within the host is slower, the NIC waits for each chunk. */
		shorten(ret, own / nodes.slow[n]);
	}
}

struct utilization network_utilization(const struct simulation *sim, const struct meeting_id *id,
				       int rank)
{
	const struct meetings *all = &sim->meetings[id->kind];
	int member = (rank - id->group.first) / id->group.stride;
	bool crosses = network_crosses(sim, &id->group);
	int ring = crosses ? MIN(ring_of(sim, &id->group, member), all->ring_cnt - 1) : 0;
	double own = own_slow(sim, id, rank, crosses), util, busy, slow;
	struct utilization ret;
	struct traffic relay = { .relay_frac = 0 };

	slow = (double)all->slow[meeting_index(sim, id) * (size_t)all->ring_cnt + (size_t)ring];
	util = own_link(sim, id, rank, &ret.resource);
	if (crosses)
		util /= own;
	busy = fmin(own / slow, 1);
	set_relay(sim, id, rank, &relay);
	/* Relayed traffic is continuous; the rank's own chunks are added, up to the capacity. */
	if (relay.relay_frac <= 0 || relay.relay != ret.resource)
		relay.relay_frac = 0;
	util = fmin(util, 1 - relay.relay_frac);
	ret.mu_frac = relay.relay_frac + util * busy;
	ret.sigma_frac = fmax(util * sqrt(busy * (1 - busy)), BURST_JITTER * ret.mu_frac);
	return ret;
}

double network_bytes(const struct simulation *sim, const struct group *group, double ms)
{
	double rate = network_crosses(sim, group) ? NIC_BYTES_PER_SEC : NVLINK_BYTES_PER_SEC;

	return ms / 1e3 * rate * network_ring_cnt(sim, group);
}
