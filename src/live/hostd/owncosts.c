/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hostd/owncosts.h"

#include "live/hostd/worker.h"

#include <sys/resource.h>
#include <unistd.h>

#define LOOK_NS (1 * NSEC_PER_SEC)

void owncosts_open(struct own_costs *own)
{
	*own = (struct own_costs){ 0 };
	ownthreads_open(&own->daemon, "", (uint32_t)getpid(), OWN_THREAD_DAEMON);
	ownthreads_open(&own->parent, "", (uint32_t)getppid(), OWN_THREAD_RUN);
}

/* Summarizers and samplers of GPU counters: of those that have ended. */
static int64_t children_ns(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_CHILDREN, &usage) != 0)
		return 0;
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NSEC_PER_SEC +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NSEC_PER_USEC;
}

bool owncosts_look(struct own_costs *own, int64_t now_ns)
{
	if (now_ns - own->looked_ns < LOOK_NS)
		return false;
	own->looked_ns = now_ns;
	ownthreads_look(&own->daemon, now_ns);
	ownthreads_look(&own->parent, now_ns);
	own->cpu = own->ended;
	ownthreads_add(&own->daemon, own->cpu.cpu_ns);
	ownthreads_add(&own->parent, own->cpu.cpu_ns);
	own->cpu.cpu_ns[OWN_THREAD_SUMMARIZE] = children_ns();
	return true;
}

static void add(const struct worker *worker, int64_t now_ns, struct own_cpu *ret)
{
	ownthreads_add(&worker->own, ret->cpu_ns);
	ret->rank_ns += now_ns - worker->since_ns;
}

void owncosts_add_worker(struct own_costs *own, struct worker *worker, int64_t now_ns)
{
	ownthreads_look(&worker->own, now_ns);
	add(worker, now_ns, &own->cpu);
}

void owncosts_end_worker(struct own_costs *own, const struct worker *worker, int64_t now_ns)
{
	add(worker, now_ns, &own->ended);
}
