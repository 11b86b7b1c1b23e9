/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/host.h"

#include "simulate/identity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define THIEF_PID 4711
#define THIEF_COMMAND "load-test --all-cpus"

void host_look(const struct simulation *sim, const struct record *record, struct host_view *ret)
{
	int64_t start_ns = record->starts.data[0];
	int64_t end_ns = record->starts.data[record->starts.cnt - 1];
	double cpu_ns = 0, delay_ns = 0;

	*ret = (struct host_view){ 0 };
	vec_foreach(l, &record->leaves) {
		double ns = (double)(MIN(l->end_ns, end_ns) - MAX(l->start_ns, start_ns));

		/* While autograd's thread works, the training thread waits. */
		if (ns <= 0 || sim->places.data[record->frames.data[l->frame].place].autograd)
			continue;
		cpu_ns += ns * (double)l->cpu_frac;
		delay_ns += ns * (double)l->delay_frac;
	}
	ret->cpu_frac = cpu_ns / (double)(end_ns - start_ns);
	ret->delay_frac = delay_ns / (double)(end_ns - start_ns);
	if (delay_ns <= 0)
		return;
	ret->thief = (struct sidecar_thief){ .pid = THIEF_PID,
					     .cpu_frac = sim->layout.host_gpus,
					     .overlap_frac = ret->delay_frac,
					     .process_cnt = 1,
					     .command = THIEF_COMMAND };
}

static void name_thread(struct sidecar_thread *thread, uint32_t tid, const char *name)
{
	*thread = (struct sidecar_thread){ .tid = tid };
	(void)snprintf(thread->name, sizeof(thread->name), "%s", name);
}

/* The window on the host's clock, the clock of the trace's times. */
static void fill_header(const struct simulation *sim, int rank, const struct record *record,
			struct sidecar_header *header)
{
	int64_t start_ns = record->starts.data[0];
	int64_t end_ns = record->starts.data[record->starts.cnt - 1];
	char host[16];

	identity_host(sim, rank, host);
	*header = (struct sidecar_header){
		.pid = (uint32_t)identity_pid(rank),
		.tid = (uint32_t)identity_pid(rank),
		.rank = rank,
		.mono_ns = start_ns,
		.wall_ns = identity_wall_ns(sim, rank, start_ns),
		.start_ns = start_ns,
		.end_ns = end_ns,
	};
	(void)snprintf(header->host, sizeof(header->host), "%s", host);
}

static int fill(const struct simulation *sim, int rank, const struct record *record,
		struct sidecar *s)
{
	struct sidecar_thread training, autograd;
	struct sidecar_pressure first, last;
	struct host_view view;

	fill_header(sim, rank, record, &s->header);
	host_look(sim, record, &view);
	name_thread(&training, s->header.tid, "python");
	name_thread(&autograd, s->header.tid + 1, "pt_autograd_0");
	first = (struct sidecar_pressure){
		s->header.start_ns, { 0, SIDECAR_PRESSURE_UNKNOWN, SIDECAR_PRESSURE_UNKNOWN }
	};
	last = first;
	last.time_ns = s->header.end_ns;
	last.some_us[0] =
		(uint64_t)(view.delay_frac * (double)(s->header.end_ns - s->header.start_ns) / 1e3);
	if (vec_push(&s->threads, training) < 0 || vec_push(&s->threads, autograd) < 0 ||
	    vec_push(&s->pressures, first) < 0 || vec_push(&s->pressures, last) < 0 ||
	    (view.delay_frac > 0 && vec_push(&s->thieves, view.thief) < 0))
		return -ENOMEM;
	return 0;
}

int simulate_sidecar(const struct simulation *sim, int rank, const char *path, struct err *err)
{
	struct record record = { 0 };
	struct sidecar sidecar = { 0 };
	int error = player_record(sim, rank, &record);

	if (error == 0)
		error = fill(sim, rank, &record, &sidecar);
	record_done(&record);
	if (error == 0)
		error = sidecar_write(&sidecar, path, err);
	else
		(void)err_set(err, -error, "%s: out of memory", path);
	sidecar_done(&sidecar);
	return error;
}
