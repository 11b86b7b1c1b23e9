/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/scenario.h"

#include "base/text/nearest.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#define OURS "requirements"
#define PLAIN                    \
	{                        \
		.worker_cnt = 16 \
	}
#define MEGATRON                                   \
	{                                          \
		.worker_cnt = 32, .tp = 4, .pp = 2 \
	}

/* The jobs of the sources: 2,560 and 3,072 GPUs (paper), 3,400 (slides). */
#define CASE1                                   \
	{                                       \
		.worker_cnt = 2560, .shard = 16 \
	}
#define CASE2                               \
	{                                   \
		.worker_cnt = 3072, .tp = 8 \
	}
#define EROICA                               \
	{                                    \
		.worker_cnt = 3400, .ep = 40 \
	}

/* Case 1: both problems prolonged the iteration from 5 s to 9 s. 300 of 2,560 workers are 12 %. */
#define C1P1                                                       \
	{                                                          \
		FAULT_GPU, WHO_RACKS, 0.12, WHEN_BY_HOST, 0.8, 0.5 \
	}
#define C1P2                                                    \
	{                                                       \
		FAULT_NVLINK, WHO_WORKERS, 3, WHEN_ALWAYS, 0, 7 \
	}
/*
 * Case 2: three problems prolonged the iteration from 3.5 s to 5 s; figure 7 has 0.5 s of loading.
 */
#define C2P1                                                        \
	{                                                           \
		FAULT_STORAGE, WHO_SHARE, 0.6, WHEN_ALWAYS, 0, 0.12 \
	}
#define C2P2                                                   \
	{                                                      \
		FAULT_PYTHON, WHO_ALL, 0, WHEN_ALWAYS, 0, 0.15 \
	}
#define C2P3                                                 \
	{                                                    \
		FAULT_GC, WHO_ALL, 0, WHEN_RANDOM, 0.1, 0.15 \
	}
/* Gains of each repair in the slides: 10.3 %, 3.6 % and 20.5 % of throughput. */
#define E_NIC                                               \
	{                                                   \
		FAULT_NIC, WHO_RAIL, 1, WHEN_ALWAYS, 0, 0.5 \
	}
#define E_PINNED                                                  \
	{                                                         \
		FAULT_PINNED, WHO_WORKERS, 3, WHEN_ALWAYS, 0, 0.1 \
	}
#define E_AFFINITY                                              \
	{                                                       \
		FAULT_AFFINITY, WHO_ALL, 0, WHEN_ALWAYS, 0, 0.1 \
	}
#define E_INPUT                                                   \
	{                                                         \
		FAULT_IMBALANCE, WHO_ALL, 0, WHEN_ALWAYS, 0, 0.22 \
	}

static const struct scenario scenarios[] = {
	{ "healthy", "nothing wrong: data parallel", OURS, PLAIN, { { 0 } }, 0, 0, false },
	{ "healthy-megatron", "nothing wrong: tensor, pipeline and data parallel", OURS, MEGATRON,
	  .faults = { { 0 } } },
	{ "healthy-pipeline",
	  "nothing wrong: four stages that differ by design",
	  "paper, appendix A",
	  { .worker_cnt = 16, .pp = 4 },
	  .faults = { { 0 } } },
	{ "healthy-expert",
	  "nothing wrong: expert parallel",
	  OURS,
	  { .worker_cnt = 16, .ep = 8 },
	  .faults = { { 0 } } },
	{ "healthy-checkpoint", "nothing wrong: a checkpoint is written in the window", OURS, PLAIN,
	  .saves = true },
	{ "missing-workers", "nothing wrong, but two workers sent nothing", OURS, PLAIN,
	  .missing_cnt = 2 },
	{ "late-workers", "nothing wrong, but two workers began to record late", OURS, PLAIN,
	  .late_cnt = 2 },
	{ "gpu-throttle",
	  "one GPU is slow all the time",
	  "paper, figure 7",
	  PLAIN,
	  { { FAULT_GPU, WHO_WORKERS, 1, WHEN_ALWAYS, 0, 0.3 } } },
	{ "gpu-throttle-racks",
	  "GPUs of some racks are slow now and then",
	  "paper, 6.1",
	  MEGATRON,
	  { { FAULT_GPU, WHO_RACKS, 0.25, WHEN_BY_HOST, 0.6, 0.5 } } },
	{ "nvlink-fallback",
	  "one GPU talks over PCIe instead of NVLink",
	  "paper, 6.1",
	  { .worker_cnt = 32, .shard = 16, .host_gpus = 8 },
	  { { FAULT_NVLINK, WHO_WORKERS, 1, WHEN_ALWAYS, 0, 7 } } },
	{ "nic-bond",
	  "one of two bonded NICs is down",
	  "paper, section 3",
	  { .worker_cnt = 32, .host_gpus = 8 },
	  { E_NIC } },
	{ "storage-slow",
	  "batches come late on all workers",
	  "paper, 6.2",
	  PLAIN,
	  { { FAULT_STORAGE, WHO_ALL, 0, WHEN_ALWAYS, 0, 0.15 } } },
	{ "storage-slow-some",
	  "batches come late on one host",
	  OURS,
	  PLAIN,
	  { { FAULT_STORAGE, WHO_HOSTS, 1, WHEN_ALWAYS, 0, 0.15 } } },
	{ "python-slow",
	  "a Python function is slow on all workers",
	  "paper, 6.2",
	  PLAIN,
	  { C2P2 } },
	{ "python-slow-one",
	  "a Python function is slow on one worker",
	  OURS,
	  PLAIN,
	  { { FAULT_PYTHON, WHO_WORKERS, 1, WHEN_ALWAYS, 0, 0.15 } } },
	{ "gc-random",
	  "garbage collections at random",
	  "paper, 6.2",
	  PLAIN,
	  { { FAULT_GC, WHO_ALL, 0, WHEN_RANDOM, 0.1, 0.15 } } },
	{ "pinned-stall",
	  "a few workers allocate pinned memory in the step",
	  "EROICA",
	  PLAIN,
	  { { FAULT_PINNED, WHO_WORKERS, 1, WHEN_ALWAYS, 0, 0.1 } } },
	{ "load-imbalance",
	  "one worker gets larger inputs",
	  "EROICA",
	  PLAIN,
	  { { FAULT_IMBALANCE, WHO_WORKERS, 1, WHEN_ALWAYS, 0, 0.4 } } },
	{ "load-imbalance-all", "inputs differ at random", "EROICA", PLAIN, { E_INPUT } },
	{ "cpu-starvation",
	  "the CPUs of one host are taken",
	  OURS,
	  PLAIN,
	  { { FAULT_STARVED, WHO_HOSTS, 1, WHEN_ALWAYS, 0, 12 } } },
	{ "neighbor",
	  "a process takes the CPUs of one host half of the time",
	  OURS,
	  PLAIN,
	  { { FAULT_STARVED, WHO_HOSTS, 1, WHEN_PERIOD, 500, 20 } } },
	{ "straggler-rotating",
	  "each iteration another worker pauses",
	  OURS,
	  PLAIN,
	  { { FAULT_PAUSE, WHO_ALL, 0, WHEN_TURNS, 0, 0.15 } } },
	{ "flow-affinity",
	  "flows collide in the whole network",
	  "EROICA",
	  { .worker_cnt = 32, .host_gpus = 8 },
	  { { FAULT_AFFINITY, WHO_ALL, 0, WHEN_ALWAYS, 0, 0.5 } } },
	{ "mixed",
	  "a slow GPU and slow batches on one host",
	  OURS,
	  PLAIN,
	  { { FAULT_GPU, WHO_WORKERS, 1, WHEN_ALWAYS, 0, 0.3 },
	    { FAULT_STORAGE, WHO_HOSTS, 1, WHEN_ALWAYS, 0, 0.15 } } },
	{ "C1P1", "GPU throttling, intermittent, by rack", "paper, 6.1", CASE1, { C1P1 } },
	{ "C1P2", "NVLink down on three workers", "paper, 6.1", CASE1, { C1P2 } },
	{ "C1", "case 1: both problems", "paper, 6.1", CASE1, { C1P1, C1P2 } },
	{ "C2P1", "low throughput of the data loader", "paper, 6.2", CASE2, { C2P1 } },
	{ "C2P2", "inefficient Python function", "paper, 6.2", CASE2, { C2P2 } },
	{ "C2P3", "asynchronous garbage collection", "paper, 6.2", CASE2, { C2P3 } },
	{ "C2", "case 2: three problems", "paper, 6.2", CASE2, { C2P1, C2P2, C2P3 } },
	{ "EROICA",
	  "3,400 GPUs: network, pinned memory, inputs",
	  "EROICA",
	  EROICA,
	  { E_NIC, E_AFFINITY, E_PINNED, E_INPUT } },
};

const struct scenario *scenario_list(size_t *ret_cnt)
{
	*ret_cnt = ARRAY_SIZE(scenarios);
	return scenarios;
}

size_t scenario_fault_cnt(const struct scenario *scenario)
{
	size_t cnt = 0;

	while (cnt < SCENARIO_FAULTS && scenario->faults[cnt].size > 0)
		cnt++;
	return cnt;
}

static const struct scenario *find(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(scenarios); i++) {
		if (strlen(scenarios[i].name) == len &&
		    strncasecmp(scenarios[i].name, name, len) == 0)
			return &scenarios[i];
	}
	return NULL;
}

static int add(struct scenario *into, const struct scenario *other, struct err *err)
{
	size_t cnt = scenario_fault_cnt(into), more = scenario_fault_cnt(other);

	if (cnt + more > SCENARIO_FAULTS)
		return err_set(err, E2BIG, "more than %d faults at once", SCENARIO_FAULTS);
	for (size_t i = 0; i < more; i++)
		into->faults[cnt + i] = other->faults[i];
	into->missing_cnt = MAX(into->missing_cnt, other->missing_cnt);
	into->late_cnt = MAX(into->late_cnt, other->late_cnt);
	into->saves |= other->saves;
	return 0;
}

static int refuse(const char *name, size_t len, struct err *err)
{
	struct nearest nearest;

	nearest_init(&nearest, name, len);
	for (size_t i = 0; i < ARRAY_SIZE(scenarios); i++)
		nearest_offer(&nearest, scenarios[i].name);
	if (nearest.best == NULL)
		return err_set(err, ENOENT, "no scenario '%.*s'; see --list", (int)len, name);
	return err_set(err, ENOENT, "no scenario '%.*s': did you mean '%s'?", (int)len, name,
		       nearest.best);
}

int scenario_mix(const char *names, struct scenario *ret, struct err *err)
{
	struct scenario mix = { 0 };
	int error = 0;

	for (bool first = true; error == 0 && (first || *names != '\0'); first = false) {
		size_t len = strcspn(names, "+");
		const struct scenario *found = find(names, len);

		if (found == NULL)
			return refuse(names, len, err);
		if (first)
			mix = *found;
		else
			error = add(&mix, found, err);
		names += names[len] == '+' ? len + 1 : len;
	}
	if (error == 0)
		*ret = mix;
	return error;
}
