/* SPDX-License-Identifier: Apache-2.0 */
/* Where the training thread of a rank is, as `perftracker stacks` and as py-spy write it. */
#include "simulate/hang/hangjob_parts.h"

#include <string.h>

#define TORCH "/opt/venv/lib/python3.11/site-packages/torch/"
#define JOB "/srv/job/"

enum { FIRST_PID = 4000, PIDS = 16, FRAMES_MAX = 9 };

struct frame {
	const char *function, *file; /* file of a native frame: its library */
	uint32_t line;		     /* 0: native */
};

struct place {
	char state;
	const char *call, *waits; /* NULL: none */
	bool moves;		  /* two samples have only the outermost function in common */
	uint32_t common;	  /* of its Python functions; 0: all */
	struct frame frames[FRAMES_MAX]; /* innermost first, without the last two */
};

static const struct place expert_place = {
	.state = 'S',
	.call = "recvfrom",
	.waits = "descriptor 9: socket",
	.frames = { { "recv", "/usr/lib/x86_64-linux-gnu/libc.so.6", 0 },
		    { "readinto", "/usr/lib/python3.11/socket.py", 706 },
		    { "load_expert", JOB "experts.py", 33 } },
};

static const struct place sync_place = {
	.state = 'R',
	.frames = { { "cuStreamSynchronize", "/usr/lib/x86_64-linux-gnu/libcuda.so.1", 0 },
		    { "cudaStreamSynchronize", TORCH "lib/libcudart.so.12", 0 },
		    { "at::native::_local_scalar_dense_cuda", TORCH "lib/libtorch_cuda.so", 0 },
		    { "log_loss", JOB "train.py", 131 } },
};

static const struct place works_place = {
	.state = 'R',
	.moves = true,
	.common = 1,
	.frames = { { "at::native::addmm", TORCH "lib/libtorch_cpu.so", 0 },
		    { "forward", TORCH "nn/modules/linear.py", 125 },
		    { "forward", JOB "train.py", 70 } },
};

static const struct place fault_places[KIND_CNT] = {
	[KIND_BEHIND] = { .state = 'S',
			  .call = "recvfrom",
			  .waits = "descriptor 5: socket",
			  .frames = { { "recv", "/usr/lib/x86_64-linux-gnu/libc.so.6", 0 },
				      { "readinto", "/usr/lib/python3.11/socket.py", 706 },
				      { "fetch_table", JOB "features.py", 52 } } },
	[KIND_LOADER] = { .state = 'S',
			  .call = "poll",
			  .frames = { { "poll", "/usr/lib/x86_64-linux-gnu/libc.so.6", 0 },
				      { "select", "/usr/lib/python3.11/selectors.py", 415 },
				      { "get", "/usr/lib/python3.11/multiprocessing/queues.py",
					113 },
				      { "_try_get_data", TORCH "utils/data/dataloader.py", 1131 },
				      { "__next__", TORCH "utils/data/dataloader.py", 630 } } },
	[KIND_LOCK] = { .state = 'S',
			.call = "futex",
			.frames = { { "pthread_mutex_lock", "/usr/lib/x86_64-linux-gnu/libc.so.6",
				      0 },
				    { "table_get", JOB "libtable.so", 0 },
				    { "look_up", JOB "cache.py", 30 } } },
	[KIND_LOOP] = { .state = 'R',
			.frames = { { "_PyEval_EvalFrameDefault", "/usr/bin/python3.11", 0 },
				    { "find_boundary", JOB "tokenizer.py", 77 } } },
	[KIND_STOPPED] = { .state = 'T', .frames = { { "encode", JOB "tokenizer.py", 88 } } },
	[KIND_CHECKPOINT] = { .state = 'R',
			      .call = NULL,
			      .moves = true,
			      .common = 3,
			      .frames = { { "write", "/usr/lib/x86_64-linux-gnu/libc.so.6", 0 },
					  { "_save", TORCH "serialization.py", 1010 },
					  { "save", TORCH "serialization.py", 850 },
					  { "keep_weights", JOB "train.py", 160 } } },
	[KIND_COMPILE] = { .state = 'S',
			   .call = "wait4",
			   .moves = true,
			   .common = 2,
			   .frames = { { "wait4", "/usr/lib/x86_64-linux-gnu/libc.so.6", 0 },
				       { "run_command", TORCH "_inductor/cpp_builder.py", 360 },
				       { "load", TORCH "_inductor/codecache.py", 1500 },
				       { "_compile", TORCH "_dynamo/convert_frame.py", 900 },
				       { "train_step", JOB "train.py", 120 } } },
};

/* A lock of Python instead of a mutex. */
static const struct place python_lock = {
	.state = 'S',
	.call = "futex",
	.frames = { { "PyThread_acquire_lock_timed", "/usr/bin/python3.11", 0 },
		    { "look_up", JOB "cache.py", 30 } },
};

static const struct frame holder_frames[] = { { "recv", "/usr/lib/x86_64-linux-gnu/libc.so.6", 0 },
					      { "refresh_table", JOB "cache.py", 61 },
					      { "run", "/usr/lib/python3.11/threading.py", 982 } };
static const struct frame child_frames[] = {
	{ "read", "/usr/lib/x86_64-linux-gnu/libc.so.6", 0 },
	{ "read_shard", JOB "dataset.py", 57 },
	{ "fetch", TORCH "utils/data/_utils/fetch.py", 51 },
	{ "_worker_loop", TORCH "utils/data/_utils/worker.py", 308 },
};

static bool has_mutex(const struct hangjob *job)
{
	return hangplay_random(job, 20, 2) == 0;
}

/* Stopped at work, or while it waited for its device. */
static struct place stopped_place(const struct hangjob *job)
{
	struct place place = job->synchronizes ? sync_place : fault_places[KIND_STOPPED];

	place.state = 'T';
	return place;
}

/* The call of a collective that waits for it; frames is the caller's. */
static struct place collective_place(const struct hangjob *job, int rank)
{
	const struct hang_worker *w = &job->workers[rank];
	const struct hang_op *op = &w->launches.data[w->launches.cnt - 1].op;

	return (struct place){
		.state = 'S',
		.call = "clock_nanosleep",
		.frames = { { "c10d::ProcessGroupNCCL::WorkNCCL::synchronizeInternal",
			      TORCH "lib/libtorch_cuda.so", 0 },
			    { op->name, TORCH "distributed/distributed_c10d.py", 2896 },
			    { "wrapper", TORCH "distributed/c10d_logger.py", 81 },
			    { op->function, JOB "train.py", op->line } },
	};
}

static struct place place_of(const struct hangjob *job, int rank)
{
	switch (job->workers[rank].place) {
	case PLACE_COLLECTIVE:
		return collective_place(job, rank);
	case PLACE_FAULT:
		if (hangjob_has(job, PIPED))
			return expert_place;
		if (job->kind == KIND_STOPPED)
			return stopped_place(job);
		return job->kind == KIND_LOCK && !has_mutex(job) ? python_lock
								 : fault_places[job->kind];
	case PLACE_WORKS:
		return works_place;
	case PLACE_SYNC:
	default:
		return sync_place;
	}
}

/* Adds the functions that call the place. Returns how many frames there are. */
static size_t add_callers(struct place *place)
{
	size_t cnt = 0;

	while (cnt < FRAMES_MAX - 2 && place->frames[cnt].function != NULL)
		cnt++;
	place->frames[cnt++] = (struct frame){ "main", JOB "train.py", 190 };
	place->frames[cnt++] = (struct frame){ "<module>", JOB "train.py", 201 };
	return cnt;
}

static size_t count_python(const struct frame *frames, size_t cnt)
{
	size_t python = 0;

	for (size_t i = 0; i < cnt; i++)
		python += frames[i].line > 0;
	return python;
}

/* --- as `perftracker stacks --twice` writes them --- */

static void put_word(struct str *out, const char *key, const char *value)
{
	if (value == NULL)
		str_printf(out, "\"%s\": null, ", key);
	else
		str_printf(out, "\"%s\": \"%s\", ", key, value);
}

static void put_stack(struct str *out, const struct frame *frames, size_t cnt)
{
	str_append(out, "\"frames\": [");
	for (size_t i = 0; i < cnt; i++) {
		const struct frame *frame = &frames[i];

		str_append(out, i == 0 ? "\n" : ",\n");
		if (frame->line > 0)
			str_printf(out,
				   "{\"kind\": \"python\", \"function\": \"%s\", \"file\": \"%s\", "
				   "\"line\": %u}",
				   frame->function, frame->file, frame->line);
		else
			str_printf(
				out,
				"{\"kind\": \"native\", \"function\": \"%s\", \"library\": \"%s\", "
				"\"symbol\": \"%s\", \"offset\": 4096, \"interpreter\": %s}",
				frame->function, frame->file, frame->function,
				strstr(frame->file, "bin/python") != NULL ? "true" : "false");
	}
	str_append(out, "]}");
}

static void put_thread(struct str *out, int tid, const struct place *place, size_t cnt, int owner)
{
	const size_t python = count_python(place->frames, cnt);
	const size_t common = place->common > 0 ? place->common + 1 : python;

	str_printf(out, "{\"tid\": %d, \"name\": \"python\", \"role\": \"%s\", \"state\": \"%c\", ",
		   tid, owner != tid ? "main" : "", place->state);
	put_word(out, "gil", NULL);
	put_word(out, "call", place->call);
	put_word(out, "waits_for", place->waits);
	if (owner > 0)
		str_printf(out, "\"mutex_owner\": %d, ", owner);
	str_printf(out,
		   "\"stopped\": false, \"moved\": %s, \"state_before\": \"%c\", "
		   "\"common_functions\": %zu, \"switches_between\": %d, \"complete\": true, "
		   "\"why_incomplete\": null, \"mixed\": true, ",
		   place->moves ? "true" : "false", place->state, MIN(common, python),
		   place->moves ? 40 : 1);
	put_stack(out, place->frames, cnt);
}

static void put_process(struct str *out, int pid, int parent, int rank, char state)
{
	str_printf(out, "{\"pid\": %d, \"parent\": %d, \"command\": \"python train.py\", ", pid,
		   parent);
	if (rank >= 0)
		str_printf(out, "\"rank\": %d, ", rank);
	str_printf(out, "\"state\": \"%c\", \"tracer\": null, \"error\": null, \"threads\": [\n",
		   state);
}

static void put_holder(struct str *out, int tid)
{
	struct place place = { .state = 'S', .call = "recvfrom" };

	memcpy(place.frames, holder_frames, sizeof(holder_frames));
	str_append(out, ",\n");
	put_thread(out, tid, &place, ARRAY_SIZE(holder_frames), 0);
}

static void put_child(struct str *out, int pid)
{
	struct place place = { .state = 'S',
			       .call = "read",
			       .waits = "descriptor 7: /mnt/data/shard-17.tar" };

	memcpy(place.frames, child_frames, sizeof(child_frames));
	str_append(out, ",\n");
	put_process(out, pid + 2, pid, -1, 'S');
	put_thread(out, pid + 2, &place, ARRAY_SIZE(child_frames), 0);
	str_append(out, "]}");
}

void hangjob_stacks(const struct hangjob *job, int rank, struct str *out)
{
	const bool faulty = job->workers[rank].place == PLACE_FAULT;
	const int pid = FIRST_PID + rank * PIDS;
	struct place place = place_of(job, rank);
	const size_t cnt = add_callers(&place);
	const bool locks = faulty && job->kind == KIND_LOCK;

	str_append(out, "{\n\"schema\": \"perftracker.stacks.v1\",\n\"processes\": [\n");
	put_process(out, pid, 1, rank, place.state);
	put_thread(out, pid, &place, cnt, locks && has_mutex(job) ? pid + 1 : 0);
	if (locks)
		put_holder(out, pid + 1);
	str_append(out, "]}");
	if (faulty && job->kind == KIND_LOADER)
		put_child(out, pid);
	str_append(out, "]\n}\n");
}

/* --- as `py-spy dump --json` writes them --- */

static void put_pyspy(struct str *out, int pid, int tid, const char *name,
		      const struct place *place, size_t cnt)
{
	bool first = true;

	str_printf(
		out,
		"{\"pid\": %d, \"thread_id\": %d, \"thread_name\": \"%s\", \"os_thread_id\": %d, "
		"\"active\": %s, \"owns_gil\": %s, \"frames\": [",
		pid, 100000 + tid, name, tid, place->state == 'R' ? "true" : "false",
		place->state == 'R' && place->frames[0].line > 0 ? "true" : "false");
	for (size_t i = 0; i < cnt; i++) {
		const struct frame *frame = &place->frames[i];
		const char *slash = strrchr(frame->file, '/');

		if (frame->line == 0)
			continue;
		str_printf(out,
			   "%s\n{\"name\": \"%s\", \"filename\": \"%s\", \"module\": null, "
			   "\"short_filename\": \"%s\", \"line\": %u, \"locals\": null}",
			   first ? "" : ",", frame->function, frame->file,
			   slash != NULL ? slash + 1 : frame->file, frame->line);
		first = false;
	}
	str_append(out, "], \"process_info\": null}");
}

void hangjob_pyspy(const struct hangjob *job, int rank, struct str *out)
{
	const int pid = FIRST_PID + rank * PIDS;
	struct place place = place_of(job, rank), holder = { .state = 'S' };

	str_append(out, "[\n");
	put_pyspy(out, pid, pid, "MainThread", &place, add_callers(&place));
	if (job->workers[rank].place == PLACE_FAULT && job->kind == KIND_LOCK) {
		memcpy(holder.frames, holder_frames, sizeof(holder_frames));
		str_append(out, ",\n");
		put_pyspy(out, pid, pid + 1, "Thread-1", &holder, ARRAY_SIZE(holder_frames));
	}
	str_append(out, "\n]\n");
}
