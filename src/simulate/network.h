/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How collectives use links. Within a host they use NVLink, with one ring through all members.
 * Between hosts there is a ring for each member of a host, which leaves the host through that
 * member's share of a NIC, and all rings pass all members within the host: a slow NIC slows its own
 * ring, a GPU without NVLink slows all rings.
 * Source: PerfTracker section 3 (topology of the example), section 6.1 (problem 2).
 */
#pragma once

#include "simulate/ringpass.h"
#include "simulate/simulation.h"

#define NIC_BYTES_PER_SEC 25e9	   /* a GPU's share of a bonded pair of 200 Gbit/s */
#define NVLINK_BYTES_PER_SEC 200e9 /* one direction */
#define PCIE_BYTES_PER_SEC 32e9	   /* one direction, generation 4, 16 lanes */

/* Whether a group spans hosts, and how many rings it has. */
bool network_crosses(const struct simulation *sim, const struct group *group);
int network_ring_cnt(const struct simulation *sim, const struct group *group);

/*
 * The end of a collective that takes ms on healthy links and whose last member arrived at last_ns.
 * ready_ns (by member): simulates the rings chunk by chunk; NULL: closed form. ret_slow: by ring,
 * the ratio of its slowest link's time to a healthy link's.
 */
int64_t network_end_ns(const struct simulation *sim, const struct meeting_id *id, double ms,
		       int64_t last_ns, const int64_t *ready_ns, float *ret_slow);

#define STEPS_MAX 48

/* Traffic of a member's links during one collective. */
struct traffic {
	struct ring_burst bursts[STEPS_MAX]; /* of its own link */
	size_t burst_cnt;
	double util_frac; /* of that link while it sends */
	enum resource resource;
	double relay_frac;   /* of the link within the host, continuously; 0: none */
	enum resource relay; /* NVLink, or PCIe for a GPU without NVLink */
};

/* Simulates the collective again for the links of a rank. Event level only. */
void network_traffic(const struct simulation *sim, const struct meeting_id *id, double ms, int rank,
		     struct traffic *ret);

/* The closed form of the same: mean and deviation of the utilization while data flows. */
struct utilization {
	double mu_frac, sigma_frac;
	enum resource resource;
};

struct utilization network_utilization(const struct simulation *sim, const struct meeting_id *id,
				       int rank);

/* Payload of a collective that takes ms on healthy links. */
double network_bytes(const struct simulation *sim, const struct group *group, double ms);
