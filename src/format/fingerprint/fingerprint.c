/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file: "PTFP", version, then the fields in the order of the structs. All integers are
 * little-endian 64 bits, doubles their bits, strings a length and bytes. One function walks the
 * fields in both directions, so that writer and reader cannot disagree.
 */
#include "format/fingerprint/fingerprint.h"

#include "base/file.h"
#include "base/str.h"
#include "format/fingerprint/fpshare.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FP_MAGIC 0x50465450u /* "PTFP" */
/*
 * 1: no pressure of the host; 2: no spread, no launcher; 3: no GPU clocks; 4: no list of GPUs that
 * were not sampled; 5: one counter of full tables; 6: not how iterations are known; 7: nothing of
 * loaders' children; 8: no warm-up; 9: not how GPUs were used, no operations of collectives;
 * 10: no stalls of the host; 11: not to whom it sent how fast
 */
#define FP_VERSION 12u
#define RESOURCE_ABSENT 255 /* in the file: the number of resources may grow */
#define RESOURCE_ABSENT_1 9 /* the value that version 1 wrote */
#define FP_MAX_BYTES (1u << 30)

/* One walk over the fields. Writing: out is set. Reading: data is set and off moves. */
struct codec {
	struct str *out;
	const unsigned char *data;
	size_t len, off;
	size_t field_off; /* where the field being read begins */
	uint64_t version;
	const char *source;
	struct arena *arena;
	struct fpshare *share; /* has texts and frames; NULL: the arena has */
	struct err *err;
	int error; /* the first error sticks; later calls do nothing */
};

void fingerprint_init(struct fingerprint *fp)
{
	*fp = (struct fingerprint){
		.rank = RANK_UNKNOWN,
		.world_size = -1,
		.job_id = "",
		.host = "",
		.source = "",
		.device_name = "",
		.host_stats = { .cpu_frac = -1,
				.run_delay_frac = -1,
				.other_cpu_frac = -1,
				.gc_ns = 0,
				.thief_frac = -1,
				.psi_cpu_frac = -1,
				.psi_io_frac = -1,
				.psi_memory_frac = -1,
				.gpu_throttled_frac = -1,
				.gpu_clock_frac = -1 },
		.usage = { .launch_delay_ns = -1 },
	};
	arena_init(&fp->arena);
}

void fingerprint_done(struct fingerprint *fp)
{
	arena_done(&fp->arena);
	fingerprint_init(fp);
}

static void codec_fail(struct codec *c, const char *expected, uint64_t found)
{
	if (c->error == 0)
		c->error = err_set(c->err, EINVAL,
				   "%s: byte %zu: expected %s, found %llu of %zu bytes", c->source,
				   c->field_off, expected, (unsigned long long)found, c->len);
}

static void code_u64(struct codec *c, uint64_t *value)
{
	uint64_t raw = htole64(*value);

	if (c->error != 0)
		return;
	if (c->out != NULL) {
		str_append_len(c->out, (const char *)&raw, sizeof(raw));
		return;
	}
	c->field_off = c->off;
	if (c->len - c->off < sizeof(raw)) {
		codec_fail(c, "8 more bytes", c->len - c->off);
		return;
	}
	memcpy(&raw, c->data + c->off, sizeof(raw));
	c->off += sizeof(raw);
	*value = le64toh(raw);
}

static void code_i64(struct codec *c, int64_t *value)
{
	uint64_t raw = (uint64_t)*value;

	code_u64(c, &raw);
	*value = (int64_t)raw;
}

#define CODE_INT(c, field, low, high, what)                                 \
	do {                                                                \
		int64_t _value = (int64_t)(field);                          \
		code_i64((c), &_value);                                     \
		if ((c)->error == 0 && (_value < (low) || _value > (high))) \
			codec_fail((c), what, (uint64_t)_value);            \
		if ((c)->error == 0)                                        \
			(field) = (__typeof__(field))_value;                \
	} while (0)

static void code_f64(struct codec *c, double *value)
{
	uint64_t raw;

	memcpy(&raw, value, sizeof(raw));
	code_u64(c, &raw);
	memcpy(value, &raw, sizeof(raw));
}

/* A fraction or NAN. */
static void code_frac(struct codec *c, double *value)
{
	code_f64(c, value);
	if (c->error == 0 && !isnan(*value) && !(*value >= 0 && *value <= 1))
		codec_fail(c, "a fraction in 0..1", 0);
}

static void code_finite(struct codec *c, double *value)
{
	code_f64(c, value);
	if (c->error == 0 && !isfinite(*value))
		codec_fail(c, "a finite number", 0);
}

static void code_text(struct codec *c, const char **text)
{
	uint64_t len = c->out != NULL ? strlen(*text != NULL ? *text : "") : 0;

	code_u64(c, &len);
	if (c->error != 0)
		return;
	if (c->out != NULL) {
		str_append_len(c->out, *text != NULL ? *text : "", len);
		return;
	}
	if (len > c->len - c->off || memchr(c->data + c->off, '\0', len) != NULL) {
		codec_fail(c, "a text that ends in the file", len);
		return;
	}
	*text = c->share != NULL ? fpshare_text(c->share, (const char *)c->data + c->off, len)
				 : arena_strndup(c->arena, (const char *)c->data + c->off, len);
	if (*text == NULL)
		c->error = -ENOMEM;
	c->off += len;
}

/* Codes the length of an array whose elements take at least min_bytes each in the file. */
static void *code_array(struct codec *c, void *array, size_t *cnt, size_t elem_size,
			size_t min_bytes)
{
	uint64_t wide = *cnt;

	code_u64(c, &wide);
	if (c->error != 0 || c->out != NULL)
		return array;
	if (wide > (c->len - c->off) / min_bytes) {
		codec_fail(c, "an array that ends in the file", wide);
		return NULL;
	}
	*cnt = wide;
	array = arena_calloc(c->arena, wide + 1, elem_size);
	if (array == NULL)
		c->error = -ENOMEM;
	return array;
}

static void code_frame(struct codec *c, struct fp_frame *f, size_t idx)
{
	code_u64(c, &f->key.hi);
	code_u64(c, &f->key.lo);
	CODE_INT(c, f->parent, 0, UINT32_MAX, "a frame index");
	if (c->error == 0 && f->parent != FRAME_NONE && f->parent >= idx)
		codec_fail(c, "a caller that comes before the frame", f->parent);
	CODE_INT(c, f->kind, 0, KIND_CNT - 1, "a kind");
	code_text(c, &f->name);
}

static void code_frames(struct codec *c, struct fingerprint *fp)
{
	bool shares = c->share != NULL && c->out == NULL;

	fp->frames =
		code_array(c, fp->frames, &fp->frame_cnt, shares ? 0 : sizeof(*fp->frames), 40);
	if (shares && c->error == 0) {
		fp->frames = fpshare_frames(c->share, fp->frame_cnt);
		c->error = fp->frames != NULL ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < fp->frame_cnt && c->error == 0; i++)
		code_frame(c, &fp->frames[i], i);
	if (shares && c->error == 0) {
		fp->frames = fpshare_tree(c->share, fp->frames, fp->frame_cnt);
		c->error = fp->frames != NULL ? 0 : -ENOMEM;
	}
}

/* RESOURCE_CNT in memory means absent. */
static void code_resource(struct codec *c, uint8_t *resource)
{
	int absent = c->version == 1 ? RESOURCE_ABSENT_1 : RESOURCE_ABSENT;
	int value = *resource < RESOURCE_CNT ? *resource : absent;

	CODE_INT(c, value, 0, absent, "a resource");
	if (c->error == 0 && value != absent && value >= RESOURCE_CNT)
		codec_fail(c, "a resource", (uint64_t)value);
	if (c->error == 0)
		*resource = value == absent ? RESOURCE_CNT : (uint8_t)value;
}

static void code_function(struct codec *c, struct fp_function *f, size_t frame_cnt)
{
	CODE_INT(c, f->frame, 0, UINT32_MAX, "a frame index");
	if (c->error == 0 && f->frame != FRAME_NONE && f->frame >= frame_cnt)
		codec_fail(c, "the index of a frame", f->frame);
	CODE_INT(c, f->class, 0, CLASS_CNT - 1, "a class");
	code_resource(c, &f->resource);
	code_frac(c, &f->beta_frac);
	if (c->error == 0 && isnan(f->beta_frac))
		codec_fail(c, "a fraction in 0..1", 0);
	code_frac(c, &f->mu_frac);
	code_frac(c, &f->sigma_frac);
	code_u64(c, &f->executions);
	CODE_INT(c, f->total_ns, 0, INT64_MAX, "a duration");
	CODE_INT(c, f->critical_ns, 0, INT64_MAX, "a duration");
	CODE_INT(c, f->share_ns, 0, INT64_MAX, "a duration");
	CODE_INT(c, f->thread_ns, 0, INT64_MAX, "a duration");
	code_finite(c, &f->elements);
	code_finite(c, &f->bytes);
	if (c->version < 3)
		return;
	code_finite(c, &f->spread_ns);
	if (c->error == 0 && f->spread_ns < 0)
		codec_fail(c, "a deviation of at least 0", 0);
	code_text(c, &f->launched_by);
}

/* A range shares[first .. + cnt) of the file. */
static void code_range(struct codec *c, uint32_t *first, uint32_t *cnt, size_t share_cnt)
{
	CODE_INT(c, *first, 0, UINT32_MAX, "an index of shares");
	CODE_INT(c, *cnt, 0, UINT32_MAX, "a number of shares");
	if (c->error == 0 && (uint64_t)*first + *cnt > share_cnt)
		codec_fail(c, "shares that are in the file", (uint64_t)*first + *cnt);
}

static void code_collective(struct codec *c, struct fp_collective *k, size_t share_cnt)
{
	code_u64(c, &k->group);
	code_u64(c, &k->name);
	code_i64(c, &k->seq);
	CODE_INT(c, k->start_ns, -(INT64_MAX / 4), INT64_MAX / 4, "a time in the window");
	CODE_INT(c, k->dur_ns, 0, INT64_MAX / 4, "a duration");
	CODE_INT(c, k->critical_ns, 0, INT64_MAX / 4, "a duration");
	code_i64(c, &k->bytes);
	CODE_INT(c, k->group_size, 0, INT32_MAX, "a group size");
	CODE_INT(c, k->group_known, 0, 1, "0 or 1");
	CODE_INT(c, k->lead_ns, 0, INT64_MAX / 4, "a duration");
	code_range(c, &k->lead_first, &k->lead_cnt, share_cnt);
	CODE_INT(c, k->host_ns, 0, INT64_MAX / 4, "a duration");
	code_range(c, &k->host_first, &k->host_cnt, share_cnt);
	CODE_INT(c, k->host_gated, 0, 1, "0 or 1");
}

static void code_share(struct codec *c, struct fp_share *s, size_t function_cnt)
{
	CODE_INT(c, s->function, 0, UINT32_MAX, "a function index");
	if (c->error == 0 && s->function != FRAME_NONE && s->function >= function_cnt)
		codec_fail(c, "the index of a function", s->function);
	CODE_INT(c, s->ns, 0, INT64_MAX / 4, "a duration");
}

static void code_host(struct codec *c, struct fp_host *h)
{
	code_finite(c, &h->cpu_frac);
	code_finite(c, &h->run_delay_frac);
	code_finite(c, &h->other_cpu_frac);
	code_text(c, &h->other_name);
	CODE_INT(c, h->gc_ns, 0, INT64_MAX, "a duration");
	CODE_INT(c, h->gc_cnt, 0, INT64_MAX, "a count");
	code_text(c, &h->thief);
	code_finite(c, &h->thief_frac);
	if (c->version < 2)
		return;
	code_finite(c, &h->psi_cpu_frac);
	code_finite(c, &h->psi_io_frac);
	code_finite(c, &h->psi_memory_frac);
	if (c->version < 4)
		return;
	code_finite(c, &h->gpu_throttled_frac);
	code_finite(c, &h->gpu_clock_frac);
}

static void code_absences(struct codec *c, struct fingerprint *fp)
{
	fp->absences = code_array(c, fp->absences, &fp->absence_cnt, sizeof(*fp->absences), 16);
	for (size_t i = 0; i < fp->absence_cnt && c->error == 0; i++) {
		CODE_INT(c, fp->absences[i].gpu, -1, INT32_MAX, "the number of a GPU");
		code_text(c, &fp->absences[i].why);
	}
}

static void code_limits(struct codec *c, struct trace_drops *drops)
{
#define X(field, one, many) code_u64(c, &drops->field);
	TRACE_DROP_LIMIT_LIST(X)
#undef X
}

static void code_identity(struct codec *c, struct fingerprint *fp)
{
	code_text(c, &fp->job_id);
	code_text(c, &fp->host);
	code_text(c, &fp->source);
	code_text(c, &fp->device_name);
	CODE_INT(c, fp->rank, RANK_UNKNOWN, INT32_MAX, "a rank");
	CODE_INT(c, fp->world_size, -1, INT32_MAX, "a world size");
	code_i64(c, &fp->pid);
	code_i64(c, &fp->window_start_wall_ns);
	CODE_INT(c, fp->window_ns, 1, INT64_MAX / 4, "the length of a window");
	CODE_INT(c, fp->has_device, 0, 1, "0 or 1");
	CODE_INT(c, fp->has_stacks, 0, 1, "0 or 1");
	CODE_INT(c, fp->iterations_known, 0, 1, "0 or 1");
	for (int i = 0; i < CLASS_CNT; i++)
		CODE_INT(c, fp->class_ns[i], 0, INT64_MAX / 4, "a duration");
	CODE_INT(c, fp->rest_ns, 0, INT64_MAX / 4, "a duration");
	code_u64(c, &fp->collective_dropped);
	CODE_INT(c, fp->resources, 0, UINT32_MAX, "a set of resources");
	code_u64(c, &fp->event_cnt);
/* Version 1 had no counters of the flight recorder. */
#define X(field, one, many)                                        \
	if (c->version >= 2 || strncmp(#field, "flight_", 7) != 0) \
		code_u64(c, &fp->drops.field);
	TRACE_DROP_FIRST_LIST(X)
#undef X
	code_host(c, &fp->host_stats);
}

/* Older versions: known iterations are the job's annotations, mostly. */
static void code_iterations_by(struct codec *c, struct fingerprint *fp)
{
	if (c->version >= 7)
		CODE_INT(c, fp->iterations_by, ITERATIONS_UNKNOWN, ITERATIONS_BY_CNT - 1,
			 "how iterations are known");
	else if (fp->iterations_known)
		fp->iterations_by = ITERATIONS_ANNOTATION;
}

static void code_usage(struct codec *c, struct fp_usage *use)
{
	int64_t *const durations[] = {
		&use->busy_ns,	  &use->compute_ns,	 &use->memory_ns,
		&use->comm_ns,	  &use->memory_alone_ns, &use->comm_alone_ns,
		&use->starved_ns, &use->sync_loss_ns,	 &use->launch_loss_ns,
	};

	CODE_INT(c, use->known, 0, 1, "0 or 1");
	for (size_t i = 0; i < ARRAY_SIZE(durations); i++)
		CODE_INT(c, *durations[i], 0, INT64_MAX / 4, "a duration");
	CODE_INT(c, use->launch_delay_ns, -1, INT64_MAX / 4, "a duration");
	code_u64(c, &use->sync_cnt);
	code_u64(c, &use->kernel_cnt);
	code_u64(c, &use->short_cnt);
	code_u64(c, &use->launched_cnt);
	code_u64(c, &use->blocking_cnt);
}

static void code_total(struct codec *c, struct fp_total *total)
{
	code_text(c, &total->name);
	CODE_INT(c, total->kind, 0, KIND_CNT - 1, "a kind");
	CODE_INT(c, total->class, 0, CLASS_CNT - 1, "a class");
	code_u64(c, &total->cnt);
	CODE_INT(c, total->total_ns, 0, INT64_MAX, "a duration");
	CODE_INT(c, total->longest_ns, 0, INT64_MAX, "a duration");
	CODE_INT(c, total->idle_ns, 0, INT64_MAX, "a duration");
	CODE_INT(c, total->bytes, -1, INT64_MAX, "a number of bytes");
}

/* What version 10 added. */
static void code_uses(struct codec *c, struct fingerprint *fp)
{
	code_usage(c, &fp->usage);
	fp->totals = code_array(c, fp->totals, &fp->total_cnt, sizeof(*fp->totals), 64);
	for (size_t i = 0; i < fp->total_cnt && c->error == 0; i++)
		code_total(c, &fp->totals[i]);
	fp->uses = code_array(c, fp->uses, &fp->use_cnt, sizeof(*fp->uses), 48);
	if (c->error == 0 && fp->use_cnt != 0 && fp->use_cnt != fp->iteration_cnt)
		codec_fail(c, "the use of each iteration", fp->use_cnt);
	for (size_t i = 0; i < fp->use_cnt && c->error == 0; i++) {
		struct fp_iteration_use *use = &fp->uses[i];

		CODE_INT(c, use->busy_ns, 0, INT64_MAX / 4, "a duration");
		CODE_INT(c, use->alloc_ns, 0, INT64_MAX / 4, "a duration");
		CODE_INT(c, use->memory_alone_ns, 0, INT64_MAX / 4, "a duration");
		CODE_INT(c, use->starved_ns, 0, INT64_MAX / 4, "a duration");
		CODE_INT(c, use->sync_loss_ns, 0, INT64_MAX / 4, "a duration");
		CODE_INT(c, use->launch_loss_ns, 0, INT64_MAX / 4, "a duration");
	}
	fp->operations =
		code_array(c, fp->operations, &fp->operation_cnt, sizeof(*fp->operations), 8);
	for (size_t i = 0; i < fp->operation_cnt && c->error == 0; i++)
		code_text(c, &fp->operations[i]);
	for (size_t i = 0; i < fp->collective_cnt && c->error == 0; i++)
		CODE_INT(c, fp->collectives[i].operation, 0, (int64_t)fp->operation_cnt,
			 "an operation of the list");
}

/* What version 11 added. */
static void code_stalls(struct codec *c, struct fingerprint *fp)
{
	struct fp_stalls *stalls = &fp->stalls;

	CODE_INT(c, stalls->known, 0, 1, "0 or 1");
	code_u64(c, &stalls->cnt);
	code_u64(c, &stalls->inside_cnt);
	code_u64(c, &stalls->switch_cnt);
	CODE_INT(c, stalls->median_ns, 0, INT64_MAX / 4, "a duration");
	CODE_INT(c, stalls->longest_ns, 0, INT64_MAX / 4, "a duration");
	stalls->iteration_ns = code_array(c, stalls->iteration_ns, &stalls->iteration_cnt,
					  sizeof(*stalls->iteration_ns), 8);
	if (c->error == 0 && stalls->iteration_cnt != 0 &&
	    stalls->iteration_cnt != fp->iteration_cnt)
		codec_fail(c, "the stalls of each iteration", stalls->iteration_cnt);
	for (size_t i = 0; i < stalls->iteration_cnt && c->error == 0; i++)
		CODE_INT(c, stalls->iteration_ns[i], 0, INT64_MAX / 4, "a duration");
	stalls->names = code_array(c, stalls->names, &stalls->name_cnt, sizeof(*stalls->names), 24);
	for (size_t i = 0; i < stalls->name_cnt && c->error == 0; i++) {
		code_text(c, &stalls->names[i].name);
		code_u64(c, &stalls->names[i].cnt);
		CODE_INT(c, stalls->names[i].ns, 0, INT64_MAX / 4, "a duration");
	}
	for (size_t i = 0; i < fp->function_cnt && c->error == 0; i++)
		CODE_INT(c, fp->functions[i].stall_ns, 0, INT64_MAX / 4, "a duration");
}

/* What version 12 added. */
static void code_flows(struct codec *c, struct fp_flows *flows)
{
	flows->list = code_array(c, flows->list, &flows->cnt, sizeof(*flows->list), 72);
	for (size_t i = 0; i < flows->cnt && c->error == 0; i++) {
		struct fp_flow *flow = &flows->list[i];

		code_text(c, &flow->local);
		code_text(c, &flow->remote);
		code_text(c, &flow->card);
		code_u64(c, &flow->tx_bytes);
		code_u64(c, &flow->retransmitted_bytes);
		CODE_INT(c, flow->busy_ns, 0, INT64_MAX / 4, "a duration");
		CODE_INT(c, flow->limited_ns, 0, INT64_MAX / 4, "a duration");
		CODE_INT(c, flow->rtt_ns, 0, INT64_MAX / 4, "a duration");
		CODE_INT(c, flow->socket_cnt, 0, UINT32_MAX, "a number of sockets");
	}
	code_u64(c, &flows->rest_bytes);
}

static void code_fingerprint(struct codec *c, struct fingerprint *fp)
{
	uint64_t magic = FP_MAGIC;

	c->version = FP_VERSION;
	code_u64(c, &magic);
	if (c->error == 0 && magic != FP_MAGIC)
		c->error = err_set(c->err, EINVAL,
				   "%s: expected a fingerprint file, which begins with \"PTFP\"",
				   c->source);
	code_u64(c, &c->version);
	if (c->error == 0 && (c->version < 1 || c->version > FP_VERSION))
		codec_fail(c, "version 1 to 12", c->version);
	code_identity(c, fp);
	code_frames(c, fp);
	fp->functions =
		code_array(c, fp->functions, &fp->function_cnt, sizeof(*fp->functions), 104);
	for (size_t i = 0; i < fp->function_cnt && c->error == 0; i++)
		code_function(c, &fp->functions[i], fp->frame_cnt);
	fp->shares = code_array(c, fp->shares, &fp->share_cnt, sizeof(*fp->shares), 16);
	for (size_t i = 0; i < fp->share_cnt && c->error == 0; i++)
		code_share(c, &fp->shares[i], fp->function_cnt);
	fp->collectives =
		code_array(c, fp->collectives, &fp->collective_cnt, sizeof(*fp->collectives), 128);
	for (size_t i = 0; i < fp->collective_cnt && c->error == 0; i++)
		code_collective(c, &fp->collectives[i], fp->share_cnt);
	fp->iterations =
		code_array(c, fp->iterations, &fp->iteration_cnt, sizeof(*fp->iterations), 24);
	for (size_t i = 0; i < fp->iteration_cnt && c->error == 0; i++) {
		code_i64(c, &fp->iterations[i].number);
		CODE_INT(c, fp->iterations[i].start_ns, -(INT64_MAX / 4), INT64_MAX / 4, "a time");
		CODE_INT(c, fp->iterations[i].dur_ns, 0, INT64_MAX / 4, "a duration");
	}
	if (c->version >= 5)
		code_absences(c, fp);
	if (c->version >= 6)
		code_limits(c, &fp->drops);
	code_iterations_by(c, fp);
	if (c->version >= 8)
		code_text(c, &fp->host_stats.awaited);
	if (c->version >= 9)
		CODE_INT(c, fp->warmup_ns, 0, INT64_MAX / 4, "a duration");
	if (c->version >= 10)
		code_uses(c, fp);
	if (c->version >= 11)
		code_stalls(c, fp);
	if (c->version >= 12)
		code_flows(c, &fp->flows);
	c->field_off = c->off;
	if (c->error == 0 && c->out == NULL && c->off != c->len)
		codec_fail(c, "the end of the file", c->len - c->off);
}

int fingerprint_read_memory(const void *data, size_t len, const char *source,
			    struct fingerprint *ret, struct err *err)
{
	return fingerprint_read_shared(data, len, source, NULL, ret, err);
}

int fingerprint_read_shared(const void *data, size_t len, const char *source, struct fpshare *share,
			    struct fingerprint *ret, struct err *err)
{
	struct fingerprint fp;
	struct codec c = { .data = data, .len = len, .source = source, .share = share, .err = err };

	fingerprint_init(&fp);
	c.arena = &fp.arena;
	code_fingerprint(&c, &fp);
	if (c.error < 0) {
		fingerprint_done(&fp);
		if (c.error == -ENOMEM)
			return err_set(err, ENOMEM, "%s: out of memory", source);
		return c.error;
	}
	*ret = fp;
	return 0;
}

int fingerprint_write(const struct fingerprint *fp, const char *path, struct err *err)
{
	struct fingerprint copy = *fp; /* code_fingerprint() takes no const pointer */
	struct str out = { 0 };
	struct codec c = { .out = &out, .source = path, .err = err };
	struct stat st;
	int error;

	/* A device or a pipe cannot be read again as a fingerprint. */
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "%s: expected a regular file or nothing there", path);
	code_fingerprint(&c, &copy);
	error = c.error != 0 ? c.error : str_error(&out);
	if (error == 0)
		error = file_replace(path, out.data, out.len, 0644);
	if (error < 0 && c.error == 0)
		(void)err_set(err, -error, "%s: cannot write: %s", path, strerror(-error));
	str_done(&out);
	return error;
}

int fingerprint_read(const char *path, struct fingerprint *ret, struct err *err)
{
	return fingerprint_read_sharing(path, NULL, ret, err);
}

int fingerprint_read_sharing(const char *path, struct fpshare *share, struct fingerprint *ret,
			     struct err *err)
{
	_cleanup_free_ char *data = NULL;
	size_t len;
	/* O_NONBLOCK: opening a pipe without a writer must not block. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), error;

	if (fd < 0)
		return err_set(err, errno, "%s: cannot open: %s", path, strerror(errno));
	error = file_read_whole(path, fd, FP_MAX_BYTES, &data, &len, err);
	(void)close(fd);
	return error < 0 ? error : fingerprint_read_shared(data, len, path, share, ret, err);
}
