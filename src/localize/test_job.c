/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/test_job.h"

#include "base/str.h"
#include "model/rankset.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MUST(call) assert_int_equal((call), 0)

static int64_t ns_of(double ms)
{
	return llround(ms * 1e6);
}

static void init_worker(struct test_worker *w, int rank, int world_size, int64_t window_ns)
{
	fingerprint_init(&w->fp);
	w->fp.job_id = w->fp.host = w->fp.device_name = "";
	w->fp.source = "made by hand";
	w->fp.rank = rank;
	w->fp.world_size = world_size;
	w->fp.window_ns = window_ns;
	w->fp.has_device = true;
	w->fp.iterations_known = true;
	w->fp.class_ns[CLASS_IDLE] = window_ns;
	w->fp.host_stats = (struct fp_host){
		.cpu_frac = -1,
		.run_delay_frac = -1,
		.other_cpu_frac = -1,
		.thief_frac = -1,
		.psi_cpu_frac = -1,
		.psi_io_frac = -1,
		.psi_memory_frac = -1,
		.gpu_throttled_frac = -1,
		.gpu_clock_frac = -1,
	};
	for (int g = 0; g < TEST_GROUPS; g++)
		w->seq[g] = -1;
}

/* The vectors may have moved. */
static void publish(struct test_worker *w)
{
	w->fp.frames = w->frames.data;
	w->fp.frame_cnt = w->frames.cnt;
	w->fp.functions = w->functions.data;
	w->fp.function_cnt = w->functions.cnt;
	w->fp.collectives = w->collectives.data;
	w->fp.collective_cnt = w->collectives.cnt;
	w->fp.iterations = w->iterations.data;
	w->fp.iteration_cnt = w->iterations.cnt;
	w->fp.shares = w->shares.data;
	w->fp.share_cnt = w->shares.cnt;
}

void test_job_init(struct test_job *job, size_t worker_cnt, double window_ms, size_t iteration_cnt)
{
	int64_t window_ns = ns_of(window_ms);

	*job = (struct test_job){ .cnt = worker_cnt };
	job->workers = calloc(worker_cnt + 1, sizeof(*job->workers));
	job->fps = calloc(worker_cnt + 1, sizeof(*job->fps));
	assert_non_null(job->workers);
	assert_non_null(job->fps);
	for (size_t i = 0; i < worker_cnt; i++) {
		struct test_worker *w = &job->workers[i];

		init_worker(w, (int)i, (int)worker_cnt, window_ns);
		for (size_t k = 0; k < iteration_cnt; k++) {
			int64_t length = window_ns / (int64_t)iteration_cnt;

			MUST(vec_push(
				&w->iterations,
				(struct fp_iteration){ (int64_t)k, (int64_t)k * length, length }));
		}
		publish(w);
		job->fps[i] = &w->fp;
	}
}

void test_job_done(struct test_job *job)
{
	for (size_t i = 0; i < job->cnt; i++) {
		struct test_worker *w = &job->workers[i];

		vec_done(&w->frames);
		vec_done(&w->functions);
		vec_done(&w->collectives);
		vec_done(&w->iterations);
		vec_done(&w->shares);
		for (int g = 0; g < TEST_GROUPS; g++)
			vec_done(&w->leads[g]);
		fingerprint_done(&w->fp);
	}
	free(job->workers);
	free(job->fps);
	*job = (struct test_job){ 0 };
}

/* FNV-1a: any hash does, as long as all workers use the same. */
static struct funckey key_of(struct funckey parent, const char *name)
{
	uint64_t hash = 0xcbf29ce484222325ULL ^ parent.lo;

	for (; *name != '\0'; name++)
		hash = (hash ^ (uint8_t)*name) * 0x100000001b3ULL;
	return (struct funckey){ hash ^ 0x5555, hash };
}

uint32_t test_frame(struct test_job *job, size_t w, uint32_t parent, enum event_kind kind,
		    const char *name)
{
	struct test_worker *tw = &job->workers[w];
	struct funckey none = { 0, 0 };
	struct funckey key =
		key_of(parent == FRAME_NONE ? none : tw->frames.data[parent].key, name);

	for (uint32_t i = 0; i < tw->frames.cnt; i++) {
		if (funckey_equal(tw->frames.data[i].key, key))
			return i;
	}
	MUST(vec_push(&tw->frames, (struct fp_frame){ key, parent, (uint8_t)kind, name }));
	publish(tw);
	return (uint32_t)tw->frames.cnt - 1;
}

static uint32_t function_of(struct test_worker *tw, uint32_t frame, enum event_class class)
{
	for (uint32_t i = 0; i < tw->functions.cnt; i++) {
		if (tw->functions.data[i].frame == frame && tw->functions.data[i].class == class)
			return i;
	}
	MUST(vec_push(&tw->functions, (struct fp_function){
					      .frame = frame,
					      .class = (uint8_t) class,
					      .resource = RESOURCE_CNT,
					      .mu_frac = (double)NAN,
					      .sigma_frac = (double)NAN,
					      .elements = -1,
					      .bytes = -1,
				      }));
	publish(tw);
	return (uint32_t)tw->functions.cnt - 1;
}

static void set_time(struct fp_function *f, const struct fingerprint *fp)
{
	f->beta_frac = fp->window_ns > 0 ? (double)f->share_ns / (double)fp->window_ns : 0;
	f->critical_ns = f->total_ns = f->share_ns;
	if (f->class == CLASS_HOST || f->class == CLASS_IDLE)
		f->thread_ns = f->share_ns;
}

struct fp_function *test_function(struct test_job *job, size_t w, uint32_t frame,
				  enum event_class class, double beta)
{
	struct test_worker *tw = &job->workers[w];
	uint32_t idx = function_of(tw, frame, class); /* may move the array */
	struct fp_function *f = &tw->functions.data[idx];

	f->share_ns = llround(beta * (double)tw->fp.window_ns);
	f->executions = MAX(tw->iterations.cnt, (size_t)1);
	set_time(f, &tw->fp);
	tw->fp.class_ns[class] += f->share_ns;
	tw->fp.class_ns[CLASS_IDLE] -= f->share_ns;
	return f;
}

void test_utilize(struct fp_function *f, enum resource resource, double mu, double sigma)
{
	f->resource = (uint8_t)resource;
	f->mu_frac = mu;
	f->sigma_frac = sigma;
}

/* --- the clockwork --- */

void test_iterate(struct test_job *job)
{
	for (size_t i = 0; i < job->cnt; i++) {
		struct test_worker *w = &job->workers[i];

		if (w->iterations.cnt > 0) {
			struct fp_iteration *last = &w->iterations.data[w->iterations.cnt - 1];

			last->dur_ns = w->now_ns - last->start_ns;
		}
		MUST(vec_push(&w->iterations,
			      (struct fp_iteration){ (int64_t)w->iterations.cnt, w->now_ns, 0 }));
		publish(w);
	}
}

static void add_lead(test_shares *lead, uint32_t function, int64_t ns)
{
	vec_foreach(s, lead) {
		if (s->function == function) {
			s->ns += ns;
			return;
		}
	}
	MUST(vec_push(lead, (struct fp_share){ function, ns }));
}

/* Time of the critical path; not_in: the group whose own collective it is, or -1. */
static void spend(struct test_worker *w, uint32_t function, int64_t ns, int not_in)
{
	w->functions.data[function].share_ns += ns;
	w->functions.data[function].executions++;
	for (int g = 0; g < TEST_GROUPS; g++) {
		if (g != not_in)
			add_lead(&w->leads[g], function, ns);
	}
}

void test_work(struct test_job *job, size_t w, const struct test_place *place, double ms)
{
	struct test_worker *tw = &job->workers[w];
	uint32_t parent = FRAME_NONE, frame, function;

	if (place->context != NULL)
		parent = test_frame(job, w, FRAME_NONE, KIND_ANNOTATION, place->context);
	frame = test_frame(job, w, parent, place->kind, place->name);
	function = function_of(tw, frame, place->class);
	spend(tw, function, ns_of(ms), -1);
	tw->now_ns += ns_of(ms);
}

static const char *const group_names[TEST_GROUPS] = { "allreduce", "allgather", "reducescatter",
						      "alltoall" };

/* Writes down a collective of a worker that begins at its present time. */
static void write_collective(struct test_worker *w, unsigned int group, size_t size,
			     int64_t start_ns, int64_t end_ns)
{
	test_shares *lead = &w->leads[group];
	struct fp_collective c = {
		.group = 1000 + group,
		.name = group,
		.seq = w->seq[group] >= 0 ? w->seq[group]++ : -1,
		.start_ns = start_ns,
		.dur_ns = end_ns - start_ns,
		.critical_ns = end_ns - start_ns,
		.bytes = -1,
		.group_size = (int32_t)size,
		.group_known = true,
		.lead_ns = start_ns - w->lead_from_ns[group],
		.lead_first = (uint32_t)w->shares.cnt,
		.lead_cnt = (uint32_t)lead->cnt,
		.host_first = (uint32_t)w->shares.cnt,
	};

	vec_foreach(s, lead)
		MUST(vec_push(&w->shares, *s));
	lead->cnt = 0;
	w->lead_from_ns[group] = end_ns;
	MUST(vec_push(&w->collectives, c));
	publish(w);
}

static int64_t last_arrival_ns(const struct test_job *job, size_t first, size_t cnt)
{
	int64_t last = INT64_MIN;

	for (size_t i = first; i < first + cnt; i++)
		last = MAX(last, job->workers[i].now_ns);
	return last;
}

static uint32_t comm_function(struct test_job *job, size_t w, unsigned int group)
{
	return function_of(&job->workers[w],
			   test_frame(job, w, FRAME_NONE, KIND_KERNEL, group_names[group]),
			   CLASS_COMM);
}

void test_meet(struct test_job *job, unsigned int group, size_t first, size_t cnt,
	       double transfer_ms)
{
	int64_t end_ns = last_arrival_ns(job, first, cnt) + ns_of(transfer_ms);

	for (size_t i = first; i < first + cnt; i++) {
		struct test_worker *w = &job->workers[i];

		write_collective(w, group, cnt, w->now_ns, end_ns);
		spend(w, comm_function(job, i, group), end_ns - w->now_ns, (int)group);
		w->now_ns = end_ns;
	}
}

void test_launch(struct test_job *job, unsigned int group, size_t first, size_t cnt,
		 double transfer_ms)
{
	int64_t end_ns = last_arrival_ns(job, first, cnt) + ns_of(transfer_ms);

	/* One stream: the transfer begins after the one before has ended. */
	for (size_t i = first; i < first + cnt; i++)
		end_ns = MAX(end_ns, job->workers[i].busy_until_ns + ns_of(transfer_ms));
	for (size_t i = first; i < first + cnt; i++) {
		struct test_worker *w = &job->workers[i];

		write_collective(w, group, cnt, w->now_ns, end_ns);
		w->lead_from_ns[group] = w->now_ns;
		w->busy_until_ns = end_ns;
	}
}

void test_wait(struct test_job *job, size_t w)
{
	struct test_worker *tw = &job->workers[w];

	if (tw->now_ns >= tw->busy_until_ns)
		return;
	spend(tw, comm_function(job, w, 0), tw->busy_until_ns - tw->now_ns, 0);
	tw->now_ns = tw->busy_until_ns;
}

void test_finish(struct test_job *job)
{
	for (size_t i = 0; i < job->cnt; i++) {
		struct test_worker *w = &job->workers[i];

		w->fp.window_ns = w->now_ns;
		memset(w->fp.class_ns, 0, sizeof(w->fp.class_ns));
		if (w->iterations.cnt > 0) {
			struct fp_iteration *last = &w->iterations.data[w->iterations.cnt - 1];

			last->dur_ns = w->now_ns - last->start_ns;
		}
		vec_foreach(f, &w->functions) {
			set_time(f, &w->fp);
			w->fp.class_ns[f->class] += f->share_ns;
		}
	}
}

void test_shift_clock(struct test_job *job, size_t w, double ms)
{
	vec_foreach(c, &job->workers[w].collectives)
		c->start_ns += ns_of(ms);
	vec_foreach(i, &job->workers[w].iterations)
		i->start_ns += ns_of(ms);
}

void test_lose_collectives(struct test_job *job, size_t w, size_t first_cnt, size_t last_cnt)
{
	struct fingerprint *fp = &job->workers[w].fp;

	assert_true(fp->collective_cnt > first_cnt + last_cnt);
	fp->collectives += first_cnt;
	fp->collective_cnt -= first_cnt + last_cnt;
}

const struct test_place test_mm = { NULL, KIND_KERNEL, "mm", CLASS_COMPUTE };
const struct test_place test_nap = { "forward", KIND_OPERATOR, "idle after aten::view",
				     CLASS_IDLE };
const struct test_place test_crop = { NULL, KIND_PYTHON, "augment.py: random_crop", CLASS_HOST };

void test_play_late(struct test_job *job, const struct test_place *place, size_t late, double ms)
{
	test_job_init(job, 4, 0, 0);
	for (int i = 0; i < 6; i++) {
		test_iterate(job);
		for (size_t w = 0; w < 4; w++) {
			test_work(job, w, &test_mm, 98);
			if (w == late)
				test_work(job, w, place, ms);
		}
		test_meet(job, 0, 0, 4, 2);
	}
	test_finish(job);
}

/* --- the answer --- */

struct report test_localize(const struct test_job *job, const struct localize_options *options)
{
	struct localize_options with = options != NULL ? *options : localize_defaults();
	struct report report;
	struct err err = { "" };

	if (localize(job->fps, job->cnt, &with, &report, &err) < 0)
		fail_msg("localize: %s", err.text);
	return report;
}

const struct finding *test_find(const struct report *report, const char *cause)
{
	for (size_t i = 0; i < report->finding_cnt; i++) {
		if (strcmp(report->findings[i].cause, cause) == 0)
			return &report->findings[i];
	}
	return NULL;
}

void test_assert_ranks(const struct finding *finding, const char *ranks)
{
	struct str s = { 0 };

	assert_non_null(finding);
	rankset_format(&s, finding->ranks, finding->rank_cnt);
	assert_string_equal(str_borrow(&s), ranks);
	str_done(&s);
}
