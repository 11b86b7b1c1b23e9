/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dump of a rank's flight recorder, with the opcodes and in the order in which torch pickles it
 * (protocol 2, texts memorized). Source: torch/csrc/jit/serialization/pickler.cpp, dumps of version 2.9.
 */
#include "base/strtab.h"
#include "simulate/hang/hangjob_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CREATED_NS INT64_C(1758610505000000000)

enum { RING = 48, COLLECTIVE_NS = 900000 };

struct pickle {
	struct str *out;
	struct strtab memo;
};

static void put_le(struct str *out, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++, value >>= 8)
		str_append_char(out, (char)(value & 0xff));
}

static void put_text(struct pickle *pickle, const char *text)
{
	const size_t len = strlen(text), known = pickle->memo.cnt;
	const uint32_t id = strtab_intern(&pickle->memo, text, len);
	const bool is_new = id == known;

	if (id == STRTAB_NONE) {
		pickle->out->error = -ENOMEM;
		return;
	}
	if (is_new) {
		str_append_char(pickle->out, 'X');
		put_le(pickle->out, len, 4);
		str_append_len(pickle->out, text, len);
	}
	str_append_char(pickle->out, id < 256 ? (is_new ? 'q' : 'h') : (is_new ? 'r' : 'j'));
	put_le(pickle->out, id, id < 256 ? 1 : 4);
}

static void put_int(struct pickle *pickle, int64_t value)
{
	if (value >= 0 && value < 256) {
		str_append_char(pickle->out, 'K');
		put_le(pickle->out, (uint64_t)value, 1);
	} else if (value >= 0 && value < 65536) {
		str_append_char(pickle->out, 'M');
		put_le(pickle->out, (uint64_t)value, 2);
	} else if (value >= INT32_MIN && value <= INT32_MAX) {
		str_append_char(pickle->out, 'J');
		put_le(pickle->out, (uint64_t)value, 4);
	} else {
		str_append(pickle->out, "\x8a\x08");
		put_le(pickle->out, (uint64_t)value, 8);
	}
}

static void put_bool(struct pickle *pickle, bool value)
{
	str_append_char(pickle->out, value ? '\x88' : '\x89');
}

static void put_pair(struct pickle *pickle, const char *key, const char *text)
{
	put_text(pickle, key);
	put_text(pickle, text);
}

static void put_number(struct pickle *pickle, const char *key, int64_t value)
{
	put_text(pickle, key);
	put_int(pickle, value);
}

/* --- groups --- */

static const char *const descriptions[GROUP_CNT] = {
	"default_pg",
	"DATA_PARALLEL_GROUP",
	"TENSOR_MODEL_PARALLEL_GROUP",
	"PIPELINE_MODEL_PARALLEL_GROUP",
};

/* As torch numbers them: the default group, those of data parallelism, those of tensors or stages. */
static int name_of(const struct hangjob *job, int rank, enum group_kind group)
{
	const int inner = job->tp * job->pp;

	if (group == GROUP_DEFAULT)
		return 0;
	return group == GROUP_DP ? 1 + rank % inner : 1 + inner + rank / inner;
}

static bool is_used(const struct hangjob *job, enum group_kind group)
{
	for (size_t i = 0; i < job->ops.cnt; i++)
		if (job->ops.data[i].group == group)
			return true;
	return false;
}

static void put_config(struct pickle *pickle, const struct hangjob *job, int rank)
{
	put_text(pickle, "pg_config");
	str_append(pickle->out, "}(");
	for (enum group_kind group = 0; group < GROUP_CNT; group++) {
		struct str name = { 0 }, ranks = { 0 };
		const int size = hangplay_group_size(job, group);

		if (!is_used(job, group))
			continue;
		str_printf(&name, "%d", name_of(job, rank, group));
		for (int i = 0; i < size; i++)
			str_printf(&ranks, "%s%d", i == 0 ? "[" : ", ",
				   hangplay_member(job, group, rank, i));
		str_append(&ranks, "]");
		put_text(pickle, str_borrow(&name));
		str_append(pickle->out, "}(");
		put_pair(pickle, "name", str_borrow(&name));
		put_pair(pickle, "desc", descriptions[group]);
		put_pair(pickle, "ranks", str_borrow(&ranks));
		str_append_char(pickle->out, 'u');
		str_done(&name);
		str_done(&ranks);
	}
	str_append_char(pickle->out, 'u');
}

static int64_t last_done(const struct hangjob *job, int rank, enum group_kind group)
{
	const struct hang_worker *w = &job->workers[rank];

	for (size_t i = w->done; i > 0; i--)
		if (w->launches.data[i - 1].op.group == group)
			return w->launches.data[i - 1].seq;
	for (size_t i = 0; i < w->launches.cnt; i++)
		if (w->launches.data[i].op.group == group)
			return w->launches.data[i].seq - 1;
	return w->seq[group];
}

static void put_status(struct pickle *pickle, const struct hangjob *job, int rank)
{
	put_text(pickle, "pg_status");
	str_append(pickle->out, "}(");
	for (enum group_kind group = 0; group < GROUP_CNT; group++) {
		char name[2] = { (char)('0' + (char)group), '\0' };

		if (!is_used(job, group))
			continue;
		put_text(pickle, name);
		str_append(pickle->out, "}(");
		put_number(pickle, "last_enqueued_collective", job->workers[rank].seq[group]);
		put_number(pickle, "last_started_collective", -1);
		put_number(pickle, "last_completed_collective", last_done(job, rank, group));
		str_append_char(pickle->out, 'u');
	}
	str_append_char(pickle->out, 'u');
}

/* --- entries --- */

static void put_frame(struct pickle *pickle, const char *name, const char *file, uint32_t line)
{
	str_append(pickle->out, "}(");
	put_pair(pickle, "name", name);
	put_pair(pickle, "filename", file);
	put_number(pickle, "line", line);
	str_append_char(pickle->out, 'u');
}

static void put_frames(struct pickle *pickle, const struct hang_op *op)
{
	static const char torchs[] = "/opt/venv/lib/python3.11/site-packages/torch/distributed/";
	char path[128];

	put_text(pickle, "frames");
	str_append(pickle->out, "](");
	(void)snprintf(path, sizeof(path), "%sdistributed_c10d.py", torchs);
	put_frame(pickle, op->name, path, 2896);
	(void)snprintf(path, sizeof(path), "%sc10d_logger.py", torchs);
	put_frame(pickle, "wrapper", path, 81);
	put_frame(pickle, op->function, "/srv/job/train.py", op->line);
	put_frame(pickle, "<module>", "/srv/job/train.py", 201);
	str_append_char(pickle->out, 'e');
}

static void put_sizes(struct pickle *pickle, const char *key, int64_t elements)
{
	put_text(pickle, key);
	str_append(pickle->out, "](](");
	put_int(pickle, elements);
	str_append(pickle->out, "ee");
}

static void put_types(struct pickle *pickle, const char *key)
{
	put_text(pickle, key);
	str_append(pickle->out, "](");
	put_text(pickle, "BFloat16");
	str_append_char(pickle->out, 'e');
}

/* How many elements come out: of a gather more, of a scatter fewer. */
static int64_t output_of(const struct hangjob *job, const struct hang_op *op)
{
	const int size = hangplay_group_size(job, op->group);

	if (strcmp(op->name, "_all_gather_base") == 0)
		return (int64_t)op->elements * size;
	if (strcmp(op->name, "_reduce_scatter_base") == 0)
		return op->elements / size;
	return op->elements;
}

static void put_group_of(struct pickle *pickle, const struct hangjob *job, int rank,
			 enum group_kind group)
{
	char name[16];

	(void)snprintf(name, sizeof(name), "%d", name_of(job, rank, group));
	put_number(pickle, "pg_id", (int64_t)group);
	put_text(pickle, "process_group");
	put_text(pickle, name);
	put_text(pickle, descriptions[group]);
	str_append_char(pickle->out, '\x86');
}

static void put_time(struct pickle *pickle, const char *key, bool known, int64_t time_ns)
{
	put_text(pickle, key);
	if (known)
		put_int(pickle, time_ns);
	else
		str_append_char(pickle->out, 'N');
}

/* batch_isend_irecv: an entry for each transfer, which is never over, and one for the whole. */
enum part { PART_ALONE, PART_MEMBER, PART_WHOLE };

static void put_state(struct pickle *pickle, const struct hangjob *job, int rank, size_t index,
		      enum part part, int64_t time_ns)
{
	const bool done = part != PART_MEMBER && index < job->workers[rank].done;
	const bool started =
		part != PART_MEMBER && job->timed && hangplay_has_started(job, rank, index);

	put_pair(pickle, "state", done ? "completed" : started ? "started" : "scheduled");
	put_time(pickle, "time_discovered_started_ns", started, time_ns + COLLECTIVE_NS / 2);
	put_time(pickle, "time_discovered_completed_ns", done, time_ns + COLLECTIVE_NS);
	put_text(pickle, "retired");
	put_bool(pickle, done);
}

/* As pointToPoint of ProcessGroupNCCL.cpp names the two sides, by their places in the group. */
static void put_name(const struct hang_op *op, enum part part, char *name, size_t size)
{
	if (part == PART_WHOLE)
		(void)snprintf(name, size, "nccl:coalesced");
	else if (op->group != GROUP_PP)
		(void)snprintf(name, size, "nccl:%s", op->name);
	else if (strcmp(op->name, "send") == 0)
		(void)snprintf(name, size, "nccl:send %d->%d", op->from, op->to);
	else
		(void)snprintf(name, size, "nccl:recv %d<-%d", op->to, op->from);
}

static void put_tensors(struct pickle *pickle, const struct hangjob *job, const struct hang_op *op,
			enum part part)
{
	static const char *const keys[] = { "input_sizes", "input_dtypes", "output_sizes",
					    "output_dtypes" };

	for (size_t i = 0; part == PART_WHOLE && i < ARRAY_SIZE(keys); i++) {
		put_text(pickle, keys[i]);
		str_append_char(pickle->out, ']');
	}
	if (part == PART_WHOLE)
		return;
	put_sizes(pickle, "input_sizes", op->elements);
	put_types(pickle, "input_dtypes");
	put_sizes(pickle, "output_sizes", output_of(job, op));
	put_types(pickle, "output_dtypes");
}

static void put_entry(struct pickle *pickle, const struct hangjob *job, int rank, size_t index,
		      enum part part)
{
	const struct hang_launch *launch = &job->workers[rank].launches.data[index];
	const int64_t at = job->steps * (int64_t)job->ops.cnt + (int64_t)launch->index;
	const int64_t record = part == PART_ALONE ? at : 2 * at + (part == PART_WHOLE);
	const bool p2p = launch->op.group == GROUP_PP;
	const int64_t time_ns = CREATED_NS + at * COLLECTIVE_NS + rank * 1000;
	char name[64];

	put_name(&launch->op, part, name, sizeof(name));
	str_append(pickle->out, "}(");
	if (job->framed)
		put_frames(pickle, &launch->op);
	put_number(pickle, "record_id", record);
	put_group_of(pickle, job, rank, launch->op.group);
	put_pair(pickle, "thread_name", "python3");
	put_pair(pickle, "thread_id", "23456244340032");
	put_number(pickle, "collective_seq_id", p2p ? 0 : launch->seq);
	put_number(pickle, "p2p_seq_id", p2p ? launch->seq : 0);
	put_number(pickle, "op_id", launch->seq);
	put_pair(pickle, "profiling_name", name);
	put_number(pickle, "time_created_ns", time_ns);
	put_tensors(pickle, job, &launch->op, part);
	put_state(pickle, job, rank, index, part, time_ns);
	put_number(pickle, "timeout_ms", 600000);
	put_text(pickle, "is_p2p");
	put_bool(pickle, p2p);
	str_append_char(pickle->out, 'u');
}

static void put_launch(struct pickle *pickle, const struct hangjob *job, int rank, size_t index)
{
	const struct hang_worker *w = &job->workers[rank];
	const bool batched =
		hangjob_has(job, BATCHED) && w->launches.data[index].op.group == GROUP_PP;

	if (batched)
		put_entry(pickle, job, rank, index, PART_MEMBER);
	if (!job->only_active || index >= w->done)
		put_entry(pickle, job, rank, index, batched ? PART_WHOLE : PART_ALONE);
}

static void put_entries(struct pickle *pickle, const struct hangjob *job, int rank)
{
	const struct hang_worker *w = &job->workers[rank];
	const size_t first = w->launches.cnt > RING ? w->launches.cnt - RING : 0;

	put_text(pickle, "entries");
	str_append_char(pickle->out, ']');
	str_append_char(pickle->out, '(');
	for (size_t i = first; i < w->launches.cnt; i++)
		put_launch(pickle, job, rank, i);
	str_append_char(pickle->out, 'e');
}

int64_t hangjob_written_ns(const struct hangjob *job)
{
	const int64_t after_s = hangjob_has(job, HANGS) ? 620 : 40;
	const bool goes_on = !hangjob_has(job, HANGS) && !hangjob_has(job, HALTS);
	size_t launched = 0;

	for (int rank = 0; rank < job->worker_cnt; rank++)
		launched = MAX(launched, job->workers[rank].op);
	return CREATED_NS +
	       (job->steps * (int64_t)job->ops.cnt + (int64_t)launched + 1) * COLLECTIVE_NS +
	       (goes_on ? NSEC_PER_SEC / 5 : after_s * NSEC_PER_SEC);
}

void hangjob_recorder(const struct hangjob *job, int rank, struct str *out)
{
	struct pickle pickle = { .out = out };

	if (strtab_init(&pickle.memo) < 0) {
		out->error = -ENOMEM;
		return;
	}
	str_append(out, "\x80\x02}(");
	put_pair(&pickle, "version", job->version);
	put_config(&pickle, job, rank);
	put_pair(&pickle, strcmp(job->version, "2.10") == 0 ? "comm_lib_version" : "nccl_version",
		 "2.27.3");
	put_status(&pickle, job, rank);
	put_entries(&pickle, job, rank);
	str_append_char(out, 'u');
	str_append(out, "q");
	put_le(out, pickle.memo.cnt & 0xff, 1);
	str_append_char(out, '.');
	strtab_done(&pickle.memo);
}
