/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a simulated worker's trace in torch.profiler's format (Kineto, output_json.cpp). */
#include "simulate/counters.h"
#include "simulate/identity.h"
#include "simulate/network.h"
#include "simulate/player.h"
#include "simulate/random.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define THREAD_PERIOD_NS (10 * NSEC_PER_MSEC)
#define SAMPLE_NOISE 0.01
#define BLOCK_THREADS 128
#define ELEMENT_BYTES 2 /* bfloat16 */
#define FLUSH_BYTES (1u << 20)

enum counter_id {
	COUNTER_SM,
	COUNTER_DRAM,
	COUNTER_NVLINK,
	COUNTER_PCIE,
	COUNTER_PCIE_RX,
	COUNTER_CPU,
	COUNTER_DELAY,
	COUNTER_AUTOGRAD_CPU,
	COUNTER_AUTOGRAD_DELAY,
	COUNTER_CNT
};

static const enum resource resources[COUNTER_CNT] = {
	[COUNTER_SM] = RESOURCE_SM_ACTIVE,
	[COUNTER_DRAM] = RESOURCE_DRAM,
	[COUNTER_NVLINK] = RESOURCE_NVLINK_TX,
	[COUNTER_PCIE] = RESOURCE_PCIE_TX,
	[COUNTER_PCIE_RX] = RESOURCE_PCIE_RX,
	[COUNTER_CPU] = RESOURCE_CPU_THREAD,
	[COUNTER_DELAY] = RESOURCE_RUN_DELAY,
	[COUNTER_AUTOGRAD_CPU] = RESOURCE_CPU_THREAD,
	[COUNTER_AUTOGRAD_DELAY] = RESOURCE_RUN_DELAY,
};

struct writer {
	const struct simulation *sim;
	const struct record *record;
	int rank;
	int64_t base_ns;
	gzFile file;
	struct str text;
	uint64_t *correlation_of; /* by frame: correlation of its launch; 0: none */
	bool first;
	int error;
};

static void flush(struct writer *w)
{
	if (str_error(&w->text) < 0)
		w->error = str_error(&w->text);
	else if (w->text.len > 0 && gzwrite(w->file, w->text.data, (unsigned int)w->text.len) == 0)
		w->error = -EIO;
	w->text.len = 0;
}

static void begin_event(struct writer *w)
{
	if (w->text.len > FLUSH_BYTES)
		flush(w);
	str_append(&w->text, w->first ? "\n  {" : ",\n  {");
	w->first = false;
}

/* Microseconds with three digits, computed in integers. */
static void put_us(struct writer *w, const char *key, int64_t ns)
{
	str_printf(&w->text, ", \"%s\": %lld.%03d", key, (long long)(ns / 1000), (int)(ns % 1000));
}

static void put_interval(struct writer *w, int64_t start_ns, int64_t end_ns)
{
	int64_t start = identity_wall_ns(w->sim, w->rank, start_ns);
	int64_t end = identity_wall_ns(w->sim, w->rank, end_ns);

	put_us(w, "ts", start - w->base_ns);
	put_us(w, "dur", end - start);
}

/* --- the thread --- */

static const char *category_of(uint8_t kind)
{
	if (kind == KIND_PYTHON)
		return "python_function";
	if (kind == KIND_ANNOTATION)
		return "user_annotation";
	return kind == KIND_RUNTIME ? "cuda_runtime" : "cpu_op";
}

static uint8_t kind_of(const struct writer *w, uint32_t frame)
{
	return w->sim->places.data[w->record->frames.data[frame].place].kind;
}

static uint32_t python_parent(const struct writer *w, uint32_t frame)
{
	do
		frame = w->record->frames.data[frame].parent;
	while (frame != FRAME_NONE && kind_of(w, frame) != KIND_PYTHON);
	return frame;
}

static void put_frame_args(struct writer *w, uint32_t frame)
{
	uint8_t kind = kind_of(w, frame);
	uint32_t parent;

	if (kind == KIND_RUNTIME)
		str_printf(&w->text, ", \"args\": {\"correlation\": %llu}",
			   (unsigned long long)w->correlation_of[frame]);
	if (kind != KIND_PYTHON)
		return;
	parent = python_parent(w, frame);
	str_printf(&w->text, ", \"args\": {\"Python id\": %u, \"Python parent id\": ", frame + 1);
	if (parent == FRAME_NONE)
		str_append(&w->text, "null}");
	else
		str_printf(&w->text, "%u}", parent + 1);
}

static void put_frames(struct writer *w)
{
	int pid = identity_pid(w->rank);

	for (uint32_t i = 0; i < w->record->frames.cnt; i++) {
		const struct frame *f = &w->record->frames.data[i];
		const struct place *place = &w->sim->places.data[f->place];
		int tid = place->autograd ? pid + 1 : pid;

		begin_event(w);
		str_printf(&w->text,
			   "\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, "
			   "\"tid\": %d",
			   category_of(place->kind), place->name, pid, tid);
		put_interval(w, f->start_ns, f->end_ns);
		put_frame_args(w, i);
		str_append(&w->text, "}");
	}
}

static void put_steps(struct writer *w)
{
	int pid = identity_pid(w->rank);

	for (size_t i = 0; i + 1 < w->record->starts.cnt; i++) {
		begin_event(w);
		str_printf(&w->text,
			   "\"ph\": \"X\", \"cat\": \"user_annotation\", "
			   "\"name\": \"ProfilerStep#%u\", \"pid\": %d, \"tid\": %d",
			   FIRST_STEP + w->record->first_iteration + (uint32_t)i, pid, pid);
		put_interval(w, w->record->starts.data[i], w->record->starts.data[i + 1]);
		str_append(&w->text, "}");
	}
}

/* --- the device --- */

static void put_ranks(struct writer *w, int first, int stride, int size)
{
	str_append(&w->text, "\"Process Group Ranks\": \"[");
	for (int i = 0; i < size; i++)
		str_printf(&w->text, "%s%d", i > 0 ? ", " : "", first + i * stride);
	str_append(&w->text, "]\"");
}

static void put_collective_args(struct writer *w, const struct span *span)
{
	struct meeting_id id = player_meeting(w->sim, w->rank, span);
	double bytes = network_bytes(w->sim, &id.group, span->ms);
	char name[16];

	identity_group(&id, name);
	str_printf(&w->text,
		   ", \"Collective name\": \"%s\", \"In msg nelems\": %lld, "
		   "\"Out msg nelems\": %lld, \"Group size\": %d, \"dtype\": \"BFloat16\", "
		   "\"Process Group Name\": \"%s\", ",
		   kernel_collective((enum kernel)span->kernel), (long long)bytes / ELEMENT_BYTES,
		   (long long)bytes / ELEMENT_BYTES, id.group.size, name);
	put_ranks(w, id.group.first, id.group.stride, id.group.size);
}

static void put_peer_args(struct writer *w, const struct span *span)
{
	int stage = layout_stage(&w->sim->layout, w->rank) + span->to_stage;
	int other = layout_at_stage(&w->sim->layout, w->rank, stage);
	int first = MIN(other, w->rank), last = MAX(other, w->rank);
	double bytes = span->ms / 1e3 * NIC_BYTES_PER_SEC;

	str_printf(&w->text,
		   ", \"Collective name\": \"%s\", \"In msg nelems\": %lld, \"Group size\": 2, "
		   "\"dtype\": \"BFloat16\", \"Process Group Name\": \"peers%d\", ",
		   span->receives ? "recv" : "send", (long long)bytes / ELEMENT_BYTES, first);
	put_ranks(w, first, last - first, 2);
}

static void put_span(struct writer *w, size_t idx)
{
	const struct span *s = &w->record->spans.data[idx];
	const struct kernel_text *text = kernel_text((enum kernel)s->kernel);
	int device = w->rank % w->sim->layout.host_gpus;
	bool copy = text->class == CLASS_MEMORY;

	begin_event(w);
	str_printf(&w->text,
		   "\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d",
		   copy ? "gpu_memcpy" : "kernel", text->name, device, s->stream);
	put_interval(w, s->start_ns, s->end_ns);
	str_printf(&w->text, ", \"args\": {\"device\": %d, \"stream\": %d, \"correlation\": %zu",
		   device, s->stream, idx + 1);
	if (copy)
		str_printf(&w->text, ", \"bytes\": %lld", (long long)(16e6 * s->size_frac));
	else
		str_printf(&w->text, ", \"grid\": [%d, 1, 1], \"block\": [%d, 1, 1]",
			   (int)(text->threads * s->size_frac / BLOCK_THREADS), BLOCK_THREADS);
	if (s->group != GROUP_KIND_CNT)
		put_collective_args(w, s);
	else if (s->to_stage != 0)
		put_peer_args(w, s);
	str_append(&w->text, "}}");
}

/* --- counters --- */

static void sample_traffic(struct writer *w, const struct span *s, struct counter *counters)
{
	struct meeting_id id = player_meeting(w->sim, w->rank, s);
	struct traffic t;
	int64_t begin_ns;

	network_traffic(w->sim, &id, s->ms, w->rank, &t);
	for (size_t i = 0; i < t.burst_cnt; i++)
		counter_add(
			&counters[t.resource == RESOURCE_PCIE_TX ? COUNTER_PCIE : COUNTER_NVLINK],
			t.bursts[i].start_ns, t.bursts[i].end_ns, t.util_frac);
	begin_ns = t.burst_cnt > 0 ? t.bursts[0].start_ns : s->start_ns;
	if (t.relay_frac > 0)
		counter_add(&counters[t.relay == RESOURCE_PCIE_TX ? COUNTER_PCIE : COUNTER_NVLINK],
			    begin_ns, s->end_ns, t.relay_frac);
}

static void sample_device(struct writer *w, struct counter *counters)
{
	struct fault_place place = { .layout = &w->sim->layout,
				     .seed = w->sim->options.seed,
				     .rank = w->rank };

	vec_foreach(s, &w->record->spans) {
		const struct kernel_text *text = kernel_text((enum kernel)s->kernel);
		double slow;

		place.iteration = s->iteration;
		slow = 1 + fault_size(w->sim->faults, w->sim->fault_cnt, FAULT_GPU, &place);
		if (text->class == CLASS_COMPUTE)
			counter_add(&counters[COUNTER_SM], s->start_ns, s->end_ns,
				    text->util_frac / slow);
		else if (text->class == CLASS_MEMORY)
			counter_add(&counters[COUNTER_PCIE_RX], s->start_ns, s->end_ns,
				    text->util_frac);
		else if (s->group != GROUP_KIND_CNT)
			sample_traffic(w, s, counters);
		else if (s->to_stage > 0 ? !s->receives : s->to_stage < 0 && !s->receives)
			counter_add(&counters[COUNTER_PCIE], s->end_ns - (int64_t)(s->ms * 1e6),
				    s->end_ns, NIC_BYTES_PER_SEC / PCIE_BYTES_PER_SEC);
	}
}

static void sample_thread(struct writer *w, struct counter *counters)
{
	vec_foreach(l, &w->record->leaves) {
		const struct frame *frame = &w->record->frames.data[l->frame];
		bool autograd = w->sim->places.data[frame->place].autograd;

		counter_add(&counters[autograd ? COUNTER_AUTOGRAD_CPU : COUNTER_CPU], l->start_ns,
			    l->end_ns, (double)l->cpu_frac);
		counter_add(&counters[autograd ? COUNTER_AUTOGRAD_DELAY : COUNTER_DELAY],
			    l->start_ns, l->end_ns, (double)l->delay_frac);
	}
}

/* Nearly all events of a trace are samples: one call of printf each. */
static void put_samples(struct writer *w, enum counter_id id, const struct counter *s)
{
	const char *name = resource_name(resources[id]);
	int pid = identity_pid(w->rank);
	char place[64];

	if (id >= COUNTER_CPU)
		(void)snprintf(place, sizeof(place), "%d, \"tid\": %d", pid,
			       pid + (id >= COUNTER_AUTOGRAD_CPU));
	else
		(void)snprintf(place, sizeof(place), "\"GPU %d Counters\", \"tid\": 0",
			       w->rank % w->sim->layout.host_gpus);
	for (size_t idx = 0; idx < s->cnt; idx++) {
		uint64_t bits = random_at(w->sim->options.seed, RANDOM_SAMPLE, (uint64_t)w->rank,
					  (uint64_t)id, idx);
		double value = counter_at(s, idx) * (1 + SAMPLE_NOISE * random_gauss(bits));
		int64_t end_ns = s->start_ns + (int64_t)(idx + 1) * s->period_ns;
		int64_t ts_ns = identity_wall_ns(w->sim, w->rank, end_ns) - w->base_ns;

		begin_event(w);
		str_printf(&w->text,
			   "\"ph\": \"C\", \"name\": \"%s\", \"pid\": %s, \"ts\": %lld.%03d, "
			   "\"args\": {\"%s\": %.3f}}",
			   name, place, (long long)(ts_ns / 1000), (int)(ts_ns % 1000), name,
			   fmin(value, 1));
	}
}

static int put_counters(struct writer *w)
{
	struct counter counters[COUNTER_CNT] = { 0 };
	int64_t start_ns = w->record->starts.data[0];
	int64_t end_ns = w->record->starts.data[w->record->starts.cnt - 1];
	int error = 0;

	for (int c = 0; c < COUNTER_CNT && error == 0; c++)
		error = counter_init(&counters[c], start_ns, end_ns,
				     c < COUNTER_CPU ? DEVICE_PERIOD_NS : THREAD_PERIOD_NS);
	if (error == 0) {
		sample_device(w, counters);
		sample_thread(w, counters);
	}
	for (int c = 0; c < COUNTER_CNT && error == 0; c++) {
		if (w->sim->options.counters & 1u << resources[c])
			put_samples(w, (enum counter_id)c, &counters[c]);
	}
	for (int c = 0; c < COUNTER_CNT; c++)
		counter_done(&counters[c]);
	return error;
}

/* --- the file --- */

static void put_head(struct writer *w)
{
	char host[16];

	identity_host(w->sim, w->rank, host);
	str_printf(&w->text,
		   "{\n \"schemaVersion\": 1,\n"
		   " \"deviceProperties\": [{\"id\": %d, \"name\": \"%s\"}],\n"
		   " \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %d, "
		   "\"world_size\": %d},\n"
		   " \"host_name\": \"%s\",\n \"displayTimeUnit\": \"ms\",\n"
		   " \"baseTimeNanoseconds\": %lld,\n \"traceEvents\": [",
		   w->rank % w->sim->layout.host_gpus, DEVICE_NAME, w->rank,
		   w->sim->layout.worker_cnt, host, (long long)w->base_ns);
}

static int put_all(struct writer *w)
{
	int error;

	w->correlation_of = calloc(w->record->frames.cnt + 1, sizeof(*w->correlation_of));
	if (w->correlation_of == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < w->record->spans.cnt; i++)
		w->correlation_of[w->record->spans.data[i].frame] = i + 1;
	put_head(w);
	put_frames(w);
	put_steps(w);
	for (size_t i = 0; i < w->record->spans.cnt; i++)
		put_span(w, i);
	error = put_counters(w);
	str_printf(&w->text, "\n ],\n \"traceName\": \"rank%d.json\"\n}\n", w->rank);
	flush(w);
	free(w->correlation_of);
	return error < 0 ? error : w->error;
}

static int write_record(const struct simulation *sim, int rank, const struct record *record,
			const char *path)
{
	struct writer w = { .sim = sim, .record = record, .rank = rank, .first = true };
	int64_t begin_ns = identity_wall_ns(sim, rank, record->starts.data[0]);
	int error;

	/* Kineto's times start at some earlier moment of the host's clock. */
	w.base_ns = begin_ns - begin_ns % NSEC_PER_SEC - NSEC_PER_SEC;
	w.file = gzopen(path, "wb1");
	if (w.file == NULL)
		return errno != 0 ? -errno : -ENOMEM;
	error = put_all(&w);
	if (gzclose(w.file) != Z_OK && error == 0)
		error = -EIO;
	str_done(&w.text);
	return error;
}

int simulate_trace(const struct simulation *sim, int rank, const char *path, struct err *err)
{
	struct record record = { 0 };
	int error;

	if (sim->options.level != SIMULATE_EVENTS)
		return err_set(err, EINVAL, "%s: this job was opened for fingerprints", path);
	error = player_record(sim, rank, &record);
	if (error == 0)
		error = write_record(sim, rank, &record, path);
	record_done(&record);
	return error < 0 ? err_set(err, -error, "%s: cannot write: %s", path, strerror(-error)) : 0;
}
